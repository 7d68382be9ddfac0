//! When automatic rebalancing or Cruise Control goes: nothing is left behind.

use super::{Decision, TrackerWrite};
use crate::auto_rebalance::{
    decide::draft::{Draft, removal},
    generated::{Phase, StopReason},
    observe::{Engine, Observation},
};

/// The feature is off: what runs is stopped, and then everything goes.
pub(super) fn wind_down(seen: &Observation) -> Decision {
    let mut draft = Draft::begin(seen);
    for own in &seen.generated {
        // What only others keep is theirs to end.
        if own.lingers() {
            continue;
        }
        // Without an engine nothing runs that could be stopped; one that is paused may stay paused.
        if own.phase() == Phase::Underway && seen.engine != Engine::Absent {
            draft.stop(own, StopReason::SwitchedOff);
        } else {
            draft.acts.push(removal(own));
        }
    }
    draft.tend_violations();
    let forget = seen.tracker.is_some() && draft.is_alone();
    Decision {
        tracker: if forget { TrackerWrite::Delete } else { TrackerWrite::Keep },
        acts: draft.acts,
        ..Decision::default()
    }
}
