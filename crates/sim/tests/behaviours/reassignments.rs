use crate::*;
use evenkeel_sim::cluster::Fault;

#[test]
fn a_running_move_shows_the_target_then_the_removed_ascending() {
    let mut cluster = with_partition(4, &[2, 1]);
    assert_eq!(reassign(&mut cluster, &[0, 3]), Ok(()));
    let shown = moving(&cluster).expect("a move");
    assert_eq!((shown.replicas, shown.adding, shown.removing), (ids(&[0, 3, 1, 2]), ids(&[0, 3]), ids(&[1, 2])));
    assert_eq!(now(&cluster).replicas, ids(&[0, 3, 1, 2]));
}

#[test]
fn adding_is_ascending_too() {
    let mut cluster = with_partition(4, &[3, 2]);
    reassign(&mut cluster, &[0, 3, 1]).expect("accepted");
    let shown = moving(&cluster).expect("a move");
    assert_eq!((shown.adding, shown.removing), (ids(&[0, 1]), ids(&[2])));
}

#[test]
fn each_new_replica_joins_on_its_own_and_the_move_ends_for_all_at_once() {
    let mut cluster = with_partition(4, &[0, 1]);
    cluster.suffer(&Fault::SlowLink(BrokerId(3), 0.1));
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    while !now(&cluster).isr.contains(&BrokerId(2)) {
        cluster.tick(100);
    }
    assert_eq!(now(&cluster).isr, ids(&[0, 1, 2]), "the old ones stay in the ISR");
    assert_eq!(now(&cluster).replicas, ids(&[2, 3, 0, 1]));
    assert!(settle(&mut cluster));
    assert_eq!((now(&cluster).replicas.clone(), now(&cluster).isr.clone()), (ids(&[2, 3]), ids(&[2, 3])));
}

#[test]
fn a_dead_target_that_was_a_replica_is_not_waited_for() {
    let mut cluster = with_partition(5, &[4, 0]);
    cluster.crash_broker(BrokerId(4));
    cluster.tick(10_000);
    reassign(&mut cluster, &[4, 1]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!((now(&cluster).replicas.clone(), now(&cluster).isr.clone()), (ids(&[4, 1]), ids(&[1])));
}

#[test]
fn a_shrink_that_keeps_a_dead_broker_waits_for_it() {
    let mut cluster = with_partition(5, &[0, 1, 4]);
    cluster.crash_broker(BrokerId(4));
    cluster.tick(10_000);
    reassign(&mut cluster, &[0, 4]).expect("accepted");
    assert!(!settle(&mut cluster));
    cluster.start_broker(BrokerId(4));
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).replicas, ids(&[0, 4]));
}

#[test]
fn the_old_leader_stays_if_it_is_in_the_target_even_if_not_first() {
    let mut cluster = with_partition(5, &[0, 1]);
    reassign(&mut cluster, &[4, 0]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).leader, Some(BrokerId(0)));
}

#[test]
fn otherwise_the_first_of_the_target_leads() {
    let mut cluster = with_partition(5, &[0, 1]);
    reassign(&mut cluster, &[3, 2]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).leader, Some(BrokerId(3)));
}

#[test]
fn the_leader_epoch_grows_when_replicas_go_and_on_cancel_only() {
    let mut cluster = with_partition(5, &[0, 1]);
    let epoch = |cluster: &Cluster| now(cluster).leader_epoch;
    reassign(&mut cluster, &[0, 1, 2]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!(epoch(&cluster), 0, "adding alone");
    reassign(&mut cluster, &[1, 0, 2]).expect("accepted");
    assert_eq!(epoch(&cluster), 0, "another order alone");
    reassign(&mut cluster, &[1, 0]).expect("accepted");
    assert_eq!((epoch(&cluster), now(&cluster).leader), (1, Some(BrokerId(0))), "removing, though the leader stays");
    reassign(&mut cluster, &[1, 0, 3]).expect("accepted");
    cancel(&mut cluster).expect("cancelled");
    assert_eq!((epoch(&cluster), now(&cluster).leader), (2, Some(BrokerId(0))), "cancelling");
}

#[test]
fn another_order_and_a_shrink_within_the_isr_are_done_in_the_same_call() {
    let mut cluster = with_partition(4, &[0, 1, 2]);
    reassign(&mut cluster, &[2, 1, 0]).expect("accepted");
    assert_eq!((moving(&cluster), now(&cluster).leader), (None, Some(BrokerId(0))));
    reassign(&mut cluster, &[2, 1]).expect("accepted");
    assert_eq!(
        (moving(&cluster), now(&cluster).leader),
        (None, Some(BrokerId(2))),
        "a dropped leader is replaced at once"
    );
    assert_eq!(now(&cluster).replicas, ids(&[2, 1]));
}

#[test]
fn the_isr_is_in_creation_order_first_and_ascending_after_a_change_by_the_leader() {
    let mut cluster = with_partition(4, &[2, 0]);
    assert_eq!(now(&cluster).isr, ids(&[2, 0]));
    reassign(&mut cluster, &[2, 0, 1]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).isr, ids(&[0, 1, 2]));
}

#[test]
fn a_replaced_move_keeps_what_was_being_added() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    reassign(&mut cluster, &[2, 1]).expect("accepted");
    let shown = moving(&cluster).expect("a move");
    assert_eq!((shown.replicas, shown.adding, shown.removing), (ids(&[2, 1, 0, 3]), ids(&[2, 3]), ids(&[0, 3])));
}

#[test]
fn a_replaced_move_that_drops_an_added_replica_hangs_until_it_is_cancelled() {
    for back_to in [&[2, 1], &[0, 1]] {
        let mut cluster = with_partition(4, &[0, 1]);
        reassign(&mut cluster, &[2, 3]).expect("accepted");
        reassign(&mut cluster, back_to).expect("accepted");
        assert!(!settle(&mut cluster), "all are in sync and it is listed all the same");
        assert_eq!(now(&cluster).isr, ids(&[0, 1, 2, 3]));
        assert_eq!(code(reassign(&mut cluster, back_to)), 0);
        assert!(!settle(&mut cluster), "sending it again does not help");
        cancel(&mut cluster).expect("cancelled");
        assert_eq!(moving(&cluster), None);
    }
}

#[test]
fn a_hanging_move_is_freed_by_a_target_with_all_that_is_added() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    reassign(&mut cluster, &[2, 1]).expect("accepted");
    assert!(!settle(&mut cluster));
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).replicas, ids(&[2, 3]));
}

#[test]
fn a_cancelled_move_loses_the_original_order() {
    let mut cluster = with_partition(4, &[2, 1]);
    reassign(&mut cluster, &[0, 3]).expect("accepted");
    cluster.tick(200);
    assert_eq!(sizes(&cluster, 0).len(), 1, "a partial copy");
    cancel(&mut cluster).expect("cancelled");
    assert_eq!((now(&cluster).replicas.clone(), now(&cluster).leader), (ids(&[1, 2]), Some(BrokerId(2))));
    assert_eq!(sizes(&cluster, 0), [], "the partial copy is gone");
}

#[test]
fn the_move_goes_on_under_the_first_isr_member_when_the_leader_is_killed() {
    let mut cluster = with_partition(5, &[0, 1]);
    cluster.suffer(&Fault::SlowLink(BrokerId(3), 0.01));
    reassign(&mut cluster, &[3, 2]).expect("accepted");
    while !now(&cluster).isr.contains(&BrokerId(2)) {
        cluster.tick(100);
    }
    cluster.crash_broker(BrokerId(0));
    cluster.tick(10_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(2)), "the first of the long list that is in sync");
    assert!(moving(&cluster).is_some());
    assert!(settle(&mut cluster));
}

#[test]
fn a_topic_deleted_in_the_middle_of_a_move_takes_the_move_along() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    cluster.tick(200);
    cluster.suffer(&Fault::TopicDeleted("t".to_owned()));
    assert_eq!((moving(&cluster), sizes(&cluster, 2)), (None, vec![]));
    cluster.tick(10_000);
}

#[test]
fn bad_lines_are_refused_one_by_one() {
    let mut cluster = with_partition(4, &[0, 1]);
    let refusal = reassign(&mut cluster, &[0, 99]).expect_err("an unknown broker");
    assert_eq!(refusal.code, Code::InvalidReplicaAssignment);
    assert_eq!(
        refusal.message,
        "The manual partition assignment includes broker 99, but no such broker is registered."
    );
    for bad in [&[0, 0][..], &[0, -1], &[]] {
        assert_eq!(code(reassign(&mut cluster, bad)), 39, "{bad:?}");
    }
    assert_eq!(code(cancel(&mut cluster)), 85);
    let lines: Vec<Reassignment> = [("nope", 0), ("t", 7), ("t", 0)]
        .map(|(topic, partition)| Reassignment {
            partition: TopicPartition::new(topic, partition),
            target: Some(ids(&[1, 2])),
        })
        .to_vec();
    let codes: Vec<i16> = cluster.alter_reassignments(&lines, true).into_iter().map(code).collect();
    assert_eq!(codes, [3, 3, 0], "bad lines do not spoil the good one");
}

#[test]
fn the_factor_is_kept_if_so_asked() {
    let mut cluster = with_partition(4, &[0, 1]);
    let line = Reassignment { partition: t0(), target: Some(ids(&[0, 1, 2])) };
    let refusal = cluster.alter_reassignments(&[line], false).remove(0).expect_err("another factor");
    assert_eq!((refusal.code.number(), &*refusal.message), (38, "The replication factor is changed from 2 to 3"));
}

#[test]
fn the_same_target_again_does_nothing() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    let before = now(&cluster).clone();
    assert_eq!(reassign(&mut cluster, &[2, 3]), Ok(()));
    assert_eq!(*now(&cluster), before);
}

#[test]
fn a_fenced_broker_is_accepted_as_a_target() {
    let mut cluster = with_partition(4, &[0, 1]);
    cluster.stop_broker(BrokerId(3));
    assert_eq!(reassign(&mut cluster, &[0, 3]), Ok(()));
    assert!(!settle(&mut cluster));
    cluster.start_broker(BrokerId(3));
    assert!(settle(&mut cluster));
}

#[test]
fn a_cancel_that_would_lose_data_is_refused_and_the_move_goes_on() {
    let mut cluster = with_partition(5, &[0]);
    cluster.suffer(&Fault::SlowLink(BrokerId(3), 0.001));
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    while !now(&cluster).isr.contains(&BrokerId(2)) {
        cluster.tick(100);
    }
    cluster.stop_broker(BrokerId(0));
    let refusal = cancel(&mut cluster).expect_err("only an added replica is in sync");
    assert_eq!(refusal.code.number(), 39);
    assert!(refusal.message.ends_with("because it would require an unclean leader election."));
    cluster.suffer(&Fault::SlowLink(BrokerId(3), 1.0));
    assert!(settle(&mut cluster));
    assert_eq!(now(&cluster).replicas, ids(&[2, 3]));
}
