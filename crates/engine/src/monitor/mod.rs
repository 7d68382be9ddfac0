//! What the cluster carries: from raw measurements to loads that a plan can be made on.
//!
//! [`raw`] reads what the reporter plug-in on each broker says, [`told`] gathers it, and [`mod@derive`] turns one interval of it
//! into samples, one for each partition and broker. [`windows`] keeps samples by time and says
//! which partitions are known well enough. [`sample`] and [`broker_sample`] are their stored forms,
//! the original's to the byte, so that history outlives us and either of us can take over from the other.
//! [`zero_touch`] measures from outside where there is no reporter. Around these, which are pure:
//! `sources` ask Kafka, `store` keeps samples in it, and [`Monitor`] does both on and on.
//!
//! What is not measured is unknown, never 0: a sample carries only what was seen.

pub mod broker_sample;
pub mod derive;
pub mod raw;
pub mod record;
pub mod sample;
mod service;
mod sources;
mod store;
pub mod told;
pub mod windows;
pub mod zero_touch;

pub use service::{Fetches, Known, Monitor};
