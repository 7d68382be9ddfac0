//! Where the replicas of a partition go.

use super::JavaRandom;
use super::parameters::{Distribution, Parameters};
use crate::Error;

const BROKER_SEED: i64 = 1_240;
/// Neighbouring seeds draw alike, so an unlucky partition may need thousands of draws; never this many.
const MOST_CLASHES: i64 = 1 << 22;

/// Draws brokers, each from a generator of its own whose seed counts the replicas.
pub(super) struct Placement<'r> {
    draw: Draw,
    racks: &'r [u32],
    rack_aware: bool,
    /// The seed of the next replica.
    seed: i64,
    chosen: Vec<u32>,
}

impl<'r> Placement<'r> {
    pub(super) fn new(parameters: &Parameters, racks: &'r [u32]) -> Self {
        Placement {
            draw: Draw::new(parameters.distribution, parameters.brokers),
            racks,
            rack_aware: parameters.rack_aware,
            seed: BROKER_SEED + parameters.seed,
            chosen: Vec::new(),
        }
    }

    /// The brokers of the next partition.
    pub(super) fn partition(&mut self, factor: u32) -> Result<&[u32], Error> {
        self.chosen.clear();
        // Counted over the whole partition, and not added to a replica's first draw.
        let mut clashes = 0;
        for _ in 0..factor {
            let mut broker = self.draw.broker(self.seed);
            while self.clashes(broker) {
                clashes += 1;
                if clashes > MOST_CLASHES {
                    return Err(Error::Generate { problem: "no room was found for a replica".to_owned() });
                }
                broker = self.draw.broker(self.seed + clashes);
            }
            self.chosen.push(broker);
            self.seed += 1;
        }
        Ok(&self.chosen)
    }

    fn clashes(&self, broker: u32) -> bool {
        let rack = |broker: u32| self.racks[broker as usize];
        self.chosen.iter().any(|other| *other == broker || (self.rack_aware && rack(*other) == rack(broker)))
    }
}

/// From a number to a broker.
enum Draw {
    /// The number is the broker.
    Uniform { brokers: u32 },
    /// Broker `n` has the numbers above the share before it, up to its own.
    Shares(Vec<u32>),
}

impl Draw {
    fn new(distribution: Distribution, brokers: u32) -> Draw {
        match distribution {
            Distribution::Uniform => Draw::Uniform { brokers },
            Distribution::Linear => Draw::Shares((0..brokers).map(|broker| (broker + 1) * (broker + 2) / 2).collect()),
            Distribution::Exponential => Draw::Shares((0..brokers).map(|broker| (broker + 1) * (broker + 1)).collect()),
        }
    }

    fn broker(&self, seed: i64) -> u32 {
        match self {
            Draw::Uniform { brokers } => JavaRandom::first_between(0, brokers - 1, seed),
            Draw::Shares(shares) => {
                let all = shares.last().copied().unwrap_or(1);
                owner(shares, JavaRandom::first_between(1, all, seed))
            }
        }
    }
}

/// The broker that a number from 1 to the last share belongs to.
fn owner(shares: &[u32], number: u32) -> u32 {
    shares.partition_point(|share| *share < number) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the numbers belong to each of four brokers.
    fn parts(distribution: Distribution) -> [u32; 4] {
        let Draw::Shares(shares) = Draw::new(distribution, 4) else { panic!("no shares") };
        let mut parts = [0; 4];
        for number in 1..=shares[3] {
            parts[owner(&shares, number) as usize] += 1;
        }
        parts
    }

    #[test]
    fn later_brokers_have_larger_shares() {
        assert_eq!(parts(Distribution::Linear), [1, 2, 3, 4]);
        assert_eq!(parts(Distribution::Exponential), [1, 3, 5, 7]);
    }
}
