//! What the executor is to do: the plan move by move, at the pace that the request asks for.

use std::collections::BTreeSet;

use evenkeel_balancer::{
    cluster,
    estimate::Pace,
    plan::{Change, DiskChange, Plan},
};
use evenkeel_kafka::{BrokerId, TopicPartition};
use evenkeel_rest::{Request, request};

use super::Proposal;
use crate::{
    config::settings,
    executor::{Baseline, DirMove, Limits, Millis, Move, Order, Strategy},
};

pub(super) const MB: f64 = 1024.0 * 1024.0;

/// A broker that is down for so long is given up: when the original would begin to repair what is on it.
const GIVES_UP_AFTER: Millis = 30 * 60 * 1_000;

/// How often the executor looks, at least, in seconds.
const LOOKS_EVERY: f64 = 1.0;

/// The order for carrying the plan out as `request` wants it. Who is emptied or repaired is the
/// request's word too: an equal plan may have been made for another end.
pub fn order(proposal: &Proposal, request: &Request, settings: &settings::Executor) -> Order {
    let ids = |ids: &BTreeSet<i32>| ids.iter().copied().map(BrokerId).collect();
    let asked = pace(request);
    let named = || asked.replica_movement_strategies.iter().filter_map(|name| Strategy::from_name(name));
    let strategies: Vec<Strategy> = named().collect();
    Order {
        moves: moves(&proposal.outcome.plan).collect(),
        limits: limits(request, settings),
        strategies: if strategies.is_empty() { settings.strategies.clone() } else { strategies },
        throttle: throttle(request, settings),
        baseline: proposal.baseline.clone(),
        emptied: match request {
            Request::RemoveBroker(it) => ids(&it.brokerid),
            _ => BTreeSet::new(),
        },
        repairs: repairs(request, &proposal.baseline),
        stops_others: settings.stops_others,
        gives_up_after: Some(GIVES_UP_AFTER),
        leader_patience: settings.leader_patience,
    }
}

/// Whether the plan repairs what is broken: also where brokers are removed that are down already.
fn repairs(request: &Request, baseline: &Baseline) -> bool {
    match request {
        Request::FixOfflineReplicas(_) => true,
        Request::RemoveBroker(it) => it.brokerid.iter().any(|id| !baseline.up.contains(&BrokerId(*id))),
        _ => false,
    }
}

/// The plan, move by move.
pub(super) fn moves(plan: &Plan) -> impl Iterator<Item = Move> + '_ {
    plan.changes.iter().map(mv)
}

/// Whether a replica changes its directory and not its broker.
fn is_within(disk: &&DiskChange) -> bool {
    !disk.from.is_empty()
}

fn mv(change: &Change) -> Move {
    let ids = |ids: &[cluster::BrokerId]| ids.iter().map(|id| BrokerId(id.0)).collect();
    let (copies, within) = (change.added().count(), change.disks.iter().filter(is_within).count());
    let megabytes = match (copies, within) {
        (0, 0) => 0.0,
        (0, _) => change.disk_megabytes / within as f64,
        _ => change.megabytes / copies as f64,
    };
    let dirs = change.disks.iter().map(|disk| DirMove {
        broker: BrokerId(disk.broker.0),
        from: is_within(&disk).then(|| disk.from.clone()),
        to: disk.to.clone(),
    });
    // Where nothing but directories change nobody is to be elected, even if another than the first leads.
    let keeps_leader = change.old_leader == change.new_leader && change.old_replicas == change.new_replicas;
    let old_leader = if keeps_leader { change.new_replicas.first() } else { None };
    Move {
        partition: TopicPartition::new(&change.topic, change.partition),
        old: ids(&change.old_replicas),
        new: ids(&change.new_replicas),
        old_leader: BrokerId(old_leader.unwrap_or(&change.old_leader).0),
        dirs: dirs.collect(),
        bytes: (megabytes * MB).round() as u64,
    }
}

/// At what pace the request would be carried out, for an estimate.
pub(super) fn estimated_pace(request: &Request, settings: &settings::Executor) -> Pace {
    let limits = limits(request, settings);
    Pace {
        throttle: throttle(request, settings).map(|bytes| bytes as f64 / 1024.0),
        moves_per_broker: limits.per_broker,
        moves: limits.in_cluster,
        leader_moves: limits.leaders_in_cluster,
        check_interval: LOOKS_EVERY,
        disk_bandwidth: None,
    }
}

fn execution(request: &Request) -> Option<&request::Execution> {
    match request {
        Request::Rebalance(it) => Some(&it.execution),
        Request::AddBroker(it) => Some(&it.execution),
        Request::RemoveBroker(it) => Some(&it.execution),
        Request::FixOfflineReplicas(it) => Some(&it.execution),
        _ => None,
    }
}

fn pace(request: &Request) -> request::Pace {
    match request {
        Request::DemoteBroker(it) => it.pace.clone(),
        _ => execution(request).map(|execution| execution.pace.clone()).unwrap_or_default(),
    }
}

/// Bytes per second; 0 asks for none, since nothing would ever arrive.
fn throttle(request: &Request, settings: &settings::Executor) -> Option<u64> {
    pace(request).replication_throttle.or(settings.throttle).filter(|rate| *rate > 0)
}

/// The request's limits, or the configured ones. The original takes any number from a request; one
/// that is beyond what the cluster may ever do at once is cut to that.
fn limits(request: &Request, settings: &settings::Executor) -> Limits {
    let usual = &settings.limits;
    let or = |asked: Option<u32>, usual: usize| {
        asked
            .map_or(usual, |asked| usize::try_from(asked).map_or(settings.ceiling, |asked| asked.min(settings.ceiling)))
    };
    let (asked, execution) = (pace(request), execution(request));
    let of_disks = match request {
        Request::Rebalance(it) => it.concurrent_intra_broker_partition_movements,
        _ => None,
    };
    let spared = match request {
        Request::AddBroker(it) if !it.throttle_added_broker => it.brokerid.clone(),
        Request::RemoveBroker(it) if !it.throttle_removed_broker => it.brokerid.clone(),
        _ => BTreeSet::new(),
    };
    Limits {
        per_broker: or(execution.and_then(|it| it.concurrent_partition_movements_per_broker), usual.per_broker),
        in_cluster: or(execution.and_then(|it| it.max_partition_movements_in_cluster), usual.in_cluster),
        dirs_per_broker: or(of_disks, usual.dirs_per_broker),
        leaders_in_cluster: or(asked.concurrent_leader_movements, usual.leaders_in_cluster),
        leaders_per_broker: or(asked.broker_concurrent_leader_movements, usual.leaders_per_broker),
        spared: spared.into_iter().map(BrokerId).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_what_is_down_repairs() {
        let baseline = Baseline { up: [0, 1].map(BrokerId).into(), short: BTreeSet::new() };
        let remove = |ids: &[i32]| {
            let brokerid = ids.iter().copied().collect();
            Request::RemoveBroker(request::RemoveBroker { brokerid, ..request::RemoveBroker::default() })
        };
        assert!(repairs(&remove(&[3]), &baseline));
        assert!(repairs(&remove(&[1, 3]), &baseline));
        assert!(!repairs(&remove(&[1]), &baseline));
        assert!(repairs(&Request::FixOfflineReplicas(request::FixOfflineReplicas::default()), &baseline));
        assert!(!repairs(&Request::Rebalance(request::Rebalance::default()), &baseline));
    }
}
