//! A Kubernetes API in a library: enough of it that `kubectl` and every kube client believe in it.
//!
//! The heart is pure: [`api`] is a function of state, request and [`api::Moment`]; it has no clock, no socket, no task.
//! Around it stand [`http`] (routes, negotiation, streams) and [`serve`] (TLS, certificates, kubeconfig).

pub mod api;
pub mod apply;
pub mod decode;
pub mod http;
pub mod names;
pub mod object;
pub mod patch;
pub mod refusal;
pub mod resource;
pub mod schema;
pub mod select;
pub mod serve;
pub mod store;
