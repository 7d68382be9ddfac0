//! What is carried out, as the answer of `state` shows it.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::BrokerId;
use evenkeel_rest::body::{
    Proposal, TopicPartition,
    state::{
        BrokerProgress, ExecutionTask, ExecutorState, InterBroker, InterBrokerTasks, IntraBroker, IntraBrokerTasks,
        Leadership, Phase, Stopping, StoppingTasks, TaskState, TaskType, Trigger,
    },
};
use evenkeel_rest::json::Key;

use super::{
    order::{Limits, Order},
    progress::{Counts, Share},
    runner::Report,
    task::{End, Kind, Stage, Task, Why},
};
use crate::journal::{History, Run};

const MB: u64 = 1024 * 1024;

/// What the executor does.
#[derive(Debug, Clone, Copy)]
pub enum Standing<'a> {
    /// Nothing.
    Idle,
    /// It is kept free for a plan that is being made.
    Generating(&'a Trigger),
    /// It carries a plan out.
    Running(&'a Run, &'a Report),
}

/// The body.
pub fn state(standing: Standing<'_>, history: &History, verbose: bool) -> ExecutorState {
    let (phase, trigger) = match standing {
        Standing::Idle => (Phase::Idle, None),
        Standing::Generating(trigger) => (Phase::Generating, Some(trigger.clone())),
        Standing::Running(run, report) => (phase(run, report, verbose), Some(trigger(run))),
    };
    let ids = |brokers: &BTreeMap<BrokerId, i64>| brokers.keys().map(|broker| broker.0).collect();
    ExecutorState {
        phase,
        trigger,
        recently_demoted_brokers: ids(&history.demoted),
        recently_removed_brokers: ids(&history.removed),
        broker_progress: Default::default(),
    }
}

/// What each broker receives.
pub(super) fn by_broker(report: &Report) -> BTreeMap<Key<i32>, BrokerProgress> {
    let told = |share: &Share| BrokerProgress {
        finished_data_movement: share.done / MB,
        total_data_to_move: share.total / MB,
    };
    report.brokers.iter().map(|(broker, share)| (Key(broker.0), told(share))).collect()
}

/// Who wanted it. What the engine began by itself has the name that it gave the run.
pub(super) fn trigger(run: &Run) -> Trigger {
    Trigger {
        triggered_task_reason: run.reason.clone(),
        triggered_self_healing_task_id: if run.task.is_none() { run.id.to_string() } else { String::new() },
        triggered_user_task_id: run.task.map(|task| task.to_string()).unwrap_or_default(),
    }
}

fn phase(run: &Run, report: &Report, verbose: bool) -> Phase {
    let limits = report.limits.as_ref().unwrap_or(&run.order.limits);
    let lists = Lists { order: &run.order, tasks: &report.tasks };
    let class = match report.phase {
        _ if report.stopping => return Phase::Stopping(stopping(&lists, limits, report, verbose)),
        None if report.tasks.is_empty() => return Phase::Starting,
        Some(Kind::Replicas) => Class::Replicas,
        Some(Kind::Dir(_)) => Class::Dirs,
        Some(Kind::Leader) => Class::Leaders,
        // Once all moves are over what is left is to lift the throttle: it is where it was last.
        None if report.progress.leaders.total() > 0 => Class::Leaders,
        None if report.progress.dirs.total() > 0 => Class::Dirs,
        None => Class::Replicas,
    };
    match class {
        Class::Replicas => Phase::InterBroker(inter_broker(&lists, limits, report, verbose)),
        Class::Dirs => Phase::IntraBroker(intra_broker(&lists, limits, report, verbose)),
        Class::Leaders => Phase::Leadership(leadership(&lists, limits, report, verbose)),
    }
}

fn inter_broker(lists: &Lists<'_>, limits: &Limits, report: &Report, verbose: bool) -> InterBroker {
    let counts = report.progress.replicas;
    let (least, most, mean) = spread(limits, &lists.order.baseline.up);
    let of = |wanted: TaskState| lists.of(Class::Replicas, |task| state_of(task.stage) == wanted);
    InterBroker {
        finished_data_movement: report.progress.bytes_done / MB,
        num_in_progress_partition_movements: counts.in_progress as u64,
        aborting_partitions: counts.aborting as u64,
        num_finished_partition_movements: counts.finished() as u64,
        maximum_concurrent_partition_movements_per_broker: most,
        num_pending_partition_movements: counts.pending as u64,
        total_data_to_move: report.progress.bytes_total / MB,
        minimum_concurrent_partition_movements_per_broker: least,
        average_concurrent_partition_movements_per_broker: mean.into(),
        num_total_partition_movements: counts.total() as u64,
        tasks: verbose.then(|| InterBrokerTasks {
            completed_partition_movement: of(TaskState::Completed),
            pending_partition_movement: of(TaskState::Pending),
            in_progress_partition_movement: of(TaskState::InProgress),
            aborting_partition_movement: of(TaskState::Aborting),
            aborted_partition_movement: of(TaskState::Aborted),
            dead_partition_movement: of(TaskState::Dead),
        }),
    }
}

fn intra_broker(lists: &Lists<'_>, limits: &Limits, report: &Report, verbose: bool) -> IntraBroker {
    let counts = report.progress.dirs;
    let limit = limits.dirs_per_broker as u64;
    let of = |wanted: TaskState| lists.of(Class::Dirs, |task| state_of(task.stage) == wanted);
    IntraBroker {
        minimum_concurrent_intra_broker_partition_movements_per_broker: limit,
        num_in_progress_intra_broker_partition_movements: counts.in_progress as u64,
        maximum_concurrent_intra_broker_partition_movements_per_broker: limit,
        num_pending_intra_broker_partition_movements: counts.pending as u64,
        num_total_intra_broker_partition_movements: counts.total() as u64,
        finished_intra_broker_data_movement: report.progress.dir_bytes_done / MB,
        average_concurrent_intra_broker_partition_movements_per_broker: (limit as f64).into(),
        total_intra_broker_data_to_move: report.progress.dir_bytes_total / MB,
        num_finished_intra_broker_partition_movements: counts.finished() as u64,
        num_aborting_intra_broker_partition_movements: counts.aborting as u64,
        tasks: verbose.then(|| IntraBrokerTasks {
            pending_intra_broker_partition_movement: of(TaskState::Pending),
            aborting_intra_broker_partition_movement: of(TaskState::Aborting),
            completed_intra_broker_partition_movement: of(TaskState::Completed),
            dead_intra_broker_partition_movement: of(TaskState::Dead),
            in_progress_intra_broker_partition_movement: of(TaskState::InProgress),
            aborted_intra_broker_partition_movement: of(TaskState::Aborted),
        }),
    }
}

fn leadership(lists: &Lists<'_>, limits: &Limits, report: &Report, verbose: bool) -> Leadership {
    let counts = report.progress.leaders;
    let limit = limits.leaders_per_broker as u64;
    Leadership {
        maximum_broker_leader_movement_concurrency: limit,
        cluster_leader_movement_concurrency: limits.leaders_in_cluster as u64,
        average_broker_leader_movement_concurrency: (limit as f64).into(),
        num_pending_leadership_movements: (counts.total() - counts.finished()) as u64,
        num_total_leadership_movements: counts.total() as u64,
        minimum_broker_leader_movement_concurrency: limit,
        num_finished_leadership_movements: counts.finished() as u64,
        pending_leadership_movement: verbose.then(|| lists.of(Class::Leaders, |task| !task.stage.is_over())),
    }
}

fn stopping(lists: &Lists<'_>, limits: &Limits, report: &Report, verbose: bool) -> Stopping {
    let of = |class: Class, wanted: TaskState| lists.of(class, |task| state_of(task.stage) == wanted);
    let cancelled = |class: Class| lists.of(class, |task| is_cancelled(task.stage));
    let count = |class: Class| lists.some(class, |task| is_cancelled(task.stage)).count() as u64;
    let total = |counts: Counts| counts.total() as u64;
    let progress = &report.progress;
    Stopping {
        maximum_broker_leader_movement_concurrency: limits.leaders_per_broker as u64,
        num_in_progress_intra_broker_partition_movements: progress.dirs.in_progress as u64,
        num_in_progress_partition_movements: progress.replicas.in_progress as u64,
        maximum_concurrent_intra_broker_partition_movements_per_broker: limits.dirs_per_broker as u64,
        cluster_leader_movement_concurrency: limits.leaders_in_cluster as u64,
        aborting_partitions: progress.replicas.aborting as u64,
        num_cancelled_partition_movements: count(Class::Replicas),
        num_cancelled_leadership_movements: count(Class::Leaders),
        maximum_concurrent_partition_movements_per_broker: spread(limits, &lists.order.baseline.up).1,
        num_aborting_intra_broker_partition_movements: progress.dirs.aborting as u64,
        num_cancelled_intra_broker_partition_movements: count(Class::Dirs),
        total_partition_movements: total(progress.replicas),
        total_intra_broker_partition_movements: total(progress.dirs),
        total_leadership_movements: total(progress.leaders),
        tasks: verbose.then(|| StoppingTasks {
            aborting_intra_broker_partition_movement: of(Class::Dirs, TaskState::Aborting),
            in_progress_partition_movement: of(Class::Replicas, TaskState::InProgress),
            in_progress_intra_broker_partition_movement: of(Class::Dirs, TaskState::InProgress),
            cancelled_partition_movement: cancelled(Class::Replicas),
            aborting_partition_movement: of(Class::Replicas, TaskState::Aborting),
            cancelled_leadership_movement: cancelled(Class::Leaders),
            cancelled_intra_broker_partition_movement: cancelled(Class::Dirs),
        }),
    }
}

/// Least, most and mean of what brokers may take part in at once.
fn spread(limits: &Limits, brokers: &BTreeSet<BrokerId>) -> (u64, u64, f64) {
    let usual = limits.per_broker as u64;
    let spared = brokers.intersection(&limits.spared).count();
    if spared == 0 {
        return (usual, usual, usual as f64);
    }
    let more = limits.per_spared() as u64;
    let least = if spared == brokers.len() { more } else { usual };
    let sum = more * spared as u64 + usual * (brokers.len() - spared) as u64;
    (least, more, sum as f64 / brokers.len() as f64)
}

/// What was never begun, and never will be.
fn is_cancelled(stage: Stage) -> bool {
    matches!(stage, Stage::Pending | Stage::Ended(End::Aborted(Why::Stopped)))
}

fn state_of(stage: Stage) -> TaskState {
    match stage {
        Stage::Pending => TaskState::Pending,
        Stage::InProgress { .. } => TaskState::InProgress,
        Stage::Aborting { .. } => TaskState::Aborting,
        Stage::Ended(End::Completed) => TaskState::Completed,
        Stage::Ended(End::Aborted(_)) => TaskState::Aborted,
        Stage::Ended(End::Dead(_)) => TaskState::Dead,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Replicas,
    Dirs,
    Leaders,
}

/// Tasks as they stand in lists.
struct Lists<'a> {
    order: &'a Order,
    tasks: &'a [Task],
}

impl Lists<'_> {
    fn some<'s>(
        &'s self,
        class: Class,
        wanted: impl Fn(&Task) -> bool + 's,
    ) -> impl Iterator<Item = (usize, &'s Task)> + 's {
        let class_of = |kind: Kind| match kind {
            Kind::Replicas => Class::Replicas,
            Kind::Dir(_) => Class::Dirs,
            Kind::Leader => Class::Leaders,
        };
        self.tasks.iter().enumerate().filter(move |(_, task)| class_of(task.kind) == class && wanted(task))
    }

    fn of(&self, class: Class, wanted: impl Fn(&Task) -> bool) -> Vec<ExecutionTask> {
        self.some(class, wanted).filter_map(|(number, task)| self.listed(number, task)).collect()
    }

    fn listed(&self, number: usize, task: &Task) -> Option<ExecutionTask> {
        let mv = self.order.moves.get(task.of)?;
        let ids = |brokers: &[BrokerId]| brokers.iter().map(|broker| broker.0).collect();
        let (task_type, broker_id) = match task.kind {
            Kind::Replicas => (TaskType::InterBroker, None),
            Kind::Dir(index) => (TaskType::IntraBroker, mv.dirs.get(index).map(|dir| dir.broker.0)),
            Kind::Leader => (TaskType::Leader, None),
        };
        Some(ExecutionTask {
            proposal: Proposal {
                old_leader: mv.old_leader.0,
                old_replicas: ids(&mv.old),
                topic_partition: TopicPartition::new(mv.partition.topic.as_str(), mv.partition.partition),
                new_replicas: ids(&mv.new),
                goal: None,
                bytes: None,
            },
            execution_id: number as u64,
            broker_id,
            state: state_of(task.stage),
            task_type,
        })
    }
}

#[cfg(test)]
mod tests;
