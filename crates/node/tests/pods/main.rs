//! Pods, and everything around them, over the embedded server in paused time.

mod life;
mod services;
mod workloads;
mod world;
