//! A part of a plan that costs no more than it may.
//!
//! Changes are taken in the plan's own order, most important first; one that does not fit is passed
//! over, so that smaller and free ones after it still happen. A part of a plan must be safe by itself:
//! no change is taken that would break a hard goal, as it may when what made room for it is left out.

use crate::aims::Aims;
use crate::cluster::{Cluster, Part, Seat, Slot};
use crate::intra::Allowance;
use crate::options::Budget;
use crate::plan::{Change, Plan, Undone};
use crate::state::{Action, State};

/// Cuts the plan to the budget. Also says what the cluster looks like after what is left of it, and what is left for
/// moves between disks.
pub(crate) fn cut<'c>(
    cluster: &'c Cluster,
    aims: &Aims,
    changes: Vec<Change>,
    budget: Budget,
) -> (Plan, State<'c>, Allowance) {
    let mut state = State::found(cluster);
    let mut megabytes_left = budget.megabytes.unwrap_or(f64::INFINITY);
    let mut moves_left = budget.moves.unwrap_or(usize::MAX);
    // What can be afforded as a whole is safe as a whole, exchanges included.
    let total = changes.iter().fold(0.0, |sum, change| sum + change.megabytes);
    let whole = total <= megabytes_left && changes.len() <= moves_left;
    let mut kept: Vec<(usize, Change)> = Vec::new();
    let mut waiting: Vec<(usize, Change)> = changes.into_iter().enumerate().collect();
    // What one change is refused another may make room for: again, until nothing more fits.
    loop {
        let before = kept.len();
        let mut passed_over = Vec::new();
        for (order, change) in waiting {
            if moves_left == 0 || change.megabytes > megabytes_left || !apply(&mut state, aims, &change, whole) {
                passed_over.push((order, change));
                continue;
            }
            moves_left -= 1;
            megabytes_left -= change.megabytes;
            kept.push((order, change));
        }
        waiting = passed_over;
        if kept.len() == before {
            break;
        }
    }
    kept.sort_by_key(|(order, _)| *order);
    let undone = Undone { changes: waiting.len(), megabytes: waiting.iter().map(|(_, change)| change.megabytes).sum() };
    let changed = kept.iter().filter_map(|(_, change)| cluster.find(&change.topic, change.partition)).collect();
    let left = Allowance { megabytes: megabytes_left, changes: moves_left, changed };
    (Plan { changes: kept.into_iter().map(|(_, change)| change).collect(), undone }, state, left)
}

/// Makes the change happen, or nothing of it if it would break a hard goal, unless the `whole` plan happens.
fn apply(state: &mut State<'_>, aims: &Aims, change: &Change, whole: bool) -> bool {
    let Some(actions) = actions(state, change) else { return false };
    let hard = if whole { 0 } else { aims.goals.iter().take_while(|goal| goal.is_hard()).count() };
    let mut taken: Vec<Action> = Vec::with_capacity(actions.len());
    for (action, way_back) in actions {
        let effect = state.effect(action);
        if aims.veto(hard, state, action, &effect).is_some() {
            taken.into_iter().rev().for_each(|way_back| state.apply(way_back));
            return false;
        }
        state.apply(action);
        taken.push(way_back);
    }
    true
}

/// The steps from the partition's present placement to the one the change asks for, each with the way back.
fn actions(state: &State<'_>, change: &Change) -> Option<Vec<(Action, Action)>> {
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
