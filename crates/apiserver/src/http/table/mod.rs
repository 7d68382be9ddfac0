//! The table form of lists and objects, as `kubectl get` shows them.

pub mod age;
pub mod builtin;
pub mod custom;
mod path;
mod pods;
