//! The table form of lists and objects, as `kubectl get` shows them.

pub mod age;
pub mod builtin;
mod pods;
