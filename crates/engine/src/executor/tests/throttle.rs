//! Throttles that are refused, or that cannot be lifted.

use super::*;

fn throttled() -> Play {
    Play::new(&[&[1, 0], &[0, 1]], &[(0, &[1, 2]), (1, &[3, 1])]).with(|order| {
        order.throttle = Some(5 * MB);
        order.repairs = true;
    })
}

#[test]
fn nothing_moves_without_the_throttle_that_was_asked_for() {
    let mut play = throttled();
    play.refuses_throttles = true;
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!(play.execution.refusal(), Some("no"));
    assert!(play.ends().iter().all(|stage| *stage == Stage::Ended(End::Aborted(Why::Refused))), "{:?}", play.ends());
    assert_eq!(play.begun, BTreeMap::new());
    play.assert_at_rest();
}

#[test]
fn a_broker_that_is_down_at_the_end_is_rid_of_its_rate_when_it_returns() {
    let mut play = throttled();
    play.run_for(2_000);
    play.execution.stop();
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    for _ in 0..10 {
        assert_eq!(play.step(None).ending, None);
    }
    play.cluster.suffer(&Fault::Return(evenkeel_sim::BrokerId(0)));
    assert_eq!(play.run(), Ending::Stopped);
    play.assert_at_rest();
}

#[test]
fn a_broker_that_does_not_return_is_not_waited_for_for_ever() {
    let mut play = throttled();
    play.run_for(2_000);
    play.execution.stop();
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    let mut told = Vec::new();
    // Somebody who could not put the end on record asks again, and must hear all of it again.
    for _ in 0..200 {
        let step = play.step(None);
        assert_eq!(step.left.is_some(), step.ending.is_some());
        told.extend(step.left);
        play.cluster.tick(250);
    }
    assert!(told.len() > 2, "it is told what is left");
    for left in told {
        assert_eq!((left.brokers, left.topics), ([BrokerId(0)].into(), BTreeMap::new()));
    }
}

#[test]
fn who_is_down_at_the_beginning_is_held_back_when_it_returns() {
    let one = evenkeel_sim::BrokerId(1);
    let mut play = Play::new(&[&[0, 1]], &[(0, &[0, 2])]).with(|order| {
        order.throttle = Some(MB);
        order.repairs = true;
    });
    let rate = |play: &Play| {
        let settings = play.cluster.describe_configs(one, &Resource::Broker(one)).unwrap();
        settings.into_iter().find(|it| it.name == LEADER_RATE).and_then(|it| it.value)
    };
    play.cluster.suffer(&Fault::Crash(one));
    play.cluster.tick(5_000);
    play.run_for(3_000);
    assert_eq!((play.begun.len(), rate(&play)), (1, None));
    play.cluster.suffer(&Fault::Return(one));
    play.run_for(5_000);
    assert_eq!((play.execution.phase(), rate(&play)), (Some(Kind::Replicas), Some(MB.to_string())));
    // Also if the process dies meanwhile.
    play.execution = play.resumed();
    assert_eq!(play.run(), Ending::Completed);
    play.assert_at_rest();
}

#[test]
fn who_goes_down_before_its_rate_is_set_is_held_back_when_it_returns() {
    let one = evenkeel_sim::BrokerId(1);
    let rate = |play: &Play| {
        let settings = play.cluster.describe_configs(one, &Resource::Broker(one)).unwrap();
        settings.into_iter().find(|it| it.name == LEADER_RATE).and_then(|it| it.value)
    };
    for dies in [false, true] {
        let mut play = Play::new(&[&[0, 1]], &[(0, &[0, 2])]).with(|order| {
            order.throttle = Some(MB);
            order.repairs = true;
        });
        // It says that it has none.
        play.step(None);
        play.cluster.suffer(&Fault::Crash(one));
        play.cluster.tick(5_000);
        play.run_for(3_000);
        assert_eq!((play.begun.len(), play.execution.throttling(), rate(&play)), (1, Throttling::On, None));
        if dies {
            play.execution = play.resumed();
        }
        play.cluster.suffer(&Fault::Return(one));
        play.run_for(5_000);
        assert_eq!((play.execution.phase(), rate(&play)), (Some(Kind::Replicas), Some(MB.to_string())), "{dies}");
        assert_eq!(play.run(), Ending::Completed);
        play.assert_at_rest();
    }
}

#[test]
fn who_is_down_all_the_while_keeps_what_it_has() {
    let one = evenkeel_sim::BrokerId(1);
    let mut play = Play::new(&[&[0, 1]], &[(0, &[0, 2])]).with(|order| {
        order.throttle = Some(5 * MB);
        order.repairs = true;
    });
    let theirs = Alteration { name: LEADER_RATE.to_owned(), operation: Operation::Set, value: Some("7".to_owned()) };
    play.cluster.incremental_alter_configs(&Resource::Broker(one), &[theirs], false).unwrap();
    play.cluster.suffer(&Fault::Crash(one));
    play.cluster.tick(5_000);
    assert_eq!(play.run(), Ending::Completed);
    let settings = play.cluster.describe_configs(one, &Resource::Broker(one)).unwrap();
    assert!(settings.iter().any(|it| it.name == LEADER_RATE && it.value.as_deref() == Some("7")), "{settings:?}");
}

#[test]
fn as_long_as_there_is_something_else_to_do_no_throttle_is_given_up() {
    // Broker 1 is down when the copying is over, and holds up the lead of partition 1 for ten minutes.
    let mut play = Play::new(&[&[0, 1], &[0, 3]], &[(0, &[0, 2]), (1, &[3, 0])]).with(|order| {
        order.throttle = Some(5 * MB);
    });
    play.run_for(2_000);
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(1)));
    play.run_for(600_000);
    assert_eq!(play.replicas(0), [0, 2]);
    assert_eq!((play.execution.phase(), play.leader(1)), (Some(Kind::Leader), Some(0)));
    play.cluster.suffer(&Fault::Return(evenkeel_sim::BrokerId(1)));
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!(play.leader(1), Some(3));
    play.assert_at_rest();
}

#[test]
fn only_what_is_being_copied_is_held_back() {
    let mut play =
        Play::new(&[&[0, 1][..]; 8], &[0, 1, 2, 3, 4, 5, 6, 7].map(|number| (number, &[0, 2][..]))).with(|order| {
            order.throttle = Some(20 * MB);
            order.limits = Limits { per_broker: 2, ..Limits::default() };
        });
    let mut most = 0;
    for _ in 0..600 {
        let over = play.step(None).ending.is_some();
        let moving: BTreeSet<i32> =
            play.cluster.list_reassignments(None).iter().map(|it| it.partition.partition).collect();
        for list in List::BOTH {
            let text = play.listed("t", list).unwrap_or_default();
            let entries = text.split(',').filter(|entry| !entry.is_empty());
            let held: BTreeSet<i32> = entries.map(|it| it.split_once(':').unwrap().0.parse().unwrap()).collect();
            assert!(held.is_superset(&moving), "{moving:?} move, and only {held:?} are held back");
            most = most.max(held.len());
        }
        if over {
            break;
        }
        play.cluster.tick(250);
    }
    assert_eq!(most, 2);
    assert!((0..8).all(|number| play.replicas(number) == [0, 2]));
    play.assert_at_rest();
}

#[test]
fn what_does_not_move_uses_up_no_throttle() {
    // Each of eight partitions is written to at 1 MB/s. What in-sync followers fetch of all of them would be more than
    // the brokers may replicate of what is held back.
    let brokers = (0..4).map(|id| BrokerSpec::new(id).with_dirs(["/d0", "/d1"]));
    let mut cluster = evenkeel_sim::Cluster::new(evenkeel_sim::Options::default(), brokers);
    let lists: [&[i32]; 8] = [&[0, 1]; 8];
    let busy = NewTopic::manual("t", &lists).loaded(evenkeel_sim::traffic::Load::steady(8e6), 20_000);
    cluster.create_topic(&busy, false).unwrap();
    cluster.tick(1_000);
    let ids = |ids: [i32; 2]| ids.map(BrokerId).to_vec();
    let mv = |number: i32| Move {
        partition: TopicPartition::new("t", number),
        old: ids([0, 1]),
        new: ids([0, 2]),
        old_leader: BrokerId(0),
        dirs: Vec::new(),
        bytes: 20 * MB,
    };
    let limits = Limits { per_broker: 2, ..Limits::default() };
    let mut play = Play::of(cluster, Order { throttle: Some(6 * MB), limits, ..order((0..8).map(mv)) });
    assert_eq!(play.run(), Ending::Completed);
    play.assert_at_rest();
}

#[test]
fn what_a_broker_follows_as_ever_uses_up_nothing_of_what_it_may_receive() {
    // Partition 0 is written to at 3 MB/s and leaves broker 1, which gets partition 1 at the same time.
    let brokers = (0..4).map(|id| BrokerSpec::new(id).with_dirs(["/d0", "/d1"]));
    let mut cluster = evenkeel_sim::Cluster::new(evenkeel_sim::Options::default(), brokers);
    let busy = NewTopic::manual("busy", &[&[0, 1]]).loaded(evenkeel_sim::traffic::Load::steady(3e6), 1_000);
    cluster.create_topic(&busy, false).unwrap();
    cluster.create_topic(&NewTopic::manual("t", &[&[3]]), false).unwrap();
    cluster.fill(&evenkeel_sim::TopicPartition::new("t", 0), 40 * MB);
    cluster.tick(1_000);
    let mv = |topic: &str, old: &[i32], new: &[i32], bytes: u64| Move {
        partition: TopicPartition::new(topic, 0),
        old: old.iter().copied().map(BrokerId).collect(),
        new: new.iter().copied().map(BrokerId).collect(),
        old_leader: BrokerId(old[0]),
        dirs: Vec::new(),
        bytes,
    };
    let moves = [mv("busy", &[0, 1], &[0, 2], 3 * MB), mv("t", &[3], &[1], 40 * MB)];
    let mut play = Play::of(cluster, Order { throttle: Some(4 * MB), ..order(moves) });
    let began = play.cluster.now();
    while play.replicas(0) != [1] {
        play.run_for(250);
    }
    // Ten seconds of copying, and a moment to begin and to end.
    let took = play.cluster.now() - began;
    assert!(took < 15_000, "{took} ms");
}
