//! The small types a cluster is described with.

use std::fmt;

/// Kafka's number of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a replica uses of its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Percent of one core; a broker with four cores has a capacity of 400.
    Cpu,
    /// KB/s coming in, from producers and from leaders.
    NwIn,
    /// KB/s going out, to consumers and to followers.
    NwOut,
    /// MB on disk.
    Disk,
}

impl Resource {
    /// How many resources there are.
    pub const COUNT: usize = 4;
    /// All of them, in the order loads and capacities are written in.
    pub const ALL: [Resource; Self::COUNT] = [Resource::Cpu, Resource::NwIn, Resource::NwOut, Resource::Disk];

    /// The name Cruise Control's JSON gives it.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::NwIn => "networkInbound",
            Resource::NwOut => "networkOutbound",
            Resource::Disk => "disk",
        }
    }

    /// Whether brokers on one host share it.
    pub fn is_shared_by_host(self) -> bool {
        self != Resource::Disk
    }
}

/// A set of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources(u8);

impl Resources {
    /// No resource.
    pub const NONE: Resources = Resources(0);

    /// Whether `resource` is in the set.
    pub fn contains(self, resource: Resource) -> bool {
        self.0 & (1 << resource as u8) != 0
    }

    /// The set with `resource` in it.
    #[must_use]
    pub fn with(self, resource: Resource) -> Resources {
        Resources(self.0 | (1 << resource as u8))
    }

    /// Its members, in the usual order.
    pub fn iter(self) -> impl Iterator<Item = Resource> {
        Resource::ALL.into_iter().filter(move |resource| self.contains(*resource))
    }
}

/// What a replica carries, in the role it has: percent of a core, KB/s, KB/s, MB.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Percent of one core.
    pub cpu: f32,
    /// KB/s coming in.
    pub nw_in: f32,
    /// KB/s going out; a follower has some only if consumers fetch from it.
    pub nw_out: f32,
    /// MB on disk.
    pub disk: f32,
}

impl Load {
    /// The value for one resource.
    pub fn of(self, resource: Resource) -> f32 {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::NwIn => self.nw_in,
            Resource::NwOut => self.nw_out,
            Resource::Disk => self.disk,
        }
    }
}

/// What of a load belongs to the replica whether it leads or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlotLoad {
    pub(crate) cpu: f32,
    pub(crate) nw_in: f32,
    pub(crate) nw_out: f32,
    pub(crate) disk: f32,
}

impl SlotLoad {
    pub(crate) fn whole(self, lead: LeadLoad, leads: bool) -> Load {
        let lead = if leads { lead } else { LeadLoad::default() };
        Load { cpu: self.cpu + lead.cpu, nw_out: self.nw_out + lead.nw_out, nw_in: self.nw_in, disk: self.disk }
    }
}

/// What goes wherever the leadership of a partition goes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LeadLoad {
    /// Percent of one core.
    pub cpu: f32,
    /// KB/s going out.
    pub nw_out: f32,
}

/// How much of a leader's CPU each kind of traffic causes; the rest of the crate only needs the
/// share that would stay with the replica if it followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuWeights {
    /// Of a leader's inbound traffic.
    pub leader_in: f32,
    /// Of a leader's outbound traffic.
    pub leader_out: f32,
    /// Of a follower's inbound traffic.
    pub follower_in: f32,
}

impl Default for CpuWeights {
    fn default() -> Self {
        CpuWeights { leader_in: 0.7, leader_out: 0.15, follower_in: 0.15 }
    }
}

impl CpuWeights {
    /// What a leader with this load would use if it only followed.
    pub fn follower_cpu(self, leader: Load) -> f32 {
        let leading = self.leader_in * leader.nw_in + self.leader_out * leader.nw_out;
        if leading > 0.0 { leader.cpu * (self.follower_in * leader.nw_in / leading).min(1.0) } else { 0.0 }
    }
}

/// What may be asked of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum BrokerState {
    /// Up, and part of the cluster for a while.
    #[default]
    Alive,
    /// Up, and just added: data may move only onto such brokers while there are any.
    New,
    /// Gone or to be removed: everything on it must move off.
    Dead,
    /// Up, but to lead nothing.
    Demoted,
    /// Up, but some of its disks are not: the replicas there must move off.
    BadDisks,
}

/// Whether a disk serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskState {
    /// It serves.
    #[default]
    Alive,
    /// It failed: its replicas are offline.
    Dead,
    /// It is to be taken out: its replicas must move to the broker's other disks.
    Removed,
}

/// One log directory of a broker.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpec {
    /// The directory's path.
    pub name: String,
    /// In MB.
    pub capacity: f64,
    /// Whether it serves.
    pub state: DiskState,
}

/// A broker, as told to a builder.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerSpec {
    /// Kafka's number for it.
    pub id: BrokerId,
    /// Its rack; empty means the host is the rack.
    pub rack: String,
    /// Its host.
    pub host: String,
    /// What may be asked of it.
    pub state: BrokerState,
    /// Per resource, in the units of [`Load`].
    pub capacity: [f64; Resource::COUNT],
    /// Its log directories, if they are to be told apart.
    pub disks: Vec<DiskSpec>,
}

/// A replica, as told to a builder and as a cluster tells it back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicaSpec {
    /// Where it lives.
    pub broker: BrokerId,
    /// Which of the broker's disks it lives on, if those are told apart.
    pub disk: Option<usize>,
    /// What it carries in the role it has now.
    pub load: Load,
    /// Whether it cannot serve although its broker may.
    pub offline: bool,
}
