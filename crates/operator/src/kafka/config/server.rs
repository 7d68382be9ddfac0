//! `server.config`, key by key.

use super::{CLIENTS_TRUST, CLUSTER_TRUST, CORDONED, KEYSTORE, RACK, ServerConfig, VOTERS, knows_cordons};
use crate::kafka::{
    listeners::{CONTROL_PLANE, REPLICATION},
    model::{Model, Node},
};

const CONTROL_PLANE_NAME: &str = "CONTROLPLANE-9090";
const REPLICATION_NAME: &str = "REPLICATION-9091";
const REPORTER: &str = "com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter";
/// The topic that the reporter writes and the engine reads.
pub(in crate::kafka) const METRICS_TOPIC: &str = "strimzi.cruisecontrol.metrics";

impl ServerConfig {
    /// The configuration of a node. `cordoned`: it is being emptied, and Kafka is to put nothing new on it; a Kafka that
    /// does not know how is not told.
    pub fn of(model: &Model, node: &Node, cordoned: bool) -> Self {
        let mut config = Self { entries: model.user_config.clone(), ..Self::default() };
        config.identity(model, node);
        config.listeners(model, node);
        config.logs(model, node);
        if node.roles.broker {
            config.rack(model);
            config.reporter(model);
            if cordoned && knows_cordons(model) {
                config.set(CORDONED, "*");
            }
        }
        config
    }

    fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.entries.insert(key.into(), value.into());
    }

    fn identity(&mut self, model: &Model, node: &Node) {
        self.set("node.id", node.id.to_string());
        self.set("process.roles", node.roles.text());
        self.set(VOTERS, model.voters.text(&model.names));
        self.set("controller.listener.names", CONTROL_PLANE_NAME);
    }

    fn listeners(&mut self, model: &Model, node: &Node) {
        let mut all = Vec::new();
        if node.roles.controller {
            all.push((CONTROL_PLANE_NAME.to_owned(), CONTROL_PLANE));
        }
        let mut protocols = vec![format!("{CONTROL_PLANE_NAME}:SSL")];
        self.tls(CONTROL_PLANE_NAME, Some(CLUSTER_TRUST));
        if node.roles.broker {
            all.push((REPLICATION_NAME.to_owned(), REPLICATION));
            protocols.push(format!("{REPLICATION_NAME}:SSL"));
            self.set("inter.broker.listener.name", REPLICATION_NAME);
            self.tls(REPLICATION_NAME, Some(CLUSTER_TRUST));
            for listener in &model.listeners {
                let name = listener.kafka_name();
                protocols.push(format!("{name}:{}", if listener.tls { "SSL" } else { "PLAINTEXT" }));
                if listener.tls {
                    self.tls(&name, listener.client_certificates.then_some(CLIENTS_TRUST));
                }
                all.push((name, listener.port));
            }
        }
        let host = model.names.pod_host(&node.pod);
        let joined = |host: &str| -> String {
            let texts: Vec<String> = all.iter().map(|(name, port)| format!("{name}://{host}:{port}")).collect();
            texts.join(",")
        };
        self.set("listeners", joined("0.0.0.0"));
        self.set("advertised.listeners", joined(&host));
        self.set("listener.security.protocol.map", protocols.join(","));
    }

    /// `trusted`: clients must show a certificate of this authority.
    fn tls(&mut self, listener: &str, trusted: Option<&str>) {
        let prefix = format!("listener.name.{}.ssl", listener.to_lowercase());
        self.set(format!("{prefix}.keystore.type"), "PEM");
        self.set(format!("{prefix}.keystore.location"), KEYSTORE);
        self.set(format!("{prefix}.client.auth"), if trusted.is_some() { "required" } else { "none" });
        if let Some(authority) = trusted {
            self.set(format!("{prefix}.truststore.type"), "PEM");
            self.set(format!("{prefix}.truststore.location"), authority);
        }
    }

    fn logs(&mut self, model: &Model, node: &Node) {
        let disks = &model.pools[&node.pool].disks;
        let dirs: Vec<String> = disks.disks.iter().map(|disk| disks.log_dir(disk, node.id)).collect();
        self.set("log.dirs", dirs.join(","));
        // Kafka takes the first directory by itself.
        if disks.jbod && disks.disks.iter().any(|disk| disk.metadata) {
            self.set("metadata.log.dir", disks.log_dir(disks.metadata_disk(), node.id));
        }
    }

    fn rack(&mut self, model: &Model) {
        if model.rack.is_none() {
            return;
        }
        let (folder, file) = RACK;
        let users = self.entries.get("config.providers").cloned().unwrap_or_default();
        let mut providers: Vec<&str> = users.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if !providers.contains(&"dir") {
            providers.push("dir");
        }
        self.set("config.providers", providers.join(","));
        self.set("config.providers.dir.class", "org.apache.kafka.common.config.provider.DirectoryConfigProvider");
        self.set("config.providers.dir.param.allowed.paths", folder);
        self.set("broker.rack", format!("${{dir:{folder}:{file}}}"));
    }

    fn reporter(&mut self, model: &Model) {
        if !model.engine.as_ref().is_some_and(|engine| engine.reporter) {
            return;
        }
        let others = self.entries.get("metric.reporters").filter(|others| !others.is_empty());
        let reporters = match others {
            Some(others) if others.contains(REPORTER) => others.clone(),
            Some(others) => format!("{others},{REPORTER}"),
            None => REPORTER.to_owned(),
        };
        self.set("metric.reporters", reporters);
        let topic = "cruise.control.metrics.topic";
        for (key, like, default) in [
            ("num.partitions", "num.partitions", "1"),
            ("replication.factor", "default.replication.factor", "1"),
            ("min.insync.replicas", "", "1"),
        ] {
            let value = self.entries.get(like).map_or(default, String::as_str).to_owned();
            self.entries.entry(format!("{topic}.{key}")).or_insert(value);
        }
        self.set(topic, METRICS_TOPIC);
        self.set(format!("{topic}.auto.create"), "true");
        let prefix = "cruise.control.metrics.reporter";
        let brokers = model.names.service_host(&model.names.brokers_service());
        self.set(format!("{prefix}.bootstrap.servers"), format!("{brokers}:{REPLICATION}"));
        self.set(format!("{prefix}.kubernetes.mode"), "true");
        self.set(format!("{prefix}.security.protocol"), "SSL");
        self.set(format!("{prefix}.ssl.endpoint.identification.algorithm"), "HTTPS");
        self.set(format!("{prefix}.ssl.keystore.type"), "PEM");
        self.set(format!("{prefix}.ssl.keystore.location"), KEYSTORE);
        self.set(format!("{prefix}.ssl.truststore.type"), "PEM");
        self.set(format!("{prefix}.ssl.truststore.location"), CLUSTER_TRUST);
    }
}
