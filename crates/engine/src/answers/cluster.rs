//! `kafka_cluster_state`: what Kafka says of its partitions and brokers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use evenkeel_balancer::options::TopicPattern;
use evenkeel_kafka::TopicPartition;
use evenkeel_rest::{
    Failure,
    body::{BrokersState, ClusterState, ClusterSummary, PartitionEntry, PartitionsState},
    json::Version,
    request,
};

use crate::{proposals::decided, watch::Sighting};

/// The cluster as far as this answer needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSeen {
    /// Brokers that are up.
    pub up: BTreeSet<i32>,
    /// Who is the controller, as far as clients are told.
    pub controller: Option<i32>,
    /// Every partition.
    pub partitions: BTreeMap<TopicPartition, PartitionSeen>,
    /// The log directories of brokers that are up; one that is missing did not answer.
    pub dirs: BTreeMap<i32, LogDirsSeen>,
}

/// One partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionSeen {
    /// Who holds it, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Who has all of it.
    pub in_sync: Vec<i32>,
    /// Who should have it and cannot.
    pub offline: BTreeSet<i32>,
    /// Who leads it, if anybody.
    pub leader: Option<i32>,
    /// How many must be in sync.
    pub min_in_sync: i32,
}

/// The log directories of one broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogDirsSeen {
    /// Those that can be read.
    pub online: BTreeSet<String>,
    /// Those that cannot.
    pub offline: BTreeSet<String>,
}

impl ClusterSeen {
    /// What a look shows.
    pub fn of(sighting: &Sighting) -> ClusterSeen {
        let partitions = sighting.view.partitions.iter().map(|(partition, seen)| {
            let seen = PartitionSeen {
                replicas: seen.replicas.iter().chain(&seen.adding).copied().collect(),
                in_sync: sighting.in_sync(partition),
                offline: seen.offline.clone(),
                leader: seen.leader,
                min_in_sync: i32::try_from(sighting.min_in_sync(&partition.topic)).unwrap_or(i32::MAX),
            };
            (partition.clone(), seen)
        });
        let telling = sighting.up().filter(|id| !sighting.silent.contains(id));
        let dirs = telling.map(|id| {
            let online = sighting.dirs.get(&id).map(|dirs| dirs.keys().cloned().collect()).unwrap_or_default();
            let offline = sighting.view.brokers.get(&id).map(|it| it.failed_dirs.clone()).unwrap_or_default();
            (id, LogDirsSeen { online, offline })
        });
        ClusterSeen {
            up: sighting.up().collect(),
            controller: sighting.controller,
            partitions: partitions.collect(),
            dirs: dirs.collect(),
        }
    }
}

/// What stands for the directories of a broker that is down.
const DEAD: &str = "broker_dead";
/// What stands for the directories of a broker that did not answer.
const SILENT: &str = "timed_out";

/// The answer. The pattern narrows partitions; brokers are told of whole.
pub fn cluster_state(asked: &request::KafkaClusterState, seen: &ClusterSeen) -> Result<ClusterState, Failure> {
    let compiled = asked.topic.as_ref().map(|pattern| {
        let failed = |error: &dyn Display| Failure::illegal_argument(pattern.refusal(&error.to_string()));
        TopicPattern::new(pattern.as_str()).map_err(|error| failed(&error))
    });
    let compiled = compiled.transpose()?;
    if let Some(pattern) = &compiled {
        decided(pattern, seen.partitions.keys())?;
    }
    let partitions = partitions(compiled.as_ref(), asked.verbose, seen);
    Ok(ClusterState { partitions, brokers: brokers(seen), version: Version })
}

fn partitions(topics: Option<&TopicPattern>, verbose: bool, seen: &ClusterSeen) -> PartitionsState {
    let mut state = PartitionsState { other: verbose.then(Vec::new), ..PartitionsState::default() };
    for (partition, it) in &seen.partitions {
        if topics.is_some_and(|pattern| !pattern.matches(&partition.topic)) {
            continue;
        }
        let entry = entry(partition, it);
        let mut fine = true;
        let short = i32::try_from(it.in_sync.len()).unwrap_or(i32::MAX) < it.min_in_sync;
        for (wrong, list) in [
            (it.leader.is_none(), &mut state.offline),
            (!it.offline.is_empty(), &mut state.with_offline_replicas),
            (!entry.out_of_sync.is_empty(), &mut state.urp),
            (short, &mut state.under_min_isr),
        ] {
            if wrong {
                list.push(entry.clone());
                fine = false;
            }
        }
        if let (true, Some(other)) = (fine, &mut state.other) {
            other.push(entry);
        }
    }
    state
}

fn entry(partition: &TopicPartition, it: &PartitionSeen) -> PartitionEntry {
    PartitionEntry {
        in_sync: it.in_sync.clone(),
        leader: it.leader.unwrap_or(-1),
        out_of_sync: it.replicas.iter().copied().filter(|id| !it.in_sync.contains(id)).collect(),
        offline: it.offline.iter().copied().collect(),
        partition: partition.partition,
        min_isr: it.min_in_sync,
        replicas: it.replicas.clone(),
        topic: partition.topic.to_string(),
        remote_storage_enabled: None,
    }
}

fn brokers(seen: &ClusterSeen) -> BrokersState {
    // Who is up is told of even with nothing on it.
    let mut state = BrokersState {
        replica_count_by_broker_id: seen.up.iter().map(|id| (*id, 0)).collect(),
        leader_count_by_broker_id: seen.up.iter().map(|id| (*id, 0)).collect(),
        is_controller: seen.up.iter().map(|id| (*id, seen.controller == Some(*id))).collect(),
        ..BrokersState::default()
    };
    let mut topics: BTreeSet<&str> = BTreeSet::new();
    for (partition, it) in &seen.partitions {
        topics.insert(&partition.topic);
        for id in &it.replicas {
            *state.replica_count_by_broker_id.entry(*id).or_default() += 1;
            if !it.in_sync.contains(id) {
                *state.out_of_sync_count_by_broker_id.entry(*id).or_default() += 1;
            }
            if it.offline.contains(id) {
                *state.offline_replica_count_by_broker_id.entry(*id).or_default() += 1;
            }
        }
        if let Some(leader) = it.leader {
            *state.leader_count_by_broker_id.entry(leader).or_default() += 1;
        }
    }
    let everybody: Vec<i32> = state.replica_count_by_broker_id.keys().copied().collect();
    for id in everybody {
        let marked = |mark: &str| vec![mark.to_owned()];
        let (online, offline) = match seen.dirs.get(&id) {
            _ if !seen.up.contains(&id) => (marked(DEAD), marked(DEAD)),
            None => (marked(SILENT), marked(SILENT)),
            Some(dirs) => (dirs.online.iter().cloned().collect(), dirs.offline.iter().cloned().collect()),
        };
        state.online_log_dirs_by_broker_id.insert(id, online);
        state.offline_log_dirs_by_broker_id.insert(id, offline);
    }
    state.summary = summary(seen, topics.len(), &state);
    state
}

fn summary(seen: &ClusterSeen, topics: usize, state: &BrokersState) -> ClusterSummary {
    let (replicas, leaders) = (&state.replica_count_by_broker_id, &state.leader_count_by_broker_id);
    let (most_replicas, mean_replicas, spread_of_replicas) = spread(replicas);
    let (most_leaders, mean_leaders, spread_of_leaders) = spread(leaders);
    let all: u64 = replicas.values().sum();
    ClusterSummary {
        std_leaders_per_broker: spread_of_leaders.into(),
        leaders: leaders.values().sum(),
        max_leaders_per_broker: most_leaders,
        topics: topics as u64,
        max_replicas_per_broker: most_replicas,
        std_replicas_per_broker: spread_of_replicas.into(),
        brokers: replicas.len() as u64,
        avg_replication_factor: share(all as f64, seen.partitions.len()).into(),
        avg_leaders_per_broker: mean_leaders.into(),
        replicas: all,
        avg_replicas_per_broker: mean_replicas.into(),
    }
}

/// The largest, the mean, and the deviation of all from it.
fn spread(counts: &BTreeMap<i32, u64>) -> (u64, f64, f64) {
    let mean = share(counts.values().sum::<u64>() as f64, counts.len());
    let squares: f64 = counts.values().map(|count| (*count as f64 - mean).powi(2)).sum();
    (counts.values().copied().max().unwrap_or(0), mean, share(squares, counts.len()).sqrt())
}

fn share(sum: f64, among: usize) -> f64 {
    if among == 0 { 0.0 } else { sum / among as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> ClusterSeen {
        let partition = |replicas: &[i32], in_sync: &[i32], offline: &[i32], leader| PartitionSeen {
            replicas: replicas.to_vec(),
            in_sync: in_sync.to_vec(),
            offline: offline.iter().copied().collect(),
            leader,
            min_in_sync: 2,
        };
        let dirs = LogDirsSeen { online: ["/d0".to_owned()].into(), offline: ["/d1".to_owned()].into() };
        ClusterSeen {
            up: [0, 1, 2].into(),
            controller: Some(1),
            partitions: [
                (TopicPartition::new("a", 0), partition(&[0, 1], &[0, 1], &[], Some(0))),
                (TopicPartition::new("a", 1), partition(&[1, 3], &[1], &[3], Some(1))),
                (TopicPartition::new("b", 0), partition(&[3], &[3], &[3], None)),
            ]
            .into(),
            dirs: [(0, dirs.clone()), (1, dirs)].into(),
        }
    }

    #[test]
    fn partitions_are_listed_by_what_is_wrong_with_them() {
        let asked = request::KafkaClusterState { verbose: true, ..Default::default() };
        let state = cluster_state(&asked, &seen()).unwrap().partitions;
        let names = |list: &[PartitionEntry]| -> Vec<String> {
            list.iter().map(|entry| format!("{}-{}", entry.topic, entry.partition)).collect()
        };
        assert_eq!(names(&state.offline), ["b-0"]);
        assert_eq!(names(&state.with_offline_replicas), ["a-1", "b-0"]);
        assert_eq!(names(&state.urp), ["a-1"]);
        assert_eq!(names(&state.under_min_isr), ["a-1", "b-0"]);
        assert_eq!(names(&state.other.unwrap()), ["a-0"]);
        assert_eq!((state.urp[0].out_of_sync.clone(), state.offline[0].leader), (vec![3], -1));
        let plain = cluster_state(&request::KafkaClusterState::default(), &seen()).unwrap().partitions;
        assert_eq!(plain.other, None);
    }

    #[test]
    fn a_pattern_narrows_partitions_and_not_brokers() {
        let pattern = evenkeel_rest::parameter::TopicPattern::new("b.*").unwrap();
        let asked = request::KafkaClusterState { topic: Some(pattern), ..Default::default() };
        let state = cluster_state(&asked, &seen()).unwrap();
        assert_eq!((state.partitions.urp.len(), state.partitions.offline.len()), (0, 1));
        assert_eq!(state.brokers.summary.topics, 2);
    }

    #[test]
    fn a_pattern_that_takes_too_long_is_refused() {
        let topic = "a".repeat(249);
        let mut seen = seen();
        let (_, partition) = seen.partitions.pop_first().unwrap();
        seen.partitions.insert(TopicPartition::new(&topic, 0), partition);
        let pattern = evenkeel_rest::parameter::TopicPattern::new("(?!b)((a*)*)*\\2c").unwrap();
        let asked = request::KafkaClusterState { topic: Some(pattern), ..Default::default() };
        let refused = cluster_state(&asked, &seen).unwrap_err();
        assert!(refused.to_string().contains("takes too many steps on topic aaa"), "{refused}");
    }

    #[test]
    fn brokers_that_are_down_or_silent_say_so() {
        let state = cluster_state(&request::KafkaClusterState::default(), &seen()).unwrap().brokers;
        let online = &state.online_log_dirs_by_broker_id;
        assert_eq!((&online[&0][0], &online[&2][0], &online[&3][0]), (&"/d0".into(), &SILENT.into(), &DEAD.into()));
        assert_eq!(state.offline_log_dirs_by_broker_id[&1], ["/d1"]);
        assert_eq!(state.out_of_sync_count_by_broker_id, [(3, 1)].into());
        assert_eq!(state.is_controller, [(0, false), (1, true), (2, false)].into());
        assert_eq!((state.summary.brokers, state.summary.replicas, state.summary.leaders), (4, 5, 2));
        assert_eq!(state.leader_count_by_broker_id[&2], 0);
    }
}
