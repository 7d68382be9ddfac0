//! What a plan costs: how long it may take, and how few bytes it could have moved at best.
//!
//! Data is told in MB and bandwidth in KB/s, as everywhere in the crate: a MB is 1024 KB.

use std::collections::BTreeMap;

use crate::aims::{Aim, Aims};
use crate::cluster::{BrokerId, Cluster, Part, ReplicaSpec, Resource, Seat, Slot};
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::options::Operation;
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
    /// KB/s that each broker may spend on copies, in and out (`replication_throttle`, there in B/s);
    /// 0 or less is none, as nothing would ever arrive.
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

impl Pace {
    /// What the throttle leaves of a bandwidth.
    fn throttled(&self, bandwidth: f64) -> f64 {
        self.throttle.filter(|throttle| *throttle > 0.0).map_or(bandwidth, |throttle| throttle.min(bandwidth))
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
            disks: pace
                .disk_bandwidth
                .filter(|bandwidth| *bandwidth > 0.0)
                .map(|bandwidth| busiest_disks(cluster, &self.plan) * KILOBYTES / bandwidth / 60.0),
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
    megabytes * KILOBYTES / pace.throttled(mean) / 60.0
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
            pace.throttled(free)
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
        if change.moves.is_empty() {
            continue;
        }
        let part = cluster.find(&change.topic, change.partition);
        let found: Vec<ReplicaSpec> =
            part.map(|part| cluster.partition(part as usize).replicas().collect()).unwrap_or_default();
        // Nothing flows where nobody has the data.
        let is_lost = change.megabytes == 0.0;
        for (from, to) in &change.moves {
            let flow = flows.entry(*to).or_default();
            let moved = found.iter().find(|replica| !is_lost && replica.broker == *from);
            flow.megabytes_in += moved.map_or(0.0, |replica| f64::from(replica.load.disk));
            flow.moves += 1;
        }
        if let Some(source) = source(cluster, change, &found) {
            let flow = flows.entry(source).or_default();
            flow.megabytes_out += change.megabytes;
            flow.moves += 1;
        }
    }
    flows
}

/// Who is copied from: the leader, or the first replica that serves if that one does not.
fn source(cluster: &Cluster, change: &Change, found: &[ReplicaSpec]) -> Option<BrokerId> {
    let serves = |id: &BrokerId| {
        let is_alive = cluster.broker(*id).is_some_and(crate::cluster::Broker::is_alive);
        is_alive && !found.iter().any(|replica| replica.broker == *id && replica.offline)
    };
    std::iter::once(change.old_leader).chain(change.old_replicas.iter().copied()).find(serves)
}

/// MB that the broker with most to copy between its own disks has.
fn busiest_disks(cluster: &Cluster, plan: &Plan) -> f64 {
    let mut megabytes: BTreeMap<BrokerId, f64> = BTreeMap::new();
    for change in &plan.changes {
        // A replica that comes from another broker names its disk too, but comes over the network.
        for disk in change.disks.iter().filter(|disk| !disk.from.is_empty()) {
            let found = cluster.find_partition(&change.topic, change.partition);
            let copied = found.and_then(|found| found.replicas().find(|replica| replica.broker == disk.broker));
            let size = copied.map_or(0.0, |replica| f64::from(replica.load.disk));
            *megabytes.entry(disk.broker).or_default() += size;
        }
    }
    megabytes.into_values().fold(0.0, f64::max)
}

/// MB that any plan must copy that gets as far as `state`: offline replicas saved, rack-mates parted,
/// and disks as near to their bands. The largest of these counts, because one copy can serve them all;
/// only the first two are added up, since no replica is in both.
pub(crate) fn least_megabytes(
    state: &State<'_>,
    aims: &Aims,
    rules: &Rules,
    operation: &Operation,
    before: &[BrokerLoad],
) -> f64 {
    // What nobody has is copied by no plan, however much room its replicas are to have elsewhere.
    let cluster = state.cluster;
    let is_lost = |slot: &Slot| operation.finds_lost(cluster.partition(cluster.part_of(*slot) as usize));
    let (lost, saved): (Vec<Slot>, Vec<Slot>) =
        rules.offline().filter(|slot| !rules.must_move(state, *slot)).partition(is_lost);
    let megabytes = |slots: Vec<Slot>| slots.into_iter().map(|slot| state.cluster.megabytes(slot)).sum::<f64>();
    let (lost, saved) = (megabytes(lost), megabytes(saved));
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
        least = least.max((over - still_over).max(under - still_under) - lost);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerSpec, BrokerState, ClusterBuilder, Load};
    use crate::fixture::{Small, planned};
    use crate::options::Request;
    use crate::plan::{DiskChange, Undone};
    use crate::settings::Settings;

    const CAPACITY: [f64; Resource::COUNT] = [100.0, 1000.0, 1000.0, 1000.0];

    /// Partitions by who holds each and who is to, with so many MB in each replica.
    type Wanted<'a> = (&'a [i32], &'a [i32], f32);

    fn change(number: i32, (old, new, size): Wanted<'_>) -> Change {
        let ids = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
        let (old_replicas, new_replicas) = (ids(old), ids(new));
        let beyond = |one: &[BrokerId], other: &[BrokerId]| {
            one.iter().copied().filter(|id| !other.contains(id)).collect::<Vec<_>>()
        };
        let (gone, added) = (beyond(&old_replicas, &new_replicas), beyond(&new_replicas, &old_replicas));
        let megabytes = f64::from(size) * added.len() as f64;
        Change {
            topic: "t".to_owned(),
            partition: number,
            moves: gone.into_iter().zip(added).collect(),
            old_leader: old_replicas[0],
            new_leader: new_replicas[0],
            old_replicas,
            new_replicas,
            disks: Vec::new(),
            megabytes,
            disk_megabytes: 0.0,
            reasons: Vec::new(),
        }
    }

    /// An outcome whose plan does that, on brokers in racks a to e that carry nothing else.
    fn outcome(wanted: &[Wanted<'_>]) -> (Cluster, Outcome) {
        let mut small = Small::in_racks("abcde");
        for (number, (old, _, size)) in (0..).zip(wanted) {
            small.partition("t", number, old, *size);
        }
        let cluster = small.cluster();
        let mut outcome =
            planned(&cluster, &Request::rebalance(&[Goal::ReplicaCapacity]), &Settings::default()).unwrap();
        let changes = (0..).zip(wanted).map(|(number, wanted)| change(number, *wanted)).collect();
        outcome.plan = Plan { changes, undone: Undone::default() };
        (cluster, outcome)
    }

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9, "{one} is not {other}");
    }

    #[test]
    fn one_by_one_is_all_data_at_the_mean_capacity_or_the_throttle() {
        let (cluster, outcome) = outcome(&[(&[0], &[1], 600.0), (&[2], &[3], 600.0)]);
        // 1,200 MB are 1,228,800 KB; at 1,000 KB/s that is 1,228.8 s, or 20.48 minutes.
        close(outcome.estimate(&cluster, &Pace::default()).one_by_one, 20.48);
        // At 256 KB/s it is 4,800 s, or 80 minutes; a throttle above the capacity changes nothing.
        let at = |throttle| Pace { throttle: Some(throttle), ..Pace::default() };
        close(outcome.estimate(&cluster, &at(256.0)).one_by_one, 80.0);
        close(outcome.estimate(&cluster, &at(5000.0)).one_by_one, 20.48);
        close(outcome.estimate(&cluster, &at(0.0)).one_by_one, 20.48);
    }

    #[test]
    fn brokers_work_side_by_side_and_the_busiest_decides() {
        let (cluster, both) = outcome(&[(&[0], &[1], 600.0), (&[2], &[3], 600.0)]);
        // 0 to 1 and 2 to 3: 614,400 KB each at 1,000 KB/s, 614.4 s; leaders change once, one look of 10 s.
        close(both.estimate(&cluster, &Pace::default()).expected, 624.4 / 60.0);
        // To 3 and to 4 at once: 0, which leads, sends both, 1,228.8 s.
        let (cluster, fan) = outcome(&[(&[0, 1, 2], &[0, 3, 4], 600.0)]);
        close(fan.estimate(&cluster, &Pace::default()).expected, 1228.8 / 60.0);
    }

    #[test]
    fn a_broker_copies_with_what_clients_leave_of_its_bandwidth() {
        let mut small = Small::in_racks("abc");
        small.loaded("t", 0, &[0, 1], Load { nw_out: 600.0, disk: 400.0, ..Load::default() });
        let cluster = small.cluster();
        let mut outcome = planned(&cluster, &Request::rebalance(&[Goal::RackAware]), &Settings::default()).unwrap();
        outcome.plan = Plan { changes: vec![change(0, (&[0, 1], &[0, 2], 400.0))], undone: Undone::default() };
        // Broker 0 has 400 of 1,000 KB/s left: 409,600 KB take 1,024 s.
        close(outcome.estimate(&cluster, &Pace::default()).expected, 1024.0 / 60.0);
    }

    #[test]
    fn small_moves_wait_for_the_next_look() {
        let moves: Vec<Wanted<'_>> = vec![(&[0, 1], &[0, 2], 1.0); 30];
        let (cluster, outcome) = outcome(&moves);
        // 30 MB take 30.72 s, but ten at a time are three rounds of 10 s: the data decides. Two at a time
        // are fifteen rounds, 150 s.
        close(outcome.estimate(&cluster, &Pace::default()).expected, 30.72 / 60.0);
        let slow = Pace { moves_per_broker: 2, ..Pace::default() };
        close(outcome.estimate(&cluster, &slow).expected, 150.0 / 60.0);
        // Four at a time in the whole cluster are eight rounds.
        let narrow = Pace { moves: 4, ..Pace::default() };
        close(outcome.estimate(&cluster, &narrow).expected, 80.0 / 60.0);
    }

    /// Replicas of one partition that differ: what is large goes to broker 3, what is small to broker 4.
    #[test]
    fn each_broker_gets_what_the_replica_weighs_that_comes_to_it() {
        let mut builder = ClusterBuilder::new();
        for id in 0..5 {
            let (rack, host, state) = (format!("r{id}"), format!("h{id}"), BrokerState::Alive);
            builder
                .broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity: CAPACITY, disks: Vec::new() })
                .unwrap();
        }
        let replica = |id: i32, disk: f32, offline: bool| ReplicaSpec {
            broker: BrokerId(id),
            disk: None,
            load: Load { disk, ..Load::default() },
            offline,
        };
        builder
            .partition("t", 0, 0, &[replica(0, 50.0, true), replica(1, 90.0, false), replica(2, 10.0, false)])
            .unwrap();
        let cluster = builder.build().unwrap();
        let mut change = change(0, (&[0, 1, 2], &[0, 3, 4], 0.0));
        change.megabytes = 100.0;
        let flows = flows(&cluster, &Plan { changes: vec![change], undone: Undone::default() });
        close(flows[&BrokerId(3)].megabytes_in, 90.0);
        close(flows[&BrokerId(4)].megabytes_in, 10.0);
        // Broker 0 leads and is up, but its replica is not: the next in the list serves.
        assert!(!flows.contains_key(&BrokerId(0)));
        close(flows[&BrokerId(1)].megabytes_out, 100.0);
    }

    #[test]
    fn disks_are_estimated_only_if_their_bandwidth_is_known() {
        let disk = |broker, from: &str| DiskChange { broker: BrokerId(broker), from: from.into(), to: "/d2".into() };
        let (cluster, mut outcome) = outcome(&[(&[0, 1], &[0, 1], 60.0), (&[0], &[1], 500.0)]);
        let [within, from_afar] = &mut outcome.plan.changes[..] else { unreachable!("two changes") };
        (within.disks, within.disk_megabytes) = (vec![disk(0, "/d1"), disk(1, "/d1")], 120.0);
        from_afar.disks = vec![disk(1, "")];
        assert_eq!(outcome.estimate(&cluster, &Pace::default()).disks, None);
        // 60 MB on each of two brokers: 61,440 KB at 1,024 KB/s are 60 s.
        let known = Pace { disk_bandwidth: Some(1024.0), ..Pace::default() };
        close(outcome.estimate(&cluster, &known).disks.unwrap(), 1.0);
    }

    /// 30 MB on one broker and 90 MB on the other: the other decides, and not the mean of the two.
    #[test]
    fn between_disks_each_broker_copies_what_it_has() {
        let mut builder = ClusterBuilder::new();
        let replicas = [(0, 30.0), (1, 90.0)].map(|(id, disk)| {
            let (rack, host, state) = (format!("r{id}"), format!("h{id}"), BrokerState::Alive);
            let spec = BrokerSpec { id: BrokerId(id), rack, host, state, capacity: CAPACITY, disks: Vec::new() };
            builder.broker(spec).unwrap();
            let load = Load { disk, ..Load::default() };
            ReplicaSpec { broker: BrokerId(id), disk: None, load, offline: false }
        });
        builder.partition("t", 0, 0, &replicas).unwrap();
        let disk = |id: i32| DiskChange { broker: BrokerId(id), from: "/d1".into(), to: "/d2".into() };
        let unmoved = change(0, (&[0, 1], &[0, 1], 0.0));
        let changes = vec![Change { disks: vec![disk(0), disk(1)], disk_megabytes: 120.0, ..unmoved }];
        close(busiest_disks(&builder.build().unwrap(), &Plan { changes, undone: Undone::default() }), 90.0);
    }

    #[test]
    fn removing_a_broker_copies_at_least_what_is_on_it() {
        let mut small = Small::in_racks("abc");
        small.partition("t", 0, &[2], 70.0);
        small.partition("t", 1, &[2, 0], 30.0);
        small.partition("t", 2, &[0, 1], 50.0);
        let operation = Operation::RemoveBrokers([BrokerId(2)].into());
        let request = Request { operation, goals: vec![Goal::ReplicaCapacity], ..Request::default() };
        let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
        // 70 + 30 are on broker 2, and nothing else has a reason to move.
        close(outcome.least_megabytes, 100.0);
        close(outcome.bytes_ratio().unwrap(), 1.0);
    }

    #[test]
    fn adding_a_broker_copies_at_least_what_its_band_asks_for() {
        let mut small = Small::in_racks("ab");
        small.broker(2, 'c', "host2", BrokerState::Alive, CAPACITY);
        for number in 0..300 {
            small.partition("t", number, &[number % 2], 2.0);
        }
        let cluster = small.cluster();
        let operation = Operation::AddBrokers([BrokerId(2)].into());
        let request = Request { operation, goals: vec![Goal::DiskUsageDistribution], ..Request::default() };
        let outcome = planned(&cluster, &request, &Settings::default()).unwrap();
        // 600 MB over three brokers is 200 each, 182 to 218 allowed. The new one lacks 182; the old ones
        // have 300 each, 82 over each, 164 together. 91 moves of 2 MB bring exactly 182.
        close(outcome.least_megabytes, 182.0);
        close(outcome.plan.megabytes(), 182.0);
        close(outcome.bytes_ratio().unwrap(), 1.0);
        // Without the goal nothing has to move.
        let request = Request { goals: vec![Goal::DiskCapacity], ..request };
        let outcome = planned(&cluster, &request, &Settings::default()).unwrap();
        assert_eq!((outcome.least_megabytes, outcome.bytes_ratio()), (0.0, None));
    }

    #[test]
    fn parting_rack_mates_copies_at_least_the_smaller_one() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1], 40.0);
        small.partition("t", 1, &[0, 2], 500.0);
        let outcome = planned(&small.cluster(), &Request::rebalance(&[Goal::RackAware]), &Settings::default()).unwrap();
        // t-0 has both replicas in rack a: one of its 40 MB must go; t-1 is as it should be.
        close(outcome.least_megabytes, 40.0);
        close(outcome.plan.megabytes(), 40.0);
    }
}
