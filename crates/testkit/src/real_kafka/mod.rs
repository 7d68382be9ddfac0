//! Real brokers: a KRaft cluster of Apache Kafka, one JVM per node, on loopback.
//!
//! Nodes are started from a kit that `cargo xtask real kafka` makes once per machine; it passes the kit's folder in
//! [`KIT`]. One controller and any number of brokers, each with its racks and log directories and three listeners
//! ([`Listener`]). Brokers can be added, stopped, killed, started again and removed while the cluster runs; they keep
//! their ports and their data from life to life. Data is throwaway: at the end nodes are killed, never asked to stop,
//! and they die with this process however it ends.
//!
//! A cluster of five takes about ten seconds to start and 0.8 GB, so a suite shares [one](Cluster::shared), with topic
//! names of its own in each test. A test that hurts brokers brings its own: [`Cluster::add_broker`] beside the shared
//! ones, or a whole cluster.

mod kit;
mod node;
mod properties;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures::future::try_join_all;
use tokio::sync::{Mutex, OnceCell};

pub use kit::{KIT, Kit, mortal};
pub use properties::{BrokerSpec, Listener};

use crate::{certificates::Certificates, ports::lasting_ports, run_folder::RunFolder, server::EarlyExit};
use node::Node;
use properties::{Addresses, CONTROLLER, Shared};

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    // In this order: each node goes before those it talks to, and the folder last.
    brokers: std::sync::Mutex<BTreeMap<i32, Arc<Mutex<Broker>>>>,
    _controller: Node,
    /// Of the brokers it was started with.
    first: Vec<Addresses>,
    shared: Shared,
    kit: Kit,
    folder: RunFolder,
}

#[derive(Debug)]
struct Broker {
    node: Node,
    addresses: Addresses,
    log_dirs: Vec<PathBuf>,
}

impl Broker {
    fn log_dir(&self, nth: usize) -> Result<PathBuf> {
        self.log_dirs.get(nth).cloned().context("there is no such log directory")
    }
}

/// Where a log directory is while it is broken.
fn taken_away(dir: &Path) -> PathBuf {
    dir.with_extension("taken-away")
}

impl Cluster {
    /// Starts a controller and these brokers, and returns once every broker serves.
    ///
    /// # Errors
    ///
    /// When a node exits early twice in a row, or does not serve in time; the error carries the end of that node's log.
    pub async fn start(kit: Kit, brokers: &[BrokerSpec]) -> Result<Self> {
        match Self::try_start(kit.clone(), brokers).await {
            // A port chosen as free was taken before the node had it: rare, and gone at once.
            Err(failure) if failure.is::<EarlyExit>() => Self::try_start(kit, brokers).await,
            outcome => outcome,
        }
    }

    /// The cluster of this test process, started by whoever asks first: four brokers in three racks, with two log
    /// directories each.
    ///
    /// It lives as long as the process: no destructor of a static runs, but the nodes notice that we are gone.
    ///
    /// # Errors
    ///
    /// When [`KIT`] is not set, or as [`Cluster::start`] does.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED.get_or_try_init(|| async { Self::start(Kit::from_env()?, &BrokerSpec::several(4)).await }).await
    }

    /// Starts one more broker and returns once it serves. Brokers that were there learn of it a moment later.
    ///
    /// # Errors
    ///
    /// When there is a broker of this id, or as [`Cluster::start`] does.
    pub async fn add_broker(&self, spec: &BrokerSpec) -> Result<()> {
        let broker = self.with_brokers(|brokers| match brokers.entry(spec.id) {
            Entry::Occupied(_) => bail!("there is a broker {} already", spec.id),
            Entry::Vacant(place) => {
                let broker = lay_out(self.folder.path(), &self.shared, spec)?;
                Ok(Arc::clone(place.insert(Arc::new(Mutex::new(broker)))))
            }
        })?;
        let mut broker = broker.lock().await;
        broker.node.spawn(&self.kit)?;
        broker.node.serves().await
    }

    /// Stops a broker as an administrator would: it hands over its leaderships, and is fenced at once.
    ///
    /// # Errors
    ///
    /// When it does not end in time, or there is none.
    pub async fn stop_broker(&self, id: i32) -> Result<()> {
        self.broker(id)?.lock().await.node.stop().await
    }

    /// Ends a broker without a word. The cluster notices when its session ends, after two seconds.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn kill_broker(&self, id: i32) -> Result<()> {
        self.broker(id)?.lock().await.node.kill();
        Ok(())
    }

    /// Starts a stopped or killed broker again, on its ports and with its data, and returns once it serves.
    ///
    /// # Errors
    ///
    /// When there is none, it runs, or as [`Cluster::start`] does.
    pub async fn start_broker(&self, id: i32) -> Result<()> {
        let broker = self.broker(id)?;
        let mut broker = broker.lock().await;
        broker.node.spawn(&self.kit)?;
        broker.node.serves().await
    }

    /// Takes one of a broker's log directories away: a file is where it was. The broker notices when it next writes a
    /// checkpoint there, within five seconds.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn break_log_dir(&self, id: i32, nth: usize) -> Result<()> {
        let broker = self.broker(id)?;
        let dir = broker.lock().await.log_dir(nth)?;
        fs::rename(&dir, taken_away(&dir)).context("could not take a log directory away")?;
        fs::write(&dir, "no directory\n").context("could not put a file where a log directory was")
    }

    /// Gives a broken directory back, with all that was in it, and starts its broker anew: nothing less makes a broker
    /// use it again.
    ///
    /// # Errors
    ///
    /// When it is not broken, or as [`Cluster::start_broker`] does.
    pub async fn mend_log_dir(&self, id: i32, nth: usize) -> Result<()> {
        let broker = self.broker(id)?;
        let dir = broker.lock().await.log_dir(nth)?;
        self.stop_broker(id).await?;
        fs::remove_file(&dir).context("the log directory is not broken")?;
        fs::rename(taken_away(&dir), &dir).context("could not give a log directory back")?;
        self.start_broker(id).await
    }

    /// What to give a client that knows none of the brokers: where those are that the cluster was started with.
    pub fn bootstrap(&self, listener: Listener) -> String {
        let addresses: Vec<_> = self.first.iter().map(|broker| broker.of(listener)).collect();
        addresses.join(",")
    }

    /// Where one broker listens.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn address(&self, id: i32, listener: Listener) -> Result<String> {
        Ok(self.broker(id)?.lock().await.addresses.of(listener))
    }

    /// Where a broker keeps its replicas.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn log_dirs(&self, id: i32) -> Result<Vec<PathBuf>> {
        Ok(self.broker(id)?.lock().await.log_dirs.clone())
    }

    /// Certificates of the cluster's authority, and of another that it does not trust.
    pub fn certificates(&self) -> &Certificates {
        &self.shared.certificates
    }

    /// The password of a user that the cluster knows: `admin` may do everything, `guest` nothing.
    pub fn password(&self, user: &str) -> Option<&str> {
        self.shared.users.get(user).map(String::as_str)
    }

    async fn try_start(kit: Kit, brokers: &[BrokerSpec]) -> Result<Self> {
        let mut folder = RunFolder::new("brokers")?;
        match Self::start_in(folder.path(), &kit, brokers).await {
            Ok((shared, controller, brokers)) => Ok(Self {
                first: brokers.values().map(|broker| broker.addresses).collect(),
                brokers: std::sync::Mutex::new(
                    brokers.into_iter().map(|(id, broker)| (id, Arc::new(Mutex::new(broker)))).collect(),
                ),
                _controller: controller,
                shared,
                kit,
                folder,
            }),
            Err(failure) => {
                folder.keep();
                Err(failure)
            }
        }
    }

    async fn start_in(folder: &Path, kit: &Kit, specs: &[BrokerSpec]) -> Result<(Shared, Node, BTreeMap<i32, Broker>)> {
        let [port] = lasting_ports()?;
        let shared = Shared {
            cluster_id: new_cluster_id(),
            controller_port: port,
            certificates: Certificates::make(&folder.join("tls"))?,
            users: kit.users()?,
        };
        let mut controller = lay_out_controller(folder, kit, &shared)?;
        let mut brokers = BTreeMap::new();
        for spec in specs {
            ensure!(brokers.insert(spec.id, lay_out(folder, &shared, spec)?).is_none(), "two brokers {}", spec.id);
        }
        // All at once: brokers wait for the controller, and a machine with two cores has something to do meanwhile.
        controller.spawn(kit)?;
        for broker in brokers.values_mut() {
            broker.node.spawn(kit)?;
        }
        controller.serves().await?;
        try_join_all(brokers.values_mut().map(|broker| broker.node.serves())).await?;
        Ok((shared, controller, brokers))
    }

    fn broker(&self, id: i32) -> Result<Arc<Mutex<Broker>>> {
        self.with_brokers(|brokers| brokers.get(&id).cloned()).with_context(|| format!("there is no broker {id}"))
    }

    fn with_brokers<T>(&self, look: impl FnOnce(&mut BTreeMap<i32, Arc<Mutex<Broker>>>) -> T) -> T {
        // Each look is one call on the map; a test that panicked elsewhere has not broken it.
        look(&mut self.brokers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Different from cluster to cluster, so that a node which meets one of another cluster's at an old port is told so.
fn new_cluster_id() -> String {
    let mut bytes = *b"evenkeel--------";
    bytes[8..].copy_from_slice(&RandomState::new().build_hasher().finish().to_be_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn lay_out_controller(folder: &Path, kit: &Kit, shared: &Shared) -> Result<Node> {
    let folder = folder.join("controller");
    let data = folder.join("d0");
    let properties = properties::controller(shared, &data);
    let node = Node::lay_out("controller", &folder, &properties)?;
    properties::format(&data, &shared.cluster_id, CONTROLLER, 0)?;
    fs::copy(kit.bootstrap_checkpoint(), data.join("bootstrap.checkpoint"))
        .context("could not copy the cluster's first records")?;
    Ok(node)
}

fn lay_out(folder: &Path, shared: &Shared, spec: &BrokerSpec) -> Result<Broker> {
    let name = format!("broker-{}", spec.id);
    let folder = folder.join(&name);
    let addresses = Addresses::new(lasting_ports()?);
    let log_dirs: Vec<_> = (0..spec.log_dirs).map(|n| folder.join(format!("d{n}"))).collect();
    // Apart from the log directories: a broker that loses the one with its metadata is lost with all of them.
    let metadata_dir = folder.join("metadata");
    let properties = properties::broker(shared, spec, addresses, &metadata_dir, &log_dirs);
    let node = Node::lay_out(&name, &folder, &properties)?;
    for (n, log_dir) in log_dirs.iter().chain([&metadata_dir]).enumerate() {
        properties::format(log_dir, &shared.cluster_id, spec.id, n)?;
    }
    Ok(Broker { node, addresses, log_dirs })
}
