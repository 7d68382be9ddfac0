//! Cruise Control's HTTP vocabulary, for both ends of the wire: the engine serves with it, the operator calls with it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`endpoint`] | the endpoints: methods, roles, which are served |
//! | [`query`], [`parameter`] | parameters: how values are read and written |
//! | [`request`] | a struct for each endpoint, and what in it cannot go together |
//! | [`refusal`], [`failure`] | answers that are no results, in the words that clients match on |
//! | [`reason`] | why something runs, by whom and since when |
//! | [`json`] | JSON as Gson speaks it |
//! | [`body`] | the bodies of answers, key for key |
//! | [`text`] | the same bodies as text, which is what comes without `json=true` |
//! | [`headers`] | names and values of headers |
//! | [`docs`] | the reference page, made from the declarations |
//! | [`client`] | impure: asks, waits, and says what the answer means |
//!
//! Everything but [`client`] is pure.

pub mod body;
pub mod client;
pub mod docs;
pub mod endpoint;
pub mod failure;
pub mod headers;
pub mod json;
pub mod parameter;
pub mod query;
pub mod reason;
pub mod refusal;
pub mod request;
pub mod text;

pub use client::{Answer, Client};
pub use endpoint::{Endpoint, Method, Role, TaskClass};
pub use failure::Failure;
pub use query::Query;
pub use refusal::Refusal;
pub use request::{Presentation, Request};
