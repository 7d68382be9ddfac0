//! What tests of several crates share. Never part of the product.

mod embedded;
pub mod kubectl;
pub mod real_kube;

pub use embedded::embedded;
