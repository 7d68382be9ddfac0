use crate::configs::{alter, delete, set};
use crate::*;
use evenkeel_sim::cluster::Resource;
use evenkeel_sim::traffic::Load;

const LEADER: &str = "leader.replication.throttled.rate";
const FOLLOWER: &str = "follower.replication.throttled.rate";

fn throttle(cluster: &mut Cluster, broker: i32, key: &str, rate: u64) {
    alter(cluster, &Resource::Broker(BrokerId(broker)), &[set(key, &rate.to_string())]).expect("accepted");
}

fn throttle_topic(cluster: &mut Cluster, replicas: &str) {
    let keys = ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];
    alter(cluster, &Resource::Topic("t".to_owned()), &keys.map(|key| set(key, replicas))).expect("accepted");
}

/// Milliseconds until the move is over.
fn duration(cluster: &mut Cluster) -> i64 {
    let start = cluster.now();
    while moving(cluster).is_some() && cluster.now() - start < 600_000 {
        cluster.tick(100);
    }
    cluster.now() - start
}

#[test]
fn without_a_throttle_a_copy_runs_at_the_speed_of_the_link() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    assert_eq!(duration(&mut cluster), 900, "100 MB at 125 MB/s and the moment until it appears");
}

#[test]
fn a_throttled_move_takes_as_long_as_its_rate_says() {
    for (key, broker) in [(LEADER, 0), (FOLLOWER, 2)] {
        for replicas in ["*", "0:0,0:1,0:2"] {
            let mut cluster = with_partition(4, &[0, 1]);
            throttle(&mut cluster, broker, key, 10_000_000);
            throttle_topic(&mut cluster, replicas);
            reassign(&mut cluster, &[0, 2]).expect("accepted");
            let took = duration(&mut cluster);
            assert!((8_000..15_000).contains(&took), "{key} {replicas}: {took} ms");
        }
    }
}

#[test]
fn a_rate_without_the_replicas_list_throttles_nothing() {
    let mut cluster = with_partition(4, &[0, 1]);
    throttle(&mut cluster, 0, LEADER, 1_000);
    throttle_topic(&mut cluster, "0:1,7:0");
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    assert_eq!(duration(&mut cluster), 900);
}

#[test]
fn one_leaders_quota_is_shared_by_its_followers() {
    let mut cluster = with_partition(4, &[0, 1]);
    throttle(&mut cluster, 0, LEADER, 10_000_000);
    throttle_topic(&mut cluster, "*");
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    let took = duration(&mut cluster);
    assert!((17_000..28_000).contains(&took), "{took} ms");
}

#[test]
fn progress_comes_in_bursts_with_standstill_between() {
    let mut cluster = with_partition(4, &[0, 1]);
    throttle(&mut cluster, 0, LEADER, 2_000_000);
    throttle_topic(&mut cluster, "*");
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    cluster.tick(100);
    let (mut still, mut longest, mut last) = (0, 0, 0);
    for _ in 0..200 {
        cluster.tick(100);
        let size = sizes(&cluster, 2)[0].1;
        still = if size == last { still + 100 } else { 0 };
        longest = longest.max(still);
        last = size;
    }
    assert!((1_000..6_000).contains(&longest), "{longest} ms");
}

#[test]
fn a_lowered_rate_stands_still_because_the_past_counts() {
    let mut cluster = with_partition(4, &[0, 1]);
    throttle(&mut cluster, 0, LEADER, 20_000_000);
    throttle_topic(&mut cluster, "*");
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    cluster.tick(3_000);
    throttle(&mut cluster, 0, LEADER, 1_000_000);
    let before = sizes(&cluster, 2)[0].1;
    cluster.tick(4_000);
    assert_eq!(sizes(&cluster, 2)[0].1, before);
}

#[test]
fn a_lifted_throttle_is_lifted_at_once() {
    let mut cluster = with_partition(4, &[0, 1]);
    throttle(&mut cluster, 0, LEADER, 2_000_000);
    throttle_topic(&mut cluster, "*");
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    cluster.tick(5_000);
    alter(&mut cluster, &Resource::Broker(BrokerId(0)), &[delete(LEADER)]).expect("accepted");
    assert!(duration(&mut cluster) < 2_000);
}

#[test]
fn a_directory_quota_set_after_a_move_holds_the_next_one_for_eleven_seconds() {
    let mut cluster = with_partition(3, &[0, 1]);
    let from = sizes(&cluster, 0)[0].0.clone();
    let to = if from == "/d0" { "/d1" } else { "/d0" };
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), to).expect("accepted");
    cluster.tick(5_000);
    assert_eq!(sizes(&cluster, 0).len(), 1);
    throttle(&mut cluster, 0, "replica.alter.log.dirs.io.max.bytes.per.second", 1_000_000);
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), &from).expect("accepted");
    let future = |cluster: &Cluster| sizes(cluster, 0).iter().find(|it| it.2).map_or(0, |it| it.1);
    cluster.tick(5_000);
    assert_eq!(future(&cluster), 0);
    cluster.tick(10_000);
    assert!(future(&cluster) > 0);
}

/// A topic that takes in 5 MB/s, with a follower in sync, and 100 MB in it.
fn busy(rate: u64) -> Cluster {
    let mut cluster = with_partition(4, &[0, 1]);
    cluster.set_load("t", Load::steady(5_000_000.0));
    throttle(&mut cluster, 0, LEADER, rate);
    throttle_topic(&mut cluster, "*");
    cluster.tick(20_000);
    reassign(&mut cluster, &[0, 1, 2]).expect("accepted");
    cluster
}

#[test]
fn a_rate_below_what_followers_in_sync_fetch_leaves_nothing_for_copies() {
    let mut cluster = busy(4_000_000);
    cluster.tick(60_000);
    assert_eq!(sizes(&cluster, 2)[0].1, 0, "nothing came");
    assert_eq!(now(&cluster).isr, ids(&[0, 1]), "followers in sync are never held up");
    alter(&mut cluster, &Resource::Broker(BrokerId(0)), &[delete(LEADER)]).expect("accepted");
    assert!(settle(&mut cluster), "once it is lifted, the move ends");
}

#[test]
fn copies_get_what_followers_in_sync_leave_of_a_rate() {
    // 1,100 MB and what comes meanwhile, at 15 MB/s less the 5 that come in, but for a burst at first. At 20 MB/s it
    // would take 73 seconds.
    let mut cluster = busy(20_000_000);
    cluster.fill(&t0(), 900_000_000);
    let took = duration(&mut cluster);
    assert!((85_000..120_000).contains(&took), "{took} ms");
}
