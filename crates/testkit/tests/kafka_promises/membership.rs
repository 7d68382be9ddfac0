//! Brokers that go and come back: what the cluster shows of them, and what may be asked of it meanwhile.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_kafka::{
    BrokerId, Error, ErrorCode,
    calls::{
        cluster::Broker,
        reassignments::Target,
        topics::{Layout, NewTopic},
    },
};

use crate::{
    elections::elect,
    reassignments::{change, finished, listed, start},
    world::{World, eventually, ids},
};

promises_on_own_brokers!(
    3: a_broker_that_stops_hands_over_and_comes_back,
    a_broker_that_dies_is_missed_after_a_while,
    moves_do_not_ask_whether_brokers_are_alive,
    brokers_join_and_are_struck_off,
    a_running_broker_that_is_struck_off_lives_on_and_counts_for_nothing,
    new_partitions_need_a_broker_that_is_alive,
);

async fn a_broker_that_stops_hands_over_and_comes_back(world: &World) {
    let topic = world.topic(&[&[0, 1, 2]]).await;
    world.brokers.stop(0).await;
    let fenced = broker(world, 0, |broker| broker.fenced).await;
    assert_eq!(fenced.rack.as_deref(), Some("a"), "its rack is remembered");
    let seen = world.until(&topic, 0, "it is missed", |one| one.offline == ids(&[0])).await;
    assert_eq!((seen.leader, seen.leader_epoch), (Some(BrokerId(1)), 1));
    assert_eq!((seen.replicas, seen.in_sync), (ids(&[0, 1, 2]), ids(&[1, 2])));

    world.brokers.start(0).await;
    broker(world, 0, |broker| !broker.fenced).await;
    let seen = world.until(&topic, 0, "it is back", |one| one.in_sync.len() == 3).await;
    assert_eq!((seen.leader, seen.leader_epoch, seen.offline), (Some(BrokerId(1)), 1, vec![]));
    assert_eq!(elect(world, &topic, 0).await, Ok(()));
}

async fn a_broker_that_dies_is_missed_after_a_while(world: &World) {
    let topic = world.topic(&[&[2, 0]]).await;
    world.brokers.kill(2).await;
    broker(world, 2, |broker| broker.fenced).await;
    let seen = world.until(&topic, 0, "another leads", |one| one.leader == Some(BrokerId(0))).await;
    assert_eq!((seen.leader_epoch, seen.in_sync), (1, ids(&[0])));
    let refused = elect(world, &topic, 0).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE);

    world.brokers.start(2).await;
    world.until(&topic, 0, "it is back", |one| one.in_sync == ids(&[0, 2])).await;
}

async fn moves_do_not_ask_whether_brokers_are_alive(world: &World) {
    let kept = world.topic_with("kept", &[&[2, 0]], &[]).await;
    let wide = world.topic_with("wide", &[&[0, 1, 2]], &[]).await;
    let moved = world.topic_with("moved", &[&[0, 1]], &[]).await;
    world.brokers.kill(2).await;
    broker(world, 2, |broker| broker.fenced).await;

    // To the dead one: accepted, and it waits.
    start(world, &moved, &[2, 1]).await;
    assert!(listed(world, &moved).await.is_some());
    // What is added is alive, what is kept is dead: done.
    start(world, &kept, &[2, 1]).await;
    finished(world, &kept).await;
    world.until(&kept, 0, "the target", |one| one.replicas == ids(&[2, 1]) && one.in_sync == ids(&[1])).await;
    // Nothing is added, so all that is kept must be in sync first.
    change(world, &wide, Target::Replicas(ids(&[0, 2])), true).await.expect("a move");
    assert!(listed(world, &wide).await.is_some());

    world.brokers.start(2).await;
    finished(world, &moved).await;
    finished(world, &wide).await;
}

async fn brokers_join_and_are_struck_off(world: &World) {
    world.brokers.add(7, "z").await;
    let joined = broker(world, 7, |broker| !broker.fenced).await;
    assert_eq!(joined.rack.as_deref(), Some("z"));
    let topic = world.topic(&[&[0, 7]]).await;

    let refused = world.client.unregister_broker(BrokerId(4711)).await.unwrap_err();
    assert_eq!(refused.refusal().map(|refusal| refusal.code), Some(ErrorCode::BROKER_ID_NOT_REGISTERED), "{refused}");

    // Nobody asks whether it holds anything.
    world.brokers.kill(7).await;
    broker(world, 7, |broker| broker.fenced).await;
    world.client.unregister_broker(BrokerId(7)).await.expect("struck off");
    eventually("nobody knows it", async || {
        let cluster = world.client.describe_cluster().await.expect("an answer");
        cluster.brokers.iter().all(|broker| broker.id != BrokerId(7)).then_some(())
    })
    .await;
    let seen = world.until(&topic, 0, "its replica is missed", |one| one.offline == ids(&[7])).await;
    assert_eq!(seen.replicas, ids(&[0, 7]));
    assert!(matches!(
        world.client.describe_log_dirs(BrokerId(7), None).await,
        Err(Error::UnknownBroker { .. } | Error::Connect { .. })
    ));

    // It registers again when it starts.
    world.brokers.start(7).await;
    broker(world, 7, |broker| !broker.fenced).await;
    world.until(&topic, 0, "its replica is back", |one| one.in_sync == ids(&[0, 7])).await;
}

async fn a_running_broker_that_is_struck_off_lives_on_and_counts_for_nothing(world: &World) {
    world.brokers.add(7, "z").await;
    broker(world, 7, |broker| !broker.fenced).await;
    let shared = world.topic_with("shared", &[&[7, 0]], &[]).await;
    let alone = world.topic_with("alone", &[&[7]], &[]).await;
    world.client.unregister_broker(BrokerId(7)).await.expect("struck off");
    world.until(&shared, 0, "another leads", |one| one.leader == Some(BrokerId(0)) && one.in_sync == ids(&[0])).await;
    world.until(&alone, 0, "nobody leads", |one| one.leader.is_none() && one.in_sync.is_empty()).await;

    // It does not register again by itself, however often it is told that nobody knows it.
    tokio::time::sleep(THREE_SESSIONS).await;
    let cluster = world.client.describe_cluster().await.expect("an answer");
    assert!(cluster.brokers.iter().all(|broker| broker.id != BrokerId(7)), "{cluster:?}");
    let seen = world.look(&shared).await.expect("the topic").partitions.remove(0);
    assert_eq!((seen.leader, seen.replicas, seen.in_sync), (Some(BrokerId(0)), ids(&[7, 0]), ids(&[0])));
    let refused = change(world, &shared, Target::Replicas(ids(&[7, 1])), false).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    // Its process lives, and answers who asks.
    world.client_of(7).await.describe_cluster().await.expect("an answer");

    // A process that is told to end would wait for a controller that does not know it.
    world.brokers.kill(7).await;
    world.brokers.start(7).await;
    broker(world, 7, |broker| !broker.fenced).await;
    world.until(&shared, 0, "it is back", |one| one.in_sync.len() == 2).await;
    world.until(&alone, 0, "it leads again", |one| one.leader == Some(BrokerId(7))).await;
}

async fn new_partitions_need_a_broker_that_is_alive(world: &World) {
    let topic = world.topic_with("grown", &[&[0]], &[]).await;
    world.brokers.kill(2).await;
    broker(world, 2, |broker| broker.fenced).await;
    let words = |partition: i32| {
        format!(
            "All brokers specified in the manual partition assignment for partition {partition} are fenced or in controlled shutdown."
        )
    };
    let refused = world.client.create_partitions(&topic, 2, Some(&[ids(&[2])])).await.unwrap_err();
    let refusal = refused.refusal().expect("a refusal");
    assert_eq!((refusal.code, refusal.message.clone()), (ErrorCode::INVALID_REPLICA_ASSIGNMENT, Some(words(1))));
    let layout = Layout::Manual(vec![ids(&[0]), ids(&[2])]);
    let topic = NewTopic { name: world.name("new"), layout, configs: BTreeMap::new() };
    let answers = world.client.create_topics(std::slice::from_ref(&topic), false).await.whole().expect("an answer");
    let refusal = answers[&topic.name].as_ref().unwrap_err();
    assert_eq!((refusal.code, refusal.message.clone()), (ErrorCode::INVALID_REPLICA_ASSIGNMENT, Some(words(1))));
}

/// Brokers are fenced after two seconds of silence.
const THREE_SESSIONS: Duration = Duration::from_secs(6);

/// A broker, once it is as it should be in everybody's eyes.
async fn broker(world: &World, id: i32, holds: impl Fn(&Broker) -> bool) -> Broker {
    eventually("the broker is as it should be", async || {
        let cluster = world.client.describe_cluster().await.expect("an answer");
        cluster.brokers.into_iter().find(|broker| broker.id == BrokerId(id)).filter(|broker| holds(broker))
    })
    .await
}
