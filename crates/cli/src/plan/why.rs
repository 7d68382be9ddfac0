//! Why a partition changes, in words and in numbers that argue for it.

use evenkeel_balancer::argument::{Argument, Measure};
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
        match goal {
            Goal::RackAware | Goal::RackAwareDistribution => return self.racks(change, reason),
            Goal::MinTopicLeadersPerBroker => {
                return format!("broker {} leads too few partitions of {}", reason.to, change.topic);
            }
            Goal::TopicReplicaDistribution => return topics(change, reason),
            Goal::PreferredLeaderElection => {
                return format!("broker {} is the one that should lead", change.new_leader);
            }
            Goal::IntraBrokerDiskCapacity | Goal::IntraBrokerDiskUsageDistribution => return disks(change),
            _ => {}
        }
        let Some(told) = Argument::of(self.cluster, self.before, reason) else { return together(reason) };
        let Argument { measure, from, to, mean, as_found } = told;
        let (from_id, to_id) = (reason.from, reason.to);
        let words = match measure {
            Measure::Percent(resource) => {
                let what = match resource {
                    Resource::Cpu => "CPU",
                    Resource::NwIn => "network inbound",
                    Resource::NwOut => "network outbound",
                    Resource::Disk => "disk",
                };
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
                let what = if measure == Measure::Leaders { "leaders" } else { "replicas" };
                let [from, to, mean] = [from, to, mean].map(|number| count(number.round() as u64));
                format!("{from} {what} on broker {from_id}, {to} on broker {to_id}, {mean} on average")
            }
        };
        if as_found { words } else { format!("{words}{BY_THEN}") }
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
}

/// Said of numbers that are not those of the cluster as found.
const BY_THEN: &str = ", after other changes of the plan";

/// Where no numbers of the two brokers alone argue for it.
fn together(reason: &Reason) -> String {
    let with = if reason.exchange { "" } else { ", together with other changes of the plan" };
    format!("from broker {} to broker {}{with}", reason.from, reason.to)
}

fn topics(change: &Change, reason: &Reason) -> String {
    match reason.levels.filter(|(from, to)| from > to) {
        Some((from, to)) if !reason.exchange => {
            let [from, to] = [from, to].map(|number| count(number as u64));
            let (from_id, to_id, topic) = (reason.from, reason.to, &change.topic);
            format!("{from} replicas of {topic} on broker {from_id}, {to} on broker {to_id}{BY_THEN}")
        }
        _ => together(reason),
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use evenkeel_balancer::cluster::{BrokerSpec, BrokerState, ClusterBuilder, Load, ReplicaSpec};
    use evenkeel_balancer::inspect::inspect;
    use evenkeel_balancer::options::Request;
    use evenkeel_balancer::planner::plan;
    use evenkeel_balancer::settings::Settings;

    use super::*;

    /// Six replicas on each of two brokers, which is all that they may hold: so what crowds a broker goes in exchange for
    /// something else, of which neither needs to have more than the other.
    #[test]
    fn of_an_exchange_between_topics_neither_half_claims_numbers_that_argue_against_it() {
        let mut builder = ClusterBuilder::new();
        for id in 0..2 {
            let (rack, host) = (String::new(), format!("h{id}"));
            let (state, capacity, disks) = (BrokerState::Alive, [1000.0; 4], Vec::new());
            builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks }).unwrap();
        }
        for (topic, number, id) in (0..12).map(|n| [("t", n, 0), ("u", n, n % 2), ("w", n, 1)][n as usize / 4]) {
            let load = Load { cpu: 1.0, nw_in: 10.0, nw_out: 10.0, disk: 10.0 };
            let replica = ReplicaSpec { broker: BrokerId(id), disk: None, load, offline: false };
            builder.partition(topic, number, 0, &[replica]).unwrap();
        }
        let cluster = builder.build().unwrap();
        let settings = Settings {
            max_replicas_per_broker: 6,
            topic_replica_count_balance_threshold: 1.2,
            topic_replica_count_balance_min_gap: 0,
            ..Settings::default()
        };
        let request = Request::rebalance(&[Goal::ReplicaCapacity, Goal::TopicReplicaDistribution]);
        let outcome = plan(&cluster, &request, &settings).unwrap();
        assert_eq!(inspect(&cluster, &request, &outcome.plan), []);
        let explainer = Explainer::new(&cluster, &request.operation, &outcome.before);
        let told: BTreeSet<String> = outcome.plan.changes.iter().map(|change| explainer.why(change)).collect();
        let goal = Goal::TopicReplicaDistribution;
        let halves = [(0, 1), (1, 0)]
            .map(|(from, to)| format!("{goal}: from broker {from} to broker {to}, in exchange with another partition"));
        assert_eq!(told, BTreeSet::from(halves));
    }
}
