//! What a node is told: its properties, and the file that makes a folder one of its log directories.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::certificates::{ADMIN, Certificates};

/// The id of the controller, which is no broker.
pub(super) const CONTROLLER: i32 = 100;

/// A broker to be.
#[derive(Debug, Clone)]
pub struct BrokerSpec {
    /// Its id.
    pub id: i32,
    /// Its rack.
    pub rack: String,
    /// How many log directories it has.
    pub log_dirs: usize,
}

impl BrokerSpec {
    /// A broker with two log directories.
    pub fn new(id: i32, rack: &str) -> Self {
        Self { id, rack: rack.to_owned(), log_dirs: 2 }
    }

    /// Brokers with ids from 0, spread over the racks `a`, `b` and `c`.
    pub fn several(count: u8) -> Vec<Self> {
        (0..i32::from(count)).zip(["a", "b", "c"].into_iter().cycle()).map(|(id, rack)| Self::new(id, rack)).collect()
    }
}

/// The doors of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Neither encryption nor a name; whoever enters may do everything.
    Plaintext,
    /// TLS, and a user's name and password by SCRAM or PLAIN.
    SaslSsl,
    /// TLS, and a certificate of the client's.
    Mtls,
}

/// Where a broker listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    plaintext: u16,
    sasl_ssl: u16,
    mtls: u16,
}

impl Addresses {
    pub(super) fn new([plaintext, sasl_ssl, mtls]: [u16; 3]) -> Self {
        Self { plaintext, sasl_ssl, mtls }
    }

    pub(super) fn of(&self, listener: Listener) -> String {
        let port = match listener {
            Listener::Plaintext => self.plaintext,
            Listener::SaslSsl => self.sasl_ssl,
            Listener::Mtls => self.mtls,
        };
        format!("127.0.0.1:{port}")
    }
}

/// What all nodes of a cluster have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster_id: String,
    pub(super) controller_port: u16,
    pub(super) certificates: Certificates,
    pub(super) users: BTreeMap<String, String>,
}

/// Small: few threads, small buffers, internal topics of one partition. One internal replica, so that a broker which a
/// test kills takes nothing down that another test needs, unless it leads it. Retention never looks: records of tests
/// carry times of long ago, and by default the first look, half a minute after the start, would take them away. The
/// cleaner of compacted topics is in a hurry instead.
const SMALL: &str = "\
auto.create.topics.enable=false
num.network.threads=1
num.io.threads=2
num.replica.fetchers=1
background.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=2097152
log.cleaner.backoff.ms=200
log.initial.task.delay.ms=86400000
log.retention.check.interval.ms=86400000
log.segment.bytes=16777216
log.index.size.max.bytes=65536
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
";

pub(super) fn controller(shared: &Shared, data: &Path) -> String {
    let port = shared.controller_port;
    let own = format!(
        "process.roles=controller\n\
         node.id={CONTROLLER}\n\
         listeners=CONTROLLER://127.0.0.1:{port}\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT\n\
         log.dirs={}\n\
         auto.leader.rebalance.enable=false\n\
         broker.session.timeout.ms=2000\n",
        data.display()
    );
    own + &everyone(shared)
}

pub(super) fn broker(
    shared: &Shared,
    spec: &BrokerSpec,
    addresses: Addresses,
    metadata_dir: &Path,
    log_dirs: &[PathBuf],
) -> String {
    let BrokerSpec { id, rack, .. } = spec;
    let [plaintext, sasl_ssl, mtls] =
        [Listener::Plaintext, Listener::SaslSsl, Listener::Mtls].map(|listener| addresses.of(listener));
    let log_dirs: Vec<_> = log_dirs.iter().map(|log_dir| log_dir.display().to_string()).collect();
    let log_dirs = log_dirs.join(",");
    let mut own = format!(
        "process.roles=broker\n\
         node.id={id}\n\
         broker.rack={rack}\n\
         log.dirs={log_dirs}\n\
         metadata.log.dir={}\n\
         broker.heartbeat.interval.ms=300\n\
         listeners=PLAINTEXT://{plaintext},SASL_SSL://{sasl_ssl},MTLS://{mtls}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,MTLS:SSL,CONTROLLER:PLAINTEXT\n\
         inter.broker.listener.name=PLAINTEXT\n\
         ssl.keystore.type=PEM\n\
         ssl.keystore.location={}\n\
         ssl.truststore.type=PEM\n\
         ssl.truststore.location={}\n\
         listener.name.mtls.ssl.client.auth=required\n\
         sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n",
        metadata_dir.display(),
        shared.certificates.keystore().display(),
        shared.certificates.authority().display(),
    );
    for mechanism in ["scram-sha-256", "scram-sha-512"] {
        let _ = writeln!(
            own,
            "listener.name.sasl_ssl.{mechanism}.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;"
        );
    }
    let _ = write!(
        own,
        "listener.name.sasl_ssl.plain.sasl.jaas.config=\
         org.apache.kafka.common.security.plain.PlainLoginModule required"
    );
    for (user, password) in &shared.users {
        let _ = write!(own, " user_{user}=\"{password}\"");
    }
    own + ";\n" + &everyone(shared)
}

fn everyone(shared: &Shared) -> String {
    let port = shared.controller_port;
    format!(
        "controller.listener.names=CONTROLLER\n\
         controller.quorum.voters={CONTROLLER}@127.0.0.1:{port}\n\
         authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
         super.users=User:ANONYMOUS;User:{ADMIN};User:CN={ADMIN}\n\
         {SMALL}"
    )
}

/// Makes a folder a node's log directory. Kafka's own tool does the same and takes a JVM's start for it.
pub(super) fn format(folder: &Path, cluster_id: &str, node: i32, nth: usize) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
    let mut id = *b"evenkeel--------";
    id[8..12].copy_from_slice(&node.to_be_bytes());
    id[12..].copy_from_slice(&u32::try_from(nth).context("too many log directories")?.to_be_bytes());
    let id = BASE64_URL_SAFE_NO_PAD.encode(id);
    fs::write(
        folder.join("meta.properties"),
        format!("version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={id}\n"),
    )
    .with_context(|| format!("could not format {}", folder.display()))
}
