//! What breaks while data moves: a directory, a leader. How long a throttled move takes, and what a throttle counts.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    BrokerId, ErrorCode, TopicPartition,
    calls::{
        configs::{Change, Resource},
        offsets::Isolation,
        reassignments::Target,
    },
    topic::{Gaps, Start, TopicReader, Until},
};
use tokio::time::{Instant, sleep};

use crate::{
    log_dirs::{choose, held, paths},
    reassignments::{change, finished, listed, start},
    world::{THROTTLED, World, eventually, ids},
};

promises_on_own_brokers!(
    4: a_directory_that_fails_takes_its_replicas_along_and_not_the_broker,
    a_leader_that_dies_during_a_move_does_not_end_it,
    a_throttled_move_takes_its_time,
    followers_in_sync_use_up_a_throttle,
    a_partition_that_nobody_leads_can_be_left_out_by_a_reader,
);

async fn a_directory_that_fails_takes_its_replicas_along_and_not_the_broker(world: &World) {
    // Led by the broker that will suffer, and led by another.
    let topic = world.topic(&[&[0, 1], &[0, 1], &[0, 1], &[1, 0], &[1, 0], &[1, 0]]).await;
    let of = |index: usize| TopicPartition::new(&topic, i32::try_from(index).expect("a small index"));
    let mut homes = Vec::new();
    for index in 0..6 {
        let home = eventually("it is there", async || held(world, 0, &of(index)).await.pop()).await.0;
        homes.push(home);
    }
    let dirs = world.brokers.log_dirs(0).await;
    let broken = dirs.iter().position(|dir| dir.to_str() == Some(&homes[0])).expect("one of its directories");
    world.brokers.break_dir(0, broken).await;

    eventually("the broker tells of it", async || {
        let described = world.client.describe_log_dirs(BrokerId(0), None).await.expect("an answer");
        let told = described.dirs.iter().map(|(path, dir)| (path, dir.as_ref().err().map(|refusal| refusal.code)));
        let expected = |path: &String| (*path == homes[0]).then_some(ErrorCode::STORAGE_ERROR);
        told.clone().all(|(path, code)| code == expected(path)).then_some(())
    })
    .await;
    for (index, home) in homes.iter().enumerate() {
        let led_here = index < 3;
        if *home == homes[0] {
            let seen = world.until(&topic, index, "its replica is missed", |one| one.in_sync == ids(&[1])).await;
            assert_eq!((seen.leader, seen.offline), (Some(BrokerId(1)), ids(&[0])), "{index}");
            // A leader was chosen anew only where it had to be.
            assert_eq!(seen.leader_epoch, i32::from(led_here), "{index}");
        } else {
            let seen = world
                .until(&topic, index, "it lacks nothing", |one| one.in_sync.len() == 2 && one.offline.is_empty())
                .await;
            let led_by = BrokerId(if led_here { 0 } else { 1 });
            assert_eq!((seen.leader, seen.leader_epoch), (Some(led_by), 0), "{index}");
        }
    }

    // What is new goes to the other directory, and nothing is sent to the broken one.
    let good = paths(world, 0).await.into_iter().find(|path| *path != homes[0]).expect("another directory");
    let new = world.topic_with("new", &[&[0], &[0], &[0]], &[]).await;
    for index in 0..3 {
        let partition = TopicPartition::new(&new, index);
        let (home, _) = eventually("it is there", async || held(world, 0, &partition).await.pop()).await;
        assert_eq!(home, good);
        let refused = choose(world, 0, &partition, &homes[0]).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::STORAGE_ERROR);
    }
    assert_eq!(choose(world, 0, &of(0), &good).await.unwrap_err().code, ErrorCode::STORAGE_ERROR);
    // A lost replica can be replaced meanwhile.
    start(world, &topic, &[2, 1]).await;
    finished(world, &topic).await;
    world.until(&topic, 0, "its place is taken", |one| one.replicas == ids(&[2, 1]) && one.offline.is_empty()).await;

    world.brokers.mend_dir(0, broken).await;
    for index in 1..6 {
        world.until(&topic, index, "all is as before", |one| one.in_sync.len() == 2 && one.offline.is_empty()).await;
    }
}

async fn a_leader_that_dies_during_a_move_does_not_end_it(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    start(world, &topic, &[2, 3]).await;
    world.brokers.kill(0).await;
    // The next in the long list (2, 3, 0, 1) that has everything.
    let seen = world.until(&topic, 0, "another leads", |one| one.leader == Some(BrokerId(1))).await;
    assert_eq!((seen.leader_epoch, seen.in_sync), (1, ids(&[1])));
    assert_eq!(seen.replicas, ids(&[2, 3, 0, 1]));
    assert!(listed(world, &topic).await.is_some(), "the move goes on");
    world.release(&topic).await;
    finished(world, &topic).await;
    let seen = world.until(&topic, 0, "the target", |one| one.replicas == ids(&[2, 3])).await;
    assert_eq!(seen.leader, Some(BrokerId(2)));

    world.brokers.start(0).await;
    let moved = [TopicPartition::new(&topic, 0)];
    eventually("what it had is no longer wanted", async || {
        // Whoever is asked where the broker is may not have heard that it is back.
        let told = world.client.describe_log_dirs(BrokerId(0), Some(&moved)).await.ok()?;
        told.dirs.values().flatten().all(|dir| dir.replicas.is_empty()).then_some(())
    })
    .await;
}

/// Bytes a second.
const RATE: u32 = 1_000_000;
/// What passes before a quota is looked at: a fetch is at most a mebibyte and a batch.
const UNSEEN: u32 = 2_000_000;

async fn a_throttled_move_takes_its_time(world: &World) {
    let topic = world.stalled_topic(&[&[0, 1]]).await;
    world.throttle(&RATE.to_string()).await;
    let began = Instant::now();
    start(world, &topic, &[2, 1]).await;
    finished(world, &topic).await;
    let took = began.elapsed();
    let (_, copy) = eventually("the copy", async || held(world, 2, &TopicPartition::new(&topic, 0)).await.pop()).await;
    let bytes = u32::try_from(copy.bytes).expect("a few megabytes");
    assert!(bytes > 2 * UNSEEN, "too little to tell");
    // Never a bound from above: how fast a machine is when it may be is nobody's promise.
    let least = Duration::from_secs(1).mul_f64(f64::from(bytes - UNSEEN) / f64::from(RATE));
    assert!(took >= least, "{bytes} bytes in {took:?}");
}

/// Written at once, and how far apart: two megabytes a second, twice the rate.
const PIECE: usize = 500_000;
const APART: Duration = Duration::from_millis(250);
/// Longer than the eleven seconds over which a quota is measured.
const PIECES: usize = 60;

async fn followers_in_sync_use_up_a_throttle(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    world.fill(&partition).await;
    // Of the leader's side alone: as a follower, a replica in sync is throttled whenever it lags for a moment.
    let leader_only = BTreeMap::from([(THROTTLED[0].to_owned(), Change::Set("*".to_owned()))]);
    world.configure(Resource::Topic(topic.clone()), leader_only).await;
    world.throttle(&RATE.to_string()).await;
    let write = async || {
        for _ in 0..PIECES {
            world.write(&partition, &[Bytes::from(vec![b'x'; PIECE])]).await;
            sleep(APART).await;
        }
    };
    write().await;
    change(world, &topic, Target::Replicas(ids(&[0, 1, 2])), true).await.expect("a move");
    write().await;
    assert!(listed(world, &topic).await.is_some(), "nothing is left for it");
    let copied = held(world, 2, &partition).await.pop().map_or(0, |(_, copy)| copy.bytes);
    let whole = held(world, 0, &partition).await.pop().expect("the leader's").1.bytes;
    assert!(copied < whole / 2, "{copied} of {whole} bytes came");
    let seen = world.look(&topic).await.expect("the topic").partitions.remove(0);
    assert_eq!(seen.in_sync, ids(&[0, 1]), "those in sync are not held up");
    world.release(&topic).await;
    finished(world, &topic).await;
}

async fn a_partition_that_nobody_leads_can_be_left_out_by_a_reader(world: &World) {
    let topic = world.topic(&[&[0], &[1]]).await;
    for index in 0..2 {
        world.write(&TopicPartition::new(&topic, index), &[Bytes::from_static(b"v")]).await;
    }
    world.brokers.kill(1).await;
    world.until(&topic, 1, "nobody leads", |one| one.leader.is_none()).await;
    let open = async |gaps| {
        // The strict one waits for as long as the client does.
        let client = world.client.with_patience(Duration::from_secs(5));
        TopicReader::open_with(client, &topic, &Start::Earliest, Until::End, Isolation::Committed, gaps).await
    };
    let refused = open(Gaps::Refuse).await.unwrap_err();
    assert_eq!(refused.refusal().map(|refusal| refusal.code), Some(ErrorCode::LEADER_NOT_AVAILABLE), "{refused:?}");
    let mut reader = open(Gaps::Tell).await.expect("a reader");
    let read = reader.next().await.expect("records").expect("some");
    assert_eq!(read.iter().map(|one| one.partition).collect::<Vec<_>>(), [0]);
    assert!(reader.next().await.expect("the end").is_none());
    assert_eq!(reader.gaps().keys().collect::<Vec<_>>(), [&1]);
}
