use crate::*;
use evenkeel_sim::cluster::ElectionKind::{Preferred, Unclean};
use evenkeel_sim::cluster::Fault;

fn elect(cluster: &mut Cluster, tp: TopicPartition) -> Result<(), Refusal> {
    cluster.elect_leaders(Preferred, Some(&[tp])).remove(0).1
}

#[test]
fn a_preferred_leader_is_elected_when_it_does_not_lead() {
    let mut cluster = with_partition(3, &[0, 1]);
    reassign(&mut cluster, &[1, 0]).expect("accepted");
    assert_eq!(elect(&mut cluster, t0()), Ok(()));
    assert_eq!((now(&cluster).leader, now(&cluster).leader_epoch), (Some(BrokerId(1)), 1));
    assert_eq!(code(elect(&mut cluster, t0())), 84);
}

#[test]
fn a_preferred_leader_that_is_dead_or_being_copied_is_not_available() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 1]).expect("accepted");
    assert_eq!(code(elect(&mut cluster, t0())), 80, "the first of the target is not in sync yet");
    assert!(settle(&mut cluster));
    cluster.crash_broker(BrokerId(2));
    cluster.tick(10_000);
    assert_eq!(code(elect(&mut cluster, t0())), 80);
}

#[test]
fn what_does_not_exist_is_named() {
    let mut cluster = with_partition(3, &[0, 1]);
    let refusal = elect(&mut cluster, TopicPartition::new("nope", 0)).expect_err("no topic");
    assert_eq!((refusal.code.number(), &*refusal.message), (3, "No such topic as nope"));
    let refusal = elect(&mut cluster, TopicPartition::new("t", 7)).expect_err("no partition");
    assert_eq!((refusal.code.number(), &*refusal.message), (3, "No such partition as t-7"));
}

#[test]
fn asked_for_all_those_that_need_nothing_are_left_out() {
    let mut cluster = with_partition(3, &[0, 1]);
    create(&mut cluster, &NewTopic::manual("u", &[&[1, 2]]));
    assert_eq!(cluster.elect_leaders(Preferred, None), []);
    reassign(&mut cluster, &[1, 0]).expect("accepted");
    assert_eq!(cluster.elect_leaders(Preferred, None), [(t0(), Ok(()))]);
}

#[test]
fn without_a_leader_the_isr_is_empty_and_the_last_member_returns_as_leader() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.crash_broker(BrokerId(1));
    cluster.tick(10_000);
    cluster.stop_broker(BrokerId(0));
    assert_eq!((now(&cluster).leader, &now(&cluster).isr), (None, &vec![]));
    cluster.start_broker(BrokerId(1));
    cluster.tick(5_000);
    assert_eq!(now(&cluster).leader, None, "it was not in sync at the end");
    cluster.start_broker(BrokerId(0));
    cluster.tick(5_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(0)));
}

#[test]
fn an_unclean_election_takes_who_is_there() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.crash_broker(BrokerId(1));
    cluster.tick(10_000);
    cluster.crash_broker(BrokerId(0));
    cluster.tick(10_000);
    let unavailable = cluster.elect_leaders(Unclean, Some(&[t0()])).remove(0).1;
    assert_eq!(code(unavailable), 83);
    cluster.start_broker(BrokerId(1));
    cluster.tick(1_000);
    assert_eq!(cluster.elect_leaders(Unclean, Some(&[t0()])).remove(0).1, Ok(()));
    assert_eq!((now(&cluster).leader, &now(&cluster).isr), (Some(BrokerId(1)), &ids(&[1])));
}

#[test]
fn a_directory_that_fails_leaves_the_partition_to_who_is_there_if_the_topic_allows_it() {
    for (allowed, leader) in [("true", Some(BrokerId(1))), ("false", None)] {
        let mut cluster = cluster(3);
        let topic = NewTopic::manual("t", &[&[0, 1]]).config("unclean.leader.election.enable", allowed);
        create(&mut cluster, &topic);
        cluster.stop_broker(BrokerId(1));
        cluster.fill(&t0(), 100_000_000);
        cluster.suffer(&Fault::SlowLink(BrokerId(1), 1e-6));
        cluster.start_broker(BrokerId(1));
        cluster.tick(5_000);
        assert_eq!((now(&cluster).leader, &now(&cluster).isr), (Some(BrokerId(0)), &ids(&[0])));
        let dirs = cluster.describe_log_dirs(BrokerId(0), None);
        let dir = dirs.iter().position(|dir| !dir.replicas.is_empty()).expect("the directory of its log");
        cluster.suffer(&Fault::FailedDir(BrokerId(0), dir));
        assert_eq!(now(&cluster).leader, leader, "unclean elections: {allowed}");
    }
}

#[test]
fn without_eligible_replicas_the_last_one_in_sync_stays_on_record() {
    let options = Options { eligible_leader_replicas: false, ..Options::default() };
    let mut cluster = Cluster::new(options, (0..3).map(broker));
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]));
    cluster.stop_broker(BrokerId(1));
    cluster.stop_broker(BrokerId(0));
    assert_eq!((now(&cluster).leader, &now(&cluster).isr), (None, &ids(&[0])));
    cluster.start_broker(BrokerId(0));
    cluster.tick(5_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(0)));
}
