//! Settings that users write under `config`, and those that the operator keeps for itself.

use evenkeel_api::{FreeForm, Reason};
use serde_json::Value;

use crate::kafka::{problem::Remark, properties::Properties};

/// Whose settings they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kafka) enum Owner {
    /// Kafka's: `spec.kafka.config`.
    Kafka,
    /// The engine's: `spec.cruiseControl.config`.
    Engine,
}

/// Beginnings of Kafka's settings that are the operator's, and those among them that are not.
const KAFKA: ([&str; 23], [&str; 14]) = (
    [
        "advertised.",
        "authorizer.",
        "broker.",
        "client.quota.callback.static.",
        "controller",
        "cordoned.log.dirs",
        "cruise.control.metrics.reporter.bootstrap.servers",
        "cruise.control.metrics.topic",
        "host.name",
        "inter.broker.listener.name",
        "listener.",
        "listeners",
        "log.dir",
        "metadata.log.dir",
        "node.id",
        "password.",
        "port",
        "process.roles",
        "sasl.",
        "security.",
        "ssl.",
        "super.user",
        "zookeeper.",
    ],
    [
        "controller.quorum.election.backoff.max.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "cruise.control.metrics.topic.auto.create.retries",
        "cruise.control.metrics.topic.auto.create.timeout.ms",
        "cruise.control.metrics.topic.min.insync.replicas",
        "cruise.control.metrics.topic.num.partitions",
        "cruise.control.metrics.topic.replication.factor",
        "cruise.control.metrics.topic.retention.ms",
        "sasl.server.max.receive.size",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.protocol",
    ],
);

/// The same of the engine's.
const ENGINE: ([&str; 20], [&str; 7]) = (
    [
        "bootstrap.servers",
        "capacity.config.file",
        "client.id",
        "failed.brokers.zk.path",
        "kafka.broker.failure.detection.enable",
        "metric.reporter.sampler.bootstrap.servers",
        "network.",
        "request.reason.required",
        "security.",
        "self.healing.",
        "ssl.",
        "topic.config.provider.class",
        "two.step.",
        "webserver.accesslog.",
        "webserver.api.urlprefix",
        "webserver.auth.credentials.file",
        "webserver.http.",
        "webserver.session.path",
        "webserver.ssl.",
        "zookeeper.",
    ],
    [
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "webserver.http.cors.enabled",
        "webserver.http.cors.exposeheaders",
        "webserver.http.cors.origin",
        "webserver.security.enable",
    ],
);

impl Owner {
    fn path(self) -> &'static str {
        match self {
            Self::Kafka => "spec.kafka.config",
            Self::Engine => "spec.cruiseControl.config",
        }
    }

    /// The beginning that makes a key the operator's, if it is.
    fn forbids(self, key: &str) -> Option<&'static str> {
        let (prefixes, exceptions): (&[&'static str], &[&str]) = match self {
            Self::Kafka => (&KAFKA.0, &KAFKA.1),
            Self::Engine => (&ENGINE.0, &ENGINE.1),
        };
        let key = key.to_ascii_lowercase();
        let found = prefixes.iter().copied().find(|prefix| key.starts_with(prefix))?;
        (!exceptions.contains(&key.as_str())).then_some(found)
    }
}

/// Settings as a user wrote them, without those that are the operator's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kafka) struct UserConfig {
    /// What is left.
    pub(in crate::kafka) entries: Properties,
    /// What is to be said about the rest.
    pub(in crate::kafka) remarks: Vec<Remark>,
}

impl UserConfig {
    pub(in crate::kafka) fn read(written: Option<&FreeForm>, owner: Owner) -> Self {
        let mut read = Self::default();
        for (key, value) in written.into_iter().flatten() {
            let path = owner.path();
            if let Some(prefix) = owner.forbids(key) {
                let why =
                    if prefix == key { String::new() } else { format!(", as everything that begins with {prefix}") };
                read.warn(format!("{path}: {key} is left out: the operator sets it{why}"));
                continue;
            }
            match text(value) {
                Ok(Some(text)) => {
                    read.entries.insert(key.clone(), text);
                }
                Ok(None) => {}
                Err(()) => {
                    read.warn(format!("{path}: {key} is left out: its value must be a text, a number or a boolean"))
                }
            }
        }
        read
    }

    fn warn(&mut self, text: String) {
        self.remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
    }
}

/// A setting as text: YAML makes `true` and `3` of what Kafka reads as text.
fn text(value: &Value) -> Result<Option<String>, ()> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(_) | Value::Number(_) => Ok(Some(value.to_string())),
        Value::Array(_) | Value::Object(_) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_operator_s_own_settings_are_left_out_and_named() {
        let written: FreeForm = serde_json::from_value(json!({
            "min.insync.replicas": 2, "auto.create.topics.enable": false, "log.retention.hours": "24",
            "log.dirs": "/tmp", "advertised.listeners": "x", "node.id": 7, "ssl.protocol": "TLSv1.3", "SSL.keystore.type": "x",
            "cordoned.log.dirs": "*", "controller.quorum.voters": "x", "compression.type": null, "odd": ["a"]}))
        .unwrap();
        let read = UserConfig::read(Some(&written), Owner::Kafka);
        let keys: Vec<&str> = read.entries.keys().map(String::as_str).collect();
        assert_eq!(keys, ["auto.create.topics.enable", "log.retention.hours", "min.insync.replicas", "ssl.protocol"]);
        assert_eq!((read.entries["min.insync.replicas"].as_str(), read.remarks.len()), ("2", 7));
        let said: Vec<&str> = read.remarks.iter().filter_map(|remark| remark.condition.message.as_deref()).collect();
        assert!(said.contains(
            &"spec.kafka.config: log.dirs is left out: the operator sets it, as everything that begins with log.dir"
        ));
        assert!(said.contains(&"spec.kafka.config: cordoned.log.dirs is left out: the operator sets it"));
    }

    #[test]
    fn the_engine_has_other_settings() {
        let written: FreeForm = serde_json::from_value(json!({
            "webserver.security.enable": false, "webserver.http.port": 1, "webserver.http.cors.enabled": true,
            "self.healing.goals": "x", "goals": "RackAwareGoal"}))
        .unwrap();
        let read = UserConfig::read(Some(&written), Owner::Engine);
        let keys: Vec<&str> = read.entries.keys().map(String::as_str).collect();
        assert_eq!(keys, ["goals", "webserver.http.cors.enabled", "webserver.security.enable"]);
        assert_eq!(read.remarks.len(), 2);
    }
}
