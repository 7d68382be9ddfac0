//! From a spec to a request, or to what is wrong with the spec, and how to mend it.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::{BrokerVolumes, RebalanceMode};
use evenkeel_api::{KafkaRebalanceSpec, annotations};
use evenkeel_rest::Request;
use evenkeel_rest::parameter::{LogDirs, TopicPattern};
use evenkeel_rest::request::{
    AddBroker, Detail, Execution, GoalOptions, Optimization, Pace, Rebalance, RemoveBroker, RemoveDisks, Run, Scope,
};

use super::observe::Observation;
use super::{moves, tag};

/// A request for a plan.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one request at a time; boxing would only hide its fields")]
pub enum Planning {
    /// Mode `full`.
    Rebalance(Rebalance),
    /// Mode `add-brokers`.
    AddBroker(AddBroker),
    /// Mode `remove-brokers`.
    RemoveBroker(RemoveBroker),
    /// Mode `remove-disks`.
    RemoveDisks(RemoveDisks),
}

impl From<Planning> for Request {
    fn from(planning: Planning) -> Self {
        match planning {
            Planning::Rebalance(request) => request.into(),
            Planning::AddBroker(request) => request.into(),
            Planning::RemoveBroker(request) => request.into(),
            Planning::RemoveDisks(request) => request.into(),
        }
    }
}

/// The request for a proposal, or what is wrong with the spec.
pub(super) fn proposal(seen: &Observation) -> Result<Planning, String> {
    let run = Run { reason: Some(tag::of_resource(seen.uid())), ..Run::default() };
    planning(seen, run)
}

/// The request to carry out a proposal: exactly that one if it has an id, or one made anew.
pub(super) fn execution(seen: &Observation, reason: String, proposal_id: Option<String>) -> Result<Planning, String> {
    let run = Run { dryrun: false, reason: Some(reason), proposal_id, ..Run::default() };
    planning(seen, run)
}

fn planning(seen: &Observation, run: Run) -> Result<Planning, String> {
    let spec = seen.template.complete(&seen.resource.spec);
    if spec.mode == RebalanceMode::RemoveDisks {
        let volumes = spec.move_replicas_off_volumes.as_deref().unwrap_or_default();
        // There only our engine can be asked for more than a summary.
        let detail = if is_ours(seen) { detail(seen) } else { Detail::default() };
        return Ok(Planning::RemoveDisks(RemoveDisks { detail, run, brokerid_and_logdirs: log_dirs(volumes)? }));
    }
    let execution = Execution {
        run,
        pace: Pace {
            concurrent_leader_movements: count("concurrentLeaderMovements", spec.concurrent_leader_movements)?,
            replication_throttle: throttle(spec.replication_throttle)?,
            replica_movement_strategies: names("replicaMovementStrategies", &spec.replica_movement_strategies)?,
            ..Pace::default()
        },
        concurrent_partition_movements_per_broker: count(
            "concurrentPartitionMovementsPerBroker",
            spec.concurrent_partition_movements_per_broker,
        )?,
        skip_hard_goal_check: spec.skip_hard_goal_check.unwrap_or(false),
        ..Execution::default()
    };
    let goal_options = goal_options(seen, &spec)?;
    Ok(match spec.mode {
        RebalanceMode::AddBrokers => {
            Planning::AddBroker(AddBroker { goal_options, execution, brokerid: brokers(&spec)?, ..Default::default() })
        }
        RebalanceMode::RemoveBrokers => {
            let brokerid = brokers(&spec)?;
            Planning::RemoveBroker(RemoveBroker { goal_options, execution, brokerid, ..Default::default() })
        }
        RebalanceMode::Full | RebalanceMode::RemoveDisks => {
            let rebalance_disk = spec.rebalance_disk.unwrap_or(false);
            if rebalance_disk && !goal_options.goals.is_empty() {
                return Err(
                    "spec.rebalanceDisk chooses its own goals: remove spec.goals (also from the template), or \
                            rebalanceDisk"
                        .to_owned(),
                );
            }
            Planning::Rebalance(Rebalance {
                goal_options,
                scope: Scope { rebalance_disk, ..Scope::default() },
                execution,
                concurrent_intra_broker_partition_movements: count(
                    "concurrentIntraBrokerPartitionMovements",
                    spec.concurrent_intra_broker_partition_movements,
                )?,
            })
        }
    })
}

fn goal_options(seen: &Observation, spec: &KafkaRebalanceSpec) -> Result<GoalOptions, String> {
    let refused = |pattern: &str, why: String| {
        let why = why.lines().next().unwrap_or_default().to_owned();
        format!("spec.excludedTopics `{pattern}` is no regular expression: {why}")
    };
    let excluded_topics = match spec.excluded_topics.as_deref().filter(|pattern| !pattern.is_empty()) {
        Some(pattern) => Some(TopicPattern::new(pattern).map_err(|why| refused(pattern, why.to_string()))?),
        None => None,
    };
    let cap = seen.resource.metadata.annotations.as_ref().and_then(|notes| annotations::max_data_mb(notes).ok()?);
    Ok(GoalOptions {
        optimization: Optimization { detail: detail(seen), ..Optimization::default() },
        excluded_topics,
        max_data_to_move_mb: cap.filter(|_| is_ours(seen)),
        goals: names("goals", &spec.goals)?,
        ..GoalOptions::default()
    })
}

/// Any other engine refuses requests with parameters that it does not know.
fn is_ours(seen: &Observation) -> bool {
    seen.engine().is_some_and(|engine| engine.is_ours)
}

/// The loads before and after, and no more proposals than are shown: of a large cluster there may be hundreds of thousands.
fn detail(seen: &Observation) -> Detail {
    Detail { verbose: true, max_proposals: is_ours(seen).then_some(moves::SHOWN as u32) }
}

/// A list of names, which end up in one text separated by commas.
fn names(field: &str, names: &Option<Vec<String>>) -> Result<Vec<String>, String> {
    let names = names.clone().unwrap_or_default();
    match names.iter().find(|name| name.trim().is_empty() || name.contains(',')) {
        Some(name) => Err(format!("spec.{field} has `{name}`, which is no name: write one name an entry")),
        None => Ok(names),
    }
}

/// A number of which 0 means: what the engine is configured with.
fn count(field: &str, value: Option<i32>) -> Result<Option<u32>, String> {
    match value.map(u32::try_from) {
        Some(Err(_)) => Err(format!("spec.{field} is negative, or larger than {}: write a number between", i32::MAX)),
        Some(Ok(value)) => Ok((value > 0).then_some(value)),
        None => Ok(None),
    }
}

fn throttle(value: Option<i64>) -> Result<Option<u64>, String> {
    match value.map(u64::try_from) {
        Some(Err(_)) => Err("spec.replicationThrottle is negative: write 0 or more bytes per second".to_owned()),
        Some(Ok(value)) => Ok((value > 0).then_some(value)),
        None => Ok(None),
    }
}

fn brokers(spec: &KafkaRebalanceSpec) -> Result<BTreeSet<i32>, String> {
    let listed = spec.brokers.as_deref().unwrap_or_default();
    if listed.is_empty() {
        return Err(format!("mode {} needs spec.brokers: list at least one broker id", spec.mode));
    }
    distinct("spec.brokers", listed)
}

fn log_dirs(volumes: &[BrokerVolumes]) -> Result<LogDirs, String> {
    if volumes.is_empty() {
        return Err(
            "mode remove-disks needs spec.moveReplicasOffVolumes: list at least one broker with volumes".to_owned()
        );
    }
    let ids: Vec<i32> = volumes.iter().map(|entry| entry.broker_id).collect();
    if ids.iter().any(|id| *id < 0) {
        return Err(
            "spec.moveReplicasOffVolumes has an entry without a brokerId, or with one that no broker can have (negative, or \
             larger than 2147483647): mend or remove it"
                .to_owned(),
        );
    }
    distinct("spec.moveReplicasOffVolumes", &ids)?;
    let mut dirs = LogDirs::new();
    for BrokerVolumes { broker_id, volume_ids, .. } in volumes {
        let field = format!("spec.moveReplicasOffVolumes of broker {broker_id}");
        if volume_ids.is_empty() {
            return Err(format!("{field} lists no volumes: add volumeIds, or remove the entry"));
        }
        let paths = distinct(&field, volume_ids)?;
        let path = |volume| format!("/var/lib/kafka/data-{volume}/kafka-log{broker_id}");
        dirs.insert(*broker_id, paths.into_iter().map(path).collect());
    }
    Ok(dirs)
}

fn distinct(field: &str, ids: &[i32]) -> Result<BTreeSet<i32>, String> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if *id < 0 {
            return Err(format!("{field} has an id that is negative, or larger than {}: remove it", i32::MAX));
        }
        if !seen.insert(*id) {
            return Err(format!("{field} lists {id} twice: list it once"));
        }
    }
    Ok(seen)
}
