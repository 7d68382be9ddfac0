//! Makes the journal's topic, and looks after it: what it holds must survive a broker, and must never expire.
//!
//! It has as many replicas as there are brokers for, also when brokers come and go: one that has left the cluster is none to
//! wait for, one that is down may return. How many must be in sync follows, unless somebody has said otherwise: so it is on
//! record what we said.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    BrokerId, Client, Error, ErrorCode, TopicPartition,
    calls::{
        cluster::{Broker, Cluster},
        configs::{Change, Resource, Settings},
        reassignments::Target,
        topics::{Layout, NewTopic, Partition, Which},
    },
};
use serde::{Deserialize, Serialize};

use super::{Entry, entry, topic::TOPIC};
use crate::{said::chain, watch::MIN_IN_SYNC};

/// As many replicas as there are brokers for, up to this.
const REPLICAS: usize = 3;
/// What one record may weigh with all that brokers add: some times a piece.
const MESSAGE_BYTES: usize = 2 * 1024 * 1024;

/// The key of what we said.
pub(super) const KEY: &str = "keeping";

const POLICY: &str = "cleanup.policy";
const LARGEST: &str = "max.message.bytes";

/// What is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    /// How many replicas we said must be in sync.
    pub(super) min_in_sync: usize,
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    /// What we said.
    said: Option<Said>,
    /// Brokers that have a replica and were no part of the cluster at the last look: whoever answered may trail.
    missed: BTreeSet<BrokerId>,
}

impl Keeper {
    /// One that remembers what is on record.
    pub(super) fn new(said: Option<Said>) -> Keeper {
        Keeper { said, missed: BTreeSet::new() }
    }
}

/// What has to change about the topic.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mending {
    /// Without these the journal cannot be relied on.
    settings: BTreeMap<&'static str, String>,
    /// Where it should be.
    replicas: Option<Vec<BrokerId>>,
    /// What we say with that.
    said: Option<Said>,
}

/// Whether nobody at all can write, whoever it is: that may be for how the topic is set up.
pub(super) fn is_shut_to_all(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::NOT_ENOUGH_REPLICAS)
}

/// Makes the topic. One that is there is looked after by whoever has taken it over: another engine may act now.
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
        Some(Err(refusal)) if refusal.code == ErrorCode::TOPIC_ALREADY_EXISTS => Ok(()),
        Some(Err(refusal)) => Err(Error::Refused { operation: "make the journal's topic", refusal }),
        _ => Ok(()),
    }
}

/// Looks whether the topic is as it should be, and mends what is not. Brokers that are `avoided` get no replica: they are
/// to be empty. That it cannot be given other replicas now is no error; that it is not kept for ever is. Tells what is to be
/// on record then, if that has changed.
pub(super) async fn mend(
    client: &Client,
    keeper: &mut Keeper,
    avoided: &BTreeSet<BrokerId>,
) -> Result<Option<Entry>, Error> {
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
            return Ok(None);
        }
        _ => return Ok(None),
    };
    let Some(partition) = topic.partitions.first() else { return Ok(None) };
    let cluster = client.describe_cluster().await?;
    let mending = mending(&settings, partition, &cluster, avoided, keeper);
    keeper.missed = missing(&partition.replicas, &cluster);
    if !mending.settings.is_empty() {
        tracing::warn!(settings = ?mending.settings, "settings of the journal's topic are mended");
        let changes = mending.settings.into_iter().map(|(name, value)| (name.to_owned(), Change::Set(value))).collect();
        let altered = client.alter_configs(&BTreeMap::from([(named.clone(), changes)]), false).await;
        if let Some(Err(refusal)) = altered.whole()?.remove(&named) {
            return Err(Error::Refused { operation, refusal });
        }
    }
    if let Some(replicas) = mending.replicas
        && let Err(error) = place(client, replicas).await
    {
        tracing::warn!(error = chain(&error), "the journal has not the replicas that it should have");
    }
    let changed = mending.said.filter(|said| keeper.said != Some(*said));
    keeper.said = mending.said.or(keeper.said);
    Ok(changed.map(|said| entry(KEY.to_owned(), &said)))
}

async fn place(client: &Client, replicas: Vec<BrokerId>) -> Result<(), Error> {
    let partition = TopicPartition::new(TOPIC, 0);
    if !client.list_reassignments(Some(std::slice::from_ref(&partition))).await?.is_empty() {
        return Ok(());
    }
    tracing::info!(?replicas, "the journal gets other replicas");
    let target = BTreeMap::from([(partition.clone(), Target::Replicas(replicas))]);
    match client.alter_reassignments(&target, true).await.whole()?.remove(&partition) {
        Some(Err(refusal)) => Err(Error::Refused { operation: "give the journal other replicas", refusal }),
        _ => Ok(()),
    }
}

/// As many as there are brokers and racks for: two in one rack would break the rule that others are held to. With a
/// single rack nobody can keep to it, and it is better not to be lost with one broker.
fn wanted_replicas<'b>(brokers: impl IntoIterator<Item = &'b Broker>) -> usize {
    let (mut count, mut racks) = (0, BTreeSet::new());
    for broker in brokers {
        count += 1;
        racks.extend(broker.rack.as_deref());
    }
    let places = if racks.len() < 2 { count } else { racks.len().min(count) };
    places.clamp(1, REPLICAS)
}

/// With one broker down it can still be written.
fn least_in_sync(replicas: usize) -> usize {
    replicas.saturating_sub(1).max(1)
}

/// Who has a replica and is no part of the cluster, as far as that is told.
fn missing(replicas: &[BrokerId], cluster: &Cluster) -> BTreeSet<BrokerId> {
    let is_known = |id: &BrokerId| !cluster.names_fenced || cluster.brokers.iter().any(|broker| broker.id == *id);
    replicas.iter().copied().filter(|id| !is_known(id)).collect()
}

fn mending(
    settings: &Settings,
    partition: &Partition,
    cluster: &Cluster,
    avoided: &BTreeSet<BrokerId>,
    keeper: &Keeper,
) -> Mending {
    let value = |name: &str| settings.get(name).and_then(|setting| setting.value.as_deref());
    let number = |name: &str| value(name).and_then(|value| value.parse::<usize>().ok());
    let mut mending = Mending::default();
    if value(POLICY).is_some_and(|policy| policy.trim() != "compact") {
        mending.settings.insert(POLICY, "compact".to_owned());
    }
    if number(LARGEST).is_some_and(|bytes| bytes < MESSAGE_BYTES) {
        mending.settings.insert(LARGEST, MESSAGE_BYTES.to_string());
    }
    let replicas = places(&partition.replicas, cluster, avoided, &keeper.missed);
    // Fewer must be in sync before there are fewer, and more only once there are more.
    let count = replicas.len().min(partition.replicas.len());
    if let Some(now) = number(MIN_IN_SYNC) {
        let least = least_in_sync(count);
        let ours = keeper.said.is_some_and(|said| said.min_in_sync == now);
        // Somebody may want more than we do, but not more than there are. It is not raised while that would shut us out.
        let may_rise = now < least && partition.in_sync.len() >= least;
        let after = if now > count || may_rise || (ours && now > least) { least } else { now };
        if after != now {
            mending.settings.insert(MIN_IN_SYNC, after.to_string());
        }
        mending.said = (after == least).then_some(Said { min_in_sync: after });
    }
    mending.replicas = Some(replicas).filter(|replicas| *replicas != partition.replicas);
    mending
}

/// Where it should be: where it is, but for brokers that have left the cluster; and as long as it has fewer replicas than
/// it could have, on live brokers of other racks, and after them on any live ones.
fn places(
    now: &[BrokerId],
    cluster: &Cluster,
    avoided: &BTreeSet<BrokerId>,
    missed: &BTreeSet<BrokerId>,
) -> Vec<BrokerId> {
    let gone = missing(now, cluster);
    // Who was there at the last look is waited for.
    let mut chosen: Vec<BrokerId> =
        now.iter().copied().filter(|id| !(gone.contains(id) && missed.contains(id))).collect();
    if chosen.is_empty() {
        return now.to_vec();
    }
    let brokers: Vec<&Broker> = cluster.brokers.iter().filter(|it| !avoided.contains(&it.id)).collect();
    let wanted = wanted_replicas(brokers.iter().copied());
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

    fn cluster(racks: &[(&str, bool)]) -> Cluster {
        Cluster { id: String::new(), controller: None, brokers: brokers(racks), names_fenced: true }
    }

    /// What has to change where nobody is avoided and nothing is remembered.
    fn first(settings: &Settings, partition: &Partition, cluster: &Cluster) -> Mending {
        mending(settings, partition, cluster, &BTreeSet::new(), &Keeper::default())
    }

    fn said(min_in_sync: usize) -> Option<Said> {
        Some(Said { min_in_sync })
    }

    #[test]
    fn a_topic_as_it_should_be_is_left_alone() {
        let four = cluster(&[("a", false); 4]);
        for in_sync in [&[0, 1, 2][..], &[0]] {
            let found = first(&settings(["compact", "2", "2097152"]), &partition(&[0, 1, 2], in_sync), &four);
            assert_eq!(found, Mending { said: said(2), ..Mending::default() });
        }
        let stricter = first(&settings(["compact", "3", "9999999"]), &partition(&[0, 1, 2], &[0, 1]), &four);
        assert_eq!(stricter, Mending::default());
    }

    #[test]
    fn what_would_lose_or_refuse_records_is_mended() {
        let three = cluster(&[("a", false); 3]);
        let found = first(&settings(["delete", "1", "1048588"]), &partition(&[0, 1, 2], &[0, 1]), &three);
        let wanted = [(POLICY, "compact"), (MIN_IN_SYNC, "2"), (LARGEST, "2097152")];
        assert_eq!(found.settings, wanted.map(|(name, value)| (name, value.to_owned())).into());
        let shut_out = first(&settings(["compact", "1", "2097152"]), &partition(&[0, 1, 2], &[0]), &three);
        assert_eq!(shut_out, Mending::default());
        let one = cluster(&[("a", false)]);
        let impossible = first(&settings(["compact", "2", "2097152"]), &partition(&[0], &[0]), &one);
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
    fn too_few_replicas_get_company_in_other_racks() {
        let alone = |racks: &[(&str, bool)]| {
            first(&settings(["compact", "1", "2097152"]), &partition(&[0], &[0]), &cluster(racks)).replicas
        };
        let ids = |ids: &[i32]| Some(ids.iter().copied().map(BrokerId).collect::<Vec<_>>());
        assert_eq!(alone(&[("a", false), ("a", false), ("b", false), ("c", false)]), ids(&[0, 2, 3]));
        assert_eq!(alone(&[("a", false), ("a", false), ("b", true), ("b", false)]), ids(&[0, 3]));
        assert_eq!(alone(&[("a", false), ("b", true)]), None);
        // Nor does one that is to be empty get any, or count.
        let two = partition(&[0, 1], &[0, 1]);
        let grown = |avoided: &[i32]| {
            let avoided = avoided.iter().copied().map(BrokerId).collect();
            let three = cluster(&[("a", false); 3]);
            mending(&settings(["compact", "1", "2097152"]), &two, &three, &avoided, &Keeper::default()).replicas
        };
        assert_eq!((grown(&[]), grown(&[2])), (ids(&[0, 1, 2]), None));
    }

    #[test]
    fn who_has_left_the_cluster_is_not_waited_for_and_who_is_down_is() {
        let settings = settings(["compact", "2", "2097152"]);
        let three = partition(&[0, 1, 2], &[0, 1]);
        let look = |cluster: &Cluster, missed: &[i32]| {
            let keeper = Keeper { said: said(2), missed: missed.iter().copied().map(BrokerId).collect() };
            mending(&settings, &three, cluster, &BTreeSet::new(), &keeper)
        };
        let untouched = || Mending { said: said(2), ..Mending::default() };
        assert_eq!(look(&cluster(&[("a", false), ("a", false), ("a", true)]), &[2]), untouched(), "it is only down");
        let two = cluster(&[("a", false); 2]);
        assert_eq!(look(&two, &[]), untouched(), "whoever answered may trail");
        // Two replicas then, and one of them may be down.
        let shrunk = look(&two, &[2]);
        assert_eq!(shrunk.replicas, Some([0, 1].map(BrokerId).to_vec()));
        assert_eq!((shrunk.settings, shrunk.said), ([(MIN_IN_SYNC, "1".to_owned())].into(), said(1)));
        let unnamed = Cluster { names_fenced: false, ..two.clone() };
        assert_eq!(look(&unnamed, &[2]), untouched(), "who is down is not named");
        let mut another = cluster(&[("a", false); 4]);
        another.brokers.remove(2);
        let replaced = look(&another, &[2]);
        assert_eq!((replaced.replicas, replaced.settings), (Some([0, 1, 3].map(BrokerId).to_vec()), BTreeMap::new()));
    }

    #[test]
    fn how_many_must_be_in_sync_follows_the_replicas_unless_somebody_else_has_said_so() {
        let two_of_two = |remembered: Option<Said>| {
            let keeper = Keeper { said: remembered, missed: BTreeSet::new() };
            let (found, two) = (settings(["compact", "2", "2097152"]), partition(&[0, 1], &[0, 1]));
            mending(&found, &two, &cluster(&[("a", false); 2]), &BTreeSet::new(), &keeper)
        };
        // We said two when there were three.
        let ours = two_of_two(said(2));
        assert_eq!((ours.settings, ours.said), ([(MIN_IN_SYNC, "1".to_owned())].into(), said(1)));
        for remembered in [said(1), None] {
            assert_eq!(two_of_two(remembered), Mending::default(), "somebody wants both");
        }
    }
}
