//! What an action touches: the replicas it carries, the leaders it makes, the partitions of both.

use crate::cluster::{Part, Seat, Slot};
use crate::state::{Action, State};

/// The replicas that the action carries, and where to.
pub(super) fn each_move(state: &State<'_>, action: Action) -> impl Iterator<Item = (Slot, Seat)> + use<> {
    match action {
        Action::Move { slot, to } => Few::one((slot, to)),
        Action::Swap { one, other } => Few::two((one, state.seat(other)), (other, state.seat(one))),
        Action::Lead { .. } | Action::LeadSwap { .. } | Action::LeadTrade { .. } => Few::NONE,
    }
    .iter()
}

/// At most three of something, without a heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Few<T>([Option<T>; 3]);

impl<T: Copy> Few<T> {
    const NONE: Few<T> = Few([None; 3]);

    fn one(item: T) -> Few<T> {
        Few([Some(item), None, None])
    }

    fn two(one: T, other: T) -> Few<T> {
        Few([Some(one), Some(other), None])
    }

    fn three(one: T, two: T, three: T) -> Few<T> {
        Few([Some(one), Some(two), Some(three)])
    }

    pub(super) fn iter(self) -> impl Iterator<Item = T> {
        self.0.into_iter().flatten()
    }
}

/// The replicas that an action makes leaders without moving them.
pub(super) fn crowned(action: Action) -> Few<Slot> {
    match action {
        Action::Lead { slot, .. } => Few::one(slot),
        Action::LeadSwap { one, other } => Few::two(one, other),
        Action::LeadTrade { one, two, back } => Few::three(one, two, back),
        Action::Move { .. } | Action::Swap { .. } => Few::NONE,
    }
}

/// The partitions an action touches, for whoever wants to look at them.
pub(crate) fn touched(state: &State<'_>, action: Action) -> impl Iterator<Item = Part> + use<> {
    let part = |slot| state.cluster.part_of(slot);
    match action {
        Action::Move { slot, .. } => Few::one(part(slot)),
        Action::Lead { part, .. } => Few::one(part),
        Action::Swap { one, other } | Action::LeadSwap { one, other } => Few::two(part(one), part(other)),
        Action::LeadTrade { one, two, back } => Few::three(part(one), part(two), part(back)),
    }
    .iter()
}

/// The leaderships that an action passes on: the topic, from whom, to whom.
pub(super) fn hand_overs<'a>(state: &'a State<'_>, action: Action) -> impl Iterator<Item = (u32, Seat, Seat)> + 'a {
    let topic = |slot: Slot| state.cluster.topic_of(state.cluster.part_of(slot));
    let old_leader = |slot: Slot| state.leader(state.cluster.part_of(slot));
    let crowned = crowned(action).iter();
    let handed = crowned.map(move |slot| (topic(slot), state.seat(old_leader(slot)), state.seat(slot)));
    let carried = each_move(state, action).filter(|(slot, _)| state.leads(*slot));
    handed.chain(carried.map(move |(slot, to)| (topic(slot), state.seat(slot), to)))
}

/// Whether every broker that had a replica of the partition has one.
pub(super) fn keeps_brokers(state: &State<'_>, part: Part) -> bool {
    state.cluster.slots(part).all(|slot| state.holds(state.home(slot), part))
}
