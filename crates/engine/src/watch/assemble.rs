//! From the answers of brokers to one picture; asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    Refusal, TopicPartition,
    calls::{
        cluster::Cluster,
        configs::{Resource, Settings},
        log_dirs::LogDirs,
        topics::{Topic, TopicAnswers},
    },
};

use super::{MIN_IN_SYNC, Room, Sighting};
use crate::model::{BrokerView, PartitionView};

/// All but the directories.
pub(super) fn sighting(
    at: i64,
    cluster: Cluster,
    topics: TopicAnswers<Topic>,
    minimums: &BTreeMap<String, usize>,
) -> Sighting {
    let mut seen = Sighting {
        at,
        cluster: cluster.id,
        controller: cluster.controller.map(|id| id.0),
        min_in_sync: minimums.clone(),
        ..Sighting::default()
    };
    for broker in cluster.brokers {
        let view = BrokerView { host: broker.host, rack: broker.rack, up: !broker.fenced, ..BrokerView::default() };
        seen.view.brokers.insert(broker.id.0, view);
    }
    for topic in topics.into_values().flatten() {
        if topic.internal {
            seen.internal.insert(topic.name.clone());
        }
        for told in topic.partitions {
            let name = TopicPartition::new(&topic.name, told.index);
            let lagging: Vec<i32> =
                told.replicas.iter().filter(|id| !told.in_sync.contains(id)).map(|id| id.0).collect();
            if !lagging.is_empty() {
                seen.lagging.insert(name.clone(), lagging);
            }
            let view = PartitionView {
                replicas: told.replicas.iter().map(|id| id.0).collect(),
                leader: told.leader.map(|id| id.0),
                offline: told.offline.iter().map(|id| id.0).collect(),
            };
            seen.view.partitions.insert(name, view);
        }
    }
    // Brokers that hold something and are not even registered are down.
    let holders: BTreeSet<i32> =
        seen.view.partitions.values().flat_map(|partition| &partition.replicas).copied().collect();
    for id in holders {
        seen.view.brokers.entry(id).or_default();
    }
    seen
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
        for (partition, replica) in dir.replicas {
            // One that is still being copied here from another directory counts where it comes from.
            if replica.future {
                continue;
            }
            if matter {
                broker.dirs.insert(partition.clone(), path.clone());
            }
            if sighting.view.partitions.get(&partition).is_some_and(|seen| seen.leader == Some(id)) {
                sizes.insert(partition, u64::try_from(replica.bytes).unwrap_or(0));
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
pub(super) fn minimums(told: BTreeMap<Resource, Result<Settings, Refusal>>) -> impl Iterator<Item = (String, usize)> {
    told.into_iter().filter_map(|(resource, settings)| {
        let (Resource::Topic(topic), Ok(settings)) = (resource, settings) else { return None };
        let minimum = settings.get(MIN_IN_SYNC).and_then(|setting| setting.value.as_ref()?.parse().ok());
        Some((topic, minimum.unwrap_or(1)))
    })
}
