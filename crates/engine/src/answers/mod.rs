//! From what is known to what is answered, for every endpoint that makes no plan. Pure: whoever asks
//! hands in what is known, and does what an answer promises.

mod admin;
mod cluster;
mod state;
mod tasks;

pub use admin::{AdminPlan, AdminSeen};
pub use cluster::{ClusterSeen, LogDirsSeen, PartitionSeen, cluster_state};
pub use state::{GoalSeen, Parts, analyzer_state, state};
pub use tasks::user_tasks;

use evenkeel_rest::{Role, body::Permissions};

/// The answer of `permissions`.
pub fn permissions(role: Role) -> Permissions {
    Permissions { roles: vec![role.name().to_owned()], ..Permissions::default() }
}
