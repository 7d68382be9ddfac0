//! What a kubelet does, for pods that run as tasks or child processes on loopback.

pub mod logs;
pub mod program;
pub mod tree;
