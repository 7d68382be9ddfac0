//! Whole clusters on the embedded API server, in paused time: the operator's controllers, the garbage collector, and
//! a kubelet that does no more than saying that pods are ready.

mod automatic;
mod cordons;
mod deletion;
mod engine_room;
mod life;
mod machines;
mod pod_sets;
mod processes;
mod rights;
mod scene;
mod stage;
mod strimzis_definitions;
mod trouble;
mod upgrade;
