//! The life of a move: what shows while it runs, how it ends, what a cancel leaves, and what is refused.

use std::collections::BTreeMap;

use evenkeel_kafka::{
    BrokerId, ErrorCode, Refusal, TopicPartition,
    calls::reassignments::{Reassignment, Target},
};

use crate::world::{World, eventually, ids};

promises!(
    a_move_shows_its_target_and_then_what_will_go,
    what_is_added_shows_in_order_of_ids,
    a_finished_move_is_led_by_the_first_of_its_target,
    a_leader_that_stays_keeps_leading,
    a_cancel_loses_the_order_of_the_replicas,
    a_cancel_leaves_no_partial_copies,
    another_order_is_there_at_once,
    fewer_replicas_are_there_at_once,
    one_more_replica_leaves_the_epoch_alone,
    a_new_target_replaces_the_old_one_and_may_never_end,
    a_new_target_with_all_that_is_being_added_ends,
    a_deleted_topic_takes_its_moves_along,
    bad_targets_are_refused_one_by_one,
    the_number_of_replicas_changes_only_when_it_may,
    the_same_target_again_changes_nothing,
);

async fn a_move_shows_its_target_and_then_what_will_go(world: &World) {
    let topic = world.stalled_topic(&[&[2, 1]]).await;
    start(world, &topic, &[0, 3]).await;
    // The listing comes from the controller: it shows the move at once.
    assert_eq!(listed(world, &topic).await, Some(moving(&[0, 3, 1, 2], &[0, 3], &[1, 2])));
    let seen = world.until(&topic, 0, "the long list", |one| one.replicas == ids(&[0, 3, 1, 2])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(2)), 0));
    assert_eq!(sorted(seen.in_sync), ids(&[1, 2]));
}

async fn what_is_added_shows_in_order_of_ids(world: &World) {
    let topic = world.stalled_topic(&[&[3, 2]]).await;
    change(world, &topic, Target::Replicas(ids(&[0, 3, 1])), true).await.expect("a move");
    assert_eq!(listed(world, &topic).await, Some(moving(&[0, 3, 1, 2], &[0, 1], &[2])));
}

async fn a_finished_move_is_led_by_the_first_of_its_target(world: &World) {
    let topic = world.stalled_topic(&[&[2, 1]]).await;
    start(world, &topic, &[0, 3]).await;
    world.release(&topic).await;
    finished(world, &topic).await;
    let seen = world.until(&topic, 0, "the target", |one| one.replicas == ids(&[0, 3])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(0)), 1));
    assert_eq!(sorted(seen.in_sync), ids(&[0, 3]));
}

async fn a_leader_that_stays_keeps_leading(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    start(world, &topic, &[3, 0]).await;
    finished(world, &topic).await;
    let seen = world.until(&topic, 0, "the target", |one| one.replicas == ids(&[3, 0])).await;
    // Something was removed, so it is a new epoch all the same.
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(0)), 1));
}

async fn a_cancel_loses_the_order_of_the_replicas(world: &World) {
    let topic = world.stalled_topic(&[&[2, 1]]).await;
    start(world, &topic, &[0, 3]).await;
    change(world, &topic, Target::Cancel, false).await.expect("a cancel");
    assert_eq!(listed(world, &topic).await, None);
    let seen = world.until(&topic, 0, "the old replicas", |one| one.replicas == ids(&[1, 2])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(2)), 1));
}

async fn a_cancel_leaves_no_partial_copies(world: &World) {
    let topic = world.stalled_topic(&[&[2, 1]]).await;
    start(world, &topic, &[0, 3]).await;
    eventually("copies have begun", async || (holders(world, &topic).await == [0, 1, 2, 3]).then_some(())).await;
    change(world, &topic, Target::Cancel, false).await.expect("a cancel");
    eventually("they are gone", async || (holders(world, &topic).await == [1, 2]).then_some(())).await;
}

async fn another_order_is_there_at_once(world: &World) {
    let topic = world.topic(&[&[0, 1, 2]]).await;
    start(world, &topic, &[2, 0, 1]).await;
    assert_eq!(listed(world, &topic).await, None);
    let seen = world.until(&topic, 0, "the new order", |one| one.replicas == ids(&[2, 0, 1])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(0)), 0));
}

async fn fewer_replicas_are_there_at_once(world: &World) {
    let topic = world.topic(&[&[0, 1, 2]]).await;
    change(world, &topic, Target::Replicas(ids(&[1, 2])), true).await.expect("a move");
    assert_eq!(listed(world, &topic).await, None);
    let seen = world.until(&topic, 0, "fewer replicas", |one| one.replicas == ids(&[1, 2])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(1)), 1));
}

async fn one_more_replica_leaves_the_epoch_alone(world: &World) {
    let topic = world.topic(&[&[0]]).await;
    change(world, &topic, Target::Replicas(ids(&[0, 1])), true).await.expect("a move");
    finished(world, &topic).await;
    let seen = world.until(&topic, 0, "both in sync", |one| one.in_sync == ids(&[0, 1])).await;
    assert_eq!((seen.replicas, seen.leader, seen.leader_epoch), (ids(&[0, 1]), Some(BrokerId(0)), 0));
}

async fn a_new_target_replaces_the_old_one_and_may_never_end(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    start(world, &topic, &[2, 3]).await;
    start(world, &topic, &[2, 1]).await;
    // 3 is being added and will be removed.
    let hanging = Some(moving(&[2, 1, 0, 3], &[2, 3], &[0, 3]));
    assert_eq!(listed(world, &topic).await, hanging);
    world.release(&topic).await;
    world.until(&topic, 0, "all in sync", |one| sorted(one.in_sync.clone()) == ids(&[0, 1, 2, 3])).await;
    start(world, &topic, &[2, 1]).await;
    assert_eq!(listed(world, &topic).await, hanging);
    // Only a cancel ends it.
    change(world, &topic, Target::Cancel, false).await.expect("a cancel");
    finished(world, &topic).await;
    world.until(&topic, 0, "what was not being added", |one| one.replicas == ids(&[1, 0])).await;
}

async fn a_new_target_with_all_that_is_being_added_ends(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    start(world, &topic, &[2, 3]).await;
    start(world, &topic, &[3, 2]).await;
    world.release(&topic).await;
    finished(world, &topic).await;
    let seen = world.until(&topic, 0, "the second target", |one| one.replicas == ids(&[3, 2])).await;
    assert_eq!(seen.leader, Some(BrokerId(3)));
}

async fn a_deleted_topic_takes_its_moves_along(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    start(world, &topic, &[2, 3]).await;
    let deleted = world.client.delete_topics(std::slice::from_ref(&topic)).await.whole().expect("an answer");
    assert_eq!(deleted, BTreeMap::from([(topic.clone(), Ok(()))]));
    assert_eq!(listed(world, &topic).await, None);
    eventually("its copies are gone", async || holders(world, &topic).await.is_empty().then_some(())).await;
}

async fn bad_targets_are_refused_one_by_one(world: &World) {
    let topic = world.topic(&[&[0, 1], &[0, 1], &[0, 1], &[0, 1], &[0, 1]]).await;
    let nowhere = TopicPartition::new(world.name("nowhere"), 0);
    let of = |index| TopicPartition::new(&topic, index);
    let replicas = |list: &[i32]| Target::Replicas(ids(list));
    let targets = BTreeMap::from([
        (of(0), replicas(&[1, 99])),
        (of(1), replicas(&[1, 1])),
        (of(2), replicas(&[1, -7])),
        (of(3), Target::Cancel),
        (of(4), replicas(&[2, 1])),
        (of(17), replicas(&[2, 1])),
        (nowhere.clone(), replicas(&[2, 1])),
    ]);
    let changes = world.client.alter_reassignments(&targets, false).await;
    assert!(changes.interrupted.is_none(), "{changes:?}");
    let codes: BTreeMap<_, _> = changes.answers.iter().map(|(one, answer)| (one.clone(), code(answer))).collect();
    let expected = BTreeMap::from([
        (of(0), Some(ErrorCode::INVALID_REPLICA_ASSIGNMENT)),
        (of(1), Some(ErrorCode::INVALID_REPLICA_ASSIGNMENT)),
        (of(2), Some(ErrorCode::INVALID_REPLICA_ASSIGNMENT)),
        (of(3), Some(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS)),
        (of(4), None),
        (of(17), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
        (nowhere, Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
    ]);
    assert_eq!(codes, expected);
    let words = changes.answers[&of(0)].as_ref().unwrap_err().message.as_deref();
    assert_eq!(words, Some("The manual partition assignment includes broker 99, but no such broker is registered."));
    world.until(&topic, 4, "the good one is done", |one| one.replicas == ids(&[2, 1])).await;
}

async fn the_number_of_replicas_changes_only_when_it_may(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let refused = change(world, &topic, Target::Replicas(ids(&[0, 1, 2])), false).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::INVALID_REPLICATION_FACTOR);
    assert_eq!(refused.message.as_deref(), Some("The replication factor is changed from 2 to 3"));
    change(world, &topic, Target::Replicas(ids(&[0, 1, 2])), true).await.expect("a move");
    finished(world, &topic).await;

    // While it moves, where it is going counts and not where it came from.
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    change(world, &topic, Target::Replicas(ids(&[0, 1, 2])), true).await.expect("a move");
    let refused = change(world, &topic, Target::Replicas(ids(&[0, 3])), false).await.unwrap_err();
    assert_eq!(refused.message.as_deref(), Some("The replication factor is changed from 3 to 2"));
    change(world, &topic, Target::Replicas(ids(&[0, 1, 3])), false).await.expect("a move");
}

async fn the_same_target_again_changes_nothing(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    start(world, &topic, &[0, 1]).await;
    assert_eq!(listed(world, &topic).await, None);
    let seen = world.look(&topic).await.expect("the topic").partitions.remove(0);
    assert_eq!((seen.replicas, seen.leader_epoch), (ids(&[0, 1]), 0));
}

/// Starts a move of the first partition, which must be accepted.
pub(crate) async fn start(world: &World, topic: &str, target: &[i32]) {
    change(world, topic, Target::Replicas(ids(target)), false).await.expect("a move");
}

/// Asks for something of the first partition.
pub(crate) async fn change(world: &World, topic: &str, target: Target, factor: bool) -> Result<(), Refusal> {
    let partition = TopicPartition::new(topic, 0);
    let changes = world.client.alter_reassignments(&BTreeMap::from([(partition.clone(), target)]), factor).await;
    assert!(changes.interrupted.is_none(), "{changes:?}");
    changes.answers[&partition].clone()
}

/// The move of the first partition, as the controller lists it.
pub(crate) async fn listed(world: &World, topic: &str) -> Option<Reassignment> {
    let partition = TopicPartition::new(topic, 0);
    let asked = [partition.clone()];
    world.client.list_reassignments(Some(&asked)).await.expect("an answer").remove(&partition)
}

/// Waits until the first partition is not moving.
pub(crate) async fn finished(world: &World, topic: &str) {
    eventually("the move has ended", async || listed(world, topic).await.is_none().then_some(())).await;
}

/// The brokers that have files of the topic.
async fn holders(world: &World, topic: &str) -> Vec<i32> {
    let asked = [TopicPartition::new(topic, 0)];
    let mut holders = Vec::new();
    for broker in [0, 1, 2, 3] {
        let described = world.client.describe_log_dirs(BrokerId(broker), Some(&asked)).await.expect("an answer");
        if described.dirs.values().flatten().any(|dir| dir.replicas.contains_key(&asked[0])) {
            holders.push(broker);
        }
    }
    holders
}

fn moving(replicas: &[i32], adding: &[i32], removing: &[i32]) -> Reassignment {
    Reassignment { replicas: ids(replicas), adding: ids(adding), removing: ids(removing) }
}

fn sorted(mut ids: Vec<BrokerId>) -> Vec<BrokerId> {
    ids.sort();
    ids
}

fn code(answer: &Result<(), Refusal>) -> Option<ErrorCode> {
    answer.as_ref().err().map(|refusal| refusal.code)
}
