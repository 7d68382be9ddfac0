//! What a plan costs: how long it may take, and how few bytes it could have moved at best.
//!
//! Data is told in MB and bandwidth in KB/s, as everywhere in the crate: a MB is 1024 KB.

use std::collections::BTreeMap;

use crate::aims::{Aim, Aims};
use crate::cluster::{BrokerId, Cluster, Part, Resource, Seat, Slot};
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::plan::{Change, Plan};
use crate::planner::{BrokerLoad, Outcome};
use crate::rules::Rules;
use crate::state::State;

/// KB in a MB.
const KILOBYTES: f64 = 1024.0;

/// What part of its bandwidth a broker has left for copies at worst, however busy it is: followers
/// that catch up compete with clients for the wire, they do not wait until it is free.
const LEAST_SHARE: f64 = 0.1;

/// How a plan is to be carried out. Names in the comments are Cruise Control's configuration keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// KB/s that each broker may spend on copies, in and out (`replication_throttle`, there in B/s).
    pub throttle: Option<f64>,
    /// Partitions that are copied to or from a broker at a time
    /// (`num.concurrent.partition.movements.per.broker`).
    pub moves_per_broker: usize,
    /// Partitions that are copied in the whole cluster at a time (`max.num.cluster.partition.movements`).
    pub moves: usize,
    /// Leaders that change at a time (`num.concurrent.leader.movements`).
    pub leader_moves: usize,
    /// Seconds between looks at what is done (`execution.progress.check.interval.ms`): what finishes
    /// in between makes room for the next only then.
    pub check_interval: f64,
    /// KB/s at which a broker copies between its disks, if anybody knows.
    pub disk_bandwidth: Option<f64>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            throttle: None,
            moves_per_broker: 10,
            moves: 1250,
            leader_moves: 1000,
            check_interval: 10.0,
            disk_bandwidth: None,
        }
    }
}

/// How long a plan takes, in minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// All data, copied at the speed of one broker of mean network capacity, or of the throttle if
    /// that is less. Brokers work side by side, so a plan that is spread over many takes less.
    pub one_by_one: f64,
    /// What the busiest broker needs, given its share of bandwidth and how much happens at a time.
    pub expected: f64,
    /// What the broker with most to copy between its disks needs; unknown without their bandwidth.
    pub disks: Option<f64>,
}

impl Outcome {
    /// How long the plan takes at this pace.
    pub fn estimate(&self, cluster: &Cluster, pace: &Pace) -> Estimate {
        Estimate {
            one_by_one: one_by_one(cluster, self.plan.megabytes(), pace),
            expected: expected(cluster, &self.plan, &self.before, pace),
            disks: pace.disk_bandwidth.map(|bandwidth| busiest_disks(&self.plan) * KILOBYTES / bandwidth / 60.0),
        }
    }

    /// How many times the bytes that had to be copied are copied; nothing if none had to.
    pub fn bytes_ratio(&self) -> Option<f64> {
        (self.least_megabytes > 0.0).then(|| self.plan.megabytes() / self.least_megabytes)
    }
}

fn one_by_one(cluster: &Cluster, megabytes: f64, pace: &Pace) -> f64 {
    let alive: Vec<f64> = cluster
        .brokers()
        .iter()
        .filter(|broker| broker.is_alive())
        .map(|broker| broker.capacity[Resource::NwIn as usize].min(broker.capacity[Resource::NwOut as usize]))
        .collect();
    let mean = alive.iter().sum::<f64>() / alive.len() as f64;
    megabytes * KILOBYTES / pace.throttle.map_or(mean, |throttle| throttle.min(mean)) / 60.0
}

/// What a broker has to do.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    megabytes_in: f64,
    megabytes_out: f64,
    moves: usize,
}

fn expected(cluster: &Cluster, plan: &Plan, before: &[BrokerLoad], pace: &Pace) -> f64 {
    let rounds = |count: usize, at_a_time: usize| count.div_ceil(at_a_time.max(1)) as f64 * pace.check_interval;
    let flows = flows(cluster, plan);
    let mut slowest = rounds(flows.values().map(|flow| flow.moves).max().unwrap_or(0), pace.moves_per_broker);
    for (broker, load) in cluster.brokers().iter().zip(before) {
        let Some(flow) = flows.get(&broker.id) else { continue };
        let share = |resource: Resource| {
            let capacity = broker.capacity[resource as usize];
            let free = (capacity - load.resources[resource as usize]).max(capacity * LEAST_SHARE);
            pace.throttle.map_or(free, |throttle| throttle.min(free))
        };
        // A broker that is gone has no capacity, and nothing flows through it either.
        let ways = [(flow.megabytes_in, Resource::NwIn), (flow.megabytes_out, Resource::NwOut)];
        for (megabytes, resource) in ways.into_iter().filter(|(megabytes, _)| *megabytes > 0.0) {
            slowest = slowest.max(megabytes * KILOBYTES / share(resource));
        }
    }
    let copies = plan.changes.iter().filter(|change| change.added().next().is_some()).count();
    let leaders = plan.changes.iter().filter(|change| change.old_leader != change.new_leader).count();
    (slowest.max(rounds(copies, pace.moves)) + rounds(leaders, pace.leader_moves)) / 60.0
}

/// What flows into and out of each broker: followers copy from the leader that there is.
fn flows(cluster: &Cluster, plan: &Plan) -> BTreeMap<BrokerId, Flow> {
    let mut flows: BTreeMap<BrokerId, Flow> = BTreeMap::new();
    for change in &plan.changes {
        let added: Vec<BrokerId> = change.added().collect();
        if added.is_empty() {
            continue;
        }
        let size = change.megabytes / added.len() as f64;
        for broker in &added {
            let flow = flows.entry(*broker).or_default();
            flow.megabytes_in += size;
            flow.moves += 1;
        }
        if let Some(source) = source(cluster, change) {
            let flow = flows.entry(source).or_default();
            flow.megabytes_out += change.megabytes;
            flow.moves += 1;
        }
    }
    flows
}

/// Who is copied from: the leader, or the first replica that is alive if that one is gone.
fn source(cluster: &Cluster, change: &Change) -> Option<BrokerId> {
    let alive = |id: &BrokerId| cluster.broker(*id).is_some_and(crate::cluster::Broker::is_alive);
    std::iter::once(change.old_leader).chain(change.old_replicas.iter().copied()).find(alive)
}

/// MB that the broker with most to copy between its own disks has.
fn busiest_disks(plan: &Plan) -> f64 {
    let mut megabytes: BTreeMap<BrokerId, f64> = BTreeMap::new();
    for change in &plan.changes {
        // A replica that comes from another broker names its disk too, but comes over the network.
        let within = || change.disks.iter().filter(|disk| !disk.from.is_empty());
        for disk in within() {
            *megabytes.entry(disk.broker).or_default() += change.disk_megabytes / within().count() as f64;
        }
    }
    megabytes.into_values().fold(0.0, f64::max)
}

/// MB that any plan must copy that gets as far as `state`: offline replicas saved, rack-mates parted,
/// and disks as near to their bands. The largest of these counts, because one copy can serve them all;
/// only the first two are added up, since no replica is in both.
pub(crate) fn least_megabytes(state: &State<'_>, aims: &Aims, rules: &Rules, before: &[BrokerLoad]) -> f64 {
    let saved = rules.offline().filter(|slot| !rules.must_move(state, *slot));
    let saved: f64 = saved.map(|slot| state.cluster.megabytes(slot)).sum();
    let parted = if aims.goals.contains(&Goal::RackAware) { parted(state, aims, rules) } else { 0.0 };
    let mut least = saved + parted;
    for aim in &aims.aims {
        let Aim::Band { gauge: Gauge::Disk, band, .. } = aim else { continue };
        let outside = |level: &dyn Fn(Seat) -> f64| {
            let alive = (0..before.len() as Seat).filter(|seat| rules.is_alive(*seat));
            alive.fold((0.0, 0.0), |(over, under), seat| {
                let limit = aims.limit(*band, seat);
                (over + (level(seat) - limit.high).max(0.0), under + (limit.low - level(seat)).max(0.0))
            })
        };
        let (over, under) = outside(&|seat| before[usize::from(seat)].resources[Resource::Disk as usize]);
        let (still_over, still_under) = outside(&|seat| state.levels(seat)[Gauge::Disk as usize]);
        least = least.max(over - still_over).max(under - still_under);
    }
    least
}

/// MB of the smallest replicas that had to leave for every rack to hold one of their partition. Only
/// replicas that could have stayed count, and only partitions that are as they should be now.
fn parted(state: &State<'_>, aims: &Aims, rules: &Rules) -> f64 {
    let cluster = state.cluster;
    let mut least = 0.0;
    let mut crowd: Vec<(u16, f64)> = Vec::new();
    for part in 0..cluster.partition_count() as Part {
        let slots = cluster.slots(part);
        if slots.clone().all(|slot| state.seat(slot) == state.home(slot)) {
            continue;
        }
        let mated = |rack: &dyn Fn(Slot) -> u16| {
            slots.clone().any(|slot| (slots.start..slot).any(|other| rack(other) == rack(slot)))
        };
        let home = |slot: Slot| aims.rack(state.home(slot));
        if mated(&|slot| aims.rack(state.seat(slot))) || !mated(&home) {
            continue;
        }
        crowd.clear();
        let online = slots.clone().filter(|slot| !rules.is_offline(*slot));
        crowd.extend(online.map(|slot| (home(slot), cluster.megabytes(slot))));
        crowd.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        // The largest of each rack stays.
        least += crowd.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].1).sum::<f64>();
    }
    least
}
