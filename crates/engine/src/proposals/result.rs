//! What is said about a plan: the body of every request that makes one.

use std::{cmp::Reverse, collections::BTreeSet};

use evenkeel_balancer::{
    cluster::{BrokerId, Resource},
    plan::Change,
    planner::{Status, Verdict},
    provision,
};
use evenkeel_rest::{
    Request,
    body::{
        self, ClusterLoad, GoalStatus, GoalSummary, LeftUndone, OptimizationResult, ProvisionStatus, Summary,
        TopicPartition,
    },
    json::Version,
    request::Detail,
};

use super::{
    Proposal,
    loads::cluster_load,
    order::{MB, estimated_pace, moves},
};
use crate::config::settings;

/// The answer to `request`, for which the plan was made.
pub fn result(proposal: &Proposal, request: &Request, settings: &settings::Executor) -> OptimizationResult {
    let Detail { verbose, max_proposals } = detail(request);
    let told = || biggest(&proposal.outcome.plan.changes, max_proposals).into_iter().map(proposed).collect();
    OptimizationResult {
        summary: summary(proposal, request, settings),
        proposals: verbose.then(told),
        load_before_optimization: verbose.then(|| loads(proposal, 0)),
        goal_summary: proposal.outcome.verdicts.iter().map(|verdict| goal(proposal, verdict)).collect(),
        load_after_optimization: loads(proposal, 1),
        version: Version,
    }
}

fn detail(request: &Request) -> Detail {
    let optimization = match request {
        Request::Proposals(it) => &it.goal_options.optimization,
        Request::Rebalance(it) => &it.goal_options.optimization,
        Request::AddBroker(it) => &it.goal_options.optimization,
        Request::RemoveBroker(it) => &it.goal_options.optimization,
        Request::FixOfflineReplicas(it) => &it.goal_options.optimization,
        Request::DemoteBroker(it) => &it.optimization,
        Request::RemoveDisks(it) => return it.detail.clone(),
        _ => return Detail::default(),
    };
    optimization.detail.clone()
}

/// The changes that copy the most, as many as wanted, in the order of the plan. Of those that copy the same, the first by
/// name.
fn biggest(changes: &[Change], most: Option<u32>) -> Vec<&Change> {
    let most = most.map_or(usize::MAX, |most| most as usize);
    let mut order: Vec<usize> = (0..changes.len()).collect();
    if most < order.len() {
        let rank = |at: &usize| (Reverse(bytes(&changes[*at])), changes[*at].topic.as_str(), changes[*at].partition);
        order.sort_unstable_by(|one, other| rank(one).cmp(&rank(other)));
        order.truncate(most);
        order.sort_unstable();
    }
    order.into_iter().map(|at| &changes[at]).collect()
}

/// The loads before (0) or after (1).
fn loads(proposal: &Proposal, at: usize) -> ClusterLoad {
    let loads = [&proposal.outcome.before, &proposal.outcome.after][at];
    cluster_load(&proposal.brokers, loads, proposal.disks.as_ref().map(|disks| &disks[at]), true)
}

/// Counted from the very moves that the executor would make, so that its progress ends where this says.
fn summary(proposal: &Proposal, request: &Request, settings: &settings::Executor) -> Summary {
    let outcome = &proposal.outcome;
    let (mut between, mut inside, mut leaders, mut bytes_between, mut bytes_inside) = (0, 0, 0, 0_u64, 0_u64);
    for mv in moves(&outcome.plan) {
        let (copies, within) = (mv.added().count(), mv.dirs.iter().filter(|dir| dir.from.is_some()).count() as u64);
        between += u64::from(copies > 0);
        inside += within;
        leaders += u64::from(copies == 0 && within == 0 && mv.new.first() != Some(&mv.old_leader));
        bytes_between += mv.bytes_between_brokers();
        bytes_inside += mv.bytes * within;
    }
    let ids = |ids: &BTreeSet<BrokerId>| ids.iter().map(|id| id.0).collect();
    let asked = &proposal.ask.request;
    let undone = outcome.plan.undone;
    let is_sized = !proposal.brokers.unknown().contains(Resource::Disk);
    let estimate = outcome.estimate(&proposal.brokers, &estimated_pace(request, settings)).expected;
    Summary {
        num_intra_broker_replica_movements: inside,
        num_replica_movements: between,
        on_demand_balancedness_score_after: outcome.score.1.into(),
        intra_broker_data_to_move_mb: bytes_inside / MB as u64,
        monitored_partitions_percentage: (proposal.coverage * 100.0).into(),
        provision_recommendation: outcome.provision.recommendation.clone(),
        excluded_brokers_for_replica_move: ids(&asked.excluded_for_replica_moves),
        excluded_brokers_for_leadership: ids(&asked.excluded_for_leadership),
        provision_status: match outcome.provision.status {
            provision::ProvisionStatus::RightSized => ProvisionStatus::RightSized,
            provision::ProvisionStatus::UnderProvisioned => ProvisionStatus::UnderProvisioned,
            provision::ProvisionStatus::OverProvisioned => ProvisionStatus::OverProvisioned,
            provision::ProvisionStatus::Undecided => ProvisionStatus::Undecided,
        },
        on_demand_balancedness_score_before: outcome.score.0.into(),
        recent_windows: proposal.windows as u64,
        data_to_move_mb: bytes_between / MB as u64,
        excluded_topics: proposal.excluded_topics.clone(),
        num_leader_movements: leaders,
        proposal_id: Some(proposal.id.clone()),
        // Nobody knows how fast a broker copies between its own disks.
        estimated_minutes: (inside == 0 && is_sized && estimate.is_finite()).then_some(estimate.into()),
        left_undone: asked
            .budget
            .megabytes
            .map(|_| LeftUndone { num_changes: undone.changes as u64, data_to_move_mb: undone.megabytes as u64 }),
        unmeasured_goals: proposal.ask.dropped.iter().map(|goal| goal.name().to_owned()).collect(),
    }
}

fn goal(proposal: &Proposal, verdict: &Verdict) -> GoalSummary {
    GoalSummary {
        // All goals are pursued at once: each sees the cluster that the whole plan leads to, and has its part of the time.
        cluster_model_stats: proposal.figures.clone(),
        optimization_time_ms: proposal.took / proposal.outcome.verdicts.len().max(1) as u64,
        status: match verdict.status {
            Status::Violated => GoalStatus::Violated,
            Status::Fixed => GoalStatus::Fixed,
            Status::NoAction => GoalStatus::NoAction,
        },
        goal: verdict.goal.name().to_owned(),
    }
}

fn proposed(change: &Change) -> body::Proposal {
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    body::Proposal {
        old_leader: change.old_leader.0,
        old_replicas: ids(&change.old_replicas),
        topic_partition: TopicPartition::new(&change.topic, change.partition),
        new_replicas: ids(&change.new_replicas),
        goal: change.reasons.first().map(|reason| reason.name().to_owned()),
        bytes: Some(bytes(change)),
    }
}

/// What is copied for it, between brokers and between disks.
fn bytes(change: &Change) -> u64 {
    ((change.megabytes + change.disk_megabytes) * MB) as u64
}
