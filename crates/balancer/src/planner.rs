//! From a request to a plan, and what the plan does to every goal.

use crate::aims::Aims;
use crate::budget;
use crate::cluster::{BrokerId, Cluster, Resource, Seat};
use crate::demote;
use crate::estimate;
use crate::feasible::Feasibility;
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::held::{Rule, held_back};
use crate::improve::Search;
use crate::intra::{self, DiskLoad, Filling};
use crate::options::{Budget, Operation, Request};
use crate::order;
use crate::plan::{Change, Plan, Undone, changes};
use crate::provision::{Provision, provision};
use crate::rules::{BadRequest, Rules};
use crate::score::score;
use crate::settings::Settings;
use crate::state::State;
use crate::statistics::{Statistics, statistics};

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The request itself is wrong.
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    /// A hard goal cannot be satisfied.
    #[error("{0}")]
    Infeasible(Infeasible),
}

/// A hard goal that cannot be satisfied, and what would make it feasible. Shown as Cruise Control's exception message.
#[derive(Debug, Clone, PartialEq)]
pub struct Infeasible {
    /// The goal.
    pub goal: Goal,
    /// The reason in words and numbers, with what to add to the cluster.
    pub reason: String,
    /// What of the request to relax, in the words of Cruise Control's REST parameters.
    pub tips: Vec<String>,
    /// That the cluster is too small, and what to add.
    pub provision: Provision,
}

impl std::fmt::Display for Infeasible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)?;
        if self.tips.is_empty() {
            return Ok(());
        }
        f.write_str(" || Tips:")?;
        for (number, tip) in (1..).zip(&self.tips) {
            write!(f, " [{number}] {tip}")?;
        }
        f.write_str(" Then, re-run your original request.")
    }
}

/// How a goal fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was not satisfied and is not after the plan.
    Violated,
    /// It was not satisfied and is after the plan.
    Fixed,
    /// It was satisfied all along.
    NoAction,
}

impl Status {
    /// By how far the goal was from being satisfied before and after.
    pub(crate) fn of((before, after): (f64, f64)) -> Status {
        match (before > 0.0, after > 0.0) {
            (_, true) => Status::Violated,
            (true, false) => Status::Fixed,
            (false, false) => Status::NoAction,
        }
    }
}

/// What the plan does to one goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which.
    pub goal: Goal,
    /// How it fares.
    pub status: Status,
    /// How far it is from being satisfied before and after; 0 means satisfied.
    pub miss: (f64, f64),
    /// If violated: the goals of higher priority that refused its moves, and how often.
    pub refused_by: Vec<(Goal, u64)>,
    /// If violated: the rules that kept it from more, and how many replicas, leaders or brokers they kept.
    pub held_back_by: Vec<(Rule, u64)>,
}

/// What one broker carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrokerLoad {
    /// Who.
    pub broker: BrokerId,
    /// Per resource, in the units of loads.
    pub resources: [f64; Resource::COUNT],
    /// Replicas on it.
    pub replicas: u64,
    /// Of which lead.
    pub leaders: u64,
    /// Outbound KB/s if it led all of them.
    pub potential_out: f64,
    /// Inbound KB/s of the partitions it leads.
    pub leader_in: f64,
}

/// A plan with everything that can be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The plan.
    pub plan: Plan,
    /// Per goal in force, in the order in which the caller listed them, though hard ones are served before soft ones.
    pub verdicts: Vec<Verdict>,
    /// Goals that were asked for and left out, because nobody measured what they need.
    pub unmeasured: Vec<Goal>,
    /// Every broker before, ascending by id.
    pub before: Vec<BrokerLoad>,
    /// Every broker after.
    pub after: Vec<BrokerLoad>,
    /// How evenly the brokers that are alive carry it, before and after.
    pub statistics: (Statistics, Statistics),
    /// How balanced the cluster is before and after: 100 if no goal is violated.
    pub score: (f64, f64),
    /// Whether the cluster has the right size once all of the plan has happened, what a budget leaves undone included.
    /// Undecided as long as a hard goal is left violated.
    pub provision: Provision,
    /// No plan that brings the disks and the hard goals as far as this one copies less, in MB.
    pub least_megabytes: f64,
    /// How many changes there are from the first on that breaks a hard goal for a while, in whatever order they come; nearly
    /// always none. They are the last between brokers, and the last between disks.
    pub unsafe_changes: usize,
    /// Whether replicas had to leave where they were, offline or on brokers that are removed: then soft goals move
    /// nothing else, and once that is done a rebalance may get further.
    pub heals: bool,
    /// Every disk before and after, by broker; empty unless goals inside brokers are in force.
    pub disks: Vec<DiskLoad>,
    /// Replicas that lie on one of these disks, nobody knows on which: no disk's load tells of them.
    pub unplaced: u64,
}

/// Makes the plan for `request`.
pub fn plan(cluster: &Cluster, request: &Request, settings: &Settings) -> Result<Outcome, Refused> {
    plan_on(State::for_goals(cluster, &request.goals_in_force(), settings), request, settings)
}

/// Makes the plan for `request` on a cluster of which `state` is as it was found.
///
/// An earlier hard goal may bar what a later one needs. All of them are needed, so where that leads to no plan they are
/// served in their usual order before the request is refused. The last resort of all is tried there and nowhere else.
pub(crate) fn plan_on(state: State<'_>, request: &Request, settings: &Settings) -> Result<Outcome, Refused> {
    let cluster = state.cluster;
    let served = request.goals_in_force();
    let (mut usual, soft): (Vec<Goal>, Vec<Goal>) = served.iter().copied().partition(|goal| goal.is_hard());
    usual.sort_unstable();
    usual.extend(soft);
    // Goals inside brokers have an order of their own.
    let between =
        |goals: &[Goal]| -> Vec<Goal> { goals.iter().copied().filter(|goal| !goal.is_intra_broker()).collect() };
    let is_usual = between(&usual) == between(&served);
    let effort = if is_usual { Effort::LastResort } else { Effort::Usual };
    let planned = plan_in_order(state, request, &served, settings, effort).or_else(|refused| {
        if matches!(refused, Refused::BadRequest(_)) || is_usual {
            return Err(refused);
        }
        // Made anew, which is rarely needed, rather than kept by all.
        let state = State::for_goals(cluster, &usual, settings);
        plan_in_order(state, request, &usual, settings, Effort::LastResort).map_err(|_| refused)
    });
    planned.map_err(|refused| match refused {
        Refused::Infeasible(infeasible) if old_brokers_would_do(cluster, request, settings) => {
            Refused::Infeasible(Infeasible { provision: Provision::default(), ..infeasible })
        }
        other => other,
    })
}

/// How much is tried before a hard goal counts as infeasible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Usual,
    /// Brokers are packed anew.
    LastResort,
}

/// Whether hard goals could be satisfied if old brokers got anything while there are new ones: then the cluster is not too
/// small, it is the rule that is in the way.
fn old_brokers_would_do(cluster: &Cluster, request: &Request, settings: &Settings) -> bool {
    let Some(rules) = Rules::compile(cluster, request).ok().filter(Rules::only_new) else { return false };
    let able = cluster.brokers().iter().zip(&rules.counted).filter(|(_, counted)| **counted);
    let destinations = able.map(|(broker, _)| broker.id).collect();
    let goals: Vec<Goal> = request.goals_in_force().into_iter().filter(|goal| goal.is_hard()).collect();
    let lifted = Request { destinations, goals: goals.clone(), budget: Budget::default(), ..request.clone() };
    let state = State::for_goals(cluster, &goals, settings);
    !goals.is_empty() && plan_in_order(state, &lifted, &goals, settings, Effort::LastResort).is_ok()
}

/// Serves the goals in this order, which may be another one than that in which they are listed.
fn plan_in_order(
    state: State<'_>,
    request: &Request,
    served: &[Goal],
    settings: &Settings,
    effort: Effort,
) -> Result<Outcome, Refused> {
    let cluster = state.cluster;
    let for_people = (!request.triggered_by_violation).then(|| settings.without_detector());
    let settings = for_people.as_ref().unwrap_or(settings);
    let rules = Rules::compile(cluster, request)?;
    let topics = cluster.topics().iter().map(String::as_str);
    let with_leaders = settings.topics_with_min_leaders_per_broker.as_ref();
    if let Some(topic) = with_leaders.and_then(|pattern| pattern.undecided(topics)) {
        return Err(BadRequest::Pattern(topic.to_owned()).into());
    }
    let (goals, unmeasured): (Vec<Goal>, Vec<Goal>) =
        served.iter().copied().partition(|goal| goal.is_measurable(cluster.unknown()));
    if goals.is_empty() {
        let names: Vec<&str> = cluster.unknown().iter().map(Resource::name).collect();
        return Err(BadRequest::NothingMeasured(names.join(", ")).into());
    }
    let (goals, inside) = intra::split(cluster, request, goals, settings)?;
    let aims = Aims::compile(&state, &goals, settings, &rules);
    let (before, found) = (loads(&state), state.all_levels().to_vec());
    let misses: Vec<f64> = (0..goals.len()).map(|goal| aims.miss(goal, &state, &rules)).collect();
    Feasibility { aims: &aims, rules: &rules, settings, request }.before(&state).map_err(Refused::Infeasible)?;
    let evacuates = request.evacuates(&goals);
    let mut search = Search::new(state, &rules, aims, request.threads.max(1));
    let (changes, mut verdicts) = if let Operation::DemoteBrokers(_) = request.operation {
        let (changes, verdicts) = demote::demote(&mut search.state, &rules, request.demotion);
        ((0..).map(|place| (0, place)).zip(changes).collect(), verdicts)
    } else {
        // With goals inside brokers alone, nothing moves between brokers, not even what is offline.
        if !goals.is_empty() {
            search.run(evacuates);
            if effort == Effort::LastResort && search.repack() {
                search.settle();
            }
        }
        let feasibility = Feasibility { aims: &search.aims, rules: &rules, settings, request };
        feasibility.after(&search.state).map_err(Refused::Infeasible)?;
        (changes(&search.state, &search.aims, &request.operation, &search.steps), Vec::new())
    };
    // What a budget leaves undone says nothing about the cluster's size.
    let size = provision(&search.state, &search.aims, &rules, settings);
    let mut unsafe_changes = 0;
    let (mut plan, left) = if budget::affords(request.budget, &changes) {
        let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
        let ordered = order::safe(&found, &search.state, &search.aims, None, changes);
        unsafe_changes = ordered.unsafe_changes;
        let left = budget::left_after(request.budget, &search.state, &ordered.changes);
        (Plan { changes: ordered.changes, undone: Undone::default() }, left)
    } else {
        let (plan, state, left) = budget::cut(search.state.as_found(), &search.aims, changes, request.budget);
        search.state = state;
        // By the mean of what is left of the plan, not of all of it.
        search.aims.renew_leader_in(&search.state);
        (plan, Some(left))
    };
    if verdicts.is_empty() {
        verdicts = judged(&search, &misses, plan.undone);
    } else {
        verdicts.iter_mut().for_each(|verdict| demote::leave_undone(verdict, plan.undone));
    }
    let means = (search.threads, left);
    let tidied = intra::tidy(&search.state, &rules, &inside, settings, means).map_err(Refused::Infeasible)?;
    verdicts.extend_from_slice(&tidied.verdicts);
    if let Some(Undone { changes, megabytes }) = tidied.undone {
        plan.undone = Undone { changes, megabytes: plan.undone.megabytes + megabytes };
    }
    unsafe_changes += tidied.unsafe_changes;
    let unplaced = tidied.unplaced;
    let disks = tidied.add_to(&search.state, &mut plan.changes);
    // Disks were arranged for what brokers hold in the end. Where replicas come and go meanwhile, one order serves both.
    let filling = Filling::found(cluster, &inside, settings);
    if filling.is_some() && plan.changes.iter().any(|change| !change.moves.is_empty()) {
        let ordered = order::safe(&found, &search.state, &search.aims, filling, plan.changes);
        (plan.changes, unsafe_changes) = (ordered.changes, ordered.unsafe_changes);
    }
    // Who lacks what is vital is in no position to give anything away.
    let lacks_a_hard_goal = verdicts.iter().any(|verdict| verdict.goal.is_hard() && verdict.status == Status::Violated);
    // Whoever listed them reads them as listed, and the first of them weighs most.
    let listed = request.goals_listed();
    verdicts.sort_by_key(|verdict| listed.iter().position(|goal| *goal == verdict.goal));
    let after = loads(&search.state);
    let spread = |loads: &[BrokerLoad]| statistics(cluster.brokers(), loads, |seat| rules.is_alive(seat as Seat));
    Ok(Outcome {
        statistics: (spread(&before), spread(&after)),
        score: score(&verdicts, evacuates && rules.offline().next().is_some(), settings),
        provision: if lacks_a_hard_goal { Provision::default() } else { size },
        least_megabytes: estimate::least_megabytes(&search.state, &search.aims, &rules, &request.operation, &before),
        unsafe_changes,
        heals: rules.healing && evacuates,
        plan,
        verdicts,
        unmeasured,
        before,
        after,
        disks,
        unplaced,
    })
}

/// How each goal fares by what the search made of it.
fn judged(search: &Search<'_, '_>, before: &[f64], undone: Undone) -> Vec<Verdict> {
    let goals = &search.aims.goals;
    let verdict = |(index, goal): (usize, &Goal)| {
        let after = search.aims.miss(index, &search.state, search.rules);
        let status = Status::of((before[index], after));
        let mut refused_by: Vec<(Goal, u64)> = Vec::new();
        let mut held_back_by: Vec<(Rule, u64)> = Vec::new();
        if status == Status::Violated {
            if undone.changes > 0 {
                held_back_by.push((Rule::Budget, undone.changes as u64));
            }
            held_back_by.extend(held_back(&search.state, &search.aims, search.rules, index));
            refused_by.extend(goals.iter().copied().zip(search.vetoes[index].iter().copied()).filter(|(_, n)| *n > 0));
            refused_by.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
            // Where somebody or something else is in the way, that nothing helped says nothing more.
            let known = refused_by.len() + held_back_by.len() > 1;
            held_back_by.retain(|(rule, _)| *rule != Rule::NothingHelps || !known);
        }
        Verdict { goal: *goal, status, miss: (before[index], after), refused_by, held_back_by }
    };
    goals.iter().enumerate().map(verdict).collect()
}

fn loads(state: &State<'_>) -> Vec<BrokerLoad> {
    let load = |(broker, levels): (&crate::cluster::Broker, &crate::gauges::Levels)| {
        // What left is taken away from sums again, and what is left of nothing may be a little less.
        let level = |gauge: Gauge| levels[gauge as usize].max(0.0);
        BrokerLoad {
            broker: broker.id,
            resources: Resource::ALL.map(|resource| level(Gauge::of(resource))),
            replicas: level(Gauge::Replicas) as u64,
            leaders: level(Gauge::Leaders) as u64,
            potential_out: level(Gauge::PotentialOut),
            leader_in: level(Gauge::LeaderIn),
        }
    };
    state.cluster.brokers().iter().zip(state.all_levels()).map(load).collect()
}
