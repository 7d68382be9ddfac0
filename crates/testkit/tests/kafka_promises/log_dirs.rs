//! Log directories: what brokers tell of them, and replicas that move between them.

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::{
    BrokerId, ErrorCode, Refusal, TopicPartition,
    calls::log_dirs::{LogDir, Replica},
};

use crate::{
    reassignments::{finished, start},
    world::{World, eventually, ids},
};

promises!(
    a_broker_tells_of_its_directories,
    a_copy_from_another_broker_shows_by_its_size_alone,
    a_replica_moves_to_another_directory,
    a_choice_for_a_replica_to_come_is_remembered,
    bad_choices_are_refused,
);

async fn a_broker_tells_of_its_directories(world: &World) {
    let topic = world.topic(&[&[2, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    world.write(&partition, &[Bytes::from_static(b"something")]).await;
    let dirs = world.client.describe_log_dirs(BrokerId(2), None).await.expect("an answer");
    assert!(dirs.knows_cordons);
    assert_eq!(dirs.dirs.keys().cloned().collect::<Vec<_>>(), paths(world, 2).await);
    let dirs: Vec<_> = dirs.dirs.into_values().map(|dir| dir.expect("a good directory")).collect();
    for LogDir { total_bytes, usable_bytes, cordoned, .. } in &dirs {
        assert!(usable_bytes.unwrap() <= total_bytes.unwrap() && !cordoned, "{dirs:?}");
    }
    let held: Vec<_> = dirs.iter().filter_map(|dir| dir.replicas.get(&partition)).collect();
    assert_eq!(held.len(), 1);
    assert!(held[0].bytes > 0 && held[0].lag == 0 && !held[0].future, "{held:?}");
}

async fn a_copy_from_another_broker_shows_by_its_size_alone(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    start(world, &topic, &[0, 2]).await;
    let partition = TopicPartition::new(&topic, 0);
    let (_, whole) = only(held(world, 0, &partition).await);
    let copy = eventually("the copy has begun", async || held(world, 2, &partition).await.pop()).await.1;
    // It is no future replica, and its lag says nothing.
    assert!(copy.bytes < whole.bytes && copy.lag == 0 && !copy.future, "{copy:?} of {whole:?}");
    world.release(&topic).await;
    finished(world, &topic).await;
    eventually("the copy is whole", async || {
        let (_, copy) = held(world, 2, &partition).await.pop()?;
        (copy.bytes == whole.bytes).then_some(())
    })
    .await;
}

async fn a_replica_moves_to_another_directory(world: &World) {
    let topic = world.topic(&[&[3, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    world.write(&partition, &[Bytes::from_static(b"something")]).await;
    let before = world.look(&topic).await;
    let (here, _) = only(held(world, 3, &partition).await);
    let other = paths(world, 3).await.into_iter().find(|path| *path != here).unwrap();
    assert_eq!(choose(world, 3, &partition, &here).await, Ok(()), "it is there already");
    assert_eq!(choose(world, 3, &partition, &other).await, Ok(()));
    eventually("it is in the other directory alone", async || {
        let held = held(world, 3, &partition).await;
        (held.len() == 1 && held[0].0 == other && !held[0].1.future).then_some(())
    })
    .await;
    assert_eq!(world.look(&topic).await, before, "the cluster does not see it");
}

async fn a_choice_for_a_replica_to_come_is_remembered(world: &World) {
    let topic = world.topic(&[&[0, 1], &[0, 1], &[0, 1], &[0, 1]]).await;
    let chosen = paths(world, 2).await.pop().unwrap();
    let partitions: Vec<_> = (0..4).map(|index| TopicPartition::new(&topic, index)).collect();
    for partition in &partitions {
        let refused = choose(world, 2, partition, &chosen).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::REPLICA_NOT_AVAILABLE);
    }
    let target = evenkeel_kafka::calls::reassignments::Target::Replicas(ids(&[0, 2]));
    let targets: BTreeMap<_, _> = partitions.iter().map(|one| (one.clone(), target.clone())).collect();
    let changes = world.client.alter_reassignments(&targets, false).await;
    assert!(changes.answers.values().all(Result::is_ok), "{changes:?}");
    for partition in &partitions {
        let (dir, _) = eventually("it has come", async || held(world, 2, partition).await.pop()).await;
        assert_eq!(dir, chosen, "{partition}");
    }
}

async fn bad_choices_are_refused(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    for path in ["/there/is/no/such/directory", "d0"] {
        let refused = choose(world, 0, &partition, path).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::LOG_DIR_NOT_FOUND, "{path}");
    }
    let good = paths(world, 0).await.remove(0);
    let nowhere = TopicPartition::new(world.name("nowhere"), 0);
    let refused = choose(world, 0, &nowhere, &good).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// A broker's directories, in order.
pub(crate) async fn paths(world: &World, broker: i32) -> Vec<String> {
    let dirs = world.brokers.log_dirs(broker).await;
    let mut paths: Vec<_> = dirs.iter().map(|dir| dir.to_str().expect("UTF-8").to_owned()).collect();
    paths.sort();
    paths
}

/// Where a broker has files of a partition.
pub(crate) async fn held(world: &World, broker: i32, partition: &TopicPartition) -> Vec<(String, Replica)> {
    let asked = [partition.clone()];
    let described = world.client.describe_log_dirs(BrokerId(broker), Some(&asked)).await.expect("an answer");
    let good = described.dirs.into_iter().filter_map(|(path, dir)| Some((path, dir.ok()?)));
    good.filter_map(|(path, dir)| Some((path, *dir.replicas.get(partition)?))).collect()
}

/// Chooses a directory for a replica.
pub(crate) async fn choose(world: &World, broker: i32, partition: &TopicPartition, path: &str) -> Result<(), Refusal> {
    let wanted = BTreeMap::from([(partition.clone(), path.to_owned())]);
    let changes = world.client.alter_replica_log_dirs(BrokerId(broker), &wanted).await;
    assert!(changes.interrupted.is_none(), "{changes:?}");
    changes.answers[partition].clone()
}

fn only<T: std::fmt::Debug>(mut things: Vec<T>) -> T {
    assert_eq!(things.len(), 1, "{things:?}");
    things.remove(0)
}
