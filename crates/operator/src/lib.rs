//! The operator: watches Strimzi's resources and makes them come true.
//!
//! Every controller is observe → decide → record → act. What decides is pure: it knows no clock, no
//! Kubernetes and no engine, only what was observed of them.

mod access;
mod alarms;
mod another;
pub mod auto_rebalance;
pub mod error;
pub mod figures;
#[cfg(test)]
mod forms;
pub mod installation;
pub mod kafka;
mod kept;
mod namespaces;
pub mod pod_set;
pub mod process;
pub mod rebalance;
pub mod seams;
pub mod settings;
