//! From the answers of brokers to one picture; asks nobody.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evenkeel_kafka::{
    BrokerId, Refusal, TopicName, TopicPartition,
    calls::{
        cluster::Cluster,
        configs::{Resource, Settings},
        log_dirs::LogDirs,
        reassignments::Reassignment,
        topics::{Partition, Topic, TopicAnswers},
    },
};

use super::{MIN_IN_SYNC, Moving, Room, Sighting};
use crate::model::{BrokerView, PartitionView};

/// Brokers may show a move for so long after it was over, in milliseconds.
const TRAIL: i64 = 5_000;

/// What was listed before the metadata was asked for, and after that.
pub(super) struct Listed {
    pub(super) before: BTreeMap<TopicPartition, Reassignment>,
    pub(super) after: BTreeMap<TopicPartition, Reassignment>,
}

/// The moves that are listed, and those that were until a moment ago.
pub(super) fn moving(at: i64, listed: Listed, last: Option<&Sighting>) -> BTreeMap<TopicPartition, Moving> {
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    let moving = |listed: BTreeMap<TopicPartition, Reassignment>, at: i64| {
        listed.into_iter().map(move |(partition, it)| {
            let (everybody, adding) = (ids(&it.replicas), ids(&it.adding));
            (partition, Moving { everybody, adding, removes: !it.removing.is_empty(), listed: at })
        })
    };
    let past = last.into_iter().flat_map(|last| &last.moving).filter(|(_, it)| at - it.listed < TRAIL);
    let past = past.map(|(partition, it)| (partition.clone(), it.clone()));
    // What only the first list has was over before the second.
    past.chain(moving(listed.before, at - 1)).chain(moving(listed.after, at)).collect()
}

/// All but the directories.
pub(super) fn sighting(
    at: i64,
    cluster: Cluster,
    topics: TopicAnswers<Topic>,
    minimums: &BTreeMap<String, usize>,
    moving: BTreeMap<TopicPartition, Moving>,
) -> Sighting {
    let mut seen = Sighting {
        moving,
        at,
        cluster: cluster.id,
        controller: cluster.controller.map(|id| id.0),
        names_fenced: cluster.names_fenced,
        min_in_sync: minimums.clone(),
        ..Sighting::default()
    };
    for broker in cluster.brokers {
        let view = BrokerView { host: broker.host, rack: broker.rack, up: !broker.fenced, ..BrokerView::default() };
        seen.view.brokers.insert(broker.id.0, view);
    }
    // Collected in one go: a map that is filled entry by entry, in order, is half empty.
    let mut partitions = Vec::with_capacity(topics.values().flatten().map(|topic| topic.partitions.len()).sum());
    for topic in topics.into_values().flatten() {
        if topic.internal {
            seen.internal.insert(topic.name.clone());
        }
        // Once for all of its partitions.
        let topic_name = TopicName::from(topic.name);
        for told in topic.partitions {
            let name = TopicPartition::new(&topic_name, told.index);
            let lagging: Vec<i32> =
                told.replicas.iter().filter(|id| !told.in_sync.contains(id)).map(|id| id.0).collect();
            if !lagging.is_empty() {
                seen.lagging.insert(name.clone(), lagging);
            }
            let view = view(&told, seen.moving.get(&name).filter(|it| it.listed == at || it.removes));
            partitions.push((name, view));
        }
    }
    seen.view.partitions = partitions.into_iter().collect();
    // Brokers that hold something and are not even registered are down.
    let holders: BTreeSet<i32> =
        seen.view.partitions.values().flat_map(|it| it.replicas.iter().chain(&it.adding)).copied().collect();
    for id in holders {
        seen.view.brokers.entry(id).or_default();
    }
    seen
}

/// One partition. While it moves metadata shows old and new replicas alike; the new ones are none before they are all
/// there. A move that took nothing away looks no different once it is over: who calls knows.
fn view(told: &Partition, moving: Option<&Moving>) -> PartitionView {
    let shown: BTreeSet<i32> = told.replicas.iter().map(|id| id.0).collect();
    let is_added = |id: &i32| moving.is_some_and(|it| it.everybody == shown && it.adding.contains(id));
    let (adding, replicas) = told.replicas.iter().map(|id| id.0).partition(is_added);
    PartitionView {
        replicas,
        leader: told.leader.map(|id| id.0),
        offline: told.offline.iter().map(|id| id.0).filter(|id| !is_added(id)).collect(),
        adding,
    }
}

/// What one broker told of its directories; sizes go to `sizes` for what it leads.
pub(super) fn take_dirs(
    sighting: &mut Sighting,
    id: i32,
    told: LogDirs,
    matter: bool,
    sizes: &mut BTreeMap<TopicPartition, u64>,
) {
    let Some(broker) = sighting.view.brokers.get_mut(&id) else { return };
    let rooms = sighting.dirs.entry(id).or_default();
    for (path, dir) in told.dirs {
        let Ok(dir) = dir else {
            broker.failed_dirs.insert(path);
            continue;
        };
        let shared: Arc<str> = path.as_str().into();
        for (partition, replica) in dir.replicas {
            // One that is still being copied here from another directory counts where it comes from.
            if replica.future {
                continue;
            }
            // By the name that is there already, so that there are not as many of it as brokers that tell.
            let known = sighting.view.partitions.get_key_value(&partition);
            let (name, leader) = known.map_or((partition, None), |(name, seen)| (name.clone(), seen.leader));
            if leader == Some(id) {
                sizes.insert(name.clone(), u64::try_from(replica.bytes).unwrap_or(0));
            }
            if matter {
                broker.dirs.insert(name, Arc::clone(&shared));
            }
        }
        rooms.insert(path, Room { total: dir.total_bytes, usable: dir.usable_bytes });
    }
}

/// Of brokers that were not asked, or did not answer, what they said last.
pub(super) fn remember_dirs(sighting: &mut Sighting, before: &Sighting, asked: &[i32]) {
    for (id, broker) in &mut sighting.view.brokers {
        if sighting.dirs.contains_key(id) {
            continue;
        }
        if let Some(then) = before.view.brokers.get(id) {
            broker.dirs.clone_from(&then.dirs);
            // Of one that is down everything is lost, not its bad directories alone.
            if broker.up {
                broker.failed_dirs.clone_from(&then.failed_dirs);
            }
        }
        if let Some(rooms) = before.dirs.get(id) {
            sighting.dirs.insert(*id, rooms.clone());
        }
        if !asked.contains(id) && broker.up && before.silent.contains(id) {
            sighting.silent.insert(*id);
        }
    }
}

/// What topics want in sync. One that does not say wants one.
pub(crate) fn minimums(told: BTreeMap<Resource, Result<Settings, Refusal>>) -> impl Iterator<Item = (String, usize)> {
    told.into_iter().filter_map(|(resource, settings)| {
        let (Resource::Topic(topic), Ok(settings)) = (resource, settings) else { return None };
        let minimum = settings.get(MIN_IN_SYNC).and_then(|setting| setting.value.as_ref()?.parse().ok());
        Some((topic, minimum.unwrap_or(1)))
    })
}
