//! One KafkaRebalance, from the first sight of it to its end: everything that is decided about it, and
//! nothing that is done.
//!
//! A controller reads an [`Observation`], asks [`decide`], carries the [`Decision`] out in the order that
//! its fields stand in, hands the engine's reply to [`Heard`], and asks again, until there is no call left
//! to make. Nothing here waits, looks at a clock or talks to anybody, so every situation is a value.
//!
//! ```text
//!            ┌──────────────── refresh, spec edit ───────────────┐
//!            ▼                                                   │
//! New ─► PendingProposal ─► ProposalReady ─► Rebalancing ─► Ready, Stopped, NotReady
//!            ▲                    │ approve
//!            └── ProposalOutdated ┘
//! ```
//!
//! How a crash is survived: whatever may begin something is recorded before it is sent. A proposal is
//! recorded as `PendingProposal`; an execution by the finalizer on a resource in `ProposalReady`, which
//! says *perhaps submitted*. Whoever finds it so looks for the run by its [`tag`] before anything else.

mod config_map;
pub mod controller;
mod decide;
mod decision;
mod draft;
mod finalizer;
mod hear;
mod load;
mod messages;
mod moves;
mod observe;
mod progress;
mod queue;
mod request;
mod result;
mod state;
pub mod tag;
mod template;
#[cfg(test)]
mod tests;

pub use config_map::FoundConfigMap;
pub use decide::decide;
pub use decision::{Decision, Event, EventKind, Finalizer, Forget, Next, Order};
pub use hear::{Call, Heard, Plan, Said, Sort, Trouble};
pub(crate) use observe::runs_in_kafka;
pub use observe::{Blocked, Cluster, Engine, FoundKafka, Observation};
pub use queue::Other;
pub use request::Planning;
pub(crate) use result::megabytes;
pub(crate) use state::before_any_pause;
pub use template::Template;
