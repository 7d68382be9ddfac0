//! A part of a plan that costs no more than it may.
//!
//! Changes are taken in the plan's own order, most important first; one that does not fit is passed over, so that
//! smaller and free ones after it still happen. A part of a plan must be safe and useful by itself: no change is taken
//! that would break a hard goal, or harm a goal without doing good to one of higher priority, as it may when what made
//! room for it is left out. What was made in exchange happens together. The order they are taken in is the order of the
//! plan, so that all this holds for every beginning of it too.
//!
//! What is left then does no good change by change, but may do so together: [`rest`] sees to that.

mod rest;

use std::collections::BTreeSet;

use crate::aims::Aims;
use crate::cluster::{Part, Seat, Slot};
use crate::intra::Allowance;
use crate::net::{Account, Net};
use crate::options::Budget;
use crate::plan::{Change, Plan, Undone};
use crate::reasons::Order;
use crate::state::{Action, State};

/// Whether all of it may happen.
pub(crate) fn affords(budget: Budget, changes: &[(Order, Change)]) -> bool {
    let cost = megabytes(changes.iter().map(|(_, change)| change));
    budget.megabytes.is_none_or(|most| cost <= most) && budget.moves.is_none_or(|most| changes.len() <= most)
}

/// What the budget, if there is one, leaves for moves between disks once these happen, which it affords.
pub(crate) fn left_after(budget: Budget, state: &State<'_>, changes: &[Change]) -> Option<Allowance> {
    (budget != Budget::default()).then(|| Allowance {
        megabytes: budget.megabytes.unwrap_or(f64::INFINITY) - megabytes(changes),
        changes: budget.moves.unwrap_or(usize::MAX) - changes.len(),
        changed: parts(state, changes),
        left_out: BTreeSet::new(),
    })
}

/// Cuts a plan that is not afforded to the budget, beginning with `state` as it was found. Also says what the cluster looks
/// like after what is left of it, and what is left for moves between disks.
pub(crate) fn cut<'c>(
    mut state: State<'c>,
    aims: &Aims,
    changes: Vec<(Order, Change)>,
    budget: Budget,
) -> (Plan, State<'c>, Allowance) {
    let mut purse = Purse::of(budget);
    let mut kept: Vec<Change> = Vec::new();
    let mut waiting = units(changes);
    // What one change is refused another may make room for: again, until nothing more fits.
    loop {
        let before = kept.len();
        let mut passed_over = Vec::new();
        for unit in waiting {
            if !purse.affords(&unit) || !apply(&mut state, aims, &unit) {
                passed_over.push(unit);
                continue;
            }
            purse.pay(&unit);
            kept.extend(unit);
        }
        waiting = passed_over;
        if kept.len() == before {
            break;
        }
    }
    let rest = rest::spare_least(&mut state, aims, waiting, purse);
    rest.taken.iter().for_each(|unit| purse.pay(unit));
    kept.extend(rest.taken.into_iter().flatten());
    let waiting = rest.left_out;
    let undone = Undone { changes: waiting.iter().map(Vec::len).sum(), megabytes: megabytes(waiting.iter().flatten()) };
    let left = Allowance {
        megabytes: purse.megabytes,
        changes: purse.changes,
        changed: parts(&state, &kept),
        left_out: parts(&state, waiting.iter().flatten()),
    };
    // Whoever was to go the other way may be left out.
    for reason in kept.iter_mut().flat_map(|change| &mut change.reasons) {
        reason.exchange = reason.exchange.filter(|partner| left.changed.contains(partner));
    }
    (Plan { changes: kept, undone }, state, left)
}

/// What of a budget is left.
#[derive(Debug, Clone, Copy)]
struct Purse {
    megabytes: f64,
    changes: usize,
}

impl Purse {
    fn of(budget: Budget) -> Purse {
        Purse { megabytes: budget.megabytes.unwrap_or(f64::INFINITY), changes: budget.moves.unwrap_or(usize::MAX) }
    }

    fn affords(&self, unit: &[Change]) -> bool {
        unit.len() <= self.changes && megabytes(unit) <= self.megabytes
    }

    fn pay(&mut self, unit: &[Change]) {
        self.changes -= unit.len();
        self.megabytes -= megabytes(unit);
    }
}

/// Whose changes they are.
fn parts<'a>(state: &State<'_>, changes: impl IntoIterator<Item = &'a Change>) -> BTreeSet<Part> {
    changes.into_iter().filter_map(|change| state.cluster.find(&change.topic, change.partition)).collect()
}

fn megabytes<'a>(changes: impl IntoIterator<Item = &'a Change>) -> f64 {
    changes.into_iter().fold(0.0, |sum, change| sum + change.megabytes)
}

/// The changes, those together that were made in exchange for each other.
fn units(changes: Vec<(Order, Change)>) -> Vec<Vec<Change>> {
    let is_exchange = |change: &Change| change.reasons.iter().any(|why| why.exchange.is_some());
    let mut units: Vec<Vec<Change>> = Vec::new();
    let mut last: Option<Order> = None;
    for (order, change) in changes {
        let place = is_exchange(&change).then_some(order);
        match units.last_mut() {
            Some(unit) if place.is_some() && place == last => unit.push(change),
            _ => units.push(vec![change]),
        }
        last = place;
    }
    units
}

/// Makes the changes happen, or nothing of them if that would be of no use or break a hard goal.
fn apply(state: &mut State<'_>, aims: &Aims, unit: &[Change]) -> bool {
    let Some(net) = Net::of(state, aims, unit) else { return false };
    // What must leave, must leave. Anything else has to do some good, to the first goal that it changes anything for.
    let must_happen = unit.iter().any(|change| change.reasons.iter().any(|why| why.goal().is_none()));
    let taken = !net.outcome.breaks && (must_happen || net.outcome.does_good);
    if !taken {
        net.take_back(state);
    }
    taken
}

/// Makes the changes happen, whatever comes of it; says whether the placement was one that they begin with.
fn apply_unchecked(state: &mut State<'_>, aims: &Aims, unit: &[Change], account: &mut Account) -> bool {
    unit.iter().all(|change| {
        let actions = actions(state, change);
        actions.iter().flatten().for_each(|(action, _)| account.happens(state, aims, *action));
        actions.is_some()
    })
}

/// The steps from the partition's present placement to the one the change asks for, each with the way back.
pub(crate) fn actions(state: &State<'_>, change: &Change) -> Option<Vec<(Action, Action)>> {
    let cluster = state.cluster;
    let part: Part = cluster.find(&change.topic, change.partition)?;
    let slots = cluster.slots(part);
    let mut actions: Vec<(Action, Action)> = Vec::new();
    let mut seats: Vec<(Slot, Seat)> = slots.map(|slot| (slot, state.seat(slot))).collect();
    for (from, to) in &change.moves {
        let (from, to) = (cluster.seat_of(*from)?, cluster.seat_of(*to)?);
        let (slot, seat) = seats.iter_mut().find(|(_, seat)| *seat == from)?;
        actions.push((Action::Move { slot: *slot, to }, Action::Move { slot: *slot, to: from }));
        *seat = to;
    }
    let leader = cluster.seat_of(change.new_leader)?;
    let (slot, _) = seats.into_iter().find(|(_, seat)| *seat == leader)?;
    if state.leader(part) != slot {
        actions.push((Action::Lead { part, slot }, Action::Lead { part, slot: state.leader(part) }));
    }
    Some(actions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerId, Cluster};
    use crate::fixture::{Dice, Small, crooked, crooked_with_little_room, planned};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::plan::{Cause, Reason, unmoved};
    use crate::rules::Rules;
    use crate::settings::Settings;

    /// Brokers hold 800 MB: 100 and 750 may change places, but neither can go first.
    #[test]
    fn no_hard_goal_is_broken_by_a_part_of_a_plan() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0], 100.0);
        small.partition("u", 0, &[1], 750.0);
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let change = |part: Part, from: i32, to: i32| {
            let (from, to) = (BrokerId(from), BrokerId(to));
            Change { new_replicas: vec![to], moves: vec![(from, to)], new_leader: to, ..unmoved(&cluster, part) }
        };
        let goals = [Goal::DiskCapacity, Goal::ReplicaDistribution];
        let aims = Aims::compile(&State::found(&cluster), &goals, &Settings::default(), &rules);
        let budget = Budget { moves: Some(1), megabytes: None };
        let (plan, ..) =
            cut(State::found(&cluster), &aims, vec![((1, 0), change(0, 0, 1)), ((1, 1), change(1, 1, 0))], budget);
        assert_eq!(plan.changes, []);
    }

    fn moved(cluster: &Cluster, (topic, number): (&str, i32), from: i32, to: i32) -> Change {
        let (from, to) = (BrokerId(from), BrokerId(to));
        let part = cluster.find(topic, number).unwrap();
        let cause = Cause::Goal { goal: Goal::ReplicaDistribution, gain: 1.0 };
        let reasons = vec![Reason { cause, from, to, exchange: None, levels: None }];
        Change { new_replicas: vec![to], moves: vec![(from, to)], new_leader: to, reasons, ..unmoved(cluster, part) }
    }

    /// One or two replicas each: `u` on its way from broker 1 to 2 does good only once broker 1 has got another.
    #[test]
    fn what_does_no_good_yet_waits_and_every_beginning_of_the_plan_is_useful() {
        let mut small = Small::in_racks("abc");
        (0..4).for_each(|number| small.partition("t", number, &[0], 10.0));
        small.partition("u", 0, &[1], 10.0);
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let goals = [Goal::ReplicaDistribution];
        let aims = Aims::compile(&State::found(&cluster), &goals, &Settings::default(), &rules);
        let part_of = |moves: usize| {
            let changes =
                [moved(&cluster, ("u", 0), 1, 2), moved(&cluster, ("t", 0), 0, 1), moved(&cluster, ("t", 1), 0, 1)];
            let changes = (0..).map(|place| (1, place)).zip(changes).collect();
            let (plan, ..) =
                cut(State::found(&cluster), &aims, changes, Budget { moves: Some(moves), megabytes: None });
            let names = plan.changes.iter().map(|change| format!("{}{}", change.topic, change.partition));
            (names.collect::<Vec<_>>(), plan.undone.changes)
        };
        assert_eq!(part_of(1), (vec!["t0".to_owned()], 2));
        // A third one on broker 1 is too many, until `u` has left it.
        assert_eq!(part_of(2), (vec!["t0".to_owned(), "u0".to_owned()], 1));
    }

    /// `v` leaves racks a and b for b and c; the plan calls that safe, so it must not wait for ever.
    #[test]
    fn replicas_of_a_partition_that_move_together_are_in_the_way_of_none_of_them() {
        let mut small = Small::in_racks("abcb");
        small.partition("v", 0, &[0, 1], 100.0);
        small.partition("w", 0, &[0], 100.0);
        small.partition("x", 0, &[1], 10.0);
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let goals = [Goal::RackAware, Goal::DiskUsageDistribution];
        let aims = Aims::compile(&State::found(&cluster), &goals, &Settings::default(), &rules);
        let cause = Cause::Goal { goal: Goal::DiskUsageDistribution, gain: 1.0 };
        let gone = Change {
            new_replicas: vec![BrokerId(3), BrokerId(2)],
            new_leader: BrokerId(3),
            moves: vec![(BrokerId(0), BrokerId(3)), (BrokerId(1), BrokerId(2))],
            reasons: vec![Reason { cause, from: BrokerId(0), to: BrokerId(3), exchange: None, levels: None }],
            megabytes: 200.0,
            ..unmoved(&cluster, cluster.find("v", 0).unwrap())
        };
        let budget = Budget { moves: Some(1), megabytes: None };
        let (plan, ..) = cut(State::found(&cluster), &aims, vec![((1, 0), gone)], budget);
        assert_eq!(plan.changes.len(), 1);
    }

    /// A change that is safe by itself is taken from any plan that is too large for the budget.
    #[test]
    fn budgeted_plans_make_progress() {
        let mut cut_short = 0;
        for seed in 0..600 {
            let mut dice = Dice(seed);
            let cluster = if seed % 2 == 0 { crooked(&mut dice) } else { crooked_with_little_room(&mut dice) };
            let whole = Request { goals: Goal::DEFAULT.to_vec(), ..Request::default() };
            let Ok(outcome) = planned(&cluster, &whole, &Settings::default()) else { continue };
            let exchanges = |change: &Change| change.reasons.iter().any(|why| why.exchange.is_some());
            let changes = &outcome.plan.changes;
            if changes.len() < 2 || outcome.unsafe_changes > 0 || changes.iter().all(exchanges) {
                continue;
            }
            let budget = Budget { moves: Some(changes.len() - 1), megabytes: None };
            let part = planned(&cluster, &Request { budget, ..whole }, &Settings::default()).unwrap();
            assert!(!part.plan.changes.is_empty(), "seed {seed}: {} changes", changes.len());
            cut_short += 1;
        }
        assert!(cut_short > 100, "{cut_short}");
    }

    #[test]
    fn what_was_made_in_exchange_happens_together() {
        let mut small = Small::in_racks("ab");
        (0..3).for_each(|number| small.partition("t", number, &[0], 10.0));
        let cluster = small.cluster();
        let half = |number: i32, is_exchange: bool| {
            let mut change = moved(&cluster, ("t", number), 0, 1);
            change.reasons[0].exchange = is_exchange.then_some(0);
            change
        };
        let sizes = |changes: Vec<(Order, Change)>| units(changes).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(vec![((1, 4), half(0, true)), ((1, 4), half(1, true)), ((1, 5), half(2, true))]), [2, 1]);
        assert_eq!(sizes(vec![((1, 4), half(0, false)), ((1, 4), half(1, false))]), [1, 1]);
    }
}
