//! Topics are made, grow partitions, and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cluster;
use super::broker::Broker;
use super::names;
use super::registration::Registration;
use super::topic::{Lag, Partition, Progress, Replica, Topic};
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, TopicId, TopicPartition};
use crate::traffic::{History, Load, Tape};

/// A topic to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Its partitions.
    pub placement: Placement,
    /// Its settings.
    pub configs: BTreeMap<String, String>,
    /// The simulated load on it.
    pub load: Load,
    /// How long that load has been running already.
    pub loaded_for: i64,
}

/// Who decides where the replicas go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The controller. -1 stands for the cluster's defaults.
    Automatic {
        /// How many partitions.
        partitions: i32,
        /// How many replicas of each.
        factor: i16,
    },
    /// The caller, by partition number.
    Manual(BTreeMap<i32, Vec<BrokerId>>),
}

impl NewTopic {
    /// A topic placed by the controller, without load.
    pub fn new(name: &str, partitions: i32, factor: i16) -> Self {
        Self::placed(name, Placement::Automatic { partitions, factor })
    }

    /// A topic placed by the caller, without load: one list per partition.
    pub fn manual(name: &str, lists: &[&[i32]]) -> Self {
        let list = |ids: &&[i32]| ids.iter().copied().map(BrokerId).collect();
        Self::placed(name, Placement::Manual((0..).zip(lists.iter().map(list)).collect()))
    }

    pub(crate) fn placed(name: &str, placement: Placement) -> Self {
        Self { name: name.to_owned(), placement, configs: BTreeMap::new(), load: Load::default(), loaded_for: 0 }
    }

    /// The same with a load on it that has been running for `loaded_for` milliseconds.
    pub fn loaded(mut self, load: Load, loaded_for: i64) -> Self {
        self.load = load;
        self.loaded_for = loaded_for;
        self
    }

    /// The same with one more setting.
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.configs.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// A topic that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMade {
    /// Its id.
    pub id: TopicId,
    /// How many partitions it has.
    pub partitions: i32,
    /// How many replicas each has.
    pub factor: i16,
}

impl Cluster {
    /// Makes a topic, or with `validate_only` tells what would be made.
    pub fn create_topic(&mut self, new: &NewTopic, validate_only: bool) -> Result<TopicMade, Refusal> {
        names::check(&new.name)?;
        if self.topics.contains_key(new.name.as_str()) {
            return Err(Code::TopicAlreadyExists.because(format!("Topic '{}' already exists.", new.name)));
        }
        self.alike.check(&new.name)?;
        let rules = super::configs::topic_rules(&new.configs, &self.topic_defaults)?;
        let lists = match &new.placement {
            Placement::Automatic { partitions, factor } => {
                let partitions = match *partitions {
                    -1 => self.number_in_files("num.partitions").unwrap_or(1),
                    n if n < 1 => {
                        let text = "Number of partitions was set to an invalid non-positive value.";
                        return Err(Code::InvalidPartitions.because(text));
                    }
                    n => n,
                };
                let factor = match *factor {
                    -1 => self.number_in_files("default.replication.factor").unwrap_or(1),
                    n if n < 1 => {
                        let text = "Replication factor must be larger than 0, or -1 to use the default value.";
                        return Err(Code::InvalidReplicationFactor.because(text));
                    }
                    n => n,
                };
                self.place(partitions as usize, factor)?
            }
            Placement::Manual(lists) => self.check_manual(lists)?,
        };
        let made =
            |id| TopicMade { id, partitions: lists.len() as i32, factor: lists.first().map_or(0, Vec::len) as i16 };
        if validate_only {
            return Ok(made(TopicId(0)));
        }
        let id = TopicId((u128::from(self.dice.roll()) << 64) | u128::from(self.dice.roll() | 1));
        let answer = made(id);
        let name: Arc<str> = Arc::from(new.name.as_str());
        self.topic_names.insert(id, name.clone());
        self.alike.add(&name);
        let (since, count) = (self.now - new.loaded_for.max(0), lists.len() as i32);
        let mut partitions: Vec<Partition> = (0..)
            .zip(lists)
            .map(|(partition, list)| self.new_partition(&TopicPartition { topic: name.clone(), partition }, list))
            .collect();
        let history = History::new(since, new.load.clone());
        for (number, partition) in (0..).zip(&mut partitions) {
            partition.tape = Tape::begin(since, new.load.share(number, count), &history);
        }
        let mut topic = Topic {
            name: name.clone(),
            id,
            created_at: self.now,
            partitions,
            configs: new.configs.clone(),
            rules,
            history,
            weights: None,
        };
        for number in 0..count {
            let mark = topic.high_watermark(number, self.now);
            topic.hold_mark(number, mark, self.now);
        }
        self.topics.insert(name, topic);
        if new.load.bytes_in > 0.0 {
            self.look_at_disks_soon();
        }
        Ok(answer)
    }

    /// Grows a topic to `total` partitions. `lists` places the new ones, if the caller does.
    pub fn create_partitions(
        &mut self,
        name: &str,
        total: i32,
        lists: Option<&[Vec<BrokerId>]>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        let (name, present, factor) = match self.topics.get_key_value(name) {
            Some((name, topic)) => {
                let factor = topic.partitions.first().map_or(1, |first| first.registration.replicas.len());
                (name.clone(), topic.partitions.len() as i32, factor as i16)
            }
            None => return Err(Code::UnknownTopicOrPartition.plain()),
        };
        if total == present {
            return Err(Code::InvalidPartitions.because(format!("Topic already has {present} partition(s).")));
        }
        if total < present {
            return Err(Code::InvalidPartitions.because(format!(
                "The topic {name} currently has {present} partition(s); {total} would not be an increase."
            )));
        }
        let more = (total - present) as usize;
        let lists = match lists {
            Some(lists) if lists.len() != more => {
                return Err(Code::InvalidReplicaAssignment.because(format!(
                    "Attempted to add {more} additional partition(s), but only {} assignment(s) were specified.",
                    lists.len()
                )));
            }
            Some(lists) => {
                for (partition, list) in (present..).zip(lists) {
                    self.check_list(list, Some(factor as usize))?;
                    self.check_alive(partition, list)?;
                }
                lists.to_vec()
            }
            None => self.place(more, factor)?,
        };
        if !validate_only {
            let made: Vec<Partition> = (present..)
                .zip(lists)
                .map(|(partition, list)| self.new_partition(&TopicPartition { topic: name.clone(), partition }, list))
                .collect();
            let now = self.now;
            // Shares change with the count: what has been written stays written.
            self.changing_shares(&name, |topic| {
                topic.partitions.extend(made);
                (present..total).for_each(|number| topic.hold_mark(number, 0, now));
            });
        }
        Ok(())
    }

    /// Deletes a topic; copies under way end with it.
    pub fn delete_topic(&mut self, name: &str) -> Result<TopicId, Refusal> {
        let Some(topic) = self.topics.remove(name) else { return Err(Code::UnknownTopicOrPartition.plain()) };
        self.next_metadata_offset();
        self.topic_names.remove(&topic.id);
        self.alike.remove(name);
        for (number, partition) in topic.partitions.iter().enumerate() {
            let tp = TopicPartition { topic: topic.name.clone(), partition: number as i32 };
            for replica in &partition.replicas {
                let Some(broker) = self.brokers.get_mut(&replica.broker) else { continue };
                broker.dirs[replica.dir].logs -= 1;
                if let Some(future) = replica.future {
                    broker.dirs[future.dir].logs -= 1;
                }
                broker.behind.remove(&tp);
                broker.dir_moves.remove(&tp);
            }
        }
        let oldest = self.oldest_view();
        self.gone.retain(|(when, _)| *when >= oldest);
        let id = topic.id;
        self.gone.push((self.now, topic));
        Ok(id)
    }

    /// The name of the topic with this id.
    pub fn topic_name(&self, id: TopicId) -> Option<Arc<str>> {
        self.topic_names.get(&id).cloned()
    }

    /// How many partitions the topic with this name has.
    pub fn partition_count(&self, name: &str) -> Option<i32> {
        self.topics.get(name).map(|topic| topic.partitions.len() as i32)
    }

    /// The id of the topic with this name.
    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topics.get(name).map(|topic| topic.id)
    }

    fn check_manual(&self, lists: &BTreeMap<i32, Vec<BrokerId>>) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        let in_a_row = lists.keys().copied().eq(0..lists.len() as i32);
        if lists.is_empty() || !in_a_row {
            let text = "partitions should be a consecutive 0-based integer sequence";
            return Err(Code::InvalidReplicaAssignment.because(text));
        }
        let factor = lists.values().next().map(Vec::len);
        for (partition, list) in lists {
            self.check_list(list, factor)?;
            self.check_alive(*partition, list)?;
        }
        Ok(lists.values().cloned().collect())
    }

    /// Somebody must be able to lead a new partition.
    fn check_alive(&self, partition: i32, list: &[BrokerId]) -> Result<(), Refusal> {
        if list.iter().any(|id| self.brokers.get(id).is_some_and(Broker::is_active)) {
            return Ok(());
        }
        Err(Code::InvalidReplicaAssignment.because(format!(
            "All brokers specified in the manual partition assignment for partition {partition} are fenced or in controlled shutdown."
        )))
    }

    /// Whether a partition could have these replicas.
    pub(super) fn check_list(&self, list: &[BrokerId], factor: Option<usize>) -> Result<(), Refusal> {
        let refuse = |why: String| {
            Err(Code::InvalidReplicaAssignment.because(format!("The manual partition assignment includes {why}")))
        };
        if list.is_empty() {
            return refuse("an empty replica list.".to_owned());
        }
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        if let Some(negative) = sorted.first().filter(|id| id.0 < 0) {
            return refuse(format!("an invalid broker ID {negative}."));
        }
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!("the broker {} more than once.", twice[0]));
        }
        if let Some(unknown) = sorted.iter().find(|id| !self.brokers.get(id).is_some_and(|it| it.registered)) {
            return refuse(format!("broker {unknown}, but no such broker is registered."));
        }
        match factor {
            Some(factor) if factor != list.len() => refuse(format!(
                "a partition with {} replica(s), but this is not consistent with previous partitions, which have {factor} replica(s).",
                list.len()
            )),
            _ => Ok(()),
        }
    }

    fn new_partition(&mut self, tp: &TopicPartition, replicas: Vec<BrokerId>) -> Partition {
        let live = |id: &BrokerId| self.brokers.get(id).is_some_and(Broker::is_active);
        let isr: Vec<BrokerId> = replicas.iter().copied().filter(live).collect();
        let now = self.now;
        self.next_metadata_offset();
        let mut partition = Partition { created_at: now, ..Partition::default() };
        for id in &replicas {
            let Some(broker) = self.brokers.get_mut(id) else { continue };
            let dir = broker.dir_for(tp);
            broker.dirs[dir].logs += 1;
            let in_sync = isr.contains(id) && broker.is_running();
            let progress = if in_sync { Progress::Following } else { Progress::Behind(Lag::at(0.0, 0, now)) };
            if !in_sync {
                broker.behind.insert(tp.clone());
            }
            partition.replicas.push(Replica { broker: *id, dir, progress, appears_at: now, future: None });
        }
        partition.registration = Registration::new(replicas, isr);
        partition
    }
}
