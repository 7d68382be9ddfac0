//! Whole clusters on the embedded API server, in paused time: the operator's controllers, the garbage collector, and nodes
//! that run pods (`machines`): brokers are simulated, and engines are real where a story has one.

mod another_operator;
mod approval;
mod at_rest;
mod automatic;
mod bindings;
mod chaos;
mod cordons;
mod crash_points;
mod deaths;
mod deletion;
mod ends;
mod engine_room;
mod first_writes;
mod forbidden;
mod hindrances;
mod imbalance;
mod late;
mod late_hands;
mod life;
mod machines;
mod meddling;
mod memory;
mod mixed_wishes;
mod on_a_node;
mod play;
mod pod_sets;
mod processes;
mod quorum;
mod refusals;
mod resizing;
mod rights;
mod rolling;
mod scene;
#[path = "../rebalance/seams.rs"]
#[allow(dead_code, unreachable_pub, reason = "that suite needs more of it")]
mod seams;
mod silence;
mod slow_looks;
mod stage;
mod strimzis_definitions;
mod stubborn_pods;
mod templates;
mod trouble;
mod upgrade;
mod users;
mod volumes;
mod wholes;
