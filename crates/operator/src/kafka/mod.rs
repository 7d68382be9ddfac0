//! A Kafka cluster, as it ought to be: from a `Kafka`, its node pools and what is there already to every object that
//! should exist in Kubernetes.
//!
//! ```text
//! Kafka, KafkaNodePools, StrimziPodSets ──▶ pools::Pools       what is asked for, and whether it can be
//!                                               │ nodes::assign
//!                                               ▼
//!                                           nodes::Assignment  which ids stay, come and go
//!                                               │ model::Model::build
//!                                               ▼
//!                                           model::Model       all that the objects depend on
//!            ┌──────────────┬───────────────────┼──────────────────┐
//!      certificates       config             objects             engine
//! ```
//!
//! Nothing here talks to anybody, reads a clock or throws dice: keys are made in one function of [`certificates`], and
//! passwords come from a source that is handed in. The same input gives the same bytes.

mod act;
mod ask_engine;
mod at_rest;
mod bereft;
pub mod certificates;
pub mod config;
mod controller;
pub mod decide;
pub mod desired;
pub mod engine;
mod hash;
mod hearing;
mod honoured;
pub mod listeners;
pub mod metadata_versions;
pub mod model;
pub mod names;
pub mod nodes;
pub mod objects;
mod observe;
pub mod pools;
pub mod problem;
pub mod properties;
pub mod quantity;
pub mod roll;
pub mod scale_down;
pub mod seen;
pub mod settings;
pub mod storage;
pub mod template;
#[cfg(test)]
mod testing;

pub use controller::run;
