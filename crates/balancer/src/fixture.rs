//! Small clusters for tests, written as numbers that can be added up by hand.

use crate::cluster::{BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, Load, ReplicaSpec, Resource};
use crate::inspect::inspect;
use crate::options::Request;
use crate::planner::{Outcome, Refused, plan};
use crate::settings::Settings;

/// The plan for the request, looked over by the independent checker. No test plans without.
pub(crate) fn planned(cluster: &Cluster, request: &Request, settings: &Settings) -> Result<Outcome, Refused> {
    let outcome = plan(cluster, request, settings)?;
    let findings: Vec<String> = inspect(cluster, request, &outcome.plan).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{request:?}\n{}", findings.join("\n"));
    Ok(outcome)
}

/// A cluster in the making: brokers first, then partitions.
pub(crate) struct Small {
    builder: ClusterBuilder,
}

impl Small {
    /// Brokers 0, 1, …, one for each letter, in the rack of that letter, each on its own host, each with
    /// a capacity of 100 % CPU, 1,000 KB/s in, 1,000 KB/s out and 1,000 MB.
    pub(crate) fn in_racks(racks: &str) -> Small {
        let mut small = Small { builder: ClusterBuilder::new() };
        for (id, rack) in (0..).zip(racks.chars()) {
            small.broker(id, rack, &format!("host{id}"), BrokerState::Alive, [100.0, 1000.0, 1000.0, 1000.0]);
        }
        small
    }

    /// One more broker.
    pub(crate) fn broker(
        &mut self,
        id: i32,
        rack: char,
        host: &str,
        state: BrokerState,
        capacity: [f64; Resource::COUNT],
    ) {
        let (rack, host) = (rack.to_string(), host.to_owned());
        self.builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks: Vec::new() }).unwrap();
    }

    /// A partition on these brokers, the first of which leads, with so many MB and no other load.
    pub(crate) fn partition(&mut self, topic: &str, number: i32, brokers: &[i32], megabytes: f32) {
        self.loaded(topic, number, brokers, Load { disk: megabytes, ..Load::default() });
    }

    /// A partition whose leader carries `load`; followers carry what of it followers do.
    pub(crate) fn loaded(&mut self, topic: &str, number: i32, brokers: &[i32], load: Load) {
        let replicas: Vec<ReplicaSpec> = (0..)
            .zip(brokers)
            .map(|(position, id): (usize, _)| {
                let load = if position == 0 { load } else { Load { nw_out: 0.0, cpu: 0.0, ..load } };
                ReplicaSpec { broker: BrokerId(*id), disk: None, load, offline: false }
            })
            .collect();
        self.builder.partition(topic, number, 0, &replicas).unwrap();
    }

    /// The cluster.
    pub(crate) fn cluster(self) -> Cluster {
        self.builder.build().unwrap()
    }
}

/// Knuth's generator; any will do.
pub(crate) struct Dice(pub(crate) u32);

impl Dice {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % bound
    }
}

/// A small cluster of which some brokers hold much more than others.
pub(crate) fn crooked(dice: &mut Dice) -> Cluster {
    let small = Small::in_racks(["aabb", "abcd", "aabbc", "abcabc"][dice.below(4) as usize]);
    filled(small, dice)
}

/// The same with brokers in pairs on one host each.
pub(crate) fn crooked_on_shared_hosts(dice: &mut Dice) -> Cluster {
    let mut small = Small::in_racks("");
    for id in 0..6 {
        let host = format!("host{}", id / 2);
        small.broker(id, ['a', 'b', 'c'][id as usize / 2], &host, BrokerState::Alive, [100.0, 1000.0, 1000.0, 1000.0]);
    }
    filled(small, dice)
}

/// The same with disks of which hardly more is free than must be.
pub(crate) fn crooked_with_little_room(dice: &mut Dice) -> Cluster {
    let mut small = Small::in_racks("");
    for id in 0..4 {
        let disk = f64::from(250 + dice.below(250));
        small.broker(
            id,
            ['a', 'b', 'c', 'd'][id as usize],
            &format!("host{id}"),
            BrokerState::Alive,
            [100.0, 1000.0, 1000.0, disk],
        );
    }
    filled(small, dice)
}

/// A cluster of some size, of which three brokers of nine hold most of everything.
pub(crate) fn lopsided(dice: &mut Dice) -> Cluster {
    let mut small = Small::in_racks("abcabcabc");
    for number in 0..600 {
        let first = if dice.below(2) == 0 { dice.below(3) } else { dice.below(9) } as i32;
        let load = Load {
            cpu: dice.below(10) as f32 / 100.0,
            nw_in: dice.below(10) as f32 / 10.0,
            nw_out: dice.below(10) as f32 / 10.0,
            disk: 1.0 + dice.below(10) as f32 / 10.0,
        };
        small.loaded(&format!("t{}", number % 40), number, &[first, (first + 1 + dice.below(8) as i32) % 9], load);
    }
    small.cluster()
}

fn filled(mut small: Small, dice: &mut Dice) -> Cluster {
    let brokers = 4;
    for number in 0..(6 + dice.below(14) as i32) {
        let first = (dice.below(brokers) * dice.below(brokers) / brokers) as i32;
        let list: Vec<i32> = (0..=dice.below(3) as i32).map(|step| (first + step) % brokers as i32).collect();
        let load = Load {
            cpu: dice.below(5) as f32,
            nw_in: dice.below(60) as f32,
            nw_out: dice.below(60) as f32,
            disk: dice.below(60) as f32,
        };
        small.loaded(["t", "u", "v"][dice.below(3) as usize], number, &list, load);
    }
    small.cluster()
}
