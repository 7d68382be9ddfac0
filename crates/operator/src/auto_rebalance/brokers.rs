//! The arithmetic of brokers that come and go.
//!
//! | set | what it is |
//! |---|---|
//! | W, leaving | what the spec wants removed, of those that hold the broker role |
//! | R, removals | what has to be emptied: all of W while any of it holds data, or while it is being emptied |
//! | A, additions | what was added and has not got its data yet |
//!
//! R follows W whenever anyone looks, so a scale-down cannot be lost. A is remembered, because once a
//! broker is there nothing tells that it is new.

use std::collections::BTreeMap;

use evenkeel_api::kafka::AutoRebalanceMode;
use jiff::Timestamp;

use super::{
    generated::Generated,
    state::{Brokers, Recorded},
};

/// What was seen of the cluster's brokers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokersSeen {
    /// Brokers of the cluster, those about to start and those that may not be removed yet included.
    pub present: Brokers,
    /// Of these, those whose pods are Ready and can be reached through the services.
    pub ready: Brokers,
    /// Of the others, those that are on their way, and until when they are waited for.
    pub starting: BTreeMap<i32, Timestamp>,
    /// Brokers that this reconciliation adds.
    pub added: Brokers,
    /// W: brokers that the spec wants removed.
    pub leaving: Brokers,
    /// Whether brokers of W hold data.
    pub check: Check,
    /// Which, in words, if they do.
    pub left: Option<String>,
}

/// Whether brokers that are to be removed hold data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// None of them does, or nobody wanted to know (`skip-broker-scaledown-check`).
    #[default]
    Clear,
    /// At least one does.
    HasData,
    /// Kafka could not be asked. This keeps them, but is no reason to move anything.
    Unknown,
    /// At least one does, and it has nowhere to go: those that stay are fewer than its replicas. Whoever asks for this
    /// has to ask for something else first.
    Stuck,
}

/// What there is to do for brokers that come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    /// R.
    pub(super) removals: Brokers,
    /// A.
    pub(super) additions: Brokers,
}

/// The queue as it is now. `configured` says which modes are switched on.
pub(super) fn queue(
    recorded: &Recorded,
    seen: &BrokersSeen,
    configured: impl Fn(AutoRebalanceMode) -> bool,
    generated: &[Generated],
) -> Queue {
    let underway = |mode| generated.iter().find(|own| own.mode == mode && own.is_underway());
    let removals = match underway(AutoRebalanceMode::RemoveBrokers) {
        Some(_) if configured(AutoRebalanceMode::RemoveBrokers) => seen.leaving.clone(),
        // A drain whose mode was switched off goes on, but takes nothing new upon itself.
        Some(drain) => &seen.leaving & &drain.brokers,
        None if !configured(AutoRebalanceMode::RemoveBrokers) => Brokers::new(),
        None => match seen.check {
            Check::HasData => seen.leaving.clone(),
            Check::Clear | Check::Stuck => Brokers::new(),
            // Neither forgotten nor begun.
            Check::Unknown => &seen.leaving & &recorded.removals,
        },
    };
    let mut additions = recorded.additions.clone();
    // In a cluster that is all new there is no data to move.
    if !seen.added.is_superset(&seen.present) {
        additions.extend(&seen.added);
    }
    if !configured(AutoRebalanceMode::AddBrokers) {
        additions = match underway(AutoRebalanceMode::AddBrokers) {
            Some(running) => &additions & &running.brokers,
            None => Brokers::new(),
        };
    }
    additions = &(&additions & &seen.present) - &removals;
    Queue { removals, additions }
}

impl Queue {
    /// The brokers that data may be moved to: never one that is about to go, whether or not it
    /// already counts as one to empty.
    pub(super) fn targets(&self, seen: &BrokersSeen) -> Brokers {
        &self.additions - &seen.leaving
    }
}

/// Whether brokers that are empty must stay all the same, because the rebalance that emptied them has
/// not come to its end: without them the engine would look for brokers that no longer exist.
pub fn removal_is_held(generated: &[Generated], leaving: &Brokers) -> bool {
    generated.iter().any(|own| {
        own.mode == AutoRebalanceMode::RemoveBrokers && own.is_underway() && !own.brokers.is_disjoint(leaving)
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_api::rebalance::RebalanceState;

    use super::*;

    const REMOVE: AutoRebalanceMode = AutoRebalanceMode::RemoveBrokers;
    const ADD: AutoRebalanceMode = AutoRebalanceMode::AddBrokers;

    fn running(mode: AutoRebalanceMode, brokers: &[i32]) -> Generated {
        Generated {
            mode,
            brokers: brokers.iter().copied().collect(),
            state: RebalanceState::Rebalancing,
            ..Generated::default()
        }
    }

    fn seen(leaving: &[i32], check: Check) -> BrokersSeen {
        let present = (0..6).collect();
        BrokersSeen { present, leaving: leaving.iter().copied().collect(), check, ..BrokersSeen::default() }
    }

    #[test]
    fn brokers_to_empty_follow_the_spec() {
        let recorded = Recorded { removals: [3, 4].into(), ..Recorded::default() };
        for (leaving, check, drain, configured, expected) in [
            (&[3, 4][..], Check::HasData, None, true, &[3, 4][..]),
            (&[3, 4], Check::Clear, None, true, &[]),
            (&[3, 4], Check::Stuck, None, true, &[]),
            (&[4], Check::Unknown, None, true, &[4]),
            (&[5], Check::Unknown, None, true, &[]),
            (&[3, 4], Check::HasData, None, false, &[]),
            // While the drain is not at its end the check has no say.
            (&[3, 4], Check::Clear, Some(&[3, 4][..]), true, &[3, 4]),
            (&[3, 5], Check::Unknown, Some(&[3, 4]), true, &[3, 5]),
            (&[], Check::Clear, Some(&[3, 4]), true, &[]),
            // Its mode was switched off: it ends what it began.
            (&[3, 5], Check::HasData, Some(&[3, 4]), false, &[3]),
        ] {
            let generated: Vec<_> = drain.map(|brokers| running(REMOVE, brokers)).into_iter().collect();
            let found = queue(&recorded, &seen(leaving, check), |_| configured, &generated).removals;
            assert_eq!(found, expected.iter().copied().collect(), "{leaving:?} {check:?} {drain:?} {configured}");
        }
    }

    #[test]
    fn added_brokers_are_collected_and_never_those_to_empty() {
        let recorded = Recorded { additions: [2, 3, 9].into(), ..Recorded::default() };
        let mut now = seen(&[3], Check::HasData);
        now.added = [4].into();
        let found = queue(&recorded, &now, |_| true, &[]);
        assert_eq!(found.additions, [2, 4].into(), "9 is gone, 3 is to be emptied");

        now.check = Check::Unknown;
        let found = queue(&recorded, &now, |_| true, &[]);
        assert_eq!((found.additions.clone(), found.targets(&now)), ([2, 3, 4].into(), [2, 4].into()));
    }

    #[test]
    fn a_new_cluster_is_no_scale_up_and_a_new_pool_is_one() {
        let mut now = seen(&[], Check::Clear);
        now.added = now.present.clone();
        assert_eq!(queue(&Recorded::default(), &now, |_| true, &[]), Queue::default());
        now.added = [4, 5].into();
        assert_eq!(queue(&Recorded::default(), &now, |_| true, &[]).additions, [4, 5].into());
    }

    #[test]
    fn work_of_a_mode_that_was_switched_off_is_dropped_unless_it_runs() {
        let recorded = Recorded { additions: [4, 5].into(), ..Recorded::default() };
        let now = seen(&[], Check::Clear);
        assert_eq!(queue(&recorded, &now, |mode| mode != ADD, &[]).additions, [].into());
        assert_eq!(queue(&recorded, &now, |mode| mode != ADD, &[running(ADD, &[4])]).additions, [4].into());
    }

    #[test]
    fn empty_brokers_stay_until_their_drain_is_at_its_end() {
        let drain = running(REMOVE, &[3, 4]);
        assert!(removal_is_held(std::slice::from_ref(&drain), &[4].into()));
        assert!(!removal_is_held(std::slice::from_ref(&drain), &[5].into()));
        for end in [RebalanceState::Ready, RebalanceState::NotReady, RebalanceState::Stopped] {
            assert!(!removal_is_held(&[Generated { state: end, ..drain.clone() }], &[4].into()));
        }
        assert!(!removal_is_held(&[running(ADD, &[4])], &[4].into()));
    }
}
