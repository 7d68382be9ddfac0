//! From a request to what the balancer is asked: complete, so that nothing is left to look up.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_balancer::{
    cluster::{BrokerId, Resource, Resources},
    goal::Goal,
    options::{self, Budget, Demotion, Operation, TopicPattern},
    rules::BadRequest,
};
use evenkeel_kafka::{BrokerId as KafkaId, TopicPartition};
use evenkeel_rest::{
    Failure, Request, parameter,
    request::{GoalOptions, Optimization},
};

use super::goals::wanted;
use crate::{
    config::settings::Settings,
    journal::History,
    model::{Purpose, View},
    monitor::windows::Requirement,
};

/// What is asked of the balancer, and of the model that it plans on.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Of the balancer.
    pub request: options::Request,
    /// Of the model.
    pub purpose: Purpose,
    /// Of what is known.
    pub requirement: Requirement,
    /// Goals that the caller named and that nobody can judge.
    pub dropped: Vec<Goal>,
    /// Log directories whose replicas are to lead nothing, apart from whole brokers.
    pub demoted_dirs: BTreeSet<(i32, String)>,
}

impl Ask {
    /// Says the same for asks that have the same answer on the same cluster, whichever endpoint they come by.
    pub fn key(&self) -> String {
        let request = options::Request { threads: 1, ..self.request.clone() };
        format!("{request:?} {:?} {:?} {:?} {:?}", self.purpose, self.requirement, self.dropped, self.demoted_dirs)
    }
}

/// What a request asks for, on a cluster that looks like `view` and of which `unknown` is not measured.
/// `history` is of brokers that are still to be left alone.
pub fn ask(
    request: &Request,
    settings: &Settings,
    view: &View,
    unknown: Resources,
    history: &History,
) -> Result<Ask, Failure> {
    let wanted = wanted(request, &settings.goals)?;
    let (goals, dropped) = wanted.measurable(unknown, &settings.goals)?;
    let mut ask = Ask {
        requirement: wanted.requirement(&goals, &settings.monitor),
        purpose: Purpose {
            tells_dirs_apart: goals.iter().any(|goal| goal.is_intra_broker()),
            may_estimate: true,
            ..Purpose::default()
        },
        request: options::Request {
            goals,
            excluded_topics: settings.goals.excluded_topics.clone(),
            threads: 1,
            ..options::Request::default()
        },
        dropped,
        demoted_dirs: BTreeSet::new(),
    };
    match request {
        Request::Proposals(it) => {
            ask.by_options(&it.goal_options, view, history)?;
            ask.rebalances(it.scope.rebalance_disk, &it.scope.destination_broker_ids);
        }
        Request::Rebalance(it) => {
            ask.by_options(&it.goal_options, view, history)?;
            ask.rebalances(it.scope.rebalance_disk, &it.scope.destination_broker_ids);
        }
        Request::AddBroker(it) => {
            ask.by_options(&it.goal_options, view, history)?;
            ask.purpose.new = it.brokerid.clone();
            ask.request.operation = Operation::AddBrokers(ids(&it.brokerid));
            // Whoever is added is welcome again.
            ask.request.excluded_for_replica_moves.retain(|id| !it.brokerid.contains(&id.0));
        }
        Request::RemoveBroker(it) => {
            ask.by_options(&it.goal_options, view, history)?;
            ask.purpose.removed = it.brokerid.clone();
            ask.request.operation = Operation::RemoveBrokers(ids(&it.brokerid));
            ask.request.destinations = ids(&it.destination_broker_ids);
        }
        Request::FixOfflineReplicas(it) => {
            ask.by_options(&it.goal_options, view, history)?;
            ask.request.operation = Operation::FixOfflineReplicas;
        }
        Request::DemoteBroker(it) => {
            ask.by_optimization(&it.optimization, view, history);
            ask.demotes(&it.brokerid, &it.brokerid_and_logdirs);
            ask.request.demotion = Demotion {
                skip_under_replicated: it.skip_urp_demotion,
                exclude_followers: it.exclude_follower_demotion,
            };
        }
        Request::RemoveDisks(it) => {
            ask.purpose.removed_dirs = pairs(&it.brokerid_and_logdirs);
            let dirs = ask.purpose.removed_dirs.iter().map(|(id, dir)| (BrokerId(*id), dir.clone()));
            ask.request.operation = Operation::RemoveDisks(dirs.collect());
        }
        // They have no goals, so they have been refused.
        _ => {}
    }
    ask.check_brokers(request, view)?;
    if ask.request.budget.megabytes.is_some() && unknown.contains(Resource::Disk) {
        return Err(Failure::illegal_argument("max_data_to_move_mb cannot be kept to: nobody measures [disk]."));
    }
    Ok(ask)
}

impl Ask {
    fn by_options(&mut self, options: &GoalOptions, view: &View, history: &History) -> Result<(), Failure> {
        self.by_optimization(&options.optimization, view, history);
        if let Some(pattern) = &options.excluded_topics {
            self.request.excluded_topics = Some(topics(pattern)?);
        }
        if options.exclude_recently_removed_brokers {
            self.request.excluded_for_replica_moves = still_there(&history.removed, view);
        }
        self.request.budget = Budget { megabytes: options.max_data_to_move_mb.map(|it| it as f64), moves: None };
        Ok(())
    }

    fn by_optimization(&mut self, optimization: &Optimization, view: &View, history: &History) {
        self.purpose.may_estimate = optimization.allow_capacity_estimation;
        if optimization.exclude_recently_demoted_brokers {
            self.request.excluded_for_leadership = still_there(&history.demoted, view);
        }
    }

    fn rebalances(&mut self, between_disks: bool, destinations: &BTreeSet<i32>) {
        self.request.operation = if between_disks { Operation::RebalanceDisks } else { Operation::Rebalance };
        self.request.destinations = ids(destinations);
    }

    fn demotes(&mut self, brokers: &BTreeSet<i32>, dirs: &parameter::LogDirs) {
        self.purpose.demoted = brokers.clone();
        // Where the whole broker is demoted its directories need not be named.
        self.demoted_dirs = pairs(dirs).into_iter().filter(|(id, _)| !brokers.contains(id)).collect();
        self.purpose.tells_dirs_apart = !dirs.is_empty();
        let of_dirs = self.demoted_dirs.iter().map(|(id, _)| BrokerId(*id));
        self.request.operation = Operation::DemoteBrokers(ids(brokers).into_iter().chain(of_dirs).collect());
    }

    /// Who is named has to be there; only one that is to be emptied may be down.
    fn check_brokers(&self, request: &Request, view: &View) -> Result<(), Failure> {
        let missing = |ids: &BTreeSet<BrokerId>, may_be_down: bool| -> Vec<i32> {
            let there = |id: i32| view.brokers.get(&id).is_some_and(|broker| broker.up || may_be_down);
            ids.iter().map(|id| id.0).filter(|id| !there(*id)).collect()
        };
        let named = match &self.request.operation {
            Operation::RemoveBrokers(ids) => missing(ids, true),
            Operation::AddBrokers(ids) | Operation::DemoteBrokers(ids) => missing(ids, false),
            Operation::RemoveDisks(dirs) => missing(&dirs.iter().map(|(id, _)| *id).collect(), false),
            Operation::Rebalance | Operation::RebalanceDisks | Operation::FixOfflineReplicas => Vec::new(),
        };
        if !named.is_empty() {
            return Err(Failure::missing_brokers(request.endpoint(), &named));
        }
        let destinations = missing(&self.request.destinations, false);
        if !destinations.is_empty() {
            // Of destinations every endpoint speaks as `rebalance` does.
            return Err(Failure::missing_brokers(evenkeel_rest::Endpoint::Rebalance, &destinations));
        }
        Ok(())
    }
}

fn ids(brokers: &BTreeSet<i32>) -> BTreeSet<BrokerId> {
    brokers.iter().copied().map(BrokerId).collect()
}

fn pairs(dirs: &parameter::LogDirs) -> BTreeSet<(i32, String)> {
    dirs.iter().flat_map(|(id, dirs)| dirs.iter().map(|dir| (*id, dir.clone()))).collect()
}

/// Brokers of the past that still are part of the cluster.
fn still_there(past: &BTreeMap<KafkaId, i64>, view: &View) -> BTreeSet<BrokerId> {
    past.keys().filter(|id| view.brokers.contains_key(&id.0)).map(|id| BrokerId(id.0)).collect()
}

/// A pattern that Java would take and we cannot match with is refused rather than ignored.
pub(super) fn topics(pattern: &parameter::TopicPattern) -> Result<TopicPattern, Failure> {
    TopicPattern::new(pattern.as_str())
        .map_err(|error| Failure::illegal_argument(format_args!("The pattern of topics cannot be used: {error}")))
}

/// Refuses a pattern that takes too many steps on one of these topics, as plans do: silently it would mean none of them.
/// Each topic is tried once, so those of a topic must come one after the other.
pub(crate) fn decided<'t>(
    pattern: &TopicPattern,
    partitions: impl IntoIterator<Item = &'t TopicPartition>,
) -> Result<(), Failure> {
    let mut last = None;
    let names = partitions.into_iter().map(|partition| partition.topic.as_str());
    let undecided = pattern.undecided(names.filter(|name| last.replace(*name) != Some(*name)));
    undecided.map_or(Ok(()), |topic| Err(Failure::illegal_argument(BadRequest::Pattern(topic.to_owned()))))
}
