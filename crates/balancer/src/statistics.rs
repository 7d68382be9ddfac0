//! How evenly the brokers that are alive carry what there is.

use crate::cluster::{Broker, Resource};
use crate::planner::BrokerLoad;

/// How one number lies over the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub max: f64,
    /// The standard deviation of the whole population.
    pub deviation: f64,
}

/// How everything that is counted lies over the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Per resource, in percent of each broker's capacity.
    pub resources: [Spread; Resource::COUNT],
    /// Replicas per broker.
    pub replicas: Spread,
    /// Leaders per broker.
    pub leaders: Spread,
    /// Outbound traffic if a broker led all it holds, in percent of its outbound capacity.
    pub potential_out: Spread,
    /// Inbound KB/s of the partitions a broker leads.
    pub leader_in: Spread,
}

/// The statistics of `loads`, which are the brokers' in the same order, over those that are alive.
pub(crate) fn statistics(brokers: &[Broker], loads: &[BrokerLoad], alive: impl Fn(usize) -> bool) -> Statistics {
    let living: Vec<(&Broker, &BrokerLoad)> =
        brokers.iter().zip(loads).enumerate().filter(|(seat, _)| alive(*seat)).map(|(_, both)| both).collect();
    let over = |number: &dyn Fn(&Broker, &BrokerLoad) -> f64| {
        spread(&living.iter().map(|(broker, load)| number(broker, load)).collect::<Vec<f64>>())
    };
    let percent = |part: f64, broker: &Broker, of: Resource| 100.0 * part / broker.capacity[of as usize];
    Statistics {
        resources: Resource::ALL
            .map(|resource| over(&|broker, load| percent(load.resources[resource as usize], broker, resource))),
        replicas: over(&|_, load| load.replicas as f64),
        leaders: over(&|_, load| load.leaders as f64),
        potential_out: over(&|broker, load| percent(load.potential_out, broker, Resource::NwOut)),
        leader_in: over(&|_, load| load.leader_in),
    }
}

fn spread(values: &[f64]) -> Spread {
    if values.is_empty() {
        return Spread::default();
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    Spread {
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        mean,
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        deviation: variance.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerState, Load};
    use crate::fixture::{Small, planned};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::settings::Settings;

    #[test]
    fn a_spread_is_of_the_whole_population() {
        // Mean 5; squared deviations 9, 1, 1, 1, 0, 0, 4, 16, together 32, over 8 is 4, whose root is 2.
        let spread = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(spread, Spread { min: 2.0, mean: 5.0, max: 9.0, deviation: 2.0 });
        assert_eq!(super::spread(&[]), Spread::default());
    }

    #[test]
    fn use_is_told_in_percent_of_each_brokers_own_capacity() {
        let mut small = Small::in_racks("a");
        small.broker(1, 'b', "host1", BrokerState::Alive, [100.0, 1000.0, 1000.0, 4000.0]);
        small.loaded("t", 0, &[0], Load { cpu: 10.0, nw_in: 100.0, nw_out: 200.0, disk: 200.0 });
        small.loaded("t", 1, &[1, 0], Load { cpu: 30.0, nw_in: 300.0, nw_out: 400.0, disk: 400.0 });
        let request = Request::rebalance(&[Goal::RackAware]);
        let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
        let (before, after) = outcome.statistics;
        // Disk: broker 0 has 600 of 1,000 (60 %), broker 1 has 400 of 4,000 (10 %).
        let disk = Spread { min: 10.0, mean: 35.0, max: 60.0, deviation: 25.0 };
        assert_eq!(before.resources[Resource::Disk as usize], disk);
        // Out: only leaders send, 200 and 400 of 1,000.
        let out = Spread { min: 20.0, mean: 30.0, max: 40.0, deviation: 10.0 };
        assert_eq!(before.resources[Resource::NwOut as usize], out);
        // If broker 0 led both it would send 600, broker 1 still 400.
        assert_eq!(before.potential_out, Spread { min: 40.0, mean: 50.0, max: 60.0, deviation: 10.0 });
        assert_eq!(before.replicas, Spread { min: 1.0, mean: 1.5, max: 2.0, deviation: 0.5 });
        assert_eq!(before.leaders, Spread { min: 1.0, mean: 1.0, max: 1.0, deviation: 0.0 });
        assert_eq!(before.leader_in, Spread { min: 100.0, mean: 200.0, max: 300.0, deviation: 100.0 });
        // Every partition is rack-aware as it is, so nothing moves.
        assert_eq!(after, before);
    }

    #[test]
    fn dead_brokers_do_not_count() {
        let mut small = Small::in_racks("ab");
        small.broker(2, 'c', "host2", BrokerState::Dead, [0.0; Resource::COUNT]);
        small.partition("t", 0, &[0], 100.0);
        small.partition("t", 1, &[2], 100.0);
        let request = Request::rebalance(&[Goal::ReplicaDistribution]);
        let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
        // Before: one replica on broker 0, none on broker 1; then the dead broker's goes to broker 1.
        assert_eq!(outcome.statistics.0.replicas, Spread { min: 0.0, mean: 0.5, max: 1.0, deviation: 0.5 });
        assert_eq!(outcome.statistics.1.replicas, Spread { min: 1.0, mean: 1.0, max: 1.0, deviation: 0.0 });
    }
}
