//! What does good only together, and is a little more than the budget affords.
//!
//! Changes were chosen one after the other, each for what those before it had left to do. Taken one by one from the cluster as
//! it was found, many do no good until others have happened that they are waiting for, which wait for them. All of them
//! together do: that is the plan. So all of them happen, and then what can best be spared is taken back until the budget
//! affords what is left.

use super::{Purse, apply_unchecked, megabytes};
use crate::aims::Aims;
use crate::net::{Account, Net};
use crate::plan::Change;
use crate::state::State;

/// Changes that are looked at: each costs a look at two brokers or more and all goals. Of a plan of which more is left out
/// there is no telling which ones are tied together.
const LOOKED_AT: usize = 4_096;
/// Changes of which it is asked, one by one, whether all is still well without them: each time all goals are looked at on
/// all brokers.
const TAKEN_BACK: usize = 1_024;
/// Times that the changes are gone through for an order in which each is safe.
const PASSES: usize = 16;

/// What is taken of it and what is not.
pub(super) struct Rest {
    /// In the order in which they happen.
    pub(super) taken: Vec<Vec<Change>>,
    pub(super) left_out: Vec<Vec<Change>>,
}

/// Leaves out as little as can be of what waits: of the least important goals, what they would miss least. Takes nothing if
/// what is left would break a hard goal, at the end or on the way there, or do no good.
pub(super) fn spare_least(state: &mut State<'_>, aims: &Aims, waiting: Vec<Vec<Change>>, purse: Purse) -> Rest {
    let none = |waiting: Vec<Vec<Change>>| Rest { taken: Vec::new(), left_out: waiting };
    // Units of more than one are few.
    let too_many = waiting.len().saturating_sub(purse.changes);
    if waiting.is_empty() || purse.changes == 0 || waiting.len() > LOOKED_AT || too_many > TAKEN_BACK {
        return none(waiting);
    }
    let all: Vec<Change> = waiting.iter().flatten().cloned().collect();
    let mut account = Account::open(state, aims, &all);
    if !waiting.iter().all(|unit| apply_unchecked(state, aims, unit, &mut account)) {
        // The placement is not one that they begin with, which cannot be: each was left where it was found.
        return none(waiting);
    }
    let kept = without_the_least(state, aims, &waiting, purse, &mut account);
    // Back to where the rest begins, to find the way from there.
    let order = kept.and_then(|kept| {
        for (unit, _) in waiting.iter().zip(&kept).filter(|(_, kept)| **kept) {
            apply_unchecked(state, aims, &back(unit), &mut account);
        }
        in_safe_order(state, aims, &waiting, &kept)
    });
    let Some(order) = order else { return none(waiting) };
    let mut units: Vec<Option<Vec<Change>>> = waiting.into_iter().map(Some).collect();
    let taken = order.into_iter().filter_map(|at| units[at].take()).collect();
    Rest { taken, left_out: units.into_iter().flatten().collect() }
}

/// Which of the units, all of which have happened, are kept so that the budget affords them; the others are taken back. If
/// that cannot be done well, all are taken back.
fn without_the_least(
    state: &mut State<'_>,
    aims: &Aims,
    waiting: &[Vec<Change>],
    purse: Purse,
    account: &mut Account,
) -> Option<Vec<bool>> {
    let mut kept = vec![true; waiting.len()];
    let (mut changes, mut cost) =
        (waiting.iter().map(Vec::len).sum::<usize>(), waiting.iter().map(megabytes).sum::<f64>());
    let mut left = TAKEN_BACK;
    for at in by_harm(state, aims, waiting) {
        let (too_many, too_much) = (changes > purse.changes, cost > purse.megabytes);
        let own = megabytes(&waiting[at]);
        if left == 0 || !(too_many || too_much) {
            break;
        }
        // Where bytes are short, what copies none is not in the way.
        if !too_many && own == 0.0 {
            continue;
        }
        left -= 1;
        apply_unchecked(state, aims, &back(&waiting[at]), account);
        let difference = account.difference(state, aims);
        if difference.breaks || !difference.does_good {
            apply_unchecked(state, aims, &waiting[at], account);
            continue;
        }
        kept[at] = false;
        changes -= waiting[at].len();
        cost = waiting.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(unit, _)| megabytes(unit)).sum();
    }
    if changes > 0 && changes <= purse.changes && cost <= purse.megabytes {
        return Some(kept);
    }
    for (unit, _) in waiting.iter().zip(&kept).filter(|(_, kept)| **kept) {
        apply_unchecked(state, aims, &back(unit), account);
    }
    None
}

/// The units by what would be worse without them: what only harms goals of low priority comes first, of that what harms
/// them least, and of equals the one that comes last in the plan.
fn by_harm(state: &mut State<'_>, aims: &Aims, waiting: &[Vec<Change>]) -> Vec<usize> {
    let mut harms: Vec<(usize, f64, usize)> = Vec::with_capacity(waiting.len());
    for (at, unit) in waiting.iter().enumerate() {
        let Some(net) = Net::of(state, aims, &back(unit)) else { continue };
        let must_happen = unit.iter().flat_map(|change| &change.reasons).any(|why| why.goal().is_none());
        let (goal, harm) = net.outcome.harm.unwrap_or((aims.goals.len(), 0.0));
        harms.push((if must_happen { 0 } else { goal + 1 }, harm, at));
        net.take_back(state);
    }
    harms.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.total_cmp(&other.1)).then(other.2.cmp(&one.2)));
    harms.into_iter().map(|(.., at)| at).collect()
}

/// The kept ones, none of which has happened yet, in an order in which none breaks a hard goal. They happen; if there is no
/// such order, nothing does.
fn in_safe_order(state: &mut State<'_>, aims: &Aims, waiting: &[Vec<Change>], kept: &[bool]) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..waiting.len()).filter(|at| kept[*at]).collect();
    let mut happened: Vec<(usize, Net)> = Vec::with_capacity(left.len());
    for _ in 0..PASSES {
        left.retain(|at| match Net::of(state, aims, &waiting[*at]) {
            Some(net) if !net.outcome.breaks => {
                happened.push((*at, net));
                false
            }
            Some(net) => {
                net.take_back(state);
                true
            }
            None => true,
        });
    }
    if left.is_empty() {
        return Some(happened.into_iter().map(|(at, _)| at).collect());
    }
    happened.into_iter().rev().for_each(|(_, net)| net.take_back(state));
    None
}

/// The same the other way.
fn back(unit: &[Change]) -> Vec<Change> {
    unit.iter().map(Change::reversed).collect()
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Dice, lopsided, planned};
    use crate::options::{Budget, Request};
    use crate::settings::Settings;

    /// Many changes of these plans do no good but together with others.
    #[test]
    fn a_budget_that_is_a_little_too_small_leaves_a_little_out() {
        let (mut asked, mut left_out) = (0, 0);
        for seed in 0..8 {
            let cluster = lopsided(&mut Dice(seed));
            let whole = planned(&cluster, &Request::default(), &Settings::default()).unwrap();
            let (changes, megabytes) = (whole.plan.changes.len(), whole.plan.megabytes());
            for spared in [1, 2, 10] {
                let budget = Budget { moves: Some(changes - spared), megabytes: None };
                let part = planned(&cluster, &Request { budget, ..Request::default() }, &Settings::default()).unwrap();
                assert_eq!(part.plan.changes.len() + part.plan.undone.changes, changes);
                (asked, left_out) = (asked + spared, left_out + part.plan.undone.changes);
            }
            let budget = Budget { moves: None, megabytes: Some(megabytes * 0.99) };
            let part = planned(&cluster, &Request { budget, ..Request::default() }, &Settings::default()).unwrap();
            let share = part.plan.megabytes() / megabytes;
            assert!((0.9..=0.99).contains(&share), "seed {seed}: {share} of the data");
        }
        assert!(left_out <= 2 * asked, "{left_out} are left out of {asked} that are too many");
    }
}
