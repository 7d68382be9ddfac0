//! What tests of several crates share. Never part of the product.

pub mod kubectl;
pub mod real_kube;
