//! Plans on pictures, compared as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use evenkeel_balancer::after::after;
use evenkeel_balancer::cluster::{Broker, BrokerId, Cluster, DiskState};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::plan::{Change, Plan};
use evenkeel_balancer::planner::{Outcome, Refused, Status, plan};
use evenkeel_balancer::settings::Settings;
use expect_test::Expect;

use crate::picture::{Picture, short};

/// These brokers.
pub(crate) fn ids(ids: &[i32]) -> BTreeSet<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

/// Settings with which topics are spread by their threshold alone, without gaps that are allowed whatever it is.
pub(crate) fn strict_about_topics(topic_replica_count_balance_threshold: f64) -> Settings {
    Settings { topic_replica_count_balance_threshold, topic_replica_count_balance_min_gap: 0, ..Settings::default() }
}

/// Settings with so many replicas on a broker at most.
pub(crate) fn at_most(max_replicas_per_broker: u64) -> Settings {
    Settings { max_replicas_per_broker, ..Settings::default() }
}

/// Rebalances the picture by `goals` and compares what changes.
pub(crate) fn check(picture: &str, goals: &[Goal], expected: Expect) {
    check_request(picture, &Request::rebalance(goals), expected);
}

/// Carries out the request on the picture and compares what changes.
pub(crate) fn check_request(picture: &str, request: &Request, expected: Expect) {
    check_with(picture, request, &Settings::default(), expected);
}

/// The same with other thresholds.
pub(crate) fn check_with(picture: &str, request: &Request, settings: &Settings, expected: Expect) {
    let picture = Picture::parse(picture);
    expected.assert_eq(&told(&picture, request, settings));
}

/// One line per change, then one per goal that was not satisfied all along. Hard goals that stay
/// violated are told in one word: what else such a plan does is of no use to anybody.
pub(crate) fn told(picture: &Picture, request: &Request, settings: &Settings) -> String {
    let outcome = match inspected(picture, request, settings) {
        Ok(outcome) => outcome,
        Err(Refused::Infeasible(infeasible)) => return format!("infeasible: {}\n", infeasible.goal),
        Err(Refused::BadRequest(bad)) => return format!("refused: {bad}\n"),
    };
    let violated = outcome.verdicts.iter().find(|verdict| verdict.goal.is_hard() && verdict.status == Status::Violated);
    if let Some(violated) = violated {
        return format!("infeasible: {}\n", violated.goal);
    }
    let mut text = changes(&outcome.plan);
    for verdict in &outcome.verdicts {
        match verdict.status {
            Status::NoAction => {}
            Status::Fixed => writeln!(text, "{} fixed", verdict.goal).unwrap(),
            Status::Violated => writeln!(text, "{} violated", verdict.goal).unwrap(),
        }
    }
    if text.is_empty() { "nothing to do\n".to_owned() } else { text }
}

/// The plan for the request, looked over by the independent checker.
pub(crate) fn inspected(picture: &Picture, request: &Request, settings: &Settings) -> Result<Outcome, Refused> {
    looked_over(&picture.build(), request, settings)
}

/// The same for a cluster that has no picture.
pub(crate) fn looked_over(cluster: &Cluster, request: &Request, settings: &Settings) -> Result<Outcome, Refused> {
    let outcome = plan(cluster, request, settings)?;
    let findings: Vec<String> = inspect(cluster, request, &outcome.plan).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}{}", changes(&outcome.plan), findings.join("\n"));
    Ok(outcome)
}

/// Whether the broker lives, is not to be removed and, if its disks are told apart, has one that serves.
pub(crate) fn stays(broker: &Broker, request: &Request) -> bool {
    let is_removed = matches!(&request.operation, Operation::RemoveBrokers(ids) if ids.contains(&broker.id));
    let has_room = broker.disks.is_empty() || broker.disks.iter().any(|disk| disk.state == DiskState::Alive);
    broker.is_alive() && !is_removed && has_room
}

/// The cluster once the plan is carried out.
pub(crate) fn carried_out(cluster: &Cluster, plan: &Plan) -> Cluster {
    after(cluster, plan).unwrap()
}

/// The changes, by partition: replicas that move, then who leads instead of whom.
pub(crate) fn changes(plan: &Plan) -> String {
    let mut lines: Vec<String> = plan.changes.iter().map(line).collect();
    lines.sort();
    lines.concat()
}

fn line(change: &Change) -> String {
    let name = |broker: BrokerId| format!("b{broker}");
    let list = |brokers: Vec<BrokerId>| brokers.into_iter().map(name).collect::<Vec<_>>().join(" ");
    let gone = change.old_replicas.iter().copied().filter(|broker| !change.new_replicas.contains(broker)).collect();
    let mut text = short(&(change.topic.clone(), change.partition));
    if !change.is_leadership_only() {
        write!(text, ": {} -> {}", list(gone), list(change.added().collect())).unwrap();
    }
    if change.old_leader != change.new_leader {
        write!(text, ": leader {} -> {}", name(change.old_leader), name(change.new_leader)).unwrap();
    }
    text + "\n"
}
