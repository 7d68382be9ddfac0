//! Why each partition changes: of all that was tried, what still holds, and between which brokers.
//!
//! A search takes detours. A replica passes a broker on its way, a hand-over is taken back when it turns out needless,
//! a replica steps into the place of another. None of that happens when the plan is carried out, so none of it is
//! told: a step is a reason only if what it did was not taken back, and the brokers are those of the change itself.

use crate::aims::{Aims, touched};
use crate::cluster::{Part, Seat, Slot};
use crate::improve::{Step, Why};
use crate::options::Operation;
use crate::plan::{Cause, Reason};
use crate::state::{Action, State};

/// From where to where a replica goes, and the slots whose steps brought that about.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) from: Seat,
    pub(crate) to: Seat,
    slots: Vec<Slot>,
}

/// Where replicas of the partition go. Where one took the place of another that went on, and weighs the same, the
/// broker between the two keeps what it has.
fn moves(state: &State<'_>, part: Part) -> Vec<Move> {
    let slots = || state.cluster.slots(part);
    let now_at = |seat: Seat| slots().find(|slot| state.seat(*slot) == seat);
    let arrives = |slot: &Slot| !slots().any(|other| state.home(other) == state.seat(*slot));
    let chain = |slot: Slot| {
        let mut slots = vec![slot];
        let mut from = state.home(slot);
        while let Some(successor) = now_at(from) {
            slots.push(successor);
            from = state.home(successor);
        }
        Move { from, to: state.seat(slot), slots }
    };
    slots().filter(arrives).map(chain).collect()
}

/// What of a partition goes from where to where.
#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) moves: Vec<Move>,
    /// Who led it and who is to, if that changes, or the list is written anew for its sake.
    pub(crate) leads: Option<(Seat, Seat)>,
}

impl Ways {
    pub(crate) fn of(state: &State<'_>, aims: &Aims, part: Part) -> Ways {
        let leads = (state.home(state.first_leader(part)), state.seat(state.leader(part)));
        let leads = Some(leads).filter(|(old, new)| old != new || aims.is_reordered(state, part));
        Ways { moves: moves(state, part), leads }
    }

    /// Between whom goes what a step did: the replica that it carried, or else leadership.
    fn ends(&self, carried: Option<Slot>) -> Option<(Seat, Seat)> {
        match carried {
            Some(slot) => self.moves.iter().find(|way| way.slots.contains(&slot)).map(|way| (way.from, way.to)),
            None => self.leads,
        }
    }
}

/// The steps behind every partition they touched.
#[derive(Debug)]
pub(crate) struct Reasons<'s> {
    state: &'s State<'s>,
    aims: &'s Aims,
    operation: &'s Operation,
    steps: &'s [Step],
    /// By partition, then in the order they were taken.
    held: Vec<Held>,
    /// In how many partitions each step still holds: those of exchanges in several.
    partitions: Vec<u8>,
}

/// A step that was not taken back, as far as one partition goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    part: Part,
    step: u32,
    /// The replica it carried; none if it handed leadership over.
    carried: Option<Slot>,
}

/// How important a change is: the place of its most important reason, then when it first became necessary.
pub(crate) type Order = (usize, u32);

impl<'s> Reasons<'s> {
    pub(crate) fn of(state: &'s State<'_>, aims: &'s Aims, operation: &'s Operation, steps: &'s [Step]) -> Reasons<'s> {
        let mut visits: Vec<(Part, u32)> = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            visits.extend(touched(state, step.action).map(|part| (part, index as u32)));
        }
        visits.sort_unstable();
        let mut held: Vec<Held> = Vec::with_capacity(visits.len());
        for group in visits.chunk_by(|one, other| one.0 == other.0) {
            hold(state, steps, group, &mut held);
        }
        let mut partitions = vec![0u8; steps.len()];
        for (index, one) in held.iter().enumerate() {
            let is_new = index == 0 || (held[index - 1].part, held[index - 1].step) != (one.part, one.step);
            partitions[one.step as usize] += u8::from(is_new);
        }
        Reasons { state, aims, operation, steps, held, partitions }
    }

    /// The partitions of which something may have changed, ascending.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = Part> + '_ {
        self.held.chunk_by(|one, other| one.part == other.part).map(|group| group[0].part)
    }

    /// Why the partition changes as it does, the most important reason first.
    pub(crate) fn why(&self, part: Part, ways: &Ways) -> (Order, Vec<Reason>) {
        let held = self.held_of(part);
        let mut found: Vec<(Order, Reason)> = Vec::new();
        held.iter().for_each(|one| self.add(&mut found, one, ways.ends(one.carried)));
        // Replicas changed places within the partition: nothing is copied, and yet another broker leads.
        if found.is_empty() {
            held.iter().for_each(|one| self.add(&mut found, one, ways.leads));
        }
        found.sort_by_key(|(order, _)| *order);
        let first_needed = found.iter().map(|(order, _)| order.1).min();
        let order = (found.first().map_or(0, |(order, _)| order.0), first_needed.unwrap_or_default());
        (order, found.into_iter().map(|(_, reason)| reason).collect())
    }

    /// What still holds of the steps that touched the partition.
    fn held_of(&self, part: Part) -> &[Held] {
        let start = self.held.partition_point(|held| held.part < part);
        &self.held[start..self.held.partition_point(|held| held.part <= part)]
    }

    /// The partition that goes the other way for it: by the same step, and in the plan itself. What the search had in mind
    /// is no exchange any more where one of the two went on to somebody else.
    fn partner(&self, held: &Held, (from, to): (Seat, Seat)) -> Option<Part> {
        if self.partitions[held.step as usize] < 2 {
            return None;
        }
        let comes_back = |part: &Part| {
            let ways = Ways::of(self.state, self.aims, *part);
            let by_the_same = |one: &&Held| one.step == held.step;
            self.held_of(*part).iter().filter(by_the_same).any(|one| ways.ends(one.carried) == Some((to, from)))
        };
        touched(self.state, self.steps[held.step as usize].action).filter(|part| *part != held.part).find(comes_back)
    }

    fn add(&self, found: &mut Vec<(Order, Reason)>, held: &Held, ends: Option<(Seat, Seat)>) {
        let Some((from, to)) = ends else { return };
        let step = &self.steps[held.step as usize];
        let exchange = self.partner(held, (from, to));
        // Of a longer way it is one step, between others.
        let levels = step.levels.filter(|_| (step.from, step.to) == (from, to));
        let id = |seat: Seat| self.state.cluster.brokers()[usize::from(seat)].id;
        let (from, to) = (id(from), id(to));
        let (place, cause) = match step.why {
            Why::Goal { goal, gain } => (goal + 1, Cause::Goal { goal: self.aims.goals[goal], gain }),
            Why::MustLeave => match self.operation {
                Operation::RemoveBrokers(ids) if ids.contains(&from) => (0, Cause::Removed),
                _ => (0, Cause::Offline),
            },
            Why::TakenBack => return,
        };
        let same = |(order, reason): &&mut (Order, Reason)| order.0 == place && (reason.from, reason.to) == (from, to);
        match (found.iter_mut().find(same), cause) {
            // Several steps of one goal on one way are one reason.
            (Some((_, known)), Cause::Goal { gain: more, .. }) => {
                if let Cause::Goal { gain, .. } = &mut known.cause {
                    *gain += more;
                }
                known.exchange = known.exchange.or(exchange);
                known.levels = known.levels.or(levels);
            }
            (Some(_), _) => {}
            (None, cause) => found.push(((place, held.step), Reason { cause, from, to, exchange, levels })),
        }
    }
}

/// Adds the steps of one partition that still hold: whatever was done to a replica before it was back at home is void,
/// and so are hand-overs before the partition was led as it was found.
fn hold(state: &State<'_>, steps: &[Step], visits: &[(Part, u32)], held: &mut Vec<Held>) {
    let start = held.len();
    for &(part, index) in visits {
        let step = &steps[index as usize];
        for (slot, to) in carried(step).into_iter().flatten().filter(|(slot, _)| state.cluster.part_of(*slot) == part) {
            if to == state.home(slot) {
                retain_from(held, start, |one| one.carried != Some(slot));
            } else {
                held.push(Held { part, step: index, carried: Some(slot) });
            }
        }
        for slot in crowned(step.action).into_iter().flatten().filter(|slot| state.cluster.part_of(*slot) == part) {
            if slot == state.first_leader(part) {
                retain_from(held, start, |one| one.carried.is_some());
            } else {
                held.push(Held { part, step: index, carried: None });
            }
        }
    }
}

fn retain_from(held: &mut Vec<Held>, start: usize, keeps: impl Fn(&Held) -> bool) {
    let kept: Vec<Held> = held.drain(start..).filter(|one| keeps(one)).collect();
    held.extend(kept);
}

/// The replicas that the step carried, and where to.
fn carried(step: &Step) -> [Option<(Slot, Seat)>; 2] {
    match step.action {
        Action::Move { slot, to } => [Some((slot, to)), None],
        Action::Swap { one, other } => [Some((one, step.to)), Some((other, step.from))],
        Action::Lead { .. } | Action::LeadSwap { .. } | Action::LeadTrade { .. } => [None; 2],
    }
}

/// The replicas that the action made leaders where they were.
fn crowned(action: Action) -> [Option<Slot>; 3] {
    match action {
        Action::Lead { slot, .. } => [Some(slot), None, None],
        Action::LeadSwap { one, other } => [Some(one), Some(other), None],
        Action::LeadTrade { one, two, back } => [Some(one), Some(two), Some(back)],
        Action::Move { .. } | Action::Swap { .. } => [None; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::fixture::Small;
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::plan::{Change, changes};
    use crate::rules::Rules;
    use crate::settings::Settings;

    const GOALS: [Goal; 2] = [Goal::DiskUsageDistribution, Goal::ReplicaDistribution];

    /// T-0 is on brokers 0 and 1 (slots 0 and 1), T-1 on 2 and 3 (slots 2 and 3); broker 4 is empty.
    fn changed(steps: &[(Why, Action)]) -> Vec<Change> {
        let mut small = Small::in_racks("abcde");
        small.partition("T", 0, &[0, 1], 10.0);
        small.partition("T", 1, &[2, 3], 10.0);
        changed_in(&small.cluster(), steps)
    }

    fn changed_in(cluster: &Cluster, steps: &[(Why, Action)]) -> Vec<Change> {
        let request = Request::rebalance(&GOALS);
        let rules = Rules::compile(cluster, &request).unwrap();
        let mut state = State::found(cluster);
        let aims = Aims::compile(&state, &GOALS, &Settings::default(), &rules);
        let mut taken = Vec::new();
        for (why, action) in steps {
            let effect = state.effect(*action);
            state.apply(*action);
            taken.push(Step { why: *why, action: *action, from: effect.from, to: effect.to, levels: None });
        }
        changes(&state, &aims, &request.operation, &taken).into_iter().map(|(_, change)| change).collect()
    }

    fn goal(goal: usize, gain: f64) -> Why {
        Why::Goal { goal, gain }
    }

    /// The goals that are served, between whom, and the place of the partition that goes the other way.
    fn told(change: &Change) -> Vec<(&'static str, i32, i32, Option<Part>)> {
        change.reasons.iter().map(|why| (why.name(), why.from.0, why.to.0, why.exchange)).collect()
    }

    #[test]
    fn what_was_taken_back_is_no_reason() {
        let there = Action::Move { slot: 0, to: 2 };
        let back = Action::Move { slot: 0, to: 0 };
        let steps = [(goal(0, 0.5), there), (Why::TakenBack, back), (goal(1, 0.25), Action::Move { slot: 0, to: 4 })];
        assert_eq!(told(&changed(&steps)[0]), [("ReplicaDistributionGoal", 0, 4, None)]);
        let hand_over = [
            (goal(0, 0.5), Action::Lead { part: 0, slot: 1 }),
            (Why::TakenBack, Action::Lead { part: 0, slot: 0 }),
            (goal(1, 0.5), Action::Move { slot: 1, to: 4 }),
        ];
        assert_eq!(told(&changed(&hand_over)[0]), [("ReplicaDistributionGoal", 1, 4, None)]);
    }

    #[test]
    fn what_serves_a_lesser_goal_in_the_end_comes_after_what_serves_a_greater() {
        let steps = [
            (goal(0, 0.5), Action::Move { slot: 0, to: 2 }),
            (goal(0, 0.5), Action::Move { slot: 2, to: 4 }),
            (Why::TakenBack, Action::Move { slot: 0, to: 0 }),
            (goal(1, 0.5), Action::Move { slot: 0, to: 3 }),
        ];
        let partitions: Vec<i32> = changed(&steps).iter().map(|change| change.partition).collect();
        assert_eq!(partitions, [1, 0]);
    }

    #[test]
    fn brokers_passed_on_the_way_are_not_told() {
        let steps = [(goal(1, 0.5), Action::Move { slot: 0, to: 2 }), (goal(0, 0.25), Action::Move { slot: 0, to: 4 })];
        let change = &changed(&steps)[0];
        assert_eq!(told(change), [("DiskUsageDistributionGoal", 0, 4, None), ("ReplicaDistributionGoal", 0, 4, None)]);
        let again = [(goal(0, 0.5), Action::Move { slot: 0, to: 2 }), (goal(0, 0.25), Action::Move { slot: 0, to: 4 })];
        let cause = Cause::Goal { goal: Goal::DiskUsageDistribution, gain: 0.75 };
        assert_eq!(changed(&again)[0].reasons.iter().map(|why| why.cause).collect::<Vec<_>>(), [cause]);
    }

    #[test]
    fn a_replica_that_steps_into_the_place_of_another_is_told_as_one_move() {
        // 1 makes room for 0: broker 1 keeps what it has.
        let steps = [(goal(0, 0.5), Action::Move { slot: 1, to: 4 }), (goal(1, 0.5), Action::Move { slot: 0, to: 1 })];
        let change = &changed(&steps)[0];
        let ends = |(from, to): &(crate::cluster::BrokerId, crate::cluster::BrokerId)| (from.0, to.0);
        assert_eq!(change.moves.iter().map(ends).collect::<Vec<_>>(), [(0, 4)]);
        assert!(told(change).iter().all(|(_, from, to, _)| (*from, *to) == (0, 4)), "{:?}", told(change));
    }

    #[test]
    fn both_halves_of_an_exchange_say_so_each_in_its_own_direction() {
        let swap = (goal(0, 0.5), Action::Swap { one: 0, other: 2 });
        let both = changed(&[swap]);
        assert_eq!(told(&both[0]), [("DiskUsageDistributionGoal", 0, 2, Some(1))]);
        assert_eq!(told(&both[1]), [("DiskUsageDistributionGoal", 2, 0, Some(0))]);
        let half = changed(&[swap, (Why::TakenBack, Action::Move { slot: 2, to: 2 })]);
        assert_eq!(half.len(), 1);
        assert_eq!(told(&half[0]), [("DiskUsageDistributionGoal", 0, 2, None)]);
    }

    /// One goes on to broker 4: what comes to broker 0 for it is not there in the plan.
    #[test]
    fn whoever_went_on_to_another_broker_is_in_exchange_with_nobody() {
        let swap = (goal(0, 0.5), Action::Swap { one: 0, other: 2 });
        let gone_on = changed(&[swap, (goal(1, 0.5), Action::Move { slot: 2, to: 4 })]);
        assert_eq!(told(&gone_on[0]), [("DiskUsageDistributionGoal", 0, 2, None)]);
        assert!(told(&gone_on[1]).iter().all(|(.., partner)| partner.is_none()), "{:?}", told(&gone_on[1]));
    }

    /// Three partitions of brokers 0 and 1, of which two are led by 0 and one by 1 until all three are handed over.
    #[test]
    fn whoever_goes_the_same_way_is_not_taken_for_the_partner() {
        let mut small = Small::in_racks("ab");
        (0..2).for_each(|number| small.partition("T", number, &[0, 1], 10.0));
        small.partition("T", 2, &[1, 0], 10.0);
        let cluster = small.cluster();
        let trade = Action::LeadTrade { one: 1, two: 3, back: 5 };
        let partners: Vec<Option<Part>> =
            changed_in(&cluster, &[(goal(0, 0.5), trade)]).iter().map(|change| change.reasons[0].exchange).collect();
        assert_eq!(partners, [Some(2), Some(2), Some(0)]);
    }
}
