//! Pods, and everything around them, over the embedded server in paused time.

mod life;
mod services;
mod troubles;
mod workloads;
mod world;
