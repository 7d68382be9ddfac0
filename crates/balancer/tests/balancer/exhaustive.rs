//! "Cannot be satisfied" is a strong claim: every placement is tried before it is believed.
//!
//! Goals about racks look at partitions one by one, and so do the rules of eligibility. So a cluster can be satisfied if
//! each of its partitions can, and all placements of one partition are few.
//!
//! Capacities look at all partitions at once. There it is a matter of packing, which nobody solves for large clusters; of
//! small ones nothing is refused that some placement would keep to.

use std::collections::BTreeMap;

use evenkeel_balancer::cluster::{BrokerId, Cluster, Load, PartitionView, ReplicaSpec, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::plan::{Change, Plan, Undone};
use evenkeel_balancer::planner::Refused;
use evenkeel_balancer::settings::Settings;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::check::{inspected, stays};
use crate::picture::{Partition, Picture};
use crate::random::{Case, any_case, cases};

/// Whether the placement keeps to the goal, by its definition. Racks that take nothing do not count among those to
/// spread over.
fn satisfies(goal: Goal, cluster: &Cluster, request: &Request, list: &[BrokerId]) -> bool {
    let rack = |id: BrokerId| cluster.broker(id).map(|broker| broker.rack);
    let mut counts: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    list.iter().for_each(|id| *counts.entry(rack(*id)).or_default() += 1);
    if goal == Goal::RackAware {
        return counts.values().all(|count| *count == 1);
    }
    let takes = |id: BrokerId| serves(cluster, request, id) && !request.excluded_for_replica_moves.contains(&id);
    let mut racks: Vec<usize> =
        cluster.brokers().iter().filter(|broker| takes(broker.id)).map(|broker| broker.rack).collect();
    racks.sort_unstable();
    racks.dedup();
    let (share, left_over) = (list.len() / racks.len(), list.len() % racks.len());
    counts.values().all(|count| *count <= share + 1)
        && counts.values().filter(|count| **count > share).count() <= left_over
}

fn serves(cluster: &Cluster, request: &Request, id: BrokerId) -> bool {
    cluster.broker(id).is_some_and(|broker| stays(broker, request))
}

/// Every list of so many brokers, the first of which leads.
fn lists(brokers: &[BrokerId], many: usize) -> Vec<Vec<BrokerId>> {
    if many == 0 {
        return vec![Vec::new()];
    }
    let shorter = lists(brokers, many - 1);
    let longer = shorter.iter().flat_map(|list| {
        let others = brokers.iter().filter(|id| !list.contains(id));
        others.map(|id| [&list[..], &[*id]].concat()).collect::<Vec<_>>()
    });
    longer.collect()
}

/// Whether some placement of the partition that nobody finds fault with satisfies the goal.
fn can_be(goal: Goal, cluster: &Cluster, request: &Request, found: PartitionView<'_>) -> bool {
    let before: Vec<ReplicaSpec> = found.replicas().collect();
    let old: Vec<BrokerId> = before.iter().map(|replica| replica.broker).collect();
    let stays = |list: &[BrokerId], replica: &ReplicaSpec| list.contains(&replica.broker);
    let is_offline = |replica: &ReplicaSpec| replica.offline || !serves(cluster, request, replica.broker);
    // Not where a copy of the partition is on its way to already.
    let awaits_one = |id: BrokerId| {
        let mut pending = cluster.pending_moves();
        pending.any(|it| it.topic == found.topic() && it.partition == found.number() && it.to == id)
    };
    let ids: Vec<BrokerId> = cluster.brokers().iter().map(|broker| broker.id).filter(|id| !awaits_one(*id)).collect();
    lists(&ids, old.len()).into_iter().any(|list| {
        if !satisfies(goal, cluster, request, &list) || before.iter().any(|it| is_offline(it) && stays(&list, it)) {
            return false;
        }
        let gone: Vec<&ReplicaSpec> = before.iter().filter(|replica| !stays(&list, replica)).collect();
        let added = list.iter().copied().filter(|id| !old.contains(id));
        let change = Change {
            topic: found.topic().to_owned(),
            partition: found.number(),
            moves: gone.iter().map(|replica| replica.broker).zip(added).collect(),
            old_leader: old[found.leader()],
            new_leader: list[0],
            old_replicas: old.clone(),
            new_replicas: list,
            disks: Vec::new(),
            megabytes: gone.iter().map(|replica| f64::from(replica.load.disk)).sum(),
            disk_megabytes: 0.0,
            reasons: Vec::new(),
        };
        let is_unmoved = change.moves.is_empty() && change.old_leader == change.new_leader;
        let plan = Plan { changes: vec![change], undone: Undone::default() };
        let name = Some((found.topic().to_owned(), found.number()));
        is_unmoved || !inspect(cluster, request, &plan).iter().any(|finding| finding.partition == name)
    })
}

/// The request by one goal about racks alone.
fn by_racks(mut case: Case, even: bool) -> Case {
    case.request.goals = vec![if even { Goal::RackAwareDistribution } else { Goal::RackAware }];
    if matches!(case.request.operation, Operation::DemoteBrokers(_)) {
        case.request.operation = Operation::Rebalance;
    }
    case
}

/// Whether the planner refused for want of a placement; then some partition must have none.
fn refuses_rightly(case: &Case) -> bool {
    let Err(Refused::Infeasible(infeasible)) = inspected(&case.picture, &case.request, &case.settings) else {
        return false;
    };
    let (cluster, goal) = (case.picture.build(), case.request.goals[0]);
    let left_alone = |topic: &str| case.request.excluded_topics.as_ref().is_some_and(|it| it.matches(topic));
    let mut included = cluster.partitions().filter(|partition| !left_alone(partition.topic()));
    let helpless = included.any(|partition| !can_be(goal, &cluster, &case.request, partition));
    // Offline replicas of topics that are left alone have to move as well.
    let stranded = infeasible.reason.contains("Cannot remove offline replicas");
    assert!(helpless || stranded, "{infeasible}, and yet every partition has a place\n{case:?}");
    true
}

proptest! {
    #![proptest_config(cases(1_024))]

    #[test]
    fn racks_that_cannot_be_kept_apart_cannot_be_by_any_placement(case in any_case(), even in any::<bool>()) {
        refuses_rightly(&by_racks(case, even));
    }
}

#[test]
fn enough_requests_are_refused() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..400).map(|turn| by_racks(any_case().new_tree(&mut runner).unwrap().current(), turn % 2 == 0));
    let refused = cases.filter(refuses_rightly).count();
    assert!(refused >= 40, "{refused} of 400 are refused");
}

/// One replica of each partition, on three brokers whose disks are not of one size.
fn packed() -> impl Strategy<Value = (Vec<u16>, Vec<(i32, u16)>)> {
    (prop::collection::vec(500..=1_000u16, 3), prop::collection::vec((0..3i32, 50..=450u16), 3..=6))
}

/// Whether some placement leaves every disk below its threshold.
fn can_be_packed(limits: &[f64], sizes: &[u16]) -> bool {
    let Some((size, rest)) = sizes.split_first() else { return true };
    (0..limits.len()).any(|at| {
        let mut left = limits.to_vec();
        left[at] -= f64::from(*size);
        left[at] > 0.0 && can_be_packed(&left, rest)
    })
}

#[test]
fn no_capacity_is_refused_that_some_placement_keeps() {
    let mut runner = TestRunner::deterministic();
    let (mut kept, mut rightly, mut wrongly) = (0, 0, Vec::new());
    for _ in 0..20_000 {
        let (capacities, partitions) = packed().new_tree(&mut runner).unwrap().current();
        let mut picture = Picture::parse("rack a: b0[] b1[] b2[]");
        for (broker, capacity) in picture.brokers.values_mut().zip(&capacities) {
            broker.capacity[Resource::Disk as usize] = f64::from(*capacity);
        }
        for (number, (broker, size)) in (0..).zip(&partitions) {
            let load = Some(Load { cpu: 1.0, nw_in: 1.0, nw_out: 1.0, disk: f32::from(*size) });
            let partition = Partition { brokers: vec![*broker], leader: *broker, load, ..Partition::default() };
            picture.partitions.insert(("t".to_owned(), number), partition);
        }
        let settings = Settings::default();
        let threshold = settings.capacity_thresholds[Resource::Disk as usize];
        let limits: Vec<f64> = capacities.iter().map(|capacity| f64::from(*capacity) * threshold).collect();
        let sizes: Vec<u16> = partitions.iter().map(|(_, size)| *size).collect();
        match inspected(&picture, &Request::rebalance(&[Goal::DiskCapacity]), &settings) {
            Ok(outcome) => kept += usize::from(!outcome.plan.changes.is_empty()),
            Err(_) if can_be_packed(&limits, &sizes) => wrongly.push(format!("{capacities:?} {partitions:?}")),
            Err(_) => rightly += 1,
        }
    }
    let told =
        format!("{kept} kept, {rightly} refused, {} wrongly: {:#?}", wrongly.len(), &wrongly[..wrongly.len().min(9)]);
    assert!(kept > 2_000 && rightly > 1_000 && wrongly.is_empty(), "{told}");
}
