//! Elections of preferred leaders: done, not needed, not possible.

use evenkeel_kafka::{BrokerId, ErrorCode, Refusal, TopicPartition, calls::elections::Election};

use crate::{
    reassignments::start,
    world::{World, ids},
};

promises!(
    the_preferred_leader_is_elected,
    nothing_is_elected_where_the_right_one_leads,
    nobody_is_elected_who_is_still_being_added,
    elections_of_unknown_partitions_are_refused,
);

async fn the_preferred_leader_is_elected(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    start(world, &topic, &[1, 0]).await;
    assert_eq!(elect(world, &topic, 0).await, Ok(()));
    let seen = world.until(&topic, 0, "the new leader", |one| one.leader == Some(BrokerId(1))).await;
    assert_eq!((seen.replicas, seen.leader_epoch), (ids(&[1, 0]), 1));
}

async fn nothing_is_elected_where_the_right_one_leads(world: &World) {
    let topic = world.topic(&[&[2, 3]]).await;
    assert_eq!(elect(world, &topic, 0).await.unwrap_err().code, ErrorCode::ELECTION_NOT_NEEDED);
}

async fn nobody_is_elected_who_is_still_being_added(world: &World) {
    let topic = world.stalled_topic(&[&[1, 2]]).await;
    start(world, &topic, &[0, 3]).await;
    assert_eq!(elect(world, &topic, 0).await.unwrap_err().code, ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE);
}

async fn elections_of_unknown_partitions_are_refused(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let refused = elect(world, &topic, 7).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(refused.message, Some(format!("No such partition as {topic}-7")));
    let nowhere = world.name("nowhere");
    let refused = elect(world, &nowhere, 0).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(refused.message, Some(format!("No such topic as {nowhere}")));
}

/// Elects the preferred leader of one partition.
pub(crate) async fn elect(world: &World, topic: &str, partition: i32) -> Result<(), Refusal> {
    let asked = [TopicPartition::new(topic, partition)];
    let changes = world.client.elect_leaders(Election::Preferred, &asked).await;
    assert!(changes.interrupted.is_none(), "{changes:?}");
    changes.answers[&asked[0]].clone()
}
