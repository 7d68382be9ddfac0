//! What tests and benches of several crates share. Never part of the product.

pub mod client;
mod embedded;
pub mod evenkeel_kube;
pub mod kubectl;
pub mod measure;
mod readiness;
pub mod real_kube;
mod server;

pub use embedded::embedded;
