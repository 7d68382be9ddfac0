//! A broker started with a file that may differ from the last one: racks, directories and settings change so.
//!
//! What all brokers' files say of topics and new ones is taken from the broker with the lowest id that says it: clusters
//! whose files disagree for longer than a rolling restart are nobody's intention.

use std::collections::BTreeMap;

use super::Cluster;
use super::broker::{Broker, BrokerSpec, LogDir, Process};
use super::configs::{CORDONED, ConfigSource, topic_rules};
use super::topic::{Lag, Progress, Rules};
use crate::code::{Code, Refusal};
use crate::ids::BrokerId;

const RETENTION: &str = "log.retention.ms";

/// What a topic's setting is called in a broker's file.
const IN_FILES: [(&str, &str); 8] = [
    ("cleanup.policy", "log.cleanup.policy"),
    ("max.message.bytes", "message.max.bytes"),
    ("min.insync.replicas", "min.insync.replicas"),
    ("retention.bytes", "log.retention.bytes"),
    ("retention.ms", RETENTION),
    ("segment.bytes", "log.segment.bytes"),
    ("segment.ms", "log.roll.ms"),
    ("unclean.leader.election.enable", "unclean.leader.election.enable"),
];

/// Beginnings of settings that a running broker takes a new value of.
const DYNAMIC: [&str; 20] = [
    "background.threads",
    "compression.",
    "cordoned.log.dirs",
    "follower.replication.throttled.",
    "leader.replication.throttled.",
    "listener.name.",
    "log.cleaner.",
    "log.cleanup.policy",
    "log.flush.",
    "log.message.",
    "log.retention.",
    "log.roll.",
    "log.segment.",
    "max.connection",
    "message.max.bytes",
    "min.insync.replicas",
    "num.",
    "producer.id.expiration.ms",
    "replica.alter.log.dirs.io.",
    "unclean.leader.election.enable",
];

/// Refuses what topics would inherit and could not have.
pub(super) fn check_topic_defaults(of_brokers: &BTreeMap<String, String>) -> Result<(), Refusal> {
    for (topic, broker) in IN_FILES {
        let Some(value) = of_brokers.get(broker) else { continue };
        if broker == RETENTION && value == "0" {
            let text = format!("requirement failed: {RETENTION} must be unlimited (-1) or, greater than or equal to 1");
            return Err(Code::InvalidRequest.because(text));
        }
        of_one(topic, as_topics_have_it(broker, value)).map_err(|refusal| {
            let [of_topic, of_broker] = [topic, broker].map(|key| format!("configuration {key}:"));
            Code::InvalidRequest.because(refusal.message.replace(&of_topic, &of_broker))
        })?;
    }
    Ok(())
}

/// Of brokers' settings, everything below zero is for ever; a topic says -1.
fn as_topics_have_it<'a>(broker: &str, value: &'a str) -> &'a str {
    if broker == RETENTION && value.starts_with('-') { "-1" } else { value }
}

/// The rules of a topic that says nothing but this.
fn of_one(key: &str, value: &str) -> Result<Rules, Refusal> {
    topic_rules(&BTreeMap::from([(key.to_owned(), value.to_owned())]), &BTreeMap::new())
}

/// Whether a running broker takes a new value of this setting.
pub(super) fn is_dynamic(name: &str) -> bool {
    name != "num.partitions" && DYNAMIC.iter().any(|known| name.starts_with(known))
}

impl Cluster {
    /// Starts a broker as this says. One that is new joins; one that is down returns with the replicas it had, in the
    /// directories that it still has. One that runs stays as it is.
    pub fn boot_broker(&mut self, spec: BrokerSpec) {
        let id = spec.id;
        match self.brokers.get_mut(&id) {
            Some(broker) if broker.process != Process::Down => return,
            Some(broker) => broker.refit(spec),
            None => drop(self.brokers.insert(id, Broker::new(spec))),
        }
        self.cordon_by_file(id);
        self.learn_topic_defaults();
        self.start_broker(id);
    }

    /// The disk behind a directory of a broker that is down was replaced by an empty one.
    pub fn wipe_dir(&mut self, id: BrokerId, path: &str) {
        let Some(broker) = self.brokers.get_mut(&id).filter(|broker| broker.process == Process::Down) else { return };
        let Some(dir) = broker.dir_at(path) else { return };
        // The mark of an orderly end was on it.
        broker.stopped_cleanly = false;
        let now = self.now;
        for tp in self.partitions_on(id) {
            let Some(topic) = self.topics.get_mut(&tp.topic) else { continue };
            let (start, offset) = (topic.extent(tp.partition, now).start, topic.start_offset(tp.partition, now));
            let Some(partition) = topic.partition_mut(tp.partition) else { continue };
            let Some(replica) = partition.replica_mut(id).filter(|replica| replica.dir == dir) else { continue };
            replica.progress = Progress::Behind(Lag::at(start, offset, now));
            if let Some(broker) = self.brokers.get_mut(&id) {
                broker.behind.insert(tp);
            }
        }
    }

    /// A number that brokers' files give.
    pub(super) fn number_in_files<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.in_files(key).and_then(|value| value.parse().ok())
    }

    /// Where topics that do not say have a setting from, if from brokers at all.
    pub(super) fn topic_default_source(&self, name: &str) -> ConfigSource {
        let of_broker = IN_FILES.iter().find(|(topic, _)| *topic == name).map(|(_, broker)| *broker);
        let is_set = of_broker.is_some_and(|key| self.broker_defaults.contains_key(key));
        if is_set { ConfigSource::EveryBroker } else { ConfigSource::File }
    }

    fn in_files(&self, key: &str) -> Option<&str> {
        self.brokers.values().find_map(|broker| broker.spec.file.get(key)).map(String::as_str)
    }

    /// Topics that do not say take what is set for all brokers, else what files say.
    pub(super) fn learn_topic_defaults(&mut self) {
        let of_brokers = |key: &str| self.broker_defaults.get(key).map(String::as_str).or_else(|| self.in_files(key));
        let said = IN_FILES.iter().filter_map(|(topic, broker)| {
            let value = of_brokers(broker)?;
            Some((*topic, as_topics_have_it(broker, value)))
        });
        // What no topic could have is no default either: files are not checked.
        let possible = said.filter(|(topic, value)| of_one(topic, value).is_ok());
        let defaults: BTreeMap<String, String> = possible.map(|(key, value)| (key.into(), value.into())).collect();
        if defaults == self.topic_defaults {
            return;
        }
        self.topic_defaults = defaults;
        let names: Vec<_> = self.topics.keys().cloned().collect();
        for name in names {
            let Some(configs) = self.topics.get(&name).map(|topic| topic.configs.clone()) else { continue };
            if let Ok(rules) = topic_rules(&configs, &self.topic_defaults) {
                self.set_topic_configs(&name, configs, rules);
            }
        }
    }

    /// Directories that the file cordons, unless somebody has set that while the broker ran.
    fn cordon_by_file(&mut self, id: BrokerId) {
        let Some(broker) = self.brokers.get(&id) else { return };
        let configs = if broker.configs.contains_key(CORDONED) { &broker.configs } else { &broker.spec.file };
        let Ok(cordoned) = self.cordoned_dirs(id, configs) else { return };
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.dirs.iter_mut().zip(cordoned).for_each(|(dir, cordoned)| dir.cordoned = cordoned);
        }
    }
}

impl Broker {
    /// Takes a new file. Directories are known by their paths: their order means nothing.
    fn refit(&mut self, spec: BrokerSpec) {
        for dir in &mut self.dirs {
            let listed = spec.dirs.iter().find(|listed| listed.path == dir.spec.path);
            if let Some(listed) = listed {
                dir.spec = listed.clone();
            }
            // One that is back is well again; one that failed otherwise stays so.
            dir.failed = listed.is_none() || (dir.failed && !dir.retired);
            dir.retired = listed.is_none();
        }
        for new in &spec.dirs {
            if self.dir_at(&new.path).is_none() {
                self.dirs.push(LogDir::new(new));
            }
        }
        self.spec = spec;
    }
}
