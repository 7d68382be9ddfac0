//! The custom resources that Evenkeel speaks, which are Strimzi's, with everything that is said about
//! them in metadata and status.

pub mod annotations;
pub mod conditions;
pub mod labels;
pub mod node_ids;
pub mod reasons;

pub use conditions::Condition;
pub use node_ids::NodeIdRanges;
pub use reasons::Reason;
