//! What a random cluster is drawn from, and which combinations cannot be.

use std::fmt;
use std::str::FromStr;

use super::topics::ADDED_FACTOR;
use crate::Error;

/// How replicas are spread over the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Each broker alike.
    #[default]
    Uniform,
    /// Broker `n` gets `n + 1` parts.
    Linear,
    /// Broker `n` gets `2n + 1` parts; the name is the original's.
    Exponential,
}

impl Distribution {
    const ALL: [Distribution; 3] = [Distribution::Uniform, Distribution::Linear, Distribution::Exponential];
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Uniform => "uniform",
            Distribution::Linear => "linear",
            Distribution::Exponential => "exponential",
        })
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |known: &Distribution| known.to_string().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| "there are uniform, linear and exponential".to_owned())
    }
}

/// The mean load of a replica in a topic of average popularity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    /// Percent of a core.
    pub cpu: f64,
    /// KB/s.
    pub nw_in: f64,
    /// KB/s, of leaders.
    pub nw_out: f64,
    /// MB.
    pub disk: f64,
}

/// What a random cluster is drawn from. The default is the cluster that Cruise Control's tests start from.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Racks.
    pub racks: u32,
    /// Brokers, dead ones included.
    pub brokers: u32,
    /// The first so many brokers are dead.
    pub dead_brokers: u32,
    /// Log directories on each broker; 0 does not tell them apart.
    pub disks_per_broker: u32,
    /// Topics; one more is added, with one partition per broker and two replicas of each.
    pub topics: u32,
    /// Replicas of all topics but the added one.
    pub replicas: u32,
    /// The least number of replicas of a partition.
    pub min_factor: u32,
    /// The largest number of replicas of a partition.
    pub max_factor: u32,
    /// What a replica weighs.
    pub means: Means,
    /// Significant digits of the loads; `None` keeps all.
    pub digits: Option<u32>,
    /// Where replicas go.
    pub distribution: Distribution,
    /// Whether the replicas of a partition all get a rack of their own.
    pub rack_aware: bool,
    /// Added to every seed: 0 gives the clusters that others drew, anything else fresh ones.
    pub seed: i64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            racks: 10,
            brokers: 40,
            dead_brokers: 0,
            disks_per_broker: 0,
            topics: 3_000,
            replicas: 50_001,
            min_factor: 3,
            max_factor: 3,
            means: Means { cpu: 0.01, nw_in: 100.0, nw_out: 100.0, disk: 100.0 },
            digits: None,
            distribution: Distribution::Uniform,
            rack_aware: false,
            seed: 0,
        }
    }
}

/// The square still fits the generator's numbers.
const MOST_BROKERS: u32 = 46_340;
const MOST_DISKS: u32 = 1_000;
const LARGEST_FACTOR: u32 = 255;
/// The generator's numbers, less what seeds and the added topic need.
const MOST_REPLICAS: u32 = 2_000_000_000;
/// Beyond it the seeds would overflow.
const LARGEST_SEED: u64 = 1 << 62;

impl Parameters {
    /// All replicas, those of the added topic included.
    pub fn all_replicas(&self) -> u64 {
        u64::from(self.replicas) + u64::from(ADDED_FACTOR) * u64::from(self.brokers)
    }

    /// Refuses what cannot be drawn, so that the drawing itself has nothing to fear.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.contradiction() {
            None => Ok(()),
            Some(problem) => Err(Error::Generate { problem }),
        }
    }

    fn contradiction(&self) -> Option<String> {
        let Parameters { racks, brokers, topics, replicas, min_factor, max_factor, .. } = *self;
        let widest = max_factor.max(ADDED_FACTOR);
        let means = [self.means.cpu, self.means.nw_in, self.means.nw_out, self.means.disk];
        let least = u64::from(topics) * u64::from(min_factor);
        Some(if racks == 0 || topics == 0 || min_factor == 0 {
            "racks, topics and replicas of a partition must be at least 1".to_owned()
        } else if brokers > MOST_BROKERS {
            format!("{brokers} brokers, at most {MOST_BROKERS} are possible")
        } else if self.disks_per_broker > MOST_DISKS {
            format!("{} disks per broker, at most {MOST_DISKS} are possible", self.disks_per_broker)
        } else if replicas > MOST_REPLICAS {
            format!("{replicas} replicas, at most {MOST_REPLICAS} are possible")
        } else if min_factor > max_factor || max_factor > LARGEST_FACTOR {
            format!("{min_factor} to {max_factor} replicas of a partition is no range within 1 to {LARGEST_FACTOR}")
        } else if brokers < widest {
            format!("{brokers} brokers cannot hold {widest} replicas of a partition")
        } else if self.rack_aware && racks.min(brokers) < widest {
            format!("{} racks cannot hold {widest} replicas of a partition apart", racks.min(brokers))
        } else if self.dead_brokers >= brokers {
            format!("{} of {brokers} brokers dead leaves none alive", self.dead_brokers)
        } else if u64::from(replicas) < least {
            format!("{topics} topics with {min_factor} replicas of a partition need at least {least} replicas")
        } else if means.iter().any(|mean| !(mean.is_finite() && *mean >= 0.0)) {
            "mean loads must be numbers that are not negative".to_owned()
        } else if self.digits.is_some_and(|digits| !(1..=9).contains(&digits)) {
            "loads can be rounded to 1 to 9 digits".to_owned()
        } else if self.seed.unsigned_abs() > LARGEST_SEED {
            format!("the seed must lie between -{LARGEST_SEED} and {LARGEST_SEED}")
        } else {
            return None;
        })
    }
}
