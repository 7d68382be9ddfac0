//! Why a partition changes, in words and in numbers that argue for it.

use std::cell::OnceCell;

use evenkeel_balancer::argument::{Argument, Measure};
use evenkeel_balancer::cluster::{Broker, BrokerId, Cluster, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::Request;
use evenkeel_balancer::plan::{Cause, Change, Reason};
use evenkeel_balancer::planner::Outcome;
use evenkeel_balancer::settings::Settings;
use evenkeel_balancer::without::{Without, Worse};

use super::units::count;

/// Knows what each broker carried, and so can say what was wrong with it.
pub(super) struct Explainer<'a> {
    cluster: &'a Cluster,
    request: &'a Request,
    settings: &'a Settings,
    outcome: &'a Outcome,
    /// The plan once it has happened; made for the first change that nothing else argues for.
    without: OnceCell<Option<Without<'a>>>,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        request: &'a Request,
        settings: &'a Settings,
        outcome: &'a Outcome,
    ) -> Explainer<'a> {
        Explainer { cluster, request, settings, outcome, without: OnceCell::new() }
    }

    /// The topic and the number of the partition that goes the other way, if the reason is an exchange.
    pub(super) fn partner(&self, reason: &Reason) -> Option<(&'a str, i32)> {
        let partner = self.cluster.partition(reason.exchange? as usize);
        Some((partner.topic(), partner.number()))
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
        found.is_some_and(|partition| self.request.operation.finds_lost(partition))
    }

    fn reason(&self, change: &Change, reason: &Reason) -> String {
        let from = reason.from;
        let lost = || if self.is_lost(change) { "; no replica lives, so the new ones begin empty" } else { "" };
        match reason.cause {
            Cause::Goal { goal, .. } => {
                let partner = self.partner(reason);
                let exchange = partner.map(|(topic, number)| format!(", in exchange with {topic}-{number}"));
                format!("{goal}: {}{}", self.goal(change, reason, goal), exchange.unwrap_or_default())
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
            Goal::TopicReplicaDistribution => return self.topics(change, reason),
            Goal::PreferredLeaderElection => {
                return format!("broker {} is the one that should lead", change.new_leader);
            }
            Goal::IntraBrokerDiskCapacity | Goal::IntraBrokerDiskUsageDistribution => return disks(change),
            _ => {}
        }
        let Some(told) = Argument::of(self.cluster, &self.outcome.before, reason) else {
            return self.otherwise(change, reason, goal);
        };
        let Argument { measure, from, to, mean, as_found } = told;
        let (from_id, to_id) = (reason.from, reason.to);
        let words = match measure {
            Measure::Percent(resource) => {
                let what = name(resource);
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

    /// Where no numbers of the two brokers alone argue for it: what would be worse without it, else that it is one of many.
    fn otherwise(&self, change: &Change, reason: &Reason, goal: Goal) -> String {
        let ends = format!("from broker {} to broker {}", reason.from, reason.to);
        if reason.exchange.is_some() {
            return ends;
        }
        let made = || Without::new(self.cluster, self.request, self.settings, &self.outcome.plan);
        let without = self.without.get_or_init(made);
        match without.as_ref().and_then(|without| without.worse(change, goal)) {
            Some(worse) => {
                let whose = if worse.goal == goal { String::new() } else { format!(" ({})", worse.goal) };
                format!("{ends}; without it {}{whose}", worse_in_words(&worse, &change.topic))
            }
            None => format!("{ends}, together with other changes of the plan"),
        }
    }

    fn topics(&self, change: &Change, reason: &Reason) -> String {
        match reason.levels.filter(|(from, to)| from > to) {
            Some((from, to)) if reason.exchange.is_none() => {
                let [from, to] = [from, to].map(|number| count(number as u64));
                let (from_id, to_id, topic) = (reason.from, reason.to, &change.topic);
                format!("{from} replicas of {topic} on broker {from_id}, {to} on broker {to_id}{BY_THEN}")
            }
            _ => self.otherwise(change, reason, Goal::TopicReplicaDistribution),
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
}

/// What would be, and what should be.
fn worse_in_words(worse: &Worse, topic: &str) -> String {
    let Worse { broker, level, limit, .. } = *worse;
    let bound = if level > limit { "at most" } else { "at least" };
    let percent = |what: &str| format!("{what} would be at {level:.1} % on broker {broker}, of {bound} {limit:.1} %");
    let counted = |what: &str| {
        let [level, limit] = [level, limit].map(|number| count(number.round() as u64));
        format!("there would be {level} {what} on broker {broker}, of {bound} {limit}")
    };
    match worse.measure {
        Some(Measure::Percent(resource)) => percent(name(resource)),
        Some(Measure::PotentialOut) => {
            format!("network outbound could reach {level:.1} % on broker {broker}, of {bound} {limit:.1} %")
        }
        Some(Measure::LeaderIn) => {
            format!("leaders would take in {level:.0} KB/s on broker {broker}, of {bound} {limit:.0} KB/s")
        }
        Some(Measure::Replicas) => counted("replicas"),
        Some(Measure::Leaders) => counted("leaders"),
        None => counted(&format!("replicas of {topic}")),
    }
}

fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => "CPU",
        Resource::NwIn => "network inbound",
        Resource::NwOut => "network outbound",
        Resource::Disk => "disk",
    }
}

/// Said of numbers that are not those of the cluster as found.
const BY_THEN: &str = ", after other changes of the plan";

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
    use evenkeel_balancer::cluster::{BrokerSpec, BrokerState, ClusterBuilder, Load, ReplicaSpec};
    use evenkeel_balancer::inspect::inspect;
    use evenkeel_balancer::planner::plan;

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
        let explainer = Explainer::new(&cluster, &request, &settings, &outcome);
        let goal = Goal::TopicReplicaDistribution;
        assert!(!outcome.plan.changes.is_empty());
        for change in &outcome.plan.changes {
            let (from, to) = (change.old_leader, change.new_leader);
            let (topic, number) = explainer.partner(&change.reasons[0]).unwrap();
            let words = format!("{goal}: from broker {from} to broker {to}, in exchange with {topic}-{number}");
            assert_eq!(explainer.why(change), words);
            let is_partner = |other: &&Change| (other.topic.as_str(), other.partition) == (topic, number);
            let partner = outcome.plan.changes.iter().find(is_partner).expect("the partner is in the plan");
            assert_eq!((partner.old_leader, partner.new_leader), (to, from), "{partner:?} goes the other way");
        }
    }
}
