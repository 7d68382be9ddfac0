//! Settings of topics and brokers.

use std::collections::BTreeMap;

use evenkeel_kafka::{
    BrokerId, ErrorCode, Refusal,
    calls::configs::{Change, Resource, Setting, Source},
};

use crate::world::{RATES, THROTTLED, World, eventually};

promises!(
    a_topics_setting_is_set_and_taken_back,
    lists_grow_and_shrink,
    a_setting_tells_where_it_comes_from,
    what_no_broker_knows_is_taken_for_a_secret,
    throttles_of_topics_are_lists_of_replicas,
    rates_show_only_where_they_are_set,
    bad_settings_are_refused,
    values_that_nothing_can_have_are_refused,
);

const RETENTION: &str = "retention.ms";
const CLEANUP: &str = "cleanup.policy";

async fn a_topics_setting_is_set_and_taken_back(world: &World) {
    let topic = Resource::Topic(world.topic(&[&[0]]).await);
    let before = describe(world, &topic, RETENTION).await.expect("a setting of every topic");
    assert_eq!(before.source, Source::Default);
    assert_eq!(alter(world, &topic, RETENTION, Change::Set("3600000".to_owned())).await, Ok(()));
    let set =
        until(world, &topic, RETENTION, |seen| seen.is_some_and(|one| one.source == Source::Topic)).await.unwrap();
    assert_eq!(set.value.as_deref(), Some("3600000"));
    assert_eq!(alter(world, &topic, RETENTION, Change::Delete).await, Ok(()));
    assert_eq!(until(world, &topic, RETENTION, |seen| seen != Some(&set)).await, Some(before));
}

async fn lists_grow_and_shrink(world: &World) {
    let topic = Resource::Topic(world.topic(&[&[0]]).await);
    for (change, expected) in [
        (Change::Append("compact".to_owned()), "delete,compact"),
        (Change::Append("compact".to_owned()), "delete,compact"),
        (Change::Subtract("delete".to_owned()), "compact"),
    ] {
        assert_eq!(alter(world, &topic, CLEANUP, change).await, Ok(()));
        until(world, &topic, CLEANUP, |seen| seen.and_then(|one| one.value.as_deref()) == Some(expected)).await;
    }
}

async fn a_setting_tells_where_it_comes_from(world: &World) {
    let broker = Resource::Broker(BrokerId(1));
    let rack = describe(world, &broker, "broker.rack").await.expect("a broker's setting");
    assert_eq!((rack.value.as_deref(), rack.source, rack.read_only), (Some("b"), Source::File, true));
}

async fn what_no_broker_knows_is_taken_for_a_secret(world: &World) {
    let (broker, unknown) = (Resource::Broker(BrokerId(1)), "no.such.setting");
    assert_eq!(alter(world, &broker, unknown, Change::Set("1".to_owned())).await, Ok(()));
    let secret = until(world, &broker, unknown, |seen| seen.is_some()).await.unwrap();
    assert_eq!((secret.value, secret.source, secret.sensitive), (None, Source::Broker, true));
    assert_eq!(alter(world, &broker, unknown, Change::Delete).await, Ok(()));
    until(world, &broker, unknown, |seen| seen.is_none()).await;
}

async fn throttles_of_topics_are_lists_of_replicas(world: &World) {
    let topic = Resource::Topic(world.topic(&[&[0, 1]]).await);
    for key in THROTTLED {
        assert_eq!(describe(world, &topic, key).await.expect("a setting of every topic").value.as_deref(), Some(""));
        for good in ["0:0,0:1", "*"] {
            assert_eq!(alter(world, &topic, key, Change::Set(good.to_owned())).await, Ok(()));
            until(world, &topic, key, |seen| seen.and_then(|one| one.value.as_deref()) == Some(good)).await;
        }
        let refused = alter(world, &topic, key, Change::Set("nonsense".to_owned())).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode(40));
        assert_eq!(alter(world, &topic, key, Change::Delete).await, Ok(()));
    }
}

async fn rates_show_only_where_they_are_set(world: &World) {
    for key in RATES {
        let rate = describe(world, &Resource::Broker(BrokerId(0)), key).await.expect("set for all promises");
        assert_eq!((rate.value.as_deref(), rate.source), (Some("1"), Source::Broker));
        assert_eq!(describe(world, &Resource::AllBrokers, key).await, None);
    }
}

async fn bad_settings_are_refused(world: &World) {
    let topic = Resource::Topic(world.topic(&[&[0]]).await);
    for (resource, key, value, code) in [
        (&topic, RETENTION, "soon", 40),
        (&topic, "no.such.setting", "1", 40),
        (&Resource::Topic(world.name("nowhere")), RETENTION, "1", 3),
        (&Resource::Broker(BrokerId(1)), "broker.rack", "z", 42),
    ] {
        let answer = alter(world, resource, key, Change::Set(value.to_owned())).await;
        assert_eq!(answer.as_ref().map_err(|refusal| refusal.code), Err(ErrorCode(code)), "{key}={value}: {answer:?}");
    }
    // A dry run tells the same, and changes nothing.
    let changes = BTreeMap::from([(RETENTION.to_owned(), Change::Set("1000".to_owned()))]);
    let answers =
        world.client.alter_configs(&BTreeMap::from([(topic.clone(), changes)]), true).await.whole().expect("an answer");
    assert_eq!(answers, BTreeMap::from([(topic.clone(), Ok(()))]));
    assert_eq!(describe(world, &topic, RETENTION).await.map(|one| one.source), Some(Source::Default));
}

async fn values_that_nothing_can_have_are_refused(world: &World) {
    let topic = Resource::Topic(world.topic(&[&[0]]).await);
    for (key, value) in [
        ("cleanup.policy", "shred"),
        ("compression.type", "zip"),
        ("delete.retention.ms", "-1"),
        ("flush.messages", "0"),
        ("index.interval.bytes", "-1"),
        ("local.retention.ms", "-3"),
        ("max.compaction.lag.ms", "0"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "Never"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.insync.replicas", "0"),
        (RETENTION, "-2"),
        ("segment.bytes", "1000"),
        ("segment.index.bytes", "3"),
        ("segment.ms", "0"),
        ("unclean.leader.election.enable", "perhaps"),
    ] {
        assert_eq!(would_alter(world, &topic, key, value).await, Err(ErrorCode(40)), "{key}={value}");
    }
    for (key, value) in [
        ("background.threads", "0"),
        ("log.cleanup.policy", "shred"),
        ("log.retention.ms", "0"),
        ("log.roll.ms", "0"),
        ("log.segment.bytes", "1000"),
        ("message.max.bytes", "-1"),
        ("min.insync.replicas", "0"),
        ("num.io.threads", "0"),
        ("num.network.threads", "0"),
        ("num.replica.fetchers", "0"),
        ("unclean.leader.election.enable", "perhaps"),
    ] {
        for resource in [Resource::AllBrokers, Resource::Broker(BrokerId(1))] {
            assert_eq!(
                would_alter(world, &resource, key, value).await,
                Err(ErrorCode(42)),
                "{resource:?} {key}={value}"
            );
        }
    }
}

/// What a dry run says.
async fn would_alter(world: &World, resource: &Resource, key: &str, value: &str) -> Result<(), ErrorCode> {
    let changes = BTreeMap::from([(key.to_owned(), Change::Set(value.to_owned()))]);
    let changes = BTreeMap::from([(resource.clone(), changes)]);
    let mut answers = world.client.alter_configs(&changes, true).await.whole().expect("an answer");
    answers.remove(resource).expect("the resource's answer").map_err(|refusal| refusal.code)
}

pub(crate) async fn alter(world: &World, resource: &Resource, key: &str, change: Change) -> Result<(), Refusal> {
    let changes = BTreeMap::from([(resource.clone(), BTreeMap::from([(key.to_owned(), change)]))]);
    let mut answers = world.client.alter_configs(&changes, false).await.whole().expect("an answer");
    answers.remove(resource).expect("the resource's answer")
}

async fn describe(world: &World, resource: &Resource, key: &str) -> Option<Setting> {
    let answers =
        world.client.describe_configs(std::slice::from_ref(resource), Some(&[key])).await.whole().expect("an answer");
    answers[resource].as_ref().expect("its settings").get(key).cloned()
}

pub(crate) async fn until(
    world: &World,
    resource: &Resource,
    key: &str,
    holds: impl Fn(Option<&Setting>) -> bool,
) -> Option<Setting> {
    eventually("the setting", async || Some(describe(world, resource, key).await).filter(|seen| holds(seen.as_ref())))
        .await
}
