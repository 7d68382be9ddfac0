//! Settings of topics and brokers: what is shown, what may be altered, and what follows.

use std::collections::{BTreeMap, BTreeSet};

use super::topic::{Rules, Throttled};
use super::{Cluster, file};
use crate::code::{Code, Refusal};
use crate::ids::BrokerId;
use crate::log::{Cleaning, Roll};
use crate::traffic::Keep;

/// Whose settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A topic's.
    Topic(String),
    /// One broker's.
    Broker(BrokerId),
    /// All brokers'.
    EveryBroker,
}

/// Where a value comes from; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// Set on the topic (1).
    Topic,
    /// Set on the broker (2).
    Broker,
    /// Set for all brokers (3).
    EveryBroker,
    /// In the broker's file (4).
    File,
    /// Nobody set it (5).
    Default,
}

impl ConfigSource {
    /// The number on the wire.
    pub fn number(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::Broker => 2,
            Self::EveryBroker => 3,
            Self::File => 4,
            Self::Default => 5,
        }
    }
}

/// One setting as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its key.
    pub name: String,
    /// Its value; hidden if it is sensitive.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
    /// Whether it is a secret; keys that nobody knows count as such.
    pub sensitive: bool,
    /// Whether it cannot be altered.
    pub read_only: bool,
    /// The type's number on the wire.
    pub kind: i8,
}

/// What is done to a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Gives it a value (0).
    Set,
    /// Takes it away (1).
    Delete,
    /// Adds to a list (2).
    Append,
    /// Takes from a list (3).
    Subtract,
    /// Something that Kafka does not know.
    Unknown,
}

/// One altered setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// The key.
    pub name: String,
    /// What is done.
    pub operation: Operation,
    /// The value, where one is needed.
    pub value: Option<String>,
}

const BOOLEAN: i8 = 1;
const STRING: i8 = 2;
const INT: i8 = 3;
const LONG: i8 = 5;
const DOUBLE: i8 = 6;
const LIST: i8 = 7;
const PASSWORD: i8 = 9;

/// A topic's keys: name, default, type.
const TOPIC_KEYS: [(&str, &str, i8); 33] = [
    ("cleanup.policy", "delete", LIST),
    ("compression.gzip.level", "-1", INT),
    ("compression.lz4.level", "9", INT),
    ("compression.type", "producer", STRING),
    ("compression.zstd.level", "3", INT),
    ("delete.retention.ms", "86400000", LONG),
    ("file.delete.delay.ms", "60000", LONG),
    ("flush.messages", "9223372036854775807", LONG),
    ("flush.ms", "9223372036854775807", LONG),
    ("follower.replication.throttled.replicas", "", LIST),
    ("index.interval.bytes", "4096", INT),
    ("leader.replication.throttled.replicas", "", LIST),
    ("local.retention.bytes", "-2", LONG),
    ("local.retention.ms", "-2", LONG),
    ("max.compaction.lag.ms", "9223372036854775807", LONG),
    ("max.message.bytes", "1048588", INT),
    ("message.timestamp.after.max.ms", "3600000", LONG),
    ("message.timestamp.before.max.ms", "9223372036854775807", LONG),
    ("message.timestamp.type", "CreateTime", STRING),
    ("min.cleanable.dirty.ratio", "0.5", DOUBLE),
    ("min.compaction.lag.ms", "0", LONG),
    ("min.insync.replicas", "1", INT),
    ("preallocate", "false", BOOLEAN),
    ("remote.log.copy.disable", "false", BOOLEAN),
    ("remote.log.delete.on.disable", "false", BOOLEAN),
    ("remote.storage.enable", "false", BOOLEAN),
    ("retention.bytes", "-1", LONG),
    ("retention.ms", "604800000", LONG),
    ("segment.bytes", "1073741824", INT),
    ("segment.index.bytes", "10485760", INT),
    ("segment.jitter.ms", "0", LONG),
    ("segment.ms", "604800000", LONG),
    ("unclean.leader.election.enable", "false", BOOLEAN),
];

/// The least that a topic's number may be, where not every number will do.
const TOPIC_LEASTS: [(&str, i64); 20] = [
    ("compression.lz4.level", 1),
    ("compression.zstd.level", -131_072),
    ("delete.retention.ms", 0),
    ("file.delete.delay.ms", 0),
    ("flush.messages", 1),
    ("flush.ms", 0),
    ("index.interval.bytes", 0),
    ("local.retention.bytes", -2),
    ("local.retention.ms", -2),
    ("max.compaction.lag.ms", 1),
    ("max.message.bytes", 0),
    ("message.timestamp.after.max.ms", 0),
    ("message.timestamp.before.max.ms", 0),
    ("min.compaction.lag.ms", 0),
    ("min.insync.replicas", 1),
    ("retention.ms", -1),
    ("segment.bytes", 1_048_576),
    ("segment.index.bytes", 4),
    ("segment.jitter.ms", 0),
    ("segment.ms", 1),
];

/// The most that a topic's number may be.
const TOPIC_MOSTS: [(&str, i64); 2] = [("compression.lz4.level", 17), ("compression.zstd.level", 22)];

/// The words that a topic's setting may be.
const TOPIC_WORDS: [(&str, &[&str]); 2] = [
    ("compression.type", &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
    ("message.timestamp.type", &["CreateTime", "LogAppendTime"]),
];

/// The least that a broker's number may be.
const BROKER_LEASTS: [(&str, i64); 8] = [
    (LEADER_RATE, 0),
    (FOLLOWER_RATE, 0),
    (DIR_RATE, 0),
    ("background.threads", 1),
    ("message.max.bytes", 0),
    ("num.io.threads", 1),
    ("num.network.threads", 1),
    ("num.replica.fetchers", 1),
];

/// A broker's keys that are always shown: name, default, type, read-only.
const BROKER_KEYS: [(&str, &str, i8, bool); 14] = [
    ("auto.create.topics.enable", "false", BOOLEAN, true),
    ("background.threads", "10", INT, false),
    ("default.replication.factor", "1", INT, true),
    ("log.cleanup.policy", "delete", LIST, false),
    ("log.retention.bytes", "-1", LONG, false),
    ("log.retention.ms", "604800000", LONG, false),
    ("log.segment.bytes", "1073741824", INT, false),
    ("message.max.bytes", "1048588", INT, false),
    ("min.insync.replicas", "1", INT, false),
    ("num.io.threads", "8", INT, false),
    ("num.network.threads", "3", INT, false),
    ("num.partitions", "1", INT, true),
    ("num.replica.fetchers", "1", INT, false),
    ("unclean.leader.election.enable", "false", BOOLEAN, false),
];

/// A broker's keys that are in its file and nowhere else: its id, its rack, its directories.
const FILE_KEYS: [&str; 3] = ["node.id", "broker.rack", "log.dirs"];

/// The most a broker sends as a leader to throttled replicas.
pub(super) const LEADER_RATE: &str = "leader.replication.throttled.rate";
/// The most a broker takes in as a follower.
pub(super) const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
/// The most it copies between its own directories.
pub(super) const DIR_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
pub(super) const CORDONED: &str = "cordoned.log.dirs";

/// Known, and shown only once they are set.
const SHOWN_WHEN_SET: [(&str, i8); 4] =
    [(LEADER_RATE, LONG), (FOLLOWER_RATE, LONG), (DIR_RATE, LONG), (CORDONED, LIST)];

impl Cluster {
    /// A resource's settings as `asked` shows them. A broker speaks for itself only.
    pub fn describe_configs(&self, asked: BrokerId, resource: &Resource) -> Result<Vec<ConfigEntry>, Refusal> {
        match resource {
            Resource::Topic(name) => {
                let topic = self.topics.get(name.as_str()).ok_or_else(|| Code::UnknownTopicOrPartition.plain())?;
                Ok(self.topic_entries(&topic.configs))
            }
            Resource::EveryBroker => Ok(self
                .broker_defaults
                .iter()
                .map(|(key, value)| entry(key, value, ConfigSource::EveryBroker))
                .collect()),
            Resource::Broker(id) => {
                if *id != asked {
                    let text = format!("Unexpected broker id, expected {asked}, but received {id}");
                    return Err(Code::InvalidRequest.because(text));
                }
                Ok(self.broker_entries(*id))
            }
        }
    }

    /// The settings of a topic for which these were set.
    pub(crate) fn topic_entries(&self, configs: &BTreeMap<String, String>) -> Vec<ConfigEntry> {
        let of_brokers = |name: &str| {
            let value = self.topic_defaults.get(name)?;
            Some((value.as_str(), self.topic_default_source(name)))
        };
        TOPIC_KEYS.iter().map(|key| topic_entry(key, configs, of_brokers(key.0))).collect()
    }

    fn broker_entries(&self, id: BrokerId) -> Vec<ConfigEntry> {
        let Some(broker) = self.brokers.get(&id) else { return Vec::new() };
        let mut entries: BTreeMap<String, ConfigEntry> = BTreeMap::new();
        let mut put = |shown: ConfigEntry| entries.insert(shown.name.clone(), shown);
        for (name, value, kind, read_only) in BROKER_KEYS {
            let shown = entry(name, value, ConfigSource::Default);
            put(ConfigEntry { kind, read_only, ..shown });
        }
        let dirs = broker.dirs.iter().filter(|dir| !dir.retired);
        let paths: Vec<&str> = dirs.map(|dir| dir.spec.path.as_str()).collect();
        for (name, value) in &broker.spec.file {
            let shown = entry(name, value, ConfigSource::File);
            let sensitive = name.contains("password");
            let value = shown.value.filter(|_| !sensitive);
            put(ConfigEntry { read_only: !file::is_dynamic(name), sensitive, value, ..shown });
        }
        let id = broker.spec.id.to_string();
        let values = [Some(id), broker.spec.rack.clone(), Some(paths.join(","))];
        let in_file = FILE_KEYS.iter().zip(values).map(|(name, value)| Some(entry(name, &value?, ConfigSource::File)));
        for shown in in_file.flatten() {
            put(ConfigEntry { read_only: true, ..shown });
        }
        self.broker_defaults.iter().for_each(|(key, value)| drop(put(entry(key, value, ConfigSource::EveryBroker))));
        broker.configs.iter().for_each(|(key, value)| drop(put(entry(key, value, ConfigSource::Broker))));
        entries.into_values().collect()
    }

    /// Alters a resource's settings, all of them or none.
    pub fn incremental_alter_configs(
        &mut self,
        resource: &Resource,
        alterations: &[Alteration],
        validate_only: bool,
    ) -> Result<(), Refusal> {
        let mut keys = BTreeSet::new();
        if !alterations.iter().all(|alteration| keys.insert(&alteration.name)) {
            return Err(Code::InvalidRequest.because("Error due to duplicate config keys"));
        }
        let mut next = self.configs_of(resource)?.clone();
        for alteration in alterations {
            apply(&mut next, alteration, matches!(resource, Resource::Topic(_)))?;
        }
        match resource {
            Resource::Topic(name) => {
                let rules = topic_rules(&next, &self.topic_defaults)?;
                if !validate_only {
                    self.set_topic_configs(name, next, rules);
                }
            }
            Resource::EveryBroker => {
                check_values(&next)?;
                check_dynamic(alterations)?;
                if !validate_only {
                    self.broker_defaults = next;
                    self.learn_topic_defaults();
                }
            }
            Resource::Broker(id) => {
                check_values(&next)?;
                check_dynamic(alterations)?;
                let cordoned = self.cordoned_dirs(*id, &next)?;
                if let Some(broker) = self.brokers.get_mut(id).filter(|_| !validate_only) {
                    broker.configs = next;
                    broker.dirs.iter_mut().zip(cordoned).for_each(|(dir, cordoned)| dir.cordoned = cordoned);
                }
            }
        }
        self.next_metadata_offset();
        Ok(())
    }

    /// Gives a resource these settings and no others.
    pub fn replace_configs(
        &mut self,
        resource: &Resource,
        values: impl Iterator<Item = (String, Option<String>)>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        let mut gone: BTreeSet<String> = self.configs_of(resource)?.keys().cloned().collect();
        let mut alterations: Vec<Alteration> =
            values.map(|(name, value)| Alteration { name, operation: Operation::Set, value }).collect();
        gone.retain(|key| !alterations.iter().any(|kept| kept.name == *key));
        alterations.extend(gone.into_iter().map(|name| Alteration { name, operation: Operation::Delete, value: None }));
        self.incremental_alter_configs(resource, &alterations, validate_only)
    }

    /// What was set on a resource that has settings.
    fn configs_of(&self, resource: &Resource) -> Result<&BTreeMap<String, String>, Refusal> {
        match resource {
            Resource::Topic(name) => self
                .topics
                .get(name.as_str())
                .map(|topic| &topic.configs)
                .ok_or_else(|| Code::UnknownTopicOrPartition.because(format!("The topic '{name}' does not exist."))),
            Resource::EveryBroker => Ok(&self.broker_defaults),
            Resource::Broker(id) => self
                .brokers
                .get(id)
                .filter(|broker| broker.registered)
                .map(|broker| &broker.configs)
                .ok_or_else(|| Code::BrokerIdNotRegistered.because(format!("No broker with id {id} found."))),
        }
    }

    pub(super) fn set_topic_configs(&mut self, name: &str, configs: BTreeMap<String, String>, rules: Rules) {
        let now = self.now;
        self.changing_shares(name, |topic| {
            let count = topic.partitions.len() as i32;
            let marks: Vec<i64> = (0..count).map(|number| topic.high_watermark(number, now)).collect();
            topic.configs = configs;
            topic.rules = rules;
            (0..).zip(marks).for_each(|(number, mark)| topic.hold_mark(number, mark, now));
        });
    }

    pub(super) fn cordoned_dirs(&self, id: BrokerId, configs: &BTreeMap<String, String>) -> Result<Vec<bool>, Refusal> {
        let Some(broker) = self.brokers.get(&id) else { return Ok(Vec::new()) };
        let list = configs.get(CORDONED).map_or("", String::as_str);
        let wanted: Vec<&str> = list.split(',').map(str::trim).filter(|path| !path.is_empty()).collect();
        if let Some(unknown) = wanted.iter().find(|path| **path != "*" && broker.dir_at(path).is_none()) {
            let text = format!("Invalid value {unknown} for configuration {CORDONED}: not one of the log directories");
            return Err(Code::InvalidRequest.because(text));
        }
        Ok(broker.dirs.iter().map(|dir| wanted.iter().any(|path| *path == "*" || *path == dir.spec.path)).collect())
    }

    /// A broker's rate limit: its own, else that of all brokers.
    pub(super) fn broker_rate(&self, id: BrokerId, key: &str) -> Option<f64> {
        let own = self.brokers.get(&id).and_then(|broker| broker.number(key));
        own.or_else(|| self.broker_defaults.get(key).and_then(|value| value.parse().ok()))
    }
}

fn topic_entry(
    (name, default, kind): &(&str, &str, i8),
    configs: &BTreeMap<String, String>,
    of_brokers: Option<(&str, ConfigSource)>,
) -> ConfigEntry {
    let (value, source) = match (configs.get(*name), of_brokers) {
        (Some(value), _) => (value.as_str(), ConfigSource::Topic),
        (None, Some(found)) => found,
        (None, None) => (*default, ConfigSource::Default),
    };
    ConfigEntry {
        name: (*name).to_owned(),
        value: Some(value.to_owned()),
        source,
        sensitive: false,
        read_only: false,
        kind: *kind,
    }
}

fn entry(name: &str, value: &str, source: ConfigSource) -> ConfigEntry {
    let kind = kind_of(name, false);
    let sensitive = kind.is_none() && matches!(source, ConfigSource::Broker | ConfigSource::EveryBroker);
    ConfigEntry {
        name: name.to_owned(),
        value: (!sensitive).then(|| value.to_owned()),
        source,
        sensitive,
        read_only: false,
        kind: kind.unwrap_or(if sensitive { PASSWORD } else { STRING }),
    }
}

fn kind_of(name: &str, of_topic: bool) -> Option<i8> {
    if of_topic {
        return TOPIC_KEYS.iter().find(|key| key.0 == name).map(|key| key.2);
    }
    let fixed = BROKER_KEYS.iter().find(|key| key.0 == name).map(|key| key.2);
    fixed.or_else(|| SHOWN_WHEN_SET.iter().find(|key| key.0 == name).map(|key| key.1))
}

fn apply(configs: &mut BTreeMap<String, String>, alteration: &Alteration, of_topic: bool) -> Result<(), Refusal> {
    let Alteration { name, operation, value } = alteration;
    if name.is_empty() {
        return Err(Code::InvalidRequest.because("Config key name is empty."));
    }
    let kind = kind_of(name, of_topic);
    let value =
        || value.clone().ok_or_else(|| Code::InvalidRequest.because(format!("Null value not supported for : {name}")));
    let list = |op: &str| {
        if kind != Some(LIST) {
            return Err(Code::InvalidConfig.because(format!("Can't {op} to key {name} because its type is not LIST.")));
        }
        let default = TOPIC_KEYS.iter().find(|key| of_topic && key.0 == name).map_or("", |key| key.1);
        let present = configs.get(name).map_or(default, String::as_str);
        Ok(present.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<String>>())
    };
    match operation {
        Operation::Set => drop(configs.insert(name.clone(), value()?)),
        Operation::Delete => drop(configs.remove(name)),
        Operation::Append => {
            let mut parts = list("APPEND")?;
            for part in value()?.split(',') {
                if !parts.iter().any(|known| known == part) {
                    parts.push(part.to_owned());
                }
            }
            configs.insert(name.clone(), parts.join(","));
        }
        Operation::Subtract => {
            let taken = value()?;
            let mut parts = list("SUBTRACT")?;
            parts.retain(|part| !taken.split(',').any(|gone| gone == part));
            configs.insert(name.clone(), parts.join(","));
        }
        Operation::Unknown => return Err(Code::UnknownServerError.plain()),
    }
    Ok(())
}

/// What is read from the file alone cannot be altered while the broker runs.
fn check_dynamic(alterations: &[Alteration]) -> Result<(), Refusal> {
    let fixed = BROKER_KEYS.iter().filter(|key| key.3).map(|key| key.0).chain(FILE_KEYS);
    let fixed: BTreeSet<&str> = fixed.collect();
    let wrong: Vec<&str> =
        alterations.iter().map(|alteration| alteration.name.as_str()).filter(|name| fixed.contains(name)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let text = format!("Cannot update these configs dynamically: [{}]", wrong.join(", "));
    Err(Code::InvalidRequest.because(text))
}

fn check_values(configs: &BTreeMap<String, String>) -> Result<(), Refusal> {
    for (key, value) in configs {
        let wrong = |what: &str| {
            Err(Code::InvalidRequest.because(format!("Invalid value {value} for configuration {key}: {what}")))
        };
        if let Some(what) = kind_of(key, false).and_then(|kind| not_of(kind, value)) {
            return wrong(what);
        }
        if let Some(least) = too_small(&BROKER_LEASTS, key, value) {
            return wrong(&format!("Value must be at least {least}"));
        }
    }
    file::check_topic_defaults(configs)
}

/// What is wrong with a value of this type.
fn not_of(kind: i8, value: &str) -> Option<&'static str> {
    match kind {
        INT if value.parse::<i32>().is_err() => Some("Not a number of type INT"),
        LONG if value.parse::<i64>().is_err() => Some("Not a number of type LONG"),
        DOUBLE if value.parse::<f64>().is_err() => Some("Not a number of type DOUBLE"),
        BOOLEAN if truth(value).is_none() => Some("Expected value to be either true or false"),
        _ => None,
    }
}

/// A truth value, in letters of any size.
fn truth(value: &str) -> Option<bool> {
    value.trim().to_ascii_lowercase().parse().ok()
}

/// The most that a number may be, if it is more.
fn too_great(mosts: &[(&str, i64)], key: &str, value: &str) -> Option<i64> {
    let most = mosts.iter().find(|(name, _)| *name == key)?.1;
    value.parse::<i64>().is_ok_and(|number| number > most).then_some(most)
}

/// The least that a number may be, if it is less.
fn too_small(leasts: &[(&str, i64)], key: &str, value: &str) -> Option<i64> {
    let least = leasts.iter().find(|(name, _)| *name == key)?.1;
    value.parse::<i64>().is_ok_and(|number| number < least).then_some(least)
}

/// What a topic's settings come to, with what brokers say where the topic says nothing; refuses keys and values
/// that Kafka refuses.
pub(super) fn topic_rules(
    configs: &BTreeMap<String, String>,
    of_brokers: &BTreeMap<String, String>,
) -> Result<Rules, Refusal> {
    for (name, value) in configs {
        let bad = |why: String| Err(Code::InvalidConfig.because(why));
        let wrong = |what: &str| bad(format!("Invalid value {value} for configuration {name}: {what}"));
        let Some(kind) = kind_of(name, true) else { return bad(format!("Unknown topic config name: {name}")) };
        if let Some(what) = not_of(kind, value) {
            return wrong(what);
        }
        if let Some(least) = too_small(&TOPIC_LEASTS, name, value) {
            return wrong(&format!("Value must be at least {least}"));
        }
        if let Some(most) = too_great(&TOPIC_MOSTS, name, value) {
            return wrong(&format!("Value must be no more than {most}"));
        }
        if name == "compression.gzip.level" && !matches!(value.parse(), Ok(-1 | 1..=9)) {
            return wrong("Value must be between 1 and 9 or equal to -1");
        }
        if name == "remote.storage.enable" && truth(value) == Some(true) {
            let text = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.";
            return bad(text.to_owned());
        }
        let words = TOPIC_WORDS.iter().find(|(key, _)| key == name).map(|(_, words)| *words);
        if let Some(words) = words.filter(|words| !words.contains(&value.as_str())) {
            return wrong(&format!("String must be one of: {}", words.join(", ")));
        }
        if kind == DOUBLE && !value.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)) {
            return wrong("Value must be between 0 and 1");
        }
    }
    let text = |name: &str| {
        let default = TOPIC_KEYS.iter().find(|key| key.0 == name).map_or("", |key| key.1);
        configs.get(name).or_else(|| of_brokers.get(name)).map_or(default, String::as_str)
    };
    let number = |name: &str| text(name).parse::<i64>().unwrap_or(-1);
    let throttled = |name: &str| {
        Throttled::parse(text(name)).ok_or_else(|| {
            Code::InvalidConfig.because(format!(
                "Invalid value [{}] for configuration {name}: {name} must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
                text(name)
            ))
        })
    };
    let policies: Vec<&str> = text("cleanup.policy").split(',').map(str::trim).collect();
    if let Some(unknown) = policies.iter().find(|policy| !matches!(**policy, "delete" | "compact" | "")) {
        return Err(Code::InvalidConfig.because(format!(
            "Invalid value {unknown} for configuration cleanup.policy: String must be one of: compact, delete"
        )));
    }
    let [least_lag, most_lag] = ["min.compaction.lag.ms", "max.compaction.lag.ms"].map(number);
    if least_lag > most_lag {
        return Err(Code::InvalidConfig.because(format!(
            "conflict topic config setting min.compaction.lag.ms ({least_lag}) > max.compaction.lag.ms ({most_lag})"
        )));
    }
    let deletes = policies.contains(&"delete");
    let limit = |name: &str| Some(number(name)).filter(|limit| deletes && *limit >= 0);
    Ok(Rules {
        keep: Keep {
            millis: limit("retention.ms"),
            bytes: limit("retention.bytes").map(|bytes| bytes as f64),
            compact: policies.contains(&"compact"),
        },
        only_compacted: !deletes && policies.contains(&"compact"),
        roll: Roll { bytes: u64::try_from(number("segment.bytes")).unwrap_or(u64::MAX), millis: number("segment.ms") },
        cleaning: Cleaning {
            dirty_ratio: text("min.cleanable.dirty.ratio").parse().unwrap_or(0.5),
            delete_retention: number("delete.retention.ms"),
            least_lag,
            most_lag,
        },
        min_isr: usize::try_from(number("min.insync.replicas")).unwrap_or(1),
        unclean: truth(text("unclean.leader.election.enable")) == Some(true),
        max_message: usize::try_from(number("max.message.bytes")).unwrap_or(0),
        leader_throttled: throttled("leader.replication.throttled.replicas")?,
        follower_throttled: throttled("follower.replication.throttled.replicas")?,
    })
}
