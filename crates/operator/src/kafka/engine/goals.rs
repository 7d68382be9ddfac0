//! Which goals make sense: a goal about the network is noise where nobody said what the network can carry.

use std::collections::BTreeSet;

use super::{
    capacity::{Capacities, Capacity},
    settings::ZERO_TOUCH,
};
use crate::auto_rebalance::settings::{DEFAULT_DETECTION_GOALS, DETECTION_GOALS, short_name};
use crate::kafka::properties::Properties;

/// Where Cruise Control has its goals.
pub(super) const PACKAGE: &str = "com.linkedin.kafka.cruisecontrol.analyzer.goals.";

/// All goals, in the order of their importance.
pub(super) const GOALS: [&str; 17] = [
    "RackAwareGoal",
    "RackAwareDistributionGoal",
    "MinTopicLeadersPerBrokerGoal",
    "ReplicaCapacityGoal",
    "DiskCapacityGoal",
    "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
    "ReplicaDistributionGoal",
    "PotentialNwOutGoal",
    "DiskUsageDistributionGoal",
    "NetworkInboundUsageDistributionGoal",
    "NetworkOutboundUsageDistributionGoal",
    "CpuUsageDistributionGoal",
    "TopicReplicaDistributionGoal",
    "LeaderReplicaDistributionGoal",
    "LeaderBytesInDistributionGoal",
];

const HARD: [&str; 6] = [
    "RackAwareGoal",
    "ReplicaCapacityGoal",
    "DiskCapacityGoal",
    "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
];

/// What nobody measures without a reporter in the brokers: a goal about it is never found violated.
const UNMEASURED: [&str; 5] = [
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
    "PotentialNwOutGoal",
    "NetworkOutboundUsageDistributionGoal",
    "CpuUsageDistributionGoal",
];

const INBOUND: [&str; 3] =
    ["NetworkInboundUsageDistributionGoal", "NetworkInboundCapacityGoal", "LeaderBytesInDistributionGoal"];
const OUTBOUND: [&str; 3] =
    ["NetworkOutboundUsageDistributionGoal", "NetworkOutboundCapacityGoal", "PotentialNwOutGoal"];

/// Adds the goals to the settings, wherever the user named none; and watches nothing that is not a default goal, because
/// Cruise Control would not start with it.
pub(super) fn add(settings: &mut Properties, capacities: &Capacities) {
    let dropped = dropped(capacities);
    let kept = |goals: &[&str]| -> String {
        let names: Vec<String> =
            goals.iter().filter(|goal| !dropped.contains(*goal)).map(|goal| format!("{PACKAGE}{goal}")).collect();
        names.join(",")
    };
    let all: Vec<String> = GOALS.iter().map(|goal| format!("{PACKAGE}{goal}")).collect();
    settings.entry("goals".to_owned()).or_insert_with(|| all.join(","));
    // Default goals must be among the goals, and hard goals among the default ones: a user who named some of the
    // former means the latter too.
    let of_users = settings.get("goals").cloned().unwrap_or_default();
    let default =
        settings.entry("default.goals".to_owned()).or_insert_with(|| within(&kept(&GOALS), &of_users)).clone();
    settings.entry("hard.goals".to_owned()).or_insert_with(|| within(&kept(&HARD), &default));
    let watched = settings.get(DETECTION_GOALS).cloned().unwrap_or_else(|| DEFAULT_DETECTION_GOALS.join(","));
    if !names(&watched).is_subset(&names(&default)) {
        settings.insert(DETECTION_GOALS.to_owned(), default);
    }
}

/// The goals that an engine with these settings watches and can ever find violated, by their short names.
pub fn watched(settings: &Properties) -> Vec<String> {
    let named = settings.get(DETECTION_GOALS).filter(|list| !names(list).is_empty());
    let list = named.cloned().unwrap_or_else(|| DEFAULT_DETECTION_GOALS.join(","));
    let sampler = settings.get("metric.sampler.class").map(|class| short_name(class));
    let is_measured = |goal: &&str| sampler != Some(ZERO_TOUCH) || !UNMEASURED.contains(goal);
    list.split(',').map(short_name).filter(|goal| !goal.is_empty()).filter(is_measured).map(str::to_owned).collect()
}

/// The goals of a list that are also in another, as they are written there.
fn within(goals: &str, other: &str) -> String {
    let other = names(other);
    let kept: Vec<&str> = goals.split(',').filter(|goal| other.contains(short_name(goal))).collect();
    kept.join(",")
}

fn names(list: &str) -> BTreeSet<&str> {
    list.split(',').map(short_name).filter(|name| !name.is_empty()).collect()
}

fn dropped(capacities: &Capacities) -> BTreeSet<&'static str> {
    let mut dropped = BTreeSet::new();
    let rates =
        |of: fn(&Capacity) -> Option<u64>| -> Option<BTreeSet<u64>> { capacities.brokers.values().map(of).collect() };
    match rates(|capacity| capacity.network_in) {
        None => dropped.extend(INBOUND),
        Some(different) if different.len() > 1 => {
            dropped.insert("LeaderBytesInDistributionGoal");
        }
        Some(_) => {}
    }
    if rates(|capacity| capacity.network_out).is_none() {
        dropped.extend(OUTBOUND);
    }
    dropped
}
