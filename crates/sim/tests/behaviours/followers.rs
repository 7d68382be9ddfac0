//! Followers that cannot keep up, and the other faults that nothing else here is about.

use crate::*;
use evenkeel_sim::cluster::Fault;
use evenkeel_sim::traffic::Load;

/// 20 MB/s into one partition, on links of 125 MB/s and disks of 200 MB/s.
fn busy(replicas: &[i32]) -> Cluster {
    let mut cluster = cluster(4);
    create(&mut cluster, &NewTopic::manual("t", &[replicas]).loaded(Load::steady(20e6), 0));
    cluster.tick(10_000);
    cluster
}

fn dir_of(cluster: &Cluster, broker: i32) -> usize {
    usize::from(sizes(cluster, broker)[0].0 == "/d1")
}

/// Seconds until the ISR has so many members.
fn until_isr(cluster: &mut Cluster, members: usize) -> i64 {
    let start = cluster.now();
    while now(cluster).isr.len() != members && cluster.now() - start < 600_000 {
        cluster.tick(100);
    }
    (cluster.now() - start) / 1_000
}

#[test]
fn a_follower_that_cannot_keep_up_leaves_the_isr_after_its_time_and_returns_when_it_has_caught_up() {
    type Slow = fn(&Cluster, f64) -> Fault;
    let slow: [(&str, Slow); 3] = [
        ("its link", |_, pace| Fault::SlowLink(BrokerId(1), pace)),
        ("its disk", |cluster, pace| Fault::SlowDisk(BrokerId(1), dir_of(cluster, 1), pace)),
        ("its leader's link", |_, pace| Fault::SlowLink(BrokerId(0), pace)),
    ];
    for (what, fault) in slow {
        let mut cluster = busy(&[0, 1]);
        let fault_now = fault(&cluster, 0.02);
        cluster.suffer(&fault_now);
        let out = until_isr(&mut cluster, 1);
        assert!((30..=45).contains(&out), "{what}: {out} s");
        assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(0)), ids(&[0])), "{what}");
        let behind = sizes(&cluster, 1)[0].1;
        assert!(behind < cluster.partition_size("t", 0), "{what}");
        let mended = fault(&cluster, 1.0);
        cluster.suffer(&mended);
        assert!(until_isr(&mut cluster, 2) < 60, "{what}");
    }
}

#[test]
fn a_follower_that_is_slow_enough_to_lag_and_fast_enough_to_follow_stays() {
    let mut cluster = busy(&[0, 1]);
    cluster.suffer(&Fault::SlowLink(BrokerId(1), 0.5));
    cluster.suffer(&Fault::SlowDisk(BrokerId(1), dir_of(&cluster, 1), 0.5));
    cluster.tick(120_000);
    assert_eq!(now(&cluster).isr, ids(&[0, 1]));
    assert_eq!(sizes(&cluster, 1)[0].1, cluster.partition_size("t", 0));
}

#[test]
fn a_slow_follower_holds_back_the_high_watermark_while_it_is_in_the_isr() {
    let mut cluster = busy(&[0, 1]);
    cluster.suffer(&Fault::SlowLink(BrokerId(1), 0.02));
    cluster.tick(5_000);
    let held = cluster.high_watermark(&t0()).expect("a partition");
    let end = 15 * 20_000;
    assert!(held > 200_000 && held < end - 50_000, "{held}");
    until_isr(&mut cluster, 1);
    assert!(cluster.high_watermark(&t0()).expect("a partition") >= 45 * 20_000, "nobody holds it back any more");
}

#[test]
fn only_those_that_are_too_large_for_a_slow_link_stay_behind() {
    let mut cluster = busy(&[0, 1]);
    create(&mut cluster, &NewTopic::manual("small", &[&[0, 1]]).loaded(Load::steady(1e4), 0));
    cluster.suffer(&Fault::SlowLink(BrokerId(1), 0.02));
    cluster.tick(60_000);
    assert_eq!(now(&cluster).isr, ids(&[0]));
    assert_eq!(cluster.registration("small", 0).map(|it| it.isr.len()), Some(2));
}

#[test]
fn a_link_that_carries_nothing_stops_followers_without_any_load() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.suffer(&Fault::SlowLink(BrokerId(1), 0.0));
    cluster.fill(&t0(), 1_000_000);
    assert!((20..=45).contains(&until_isr(&mut cluster, 1)));
}

#[test]
fn a_full_disk_fails_its_directory_and_a_leader_there_is_replaced() {
    let mut cluster = with_partition(3, &[0, 1]);
    let fault = Fault::FullDisk(BrokerId(0), dir_of(&cluster, 0));
    cluster.suffer(&fault);
    assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(1)), ids(&[1])));
    assert_eq!(now(&cluster).leader_epoch, 1);
    cluster.suffer(&Fault::MendedDir(BrokerId(0), 0));
    cluster.suffer(&Fault::MendedDir(BrokerId(0), 1));
    cluster.tick(30_000);
    assert_eq!(now(&cluster).isr, ids(&[0, 1]), "after a restart it is what it was");
}

#[test]
fn a_broker_without_a_directory_stops_and_stays_down_until_one_is_mended() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.suffer(&Fault::FailedDir(BrokerId(1), 0));
    cluster.suffer(&Fault::FailedDir(BrokerId(1), 1));
    assert!(cluster.is_down(BrokerId(1)));
    cluster.suffer(&Fault::Return(BrokerId(1)));
    assert!(cluster.is_down(BrokerId(1)));
    cluster.suffer(&Fault::MendedDir(BrokerId(1), 0));
    // It ended without a word, so its old session has to be over first.
    cluster.tick(10_000);
    assert!(!cluster.is_down(BrokerId(1)));
}

#[test]
fn a_slow_disk_slows_copies_to_it() {
    let took = |pace: f64| {
        let mut cluster = with_partition(4, &[0, 1]);
        cluster.suffer(&Fault::SlowDisk(BrokerId(2), 0, pace));
        cluster.suffer(&Fault::SlowDisk(BrokerId(2), 1, pace));
        reassign(&mut cluster, &[0, 2]).expect("accepted");
        let start = cluster.now();
        while moving(&cluster).is_some() {
            cluster.tick(100);
        }
        cluster.now() - start
    };
    let (whole, tenth) = (took(1.0), took(0.05));
    assert!(tenth > 8 * whole, "{whole} ms, {tenth} ms");
}

#[test]
fn somebody_elses_reassignment_is_listed_like_any_other_and_can_be_cancelled() {
    let mut cluster = with_partition(4, &[0, 1]);
    let line = |target: &[i32]| Reassignment { partition: t0(), target: Some(ids(target)) };
    cluster.suffer(&Fault::ForeignReassignment(line(&[2, 3])));
    assert_eq!(moving(&cluster).map(|it| it.adding), Some(ids(&[2, 3])));
    cancel(&mut cluster).expect("cancelled");
    let before = now(&cluster).clone();
    cluster.suffer(&Fault::ForeignReassignment(line(&[99])));
    assert_eq!(*now(&cluster), before, "a bad one is refused and changes nothing");
}

#[test]
fn a_topic_created_in_the_middle_of_a_move_disturbs_nothing() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    cluster.tick(200);
    cluster.suffer(&Fault::TopicCreated(Box::new(NewTopic::new("new", 8, 2))));
    assert!(moving(&cluster).is_some());
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).replicas, ids(&[2, 3]));
    assert_eq!(cluster.describe_topics(BrokerId(0)).len(), 2);
}

#[test]
fn a_lost_rack_returns_broker_by_broker() {
    let mut cluster = busy(&[0, 1, 2]);
    cluster.suffer(&Fault::RackLost("a".to_owned()));
    cluster.tick(10_000);
    assert_eq!(now(&cluster).isr, ids(&[1, 2]));
    assert!(cluster.is_down(BrokerId(0)) && cluster.is_down(BrokerId(3)), "both brokers of the rack");
    cluster.suffer(&Fault::Return(BrokerId(0)));
    cluster.tick(30_000);
    assert_eq!(now(&cluster).isr, ids(&[0, 1, 2]));
    assert!(cluster.is_down(BrokerId(3)));
}

#[test]
fn when_all_were_cut_off_and_are_back_everybody_is_in_sync_again() {
    let mut cluster = cluster(4);
    let lists: [&[i32]; 5] = [&[0, 1, 2], &[1, 2, 3], &[3, 2, 1], &[2, 0, 3], &[0, 3, 1]];
    create(&mut cluster, &NewTopic::manual("t", &lists));
    cluster.tick(1_000);
    let everybody = || (0..4).map(BrokerId);
    everybody().for_each(|id| cluster.suffer(&Fault::CutLink(id)));
    cluster.tick(60_000);
    everybody().for_each(|id| cluster.suffer(&Fault::MendedLink(id)));
    cluster.tick(60_000);
    for (number, list) in (0..).zip(lists) {
        let record = cluster.registration("t", number).expect("a partition");
        assert!(record.leader.is_some(), "t-{number}");
        assert_eq!(record.isr.len(), list.len(), "t-{number}: {record:?}");
    }
}
