//! Brokers that go and come back: what the cluster shows of them, and what may be asked of it meanwhile.

use evenkeel_kafka::{
    BrokerId, Error, ErrorCode,
    calls::{cluster::Broker, reassignments::Target},
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

/// A broker, once it is as it should be in everybody's eyes.
async fn broker(world: &World, id: i32, holds: impl Fn(&Broker) -> bool) -> Broker {
    eventually("the broker is as it should be", async || {
        let cluster = world.client.describe_cluster().await.expect("an answer");
        cluster.brokers.into_iter().find(|broker| broker.id == BrokerId(id)).filter(|broker| holds(broker))
    })
    .await
}
