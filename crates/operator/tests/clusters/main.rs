//! Whole clusters on the embedded API server, in paused time: the operator's controllers, the garbage collector, and
//! a kubelet that does no more than saying that pods are ready.

mod automatic;
mod cordons;
mod deaths;
mod deletion;
mod ends;
mod engine_room;
mod imbalance;
mod life;
mod machines;
mod meddling;
mod play;
mod pod_sets;
mod processes;
mod refusals;
mod resizing;
mod rights;
mod scene;
mod stage;
mod strimzis_definitions;
mod templates;
mod trouble;
mod upgrade;
mod wholes;
