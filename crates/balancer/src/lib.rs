//! Plans how the replicas of a Kafka cluster should lie, and says why.
//!
//! Pure: no IO, no clock, no async, no hash order, no random source. The same cluster and the same
//! options give the same plan, byte for byte, on any machine and with any number of threads.

pub mod after;
pub mod anomaly;
pub mod argument;
pub mod cluster;
pub mod estimate;
pub mod goal;
pub mod held;
pub mod inspect;
pub mod options;
pub mod plan;
pub mod planner;
pub mod provision;
pub mod rules;
pub mod score;
pub mod settings;
pub mod statistics;
pub mod without;

mod aims;
mod budget;
mod demote;
mod feasible;
#[cfg(test)]
mod fixture;
mod gauges;
mod improve;
mod intra;
mod net;
mod order;
mod pattern;
mod reasons;
mod repack;
mod state;
mod threads;

pub use intra::DiskLoad;
