//! The whole cluster at a glance, straight from the heart: for people who watch it, not for clients.

use super::topic::{Progress, Topic};
use super::{Broker, Cluster, Process};
use crate::ids::{BrokerId, TopicPartition};

/// How a broker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerState {
    /// Up, and part of the cluster.
    Running,
    /// Up, and not counted on by the controller.
    Fenced,
    /// Up, and nobody reaches it.
    CutOff,
    /// Not up.
    Down,
    /// Taken off the record.
    Unregistered,
}

/// A broker at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerStatus {
    /// Its id.
    pub id: BrokerId,
    /// Its rack.
    pub rack: Option<String>,
    /// How it is.
    pub state: BrokerState,
    /// Replicas assigned to it.
    pub replicas: usize,
    /// Partitions it leads.
    pub leaders: usize,
    /// Replicas on it that are not in sync.
    pub out_of_sync: usize,
    /// What is left of its link's speed.
    pub link_pace: f64,
    /// Whether its metadata stand still.
    pub stale: bool,
    /// Its directories.
    pub dirs: Vec<DirStatus>,
}

/// A directory at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct DirStatus {
    /// Its path.
    pub path: String,
    /// Bytes in it.
    pub used: f64,
    /// Bytes it holds.
    pub capacity: f64,
    /// Whether it has failed.
    pub failed: bool,
    /// What is left of its disk's speed.
    pub pace: f64,
}

/// A topic at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicStatus {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: usize,
    /// Replicas of the first of them.
    pub factor: usize,
    /// Bytes of all leaders.
    pub bytes: f64,
    /// Bytes per second into it at this moment.
    pub bytes_in: f64,
    /// Records ever written, simulated ones counted.
    pub records: i64,
    /// Partitions with replicas out of sync.
    pub under_replicated: usize,
    /// Partitions without a leader.
    pub leaderless: usize,
}

/// A copy under way.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyStatus {
    /// Of which partition.
    pub partition: TopicPartition,
    /// Where it comes from: nothing while nobody leads.
    pub from: Option<BrokerId>,
    /// Where it goes.
    pub to: BrokerId,
    /// The directory it goes to, if it stays on its broker.
    pub to_dir: Option<String>,
    /// Bytes there.
    pub done: f64,
    /// Bytes to be there.
    pub total: f64,
}

impl Cluster {
    /// All brokers that were ever there.
    pub fn broker_status(&self) -> Vec<BrokerStatus> {
        let used = self.used_bytes();
        let brokers = self.brokers.iter().map(|(id, broker)| {
            let dirs = (0..).zip(&broker.dirs).map(|(n, dir)| DirStatus {
                path: dir.spec.path.clone(),
                used: used.get(&(*id, n)).copied().unwrap_or(0.0),
                capacity: dir.spec.capacity as f64,
                failed: dir.failed,
                pace: dir.pace,
            });
            BrokerStatus {
                id: *id,
                rack: broker.spec.rack.clone(),
                state: state_of(broker),
                replicas: 0,
                leaders: 0,
                out_of_sync: 0,
                link_pace: broker.pace,
                stale: broker.stale.is_some_and(|(_, until)| self.now < until),
                dirs: dirs.collect(),
            }
        });
        let mut brokers: Vec<BrokerStatus> = brokers.collect();
        for registration in self.topics.values().flat_map(|topic| &topic.partitions).map(|it| &it.registration) {
            for id in &registration.replicas {
                // Ascending, as the map they come from.
                let Ok(at) = brokers.binary_search_by_key(id, |broker| broker.id) else { continue };
                brokers[at].replicas += 1;
                brokers[at].leaders += usize::from(registration.leader == Some(*id));
                brokers[at].out_of_sync += usize::from(!registration.isr.contains(id));
            }
        }
        brokers
    }

    /// All topics.
    pub fn topic_status(&self) -> Vec<TopicStatus> {
        self.topics.values().map(|topic| self.show_topic(topic)).collect()
    }

    fn show_topic(&self, topic: &Topic) -> TopicStatus {
        let numbers = || 0..topic.partitions.len() as i32;
        let size = |number: i32| {
            let extent = topic.extent(number, self.now);
            extent.size_up_to(extent.end)
        };
        let records =
            |number: i32| topic.end_offset(number, self.now).saturating_sub(topic.start_offset(number, self.now));
        let registrations = || topic.partitions.iter().map(|it| &it.registration);
        TopicStatus {
            name: topic.name.to_string(),
            partitions: topic.partitions.len(),
            factor: registrations().next().map_or(0, |it| it.replicas.len()),
            bytes: numbers().map(size).sum(),
            bytes_in: topic.load().rate(self.now),
            records: numbers().map(records).fold(0, i64::saturating_add),
            under_replicated: registrations().filter(|it| it.isr.len() < it.replicas.len()).count(),
            leaderless: registrations().filter(|it| it.leader.is_none()).count(),
        }
    }

    /// Replicas that fetch what they lack, and replicas on their way between directories.
    pub fn copy_status(&self) -> Vec<CopyStatus> {
        let mut copies = Vec::new();
        // A broker that is down or cut off lacks much and copies nothing.
        for (to, broker) in self.brokers.iter().filter(|(_, broker)| broker.is_running()) {
            let mut show = |tp: &TopicPartition, to_dir: Option<String>, position: Option<f64>| {
                let (Some((topic, partition)), Some(position)) = (self.lookup(tp), position) else { return };
                let extent = topic.extent(tp.partition, self.now);
                copies.push(CopyStatus {
                    partition: tp.clone(),
                    from: if to_dir.is_some() { Some(*to) } else { partition.registration.leader },
                    to: *to,
                    to_dir,
                    done: extent.size_up_to(position),
                    total: extent.size_up_to(extent.end),
                });
            };
            // Nothing is copied into a directory that has failed.
            let replica = |tp: &TopicPartition| {
                self.lookup(tp).and_then(|(_, it)| it.replica(*to)).filter(|it| !broker.dirs[it.dir].failed)
            };
            for tp in &broker.behind {
                let position = replica(tp).and_then(|it| match it.progress {
                    Progress::Behind(lag) => Some(lag.position),
                    Progress::Following => None,
                });
                show(tp, None, position);
            }
            for tp in &broker.dir_moves {
                let future = replica(tp).and_then(|it| it.future);
                let dir = future.and_then(|it| broker.dirs.get(it.dir)).map(|dir| dir.spec.path.clone());
                show(tp, dir, future.map(|it| it.position));
            }
        }
        copies
    }
}

fn state_of(broker: &Broker) -> BrokerState {
    match broker.process {
        Process::Down if !broker.registered => BrokerState::Unregistered,
        Process::Down => BrokerState::Down,
        Process::Isolated => BrokerState::CutOff,
        Process::Running if broker.is_active() => BrokerState::Running,
        Process::Running if broker.registered => BrokerState::Fenced,
        Process::Running => BrokerState::Unregistered,
    }
}
