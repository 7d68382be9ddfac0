//! Disks that fail and stay so: what was to go there, or to come from there, ends, and with it the run.

use super::*;

/// The directory of a broker that holds a replica of `t` fails.
fn fail_disk(play: &mut Play, broker: i32, partition: i32) {
    let broker = evenkeel_sim::BrokerId(broker);
    let dirs = play.cluster.describe_log_dirs(broker, None);
    let holds = |dir: &evenkeel_sim::cluster::DirView| {
        dir.replicas.iter().any(|it| it.partition.partition == partition && !it.is_future)
    };
    let dir = dirs.iter().position(holds).expect("the replica lies somewhere");
    play.cluster.suffer(&Fault::FailedDir(broker, dir));
}

#[test]
fn a_target_disk_that_fails_sends_its_move_back_and_the_rest_goes_on() {
    let mut play = Play::new(&[&[1, 0], &[1, 0]], &[(0, &[1, 3]), (1, &[1, 2])]).with(|order| {
        order.throttle = Some(MB);
        order.limits.in_cluster = 1;
        // What is large goes first.
        order.moves[0].bytes = 100 * MB;
    });
    play.run_for(2_000);
    fail_disk(&mut play, 3, 0);
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![1, 0], vec![1, 2]));
    assert_eq!(play.ends()[0], Stage::Ended(End::Dead(Why::TargetDown)));
    play.assert_at_rest();
}

#[test]
fn what_one_look_shows_of_a_disk_ends_nothing() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 3])]).with(|order| order.throttle = Some(2 * MB));
    play.run_for(2_000);
    let mut sight = play.look();
    sight.partitions.get_mut(&TopicPartition::new("t", 0)).unwrap().offline = vec![BrokerId(3)];
    let step = play.execution.step(&sight);
    assert_eq!((step.actions, step.changed), (vec![], BTreeSet::new()));
    assert_eq!(play.run(), Ending::Completed);
}

#[test]
fn a_move_whose_only_source_has_failed_is_taken_back_in_the_end_or_given_up() {
    for can_be_taken_back in [true, false] {
        // A cluster that knows who was in sync last does not let go of who might be next.
        let options = evenkeel_sim::Options { eligible_leader_replicas: !can_be_taken_back, ..Default::default() };
        let mut play = Play::on(options, &[&[0], &[1]], &[(0, &[2]), (1, &[3])]).with(|order| {
            order.throttle = Some(MB);
            order.gives_up_after = Some(60_000);
        });
        play.run_for(2_000);
        fail_disk(&mut play, 0, 0);
        assert_eq!(play.run(), Ending::Incomplete);
        assert!(play.cluster.now() > 60_000, "the disk might have been mended");
        let left = if can_be_taken_back { vec![0] } else { vec![2, 0] };
        assert_eq!((play.replicas(0), play.replicas(1)), (left, vec![3]));
        assert!(play.ends().contains(&Stage::Ended(End::Dead(Why::TooSlow))), "{:?}", play.ends());
        play.assert_not_held_back();
    }
}

#[test]
fn a_stop_ends_though_what_is_in_flight_can_neither_go_on_nor_back() {
    let options = evenkeel_sim::Options { eligible_leader_replicas: true, ..Default::default() };
    let mut play = Play::on(options, &[&[0]], &[(0, &[2])]).with(|order| {
        order.throttle = Some(MB);
        order.gives_up_after = Some(60_000);
    });
    play.run_for(2_000);
    fail_disk(&mut play, 0, 0);
    play.execution.stop();
    assert_eq!(play.run(), Ending::Stopped);
    assert_eq!(play.ends()[0], Stage::Ended(End::Dead(Why::Stopped)));
    play.assert_not_held_back();
}

#[test]
fn what_others_move_and_nobody_can_take_back_is_theirs() {
    let options = evenkeel_sim::Options { eligible_leader_replicas: true, ..Default::default() };
    let mut play = Play::on(options, &[&[0], &[1]], &[(0, &[3]), (1, &[3])]).with(|order| order.throttle = Some(MB));
    let (partition, target) = (evenkeel_sim::TopicPartition::new("t", 0), Some(vec![evenkeel_sim::BrokerId(2)]));
    play.cluster.suffer(&Fault::SlowLink(evenkeel_sim::BrokerId(2), 0.001));
    play.cluster.suffer(&Fault::ForeignReassignment(Reassignment { partition, target }));
    play.cluster.tick(1_000);
    fail_disk(&mut play, 0, 0);
    play.cluster.tick(1_000);
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!((play.replicas(0), play.replicas(1)), (vec![2, 0], vec![3]));
    assert_eq!(play.ends()[0], Stage::Ended(End::Aborted(Why::Changed)));
    play.assert_not_held_back();
}

#[test]
fn a_move_that_begins_without_anybody_to_copy_from_is_never_begun() {
    let mut play = Play::new(&[&[0]], &[(0, &[2])]).with(|order| order.gives_up_after = Some(10_000));
    fail_disk(&mut play, 0, 0);
    play.cluster.tick(2_000);
    let mut sight = play.look();
    sight.now -= 20_000;
    // Somebody else is in the way until the disk is given up.
    sight.under_way.insert(TopicPartition::new("t", 0), vec![BrokerId(3)]);
    play.execution.step(&sight);
    play.run_for(1_000);
    assert_eq!(play.ends()[0], Stage::Ended(End::Aborted(Why::TooSlow)));
    assert_eq!(play.begun, BTreeMap::new());
}

#[test]
fn a_copy_between_disks_ends_with_the_one_that_it_comes_from() {
    for stops in [false, true] {
        let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 0])]);
        let from = "/d0".to_owned();
        let tp = evenkeel_sim::TopicPartition::new("t", 0);
        play.cluster.alter_replica_log_dir(evenkeel_sim::BrokerId(1), &tp, &from).unwrap();
        play.cluster.tick(60_000);
        (0..2).for_each(|dir| play.cluster.suffer(&Fault::SlowDisk(evenkeel_sim::BrokerId(1), dir, 0.0001)));
        let mut play = play.with(|order| {
            order.moves[0].dirs = vec![DirMove { broker: BrokerId(1), from: Some(from), to: "/d1".to_owned() }];
        });
        play.run_for(2_000);
        assert_eq!(play.execution.progress(&play.look()).dirs.in_progress, 1);
        play.cluster.suffer(&Fault::FailedDir(evenkeel_sim::BrokerId(1), 0));
        if stops {
            play.execution.stop();
        }
        assert_eq!(play.run(), if stops { Ending::Stopped } else { Ending::Incomplete });
        let why = if stops { Why::Stopped } else { Why::TargetDown };
        assert_eq!(play.ends()[0], Stage::Ended(End::Dead(why)));
    }
}

#[test]
fn a_partition_that_lacks_who_is_lost_for_good_holds_nothing_up_for_ever() {
    let elsewhere = TopicPartition::new("u", 0);
    for lost in [true, false] {
        let mut play = Play::new(&[&[1, 0]], &[(0, &[1, 2])]).with(|order| order.gives_up_after = Some(60_000));
        let mut sight = play.look();
        sight.short = [elsewhere.clone()].into();
        sight.bereft = if lost { sight.short.clone() } else { BTreeSet::new() };
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(play.execution.step(&sight).hold.is_some());
            sight.now += 10_000;
        }
        let given_up_after = if lost { 6 } else { 8 };
        let wanted: Vec<bool> = (0..8).map(|number| number < given_up_after).collect();
        assert_eq!(held, wanted, "lost: {lost}");
    }
}
