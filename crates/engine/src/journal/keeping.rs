//! Makes the journal's topic, and looks after it: what it holds must survive a broker, and must never expire.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    BrokerId, Client, Error, ErrorCode, TopicPartition,
    calls::{
        cluster::Broker,
        configs::{Change, Resource, Settings},
        reassignments::Target,
        topics::{Layout, NewTopic, Partition, Which},
    },
};

use super::topic::TOPIC;
use crate::{said::chain, watch::MIN_IN_SYNC};

/// As many replicas as there are brokers for, up to this.
const REPLICAS: usize = 3;
/// What one record may weigh with all that brokers add: some times a piece.
const MESSAGE_BYTES: usize = 2 * 1024 * 1024;

const POLICY: &str = "cleanup.policy";
const LARGEST: &str = "max.message.bytes";

/// What has to change about the topic.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mending {
    /// Without these the journal cannot be relied on.
    settings: BTreeMap<&'static str, String>,
    /// Where it should be.
    replicas: Option<Vec<BrokerId>>,
}

/// Makes the topic; one that is there gets the settings that it needs.
pub(super) async fn make(client: &Client) -> Result<(), Error> {
    // Brokers that are down for now count, where they are told: the journal is born once, perhaps while most of a
    // new cluster still starts.
    let replicas = wanted_replicas(&client.describe_cluster().await?.brokers);
    let configs = [
        (POLICY, "compact".to_owned()),
        (MIN_IN_SYNC, least_in_sync(replicas).to_string()),
        // Small segments that are compacted soon, so that little is read at a start.
        ("segment.bytes", (16 * 1024 * 1024).to_string()),
        ("min.cleanable.dirty.ratio", "0.1".to_owned()),
        (LARGEST, MESSAGE_BYTES.to_string()),
    ];
    let topic = NewTopic {
        name: TOPIC.to_owned(),
        layout: Layout::Automatic { partitions: Some(1), replication_factor: i16::try_from(replicas).ok() },
        configs: configs.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    match client.create_topics(&[topic], false).await.whole()?.remove(TOPIC) {
        Some(Err(refusal)) if refusal.code == ErrorCode::TOPIC_ALREADY_EXISTS => mend(client).await,
        Some(Err(refusal)) => Err(Error::Refused { operation: "make the journal's topic", refusal }),
        _ => Ok(()),
    }
}

/// Looks whether the topic is as it should be, and mends what is not. That it cannot be given more replicas now is
/// no error; that it is not kept for ever is.
pub(super) async fn mend(client: &Client) -> Result<(), Error> {
    let operation = "look after the journal's topic";
    let named = Resource::Topic(TOPIC.to_owned());
    let names = [POLICY, MIN_IN_SYNC, LARGEST];
    let described = client.describe_configs(std::slice::from_ref(&named), Some(&names)).await.whole()?.remove(&named);
    let found = client.topics(Which::Named(&[TOPIC.to_owned()])).await?.remove(TOPIC);
    let (settings, topic) = match (described, found) {
        (Some(Ok(settings)), Some(Ok(topic))) => (settings, topic),
        // Whoever was asked may not have heard of it yet, or must not tell: there is another time.
        (Some(Err(refusal)), _) | (_, Some(Err(refusal))) => {
            tracing::warn!(%refusal, "whether the journal's topic is as it should be is not known");
            return Ok(());
        }
        _ => return Ok(()),
    };
    let Some(partition) = topic.partitions.first() else { return Ok(()) };
    let mending = mending(&settings, partition, &client.describe_cluster().await?.brokers);
    if !mending.settings.is_empty() {
        tracing::warn!(settings = ?mending.settings, "settings of the journal's topic are mended");
        let changes = mending.settings.into_iter().map(|(name, value)| (name.to_owned(), Change::Set(value))).collect();
        let altered = client.alter_configs(&BTreeMap::from([(named.clone(), changes)]), false).await;
        if let Some(Err(refusal)) = altered.whole()?.remove(&named) {
            return Err(Error::Refused { operation, refusal });
        }
    }
    if let Some(replicas) = mending.replicas
        && let Err(error) = grow(client, replicas).await
    {
        tracing::warn!(error = chain(&error), "the journal has a single replica");
    }
    Ok(())
}

async fn grow(client: &Client, replicas: Vec<BrokerId>) -> Result<(), Error> {
    let partition = TopicPartition::new(TOPIC, 0);
    if !client.list_reassignments(Some(std::slice::from_ref(&partition))).await?.is_empty() {
        return Ok(());
    }
    tracing::info!(?replicas, "the journal, which has a single replica, gets more");
    let target = BTreeMap::from([(partition.clone(), Target::Replicas(replicas))]);
    match client.alter_reassignments(&target, true).await.whole()?.remove(&partition) {
        Some(Err(refusal)) => Err(Error::Refused { operation: "give the journal more replicas", refusal }),
        _ => Ok(()),
    }
}

/// As many as there are brokers and racks for: two in one rack would break the rule that others are held to. With a
/// single rack nobody can keep to it, and it is better not to be lost with one broker.
fn wanted_replicas(brokers: &[Broker]) -> usize {
    let racks: BTreeSet<&str> = brokers.iter().filter_map(|broker| broker.rack.as_deref()).collect();
    let places = if racks.len() < 2 { brokers.len() } else { racks.len().min(brokers.len()) };
    places.clamp(1, REPLICAS)
}

/// With one broker down it can still be written.
fn least_in_sync(replicas: usize) -> usize {
    replicas.saturating_sub(1).max(1)
}

fn mending(settings: &Settings, partition: &Partition, brokers: &[Broker]) -> Mending {
    let value = |name: &str| settings.get(name).and_then(|setting| setting.value.as_deref());
    let number = |name: &str| value(name).and_then(|value| value.parse::<usize>().ok());
    let mut mending = Mending::default();
    if value(POLICY).is_some_and(|policy| policy.trim() != "compact") {
        mending.settings.insert(POLICY, "compact".to_owned());
    }
    if number(LARGEST).is_some_and(|bytes| bytes < MESSAGE_BYTES) {
        mending.settings.insert(LARGEST, MESSAGE_BYTES.to_string());
    }
    // Somebody may want more than we do, but not more than there are. It is not raised while that would shut us out.
    let (replicas, least) = (partition.replicas.len(), least_in_sync(partition.replicas.len()));
    if number(MIN_IN_SYNC).is_some_and(|now| now > replicas || (now < least && partition.in_sync.len() >= least)) {
        mending.settings.insert(MIN_IN_SYNC, least.to_string());
    }
    // Only a single one is sure to be none that somebody wanted.
    if replicas == 1 {
        let more = more_replicas(&partition.replicas, brokers);
        mending.replicas = (more.len() > 1).then_some(more);
    }
    mending
}

/// These, and live brokers of other racks, and after them any live ones.
fn more_replicas(now: &[BrokerId], brokers: &[Broker]) -> Vec<BrokerId> {
    let mut chosen = now.to_vec();
    let wanted = wanted_replicas(brokers);
    while chosen.len() < wanted {
        let racks: BTreeSet<Option<&str>> =
            brokers.iter().filter(|it| chosen.contains(&it.id)).map(|it| it.rack.as_deref()).collect();
        let free = brokers.iter().filter(|it| !it.fenced && !chosen.contains(&it.id));
        let Some(next) = free.min_by_key(|it| (racks.contains(&it.rack.as_deref()), it.id)) else { break };
        chosen.push(next.id);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::calls::configs::{Setting, Source};

    use super::*;

    fn settings(values: [&str; 3]) -> Settings {
        let setting = |value: &str| Setting {
            value: Some(value.to_owned()),
            source: Source::Topic,
            sensitive: false,
            read_only: false,
        };
        [POLICY, MIN_IN_SYNC, LARGEST].map(str::to_owned).into_iter().zip(values.map(setting)).collect()
    }

    fn partition(replicas: &[i32], in_sync: &[i32]) -> Partition {
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
        let (replicas, in_sync) = (ids(replicas), ids(in_sync));
        Partition { index: 0, leader: None, leader_epoch: 0, replicas, in_sync, offline: Vec::new() }
    }

    fn brokers(racks: &[(&str, bool)]) -> Vec<Broker> {
        let broker = |(id, (rack, fenced)): (usize, &(&str, bool))| Broker {
            id: BrokerId(id as i32),
            host: String::new(),
            port: 0,
            rack: Some((*rack).to_owned()),
            fenced: *fenced,
        };
        racks.iter().enumerate().map(broker).collect()
    }

    #[test]
    fn a_topic_as_it_should_be_is_left_alone() {
        let four = brokers(&[("a", false); 4]);
        for in_sync in [&[0, 1, 2][..], &[0]] {
            let found = mending(&settings(["compact", "2", "2097152"]), &partition(&[0, 1, 2], in_sync), &four);
            assert_eq!(found, Mending::default());
        }
        let stricter = mending(&settings(["compact", "3", "9999999"]), &partition(&[0, 1, 2], &[0, 1]), &four);
        assert_eq!(stricter, Mending::default());
    }

    #[test]
    fn what_would_lose_or_refuse_records_is_mended() {
        let found = mending(&settings(["delete", "1", "1048588"]), &partition(&[0, 1, 2], &[0, 1]), &[]);
        let wanted = [(POLICY, "compact"), (MIN_IN_SYNC, "2"), (LARGEST, "2097152")];
        assert_eq!(found.settings, wanted.map(|(name, value)| (name, value.to_owned())).into());
        let shut_out = mending(&settings(["compact", "1", "2097152"]), &partition(&[0, 1, 2], &[0]), &[]);
        assert_eq!(shut_out, Mending::default());
        let impossible = mending(&settings(["compact", "2", "2097152"]), &partition(&[0], &[0]), &[]);
        assert_eq!(impossible.settings, [(MIN_IN_SYNC, "1".to_owned())].into());
    }

    #[test]
    fn no_rack_gets_two_replicas() {
        let count = |racks: &[(&str, bool)]| wanted_replicas(&brokers(racks));
        assert_eq!(count(&[("a", false), ("b", false), ("a", false)]), 2);
        assert_eq!(count(&[("a", false), ("b", false), ("c", false), ("d", false)]), 3);
        assert_eq!(count(&[("a", false), ("a", false)]), 2);
        let nowhere: Vec<Broker> =
            brokers(&[("", false); 4]).into_iter().map(|it| Broker { rack: None, ..it }).collect();
        assert_eq!((wanted_replicas(&nowhere), wanted_replicas(&nowhere[..1])), (3, 1));
    }

    #[test]
    fn a_single_replica_gets_company_in_other_racks() {
        let alone = |racks: &[(&str, bool)]| {
            mending(&settings(["compact", "1", "2097152"]), &partition(&[0], &[0]), &brokers(racks)).replicas
        };
        let ids = |ids: [i32; 3]| Some(ids.map(BrokerId).to_vec());
        assert_eq!(alone(&[("a", false), ("a", false), ("b", false), ("c", false)]), ids([0, 2, 3]));
        let two = |other| Some(vec![BrokerId(0), BrokerId(other)]);
        assert_eq!(alone(&[("a", false), ("a", false), ("b", true), ("b", false)]), two(3));
        assert_eq!(alone(&[("a", false), ("b", true)]), None);
    }
}
