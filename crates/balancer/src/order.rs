//! An order of the changes in which every beginning of the plan is safe.
//!
//! Changes come in the order of their importance, and one may need the room that a less important one makes: carried out
//! as far as the first alone, the plan would break a hard goal. So such a change waits for those that make room for it.
//! Hardly any plan has one, and that is seen without trying: if no broker could rise above a hard limit even if it got
//! all that is to come before anything left it, any order will do.

use crate::aims::{Aim, Aims};
use crate::budget::actions;
use crate::cluster::{Part, Seat};
use crate::gauges::{Levels, plus};
use crate::plan::Change;
use crate::state::State;

/// The changes from the placement as found, when brokers carried `found`, to `after`, each of them where no hard goal
/// misses by more for its happening, as far as there is such an order.
pub(crate) fn safe(found: &[Levels], after: &State<'_>, aims: &Aims, changes: Vec<Change>) -> Vec<Change> {
    if is_any_safe(found, after, aims) {
        return changes;
    }
    let mut state = State::found(after.cluster);
    let (mut ordered, mut waiting): (Vec<Change>, _) = (Vec::with_capacity(changes.len()), changes);
    loop {
        let before = ordered.len();
        let mut passed_over = Vec::new();
        for change in waiting {
            let list = if happens(&mut state, aims, &change) { &mut ordered } else { &mut passed_over };
            list.push(change);
        }
        waiting = passed_over;
        if waiting.is_empty() || ordered.len() == before {
            break;
        }
    }
    // Those that only an exchange at one moment could save: nobody can carry that out.
    ordered.extend(waiting);
    ordered
}

/// Whether no hard goal could be harmed, in whatever order the changes happen. Goals about racks look at partitions one
/// by one, so no other change matters to them.
fn is_any_safe(found: &[Levels], after: &State<'_>, aims: &Aims) -> bool {
    let (cluster, mut most) = (after.cluster, found.to_vec());
    for part in 0..cluster.partition_count() as Part {
        let (was, is) = (after.first_leader(part), after.leader(part));
        for slot in cluster.slots(part) {
            let (home, seat) = (after.home(slot), after.seat(slot));
            let leads_more = slot == is && (slot != was || home != seat);
            if home == seat && !leads_more {
                continue;
            }
            let gain = if home == seat { after.leadership(slot) } else { after.weight(slot) };
            let row = &mut most[usize::from(seat)];
            *row = plus(*row, gain);
        }
    }
    aims.goals.iter().zip(&aims.aims).filter(|(goal, _)| goal.is_hard()).all(|(_, aim)| match *aim {
        Aim::Band { gauge, band, .. } => (0..found.len() as Seat).all(|seat| {
            let (level, at_most) = (found[usize::from(seat)][gauge as usize], most[usize::from(seat)][gauge as usize]);
            !aims.is_shared(band, seat) && (at_most <= aims.limit(band, seat).high || at_most <= level)
        }),
        Aim::TopicLeaders => (0..cluster.topics().len() as u32).all(|topic| aims.min_leaders(topic) == 0),
        _ => true,
    })
}

/// Makes the change happen, unless a hard goal would miss by more.
fn happens(state: &mut State<'_>, aims: &Aims, change: &Change) -> bool {
    let Some(actions) = actions(state, change) else { return false };
    let mut way_back = Vec::new();
    for (action, back) in actions {
        if aims.hard_veto(state, action, &state.effect(action)).is_some() {
            way_back.into_iter().rev().for_each(|back| state.apply(back));
            return false;
        }
        state.apply(action);
        way_back.push(back);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerId, Cluster};
    use crate::fixture::{Dice, Small, crooked, planned};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::plan::unmoved;
    use crate::rules::Rules;
    use crate::settings::Settings;

    /// By how much each goal misses after each beginning of the plan, from nothing of it to all.
    fn beginnings(cluster: &Cluster, goals: &[Goal]) -> Vec<Vec<f64>> {
        let (request, settings) = (Request::rebalance(goals), Settings::default());
        let Ok(outcome) = planned(cluster, &request, &settings) else { return Vec::new() };
        let rules = Rules::compile(cluster, &request).unwrap();
        let mut state = State::found(cluster);
        let aims = Aims::compile(&state, goals, &settings, &rules);
        let misses = |state: &State<'_>| (0..goals.len()).map(|goal| aims.miss(goal, state, &rules)).collect();
        let mut all: Vec<Vec<f64>> = vec![misses(&state)];
        for change in &outcome.plan.changes {
            actions(&state, change).unwrap().into_iter().for_each(|(action, _)| state.apply(action));
            all.push(misses(&state));
        }
        all
    }

    /// The change of a partition with one replica.
    fn moved(cluster: &Cluster, topic: &str, to: i32) -> Change {
        let change = unmoved(cluster, cluster.find(topic, 0).unwrap());
        let (from, to) = (change.old_leader, BrokerId(to));
        Change { new_replicas: vec![to], moves: vec![(from, to)], new_leader: to, ..change }
    }

    #[test]
    fn a_change_waits_for_the_room_that_it_needs() {
        let mut small = Small::in_racks("abc");
        small.partition("t", 0, &[0], 100.0);
        small.partition("u", 0, &[1], 750.0);
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let mut state = State::found(&cluster);
        let found = state.all_levels().to_vec();
        let aims = Aims::compile(&state, &[Goal::DiskCapacity], &Settings::default(), &rules);
        // Broker 1 may hold 800 MB.
        let changes = vec![moved(&cluster, "t", 1), moved(&cluster, "u", 2)];
        for change in &changes {
            actions(&state, change).unwrap().into_iter().for_each(|(action, _)| state.apply(action));
        }
        let ordered = safe(&found, &state, &aims, changes);
        assert_eq!(ordered.iter().map(|change| change.topic.as_str()).collect::<Vec<_>>(), ["u", "t"]);
    }

    #[test]
    fn no_beginning_of_a_plan_breaks_a_hard_goal() {
        let (mut plans, mut seen) = (0, 0);
        for seed in 0..600 {
            let mut dice = Dice(seed);
            let cluster = crooked(&mut dice);
            let all = beginnings(&cluster, &Goal::DEFAULT);
            plans += usize::from(all.len() > 1);
            for misses in &all {
                for (goal, (before, after)) in Goal::DEFAULT.iter().zip(all[0].iter().zip(misses)) {
                    seen += 1;
                    assert!(!goal.is_hard() || *after <= *before + 1e-6, "seed {seed}: {goal} {before} -> {after}");
                }
            }
        }
        assert!(plans > 200 && seen > 10_000, "{plans} plans, {seen} looks");
    }

    /// Three brokers of nine hold most of everything.
    #[test]
    fn the_further_a_plan_is_carried_out_the_less_is_missed() {
        let mut dice = Dice(7);
        let mut small = Small::in_racks("abcabcabc");
        for number in 0..600 {
            let first = if dice.below(2) == 0 { dice.below(3) } else { dice.below(9) } as i32;
            let load = crate::cluster::Load {
                cpu: dice.below(10) as f32 / 100.0,
                nw_in: dice.below(10) as f32 / 10.0,
                nw_out: dice.below(10) as f32 / 10.0,
                disk: 1.0 + dice.below(10) as f32 / 10.0,
            };
            small.loaded(&format!("t{}", number % 40), number, &[first, (first + 1 + dice.below(8) as i32) % 9], load);
        }
        let all = beginnings(&small.cluster(), &Goal::DEFAULT);
        let sum = |misses: &Vec<f64>| misses.iter().sum::<f64>();
        let quarters: Vec<f64> = (0..=4).map(|quarter| sum(&all[(all.len() - 1) * quarter / 4])).collect();
        assert!(all.len() > 100 && quarters.windows(2).all(|pair| pair[1] < pair[0]), "{quarters:?}");
    }
}
