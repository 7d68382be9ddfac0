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
    let mut taken: Vec<Action> = Vec::with_capacity(actions.len());
    for (action, way_back) in actions {
        let effect = state.effect(action);
        if !whole && aims.hard_veto(state, action, &effect).is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::BrokerId;
    use crate::fixture::Small;
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::plan::unmoved;
    use crate::rules::Rules;
    use crate::settings::Settings;

    /// Brokers hold 800 MB: 100 and 750 may change places, but neither can go first.
    #[test]
    fn no_hard_goal_is_broken_by_a_part_of_a_plan_wherever_it_is_in_the_list() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0], 100.0);
        small.partition("u", 0, &[1], 750.0);
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let change = |part: Part, from: i32, to: i32| {
            let (from, to) = (BrokerId(from), BrokerId(to));
            Change { new_replicas: vec![to], moves: vec![(from, to)], new_leader: to, ..unmoved(&cluster, part) }
        };
        for (goals, kept) in [
            (&[Goal::ReplicaDistribution, Goal::DiskCapacity][..], 0),
            (&[Goal::DiskCapacity, Goal::ReplicaDistribution], 0),
            (&[Goal::ReplicaDistribution], 1),
        ] {
            let aims = Aims::compile(&State::found(&cluster), goals, &Settings::default(), &rules);
            let budget = Budget { moves: Some(1), megabytes: None };
            let (plan, ..) = cut(&cluster, &aims, vec![change(0, 0, 1), change(1, 1, 0)], budget);
            assert_eq!(plan.changes.len(), kept, "{goals:?}");
        }
    }
}
