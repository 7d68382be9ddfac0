//! The round that looks for violated goals: which of them are watched, and who and what is left alone. What counts as
//! violated and as fixable the balancer says.

use std::collections::BTreeSet;

use evenkeel_balancer::{
    anomaly::{Violations, detect, has_offline_replicas, judges},
    cluster::{BrokerId, Cluster},
    goal::Goal,
    options::Request,
    provision::Provision,
};

use super::Finding;
use crate::{config::settings::Goals, journal::History, model::left_alone};

/// Brokers that are left alone because somebody just took them out or demoted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spared {
    /// Whether removed ones get no replicas.
    pub removed: bool,
    /// Whether demoted ones get no leaders.
    pub demoted: bool,
}

/// What came of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Goals that are not met, if any.
    pub finding: Option<Finding>,
    /// Why goals cannot be met, in words.
    pub reasons: Vec<String>,
    /// How balanced the cluster is, from 0 to 100; -1 while replicas are offline, when nothing is judged.
    pub score: f64,
    /// Whether the cluster has the right size.
    pub provision: Provision,
}

impl Round {
    /// Whether anything was judged.
    pub fn judged(&self) -> bool {
        self.score >= 0.0
    }
}

/// Looks for violated goals among those that are watched and measured.
pub fn goal_violations(cluster: &Cluster, goals: &Goals, spared: Spared, history: &History) -> Round {
    let settings = &goals.detection_thresholds;
    let watched: Vec<Goal> = goals.detection.iter().copied().filter(|goal| judges(*goal, cluster)).collect();
    let request = Request {
        excluded_topics: left_alone(cluster, &watched, &goals.own_topics, goals.excluded_topics.as_ref()),
        excluded_for_replica_moves: known(cluster, history.removed.keys().filter(|_| spared.removed)),
        excluded_for_leadership: known(cluster, history.demoted.keys().filter(|_| spared.demoted)),
        threads: 1,
        ..Request::rebalance(&watched)
    };
    let found = detect(cluster, &request, settings);
    let score = if has_offline_replicas(cluster) { UNJUDGED } else { found.score(&watched, settings) };
    let any = !found.is_empty();
    let Violations { fixable, unfixable, reasons, provision } = found;
    Round { finding: any.then_some(Finding::GoalViolation { fixable, unfixable }), reasons, score, provision }
}

/// The score while replicas are offline, as Cruise Control has it.
const UNJUDGED: f64 = -1.0;

fn known<'a>(cluster: &Cluster, brokers: impl Iterator<Item = &'a evenkeel_kafka::BrokerId>) -> BTreeSet<BrokerId> {
    brokers.map(|broker| BrokerId(broker.0)).filter(|id| cluster.broker(*id).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::{BrokerSpec, BrokerState, ClusterBuilder, Load, ReplicaSpec, Resource};

    use super::*;
    use crate::config::{properties::Properties, settings::Settings};

    /// Brokers with 1,000 of everything, one in each of these racks; partitions of `t` by who holds them and MB.
    fn cluster(racks: &str, partitions: &[(&[i32], f32)], unknown: &[Resource]) -> Cluster {
        let mut builder = ClusterBuilder::new();
        unknown.iter().for_each(|resource| builder.unknown(*resource));
        for (id, rack) in (0..).zip(racks.chars()) {
            let state = if rack == '-' { BrokerState::Dead } else { BrokerState::Alive };
            let (rack, host) = (rack.to_string(), format!("h{id}"));
            let capacity = [1_000.0; Resource::COUNT];
            builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks: Vec::new() }).unwrap();
        }
        for (number, (brokers, disk)) in (0..).zip(partitions) {
            let load = Load { disk: *disk, ..Load::default() };
            let replica = |id: &i32| ReplicaSpec { broker: BrokerId(*id), disk: None, load, offline: false };
            builder.partition("t", number, 0, &brokers.iter().map(replica).collect::<Vec<_>>()).unwrap();
        }
        builder.build().unwrap()
    }

    fn goals(text: &str) -> Goals {
        let text = format!("bootstrap.servers=x:1\n{text}");
        Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings.goals
    }

    fn round_of(cluster: &Cluster, goals: &Goals) -> Round {
        goal_violations(cluster, goals, Spared { removed: true, demoted: true }, &History::default())
    }

    /// Fixable and unfixable goals by name, score, and what is said about the size.
    fn picture(round: &Round) -> String {
        let names = |goals: &[Goal]| goals.iter().map(|goal| goal.name()).collect::<Vec<_>>().join(" ");
        let (fixable, unfixable) = match &round.finding {
            Some(Finding::GoalViolation { fixable, unfixable }) => (names(fixable), names(unfixable)),
            _ => Default::default(),
        };
        let provision = round.provision.status.name();
        format!("fixable [{fixable}] unfixable [{unfixable}] score {:.1} {provision}", round.score)
    }

    #[test]
    fn what_is_well_is_no_finding() {
        let cluster = cluster("ab", &[(&[0, 1], 10.0)], &[]);
        assert_eq!(picture(&round_of(&cluster, &goals(""))), "fixable [] unfixable [] score 100.0 RIGHT_SIZED");
    }

    #[test]
    fn goals_that_moves_can_mend_are_told_from_those_that_they_cannot() {
        // Two replicas in rack a although there is b: a move mends it. Four hard goals weigh 1.331, 1.21, 1.1
        // and 1, together 4.641, so that without the first 100 · 3.31 / 4.641 are left.
        let mendable = cluster("aab", &[(&[0, 1], 10.0)], &[]);
        assert_eq!(
            picture(&round_of(&mendable, &goals(""))),
            "fixable [RackAwareGoal] unfixable [] score 71.3 RIGHT_SIZED"
        );
        // Three replicas in two racks: none does. One disk is too full, and its partitions can go elsewhere; without
        // the last goal too, 2.31 of 4.641 are left.
        let parts: &[(&[i32], f32)] = &[(&[0, 1, 2], 10.0), (&[0], 450.0), (&[0], 450.0)];
        let mixed = round_of(&cluster("aab", parts, &[]), &goals(""));
        assert_eq!(
            picture(&mixed),
            "fixable [DiskCapacityGoal] unfixable [RackAwareGoal] score 49.8 UNDER_PROVISIONED"
        );
        assert_eq!(mixed.provision.recommendation, "[RackAwareGoal] Add at least 1 rack with brokers.");
        assert!(mixed.reasons[0].starts_with("[RackAwareGoal] Insufficient number of racks"), "{:?}", mixed.reasons);
    }

    #[test]
    fn what_nobody_measured_is_not_judged() {
        let full = cluster("ab", &[(&[0], 900.0)], &[Resource::Disk]);
        let watched = goals("anomaly.detection.goals=DiskCapacityGoal,RackAwareGoal");
        assert_eq!(picture(&round_of(&full, &watched)), "fixable [] unfixable [] score 100.0 RIGHT_SIZED");
        let nothing = goals("anomaly.detection.goals=DiskCapacityGoal");
        assert_eq!(picture(&round_of(&full, &nothing)), "fixable [] unfixable [] score 100.0 UNDECIDED");
    }

    #[test]
    fn offline_replicas_come_first() {
        let round = round_of(&cluster("aa-", &[(&[0, 1], 10.0), (&[2], 10.0)], &[]), &goals(""));
        assert_eq!(picture(&round), "fixable [] unfixable [] score -1.0 UNDECIDED");
        assert!(!round.judged());
    }

    #[test]
    fn brokers_that_were_just_removed_are_no_help_unless_wanted() {
        // Broker 0 is too full; broker 1 could take from it but was removed.
        let full = cluster("aa", &[(&[0], 450.0), (&[0], 450.0)], &[]);
        let watched = goals("anomaly.detection.goals=DiskCapacityGoal");
        let history = History { removed: [(evenkeel_kafka::BrokerId(1), 5)].into(), ..History::default() };
        let round = |removed| goal_violations(&full, &watched, Spared { removed, demoted: true }, &history);
        assert!(picture(&round(false)).starts_with("fixable [DiskCapacityGoal] unfixable []"));
        assert!(picture(&round(true)).starts_with("fixable [] unfixable [DiskCapacityGoal]"));
    }

    #[test]
    fn a_soft_goal_that_no_move_serves_is_not_reported() {
        // One partition on three brokers: disks cannot be even, wherever it lies.
        let alone = cluster("abc", &[(&[0], 100.0)], &[]);
        let watched = goals("anomaly.detection.goals=DiskUsageDistributionGoal");
        assert!(picture(&round_of(&alone, &watched)).starts_with("fixable [] unfixable [] score 100.0"));
        let uneven = cluster("abc", &[(&[0], 100.0), (&[0], 100.0), (&[0], 100.0)], &[]);
        assert!(picture(&round_of(&uneven, &watched)).starts_with("fixable [DiskUsageDistributionGoal]"));
    }
}
