//! What tests and benches of several crates share. Never part of the product.

pub mod client;
pub mod evenkeel_kube;
pub mod kubectl;
pub mod measure;
mod readiness;
pub mod real_kube;
mod server;
