//! The executor's line, and the lists of its tasks.

use std::fmt::{self, Write};

use super::{line, list};
use crate::body::state::{ExecutionTask, ExecutorState, InterBroker, IntraBroker, Leadership, Phase, Stopping};

impl ExecutorState {
    pub(super) fn text(&self) -> String {
        let mut out = format!("{{state: {}", self.phase.name());
        out.push_str(&match &self.phase {
            Phase::InterBroker(it) => inter_broker(it),
            Phase::IntraBroker(it) => intra_broker(it),
            Phase::Leadership(it) => leadership(it),
            Phase::Stopping(it) => stopping(it),
            Phase::Idle | Phase::Generating | Phase::Initializing | Phase::Starting | Phase::Unknown => String::new(),
        });
        if let Some(trigger) = &self.trigger {
            let (name, id) = if trigger.triggered_self_healing_task_id.is_empty() {
                ("triggeredUserTaskId", &trigger.triggered_user_task_id)
            } else {
                ("triggeredSelfHealingTaskId", &trigger.triggered_self_healing_task_id)
            };
            let _ = write!(out, ", {name}: {id}, triggeredTaskReason: {}", line(&trigger.triggered_task_reason));
        }
        for (name, brokers) in [
            ("recentlyDemotedBrokers", &self.recently_demoted_brokers),
            ("recentlyRemovedBrokers", &self.recently_removed_brokers),
        ] {
            if !brokers.is_empty() {
                let _ = write!(out, ", {name}: {}", list(brokers));
            }
        }
        out.push('}');
        out
    }

    /// The lists, if the body has them. What the original lists without ever having it in the body stays empty.
    pub(super) fn tasks_text(&self) -> String {
        const NONE: &[ExecutionTask] = &[];
        let sections: Vec<(&str, &str, &[ExecutionTask])> = match &self.phase {
            Phase::InterBroker(InterBroker { tasks: Some(it), .. }) => vec![
                ("Pending", INTER, &it.pending_partition_movement),
                ("In progress", INTER, &it.in_progress_partition_movement),
                ("Aborting", INTER, &it.aborting_partition_movement),
                ("Aborted", INTER, &it.aborted_partition_movement),
                ("Dead", INTER, &it.dead_partition_movement),
            ],
            Phase::IntraBroker(IntraBroker { tasks: Some(it), .. }) => vec![
                ("Pending", INTRA, &it.pending_intra_broker_partition_movement),
                ("In progress", INTRA, &it.in_progress_intra_broker_partition_movement),
                ("Aborting", INTRA, &it.aborting_intra_broker_partition_movement),
                ("Aborted", INTRA, &it.aborted_intra_broker_partition_movement),
                ("Dead", INTRA, &it.dead_intra_broker_partition_movement),
            ],
            Phase::Leadership(Leadership { pending_leadership_movement: Some(pending), .. }) => vec![
                ("Pending", LEADERSHIP, pending),
                ("In progress", LEADERSHIP, NONE),
                ("Aborting", LEADERSHIP, NONE),
                ("Aborted", LEADERSHIP, NONE),
                ("Dead", LEADERSHIP, NONE),
            ],
            Phase::Stopping(Stopping { tasks: Some(it), .. }) => vec![
                ("Cancelled", INTRA, &it.cancelled_intra_broker_partition_movement),
                ("In progress", INTRA, &it.in_progress_intra_broker_partition_movement),
                ("Aborting", INTRA, &it.aborting_intra_broker_partition_movement),
                ("Cancelled", INTER, &it.cancelled_partition_movement),
                ("In progress", INTER, &it.in_progress_partition_movement),
                ("Aborting", INTER, &it.aborting_partition_movement),
                ("Cancelled", LEADERSHIP, &it.cancelled_leadership_movement),
            ],
            _ => Vec::new(),
        };
        let mut out = String::new();
        for (how, what, tasks) in sections {
            let _ = write!(out, "\n\n{how} {what}:\n");
            tasks.iter().for_each(|task| {
                let _ = writeln!(out, "{task}");
            });
        }
        out
    }
}

const INTER: &str = "inter-broker partition movements";
const INTRA: &str = "intra-broker partition movements";
const LEADERSHIP: &str = "leadership movements";

/// `{EXE_ID: 7, LEADER_ACTION, {…}, PENDING}`
impl fmt::Display for ExecutionTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broker = self.broker_id.map(|broker| format!("({broker})")).unwrap_or_default();
        write!(f, "{{EXE_ID: {}, {}{broker}, {}, {}}}", self.execution_id, self.task_type, self.proposal, self.state)
    }
}

fn percent(done: u64, total: u64) -> f64 {
    if total == 0 { 100.0 } else { done as f64 / total as f64 * 100.0 }
}

fn inter_broker(it: &InterBroker) -> String {
    format!(
        ", pending({})/in-progress({})/aborting({})/finished({})/total({}) inter-broker partition movements, \
         completed({})/total({}) bytes in MBs: {:.2}%, \
         max/min/avg concurrent inter-broker partition movements per-broker: {}/{}/{:.2}",
        it.num_pending_partition_movements,
        it.num_in_progress_partition_movements,
        it.aborting_partitions,
        it.num_finished_partition_movements,
        it.num_total_partition_movements,
        it.finished_data_movement,
        it.total_data_to_move,
        percent(it.finished_data_movement, it.total_data_to_move),
        it.maximum_concurrent_partition_movements_per_broker,
        it.minimum_concurrent_partition_movements_per_broker,
        it.average_concurrent_partition_movements_per_broker.0
    )
}

/// Some blanks are missing in the original, and so here.
fn intra_broker(it: &IntraBroker) -> String {
    format!(
        ", pending({})/in-progress({})/aborting({})/finished({})/total({}) intra-broker partition movements,\
         completed({})/total({}) bytes in MBs: {:.2}%, \
         max/min/avg concurrent intra-broker partition movements per-broker:{}/{}/{:.2}",
        it.num_pending_intra_broker_partition_movements,
        it.num_in_progress_intra_broker_partition_movements,
        it.num_aborting_intra_broker_partition_movements,
        it.num_finished_intra_broker_partition_movements,
        it.num_total_intra_broker_partition_movements,
        it.finished_intra_broker_data_movement,
        it.total_intra_broker_data_to_move,
        percent(it.finished_intra_broker_data_movement, it.total_intra_broker_data_to_move),
        it.maximum_concurrent_intra_broker_partition_movements_per_broker,
        it.minimum_concurrent_intra_broker_partition_movements_per_broker,
        it.average_concurrent_intra_broker_partition_movements_per_broker.0
    )
}

fn leadership(it: &Leadership) -> String {
    format!(
        ", finished({})/total({}) leadership movements, max/min/avg broker leadership movement concurrency: {}/{}/{:.2}, \
         cluster leadership movement concurrency: {}",
        it.num_finished_leadership_movements,
        it.num_total_leadership_movements,
        it.maximum_broker_leader_movement_concurrency,
        it.minimum_broker_leader_movement_concurrency,
        it.average_broker_leader_movement_concurrency.0,
        it.cluster_leader_movement_concurrency
    )
}

fn stopping(it: &Stopping) -> String {
    format!(
        ", cancelled({})/in-progress({})/aborting({})/total({}) intra-broker partition movements,\
         cancelled({})/in-progress({})/aborting({})/total({}) inter-broker partition movements movements,\
         cancelled({})/total({}) leadership movements, \
         maximum concurrent intra-broker partition movements per-broker: {}, \
         maximum concurrent inter-broker partition movements per-broker: {}, \
         maximum broker leadership movement concurrency: {}, cluster leadership movements concurrency: {}",
        it.num_cancelled_intra_broker_partition_movements,
        it.num_in_progress_intra_broker_partition_movements,
        it.num_aborting_intra_broker_partition_movements,
        it.total_intra_broker_partition_movements,
        it.num_cancelled_partition_movements,
        it.num_in_progress_partition_movements,
        it.aborting_partitions,
        it.total_partition_movements,
        it.num_cancelled_leadership_movements,
        it.total_leadership_movements,
        it.maximum_concurrent_intra_broker_partition_movements_per_broker,
        it.maximum_concurrent_partition_movements_per_broker,
        it.maximum_broker_leader_movement_concurrency,
        it.cluster_leader_movement_concurrency
    )
}
