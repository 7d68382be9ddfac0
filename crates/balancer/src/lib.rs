//! Plans how the replicas of a Kafka cluster should lie, and says why.
//!
//! Pure: no IO, no clock, no async, no hash order, no random source. The same cluster and the same
//! options give the same plan, byte for byte, on any machine and with any number of threads.

pub mod after;
pub mod cluster;
pub mod goal;
pub mod inspect;
pub mod options;
pub mod plan;
pub mod planner;
pub mod rules;
pub mod settings;

mod aims;
mod budget;
mod gauges;
mod improve;
mod state;
mod threads;
