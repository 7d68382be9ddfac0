//! Small random clusters with random requests, printed as pictures when something fails.
//!
//! Brokers hold equal or very unequal numbers of replicas. In half of the clusters all replicas of a partition weigh the
//! same, as they nearly do in Kafka, to the last bit or but for a rounding of the CPU; in the others each uses its own CPU, or
//! has loads of its own, as in the clusters of the benchmarks. In a third of them brokers' disks are told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use evenkeel_balancer::cluster::{BrokerId, BrokerSpec, BrokerState, DiskSpec, DiskState, Load, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request, TopicPattern};
use evenkeel_balancer::settings::Settings;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::picture::{Name, Partition, Picture, WEIGHTS, short};

/// So many cases, unless whoever runs the tests asks for another number: by itself, a configuration that names one no longer
/// listens to `PROPTEST_CASES`.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { asked } else { ProptestConfig { cases: usual, ..asked } }
}

/// A cluster and what is asked of it.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) picture: Picture,
    pub(crate) request: Request,
    pub(crate) settings: Settings,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.picture.draw())?;
        for (name, partition) in &self.picture.partitions {
            let Load { cpu, nw_in, nw_out, disk } = partition.load.unwrap_or_default();
            writeln!(f, "load {}: {cpu} {nw_in} {nw_out} {disk}", short(name))?;
            for (broker, Load { cpu, nw_in, nw_out, disk }) in &partition.loads {
                writeln!(f, "load {}@b{broker}: {cpu} {nw_in} {nw_out} {disk}", short(name))?;
            }
            let list: Vec<String> = partition.brokers.iter().map(|broker| format!("b{broker}")).collect();
            writeln!(f, "order {}: {}", short(name), list.join(" "))?;
        }
        for (id, broker) in &self.picture.brokers {
            let [cpu, nw_in, nw_out, disk] = broker.capacity;
            writeln!(f, "capacity b{id}: {cpu} {nw_in} {nw_out} {disk}")?;
            if !broker.disks.is_empty() {
                let mark = |state| ["", "!", "-"][state as usize];
                let disk = |disk: &DiskSpec| format!("{}{}", disk.capacity, mark(disk.state));
                writeln!(f, "disks b{id}: {}", broker.disks.iter().map(disk).collect::<Vec<_>>().join(" "))?;
            }
        }
        for (name, partition) in &self.picture.partitions {
            for (broker, disk) in &partition.disks {
                writeln!(f, "on {}@b{broker}: {disk}", short(name))?;
            }
        }
        for (name, to) in &self.picture.moving {
            writeln!(f, "moving {} -> b{to}", short(name))?;
        }
        writeln!(f, "unknown: {:?}", self.picture.unknown)?;
        write!(f, "{:?}\nmost replicas {}", self.request, self.settings.max_replicas_per_broker)
    }
}

/// Any of the operations between brokers, with any restrictions, on any cluster.
pub(crate) fn any_case() -> impl Strategy<Value = Case> {
    (picture(true), any::<Knobs>()).prop_flat_map(|(picture, knobs)| {
        let ids: Vec<BrokerId> = picture.brokers.keys().copied().map(BrokerId).collect();
        let few = |ids: &Vec<BrokerId>| subsequence(ids.clone(), 0..=2).prop_map(BTreeSet::from_iter);
        let restrictions = (few(&ids), few(&ids), few(&ids));
        (Just(picture), Just(knobs), operation(ids), goals(), restrictions).prop_map(
            |(picture, knobs, operation, goals, (destinations, leadership, moves))| {
                let or_none = |used: bool, ids: BTreeSet<BrokerId>| if used { ids } else { BTreeSet::new() };
                let request = Request {
                    operation,
                    goals,
                    destinations: or_none(knobs.restricts.is_multiple_of(5), destinations),
                    excluded_for_leadership: or_none(knobs.restricts.is_multiple_of(3), leadership),
                    excluded_for_replica_moves: or_none(knobs.restricts.is_multiple_of(4), moves),
                    excluded_topics: (knobs.restricts.is_multiple_of(7)).then(|| TopicPattern::new("a|c").unwrap()),
                    only_immigrants: knobs.restricts.is_multiple_of(11),
                    ..Request::default()
                };
                let picture = Picture { unknown: knobs.unknown(), ..picture };
                Case { picture, request, settings: knobs.settings() }
            },
        )
    })
}

/// A rebalance without restrictions by the default goals; every broker is alive and every replica serves.
pub(crate) fn plain_case() -> impl Strategy<Value = Case> {
    (picture(false), any::<Knobs>()).prop_map(|(picture, knobs)| Case {
        picture,
        request: Request::default(),
        settings: knobs.settings(),
    })
}

/// The same cases, with another operation.
pub(crate) fn plain_case_with(operation: fn(BTreeSet<BrokerId>) -> Operation) -> impl Strategy<Value = Case> {
    plain_case().prop_flat_map(move |case| {
        let ids: Vec<BrokerId> = case.picture.brokers.keys().copied().map(BrokerId).collect();
        (Just(case), subsequence(ids, 1..=2)).prop_map(move |(mut case, ids)| {
            case.request.operation = operation(ids.into_iter().collect());
            case
        })
    })
}

/// Numbers that choose among settings and restrictions.
#[derive(Debug, Clone, Copy)]
struct Knobs {
    restricts: u16,
    tunes: u16,
}

impl Arbitrary for Knobs {
    type Parameters = ();
    type Strategy = BoxedStrategy<Knobs>;

    fn arbitrary_with((): ()) -> BoxedStrategy<Knobs> {
        // Prime to all divisors above: shrinks towards a request without restrictions.
        (1..2_000u16, 1..2_000u16).prop_map(|(restricts, tunes)| Knobs { restricts, tunes }).boxed()
    }
}

impl Knobs {
    /// What nobody measured.
    fn unknown(self) -> Vec<Resource> {
        match self.tunes {
            tunes if tunes.is_multiple_of(11) => vec![Resource::NwIn],
            tunes if tunes.is_multiple_of(13) => vec![Resource::Cpu, Resource::NwOut],
            _ => Vec::new(),
        }
    }

    fn settings(self) -> Settings {
        let mut settings = Settings::default();
        if self.tunes.is_multiple_of(3) {
            settings.max_replicas_per_broker = 12;
        }
        if self.tunes.is_multiple_of(5) {
            settings.topics_with_min_leaders_per_broker = Some(TopicPattern::new("b").unwrap());
        }
        if self.tunes.is_multiple_of(4) {
            settings.topic_replica_count_balance_threshold = 1.2;
            settings.topic_replica_count_balance_min_gap = 0;
        }
        if self.tunes.is_multiple_of(7) {
            settings.low_utilization_thresholds = [0.3; 4];
        }
        settings
    }
}

fn operation(ids: Vec<BrokerId>) -> impl Strategy<Value = Operation> {
    let some = subsequence(ids, 1..=2).prop_map(BTreeSet::from_iter);
    prop_oneof![
        2 => Just(Operation::Rebalance),
        1 => some.clone().prop_map(Operation::AddBrokers),
        1 => some.clone().prop_map(Operation::RemoveBrokers),
        1 => some.prop_map(Operation::DemoteBrokers),
        1 => Just(Operation::FixOfflineReplicas),
    ]
}

fn goals() -> impl Strategy<Value = Vec<Goal>> {
    let between_brokers: Vec<Goal> = Goal::ALL.into_iter().filter(|goal| !goal.is_intra_broker()).collect();
    let count = between_brokers.len();
    prop_oneof![
        2 => Just(Vec::new()),
        1 => subsequence(between_brokers.clone(), 1..=count),
        1 => subsequence(between_brokers, 1..=count).prop_shuffle(),
    ]
}

fn picture(troubled: bool) -> impl Strategy<Value = Picture> {
    // All brokers hold about as much, or some of them most: then there is more to do.
    let popular = prop_oneof![1 => Just(7), 1 => 1..=4i32];
    let loads = select(vec![Loads::Reckoned, Loads::Rounded, Loads::OwnCpu, Loads::Own]);
    let shape = (3..=7i32, 1..=4usize, 1..=3usize, popular, loads, 0..3u8);
    shape.prop_flat_map(move |(brokers, racks, hosts, popular, loads, disks)| {
        (
            prop::collection::vec(broker(racks, troubled), brokers as usize),
            prop::collection::vec(partition(brokers, popular, loads, troubled), 1..=20),
            prop::collection::vec((0..20usize, 0..brokers), if troubled { 0..=2 } else { 0..=0 }),
        )
            .prop_map(move |(mut brokers, partitions, moving)| {
                // Somebody must live.
                brokers[0].state = BrokerState::Alive;
                brokers[0].disks[0].state = DiskState::Alive;
                let mut picture = Picture { weights: WEIGHTS, ..Picture::default() };
                for (id, mut broker) in brokers.into_iter().enumerate() {
                    broker.id = BrokerId(id as i32);
                    // One time in three brokers of a rack share two hosts.
                    let shares = hosts == 3;
                    broker.host = if shares { format!("{}{}", broker.rack, id % 2) } else { format!("b{id}") };
                    if disks != 0 {
                        broker.disks.clear();
                    }
                    picture.brokers.insert(id as i32, broker);
                }
                for (topic, mut partition) in partitions {
                    let shelves = |broker: &i32| picture.brokers[broker].disks.len();
                    // Any disk will do, as long as it is not always the first.
                    let on = |broker: &i32| {
                        (shelves(broker) > 0).then(|| (*broker, picture.partitions.len() % shelves(broker)))
                    };
                    partition.disks = partition.brokers.iter().filter_map(on).collect();
                    let number = picture.partitions.keys().filter(|(other, _)| other == topic).count() as i32;
                    picture.partitions.insert(Name::from((topic.to_owned(), number)), partition);
                }
                // Copies on their way to brokers that have none of the partition yet. They weigh what the leader weighs,
                // and so that it does not matter who that is in the end all replicas do.
                for (index, to) in moving {
                    if let Some((name, partition)) = picture.partitions.iter_mut().nth(index)
                        && !partition.brokers.contains(&to)
                    {
                        partition.loads.clear();
                        picture.moving.push((name.clone(), to));
                    }
                }
                picture
            })
    })
}

fn broker(racks: usize, troubled: bool) -> impl Strategy<Value = BrokerSpec> {
    let trouble = prop_oneof![
        6 => Just(BrokerState::Alive),
        1 => Just(BrokerState::New),
        1 => Just(BrokerState::Dead),
        1 => Just(BrokerState::Demoted),
        1 => Just(BrokerState::BadDisks),
    ];
    let capacity = select(vec![
        [400.0, 1_000.0, 1_000.0, 1_000.0],
        [800.0, 2_000.0, 2_000.0, 2_000.0],
        [60.0, 400.0, 400.0, 300.0],
    ]);
    let disk = prop_oneof![12 => Just(DiskState::Alive), 1 => Just(DiskState::Dead), 1 => Just(DiskState::Removed)];
    let disks = prop::collection::vec(disk, 1..=3);
    (0..racks, trouble, capacity, disks).prop_map(move |(rack, state, capacity, disks)| {
        let share = capacity[Resource::Disk as usize] / disks.len() as f64;
        let disk = |(place, state): (usize, DiskState)| DiskSpec {
            name: format!("d{place}"),
            capacity: share,
            state: if troubled { state } else { DiskState::Alive },
        };
        BrokerSpec {
            id: BrokerId(0),
            rack: ["p", "q", "r", "s"][rack].to_owned(),
            host: String::new(),
            state: if troubled { state } else { BrokerState::Alive },
            capacity,
            disks: disks.into_iter().enumerate().map(disk).collect(),
        }
    })
}

/// All disks serve.
pub(crate) fn mend_disks(picture: &mut Picture) {
    for disk in picture.brokers.values_mut().flat_map(|broker| &mut broker.disks) {
        disk.state = DiskState::Alive;
    }
}

/// How alike the replicas of a partition are.
#[derive(Debug, Clone, Copy)]
enum Loads {
    /// Followers' loads follow from their leader's.
    Reckoned,
    /// The same, but what CPU they use was rounded.
    Rounded,
    /// The same, but that each uses another CPU.
    OwnCpu,
    /// Each replica has a load of its own.
    Own,
}

/// On any of the brokers, three times in four on the `popular` ones first of all.
fn partition(
    brokers: i32,
    popular: i32,
    loads: Loads,
    troubled: bool,
) -> impl Strategy<Value = (&'static str, Partition)> {
    let list =
        (Just((0..brokers).collect::<Vec<i32>>()).prop_shuffle(), 0..4u8).prop_map(move |(mut list, anywhere)| {
            if anywhere != 0 {
                // Stable: in the order they were shuffled into.
                list.sort_by_key(|broker| *broker >= popular);
            }
            list
        });
    let load = (1..=10u8, 1..=100u8, 0..=100u8, 1..=100u8);
    let own = prop::collection::vec((1..=10u8, 1..=100u8, 1..=100u8), 3);
    (select(vec!["a", "b", "c"]), list, 1..=3usize, 0..3usize, load, 0..24u8, own).prop_map(
        move |(topic, mut brokers, factor, leader, (cpu, nw_in, nw_out, disk), offline, own)| {
            brokers.truncate(factor);
            let leader = brokers[leader % factor];
            let offline = if troubled && offline == 0 { vec![brokers[0]] } else { Vec::new() };
            let load =
                Load { cpu: 2.0 * f32::from(cpu), nw_in: nw_in.into(), nw_out: nw_out.into(), disk: disk.into() };
            let of_one = |(broker, (cpu, nw_in, disk)): (&i32, (u8, u8, u8))| {
                let nw_out = if *broker == leader { load.nw_out } else { 0.0 };
                (*broker, Load { cpu: 2.0 * f32::from(cpu), nw_in: nw_in.into(), nw_out, disk: disk.into() })
            };
            let half = load.cpu / 2.0;
            let rounded = [half.next_up(), half.next_down(), half + 5e-4 * load.cpu][usize::from(own[0].0) % 3];
            let follower = |broker: &i32, cpu: f32| (*broker, Load { cpu, nw_out: 0.0, ..load });
            let followers = || brokers.iter().zip(&own).filter(|(broker, _)| **broker != leader);
            let loads = match loads {
                Loads::Reckoned => BTreeMap::new(),
                Loads::Rounded => followers().map(|(broker, _)| follower(broker, rounded)).collect(),
                Loads::OwnCpu => followers().map(|(broker, own)| follower(broker, own.0.into())).collect(),
                Loads::Own => brokers.iter().zip(own).map(of_one).collect(),
            };
            (topic, Partition { brokers, leader, offline, load: Some(load), loads, ..Partition::default() })
        },
    )
}
