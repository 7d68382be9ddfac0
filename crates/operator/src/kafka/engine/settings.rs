//! `cruisecontrol.properties`.

use super::{
    CAPACITY, CERTS_PATH, CONFIG_PATH, PORT, TRUST_PATH, USERS_PATH, Wanted, capacity::Capacities, goals, users,
};
use crate::{
    auto_rebalance::settings::{NOTIFIER, OUR_NOTIFIER},
    kafka::{config::METRICS_TOPIC, listeners::REPLICATION, model::Model, properties::Properties},
};

/// How load is learnt of.
pub(crate) const SAMPLER: &str = "metric.sampler.class";
/// Learns of it without a reporter in the brokers.
pub(crate) const ZERO_TOUCH: &str = "ZeroTouchSampler";

/// What stands there unless the user says otherwise.
const DEFAULTS: [(&str, &str); 9] = [
    ("broker.metric.sample.store.topic", "strimzi.cruisecontrol.modeltrainingsamples"),
    ("broker.metrics.window.ms", "300000"),
    ("completed.user.task.retention.time.ms", "86400000"),
    ("metric.reporter.topic", METRICS_TOPIC),
    ("num.broker.metrics.windows", "20"),
    ("num.partition.metrics.windows", "1"),
    ("partition.metric.sample.store.topic", "strimzi.cruisecontrol.partitionmetricsamples"),
    ("partition.metrics.window.ms", "300000"),
    ("webserver.security.enable", "true"),
];

/// The settings of the engine.
pub fn properties(model: &Model, wanted: &Wanted, capacities: &Capacities) -> Properties {
    let mut settings = wanted.config.clone();
    for (key, value) in DEFAULTS {
        settings.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    if let Some(copies) = model.user_config.get("default.replication.factor") {
        settings.entry("sample.store.topic.replication.factor".to_owned()).or_insert_with(|| copies.clone());
    }
    goals::add(&mut settings, capacities);
    let mut set = |key: &str, value: String| settings.insert(key.to_owned(), value);
    set("webserver.auth.credentials.file", format!("{USERS_PATH}/{}", users::AUTH_FILE));
    if wanted.ours {
        let bootstrap = model.names.service_host(&model.names.bootstrap_service());
        set("bootstrap.servers", format!("{bootstrap}:{REPLICATION}"));
        set("security.protocol", "SSL".to_owned());
        for store in ["ssl", "webserver.ssl"] {
            set(&format!("{store}.keystore.type"), "PEM".to_owned());
            set(&format!("{store}.keystore.location"), format!("{CERTS_PATH}/keystore.pem"));
        }
        set("ssl.truststore.type", "PEM".to_owned());
        set("ssl.truststore.location", format!("{TRUST_PATH}/ca.crt"));
        set("webserver.ssl.enable", "true".to_owned());
        set("webserver.http.address", "0.0.0.0".to_owned());
        set("webserver.http.port", PORT.to_string());
        set("capacity.config.file", format!("{CONFIG_PATH}/{CAPACITY}"));
        set("kafka.broker.failure.detection.enable", "true".to_owned());
        if wanted.imbalance {
            set(NOTIFIER, OUR_NOTIFIER.to_owned());
            // Not the user's: our engine's notifier has to know whose map it writes.
            set("evenkeel.cluster.name", model.names.cluster.clone());
            set("evenkeel.cluster.namespace", model.names.namespace.clone());
        }
        if !wanted.reporter && !wanted.config.contains_key(SAMPLER) {
            set(SAMPLER, ZERO_TOUCH.to_owned());
        }
    }
    settings
}
