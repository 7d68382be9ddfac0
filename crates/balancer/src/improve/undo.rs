//! Looking back: whatever turned out needless returns to where it was found.

use super::Search;
use crate::cluster::{Part, Slot};
use crate::state::Action;

impl Search<'_, '_> {
    /// Takes back moves and hand-overs without which no goal would be worse off, the largest first.
    pub(super) fn undo_needless(&mut self) {
        let mut moved: Vec<(f64, Slot)> = Vec::new();
        let mut led: Vec<Part> = Vec::new();
        for step in &self.steps {
            match step.action {
                Action::Move { slot, .. } => moved.push((0.0, slot)),
                Action::Swap { one, other } => moved.extend([(0.0, one), (0.0, other)]),
                Action::Lead { part, .. } => led.push(part),
                Action::LeadSwap { one, other } => {
                    led.extend([one, other].map(|slot| self.state.cluster.part_of(slot)));
                }
                Action::LeadTrade { one, two, back } => {
                    led.extend([one, two, back].map(|slot| self.state.cluster.part_of(slot)));
                }
            }
        }
        moved.retain_mut(|(megabytes, slot)| {
            *megabytes = self.state.cluster.megabytes(*slot);
            self.state.seat(*slot) != self.state.home(*slot)
        });
        super::by_worth(&mut moved);
        moved.dedup();
        for (_, slot) in moved {
            let to = self.state.home(slot);
            let part = self.state.cluster.part_of(slot);
            if self.rules.may_receive(&self.state, slot, self.state.leads(slot), to) && !self.state.holds(to, part) {
                self.undo(Action::Move { slot, to });
            }
        }
        led.sort_unstable();
        led.dedup();
        for part in led {
            let slot = self.state.first_leader(part);
            // A replica that has yet to be copied elsewhere is no better a leader than one that is in place.
            let in_place = self.state.seat(slot) == self.state.home(slot);
            if in_place && self.state.leader(part) != slot && self.rules.may_lead(&self.state, slot) {
                self.undo(Action::Lead { part, slot });
            }
        }
    }

    fn undo(&mut self, action: Action) {
        let effect = self.state.effect(action);
        if self.aims.veto(self.aims.goals.len(), &self.state, action, &effect).is_none() {
            self.state.apply(action);
            self.age += 1;
        }
    }
}
