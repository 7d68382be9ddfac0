//! Trouble in the cluster: what waits, what is taken back, what goes on.

use super::*;

#[test]
fn a_target_that_dies_sends_its_move_back_and_holds_up_the_rest_until_it_returns() {
    let lists: [&[i32]; 3] = [&[1, 0], &[1, 0], &[1, 0]];
    let mut play = Play::new(&lists, &[(0, &[1, 3]), (1, &[1, 2]), (2, &[1, 2])]).with(|order| {
        order.throttle = Some(MB);
        order.limits.in_cluster = 1;
        // What is large goes first.
        order.moves[0].bytes = 100 * MB;
    });
    play.run_for(2_000);
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3)));
    play.run_for(30_000);
    assert_eq!(play.replicas(0), [1, 0], "taken back, in its old order");
    assert_eq!(play.step(None).hold, Some(Hold::BrokersDown([BrokerId(3)].into())));
    assert_eq!(play.replicas(1), [1, 0], "nothing new has begun");

    play.cluster.suffer(&Fault::Return(evenkeel_sim::BrokerId(3)));
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!((play.replicas(0), play.replicas(1), play.replicas(2)), (vec![1, 0], vec![1, 2], vec![1, 2]));
    play.assert_at_rest();
}

#[test]
fn a_broker_that_is_given_up_takes_only_its_own_moves_with_it() {
    let lists: [&[i32]; 2] = [&[1, 0], &[1, 0]];
    let mut play = Play::new(&lists, &[(0, &[1, 3]), (1, &[1, 2])]).with(|order| {
        order.limits.in_cluster = 1;
        order.gives_up_after = Some(60_000);
    });
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3)));
    play.cluster.tick(5_000);
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![1, 0], vec![1, 2]));
    assert!(play.cluster.now() > 60_000);
}

#[test]
fn a_broker_that_dies_for_good_while_it_is_filled_leaves_the_run_incomplete() {
    // All of it goes to broker 3, one after the other: what was begun is taken back, the rest is never begun.
    let mut play = Play::new(&[&[1, 0], &[1, 0]], &[(0, &[1, 3]), (1, &[1, 3])]).with(|order| {
        order.throttle = Some(MB);
        order.limits.in_cluster = 1;
        order.gives_up_after = Some(60_000);
    });
    play.run_for(2_000);
    assert_eq!(play.cluster.list_reassignments(None).len(), 1, "it is being filled");
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3)));
    assert_eq!(play.run(), Ending::Incomplete);
    let undone = [End::Dead(Why::TargetDown), End::Aborted(Why::TargetDown)];
    assert_eq!(play.ends(), undone.map(Stage::Ended));
    let counts = play.execution.progress(&play.look()).replicas;
    assert_eq!((counts.dead, counts.aborted, counts.completed, counts.finished()), (1, 1, 0, 2));
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![1, 0], vec![1, 0]));
    assert_eq!(play.cluster.list_reassignments(None), []);
}

#[test]
fn an_unregistered_broker_is_given_up_soon() {
    let mut play = Play::new(&[&[1, 0], &[1, 0]], &[(0, &[1, 3]), (1, &[1, 2])]);
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3)));
    play.cluster.tick(5_000);
    play.cluster.unregister_broker(evenkeel_sim::BrokerId(3)).unwrap();
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![1, 0], vec![1, 2]));
}

#[test]
fn what_was_down_when_the_plan_was_made_holds_nothing_up() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| {
        order.baseline.up.remove(&BrokerId(3));
    });
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3)));
    play.cluster.tick(5_000);
    assert_eq!(play.run(), Ending::Completed);
}

#[test]
fn a_broker_that_is_emptied_may_go_down_on_the_way() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| order.emptied = [BrokerId(0)].into());
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    play.cluster.tick(5_000);
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!(play.replicas(0), [1, 2]);
}

#[test]
fn a_partition_elsewhere_that_falls_short_holds_everything_up() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]);
    let mut sight = play.look();
    let elsewhere = TopicPartition::new("u", 0);
    sight.short = [elsewhere.clone()].into();
    let step = play.execution.step(&sight);
    assert_eq!((step.actions, step.hold), (vec![], Some(Hold::PartitionsShort([elsewhere.clone()].into()))));
    // It was so before, or the plan is there to repair it: no reason to wait.
    for forgive in [(|order| order.baseline.short = [TopicPartition::new("u", 0)].into()) as fn(&mut Order), |order| {
        order.repairs = true
    }] {
        let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(forgive);
        assert!(matches!(play.execution.step(&sight).actions[..], [Action::Reassign(_)]));
    }
    assert_eq!(play.run(), Ending::Completed);
}

#[test]
fn a_deleted_topic_leaves_nothing_to_do() {
    let mut play =
        Play::new(&[&[1, 0], &[0, 1]], &[(0, &[1, 2]), (1, &[3, 2])]).with(|order| order.throttle = Some(MB));
    play.run_for(2_000);
    play.cluster.suffer(&Fault::TopicDeleted("t".to_owned()));
    assert_eq!(play.run(), Ending::Completed);
    play.assert_at_rest();
}

#[test]
fn a_move_of_somebody_else_is_taken_back_first_if_allowed_and_waited_for_if_not() {
    for stops_others in [true, false] {
        let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| order.stops_others = stops_others);
        let foreign = Reassignment {
            partition: evenkeel_sim::TopicPartition::new("t", 0),
            target: Some(vec![evenkeel_sim::BrokerId(1), evenkeel_sim::BrokerId(3)]),
        };
        play.cluster.suffer(&Fault::ForeignReassignment(foreign));
        let ending = play.run();
        // Once it has come to its end, the plan no longer fits.
        let (wanted, replicas) = if stops_others { (Ending::Completed, [1, 2]) } else { (Ending::Incomplete, [1, 3]) };
        assert_eq!((ending, play.replicas(0)), (wanted, replicas.to_vec()));
        play.assert_at_rest();
    }
}

#[test]
fn somebody_who_redirects_a_move_on_its_way_is_not_fought() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| order.throttle = Some(MB));
    play.run_for(2_000);
    for target in [None, Some(vec![evenkeel_sim::BrokerId(1), evenkeel_sim::BrokerId(3)])] {
        let partition = evenkeel_sim::TopicPartition::new("t", 0);
        play.cluster.suffer(&Fault::ForeignReassignment(Reassignment { partition, target }));
    }
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!(play.ends()[0], Stage::Ended(End::Aborted(Why::Changed)));
    play.cluster.tick(60_000);
    assert_eq!(play.replicas(0), [1, 3]);
}

#[test]
fn a_wish_that_was_lost_is_repeated() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]);
    // The answer said yes, yet the controller went away with the wish.
    play.step(Some(1));
    play.execution = play.resumed();
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!(play.begun[&TopicPartition::new("t", 0)], 1);
}

#[test]
fn a_leader_that_cannot_be_is_given_up_in_the_end() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[0, 1])]).with(|order| order.repairs = true);
    play.step(None);
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    play.cluster.tick(5_000);
    // Elections are for those who are up; this one waits until it is.
    play.run_for(20_000);
    assert_eq!(play.leader(0), Some(1));
    play.cluster.suffer(&Fault::Return(evenkeel_sim::BrokerId(0)));
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!(play.leader(0), Some(0));
}

#[test]
fn a_member_that_has_fallen_behind_keeps_no_move_from_its_end() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]);
    play.run_for(2_000);
    let mut sight = play.look();
    let seen = sight.partitions.get_mut(&TopicPartition::new("t", 0)).unwrap();
    (seen.replicas, seen.in_sync) = ([1, 2].map(BrokerId).to_vec(), vec![BrokerId(2)]);
    sight.under_way.clear();
    assert_eq!(play.execution.step(&sight).ending, Some(Ending::Completed));
}

#[test]
fn what_one_look_shows_of_brokers_ends_nothing() {
    // A move in flight and one that waits, and an answer of somebody who has not heard of broker 3 yet.
    let mut play = Play::new(&[&[1, 0], &[1, 0]], &[(0, &[1, 3]), (1, &[1, 3])]).with(|order| {
        order.throttle = Some(2 * MB);
        order.limits.in_cluster = 1;
    });
    play.run_for(2_000);
    let mut sight = play.look();
    sight.up.remove(&BrokerId(3));
    sight.registered.remove(&BrokerId(3));
    let step = play.execution.step(&sight);
    assert_eq!((step.actions, step.changed), (vec![], BTreeSet::new()));
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![1, 3], vec![1, 3]));
}

#[test]
fn brokers_that_do_not_name_who_is_down_strike_nobody_off() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 3])]);
    let mut sight = play.look();
    sight.up.remove(&BrokerId(3));
    sight.registered.remove(&BrokerId(3));
    sight.names_all = false;
    for _ in 0..100 {
        let step = play.execution.step(&sight);
        assert_eq!((step.hold, step.changed), (Some(Hold::BrokersDown([BrokerId(3)].into())), BTreeSet::new()));
        sight.now += 10_000;
    }
}

#[test]
fn a_partition_is_gone_only_if_looks_in_a_row_say_so() {
    let gone = TopicPartition::new("t", 0);
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| order.throttle = Some(MB));
    for begun in [false, true] {
        let mut sight = play.look();
        sight.partitions.clear();
        // Refused, for however long: nothing is known.
        for _ in 0..10 {
            assert_eq!(play.execution.step(&sight).changed, BTreeSet::new(), "begun: {begun}");
            sight.now += 10_000;
        }
        // Unknown to somebody who trails.
        sight.unknown = [gone.clone()].into();
        assert_eq!(play.execution.step(&sight).changed, BTreeSet::new(), "begun: {begun}");
        play.run_for(2_000);
    }
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!(play.replicas(0), [1, 2]);
}
