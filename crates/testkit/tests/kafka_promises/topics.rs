//! The cluster and its topics: made, grown, deleted, and what is refused.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    BrokerId, ErrorCode, Refusal,
    calls::topics::{Layout, NewTopic, Which},
};

use crate::world::{World, eventually, ids};

promises!(
    the_cluster_tells_of_its_brokers_and_racks,
    a_topic_is_made_as_it_was_ordered,
    a_new_topic_spreads_over_racks,
    bad_topics_are_refused_one_by_one,
    a_dry_run_makes_nothing,
    a_topic_grows_and_never_shrinks,
    a_deleted_topic_is_gone_and_its_name_is_free,
    unknown_topics_are_refused_one_by_one,
);

async fn the_cluster_tells_of_its_brokers_and_racks(world: &World) {
    let cluster = world.client.describe_cluster().await.expect("an answer");
    let brokers: Vec<_> = cluster.brokers.iter().map(|one| (one.id.0, one.rack.as_deref(), one.fenced)).collect();
    let expected = [(0, Some("a"), false), (1, Some("b"), false), (2, Some("c"), false), (3, Some("a"), false)];
    assert_eq!(brokers, expected);
    // Never the controller itself: that is no broker, and clients do not reach it.
    assert!(cluster.brokers.iter().any(|broker| Some(broker.id) == cluster.controller), "{cluster:?}");
}

async fn a_topic_is_made_as_it_was_ordered(world: &World) {
    let topic = world.topic(&[&[2, 0], &[3, 1]]).await;
    let seen = world.look(&topic).await.expect("the topic");
    assert!(seen.id != 0 && !seen.internal);
    let [first, second] = <[_; 2]>::try_from(seen.partitions).expect("two partitions");
    assert_eq!((first.index, first.leader, first.leader_epoch), (0, Some(BrokerId(2)), 0));
    // In sync in the order of its making, until a leader changes it.
    assert_eq!((first.replicas, first.in_sync, first.offline), (ids(&[2, 0]), ids(&[2, 0]), vec![]));
    assert_eq!((second.index, second.leader, second.replicas), (1, Some(BrokerId(3)), ids(&[3, 1])));
}

async fn a_new_topic_spreads_over_racks(world: &World) {
    let layout = Layout::Automatic { partitions: Some(6), replication_factor: Some(3) };
    assert_eq!(create(world, "spread", layout, false).await, Ok(()));
    let seen = eventually("the topic", async || world.look(&world.name("spread")).await).await;
    for partition in seen.partitions {
        let racks: BTreeSet<_> =
            partition.replicas.iter().map(|broker| ["a", "b", "c", "a"][broker.0 as usize]).collect();
        assert_eq!(racks.len(), 3, "{:?}", partition.replicas);
    }
}

async fn bad_topics_are_refused_one_by_one(world: &World) {
    let there = world.topic(&[&[0]]).await;
    let automatic =
        |partitions, replicas| Layout::Automatic { partitions: Some(partitions), replication_factor: Some(replicas) };
    let manual = |replicas: &[&[i32]]| Layout::Manual(replicas.iter().map(|replicas| ids(replicas)).collect());
    let wanted = [
        (there.clone(), automatic(1, 1), Some(36)),
        ("not/a/name".to_owned(), automatic(1, 1), Some(17)),
        (world.name("no-partitions"), automatic(0, 1), Some(37)),
        (world.name("too-many-replicas"), automatic(1, 9), Some(38)),
        (world.name("unknown-broker"), manual(&[&[0, 99]]), Some(39)),
        (world.name("twice"), manual(&[&[0, 0]]), Some(39)),
        (world.name("uneven"), manual(&[&[0, 1], &[0]]), Some(39)),
        (world.name("good"), manual(&[&[0, 1]]), None),
    ];
    let topics: Vec<_> = wanted
        .iter()
        .map(|(name, layout, _)| NewTopic { name: name.clone(), layout: layout.clone(), configs: BTreeMap::new() })
        .collect();
    let answers = world.client.create_topics(&topics, false).await.whole().expect("an answer");
    for (name, _, code) in wanted {
        let answer = answers[&name].as_ref().err().map(|refusal| refusal.code);
        assert_eq!(answer, code.map(ErrorCode), "{name}");
    }
}

async fn a_dry_run_makes_nothing(world: &World) {
    assert_eq!(create(world, "dry", Layout::Manual(vec![ids(&[0])]), true).await, Ok(()));
    assert_eq!(create(world, "dry", Layout::Manual(vec![ids(&[0])]), false).await, Ok(()), "the name is free");
}

async fn a_topic_grows_and_never_shrinks(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    world.client.create_partitions(&topic, 3, Some(&[ids(&[1, 2]), ids(&[2, 3])])).await.expect("more partitions");
    let seen = world.until(&topic, 2, "three partitions", |_| true).await;
    assert_eq!((seen.replicas, seen.leader), (ids(&[2, 3]), Some(BrokerId(2))));
    for (total, replicas, code) in [(2, None, 37), (3, None, 37), (4, Some([ids(&[9])]), 39)] {
        let replicas = replicas.as_ref().map(|replicas| replicas.as_slice());
        let refused = world.client.create_partitions(&topic, total, replicas).await.unwrap_err();
        assert_eq!(refused.refusal().map(|refusal| refusal.code), Some(ErrorCode(code)), "{refused}");
    }
}

async fn a_deleted_topic_is_gone_and_its_name_is_free(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let first = world.look(&topic).await.expect("the topic").id;
    let names = [topic.clone(), world.name("nowhere")];
    let deleted = world.client.delete_topics(&names).await.whole().expect("an answer");
    assert_eq!(deleted[&names[0]], Ok(()));
    let refused = deleted[&names[1]].as_ref().unwrap_err();
    assert_eq!(refused.code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    eventually("it is gone", async || world.look(&topic).await.is_none().then_some(())).await;
    assert_eq!(create(world, "topic", Layout::Manual(vec![ids(&[0, 1])]), false).await, Ok(()));
    let second = eventually("the new one", async || world.look(&topic).await.filter(|seen| seen.id != first)).await;
    assert_ne!(second.id, first);
}

async fn unknown_topics_are_refused_one_by_one(world: &World) {
    let topic = world.topic(&[&[0]]).await;
    let names = [world.name("nowhere"), topic.clone()];
    let found = world.client.topics(Which::Named(&names)).await.expect("an answer");
    assert_eq!(found[&names[0]].as_ref().unwrap_err().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(found[&topic].as_ref().expect("the topic").partitions.len(), 1);
    let all = world.client.topics(Which::All).await.expect("an answer");
    assert!(all.contains_key(&topic) && !all.contains_key(&names[0]));
}

async fn create(world: &World, thing: &str, layout: Layout, dry_run: bool) -> Result<(), Refusal> {
    let name = world.name(thing);
    let topic = NewTopic { name: name.clone(), layout, configs: BTreeMap::new() };
    world.client.create_topics(&[topic], dry_run).await.whole().expect("an answer").remove(&name).expect("the topic's")
}
