//! What Kafka can change while it runs.
//!
//! Users' settings are the same for all nodes, so they are changed for the whole cluster: with eligible leader replicas
//! Kafka refuses `min.insync.replicas` for single brokers. Thread pools are not in the list, though Kafka could: it
//! refuses more than twice or less than half of what there is, and a restart always works.

use super::{CORDONED, ServerConfig};

/// Settings that Kafka can change for the whole cluster while it runs, sorted.
const CLUSTER_WIDE: [&str; 39] = [
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "log.cleaner.backoff.ms",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.local.retention.bytes",
    "log.local.retention.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "message.max.bytes",
    "min.insync.replicas",
    "producer.id.expiration.ms",
    "remote.fetch.max.wait.ms",
    "remote.log.manager.copy.max.bytes.per.second",
    "remote.log.manager.fetch.max.bytes.per.second",
    "transaction.partition.verification.enable",
    "unclean.leader.election.enable",
];

/// Settings that are not taken back but set to this, which is what they are without being set. A broker that was started
/// with a cordon would still have it if it were merely taken back; and with eligible leader replicas Kafka does not let
/// `min.insync.replicas` be taken back at all.
const INSTEAD_OF_REMOVAL: [(&str, &str); 2] = [(CORDONED, ""), ("min.insync.replicas", "1")];

/// What a setting is set to when it goes. None: it is taken back, and forgotten with the next restart.
pub(super) fn instead_of_removal(key: &str) -> Option<&'static str> {
    INSTEAD_OF_REMOVAL.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// Whether Kafka can change a setting while it runs.
pub(super) fn is_dynamic(key: &str) -> bool {
    key == CORDONED || CLUSTER_WIDE.binary_search(&key).is_ok()
}

/// Whom a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All nodes: Kafka's default entity.
    Cluster,
    /// This broker.
    Broker,
}

/// A setting to change in a running cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DynamicChange {
    /// Whom it is for.
    pub scope: Scope,
    /// Which.
    pub key: String,
    /// What to. None: what was set before is taken back.
    pub value: Option<String>,
}

/// What it takes to come from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// To be changed in the running cluster. Do it *before* the ConfigMap is written: that is the memory of it.
    pub dynamic: Vec<DynamicChange>,
    /// Settings that need a restart. The hash changes with them.
    pub restart: Vec<String>,
}

impl Changes {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.dynamic.is_empty() && self.restart.is_empty()
    }
}

/// What it takes to come from `before`, which stands in the ConfigMap, to `after`.
pub fn changes(before: &ServerConfig, after: &ServerConfig) -> Changes {
    let mut changes = Changes::default();
    let keys: std::collections::BTreeSet<&String> = before.entries.keys().chain(after.entries.keys()).collect();
    for key in keys {
        let (old, new) = (before.entries.get(key), after.entries.get(key));
        if old == new {
            continue;
        }
        let scope = if key == CORDONED { Scope::Broker } else { Scope::Cluster };
        let mut change = |value| changes.dynamic.push(DynamicChange { scope, key: key.clone(), value });
        match new {
            _ if !is_dynamic(key) => changes.restart.push(key.clone()),
            Some(value) => change(Some(value.clone())),
            None => match instead_of_removal(key) {
                Some(value) => change(Some(value.to_owned())),
                None => {
                    change(None);
                    changes.restart.push(key.clone());
                }
            },
        }
    }
    if before.unsettled && before.entries.get(CORDONED) == after.entries.get(CORDONED) {
        // Taken back, not set: the file of one that is new says how it is.
        let value = after.entries.get(CORDONED).cloned();
        changes.dynamic.push(DynamicChange { scope: Scope::Broker, key: CORDONED.to_owned(), value });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_searched() {
        assert!(CLUSTER_WIDE.is_sorted());
        assert!(is_dynamic("min.insync.replicas") && is_dynamic(CORDONED) && !is_dynamic("num.io.threads"));
    }
}
