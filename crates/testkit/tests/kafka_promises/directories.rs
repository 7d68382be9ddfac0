//! Throttled moves between directories, and directories that take no new replicas: promises that change settings of
//! brokers, and so have brokers of their own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use evenkeel_kafka::{
    BrokerId, ErrorCode, Refusal, TopicPartition,
    calls::{
        configs::{Change, Resource},
        reassignments::Target,
        topics::{Layout, NewTopic},
    },
};

use crate::{
    log_dirs::{choose, held, paths},
    reassignments::change,
    world::{World, eventually, ids},
};

promises_on_own_brokers!(2: a_throttled_move_between_directories_can_be_watched_and_cancelled, a_cordoned_directory_gets_nothing_new);

const DIRECTORY_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
const CORDONED: &str = "cordoned.log.dirs";

async fn a_throttled_move_between_directories_can_be_watched_and_cancelled(world: &World) {
    let broker = Resource::Broker(BrokerId(0));
    world.configure(broker.clone(), BTreeMap::from([(DIRECTORY_RATE.to_owned(), Change::Set("1".to_owned()))])).await;
    eventually("the rate is set", async || {
        (world.setting(&broker, DIRECTORY_RATE).await.as_deref() == Some("1")).then_some(())
    })
    .await;
    let topic = world.topic(&[&[0, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    world.fill(&partition).await;
    let before = world.look(&topic).await;
    let here = held(world, 0, &partition).await.remove(0).0;
    let other = paths(world, 0).await.into_iter().find(|path| *path != here).unwrap();

    assert_eq!(choose(world, 0, &partition, &other).await, Ok(()));
    let both = eventually("both are there", async || {
        let held: BTreeMap<_, _> = held(world, 0, &partition).await.into_iter().collect();
        (held.len() == 2 && held[&other].lag > 0).then_some(held)
    })
    .await;
    assert!(both[&other].future && both[&other].bytes < both[&here].bytes, "{both:?}");
    assert!(!both[&here].future && both[&here].lag == 0, "{both:?}");
    assert_eq!(world.look(&topic).await, before, "the cluster does not see it");

    assert_eq!(choose(world, 0, &partition, &here).await, Ok(()), "a cancel is a choice of where it is");
    eventually("one is there", async || {
        let held = held(world, 0, &partition).await;
        (held.len() == 1 && held[0].0 == here).then_some(())
    })
    .await;
}

async fn a_cordoned_directory_gets_nothing_new(world: &World) {
    let old = world.topic(&[&[0, 1]]).await;
    let [first, second] = paths(world, 0).await.try_into().expect("two directories");
    let refused = cordon(world, "/there/is/no/such/directory").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::INVALID_REQUEST);

    assert_eq!(cordon(world, &first).await, Ok(()));
    until_cordoned(world, &[&first]).await;
    let topic = world.topic_with("one-is-left", &[&[0], &[0], &[0], &[0]], &[]).await;
    for index in 0..4 {
        let partition = TopicPartition::new(&topic, index);
        let (path, _) = eventually("it is there", async || held(world, 0, &partition).await.pop()).await;
        assert_eq!(path, second);
        let refused = choose(world, 0, &partition, &first).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    }

    // With all of them cordoned the broker is passed over, but not when it is named.
    assert_eq!(cordon(world, "*").await, Ok(()));
    until_cordoned(world, &[&first, &second]).await;
    let everywhere = Layout::Automatic { partitions: Some(1), replication_factor: Some(2) };
    // The controller may hear of it later than the broker: a topic that was still made there is not tried again.
    let tries = AtomicU32::new(0);
    let refused = eventually("nobody may choose the broker", async || {
        let name = format!("automatic-{}", tries.fetch_add(1, Ordering::Relaxed));
        create(world, &name, &everywhere).await.err()
    });
    assert_eq!(refused.await.code, ErrorCode::INVALID_REPLICATION_FACTOR);
    assert_eq!(create(world, "by-name", &Layout::Manual(vec![ids(&[0, 1])])).await, Ok(()));
    assert_eq!(change(world, &topic, Target::Replicas(ids(&[1])), false).await, Ok(()));
    assert_eq!(change(world, &old, Target::Replicas(ids(&[1, 0])), false).await, Ok(()));
}

async fn cordon(world: &World, dirs: &str) -> Result<(), Refusal> {
    let broker = Resource::Broker(BrokerId(0));
    let changes = BTreeMap::from([(CORDONED.to_owned(), Change::Set(dirs.to_owned()))]);
    let mut answers = world
        .client
        .alter_configs(&BTreeMap::from([(broker.clone(), changes)]), false)
        .await
        .whole()
        .expect("an answer");
    answers.remove(&broker).expect("the broker's")
}

async fn until_cordoned(world: &World, wanted: &[&str]) {
    eventually("the cordon shows", async || {
        let described = world.client.describe_log_dirs(BrokerId(0), None).await.expect("an answer");
        let dirs = described.dirs.iter().filter(|(_, dir)| dir.as_ref().is_ok_and(|dir| dir.cordoned));
        dirs.map(|(path, _)| path.as_str()).eq(wanted.iter().copied()).then_some(())
    })
    .await;
}

async fn create(world: &World, thing: &str, layout: &Layout) -> Result<(), Refusal> {
    let topic = NewTopic { name: world.name(thing), layout: layout.clone(), configs: BTreeMap::new() };
    let mut answers = world.client.create_topics(&[topic], false).await.whole().expect("an answer");
    answers.remove(&world.name(thing)).expect("the topic's")
}
