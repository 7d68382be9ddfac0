//! Why a partition changes, in words and in the numbers of the cluster as found.

use evenkeel_balancer::cluster::{Broker, BrokerId, Cluster, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::Operation;
use evenkeel_balancer::plan::{Cause, Change, Reason};
use evenkeel_balancer::planner::BrokerLoad;

use super::units::count;

/// Knows what each broker carried, and so can say what was wrong with it.
pub(super) struct Explainer<'a> {
    cluster: &'a Cluster,
    operation: &'a Operation,
    before: &'a [BrokerLoad],
}

/// What a goal compares on two brokers.
enum Measure {
    /// Percent of the capacity for a resource.
    Percent(Resource, &'static str),
    /// Percent of the outbound capacity if it led everything it holds.
    PotentialOut,
    Replicas,
    Leaders,
    LeaderIn,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(cluster: &'a Cluster, operation: &'a Operation, before: &'a [BrokerLoad]) -> Explainer<'a> {
        Explainer { cluster, operation, before }
    }

    /// The most important reason in full, the others by name.
    pub(super) fn why(&self, change: &Change) -> String {
        let Some((first, others)) = change.reasons.split_first() else {
            return "no reason is given".to_owned();
        };
        let mut words = self.reason(change, first);
        let mut names: Vec<&str> = others.iter().map(Reason::name).filter(|name| *name != first.name()).collect();
        names.dedup();
        if !names.is_empty() {
            words.push_str(&format!("; also {}", names.join(", ")));
        }
        words
    }

    /// Whether nobody has the partition's data.
    pub(super) fn is_lost(&self, change: &Change) -> bool {
        let found = self.cluster.find_partition(&change.topic, change.partition);
        found.is_some_and(|partition| self.operation.finds_lost(partition))
    }

    fn reason(&self, change: &Change, reason: &Reason) -> String {
        let from = reason.from;
        let lost = || if self.is_lost(change) { "; no replica lives, so the new ones begin empty" } else { "" };
        match reason.cause {
            Cause::Goal { goal, .. } => {
                let exchange = if reason.exchange { ", in exchange with another partition" } else { "" };
                format!("{goal}: {}{exchange}", self.goal(change, reason, goal))
            }
            Cause::Removed => format!("removed: broker {from} is to be emptied"),
            Cause::Demoted => format!("demoted: broker {from} is to lead nothing"),
            Cause::Offline if self.cluster.broker(from).is_some_and(Broker::is_alive) => {
                format!("offline: the replica on broker {from} is, though the broker is up{}", lost())
            }
            Cause::Offline => format!("offline: broker {from} is dead{}", lost()),
        }
    }

    fn goal(&self, change: &Change, reason: &Reason, goal: Goal) -> String {
        let measure = match goal {
            Goal::RackAware | Goal::RackAwareDistribution => return self.racks(change, reason),
            Goal::MinTopicLeadersPerBroker => {
                return format!("broker {} leads too few partitions of {}", reason.to, change.topic);
            }
            Goal::TopicReplicaDistribution => {
                let (from, to) = (reason.from, reason.to);
                return format!("broker {from} holds more replicas of {} than broker {to}", change.topic);
            }
            Goal::PreferredLeaderElection => {
                return format!("broker {} is the one that should lead", change.new_leader);
            }
            Goal::IntraBrokerDiskCapacity | Goal::IntraBrokerDiskUsageDistribution => return disks(change),
            Goal::ReplicaCapacity | Goal::ReplicaDistribution => Measure::Replicas,
            Goal::LeaderReplicaDistribution => Measure::Leaders,
            Goal::LeaderBytesInDistribution => Measure::LeaderIn,
            Goal::PotentialNwOut => Measure::PotentialOut,
            Goal::DiskCapacity | Goal::DiskUsageDistribution => Measure::Percent(Resource::Disk, "disk"),
            Goal::NetworkInboundCapacity | Goal::NetworkInboundUsageDistribution => {
                Measure::Percent(Resource::NwIn, "network inbound")
            }
            Goal::NetworkOutboundCapacity | Goal::NetworkOutboundUsageDistribution => {
                Measure::Percent(Resource::NwOut, "network outbound")
            }
            Goal::CpuCapacity | Goal::CpuUsageDistribution => Measure::Percent(Resource::Cpu, "CPU"),
        };
        let (from, to) = (self.level(&measure, reason.from), self.level(&measure, reason.to));
        let mean = self.mean(&measure);
        let (from_id, to_id) = (reason.from, reason.to);
        match measure {
            Measure::Percent(_, what) => {
                format!(
                    "{what} at {from:.1} % on broker {from_id}, {to:.1} % on broker {to_id}, {mean:.1} % on average"
                )
            }
            Measure::PotentialOut => format!(
                "network outbound could reach {from:.1} % on broker {from_id}, {to:.1} % on broker {to_id}, {mean:.1} % on average"
            ),
            Measure::LeaderIn => format!(
                "leaders take in {from:.0} KB/s on broker {from_id}, {to:.0} KB/s on broker {to_id}, {mean:.0} KB/s on average"
            ),
            Measure::Replicas | Measure::Leaders => {
                let what = if matches!(measure, Measure::Leaders) { "leaders" } else { "replicas" };
                let [from, to, mean] = [from, to, mean].map(|number| count(number.round() as u64));
                format!("{from} {what} on broker {from_id}, {to} on broker {to_id}, {mean} on average")
            }
        }
    }

    fn racks(&self, change: &Change, reason: &Reason) -> String {
        let rack = |id: BrokerId| self.cluster.broker(id).map(|broker| self.cluster.racks()[broker.rack].as_str());
        let from = rack(reason.from);
        let (from_rack, to_rack) = (from.unwrap_or_default(), rack(reason.to).unwrap_or_default());
        let shares = |id: &&BrokerId| **id != reason.from && rack(**id) == from;
        match change.old_replicas.iter().find(shares) {
            Some(other) => {
                format!(
                    "brokers {} and {other} are both in rack {from_rack}, broker {} is in {to_rack}",
                    reason.from, reason.to
                )
            }
            None => format!("from broker {} in rack {from_rack} to broker {} in {to_rack}", reason.from, reason.to),
        }
    }

    /// What is compared, on one broker; 0 for one that is not there.
    fn level(&self, measure: &Measure, id: BrokerId) -> f64 {
        let place = self.cluster.brokers().binary_search_by_key(&id, |broker| broker.id);
        place.map_or(0.0, |seat| {
            let (amount, capacity) = amounts(measure, &self.cluster.brokers()[seat], &self.before[seat]);
            scaled(measure, amount, capacity)
        })
    }

    /// Over the brokers that live, all together.
    fn mean(&self, measure: &Measure) -> f64 {
        let alive = self.cluster.brokers().iter().zip(self.before).filter(|(broker, _)| broker.is_alive());
        let (amount, capacity) = alive
            .map(|(broker, load)| amounts(measure, broker, load))
            .fold((0.0, 0.0), |(amount, capacity), (more, room)| (amount + more, capacity + room));
        scaled(measure, amount, capacity)
    }
}

/// How much there is, and of how much: the capacity, or one broker.
fn amounts(measure: &Measure, broker: &Broker, load: &BrokerLoad) -> (f64, f64) {
    match measure {
        Measure::Percent(resource, _) => (load.resources[*resource as usize], broker.capacity[*resource as usize]),
        Measure::PotentialOut => (load.potential_out, broker.capacity[Resource::NwOut as usize]),
        Measure::Replicas => (load.replicas as f64, 1.0),
        Measure::Leaders => (load.leaders as f64, 1.0),
        Measure::LeaderIn => (load.leader_in, 1.0),
    }
}

fn scaled(measure: &Measure, amount: f64, of: f64) -> f64 {
    let unit = if matches!(measure, Measure::Percent(..) | Measure::PotentialOut) { 100.0 } else { 1.0 };
    if of > 0.0 { unit * amount / of } else { 0.0 }
}

fn disks(change: &Change) -> String {
    let moves: Vec<String> = change
        .disks
        .iter()
        .map(|disk| match disk.from.as_str() {
            "" => format!("to {} on broker {}", disk.to, disk.broker),
            from => format!("from {from} to {} on broker {}", disk.to, disk.broker),
        })
        .collect();
    moves.join(", ")
}
