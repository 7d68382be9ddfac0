//! Where a plan leaves the disk of a replica to Kafka nobody knows it, and no disk counts as empty that may hold it.

use evenkeel_balancer::cluster::{BrokerId, Cluster};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::planner::{Refused, plan};
use evenkeel_balancer::rules::BadRequest;
use evenkeel_balancer::settings::Settings;

use crate::check::{carried_out, looked_over};
use crate::picture::Picture;

const TWO_DISKS: &str = "rack a: b0[t0* t1* t2* t3*]
                         rack b: b1[]
                         disks b0: 100000 100000
                         disks b1: 100000 100000
                         on t0@b0: 0
                         on t1@b0: 0
                         on t2@b0: 1
                         on t3@b0: 1
                         load *: 1 10 10 1000";

fn rebalanced(text: &str, goals: &[Goal]) -> Cluster {
    let cluster = Picture::parse(text).build();
    let outcome = looked_over(&cluster, &Request::rebalance(goals), &Settings::default()).unwrap();
    assert!(!outcome.plan.changes.is_empty());
    carried_out(&cluster, &outcome.plan)
}

/// The disks of what is on b1.
fn on_b1(cluster: &Cluster) -> Vec<Option<usize>> {
    let replicas = cluster.partitions().flat_map(|partition| partition.replicas());
    replicas.filter(|replica| replica.broker == BrokerId(1)).map(|replica| replica.disk).collect()
}

fn remove(id: i32, disk: &str) -> Request {
    Request { operation: Operation::RemoveDisks([(BrokerId(id), disk.to_owned())].into()), ..Request::default() }
}

#[test]
fn a_disk_is_not_emptied_while_nobody_knows_what_is_on_it() {
    let after = rebalanced(TWO_DISKS, &[Goal::ReplicaDistribution]);
    let moved = on_b1(&after);
    assert!(!moved.is_empty() && moved.iter().all(Option::is_none), "{moved:?}");
    let refused = plan(&after, &remove(1, "d0"), &Settings::default()).unwrap_err();
    assert_eq!(refused, Refused::BadRequest(BadRequest::UnknownLogDirs(BrokerId(1), moved.len())));
    // Of the other broker all is known.
    looked_over(&after, &remove(0, "d0"), &Settings::default()).unwrap();
    // Balancing them goes on without, and says so.
    let request = Request { operation: Operation::RebalanceDisks, ..Request::default() };
    let outcome = looked_over(&after, &request, &Settings::default()).unwrap();
    assert_eq!(outcome.unplaced, moved.len() as u64);
    let known = Picture::parse(TWO_DISKS).build();
    assert_eq!(looked_over(&known, &request, &Settings::default()).unwrap().unplaced, 0);
}

/// The same where the cluster itself says that a disk is to be taken out.
#[test]
fn a_disk_that_is_to_be_taken_out_may_hold_what_nobody_knows() {
    let text = TWO_DISKS.replace("on t3@b0: 1\n", "").replace("disks b0: 100000 100000", "disks b0: 100000- 100000");
    let cluster = Picture::parse(&text).build();
    let request = Request { operation: Operation::RebalanceDisks, ..Request::default() };
    let refused = plan(&cluster, &request, &Settings::default()).unwrap_err();
    assert_eq!(refused, Refused::BadRequest(BadRequest::UnknownLogDirs(BrokerId(0), 1)));
}

#[test]
fn where_the_plan_names_a_disk_or_there_is_but_one_it_is_known() {
    let named = rebalanced(TWO_DISKS, &[Goal::ReplicaDistribution, Goal::IntraBrokerDiskCapacity]);
    assert!(on_b1(&named).iter().all(Option::is_some));
    looked_over(&named, &remove(1, "d0"), &Settings::default()).unwrap();
    let single = TWO_DISKS.replace("disks b1: 100000 100000", "disks b1: 100000! 100000");
    let single = rebalanced(&single, &[Goal::ReplicaDistribution]);
    assert!(!on_b1(&single).is_empty() && on_b1(&single).iter().all(|disk| *disk == Some(1)));
}
