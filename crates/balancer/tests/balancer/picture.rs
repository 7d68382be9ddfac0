//! Clusters drawn as text, one line per rack:
//!
//! ```text
//! rack a: b0[t0* t1 ] b1[t0] dead
//! rack b: b2@host[t1* u0!]
//! order t0: b1 b0            the replica list, if it is not the leader first and then by broker
//! load *: 1 10 10 100        what every leader carries: cpu, in, out, disk
//! load t0: 2 20 20 100       what one leader carries; followers follow from it
//! load t0@b1: 1 20 0 90      what one replica carries
//! capacity b2: 100 1000 1000 1000
//! disks b0: 100 200! 300-    a broker's disks: `!` failed, `-` is to be taken out
//! on t0@b0: 1                the disk that a replica is on
//! moving t1 -> b0
//! ```
//!
//! `*` marks the leader, `!` a replica that is offline. `t0` is partition 0 of topic `t`; where the
//! topic's name has digits, `T1-0` is partition 0 of `T1`. A broker without a state is alive.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, CpuWeights, DiskSpec, DiskState, Load, PendingMove,
    ReplicaSpec, Resource,
};

/// What brokers can carry unless a picture says otherwise: cpu, in, out, disk.
pub(crate) const CAPACITY: [f64; 4] = [100.0, 300_000.0, 200_000.0, 300_000.0];
/// What leaders carry unless a picture says otherwise.
const LOAD: Load = Load { cpu: 1.0, nw_in: 10.0, nw_out: 10.0, disk: 10.0 };

/// A partition's topic and number.
pub(crate) type Name = (String, i32);

/// A cluster as records, which tests can change before they build it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Picture {
    pub(crate) brokers: BTreeMap<i32, BrokerSpec>,
    pub(crate) partitions: BTreeMap<Name, Partition>,
    pub(crate) moving: Vec<(Name, i32)>,
    /// What nobody measured.
    pub(crate) unknown: Vec<Resource>,
    /// How leaders' CPU is split.
    pub(crate) weights: CpuWeights,
}

/// One partition of a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Partition {
    /// In list order.
    pub(crate) brokers: Vec<i32>,
    pub(crate) leader: i32,
    pub(crate) offline: Vec<i32>,
    /// What it carries if it leads; if not given, what every leader does.
    pub(crate) load: Option<Load>,
    /// What single replicas carry in the role they have.
    pub(crate) loads: BTreeMap<i32, Load>,
    /// Which of the broker's disks single replicas are on.
    pub(crate) disks: BTreeMap<i32, usize>,
}

impl Partition {
    /// Whether its replicas weigh differently, and not for leading or a rounding of the CPU alone: then they cannot stand for
    /// each other.
    pub(crate) fn differs(&self) -> bool {
        let leader = self.load.unwrap_or(LOAD);
        let alike = |load: &Load| (load.nw_in, load.nw_out, load.disk) == (leader.nw_in, 0.0, leader.disk);
        let follows = |load: &Load| (load.cpu - leader.cpu / 2.0).abs() <= 1e-3 * leader.cpu;
        let is_own = |(broker, load): (&i32, &Load)| *broker == self.leader || !alike(load) || !follows(load);
        self.loads.iter().any(is_own)
    }
}

impl Picture {
    /// Reads a picture; a mistake in it is a mistake in the test, so it panics.
    pub(crate) fn parse(text: &str) -> Picture {
        let mut picture = Picture { weights: WEIGHTS, ..Picture::default() };
        let mut usual = LOAD;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("nothing after `{line}`"));
            let told = || rest.split_once(':').unwrap_or_else(|| panic!("no colon in `{line}`"));
            match word {
                "rack" => picture.rack(told().0.trim(), told().1),
                "order" => {
                    let list = told().1.split_whitespace().map(broker_number).collect();
                    picture.partition(told().0).brokers = list;
                }
                "capacity" => picture.broker(told().0).capacity = numbers(told().1),
                "load" => match told().0.trim().split_once('@') {
                    None if told().0.trim() == "*" => usual = load(told().1),
                    None => picture.partition(told().0).load = Some(load(told().1)),
                    Some((name, broker)) => {
                        picture.partition(name).loads.insert(broker_number(broker), load(told().1));
                    }
                },
                "disks" => picture.broker(told().0).disks = disks(told().1),
                "on" => {
                    let (name, broker) = told().0.split_once('@').expect("`on t0@b0: 1`");
                    let disk = told().1.trim().parse().expect("a disk's place");
                    picture.partition(name).disks.insert(broker_number(broker), disk);
                }
                "moving" => {
                    let (what, to) = rest.split_once("->").expect("`moving t0 -> b1`");
                    picture.moving.push((partition_name(what.trim()), broker_number(to.trim())));
                }
                other => panic!("no line of a picture begins with `{other}`"),
            }
        }
        for partition in picture.partitions.values_mut() {
            partition.load.get_or_insert(usual);
        }
        picture
    }

    fn rack(&mut self, rack: &str, mut rest: &str) {
        while let Some((head, tail)) = rest.split_once('[') {
            let (held, tail) = tail.split_once(']').expect("a bracket that closes");
            let (id, host) = head.trim().split_once('@').unwrap_or((head.trim(), head.trim()));
            let id = broker_number(id);
            let word = tail.split_whitespace().next().unwrap_or_default();
            let state = match word {
                "new" => BrokerState::New,
                "dead" => BrokerState::Dead,
                "demoted" => BrokerState::Demoted,
                "bad" => BrokerState::BadDisks,
                _ => BrokerState::Alive,
            };
            rest = if state == BrokerState::Alive { tail } else { tail.trim_start().trim_start_matches(word) };
            let spec = BrokerSpec {
                id: BrokerId(id),
                rack: rack.to_owned(),
                host: host.to_owned(),
                state,
                capacity: CAPACITY,
                disks: Vec::new(),
            };
            assert!(self.brokers.insert(id, spec).is_none(), "b{id} is drawn twice");
            for replica in held.split_whitespace() {
                let partition = self.partition(replica.trim_end_matches(['*', '!']));
                if replica.contains('*') {
                    partition.leader = id;
                    partition.brokers.insert(0, id);
                } else {
                    partition.brokers.push(id);
                }
                if replica.contains('!') {
                    partition.offline.push(id);
                }
            }
        }
        assert!(rest.trim().is_empty(), "`{rest}` is no broker");
    }

    fn partition(&mut self, name: &str) -> &mut Partition {
        self.partitions.entry(partition_name(name.trim())).or_default()
    }

    fn broker(&mut self, name: &str) -> &mut BrokerSpec {
        self.brokers.get_mut(&broker_number(name)).expect("a broker that is drawn")
    }

    /// The cluster, told in the picture's own order.
    pub(crate) fn build(&self) -> Cluster {
        self.build_in_order(self.partitions.keys().collect())
    }

    /// The cluster, its partitions told in this order.
    pub(crate) fn build_in_order(&self, order: Vec<&Name>) -> Cluster {
        let weights = self.weights;
        let mut builder = ClusterBuilder::new().cpu_weights(weights);
        self.unknown.iter().for_each(|resource| builder.unknown(*resource));
        for broker in self.brokers.values() {
            builder.broker(broker.clone()).unwrap();
        }
        for name in order {
            let partition = &self.partitions[name];
            let leading = partition.load.unwrap_or(LOAD);
            let following = Load { cpu: weights.follower_cpu(leading), nw_out: 0.0, ..leading };
            let replica = |broker: &i32| {
                let role = if *broker == partition.leader { leading } else { following };
                let offline = partition.offline.contains(broker);
                let load = partition.loads.get(broker).copied().unwrap_or(role);
                ReplicaSpec { broker: BrokerId(*broker), disk: partition.disks.get(broker).copied(), load, offline }
            };
            let replicas: Vec<ReplicaSpec> = partition.brokers.iter().map(replica).collect();
            let leader = partition.brokers.iter().position(|broker| *broker == partition.leader);
            let leader = leader.unwrap_or_else(|| panic!("nobody leads {}", short(name)));
            builder.partition(&name.0, name.1, leader, &replicas).unwrap();
        }
        for ((topic, partition), to) in &self.moving {
            builder.pending(PendingMove { topic: topic.clone(), partition: *partition, to: BrokerId(*to) });
        }
        builder.build().unwrap()
    }

    /// Brokers and what they hold, as the rack lines of a picture.
    pub(crate) fn draw(&self) -> String {
        let mut racks: BTreeMap<&str, String> = BTreeMap::new();
        for (id, broker) in &self.brokers {
            let line = racks.entry(&broker.rack).or_default();
            let mut held: Vec<String> = Vec::new();
            for (name, partition) in &self.partitions {
                if partition.brokers.contains(id) {
                    let leads = if partition.leader == *id { "*" } else { "" };
                    let offline = if partition.offline.contains(id) { "!" } else { "" };
                    held.push(format!("{}{leads}{offline}", short(name)));
                }
            }
            let host = if broker.host == format!("b{id}") { String::new() } else { format!("@{}", broker.host) };
            let state = match broker.state {
                BrokerState::Alive => "",
                BrokerState::New => " new",
                BrokerState::Dead => " dead",
                BrokerState::Demoted => " demoted",
                BrokerState::BadDisks => " bad",
            };
            write!(line, " b{id}{host}[{}]{state}", held.join(" ")).unwrap();
        }
        racks.iter().fold(String::new(), |text, (rack, line)| text + &format!("rack {rack}:{line}\n"))
    }
}

/// A follower uses half of its leader's CPU: a number that survives being split and summed up again.
pub(crate) const WEIGHTS: CpuWeights = CpuWeights { leader_in: 0.5, leader_out: 0.0, follower_in: 0.25 };

/// `t0` for partition 0 of `t`, `T1-0` for partition 0 of `T1`.
pub(crate) fn short((topic, number): &Name) -> String {
    let dash = if topic.ends_with(|last: char| last.is_ascii_digit()) { "-" } else { "" };
    format!("{topic}{dash}{number}")
}

fn partition_name(text: &str) -> Name {
    let (topic, number) = text.rsplit_once('-').unwrap_or_else(|| {
        let digits = text.find(|letter: char| letter.is_ascii_digit());
        text.split_at(digits.unwrap_or_else(|| panic!("`{text}` names no partition")))
    });
    (topic.to_owned(), number.parse().unwrap_or_else(|_| panic!("`{text}` names no partition")))
}

fn broker_number(text: &str) -> i32 {
    let number = text.trim().strip_prefix('b').and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("`{text}` names no broker"))
}

fn numbers<const N: usize>(text: &str) -> [f64; N] {
    let found: Vec<f64> = text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    found.try_into().unwrap_or_else(|_| panic!("`{text}` is not {N} numbers"))
}

/// Capacities; `!` after one that failed, `-` after one that is to be taken out.
fn disks(text: &str) -> Vec<DiskSpec> {
    let disk = |(place, word): (usize, &str)| DiskSpec {
        name: format!("d{place}"),
        capacity: word.trim_end_matches(['!', '-']).parse().expect("a capacity"),
        state: match word.chars().last() {
            Some('!') => DiskState::Dead,
            Some('-') => DiskState::Removed,
            _ => DiskState::Alive,
        },
    };
    text.split_whitespace().enumerate().map(disk).collect()
}

fn load(text: &str) -> Load {
    let [cpu, nw_in, nw_out, disk] = numbers::<4>(text).map(|number| number as f32);
    Load { cpu, nw_in, nw_out, disk }
}

#[test]
fn a_picture_is_drawn_as_it_was_read() {
    let text = "rack a: b0[t0* t1] b1@h[T1-0 t0!] dead\nrack b: b2[T1-0* t1*] new b3[]\n";
    assert_eq!(Picture::parse(text).draw(), text);
}

#[test]
fn loads_capacities_orders_and_moves_are_read() {
    let picture = Picture::parse(
        "rack a: b0[t0*] b1[t0]
         order t0: b1 b0
         load *: 1 2 3 4
         load t0@b1: 5 6 0 7
         capacity b1: 1 2 3 4
         moving t0 -> b0",
    );
    let partition = &picture.partitions[&("t".to_owned(), 0)];
    assert_eq!(partition.brokers, [1, 0]);
    assert_eq!(partition.load, Some(Load { cpu: 1.0, nw_in: 2.0, nw_out: 3.0, disk: 4.0 }));
    assert_eq!(partition.loads[&1].disk, 7.0);
    assert_eq!(picture.brokers[&1].capacity, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(picture.moving, [(("t".to_owned(), 0), 0)]);
    let found = picture.build();
    assert_eq!(found.partition(0).leader(), 1);
}
