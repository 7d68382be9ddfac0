//! From records in any order to a canonical [`Cluster`], refusing what cannot be.

use std::collections::BTreeMap;

use super::invalid::{Invalid, MOST_PAIRS};
use super::split::{split, split_by_traffic};
use super::types::SlotLoad;
use super::{
    Broker, BrokerId, BrokerSpec, BrokerState, Cluster, CpuWeights, DiskSpec, DiskState, LeadLoad, Load, NO_DISK, Part,
    ReplicaSpec, Resource, Resources, Seat, Slot,
};

/// A reassignment under way: a replica of the partition is being copied to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingMove {
    /// The partition's topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// Where the copy goes.
    pub to: BrokerId,
}

/// Collects brokers, then partitions, then makes the [`Cluster`].
#[derive(Debug, Default)]
pub struct ClusterBuilder {
    weights: CpuWeights,
    unknown: Resources,
    brokers: BTreeMap<BrokerId, BrokerSpec>,
    /// Set at the first partition: the ids, ascending, to find a broker's seat by ...
    ids: Vec<BrokerId>,
    /// ... and what every replica is checked against, by seat: a map would be asked millions of times.
    facts: Vec<BrokerFacts>,
    topics: BTreeMap<String, u32>,
    last_topic: Option<(String, u32)>,
    rows: Vec<Row>,
    seats: Vec<Seat>,
    disks: Vec<u16>,
    loads: Vec<SlotLoad>,
    offline: Vec<Slot>,
    pending: Vec<PendingMove>,
}

/// What a replica needs to know of its broker.
#[derive(Debug)]
struct BrokerFacts {
    dead: bool,
    /// In the order they were told in, each with its place by name.
    disks: Vec<(DiskState, u16)>,
}

impl BrokerFacts {
    fn of(spec: &BrokerSpec) -> BrokerFacts {
        let place = |disk: &DiskSpec| spec.disks.iter().filter(|other| other.name < disk.name).count() as u16;
        BrokerFacts {
            dead: spec.state == BrokerState::Dead,
            disks: spec.disks.iter().map(|disk| (disk.state, place(disk))).collect(),
        }
    }
}

/// A partition while topics are still numbered by arrival.
#[derive(Debug, Clone, Copy)]
struct Row {
    topic: u32,
    number: i32,
    first: Slot,
    factor: u8,
    leader: u8,
    lead: LeadLoad,
}

/// The least that a broker or a disk can carry, if that is meant in earnest: a byte. What brokers carry is compared with what
/// they can, and squared; with numbers much further apart that would be beyond all numbers.
const LEAST_CAPACITY: f64 = 1e-6;

/// Capacities beyond it are as good as it: no load comes near, and the sum of all of them is still a number. People write
/// the largest number there is where there is no limit.
const MOST_CAPACITY: f64 = 1e18;

/// The load without what nobody measured: such numbers mean nothing, so that no difference between them may either.
fn measured(load: Load, unknown: Resources) -> Load {
    let known = |resource: Resource| if unknown.contains(resource) { 0.0 } else { load.of(resource) };
    Load {
        cpu: known(Resource::Cpu),
        nw_in: known(Resource::NwIn),
        nw_out: known(Resource::NwOut),
        disk: known(Resource::Disk),
    }
}

impl ClusterBuilder {
    /// An empty one, with the usual CPU weights.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits leaders' CPU by other weights.
    #[must_use]
    pub fn cpu_weights(mut self, weights: CpuWeights) -> Self {
        self.weights = weights;
        self
    }

    /// Says that nobody measured `resource`: its loads are unknown, not zero. To be said before the first partition,
    /// whose CPU is split by its traffic.
    pub fn unknown(&mut self, resource: Resource) {
        self.unknown = self.unknown.with(resource);
    }

    /// What a replica carries that follows a leader with this load, where nobody measured it apart: the same that the
    /// leader would carry if it followed, to the last bit, so that the two can stand for each other.
    pub fn following(&self, leader: Load) -> Load {
        let leader = measured(leader, self.unknown);
        let (cpu, _) = split_by_traffic(leader, self.weights, self.unknown);
        Load { cpu, nw_out: 0.0, ..leader }
    }

    /// Adds a broker. All brokers come before the first partition. Replicas name its disks by their places in `spec`;
    /// the cluster has them by name.
    pub fn broker(&mut self, mut spec: BrokerSpec) -> Result<(), Invalid> {
        assert!(self.ids.is_empty(), "all brokers come before the first partition");
        for resource in Resource::ALL {
            let value = spec.capacity[resource as usize];
            // What a dead broker could carry does not matter, and often nobody knows it: then it is 0.
            let unknown = spec.state == BrokerState::Dead && value == 0.0;
            if !(unknown || value.is_finite() && value > 0.0) {
                return Err(Invalid::Capacity { broker: spec.id, resource, value });
            }
            if !(unknown || value >= LEAST_CAPACITY) {
                return Err(Invalid::TinyCapacity { broker: spec.id, resource, value });
            }
        }
        for (index, disk) in spec.disks.iter().enumerate() {
            let problem = if !(disk.capacity.is_finite() && disk.capacity > 0.0) {
                "needs a positive capacity"
            } else if disk.capacity < LEAST_CAPACITY {
                "needs a capacity of at least 0.000001"
            } else if spec.disks[..index].iter().any(|other| other.name == disk.name) {
                "is listed twice"
            } else {
                continue;
            };
            return Err(Invalid::Disk { broker: spec.id, disk: disk.name.clone(), problem });
        }
        if spec.disks.len() >= usize::from(NO_DISK) || self.brokers.len() >= usize::from(Seat::MAX) {
            return Err(Invalid::TooManyBrokers);
        }
        let capacities = spec.disks.iter_mut().map(|disk| &mut disk.capacity).chain(&mut spec.capacity);
        capacities.for_each(|capacity| *capacity = capacity.min(MOST_CAPACITY));
        let id = spec.id;
        match self.brokers.insert(id, spec) {
            None => Ok(()),
            Some(_) => Err(Invalid::BrokerTwice(id)),
        }
    }

    /// Adds a partition: its replicas in list order, and which of them leads. What of the leader's load goes with
    /// leadership is reckoned from its traffic: all that goes out, and a part of the CPU. Followers that use as much CPU as
    /// is left, but for a rounding, are believed.
    pub fn partition(
        &mut self,
        topic: &str,
        number: i32,
        leader: usize,
        replicas: &[ReplicaSpec],
    ) -> Result<(), Invalid> {
        let weights = self.weights;
        let unknown = self.unknown;
        let others = || replicas.iter().enumerate().filter(|(position, _)| *position != leader);
        self.add(topic, number, leader, replicas, |load| {
            let followers = others().map(|(_, follower)| measured(follower.load, unknown));
            let (cpu, lead) = split(load, followers, weights, unknown);
            (Load { cpu, nw_out: 0.0, ..load }, lead)
        })
    }

    /// Adds a partition of which it is known what goes with leadership: the replicas are told with what they carry as
    /// followers, the leader too.
    pub fn partition_in_parts(
        &mut self,
        topic: &str,
        number: i32,
        leader: usize,
        replicas: &[ReplicaSpec],
        leading: LeadLoad,
    ) -> Result<(), Invalid> {
        let following = replicas.get(leader).map(|leader| leader.load).unwrap_or_default();
        let parts = [(Resource::Cpu, following.cpu, leading.cpu), (Resource::NwOut, following.nw_out, leading.nw_out)];
        for (resource, following, leading) in parts {
            if !((following + leading).is_finite() && leading >= 0.0) {
                let name = resource.name();
                let problem = format!("leading costs {leading} {name}, it must be a number that is not negative");
                return Err(Invalid::Partition { topic: topic.to_owned(), partition: number, problem });
            }
        }
        self.add(topic, number, leader, replicas, |load| (load, leading))
    }

    /// Adds a partition; `parts` says what of the leader's load is a follower's, and what goes with leadership.
    fn add(
        &mut self,
        topic: &str,
        number: i32,
        leader: usize,
        replicas: &[ReplicaSpec],
        parts: impl Fn(Load) -> (Load, LeadLoad),
    ) -> Result<(), Invalid> {
        if self.ids.is_empty() {
            self.ids = self.brokers.keys().copied().collect();
            self.facts = self.brokers.values().map(BrokerFacts::of).collect();
        }
        let problem = |problem: String| Invalid::Partition { topic: topic.to_owned(), partition: number, problem };
        if number < 0 {
            return Err(problem("a partition's number is never negative".into()));
        }
        if replicas.is_empty() || replicas.len() > usize::from(u8::MAX) {
            return Err(problem(format!("{} replicas, it must be 1 to 255", replicas.len())));
        }
        let Some(leads) = replicas.get(leader) else {
            return Err(problem(format!("the leader is replica {leader} of {}", replicas.len())));
        };
        let (following, lead) = parts(measured(leads.load, self.unknown));
        let lead = LeadLoad {
            cpu: if self.unknown.contains(Resource::Cpu) { 0.0 } else { lead.cpu },
            nw_out: if self.unknown.contains(Resource::NwOut) { 0.0 } else { lead.nw_out },
        };
        let first = Slot::try_from(self.seats.len()).map_err(|_| Invalid::TooManyReplicas)?;
        if self.seats.len() + replicas.len() > Slot::MAX as usize {
            return Err(Invalid::TooManyReplicas);
        }
        for (position, replica) in replicas.iter().enumerate() {
            let Ok(seat) = self.ids.binary_search(&replica.broker) else {
                return Err(Invalid::UnknownBroker {
                    topic: topic.to_owned(),
                    partition: number,
                    broker: replica.broker,
                });
            };
            if replicas[..position].iter().any(|other| other.broker == replica.broker) {
                return Err(problem(format!("two replicas on broker {}", replica.broker)));
            }
            for resource in Resource::ALL {
                let value = replica.load.of(resource);
                if !(value.is_finite() && value >= 0.0) {
                    return Err(problem(format!(
                        "{} load {value} on broker {}, it must be a number that is not negative",
                        resource.name(),
                        replica.broker
                    )));
                }
            }
            let broker = &self.facts[seat];
            let (disk, on_dead_disk) = match replica.disk.map(|disk| (disk, broker.disks.get(disk))) {
                None => (NO_DISK, false),
                Some((_, Some((state, place)))) => (*place, *state == DiskState::Dead),
                Some((disk, None)) => return Err(problem(format!("broker {} has no disk {disk}", replica.broker))),
            };
            if (replica.offline || on_dead_disk) && !broker.dead {
                self.offline.push(first + position as Slot);
            }
            let Load { cpu, nw_in, nw_out, disk: megabytes } =
                if position == leader { following } else { measured(replica.load, self.unknown) };
            self.seats.push(seat as Seat);
            self.disks.push(disk);
            self.loads.push(SlotLoad { cpu, nw_in, nw_out, disk: megabytes });
        }
        let topic = self.topic_number(topic);
        self.rows.push(Row { topic, number, first, factor: replicas.len() as u8, leader: leader as u8, lead });
        Ok(())
    }

    /// Says that a copy is under way; its load counts as already there.
    pub fn pending(&mut self, pending: PendingMove) {
        self.pending.push(pending);
    }

    fn topic_number(&mut self, topic: &str) -> u32 {
        // Records usually come topic by topic: remembering the last one saves a million searches.
        if let Some((last, number)) = &self.last_topic
            && last == topic
        {
            return *number;
        }
        let next = self.topics.len() as u32;
        let number = *self.topics.entry(topic.to_owned()).or_insert(next);
        self.last_topic = Some((topic.to_owned(), number));
        number
    }

    /// Makes the cluster, canonical whatever the order of the records was.
    pub fn build(mut self) -> Result<Cluster, Invalid> {
        if !self.brokers.values().any(|broker| broker.state != BrokerState::Dead) {
            return Err(Invalid::NoBroker);
        }
        let (brokers, topics) = (self.brokers.len(), self.topics.len());
        if brokers.saturating_mul(topics) > MOST_PAIRS {
            return Err(Invalid::TooManyPairs { brokers, topics });
        }
        self.sort()?;
        let (racks, hosts, brokers) = places(std::mem::take(&mut self.brokers))?;
        let mut cluster = Cluster {
            brokers,
            racks,
            hosts,
            topic_starts: Vec::with_capacity(self.topics.len() + 1),
            topics: std::mem::take(&mut self.topics).into_keys().collect(),
            partition_topics: self.rows.iter().map(|row| row.topic).collect(),
            partition_numbers: self.rows.iter().map(|row| row.number).collect(),
            partition_starts: self.rows.iter().map(|row| row.first).chain([self.seats.len() as Slot]).collect(),
            leaders: self.rows.iter().map(|row| row.leader).collect(),
            lead_loads: self.rows.iter().map(|row| row.lead).collect(),
            slot_partitions: Vec::with_capacity(self.seats.len()),
            slot_seats: self.seats,
            slot_disks: self.disks,
            slot_loads: self.loads,
            offline: self.offline,
            pending: Vec::new(),
            unknown: self.unknown,
        };
        for (part, row) in self.rows.iter().enumerate() {
            while cluster.topic_starts.len() <= row.topic as usize {
                cluster.topic_starts.push(part as Part);
            }
            cluster.slot_partitions.extend(std::iter::repeat_n(part as Part, usize::from(row.factor)));
        }
        cluster.topic_starts.resize(cluster.topics.len() + 1, self.rows.len() as Part);
        cluster.pending = pending(&cluster, self.pending)?;
        Ok(cluster)
    }

    /// Brings partitions, and with them the slots, into canonical order.
    fn sort(&mut self) -> Result<(), Invalid> {
        let mut rank = vec![0; self.topics.len()];
        for (sorted, arrived) in self.topics.values().enumerate() {
            rank[*arrived as usize] = sorted as u32;
        }
        for row in &mut self.rows {
            row.topic = rank[row.topic as usize];
        }
        let in_order = self.rows.is_sorted_by_key(|row| (row.topic, row.number));
        if !in_order {
            self.rows.sort_by_key(|row| (row.topic, row.number));
        }
        if let Some(pair) = self.rows.windows(2).find(|pair| {
            let key = |row: &Row| (row.topic, row.number);
            key(&pair[0]) == key(&pair[1])
        }) {
            let topic = self.topics.keys().nth(pair[0].topic as usize).cloned().unwrap_or_default();
            // Slots are handed out in the order of arrival, and the sort is stable: the second came later.
            let record = self.rows.iter().filter(|row| row.first < pair[1].first).count();
            return Err(Invalid::PartitionTwice { topic, partition: pair[0].number, record });
        }
        if in_order {
            return Ok(());
        }
        let offline = std::mem::take(&mut self.offline);
        let (seats, disks, loads) =
            (std::mem::take(&mut self.seats), std::mem::take(&mut self.disks), std::mem::take(&mut self.loads));
        for row in &mut self.rows {
            let old = row.first as usize..row.first as usize + usize::from(row.factor);
            row.first = self.seats.len() as Slot;
            for (position, slot) in old.clone().enumerate() {
                if offline.binary_search(&(slot as Slot)).is_ok() {
                    self.offline.push(row.first + position as Slot);
                }
            }
            self.seats.extend_from_slice(&seats[old.clone()]);
            self.disks.extend_from_slice(&disks[old.clone()]);
            self.loads.extend_from_slice(&loads[old]);
        }
        Ok(())
    }
}

/// Racks and hosts by name, and the brokers that refer to them.
type Places = (Vec<String>, Vec<String>, Vec<Broker>);

/// Numbers racks and hosts by name, and brokers by id.
fn places(specs: BTreeMap<BrokerId, BrokerSpec>) -> Result<Places, Invalid> {
    let mut rack_of_host: BTreeMap<String, String> = BTreeMap::new();
    for spec in specs.values() {
        let rack = rack_name(spec);
        let known = rack_of_host.entry(spec.host.clone()).or_insert_with(|| rack.to_owned());
        if known != rack {
            let (one, other) = (known.clone(), rack.to_owned());
            return Err(Invalid::HostInTwoRacks { host: spec.host.clone(), one, other });
        }
    }
    let hosts: Vec<String> = rack_of_host.keys().cloned().collect();
    let mut racks: Vec<String> = rack_of_host.into_values().collect();
    racks.sort();
    racks.dedup();
    let brokers = specs
        .into_values()
        .map(|mut spec| Broker {
            id: spec.id,
            rack: racks.binary_search_by(|rack| rack.as_str().cmp(rack_name(&spec))).unwrap_or_default(),
            host: hosts.binary_search(&spec.host).unwrap_or_default(),
            state: spec.state,
            capacity: room(&spec),
            told_disk: spec.capacity[Resource::Disk as usize],
            disks: {
                spec.disks.sort_by(|one, other| one.name.cmp(&other.name));
                spec.disks
            },
        })
        .collect();
    Ok((racks, hosts, brokers))
}

/// What the broker can carry: no more on disk than its disks that serve hold. One without any such disk keeps what was
/// told, as nothing is asked of it.
fn room(spec: &BrokerSpec) -> [f64; Resource::COUNT] {
    let serving = spec.disks.iter().filter(|disk| disk.state == DiskState::Alive);
    let serving: f64 = serving.map(|disk| disk.capacity).sum();
    let mut room = spec.capacity;
    if serving > 0.0 {
        let disk = &mut room[Resource::Disk as usize];
        *disk = disk.min(serving);
    }
    room
}

/// A broker without a rack is a rack of its own host, as in Kafka's own tools.
fn rack_name(spec: &BrokerSpec) -> &str {
    if spec.rack.is_empty() { &spec.host } else { &spec.rack }
}

fn pending(cluster: &Cluster, told: Vec<PendingMove>) -> Result<Vec<(Part, Seat)>, Invalid> {
    let mut found = Vec::with_capacity(told.len());
    for PendingMove { topic, partition, to } in told {
        let seat = cluster.seat_of(to).ok_or_else(|| Invalid::UnknownBroker {
            topic: topic.clone(),
            partition,
            broker: to,
        })?;
        let part = cluster.find(&topic, partition).ok_or_else(|| Invalid::Partition {
            topic: topic.clone(),
            partition,
            problem: "is said to be moving, but is not listed".into(),
        })?;
        found.push((part, seat));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

impl Cluster {
    /// The copies under way, by partition and broker.
    pub fn pending_moves(&self) -> impl ExactSizeIterator<Item = PendingMove> {
        self.pending.iter().map(|(part, seat)| {
            let partition = self.partition(*part as usize);
            let to = self.brokers[usize::from(*seat)].id;
            PendingMove { topic: partition.topic().to_owned(), partition: partition.number(), to }
        })
    }

    /// The partition called `topic`-`number`, if there is one.
    pub(crate) fn find(&self, topic: &str, number: i32) -> Option<Part> {
        let topic = self.topics.binary_search_by(|name| name.as_str().cmp(topic)).ok()?;
        let parts = self.topic_parts(topic as u32);
        let numbers = &self.partition_numbers[parts.start as usize..parts.end as usize];
        numbers.binary_search(&number).ok().map(|offset| parts.start + offset as Part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Small, planned};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::planner::Status;
    use crate::settings::Settings;

    /// A short file could ask for more memory than there is.
    #[test]
    fn more_brokers_and_topics_than_can_be_counted_are_refused() {
        let mut builder = ClusterBuilder::new();
        let (brokers, topics) = (40_000, 30_000);
        for id in 0..brokers {
            let (host, rack, state, disks) = (String::new(), String::new(), BrokerState::Alive, Vec::new());
            builder.broker(BrokerSpec { id: BrokerId(id), host, rack, state, capacity: [1e9; 4], disks }).unwrap();
        }
        let replica = ReplicaSpec { broker: BrokerId(0), disk: None, load: Load::default(), offline: false };
        (0..topics).for_each(|topic| builder.partition(&format!("t{topic}"), 0, 0, &[replica]).unwrap());
        assert_eq!(builder.build(), Err(Invalid::TooManyPairs { brokers: 40_000, topics: 30_000 }));
    }

    /// Otherwise a difference between numbers that mean nothing would keep replicas from each other's places.
    #[test]
    fn what_nobody_measured_is_the_same_for_all() {
        let mut builder = ClusterBuilder::new();
        builder.unknown(Resource::Disk);
        builder.unknown(Resource::NwOut);
        for id in 0..2 {
            let (host, rack, state, disks) = (format!("h{id}"), String::new(), BrokerState::Alive, Vec::new());
            builder.broker(BrokerSpec { id: BrokerId(id), host, rack, state, capacity: [1e9; 4], disks }).unwrap();
        }
        let load = |disk: f32| Load { cpu: 0.0, nw_in: 3.0, nw_out: disk, disk };
        let replica = |(id, disk)| ReplicaSpec { broker: BrokerId(id), disk: None, load: load(disk), offline: false };
        builder.partition("t", 0, 0, &[(0, 5.0), (1, 7.0)].map(replica)).unwrap();
        let cluster = builder.build().unwrap();
        assert_eq!(cluster.slot_load(0), SlotLoad { cpu: 0.0, nw_in: 3.0, nw_out: 0.0, disk: 0.0 });
        assert_eq!(cluster.slot_load(1), cluster.slot_load(0));
        assert_eq!(cluster.lead_load(0), LeadLoad::default());
    }

    /// The sum of them would be no number, and every broker would count as too full.
    #[test]
    fn brokers_without_limit_share_alike() {
        let changes = |capacity: f64| {
            let mut small = Small::in_racks("");
            for id in 0..3 {
                small.broker(id, 'a', &format!("host{id}"), BrokerState::Alive, [capacity; Resource::COUNT]);
            }
            (0..6).for_each(|number| small.partition("t", number, &[0], 10.0));
            let request = Request::rebalance(&[Goal::DiskUsageDistribution]);
            let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
            (outcome.verdicts[0].status, outcome.plan.changes.len())
        };
        assert_eq!(changes(f64::MAX), (Status::Fixed, 4));
        assert_eq!(changes(f64::MAX), changes(1e6));
    }

    /// Otherwise a rounding would make replicas of a partition differ, and fewer moves would be possible.
    #[test]
    fn leader_and_follower_weigh_the_same_to_the_last_bit() {
        for unknown in [None, Some(Resource::NwIn), Some(Resource::NwOut)] {
            let mut builder = ClusterBuilder::new();
            unknown.into_iter().for_each(|resource| builder.unknown(resource));
            for id in 0..2 {
                let (host, rack) = (format!("h{id}"), String::new());
                let (state, disks) = (BrokerState::Alive, Vec::new());
                builder.broker(BrokerSpec { id: BrokerId(id), host, rack, state, capacity: [1e9; 4], disks }).unwrap();
            }
            for number in 0..1_000_u16 {
                let part = |nth: u16| f32::from(number.wrapping_mul(nth)) / 7.0;
                let leader = Load { cpu: part(31), nw_in: part(57), nw_out: part(91), disk: 1.0 };
                let loads = [leader, builder.following(leader)];
                let replicas = [0, 1].map(|id| ReplicaSpec {
                    broker: BrokerId(id),
                    disk: None,
                    load: loads[id as usize],
                    offline: false,
                });
                builder.partition("t", number.into(), 0, &replicas).unwrap();
            }
            let cluster = builder.build().unwrap();
            for part in 0..cluster.partition_count() as Part {
                let mut slots = cluster.slots(part).map(|slot| cluster.slot_load(slot));
                assert_eq!(slots.next(), slots.next(), "partition {part} with {unknown:?} unknown");
            }
        }
    }
}
