//! The numbers that argue for a change: what its goal compares, on the broker that is relieved and on the one that takes
//! over.
//!
//! A change is chosen after others, so that the cluster as found may argue for the very opposite: then the numbers are those
//! by which it was chosen. Where it took a longer way in the search, neither may tell; better no numbers than wrong ones.

use crate::cluster::{Broker, BrokerId, Cluster, Resource};
use crate::goal::Goal;
use crate::plan::Reason;
use crate::planner::BrokerLoad;

/// What a goal compares on two brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Percent of the capacity for a resource.
    Percent(Resource),
    /// Percent of the outbound capacity if the broker led everything it holds.
    PotentialOut,
    /// Replicas.
    Replicas,
    /// Leaders.
    Leaders,
    /// KB/s that come in for what it leads.
    LeaderIn,
}

impl Measure {
    /// What the goal compares; none if it is not about what brokers carry.
    pub fn of(goal: Goal) -> Option<Measure> {
        match goal {
            Goal::ReplicaCapacity | Goal::ReplicaDistribution => Some(Measure::Replicas),
            Goal::LeaderReplicaDistribution => Some(Measure::Leaders),
            Goal::LeaderBytesInDistribution => Some(Measure::LeaderIn),
            Goal::PotentialNwOut => Some(Measure::PotentialOut),
            Goal::DiskCapacity | Goal::DiskUsageDistribution => Some(Measure::Percent(Resource::Disk)),
            Goal::NetworkInboundCapacity | Goal::NetworkInboundUsageDistribution => {
                Some(Measure::Percent(Resource::NwIn))
            }
            Goal::NetworkOutboundCapacity | Goal::NetworkOutboundUsageDistribution => {
                Some(Measure::Percent(Resource::NwOut))
            }
            Goal::CpuCapacity | Goal::CpuUsageDistribution => Some(Measure::Percent(Resource::Cpu)),
            Goal::RackAware
            | Goal::RackAwareDistribution
            | Goal::MinTopicLeadersPerBroker
            | Goal::TopicReplicaDistribution
            | Goal::PreferredLeaderElection
            | Goal::IntraBrokerDiskCapacity
            | Goal::IntraBrokerDiskUsageDistribution => None,
        }
    }

    /// How much of it the broker carries.
    fn amount(self, load: &BrokerLoad) -> f64 {
        match self {
            Measure::Percent(resource) => load.resources[resource as usize],
            Measure::PotentialOut => load.potential_out,
            Measure::Replicas => load.replicas as f64,
            Measure::Leaders => load.leaders as f64,
            Measure::LeaderIn => load.leader_in,
        }
    }

    /// The least difference that whoever reads the numbers sees: a tenth of a percent, a replica, a KB/s.
    pub fn grain(self) -> f64 {
        match self {
            Measure::Percent(_) | Measure::PotentialOut => 0.1,
            Measure::Replicas | Measure::Leaders | Measure::LeaderIn => 1.0,
        }
    }

    /// Of how much: a hundredth of its capacity, or one broker.
    pub(crate) fn unit(self, broker: &Broker) -> f64 {
        match self {
            Measure::Percent(resource) => broker.capacity[resource as usize] / 100.0,
            Measure::PotentialOut => broker.capacity[Resource::NwOut as usize] / 100.0,
            Measure::Replicas | Measure::Leaders | Measure::LeaderIn => 1.0,
        }
    }
}

/// What brokers carry, for a reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Argument {
    /// What is compared.
    pub measure: Measure,
    /// On the broker that is relieved.
    pub from: f64,
    /// On the broker that takes over.
    pub to: f64,
    /// Over the brokers that live, all together, as found.
    pub mean: f64,
    /// Whether the brokers are as found; else as they were when the change was chosen.
    pub as_found: bool,
}

impl Argument {
    /// What argues for the reason in a cluster whose brokers were found to carry `found`. What goes both ways in exchange is
    /// told as found, whichever of the two is the fuller.
    pub fn of(cluster: &Cluster, found: &[BrokerLoad], reason: &Reason) -> Option<Argument> {
        let measure = Measure::of(reason.goal()?)?;
        let seat = |id: BrokerId| cluster.brokers().binary_search_by_key(&id, |broker| broker.id).ok();
        let (from, to) = (seat(reason.from)?, seat(reason.to)?);
        let share = |amount: f64, unit: f64| if unit > 0.0 { amount / unit } else { 0.0 };
        let at = |seat: usize, amount: f64| share(amount, measure.unit(&cluster.brokers()[seat]));
        let alive = cluster.brokers().iter().zip(found).filter(|(broker, _)| broker.is_alive());
        let (amount, unit) = alive.fold((0.0, 0.0), |(amount, unit), (broker, load)| {
            (amount + measure.amount(load), unit + measure.unit(broker))
        });
        let argument = |(one, other): (f64, f64), as_found: bool| {
            let mean = share(amount, unit);
            Argument { measure, from: at(from, one), to: at(to, other), mean, as_found }
        };
        let as_found = argument((measure.amount(&found[from]), measure.amount(&found[to])), true);
        if reason.exchange.is_some() || as_found.is_seen() {
            return Some(as_found);
        }
        reason.levels.map(|levels| argument(levels, false)).filter(Argument::is_seen)
    }

    /// Whether the numbers argue for the move as they are read: two that look the same do not.
    fn is_seen(&self) -> bool {
        self.from - self.to >= self.measure.grain()
    }
}
