//! Offline replicas: they must move, so the only question is where to.

use super::{Search, Why};
use crate::aims::Aims;
use crate::cluster::Slot;
use crate::state::{Action, Effect, State};

impl Search<'_, '_> {
    /// Moves every offline replica that nobody is replacing yet to the broker it strains least, largest first, keeping to the goals
    /// as long as that can be: all of them, else only the hard ones.
    pub(super) fn evacuate(&mut self) {
        self.replace_offline_leaders();
        let mut offline: Vec<(f64, Slot)> =
            self.rules.stranded(&self.state).map(|slot| (self.state.cluster.megabytes(slot), slot)).collect();
        super::by_worth(&mut offline);
        for (_, slot) in offline {
            let _ = self.evacuate_one(slot, |aims, state, action, effect| {
                aims.veto(aims.goals.len(), state, action, effect).is_none()
            }) || self
                .evacuate_one(slot, |aims, state, action, effect| aims.hard_veto(state, action, effect).is_none())
                || self.evacuate_one(slot, |_, _, _, _| true);
        }
        // Where not every replica finds a place, one that did may lead.
        self.replace_offline_leaders();
    }

    fn evacuate_one(&mut self, slot: Slot, allows: impl Fn(&Aims, &State<'_>, Action, &Effect) -> bool) -> bool {
        let weight = self.state.weight(slot);
        let mut ranked = std::mem::take(&mut self.scratch);
        self.rank_seats(slot, &weight, self.seats(), false, &mut ranked);
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let chosen = ranked
            .iter()
            .map(|(_, to)| Action::Move { slot, to: *to })
            .find(|action| allows(&self.aims, &self.state, *action, &self.state.effect(*action)));
        self.scratch = ranked;
        if let Some(action) = chosen {
            self.take(Why::MustLeave, action);
        }
        chosen.is_some()
    }
}
