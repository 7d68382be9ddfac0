//! What an execution is to do: complete, so that nothing is left to choose on the way.

use std::collections::BTreeSet;

use evenkeel_kafka::{BrokerId, TopicPartition};
use serde::{Deserialize, Serialize};

use super::strategy::Strategy;

/// Milliseconds, of whatever clock the caller keeps.
pub type Millis = i64;

/// The whole of it. Recorded before the first deed, and never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What moves, most useful first.
    pub moves: Vec<Move>,
    /// What may be under way at once.
    pub limits: Limits,
    /// Who goes first; of what none of them tells apart, what uses the brokers with the most left to copy.
    pub strategies: Vec<Strategy>,
    /// Replication of what moves is held to this, in bytes per second and broker.
    pub throttle: Option<u64>,
    /// How the cluster was when the plan was made.
    pub baseline: Baseline,
    /// Brokers that the plan empties: that they are down holds nothing up.
    pub emptied: BTreeSet<BrokerId>,
    /// Whether the plan repairs: then no trouble holds it up.
    pub repairs: bool,
    /// Whether moves that others started are taken back where they are in the way.
    pub stops_others: bool,
    /// A broker that is down for so long is given up, and what was to go there with it.
    pub gives_up_after: Option<Millis>,
    /// An election that has not come true after this is given up.
    pub leader_patience: Millis,
}

impl Order {
    /// These moves on a cluster with these brokers, with nothing particular about them.
    pub fn of(moves: Vec<Move>, up: BTreeSet<BrokerId>) -> Order {
        Order {
            moves,
            limits: Limits::default(),
            strategies: vec![Strategy::Base],
            throttle: None,
            baseline: Baseline { up, short: BTreeSet::new() },
            emptied: BTreeSet::new(),
            repairs: false,
            stops_others: true,
            gives_up_after: None,
            leader_patience: 180_000,
        }
    }
}

/// What happens to one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Which.
    pub partition: TopicPartition,
    /// Its replicas when the plan was made.
    pub old: Vec<BrokerId>,
    /// Its replicas to be; the first is to lead.
    pub new: Vec<BrokerId>,
    /// Who led it when the plan was made.
    pub old_leader: BrokerId,
    /// Directories: of replicas that change them within their broker, and of replicas new on theirs.
    pub dirs: Vec<DirMove>,
    /// How much one copy of it is.
    pub bytes: u64,
}

/// Where on its broker a replica is to lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirMove {
    /// The broker.
    pub broker: BrokerId,
    /// The directory it is in; `None` if the replica is new on the broker.
    pub from: Option<String>,
    /// The directory it goes to.
    pub to: String,
}

/// What may be under way at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Moves between brokers that one broker takes part in, as the old leader or as a new home.
    pub per_broker: usize,
    /// Moves between brokers in the whole cluster.
    pub in_cluster: usize,
    /// Moves between the directories of one broker.
    pub dirs_per_broker: usize,
    /// Elections in the whole cluster.
    pub leaders_in_cluster: usize,
    /// Elections that one broker takes part in.
    pub leaders_per_broker: usize,
    /// Brokers that the limit per broker spares: they share the cluster's among them.
    pub spared: BTreeSet<BrokerId>,
}

/// The original's.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            per_broker: 5,
            in_cluster: 1_250,
            dirs_per_broker: 2,
            leaders_in_cluster: 1_000,
            leaders_per_broker: 250,
            spared: BTreeSet::new(),
        }
    }
}

impl Limits {
    /// Moves between brokers that one of the spared takes part in: an even share of what the cluster may make.
    pub fn per_spared(&self) -> usize {
        (self.in_cluster / self.spared.len().max(1)).max(self.per_broker)
    }
}

/// New values for some of the limits of a run that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Adjustment {
    /// See [`Limits::per_broker`].
    pub per_broker: Option<usize>,
    /// See [`Limits::in_cluster`].
    pub in_cluster: Option<usize>,
    /// See [`Limits::dirs_per_broker`].
    pub dirs_per_broker: Option<usize>,
    /// See [`Limits::leaders_in_cluster`].
    pub leaders_in_cluster: Option<usize>,
    /// See [`Limits::leaders_per_broker`].
    pub leaders_per_broker: Option<usize>,
}

impl Adjustment {
    /// This one, and where it says nothing an earlier one.
    #[must_use]
    pub fn after(self, earlier: Adjustment) -> Adjustment {
        Adjustment {
            per_broker: self.per_broker.or(earlier.per_broker),
            in_cluster: self.in_cluster.or(earlier.in_cluster),
            dirs_per_broker: self.dirs_per_broker.or(earlier.dirs_per_broker),
            leaders_in_cluster: self.leaders_in_cluster.or(earlier.leaders_in_cluster),
            leaders_per_broker: self.leaders_per_broker.or(earlier.leaders_per_broker),
        }
    }

    pub(super) fn apply(&self, limits: &mut Limits) {
        let set = |limit: &mut usize, new: Option<usize>| *limit = new.unwrap_or(*limit);
        set(&mut limits.per_broker, self.per_broker);
        set(&mut limits.in_cluster, self.in_cluster);
        set(&mut limits.dirs_per_broker, self.dirs_per_broker);
        set(&mut limits.leaders_in_cluster, self.leaders_in_cluster);
        set(&mut limits.leaders_per_broker, self.leaders_per_broker);
    }
}

/// How the cluster was when the plan was made: what was wrong then holds nothing up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// Brokers that were up.
    pub up: BTreeSet<BrokerId>,
    /// Partitions that had fewer replicas in sync than they should.
    pub short: BTreeSet<TopicPartition>,
}

impl Move {
    /// Brokers that get a copy they do not have.
    pub fn added(&self) -> impl Iterator<Item = BrokerId> + '_ {
        self.new.iter().copied().filter(|broker| !self.old.contains(broker))
    }

    /// Everybody who has it or is to have it.
    pub fn everybody(&self) -> BTreeSet<BrokerId> {
        self.old.iter().chain(&self.new).copied().collect()
    }

    /// Whether `replicas` are the ones it had, in whatever order.
    pub fn is_at_old(&self, replicas: &[BrokerId]) -> bool {
        same_set(&self.old, replicas)
    }

    /// What is copied between brokers.
    pub fn bytes_between_brokers(&self) -> u64 {
        self.bytes * self.added().count() as u64
    }
}

/// Whether both name the same brokers, in whatever order.
pub(super) fn same_set(one: &[BrokerId], other: &[BrokerId]) -> bool {
    one.len() == other.len() && one.iter().all(|broker| other.contains(broker))
}
