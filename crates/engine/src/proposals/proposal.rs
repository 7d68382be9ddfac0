//! A plan on what is known, with all that will be said about it.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_balancer::{
    after::after,
    cluster::{Cluster, ClusterBuilder, Invalid, ReplicaSpec},
    inspect::inspect,
    options::{Operation, Request},
    plan::{Change, Plan},
    planner::{Outcome, Refused, Status, plan},
    rules::BadRequest,
};
use evenkeel_kafka::TopicPartition;
use evenkeel_rest::{
    Endpoint, Failure,
    body::{ClusterModelStats, Step},
};

use super::{
    Ask,
    disks::{Disks, disks},
    figures::{Census, figures},
    known::baseline,
    loads::broker_loads,
};
use crate::{
    config::{capacity::Capacities, settings::Settings},
    executor::Baseline,
    model::{self, NoModel, View, left_alone},
    monitor::Known,
};

/// A plan, and what was known when it was made.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// Names the plan by what it does.
    pub id: String,
    /// What was asked for.
    pub ask: Ask,
    /// The plan, and what it does to every goal and broker.
    pub outcome: Outcome,
    /// The brokers of the cluster, without partitions.
    pub brokers: Cluster,
    /// What is in each log directory before and after, where they are told apart.
    pub(super) disks: Option<[Disks; 2]>,
    /// The cluster in numbers once the plan is carried out.
    pub(super) figures: ClusterModelStats,
    /// Topics that stay where they are.
    pub excluded_topics: Vec<String>,
    /// How many windows the loads are from.
    pub windows: usize,
    /// The share of partitions of which loads are known.
    pub coverage: f64,
    /// What the plan leaves on brokers that it is to empty: its budget, or somebody else's move, does not let it.
    pub(super) left: BTreeSet<TopicPartition>,
    /// Copies that were on their way to these brokers: the plan takes them for replicas.
    pub(super) awaited: BTreeMap<TopicPartition, Vec<i32>>,
    /// What was wrong already.
    pub baseline: Baseline,
    /// Of what was known.
    pub generation: u64,
    /// How long planning took, in milliseconds.
    pub took: u64,
}

/// Makes the plan. `endpoint` only matters for the words of a refusal; `begins` is told how far it is.
pub fn make(
    mut ask: Ask,
    endpoint: Endpoint,
    known: &Known,
    capacities: &Capacities,
    settings: &Settings,
    begins: &dyn Fn(Step),
) -> Result<Proposal, Failure> {
    begins(Step::GeneratingClusterModel);
    let weights = settings.monitor.cpu_weights;
    let cluster = model::build(&known.sighting.view, &known.loads, capacities, weights, &ask.purpose)
        .map_err(|why| no_model(&why))?;
    check_dirs(&ask, &cluster)?;
    ask.request.excluded_topics =
        left_alone(&cluster, &ask.request.goals, &settings.goals.own_topics, ask.request.excluded_topics.as_ref());
    // All goals are pursued together.
    let goals: Vec<&str> = ask.request.goals.iter().map(|goal| goal.name()).collect();
    begins(Step::Optimizing(goals.join(", ")));
    let mut outcome = plan(&cluster, &ask.request, &settings.goals.thresholds)
        .map_err(|why| refused(why, &ask, endpoint, &cluster))?;
    if !ask.demoted_dirs.is_empty() {
        keep_demoted(&ask, &cluster, &mut outcome)?;
    }
    inspected(&cluster, &ask.request, &outcome.plan)?;
    let disks = if ask.purpose.tells_dirs_apart {
        let after = after(&cluster, &outcome.plan).map_err(cannot_be)?;
        Some([disks(&cluster), disks(&after)])
    } else {
        None
    };
    let census = Census::after(&cluster, &outcome.plan);
    let excluded = |topic: &&String| ask.request.excluded_topics.as_ref().is_some_and(|it| it.matches(topic));
    Ok(Proposal {
        id: outcome.plan.id(),
        figures: figures(&cluster, &outcome.after, &census, &ask.request.excluded_for_replica_moves),
        brokers: brokers_of(&cluster).map_err(cannot_be)?,
        disks,
        excluded_topics: cluster.topics().iter().filter(excluded).cloned().collect(),
        windows: known.loads.windows.len(),
        coverage: known.loads.coverage,
        left: left(&ask, &cluster, &outcome.plan.changes),
        awaited: awaited(&known.sighting.view),
        baseline: baseline(&known.sighting),
        generation: known.generation,
        took: 0,
        outcome,
        ask,
    })
}

impl Proposal {
    /// Whether `ask` is for the same operation, so that either's plan may be carried out for the other.
    pub fn is_for(&self, ask: &Ask) -> bool {
        self.ask.request.operation == ask.request.operation && self.ask.demoted_dirs == ask.demoted_dirs
    }
}

/// Partitions that are on brokers which are to be emptied, and that the plan does not move. Those of which copies are on their
/// way are to have left by the time it is carried out: should the copies be taken back, the plan is one for another cluster.
fn left(ask: &Ask, cluster: &Cluster, changes: &[Change]) -> BTreeSet<TopicPartition> {
    let Operation::RemoveBrokers(emptied) = &ask.request.operation else { return BTreeSet::new() };
    let moved: BTreeSet<(&str, i32)> = changes.iter().map(|change| (change.topic.as_str(), change.partition)).collect();
    let moving: BTreeSet<(String, i32)> = cluster.pending_moves().map(|it| (it.topic, it.partition)).collect();
    let there = cluster.partitions().filter(|it| it.replicas().any(|replica| emptied.contains(&replica.broker)));
    let left = there.filter(|it| !moved.contains(&(it.topic(), it.number())));
    let left = left.filter(|it| moving.is_empty() || !moving.contains(&(it.topic().to_owned(), it.number())));
    left.map(|it| TopicPartition::new(it.topic(), it.number())).collect()
}

/// Copies that are on their way, by partition.
fn awaited(view: &View) -> BTreeMap<TopicPartition, Vec<i32>> {
    let moving = view.partitions.iter().filter(|(_, seen)| !seen.adding.is_empty());
    moving.map(|(partition, seen)| (partition.clone(), seen.adding.clone())).collect()
}

/// The cluster without what lies on it.
fn brokers_of(cluster: &Cluster) -> Result<Cluster, Invalid> {
    let mut builder = ClusterBuilder::new();
    cluster.unknown().iter().for_each(|resource| builder.unknown(resource));
    for broker in cluster.brokers() {
        builder.broker(broker.spec(cluster))?;
    }
    builder.build()
}

/// Directories that are to be demoted must be there; those that are to be removed the balancer looks after.
fn check_dirs(ask: &Ask, cluster: &Cluster) -> Result<(), Failure> {
    for (id, dir) in &ask.demoted_dirs {
        let broker = cluster.brokers().iter().find(|broker| broker.id.0 == *id);
        if !broker.is_some_and(|broker| broker.disks.iter().any(|disk| disk.name == *dir)) {
            return Err(Failure::illegal_argument(format_args!("Invalid log dirs provided for broker {id}.")));
        }
    }
    Ok(())
}

/// The balancer demotes whole brokers. Where only some of a broker's directories are meant, what lies
/// in the others keeps its place.
fn keep_demoted(ask: &Ask, cluster: &Cluster, outcome: &mut Outcome) -> Result<(), Failure> {
    let mut meant: BTreeSet<(&str, i32)> = BTreeSet::new();
    for partition in cluster.partitions() {
        let is_meant = |(position, replica): (usize, ReplicaSpec)| {
            if ask.request.demotion.exclude_followers && position != partition.leader() {
                return false;
            }
            let id = replica.broker;
            let dir = || Some(cluster.broker(id)?.disks.get(replica.disk?)?.name.clone());
            ask.purpose.demoted.contains(&id.0) || dir().is_some_and(|dir| ask.demoted_dirs.contains(&(id.0, dir)))
        };
        if partition.replicas().enumerate().any(is_meant) {
            meant.insert((partition.topic(), partition.number()));
        }
    }
    let is_meant = |change: &Change| meant.contains(&(change.topic.as_str(), change.partition));
    outcome.plan.changes.retain(is_meant);
    outcome.after = broker_loads(&after(cluster, &outcome.plan).map_err(cannot_be)?);
    // What is stuck may be in a directory that is not meant, but then it is no worse to say so.
    if outcome.plan.changes.is_empty() {
        for verdict in outcome.verdicts.iter_mut().filter(|verdict| verdict.status == Status::Fixed) {
            (verdict.status, verdict.miss) = (Status::NoAction, (0.0, 0.0));
            outcome.score = (100.0, 100.0);
        }
    }
    Ok(())
}

fn no_model(why: &NoModel) -> Failure {
    match why {
        NoModel::Invalid(cause) => Failure::illegal_state(format_args!("{why}: {cause}")),
        NoModel::UnknownCapacity(_) | NoModel::EstimatedCapacity(_) => Failure::illegal_state(why),
    }
}

/// The second pair of eyes: what it finds fault with is neither shown nor carried out, whoever asked for it.
pub(super) fn inspected(cluster: &Cluster, request: &Request, plan: &Plan) -> Result<(), Failure> {
    let findings = inspect(cluster, request, plan);
    findings.first().map_or(Ok(()), |first| {
        let count = findings.len();
        Err(Failure::illegal_state(format_args!("the plan is wrong in {count} thing(s), the first: {first}")))
    })
}

/// A plan that its own cluster does not know: a bug, told rather than hidden.
fn cannot_be(why: Invalid) -> Failure {
    Failure::illegal_state(format_args!("the plan does not fit the cluster that it was made for: {why}"))
}

fn refused(why: Refused, ask: &Ask, endpoint: Endpoint, cluster: &Cluster) -> Failure {
    let why = match why {
        Refused::Infeasible(why) => {
            let goal = why.goal.name();
            // The reason begins with the goal already.
            let text = why.to_string();
            return Failure::infeasible(goal, text.strip_prefix(&format!("[{goal}] ")).unwrap_or(&text));
        }
        Refused::BadRequest(why) => why,
    };
    match &why {
        BadRequest::UnknownBroker(id) | BadRequest::DeadBroker(id) => Failure::missing_brokers(endpoint, &[id.0]),
        BadRequest::NoDestination => {
            let goal = ask.request.goals.first().map_or("", |goal| goal.name());
            Failure::infeasible(goal, why)
        }
        BadRequest::NothingOffline => {
            let ids: Vec<String> = cluster.brokers().iter().map(|broker| broker.id.to_string()).collect();
            let ids = ids.join(", ");
            Failure::illegal_state(format_args!("Cluster has no offline replica on brokers [{ids}] to fix."))
        }
        // Nobody has said which: had somebody, that directory would be the one that is not there.
        BadRequest::NoDisks if ask.purpose.removed_dirs.is_empty() && endpoint == Endpoint::RemoveDisks => {
            Failure::bad_request(why)
        }
        BadRequest::NothingMeasured(_)
        | BadRequest::NoDisks
        | BadRequest::InvalidLogDirs(_)
        | BadRequest::UnknownLogDirs(..)
        | BadRequest::NoLogDirLeft(_)
        | BadRequest::NotEnoughCapacity(_)
        | BadRequest::Pattern(_)
        | BadRequest::Misplaced(_)
        | BadRequest::Contradiction(..) => Failure::illegal_argument(why),
    }
}
