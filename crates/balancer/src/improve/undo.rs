//! Looking back: whatever turned out needless returns to where it was found.

use super::fence::Quick;
use super::{Search, Why};
use crate::aims::NOISE;
use crate::cluster::{Part, Seat, Slot};
use crate::state::Action;
use crate::threads;

/// Partitions that are worth a thread of their own.
const PIECE: Part = 2_048;

/// Rounds of one look back. What one takes back may let others return, but each finds far less than the one before.
const ROUNDS: usize = 6;

impl Search<'_, '_> {
    /// Takes back moves and hand-overs without which no goal would be worse off, the largest first.
    ///
    /// Most of what was moved had to move. So all of it is looked at in the order it lies in memory, and only what
    /// could return as things stand is sorted and tried; then again what lies on brokers that this has touched.
    pub(super) fn undo_needless(&mut self) {
        let mut stale = vec![true; self.seats().len()];
        for _ in 0..ROUNDS {
            let before = self.age;
            let mut touched = vec![false; self.seats().len()];
            for action in self.needless(&stale) {
                if self.is_needless(action) {
                    let (from, to) = self.take(Why::TakenBack, action);
                    touched[usize::from(from)] = true;
                    touched[usize::from(to)] = true;
                }
            }
            if self.age == before {
                return;
            }
            stale = touched;
        }
    }

    /// What could be taken back as things stand and touches a broker that is `stale`: moves, the largest first, then
    /// hand-overs.
    fn needless(&self, stale: &[bool]) -> Vec<Action> {
        let cluster = self.state.cluster;
        let parts = cluster.partition_count() as Part;
        let pieces = threads::split(self.threads, parts, PIECE);
        let is_stale = |seat: Seat| stale[usize::from(seat)];
        let found = threads::map(self.threads, &pieces, |parts| {
            let (mut moves, mut leads): (Vec<(f64, Slot)>, Vec<Action>) = Default::default();
            for part in parts.clone() {
                for slot in cluster.slots(part) {
                    let (seat, to) = (self.state.seat(slot), self.state.home(slot));
                    let returns = seat != to && (is_stale(seat) || is_stale(to));
                    if returns && self.is_needless(Action::Move { slot, to }) {
                        moves.push((cluster.megabytes(slot), slot));
                    }
                }
                let (leader, slot) = (self.state.leader(part), self.state.first_leader(part));
                let action = Action::Lead { part, slot };
                let returns = leader != slot && (is_stale(self.state.seat(leader)) || is_stale(self.state.seat(slot)));
                if returns && self.is_needless(action) {
                    leads.push(action);
                }
            }
            (moves, leads)
        });
        let (moves, leads): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let mut moves: Vec<(f64, Slot)> = moves.into_iter().flatten().collect();
        super::by_worth(&mut moves);
        let back = |(_, slot)| Action::Move { slot, to: self.state.home(slot) };
        moves.into_iter().map(back).chain(leads.into_iter().flatten()).collect()
    }

    /// Whether the action takes something back without which no goal would be worse off.
    fn is_needless(&self, action: Action) -> bool {
        let state = &self.state;
        let may = match action {
            Action::Move { slot, to } => {
                state.seat(slot) != to
                    && !state.holds(to, state.cluster.part_of(slot))
                    && self.rules.may_receive(state, slot, state.leads(slot), to)
            }
            // A replica that has yet to be copied elsewhere is no better a leader than one that is in place.
            Action::Lead { part, slot } => state.leader(part) != slot && self.rules.may_lead_again(state, slot),
            Action::Swap { .. } | Action::LeadSwap { .. } | Action::LeadTrade { .. } => false,
        };
        may && self.harms_nobody(action)
    }

    /// Whether no goal misses by more after the action. Most of what was moved had to move, and mostly it is enough to ask
    /// the goal whose band a broker would leave.
    fn harms_nobody(&self, action: Action) -> bool {
        let (aims, state, goals) = (&self.aims, &self.state, self.aims.goals.len());
        let effect = state.effect(action);
        if self.starves_leaders(&effect) {
            return false;
        }
        match self.fences_of_all.look(state, &effect) {
            Quick::Within => aims.veto_but_bands(goals, state, action, &effect).is_none(),
            Quick::Leaves(goal) if aims.change(goal, state, action, &effect) > NOISE => false,
            Quick::Leaves(_) | Quick::Unsure => aims.veto(goals, state, action, &effect).is_none(),
        }
    }
}
