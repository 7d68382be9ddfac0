//! A cluster small enough to check by hand, and the report of a plan for it.

use evenkeel_balancer::cluster::{BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, Load, ReplicaSpec};
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::planner;

use super::report::Report;
use super::request::Question;
use super::what_if::WhatIf;

/// Five brokers in three racks, broker 1 with half the capacity of the others. `placements` are the replica lists,
/// one topic with a partition each, the first replica leads.
fn place(placements: &[&[i32]]) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for (id, rack) in [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c")] {
        let size = if id == 1 { 0.5 } else { 1.0 };
        let broker = BrokerSpec {
            id: BrokerId(id),
            rack: rack.to_owned(),
            host: format!("h{id}"),
            state: BrokerState::Alive,
            capacity: [100.0, 300_000.0, 200_000.0, 300_000.0].map(|capacity| capacity * size),
            disks: Vec::new(),
        };
        builder.broker(broker).unwrap();
    }
    for (index, brokers) in placements.iter().enumerate() {
        let replica = |(position, id): (usize, &i32)| {
            let leads = position == 0;
            let load = Load {
                cpu: if leads { 8.0 } else { 1.0 },
                nw_in: 9_000.0,
                nw_out: if leads { 12_000.0 } else { 0.0 },
                disk: 20_000.0,
            };
            ReplicaSpec { broker: BrokerId(*id), disk: None, load, offline: false }
        };
        let replicas: Vec<ReplicaSpec> = brokers.iter().enumerate().map(replica).collect();
        builder.partition(&format!("T{index}"), 0, 0, &replicas).unwrap();
    }
    builder.build().unwrap()
}

/// T0 breaks the racks, and broker 0 leads everything it holds.
pub(super) fn cluster() -> Cluster {
    place(&[&[0, 1], &[0, 2], &[0, 3], &[0, 4], &[0, 2], &[0, 3], &[2, 4], &[3, 4], &[4, 1]])
}

/// What `read` says about the plan for [`cluster`].
pub(super) fn with_report<T>(read: impl FnOnce(&Report<'_>) -> T) -> T {
    report(&cluster(), "RackAwareGoal,DiskUsageDistributionGoal,LeaderReplicaDistributionGoal", read)
}

/// What `read` says about the plan for a cluster that needs none.
pub(super) fn with_report_of_a_balanced_cluster<T>(read: impl FnOnce(&Report<'_>) -> T) -> T {
    report(&place(&[&[0, 2], &[2, 4], &[4, 3], &[3, 0]]), "RackAwareGoal", read)
}

fn report<T>(cluster: &Cluster, goals: &str, read: impl FnOnce(&Report<'_>) -> T) -> T {
    let mut question = Question::default();
    question.goals = Some(goals.to_owned());
    let asked = question.parse(&WhatIf::default()).unwrap();
    let mut outcome = planner::plan(cluster, &asked.request, &asked.settings).unwrap();
    assert_eq!(inspect(cluster, &asked.request, &outcome.plan), []);
    // How often the search tried in vain says nothing about what is printed, and changes with every change to it.
    outcome.verdicts.iter_mut().flat_map(|verdict| &mut verdict.refused_by).for_each(|(_, times)| *times = 7);
    outcome.verdicts.iter_mut().flat_map(|verdict| &mut verdict.held_back_by).for_each(|(_, times)| *times = 3);
    read(&Report::of(cluster, Some("small"), &asked, &outcome))
}
