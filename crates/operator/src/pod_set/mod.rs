//! StrimziPodSets: pods that need not be alike, made as they are listed.
//!
//! A pod that is there is left alone, even if it differs from the list: to restart pods in the right order is the work
//! of whoever wrote the list. [`decide`] is pure; `controller` looks and acts.

mod controller;
pub mod decide;

pub use controller::run;
