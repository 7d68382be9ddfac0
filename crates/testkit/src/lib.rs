//! What tests of several crates share. Never part of the product.

pub mod kubectl;
#[cfg(feature = "real-kube")]
pub mod real_kube;
