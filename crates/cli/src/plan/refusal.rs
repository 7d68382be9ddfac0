//! Why there is no plan: one line, and an exit code that tells bad input from a cluster that cannot be helped.

use std::collections::BTreeSet;

use evenkeel_balancer::cluster::{BrokerId, BrokerState, Cluster, Invalid, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::planner::{Infeasible, Refused};
use evenkeel_balancer::rules::BadRequest;
use evenkeel_balancer::settings::Settings;

use super::request::Asked;

/// Why nothing was planned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The file does not describe a cluster, or is not there.
    #[error(transparent)]
    Snapshot(evenkeel_snapshot::Error),
    /// Options that do not go together, or miss one another.
    #[error("{0}")]
    Options(String),
    /// A value that cannot be read.
    #[error("{option} {value}: {problem}")]
    Value {
        /// The option it was given for.
        option: &'static str,
        /// As given.
        value: String,
        /// What is wrong, in one line.
        problem: String,
    },
    /// A goal nobody knows.
    #[error("--goals: {0}")]
    Goal(String),
    /// The cluster cannot be changed as asked.
    #[error("the cluster asked about cannot be: {0}")]
    WhatIf(Invalid),
    /// A hard goal cannot be satisfied.
    #[error("{reason}{}", in_the_way(.options))]
    Infeasible {
        /// In words and numbers, with what would help.
        reason: String,
        /// Options that leave less room than there is.
        options: Vec<String>,
    },
    /// The balancer refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

fn in_the_way(options: &[String]) -> String {
    if options.is_empty() { String::new() } else { format!(" In the way may be {}.", options.join(", ")) }
}

impl Refusal {
    /// What the balancer refused, in the words of the command line.
    pub(super) fn of(refused: Refused, cluster: &Cluster, asked: &Asked) -> Refusal {
        match refused {
            // Its tips are in the words of Cruise Control's REST parameters.
            Refused::Infeasible(Infeasible { goal, reason, .. }) => {
                let options =
                    narrowings(goal, asked).into_iter().chain(restrictions(cluster, &asked.request)).collect();
                Refusal::Infeasible { reason, options }
            }
            // In Cruise Control's words all are excluded, though nobody asked for that.
            Refused::BadRequest(BadRequest::NoDestination) if asked.request.excluded_for_replica_moves.is_empty() => {
                Refusal::Options("no broker is left to take replicas: all are dead or to be removed".to_owned())
            }
            other => Refusal::Refused(other),
        }
    }

    /// 2 for bad input, 3 for a hard goal that cannot be satisfied.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Refusal::Infeasible { .. } | Refusal::Refused(Refused::Infeasible(_)) => 3,
            _ => 2,
        }
    }

    pub(super) fn value(option: &'static str, value: &str, problem: impl Into<String>) -> Refusal {
        Refusal::Value { option, value: value.to_owned(), problem: problem.into() }
    }
}

/// Who is new, by the snapshot or because the operation says so.
fn new_brokers(cluster: &Cluster, operation: &Operation) -> BTreeSet<BrokerId> {
    let found = cluster.brokers().iter().filter(|broker| broker.state == BrokerState::New).map(|broker| broker.id);
    match operation {
        Operation::AddBrokers(added) => found.chain(added.iter().copied()).collect(),
        Operation::RemoveBrokers(gone) | Operation::DemoteBrokers(gone) => {
            found.filter(|id| !gone.contains(id)).collect()
        }
        _ => found.collect(),
    }
}

/// The options that make the cluster smaller than it is, or than it has to be.
fn narrowings(goal: Goal, asked: &Asked) -> Vec<String> {
    let mut options = Vec::new();
    let most = asked.settings.max_replicas_per_broker;
    if goal == Goal::ReplicaCapacity && most != Settings::default().max_replicas_per_broker {
        options.push(format!("--max-replicas-per-broker {most}"));
    }
    if let Some((resource, key)) = capacity_threshold(goal) {
        let share = |settings: &Settings| settings.capacity_thresholds[resource as usize];
        if share(&asked.settings) < share(&Settings::default()) {
            options.push(format!("--set {key}={}", share(&asked.settings)));
        }
    }
    // The fewer brokers there are, the easier it is for each of them to lead some of a topic.
    if goal == Goal::MinTopicLeadersPerBroker {
        return options;
    }
    let what_if = &asked.what_if;
    options.extend(what_if.lose_rack.iter().map(|rack| format!("--lose-rack {rack}")));
    options.extend(what_if.remove_broker.iter().map(|id| format!("--remove-broker {id}")));
    if let Operation::RemoveBrokers(removed) = &asked.request.operation {
        let is_told = |id: &&BrokerId| what_if.remove_broker.iter().any(|told| told.trim() == id.to_string());
        let ids: Vec<String> = removed.iter().filter(|id| !is_told(id)).map(BrokerId::to_string).collect();
        if !ids.is_empty() {
            options.push(format!("--brokers {}", ids.join(",")));
        }
    }
    options
}

/// Whose capacity the goal keeps to, and the key that says how much of it may be used.
fn capacity_threshold(goal: Goal) -> Option<(Resource, &'static str)> {
    match goal {
        Goal::CpuCapacity => Some((Resource::Cpu, "cpu.capacity.threshold")),
        Goal::NetworkInboundCapacity => Some((Resource::NwIn, "network.inbound.capacity.threshold")),
        Goal::NetworkOutboundCapacity => Some((Resource::NwOut, "network.outbound.capacity.threshold")),
        Goal::DiskCapacity | Goal::IntraBrokerDiskCapacity => Some((Resource::Disk, "disk.capacity.threshold")),
        _ => None,
    }
}

/// The options that keep replicas or leaders from where they could go.
fn restrictions(cluster: &Cluster, request: &Request) -> Vec<String> {
    let mut options = Vec::new();
    let new = new_brokers(cluster, &request.operation);
    if request.destinations.is_empty() && !new.is_empty() {
        let new = listed(&new);
        options.push(format!(
            "that only new brokers get replicas, which are {new} (--destination-brokers that names old ones, too, lifts \
             that)"
        ));
    }
    for (option, ids) in [
        ("--destination-brokers", &request.destinations),
        ("--exclude-brokers-for-replica-moves", &request.excluded_for_replica_moves),
        ("--exclude-brokers-for-leadership", &request.excluded_for_leadership),
    ] {
        if !ids.is_empty() {
            options.push(format!("{option} {}", listed(ids)));
        }
    }
    if let Some(pattern) = &request.excluded_topics {
        let count = cluster.topics().iter().filter(|topic| pattern.matches(topic)).count();
        if count > 0 {
            options.push(format!("--exclude-topics ({count} of {} topics)", cluster.topics().len()));
        }
    }
    options
}

fn listed(ids: &BTreeSet<BrokerId>) -> String {
    ids.iter().map(BrokerId::to_string).collect::<Vec<_>>().join(",")
}
