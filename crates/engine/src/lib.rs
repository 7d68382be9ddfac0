//! A drop-in Cruise Control that forgets nothing.
//!
//! What decides is pure and knows no clock, no Kafka and no HTTP; shells around it look, record and
//! act. [`monitor`] knows what the cluster carries, [`executor`] carries
//! plans out, [`tasks`] remembers who asked for what, and [`journal`] is what outlives the process.

pub mod answers;
mod aside;
pub mod clock;
pub mod config;
pub mod detect;
pub mod engine;
pub mod executor;
pub mod files;
pub mod journal;
pub mod metrics;
pub mod model;
pub mod monitor;
pub mod notify;
pub mod planner;
pub mod proposals;
mod said;
pub mod serve;
pub mod strimzi;
pub mod tasks;
pub mod watch;
