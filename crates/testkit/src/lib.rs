//! What tests and benches of several crates share. Never part of the product.

pub mod certificates;
pub mod client;
mod embedded;
pub mod evenkeel_engine;
pub mod evenkeel_kube;
pub mod freight;
pub mod kafka_client;
pub mod kubectl;
pub mod measure;
pub mod mortal;
mod ports;
mod readiness;
pub mod real_kafka;
pub mod real_kube;
mod run_folder;
mod server;
pub mod story;

pub use embedded::embedded;
