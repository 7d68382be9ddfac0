//! A stop takes everything back that is in flight, and is over when the cluster shows it.

use super::*;

#[test]
fn what_is_in_flight_goes_back_with_its_order_and_the_rest_never_begins() {
    // The order that a cancel forgets: 1 before 0.
    let lists: [&[i32]; 3] = [&[1, 0], &[1, 0], &[1, 0]];
    let mut play = Play::new(&lists, &[(0, &[2, 3]), (1, &[3, 2]), (2, &[2, 0])]).with(|order| {
        order.throttle = Some(MB);
        order.limits.in_cluster = 2;
    });
    play.run_for(3_000);
    assert_eq!(play.cluster.list_reassignments(None).len(), 2);
    play.execution.stop();
    assert_eq!(play.run(), Ending::Stopped);
    for partition in 0..3 {
        assert_eq!(play.replicas(partition), [1, 0]);
        assert_eq!(play.leader(partition), Some(1));
    }
    assert!(play.ends().contains(&Stage::Ended(End::Dead(Why::Stopped))));
    assert!(play.ends().contains(&Stage::Ended(End::Aborted(Why::Stopped))));
    play.assert_at_rest();
}

#[test]
fn a_replica_between_two_directories_stays_where_it_was() {
    let partition = TopicPartition::new("t", 0);
    let play = Play::new(&[&[0, 1]], &[(0, &[0, 1])]);
    let from = play.look().dirs[&(BrokerId(0), partition.clone())].dir.clone();
    let to = if from == "/d0" { "/d1" } else { "/d0" };
    let mut play = play.with(|order| {
        order.moves[0].dirs = vec![DirMove { broker: BrokerId(0), from: Some(from.clone()), to: to.to_owned() }];
    });
    play.step(None);
    play.execution.stop();
    assert_eq!(play.run(), Ending::Stopped);
    let seen = &play.look().dirs[&(BrokerId(0), partition)];
    assert_eq!((seen.dir.as_str(), &seen.future), (from.as_str(), &None));
}

#[test]
fn a_stop_before_the_first_step_touches_nothing() {
    let mut play = Play::new(&[&[0, 1]], &[(0, &[2, 3])]).with(|order| order.throttle = Some(MB));
    play.execution.stop();
    let step = play.step(None);
    assert_eq!((step.actions, step.ending), (vec![], Some(Ending::Stopped)));
}

#[test]
fn nobody_is_elected_after_a_stop() {
    let mut play = Play::new(&[&[1, 0]], &[(0, &[0, 1])]);
    while play.execution.phase() != Some(Kind::Leader) {
        play.run_for(250);
    }
    let mut sight = play.look();
    sight.partitions.get_mut(&TopicPartition::new("t", 0)).unwrap().leader = Some(BrokerId(1));
    // An election that has not come true is asked for again, unless a stop comes first.
    sight.now += 10_000;
    play.execution.stop();
    let step = play.execution.step(&sight);
    assert_eq!((step.actions, step.ending), (vec![], Some(Ending::Stopped)));
}

#[test]
fn what_cannot_be_taken_back_ends_when_its_target_is_given_up() {
    let [one, three] = [1, 3].map(evenkeel_sim::BrokerId);
    let mut play = Play::new(&[&[1]], &[(0, &[2, 3])]).with(|order| {
        order.repairs = true;
        order.gives_up_after = Some(1_800_000);
    });
    // The copy on 2 is complete when 3 and the only one who had it before go down: nobody could lead if it were taken back.
    play.cluster.suffer(&Fault::SlowLink(three, 0.001));
    play.run_for(5_000);
    play.cluster.suffer(&Fault::Crash(three));
    play.cluster.suffer(&Fault::Crash(one));
    play.run_for(20_000);
    assert_eq!(play.leader(0), Some(2));
    play.execution.stop();
    play.run_for(600_000);
    assert_eq!(play.execution.phase(), Some(Kind::Replicas), "it may come back");
    assert_eq!(play.run(), Ending::Stopped);
    assert_eq!(play.ends(), [Stage::Ended(End::Dead(Why::TargetDown)), Stage::Ended(End::Aborted(Why::Stopped))]);
}
