//! The simulated clusters of a node, by the Kafka resource they stand for, and whose data is in which volume.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_sim::serve::{Listener, World};
use evenkeel_sim::{BrokerId, Cluster, Options};
use k8s_openapi::api::core::v1::Pod;

use super::{CLUSTER_LABEL, Simulation};
use crate::kubelet::program::Launch;

/// All clusters. Clones are the same.
#[derive(Debug, Clone)]
pub struct Worlds {
    simulation: Simulation,
    all: Arc<Mutex<BTreeMap<Key, Hosted>>>,
}

/// A Kafka resource: namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    namespace: String,
    cluster: String,
}

impl Key {
    /// Whose pod it is.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let cluster = pod.metadata.labels.as_ref()?.get(CLUSTER_LABEL)?.clone();
        Some(Self { namespace: pod.metadata.namespace.clone().unwrap_or_default(), cluster })
    }
}

/// One cluster. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Hosted {
    world: World,
    books: Arc<Mutex<Books>>,
}

/// What is remembered of a cluster besides the cluster.
#[derive(Debug, Default)]
struct Books {
    /// One for each listener's name: brokers of one listener tell of each other.
    listeners: BTreeMap<String, Listener>,
    /// Real ports, by broker and port in the container.
    ports: BTreeMap<(BrokerId, u16), u16>,
    /// The volume that a broker's directory was in when it last started.
    volumes: BTreeMap<(BrokerId, String), String>,
    /// Pods that are there.
    pods: BTreeSet<String>,
    /// Volumes that outlive their pods.
    claims: BTreeSet<String>,
}

/// A log directory and the volume it is in.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) path: String,
    pub(super) capacity: Option<u64>,
    volume: String,
    persistent: bool,
}

impl Mounted {
    pub(super) fn of(what: &Launch, path: &str) -> Self {
        let inside = |mount: &str| path == mount || path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/'));
        let mounts = what.volumes.iter().filter(|(mount, _)| inside(mount.trim_end_matches('/')));
        let volume = mounts.max_by_key(|(mount, _)| mount.len()).map(|(_, volume)| volume);
        Self {
            path: path.to_owned(),
            capacity: volume.and_then(|volume| volume.capacity),
            // Outside of all volumes it is in the container's own layer, which a restart empties.
            volume: volume
                .map_or_else(|| format!("{}/{}", identity(&what.pod), what.restarts), |volume| volume.id.clone()),
            persistent: volume.is_some_and(|volume| volume.persistent),
        }
    }
}

impl Worlds {
    pub(super) fn new(simulation: Simulation) -> Self {
        Self { simulation, all: Arc::default() }
    }

    /// The cluster of a Kafka resource, once a broker of it has been started.
    pub fn get(&self, namespace: &str, cluster: &str) -> Option<World> {
        let key = Key { namespace: namespace.to_owned(), cluster: cluster.to_owned() };
        lock(&self.all).get(&key).map(|hosted| hosted.world.clone())
    }

    /// The cluster of a pod that is about to start. It is in the books from now on, until it is gone: whoever else goes
    /// meanwhile, the cluster stays.
    pub(super) fn get_or_begin(&self, key: Key, cluster_id: &str, pod: &Pod) -> Hosted {
        let begin = || {
            let Simulation { clock, speed, options } = &self.simulation;
            let options = Options {
                cluster_id: Some(cluster_id.to_owned()),
                wall_start: clock.now().as_millisecond(),
                ..options.clone()
            };
            Hosted { world: World::with_speed(Cluster::new(options, []), *speed), books: Arc::default() }
        };
        let mut all = lock(&self.all);
        let hosted = all.entry(key).or_insert_with(begin);
        lock(&hosted.books).pods.insert(identity(pod));
        hosted.clone()
    }

    /// A pod is gone, and what was in it.
    pub(super) fn forget(&self, pod: &Pod) {
        if let Some(key) = Key::of(pod) {
            lock(&self.all).retain(|known, hosted| {
                *known != key
                    || !hosted.is_over_after(|books| {
                        books.pods.remove(&identity(pod));
                    })
            });
        }
    }

    /// A claim is gone, and what was in it.
    pub(super) fn discard(&self, volume: &str) {
        lock(&self.all).retain(|_, hosted| {
            !hosted.is_over_after(|books| {
                books.claims.remove(volume);
            })
        });
    }
}

impl Hosted {
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// The listener of this name.
    pub(super) fn listener(&self, name: &str) -> Listener {
        let mut books = lock(&self.books);
        books.listeners.entry(name.to_owned()).or_insert_with(|| Listener::plain(self.world.clone())).clone()
    }

    /// The real port that a broker had for this one.
    pub(super) fn port(&self, broker: BrokerId, port: u16) -> Option<u16> {
        lock(&self.books).ports.get(&(broker, port)).copied()
    }

    pub(super) fn remember_port(&self, broker: BrokerId, port: u16, real: u16) {
        lock(&self.books).ports.insert((broker, port), real);
    }

    /// A broker has its directories in these volumes. Those that were in others before are empty now.
    pub(super) fn mount(&self, broker: BrokerId, dirs: &[Mounted]) -> Vec<String> {
        let mut books = lock(&self.books);
        books.claims.extend(dirs.iter().filter(|dir| dir.persistent).map(|dir| dir.volume.clone()));
        let replaced = dirs.iter().filter(|dir| {
            let before = books.volumes.insert((broker, dir.path.clone()), dir.volume.clone());
            before.is_some_and(|before| before != dir.volume)
        });
        replaced.map(|dir| dir.path.clone()).collect()
    }

    /// Whether nobody can come back to it any more.
    fn is_over_after(&self, change: impl FnOnce(&mut Books)) -> bool {
        let mut books = lock(&self.books);
        let was_there = !books.pods.is_empty() || !books.claims.is_empty();
        change(&mut books);
        was_there && books.pods.is_empty() && books.claims.is_empty()
    }
}

/// A pod by its uid: the next one of the same name is another one.
fn identity(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    metadata.uid.clone().or_else(|| metadata.name.clone()).unwrap_or_default()
}

/// What is behind the lock is consistent between calls, even if a caller panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;

    fn pod(uid: &str) -> Pod {
        let labels = json!({CLUSTER_LABEL: "harbour"});
        serde_json::from_value(json!({"metadata": {"name": uid, "namespace": "ns", "uid": uid, "labels": labels}}))
            .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_stays_for_a_pod_that_is_about_to_start() {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let worlds = Worlds::new(Simulation { clock, speed: 1.0, options: Options::default() });
        let begin = |uid: &str| worlds.get_or_begin(Key::of(&pod(uid)).unwrap(), "an id", &pod(uid));
        let there = || worlds.get("ns", "harbour").is_some();
        let first = begin("a");
        first.mount(BrokerId(0), &[]);
        let second = begin("b");
        // The second has not come further when the first, the only one with a broker, goes.
        worlds.forget(&pod("a"));
        assert!(there());
        second.world().with(|cluster| cluster.boot_broker(evenkeel_sim::cluster::BrokerSpec::new(1)));
        let seen = worlds.get("ns", "harbour").unwrap();
        assert!(seen.look(|cluster| !cluster.is_down(BrokerId(1))), "it is the same world");
        worlds.forget(&pod("b"));
        assert!(!there(), "one that never started is gone as well");
    }
}
