//! Containers named `kafka`: brokers of simulated clusters.
//!
//! A cluster comes into being with its first broker, under the id that its ConfigMap has, and is forgotten when neither
//! a pod nor a claim of it is left. A pod's start starts its broker, its end stops it; its data is in its volumes, so it
//! outlives the pod exactly where the volume does. Nodes that are controllers only are ready at once and do nothing:
//! the simulated cluster has its quorum built in.
//!
//! **What brokers advertise.** On the listener between brokers (and on those of controllers), what the file says: the
//! operator and the engine speak there, they resolve names through the node's table, and the name is in the certificate.
//! On all other listeners 127.0.0.1 and the real port: people's clients speak there, on a laptop whose DNS knows no
//! pods. This is the only thing rewritten; a broker keeps its real ports when it is restarted, so that what clients
//! remember stays true.

mod worlds;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_sim::cluster::{BrokerSpec, DirSpec};
use evenkeel_sim::serve::tls::{self, ClientAuth};
use evenkeel_sim::serve::{Listener, Port, World};
use evenkeel_sim::{BrokerId, Options};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

pub use self::worlds::Worlds;
use self::worlds::{Hosted, Key, Mounted};
use super::server_config::{self, Audience, ListenerConfig, ServerConfig, TlsConfig};
use super::wires::{Wires, loopback};
use crate::clock::Clock;
use crate::kubelet::logs::Log;
use crate::kubelet::program::{Exit, Launch, LaunchError, Process, Programs, Stop};

/// Where the operator's ConfigMap of a node is mounted.
pub(super) const CONFIG: &str = "/opt/kafka/custom-config/server.config";
pub(super) const CLUSTER_ID: &str = "/opt/kafka/custom-config/cluster.id";
/// How often, and after which wait, a port is tried that a broker had before.
const BIND_TRIES: usize = 10;
const BIND_AGAIN: Duration = Duration::from_millis(50);
const CLUSTER_LABEL: &str = "strimzi.io/cluster";

/// How clusters are simulated.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// What time it is when a cluster begins.
    pub clock: Clock,
    /// Seconds of a cluster in each of ours.
    pub speed: f64,
    /// Everything else; cluster id and time are those of the cluster.
    pub options: Options,
}

/// Runs brokers. Clones are the same.
#[derive(Debug, Clone)]
pub struct Brokers {
    wires: Wires,
    worlds: Worlds,
}

impl Brokers {
    /// None yet.
    pub fn new(wires: Wires, simulation: Simulation) -> Self {
        Self { wires, worlds: Worlds::new(simulation) }
    }

    /// The clusters that they make up.
    pub fn worlds(&self) -> &Worlds {
        &self.worlds
    }

    async fn start(self, what: Launch) -> Result<Process, LaunchError> {
        let text = what.files.text(CONFIG).ok_or_else(|| missing(CONFIG))?;
        let (file, variable) =
            (|path: &str| what.files.text(path).map(str::to_owned), |name: &str| what.env.get(name).cloned());
        let config = ServerConfig::read(text, file, variable)
            .map_err(|why| LaunchError::Configuration(format!("{CONFIG}: {why}")))?;
        if !config.is_broker {
            what.log.line(&format!(
                "node {} is a controller; the simulated cluster has its quorum built in",
                config.node_id
            ));
            return Ok(idle());
        }
        let hosted = self.hosted(&what)?;
        let mut ports = Vec::new();
        for listener in config.listeners.iter().filter(|listener| listener.audience != Audience::Controllers) {
            ports.push(self.open(&what, &hosted, &config, listener).await?);
        }
        let (world, id) = (hosted.world().clone(), BrokerId(config.node_id));
        // Whoever ran under this id is gone: there is one pod of a name. One that was killed is refused until the session
        // of its life before is over.
        world.with(|cluster| cluster.crash_broker(id));
        world.until(|cluster| !cluster.session_lasts(id)).await;
        // From here on nothing is waited for: whoever drops this future drops ports, or gets a process.
        let numbers = ports.iter().map(|(at, port)| (*at, port.number())).collect();
        let ports = ports.into_iter().map(|(_, port)| port).collect();
        let broker = Broker::boot(&hosted, &what, &config, ports)?;
        what.log.line(&format!("broker {} has started, listening at {numbers:?}", config.node_id));
        Ok(broker.into_process(numbers))
    }

    /// The cluster that a pod belongs to.
    fn hosted(&self, what: &Launch) -> Result<Hosted, LaunchError> {
        let id = what.files.text(CLUSTER_ID).map(str::trim).ok_or_else(|| missing(CLUSTER_ID))?;
        let key = Key::of(&what.pod).ok_or_else(|| {
            LaunchError::Configuration(format!("the pod has no label {CLUSTER_LABEL}: whose broker is it?"))
        })?;
        let hosted = self.worlds.get_or_begin(key, id, &what.pod);
        let known = hosted.world().look(|cluster| cluster.cluster_id().to_owned());
        if known != id {
            let said =
                format!("the cluster id is {id}, and the volumes are of the cluster {known}: delete their claims");
            return Err(LaunchError::Configuration(said));
        }
        Ok(hosted)
    }

    async fn open(
        &self,
        what: &Launch,
        hosted: &Hosted,
        config: &ServerConfig,
        listener: &ListenerConfig,
    ) -> Result<(u16, Port), LaunchError> {
        let id = BrokerId(config.node_id);
        let mut way_in = hosted.listener(&listener.name);
        if let Some(tls) = &listener.tls {
            way_in = with_tls(way_in, what, tls)?;
        }
        let before = hosted.port(id, listener.port);
        let port = match &self.wires {
            Wires::Pipes(pipes) => {
                let number = before.unwrap_or_else(|| pipes.free_port());
                way_in.bind_pipe(id, pipes.memory(), loopback(number))
            }
            Wires::Loopback => {
                let bound = match before {
                    Some(before) => match bind_again(&way_in, id, before).await {
                        Some(port) => Ok(port),
                        None => {
                            what.log.line(&format!("somebody else has taken port {before}; clients must look again"));
                            way_in.bind(id, 0).await
                        }
                    },
                    None => way_in.bind(id, 0).await,
                };
                bound.map_err(|error| LaunchError::Start(Box::new(error)))?
            }
        };
        hosted.remember_port(id, listener.port, port.number());
        match &listener.advertised {
            Some((host, at)) if listener.audience == Audience::Brokers => way_in.announce(id, host, *at),
            _ => way_in.announce(id, "127.0.0.1", port.number()),
        }
        Ok((listener.port, port))
    }
}

impl Programs for Brokers {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        Box::pin(self.clone().start(what))
    }

    fn forget(&self, pod: &Pod) {
        self.worlds.forget(pod);
    }

    fn discard(&self, volume: &str) {
        self.worlds.discard(volume);
    }
}

/// Opens the port that a broker had before. A connection of somebody else may have it for a moment: the system takes
/// its numbers from where ours come from.
async fn bind_again(way_in: &Listener, id: BrokerId, port: u16) -> Option<Port> {
    for _ in 0..BIND_TRIES {
        if let Ok(bound) = way_in.bind(id, port).await {
            return Some(bound);
        }
        tokio::time::sleep(BIND_AGAIN).await;
    }
    None
}

fn missing(path: &str) -> LaunchError {
    LaunchError::Configuration(format!("there is no file {path}"))
}

fn with_tls(way_in: Listener, what: &Launch, tls: &TlsConfig) -> Result<Listener, LaunchError> {
    let read = |path: &str| what.files.get(path).ok_or_else(|| missing(path));
    let authorities = tls.trust_store.as_deref().map(read).transpose()?.unwrap_or_default();
    let clients = match tls.client_auth {
        server_config::ClientAuth::None => ClientAuth::None,
        server_config::ClientAuth::Requested => ClientAuth::Requested(authorities),
        server_config::ClientAuth::Required => ClientAuth::Required(authorities),
    };
    let acceptor = tls::acceptor(read(&tls.key_store)?, clients)
        .map_err(|why| LaunchError::Configuration(format!("{}: {why}", tls.key_store)))?;
    Ok(way_in.with_tls(acceptor))
}

/// A process that has nothing to do but to be there.
fn idle() -> Process {
    let (told, mut listening) = watch::channel(None);
    Process {
        ports: BTreeMap::new(),
        ready: watch::channel(true).1,
        ended: Box::pin(async move { end_of(&mut listening).await }),
        stop: Box::new(move |how| drop(told.send_replace(Some(exit(how))))),
    }
}

async fn end_of(told: &mut watch::Receiver<Option<Exit>>) -> Exit {
    // A sender that is gone was dropped with the process.
    told.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone()).unwrap_or_else(Exit::killed)
}

fn exit(how: Stop) -> Exit {
    match how {
        Stop::Politely => Exit::success(),
        Stop::Now => Exit::killed(),
    }
}

/// A broker that runs. Dropping it kills it.
struct Broker {
    world: World,
    id: BrokerId,
    /// Which of its lives this is.
    epoch: Option<i64>,
    ports: Mutex<Vec<Port>>,
    told: watch::Sender<Option<Exit>>,
    log: Log,
}

impl Broker {
    fn boot(hosted: &Hosted, what: &Launch, config: &ServerConfig, ports: Vec<Port>) -> Result<Self, LaunchError> {
        let id = BrokerId(config.node_id);
        let mounted: Vec<Mounted> = config.log_dirs.iter().map(|path| Mounted::of(what, path)).collect();
        let dirs = mounted.iter().map(|dir| {
            let usual = DirSpec::new(&dir.path);
            DirSpec { capacity: dir.capacity.unwrap_or(usual.capacity), ..usual }
        });
        let spec = BrokerSpec {
            rack: config.rack.clone(),
            dirs: dirs.collect(),
            file: config.all.clone(),
            reporter: config.reporter.clone(),
            ..BrokerSpec::new(config.node_id)
        };
        let replaced = hosted.mount(id, &mounted);
        let world = hosted.world().clone();
        let epoch = world.with(|cluster| {
            for path in &replaced {
                cluster.wipe_dir(id, path);
            }
            cluster.boot_broker(spec);
            cluster.broker_epoch(id).filter(|_| !cluster.is_down(id))
        });
        if epoch.is_none() {
            let why = format!("broker {id} has no log directory that works");
            return Err(LaunchError::Start(why.into()));
        }
        let told = watch::channel(None).0;
        Ok(Self { world, id, epoch, ports: Mutex::new(ports), told, log: what.log.clone() })
    }

    fn into_process(self, ports: BTreeMap<u16, u16>) -> Process {
        let (readiness, ready) = watch::channel(false);
        let (world, id, epoch) = (self.world.clone(), self.id, self.epoch);
        let log = self.log.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = world.until_ended(id, epoch) => return,
                () = world.until(|cluster| cluster.is_serving(id)) => {}
            }
            log.line(&format!("broker {id} is unfenced"));
            readiness.send_replace(true);
            world.until_ended(id, epoch).await;
            readiness.send_replace(false);
        });
        let this = Arc::new(self);
        let stopping = Arc::clone(&this);
        let mut told = this.told.subscribe();
        Process {
            ports,
            ready,
            ended: Box::pin(async move {
                tokio::select! {
                    biased;
                    exit = end_of(&mut told) => exit,
                    () = this.world.until_ended(this.id, this.epoch) => {
                        this.log.line(&format!("broker {} has gone down", this.id));
                        Exit::failure("the broker has gone down: its log directories failed, or it was made to")
                    }
                }
            }),
            stop: Box::new(move |how| stopping.stop(how)),
        }
    }

    fn stop(&self, how: Stop) {
        if self.told.borrow().is_some() {
            return;
        }
        self.log.line(&format!("broker {} is being stopped", self.id));
        self.end(how);
        self.told.send_replace(Some(exit(how)));
    }

    /// Ends this life of the broker, if it still lasts.
    fn end(&self, how: Stop) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.world.with(|cluster| {
            if cluster.broker_epoch(self.id) == self.epoch {
                match how {
                    Stop::Politely => cluster.stop_broker(self.id),
                    Stop::Now => cluster.crash_broker(self.id),
                }
            }
        });
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end(Stop::Now);
    }
}
