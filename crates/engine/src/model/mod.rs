//! The cluster as the balancer sees it: who is there, what lies where, what it carries, what fits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, CpuWeights, DiskSpec, DiskState, Invalid, Load,
    PendingMove, ReplicaSpec, Resource, Resources,
};
use evenkeel_kafka::TopicPartition;

use crate::{
    config::capacity::{Capacities, Capacity, Disk},
    monitor::{
        sample::{Metric, Values},
        windows::Aggregate,
    },
};

mod own;
#[cfg(test)]
mod tests;

pub use own::left_alone;

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * 1024.0;

/// Who is there and what lies where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Brokers that the cluster knows or that hold something.
    pub brokers: BTreeMap<i32, BrokerView>,
    /// Everything that lies somewhere.
    pub partitions: BTreeMap<TopicPartition, PartitionView>,
}

impl View {
    /// As it is once all copies that are being made are called off.
    #[must_use]
    pub fn without_copies(mut self) -> View {
        self.partitions.values_mut().for_each(|seen| seen.adding.clear());
        self
    }
}

/// One broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerView {
    /// Its host.
    pub host: String,
    /// Where it stands.
    pub rack: Option<String>,
    /// Whether it is up.
    pub up: bool,
    /// Log directories that failed.
    pub failed_dirs: BTreeSet<String>,
    /// The directory of each replica, where directories matter. There are few of them, and very many replicas.
    pub dirs: BTreeMap<TopicPartition, Arc<str>>,
}

/// One partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionView {
    /// Who holds it, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Who leads it, if anybody.
    pub leader: Option<i32>,
    /// Who should have it and cannot.
    pub offline: BTreeSet<i32>,
    /// Who is just getting a copy, and is none of its replicas yet.
    pub adding: Vec<i32>,
}

/// What a plan is made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purpose {
    /// Brokers that were just added.
    pub new: BTreeSet<i32>,
    /// Brokers that are to be demoted.
    pub demoted: BTreeSet<i32>,
    /// Brokers that are to be removed.
    pub removed: BTreeSet<i32>,
    /// Log directories that are to be removed.
    pub removed_dirs: BTreeSet<(i32, String)>,
    /// Whether directories are to be told apart.
    pub tells_dirs_apart: bool,
    /// Whether capacities may be estimates.
    pub may_estimate: bool,
}

impl Purpose {
    /// Whether the broker itself is what it is about.
    fn names(&self, id: i32) -> bool {
        [&self.new, &self.demoted, &self.removed].into_iter().any(|named| named.contains(&id))
    }
}

/// Why there is no model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoModel {
    /// Nobody said what a broker can carry.
    #[error("the capacity of broker {0} is not known: give it, or a default, in the capacity file")]
    UnknownCapacity(i32),
    /// It is only estimated, and that is not wanted.
    #[error(
        "the capacity of broker {0} is an estimate, and the request does not allow estimates: list the broker in the \
             capacity file, or ask with allow_capacity_estimation=true"
    )]
    EstimatedCapacity(i32),
    /// What was seen cannot be.
    #[error("the cluster cannot be modelled")]
    Invalid(#[from] Invalid),
}

/// The model.
pub fn build(
    view: &View,
    loads: &Aggregate,
    capacities: &Capacities,
    weights: CpuWeights,
    purpose: &Purpose,
) -> Result<Cluster, NoModel> {
    let mut builder = ClusterBuilder::new().cpu_weights(weights);
    unknown(loads).iter().for_each(|resource| builder.unknown(resource));
    let troubled: BTreeSet<i32> = view.partitions.values().flat_map(|seen| seen.offline.iter().copied()).collect();
    let torn = torn_hosts(view);
    let mut disks: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    let mut there: BTreeSet<i32> = BTreeSet::new();
    for (id, broker) in &view.brokers {
        if !broker.up && !purpose.names(*id) && !view.partitions.values().any(|seen| seen.replicas.contains(id)) {
            // Registered still, but gone: a cluster that has lost nothing is not in need of repair.
            continue;
        }
        let mut spec = broker_spec(*id, broker, troubled.contains(id), capacities, purpose)?;
        if torn.contains(broker.host.as_str()) {
            spec.host = torn_name(&spec.host, &spec.rack);
        }
        if !spec.disks.is_empty() {
            disks.insert(*id, spec.disks.iter().map(|disk| disk.name.clone()).collect());
        }
        builder.broker(spec)?;
        there.insert(*id);
    }
    let disk_of = |id: &i32, partition: &TopicPartition| {
        let known = disks.get(id)?;
        let dir = view.brokers.get(id)?.dirs.get(partition)?;
        known.iter().position(|known| **known == **dir)
    };
    // Both are in the same order: walking side by side saves a search for each partition.
    let mut told = loads.loads.iter().peekable();
    let mut replicas: Vec<ReplicaSpec> = Vec::new();
    for (partition, seen) in &view.partitions {
        while told.next_if(|(name, _)| *name < partition).is_some() {}
        let carried =
            told.next_if(|(name, _)| *name == partition).map(|(_, values)| leader_load(values, seen.replicas.len()));
        let carried = carried.unwrap_or_default();
        let follower = builder.following(carried);
        let leader = seen.leader.and_then(|leader| seen.replicas.iter().position(|id| *id == leader)).unwrap_or(0);
        replicas.clear();
        replicas.extend(seen.replicas.iter().enumerate().map(|(position, id)| ReplicaSpec {
            broker: BrokerId(*id),
            disk: disk_of(id, partition),
            load: if position == leader { carried } else { follower },
            offline: seen.offline.contains(id),
        }));
        builder.partition(&partition.topic, partition.partition, leader, &replicas)?;
        for id in seen.adding.iter().filter(|id| there.contains(id)) {
            let (topic, partition) = (partition.topic.to_string(), partition.partition);
            builder.pending(PendingMove { topic, partition, to: BrokerId(*id) });
        }
    }
    Ok(builder.build()?)
}

/// Resources of which nobody knows anything: unknown, not 0.
pub fn unknown(loads: &Aggregate) -> Resources {
    unmeasured(|metric| loads.loads.values().any(|values| values.get(metric).is_some()))
}

/// Resources of which nobody says anything.
pub fn unmeasured(told: impl Fn(Metric) -> bool) -> Resources {
    [
        (Resource::Cpu, Metric::Cpu),
        (Resource::NwIn, Metric::LeaderBytesIn),
        (Resource::NwOut, Metric::LeaderBytesOut),
        (Resource::Disk, Metric::Disk),
    ]
    .into_iter()
    .filter(|(_, metric)| !told(*metric))
    .fold(Resources::NONE, |unknown, (resource, _)| unknown.with(resource))
}

/// What the leader of so many replicas carries, in the balancer's units. Brokers do not tell what they send to followers topic
/// by topic: as in the original, each follower is taken to get what comes in.
pub(crate) fn leader_load(values: &Values, replicas: usize) -> Load {
    let of = |metric: Metric| values.get(metric).unwrap_or(0.0);
    let replicated = of(Metric::LeaderBytesIn) * replicas.saturating_sub(1) as f64;
    Load {
        cpu: of(Metric::Cpu) as f32,
        nw_in: ((of(Metric::LeaderBytesIn) + of(Metric::ReplicationBytesIn)) / KB) as f32,
        nw_out: ((of(Metric::LeaderBytesOut) + replicated) / KB) as f32,
        disk: (of(Metric::Disk) / MB) as f32,
    }
}

/// Names that brokers in different racks share: a proxy, a port that is passed on, one machine in a test. No machine
/// stands in two racks, so such a name is taken for one host in each, as the original does.
fn torn_hosts(view: &View) -> BTreeSet<&str> {
    let mut racks: BTreeMap<&str, &Option<String>> = BTreeMap::new();
    let named = view.brokers.values().filter(|broker| !broker.host.is_empty());
    named
        .filter(|broker| *racks.entry(&broker.host).or_insert(&broker.rack) != &broker.rack)
        .map(|broker| broker.host.as_str())
        .collect()
}

fn torn_name(host: &str, rack: &str) -> String {
    format!("{host}@{rack}")
}

/// The name of a host as its brokers give it, whether or not it was torn.
pub fn shown_host<'h>(host: &'h str, rack: &str) -> &'h str {
    host.strip_suffix(rack).and_then(|rest| rest.strip_suffix('@')).unwrap_or(host)
}

fn broker_spec(
    id: i32,
    broker: &BrokerView,
    has_offline: bool,
    capacities: &Capacities,
    purpose: &Purpose,
) -> Result<BrokerSpec, NoModel> {
    let gone = !broker.up || purpose.removed.contains(&id);
    let dead = gone || capacities.of(id).is_some_and(|(capacity, _)| serving(broker, capacity) <= 0.0);
    let capacity = match capacities.of(id) {
        // What one that is gone could carry matters to nobody.
        None if dead => None,
        None => return Err(NoModel::UnknownCapacity(id)),
        Some((_, true)) if !purpose.may_estimate && !dead => return Err(NoModel::EstimatedCapacity(id)),
        Some((capacity, _)) => Some(capacity),
    };
    let state = if dead {
        BrokerState::Dead
    } else if purpose.new.contains(&id) {
        BrokerState::New
    } else if purpose.demoted.contains(&id) {
        BrokerState::Demoted
    } else if !broker.failed_dirs.is_empty() || has_offline {
        BrokerState::BadDisks
    } else {
        BrokerState::Alive
    };
    let host = if broker.host.is_empty() { format!("UNKNOWN_HOST-{id}") } else { broker.host.clone() };
    Ok(BrokerSpec {
        id: BrokerId(id),
        // Where nobody said, every machine counts as a rack, as in the original.
        rack: broker.rack.clone().filter(|rack| !rack.is_empty()).unwrap_or_else(|| host.clone()),
        host,
        state,
        capacity: capacity.map(|it| numbers(broker, it)).unwrap_or_default(),
        disks: capacity
            .filter(|_| purpose.tells_dirs_apart)
            .map(|it| dirs(id, broker, it, purpose))
            .unwrap_or_default(),
    })
}

/// How many MB a broker's directories hold, those that failed left out. Where only the whole is known nobody knows what
/// a directory that failed takes away from it.
fn serving(broker: &BrokerView, capacity: &Capacity) -> f64 {
    match &capacity.disk {
        Disk::Dirs(dirs) => {
            dirs.iter().filter(|(dir, _)| !broker.failed_dirs.contains(*dir)).map(|(_, room)| room).sum()
        }
        whole => whole.total(),
    }
}

fn numbers(broker: &BrokerView, capacity: &Capacity) -> [f64; Resource::COUNT] {
    let mut numbers = [0.0; Resource::COUNT];
    numbers[Resource::Cpu as usize] = capacity.cores * 100.0;
    numbers[Resource::NwIn as usize] = capacity.network_in;
    numbers[Resource::NwOut as usize] = capacity.network_out;
    numbers[Resource::Disk as usize] = serving(broker, capacity);
    numbers
}

fn dirs(id: i32, broker: &BrokerView, capacity: &Capacity, purpose: &Purpose) -> Vec<DiskSpec> {
    let Disk::Dirs(dirs) = &capacity.disk else { return Vec::new() };
    let state = |dir: &String| {
        if broker.failed_dirs.contains(dir) {
            DiskState::Dead
        } else if purpose.removed_dirs.contains(&(id, dir.clone())) {
            DiskState::Removed
        } else {
            DiskState::Alive
        }
    };
    dirs.iter().map(|(dir, room)| DiskSpec { name: dir.clone(), capacity: *room, state: state(dir) }).collect()
}
