//! Random clusters, always the same ones: drawn as Cruise Control's own tests draw theirs, with the
//! same generator, the same seeds and the same order of draws, so that results can be compared.
//!
//! The draws have their oddities, kept on purpose: seeds count up, so that "uniform" placement is far
//! evener than chance; every replica has a size and a rate of its own, whatever its leader has; and
//! broker 1 has half the capacity of the others.

mod java_random;
mod parameters;
mod placement;
mod presets;
mod topics;

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskSpec, DiskState, Load, ReplicaSpec, Resource,
};

use crate::Error;
use java_random::JavaRandom;
use placement::Placement;

pub use parameters::{Distribution, Means, Parameters};
pub use presets::{PRESETS, preset};

const RACK_SEED: i64 = 3140;
const POPULARITY_SEED: i64 = 7234;
const CPU_SEED: i64 = 100_000;
const DISK_SEED: i64 = 300_000;
const NW_IN_SEED: i64 = 500_000;
const NW_OUT_SEED: i64 = 700_000;
/// Ours: the original's random clusters have no log directories.
const DIRECTORY_SEED: i64 = 900_000;

/// CPU, inbound, outbound, disk.
const CAPACITY: [f64; Resource::COUNT] = [100.0, 300_000.0, 200_000.0, 300_000.0];
const SMALLER_BROKER: u32 = 1;
const SMALLER_CAPACITY: [f64; Resource::COUNT] = [100.0, 150_000.0, 150_000.0, 150_000.0];

/// Draws the cluster; `progress` hears how many replicas there are so far.
pub fn generate(parameters: &Parameters, mut progress: impl FnMut(u64)) -> Result<Cluster, Error> {
    parameters.check()?;
    let racks = racks(parameters);
    let mut builder = ClusterBuilder::new();
    for (id, rack) in racks.iter().enumerate() {
        builder.broker(broker(parameters, id as u32, *rack)).map_err(refused)?;
    }
    let mut popularities = JavaRandom::new(POPULARITY_SEED + parameters.seed);
    let mut loads = Loads::new(parameters);
    let mut directories = JavaRandom::new(DIRECTORY_SEED + parameters.seed);
    let mut placement = Placement::new(parameters, &racks);
    let mut replicas = Vec::new();
    let mut count = 0;
    for topic in topics::topics(parameters)? {
        let popularity = popularities.exponential(1.0);
        for partition in 0..topic.partitions {
            replicas.clear();
            for id in placement.partition(topic.factor)? {
                let load = loads.draw(popularity, replicas.is_empty());
                let disks = parameters.disks_per_broker;
                let disk = (disks > 0).then(|| directories.below(disks) as usize);
                replicas.push(ReplicaSpec { broker: BrokerId(*id as i32), disk, load, offline: false });
            }
            builder.partition(&topic.name, partition as i32, 0, &replicas).map_err(refused)?;
        }
        count += u64::from(topic.partitions) * u64::from(topic.factor);
        progress(count);
    }
    builder.build().map_err(refused)
}

/// What the builder refuses was drawn from parameters that nobody could mean, such as loads beyond all numbers.
fn refused(invalid: evenkeel_balancer::cluster::Invalid) -> Error {
    Error::Generate { problem: invalid.to_string() }
}

/// The rack of each broker: the first brokers open one each, the others join one by chance.
fn racks(parameters: &Parameters) -> Vec<u32> {
    let rack = |id| {
        let seed = RACK_SEED + i64::from(id) + parameters.seed;
        if id < parameters.racks { id } else { JavaRandom::first_between(0, parameters.racks - 1, seed) }
    };
    (0..parameters.brokers).map(rack).collect()
}

fn broker(parameters: &Parameters, id: u32, rack: u32) -> BrokerSpec {
    let capacity = if id == SMALLER_BROKER { SMALLER_CAPACITY } else { CAPACITY };
    let disks = parameters.disks_per_broker;
    let disk = |index| DiskSpec {
        name: format!("/mnt/i{index:02}"),
        capacity: capacity[Resource::Disk as usize] / f64::from(disks),
        state: DiskState::Alive,
    };
    let dead = id < parameters.dead_brokers;
    BrokerSpec {
        id: BrokerId(id as i32),
        rack: rack.to_string(),
        host: id.to_string(),
        state: if dead { BrokerState::Dead } else { BrokerState::Alive },
        capacity: if dead { [0.0; Resource::COUNT] } else { capacity },
        disks: (0..disks).map(disk).collect(),
    }
}

/// One stream of numbers per resource, through all topics.
struct Loads {
    means: Means,
    digits: Option<u32>,
    cpu: JavaRandom,
    nw_in: JavaRandom,
    nw_out: JavaRandom,
    disk: JavaRandom,
}

impl Loads {
    fn new(parameters: &Parameters) -> Self {
        let stream = |seed| JavaRandom::new(seed + parameters.seed);
        Loads {
            means: parameters.means,
            digits: parameters.digits,
            cpu: stream(CPU_SEED),
            nw_in: stream(NW_IN_SEED),
            nw_out: stream(NW_OUT_SEED),
            disk: stream(DISK_SEED),
        }
    }

    fn draw(&mut self, popularity: f64, leads: bool) -> Load {
        let digits = self.digits;
        let one = |stream: &mut JavaRandom, mean: f64| {
            let value = stream.exponential(mean * popularity) as f32;
            digits.map_or(value, |digits| rounded(value, digits))
        };
        Load {
            cpu: one(&mut self.cpu, self.means.cpu),
            nw_in: one(&mut self.nw_in, self.means.nw_in),
            nw_out: if leads { one(&mut self.nw_out, self.means.nw_out) } else { 0.0 },
            disk: one(&mut self.disk, self.means.disk),
        }
    }
}

/// `value` with so many significant digits; halves are rounded up.
fn rounded(value: f32, digits: u32) -> f32 {
    // The formatter rounds halves to even; the next number of twice the precision is past the half.
    let past_a_half = f64::from(value).next_up();
    let text = format!("{past_a_half:.*e}", digits.saturating_sub(1) as usize);
    if value == 0.0 { 0.0 } else { text.parse().unwrap_or(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!(rounded(55.5625, 5), 55.563);
        assert_eq!(rounded(1.03125, 5), 1.0313);
        assert_eq!(rounded(18.3125, 5), 18.313);
        assert_eq!(rounded(0.000_672_197_26, 5), 0.000_672_20);
        assert_eq!(rounded(9.999_99, 5), 10.0);
        assert_eq!(rounded(0.0, 5), 0.0);
    }
}
