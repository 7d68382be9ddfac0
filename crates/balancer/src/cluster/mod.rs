//! The cluster as it is found: brokers, racks, topics, partitions, where each replica lives and
//! what it weighs.
//!
//! A [`Cluster`] never changes and is canonical: brokers ascend by id, topics by name, partitions by
//! number, disks by directory, whatever the order they were told in. Everything is kept in flat arrays, because three
//! million replicas must fit into a few hundred megabytes and be walked in milliseconds.
//!
//! Words used throughout the crate: a *slot* is one replica (an index into the per-replica arrays),
//! a *partition* an index into the per-partition arrays, and a *seat* a broker's index.

mod builder;
mod invalid;
mod split;
mod types;

pub use builder::{ClusterBuilder, PendingMove};
pub use invalid::Invalid;
pub use types::{
    BrokerId, BrokerSpec, BrokerState, CpuWeights, DiskSpec, DiskState, LeadLoad, Load, ReplicaSpec, Resource,
    Resources,
};

pub(crate) use types::SlotLoad;

/// A broker's place in [`Cluster::brokers`].
pub(crate) type Seat = u16;
/// A replica's place in the per-replica arrays.
pub(crate) type Slot = u32;
/// A partition's place in the per-partition arrays.
pub(crate) type Part = u32;

/// What stands for "no disk named" in the per-replica disk array.
pub(crate) const NO_DISK: u16 = u16::MAX;

/// A broker of a [`Cluster`].
#[derive(Debug, Clone, PartialEq)]
pub struct Broker {
    /// Kafka's number for it.
    pub id: BrokerId,
    /// Index into [`Cluster::racks`].
    pub rack: usize,
    /// Index into [`Cluster::hosts`].
    pub host: usize,
    /// What may be asked of it.
    pub state: BrokerState,
    /// How much it can carry, per resource: percent of a core, KB/s, KB/s, MB. Disks that failed or are to be taken out
    /// are no room: where disks are known one by one it is never more than those that serve hold.
    pub capacity: [f64; Resource::COUNT],
    /// The disk capacity as it was told, so that it can be told again.
    pub(crate) told_disk: f64,
    /// Its log directories by name, where they are known one by one.
    pub disks: Vec<DiskSpec>,
}

impl Broker {
    /// The broker as a builder would be told of it; `cluster` is the one it is part of.
    pub fn spec(&self, cluster: &Cluster) -> BrokerSpec {
        let mut capacity = self.capacity;
        capacity[Resource::Disk as usize] = self.told_disk;
        BrokerSpec {
            id: self.id,
            rack: cluster.racks[self.rack].clone(),
            host: cluster.hosts[self.host].clone(),
            state: self.state,
            capacity,
            disks: self.disks.clone(),
        }
    }

    /// Whether it can hold replicas at all.
    pub fn is_alive(&self) -> bool {
        self.state != BrokerState::Dead
    }

    /// Whether its disks are known one by one, and none of them serves and is to go on serving.
    pub(crate) fn has_lost_all_disks(&self) -> bool {
        !self.disks.is_empty() && self.disks.iter().all(|disk| disk.state != DiskState::Alive)
    }
}

/// A cluster with its loads. Made by a [`ClusterBuilder`], immutable afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    brokers: Vec<Broker>,
    racks: Vec<String>,
    hosts: Vec<String>,
    topics: Vec<String>,
    /// Where each topic's partitions begin; one entry more than there are topics.
    topic_starts: Vec<Part>,
    partition_topics: Vec<u32>,
    partition_numbers: Vec<i32>,
    /// Where each partition's slots begin; one entry more than there are partitions.
    partition_starts: Vec<Slot>,
    /// The leader's position in its partition's list.
    leaders: Vec<u8>,
    lead_loads: Vec<LeadLoad>,
    slot_partitions: Vec<Part>,
    slot_seats: Vec<Seat>,
    slot_disks: Vec<u16>,
    slot_loads: Vec<SlotLoad>,
    /// Slots that are offline although their broker lives, ascending.
    offline: Vec<Slot>,
    pending: Vec<(Part, Seat)>,
    unknown: Resources,
}

impl Cluster {
    /// The brokers, ascending by id.
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The racks' names.
    pub fn racks(&self) -> &[String] {
        &self.racks
    }

    /// The hosts' names.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The topics' names, ascending.
    pub fn topics(&self) -> &[String] {
        &self.topics
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> usize {
        self.partition_numbers.len()
    }

    /// How many replicas there are.
    pub fn replica_count(&self) -> usize {
        self.slot_seats.len()
    }

    /// The resources nobody measured.
    pub fn unknown(&self) -> Resources {
        self.unknown
    }

    /// The partitions in canonical order: by topic name, then by number.
    pub fn partitions(&self) -> impl ExactSizeIterator<Item = PartitionView<'_>> {
        (0..self.partition_count()).map(|index| PartitionView { cluster: self, part: index as Part })
    }

    /// The partition at `index` in canonical order.
    pub fn partition(&self, index: usize) -> PartitionView<'_> {
        PartitionView { cluster: self, part: index as Part }
    }

    /// The partition of this topic and number, if there is one.
    pub fn find_partition(&self, topic: &str, number: i32) -> Option<PartitionView<'_>> {
        self.find(topic, number).map(|part| PartitionView { cluster: self, part })
    }

    /// The broker called `id`, if there is one.
    pub fn broker(&self, id: BrokerId) -> Option<&Broker> {
        self.seat_of(id).map(|seat| &self.brokers[usize::from(seat)])
    }

    /// Whether any log directory is known one by one.
    pub fn has_disks(&self) -> bool {
        self.brokers.iter().any(|broker| !broker.disks.is_empty())
    }

    pub(crate) fn seat_of(&self, id: BrokerId) -> Option<Seat> {
        self.brokers.binary_search_by_key(&id, |broker| broker.id).ok().map(|index| index as Seat)
    }

    pub(crate) fn topic_of(&self, part: Part) -> u32 {
        self.partition_topics[part as usize]
    }

    pub(crate) fn number_of(&self, part: Part) -> i32 {
        self.partition_numbers[part as usize]
    }

    pub(crate) fn topic_parts(&self, topic: u32) -> std::ops::Range<Part> {
        self.topic_starts[topic as usize]..self.topic_starts[topic as usize + 1]
    }

    pub(crate) fn slots(&self, part: Part) -> std::ops::Range<Slot> {
        self.partition_starts[part as usize]..self.partition_starts[part as usize + 1]
    }

    pub(crate) fn part_of(&self, slot: Slot) -> Part {
        self.slot_partitions[slot as usize]
    }

    pub(crate) fn slot_load(&self, slot: Slot) -> SlotLoad {
        self.slot_loads[slot as usize]
    }

    pub(crate) fn lead_load(&self, part: Part) -> LeadLoad {
        self.lead_loads[part as usize]
    }

    pub(crate) fn seats(&self) -> &[Seat] {
        &self.slot_seats
    }

    pub(crate) fn leaders(&self) -> &[u8] {
        &self.leaders
    }

    pub(crate) fn disks(&self) -> &[u16] {
        &self.slot_disks
    }

    pub(crate) fn pending(&self) -> &[(Part, Seat)] {
        &self.pending
    }

    /// Where copies of the partition are on their way to, ascending.
    pub(crate) fn copies(&self, part: Part) -> impl Iterator<Item = Seat> + '_ {
        let first = self.pending.partition_point(|(moving, _)| *moving < part);
        self.pending[first..].iter().take_while(move |(moving, _)| *moving == part).map(|(_, seat)| *seat)
    }

    /// Whether the replica cannot serve: its broker is dead, or its disk.
    pub(crate) fn is_offline(&self, slot: Slot) -> bool {
        !self.brokers[usize::from(self.slot_seats[slot as usize])].is_alive()
            || self.offline.binary_search(&slot).is_ok()
    }

    /// How much data the replica holds, in MB.
    pub(crate) fn megabytes(&self, slot: Slot) -> f64 {
        f64::from(self.slot_loads[slot as usize].disk)
    }
}

/// One partition of a [`Cluster`], as it is found.
#[derive(Debug, Clone, Copy)]
pub struct PartitionView<'c> {
    pub(crate) cluster: &'c Cluster,
    part: Part,
}

impl<'c> PartitionView<'c> {
    /// The topic's name.
    pub fn topic(self) -> &'c str {
        &self.cluster.topics[self.cluster.topic_of(self.part) as usize]
    }

    /// The partition's number within its topic.
    pub fn number(self) -> i32 {
        self.cluster.number_of(self.part)
    }

    /// The leader's position in the replica list.
    pub fn leader(self) -> usize {
        usize::from(self.cluster.leaders[self.part as usize])
    }

    /// The replicas in list order, the preferred leader first, each with what it carries in its role.
    pub fn replicas(self) -> impl ExactSizeIterator<Item = ReplicaSpec> {
        let leader = self.leader();
        self.told(move |position| position == leader)
    }

    /// The same with what each would carry as a follower.
    pub fn following(self) -> impl ExactSizeIterator<Item = ReplicaSpec> {
        self.told(|_| false)
    }

    /// What the leader carries on top of what it would carry as a follower.
    pub fn leading(self) -> LeadLoad {
        self.cluster.lead_load(self.part)
    }

    /// Whether the leader's load, told as one, would be split into the same two parts again.
    pub fn splits_as_usual(self) -> bool {
        let slots = self.cluster.slots(self.part);
        let leader = slots.start + self.leader() as Slot;
        let (slot, lead) = (self.cluster.slot_load(leader), self.leading());
        let others = slots.filter(|other| *other != leader);
        let followers = others.map(|other| self.cluster.slot_load(other).whole(LeadLoad::default(), false));
        let split = split::split(slot.whole(lead, true), followers, CpuWeights::default(), self.cluster.unknown);
        split == (slot.cpu, lead) && slot.nw_out == 0.0
    }

    fn told(self, leads: impl Fn(usize) -> bool) -> impl ExactSizeIterator<Item = ReplicaSpec> {
        self.cluster.slots(self.part).enumerate().map(move |(position, slot)| {
            let broker = &self.cluster.brokers[usize::from(self.cluster.slot_seats[slot as usize])];
            let disk = self.cluster.slot_disks[slot as usize];
            ReplicaSpec {
                broker: broker.id,
                disk: (disk != NO_DISK).then_some(usize::from(disk)),
                load: self.cluster.slot_load(slot).whole(self.leading(), leads(position)),
                offline: self.cluster.is_offline(slot),
            }
        })
    }
}
