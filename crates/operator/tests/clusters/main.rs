//! Whole clusters on the embedded API server, in paused time: the operator's controllers, the garbage collector, and
//! a kubelet that does no more than saying that pods are ready; or a whole node, in `on_a_node`.

mod another_operator;
mod approval;
mod automatic;
mod chaos;
mod cordons;
mod crash_points;
mod deaths;
mod deletion;
mod ends;
mod engine_room;
mod forbidden;
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
mod templates;
mod trouble;
mod upgrade;
mod users;
mod wholes;
