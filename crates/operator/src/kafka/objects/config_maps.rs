//! The ConfigMap of a node.

use std::collections::BTreeMap;

use evenkeel_api::labels;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{CLUSTER_ID, Component, marked};
use crate::kafka::{
    config::{SERVER_CONFIG, ServerConfig},
    model::{Model, Node},
};

/// The key of the metadata version to format with; empty: the newest that this Kafka knows.
pub const METADATA_VERSION: &str = "metadata.version";

/// Kafka's log, on standard output.
const LOGGING: &str = "\
name=KafkaConfig
appender.console.type=Console
appender.console.name=STDOUT
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n
rootLogger.level=INFO
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=STDOUT
";

/// The ConfigMap of a node, named as its pod.
pub fn config_map(model: &Model, node: &Node, config: &ServerConfig, cluster_id: &str) -> ConfigMap {
    let mut metadata = marked(model, &node.pod, Component::Kafka, model.pools[&node.pool].owner.clone());
    let own = metadata.labels.get_or_insert_default();
    own.insert(labels::POOL_NAME.to_owned(), node.pool.clone());
    own.insert(labels::POD_NAME.to_owned(), node.pod.clone());
    let data = [
        (SERVER_CONFIG, config.text()),
        (CLUSTER_ID, cluster_id.to_owned()),
        (METADATA_VERSION, model.metadata_version.clone().unwrap_or_default()),
        ("log4j2.properties", LOGGING.to_owned()),
    ];
    let data: BTreeMap<String, String> = data.map(|(key, value)| (key.to_owned(), value)).into();
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
