use crate::*;
use evenkeel_sim::cluster::Fault;

fn shown(cluster: &Cluster, fenced: bool) -> Vec<i32> {
    cluster.describe_brokers(BrokerId(0), fenced).iter().map(|broker| broker.id.0).collect()
}

#[test]
fn a_clean_stop_fences_at_once_and_a_kill_after_the_session() {
    let mut cluster = with_partition(4, &[3, 1, 2]);
    cluster.stop_broker(BrokerId(3));
    assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(1)), ids(&[1, 2])));
    cluster.crash_broker(BrokerId(1));
    cluster.tick(8_900);
    assert_eq!(now(&cluster).leader, Some(BrokerId(1)));
    cluster.tick(200);
    assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(2)), ids(&[2])));
    cluster.tick(1_000);
    assert_eq!((shown(&cluster, false), shown(&cluster, true)), (vec![0, 2], vec![0, 1, 2, 3]));
}

#[test]
fn a_broker_that_returns_catches_up_and_is_in_the_isr_again() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.suffer(&Fault::Crash(BrokerId(0)));
    cluster.tick(10_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(1)));
    cluster.suffer(&Fault::Return(BrokerId(0)));
    cluster.tick(10_000);
    assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(1)), ids(&[0, 1])));
}

#[test]
fn a_broker_back_before_its_session_ended_loses_nothing() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.suffer(&Fault::CutLink(BrokerId(0)));
    cluster.tick(5_000);
    cluster.suffer(&Fault::MendedLink(BrokerId(0)));
    cluster.tick(20_000);
    assert_eq!((now(&cluster).leader, now(&cluster).leader_epoch, now(&cluster).isr.len()), (Some(BrokerId(0)), 0, 2));
}

#[test]
fn a_follower_back_before_its_session_ended_follows_again() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.suffer(&Fault::CutLink(BrokerId(1)));
    cluster.fill(&t0(), 1_000);
    cluster.tick(5_000);
    cluster.suffer(&Fault::MendedLink(BrokerId(1)));
    cluster.tick(5_000);
    assert_eq!(sizes(&cluster, 1)[0].1, 100_001_000);
}

#[test]
fn unregistering_has_no_safety_check() {
    let mut cluster = with_partition(4, &[0, 1]);
    assert_eq!(cluster.unregister_broker(BrokerId(3)), Ok(()), "alive, and holding nothing");
    cluster.crash_broker(BrokerId(1));
    cluster.tick(10_000);
    assert_eq!(cluster.unregister_broker(BrokerId(1)), Ok(()), "dead, and holding a replica");
    cluster.tick(1_000);
    let topic = cluster.describe_topic(BrokerId(0), "t").expect("the topic");
    assert_eq!(topic.partitions[0].registration.replicas, ids(&[0, 1]));
    assert_eq!(topic.partitions[0].offline, ids(&[1]));
    assert_eq!(shown(&cluster, true), [0, 2]);
    let refusal = cluster.unregister_broker(BrokerId(1)).expect_err("not there any more");
    assert_eq!((refusal.code.number(), &*refusal.message), (102, "Broker ID 1 is not currently registered"));
    cluster.start_broker(BrokerId(1));
    cluster.tick(5_000);
    assert_eq!(shown(&cluster, false), [0, 1, 2], "a restart registers it again");
    assert_eq!(now(&cluster).isr, ids(&[0, 1]));
}

#[test]
fn a_lost_rack_takes_its_brokers_and_no_data() {
    let mut cluster = cluster(6);
    create(&mut cluster, &NewTopic::new("t", 12, 3));
    cluster.suffer(&Fault::RackLost("b".to_owned()));
    cluster.tick(10_000);
    for n in 0..12 {
        let partition = cluster.registration("t", n).expect("a partition");
        assert!(partition.leader.is_some_and(|leader| leader.0 % 3 != 1), "{partition:?}");
        assert_eq!(partition.isr.len(), 2);
    }
}

#[test]
fn the_shown_controller_is_always_a_live_broker() {
    let mut cluster = cluster(3);
    for _ in 0..2 {
        let controller = cluster.shown_controller().expect("some broker");
        assert!(cluster.is_reachable(controller));
        cluster.suffer(&Fault::ControllerChange);
        let next = cluster.shown_controller().expect("some broker");
        assert!(cluster.is_reachable(next));
        cluster.crash_broker(next);
        assert_ne!(cluster.shown_controller(), Some(next));
    }
}

#[test]
fn a_change_of_controller_names_another_broker_while_there_is_one() {
    let mut cluster = cluster(4);
    assert_eq!(cluster.unregister_broker(BrokerId(3)), Ok(()));
    for round in 0..12 {
        let former = cluster.shown_controller();
        cluster.suffer(&Fault::ControllerChange);
        assert_ne!(cluster.shown_controller(), former, "round {round}");
        assert_ne!(cluster.shown_controller(), Some(BrokerId(3)));
    }
    cluster.crash_broker(BrokerId(0));
    cluster.crash_broker(BrokerId(1));
    cluster.suffer(&Fault::ControllerChange);
    assert_eq!(cluster.shown_controller(), Some(BrokerId(2)), "nobody else is left");
}

#[test]
fn a_session_is_as_long_as_the_last_silence() {
    let mut cluster = with_partition(3, &[0, 1]);
    for silence in [5_000, 3_900] {
        cluster.suffer(&Fault::CutLink(BrokerId(0)));
        cluster.tick(silence);
        cluster.suffer(&Fault::MendedLink(BrokerId(0)));
    }
    cluster.suffer(&Fault::CutLink(BrokerId(0)));
    cluster.tick(8_900);
    assert_eq!(now(&cluster).leader, Some(BrokerId(0)), "heard of 8.9 s ago, and missed twice before");
    cluster.crash_broker(BrokerId(0));
    cluster.tick(200);
    assert_eq!(now(&cluster).leader, Some(BrokerId(1)), "a process that ends behind a cut link was silent already");
}

#[test]
fn a_killed_broker_that_returns_at_once_waits_for_its_old_session_to_end() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.crash_broker(BrokerId(0));
    cluster.tick(500);
    cluster.start_broker(BrokerId(0));
    cluster.start_broker(BrokerId(0));
    cluster.tick(8_000);
    assert!(!cluster.is_reachable(BrokerId(0)), "the controller takes it for a duplicate");
    assert_eq!((now(&cluster).leader, now(&cluster).leader_epoch), (Some(BrokerId(0)), 0), "on paper it leads");
    cluster.tick(10_000);
    assert!(cluster.is_reachable(BrokerId(0)));
    let seen = now(&cluster);
    assert_eq!((seen.leader, seen.leader_epoch, seen.isr.clone()), (Some(BrokerId(1)), 1, ids(&[0, 1])));
}

#[test]
fn a_broker_killed_again_before_it_registered_stays_down() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.crash_broker(BrokerId(0));
    cluster.start_broker(BrokerId(0));
    cluster.crash_broker(BrokerId(0));
    cluster.tick(20_000);
    assert!(cluster.is_down(BrokerId(0)));
}

#[test]
fn a_running_broker_that_was_struck_off_comes_back_only_by_a_start_and_as_if_it_had_crashed() {
    let mut cluster = with_partition(3, &[0, 1]);
    create(&mut cluster, &NewTopic::manual("alone", &[&[1]]));
    cluster.unregister_broker(BrokerId(1)).expect("no check at all");
    cluster.tick(60_000);
    assert!(cluster.is_reachable(BrokerId(1)), "its process lives on");
    assert_eq!((now(&cluster).leader, now(&cluster).isr.clone()), (Some(BrokerId(0)), ids(&[0])));
    assert_eq!(cluster.registration("alone", 0).map(|it| it.leader), Some(None));
    assert_eq!(code(reassign(&mut cluster, &[0, 1, 2])), 39, "unknown as a target");
    // Even a clean stop is no proof to a controller that has forgotten it.
    cluster.stop_broker(BrokerId(1));
    cluster.start_broker(BrokerId(1));
    assert_eq!(cluster.registration("alone", 0).map(|it| it.eligible.clone()), Some(Vec::new()));
    cluster.tick(10_000);
    assert_eq!(now(&cluster).isr, ids(&[0, 1]));
}

#[test]
fn a_broker_that_stops_behind_a_cut_link_is_missed_when_its_session_ends() {
    let mut cluster = with_partition(3, &[0, 1]);
    cluster.isolate_broker(BrokerId(0));
    cluster.tick(1_000);
    cluster.stop_broker(BrokerId(0));
    cluster.tick(1_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(0)), "nobody has heard of it");
    cluster.tick(10_000);
    assert_eq!((now(&cluster).leader, &now(&cluster).isr), (Some(BrokerId(1)), &ids(&[1])));
}
