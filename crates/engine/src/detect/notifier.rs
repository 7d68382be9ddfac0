//! What is done about an anomaly.

use std::collections::BTreeSet;

use super::{Anomaly, Finding, Kind, Millis};

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Mend it now.
    Fix,
    /// Look again then.
    Check(Millis),
    /// Let it be.
    Ignore,
}

/// Who may heal what, and how patient it is with brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healing {
    /// Kinds that are mended without asking.
    pub enabled: BTreeSet<Kind>,
    /// A broker is missed aloud after this.
    pub broker_alert_after: Millis,
    /// Its load goes elsewhere after this.
    pub broker_fix_after: Millis,
}

/// What to do, and whether people should hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What to do.
    pub verdict: Verdict,
    /// Whether to tell.
    pub alert: bool,
}

impl Healing {
    /// What to do about an anomaly at this moment.
    pub fn answer(&self, anomaly: &Anomaly, now: Millis) -> Answer {
        let may = self.enabled.contains(&anomaly.finding.kind());
        let mend = |fixable: bool| if may && fixable { Verdict::Fix } else { Verdict::Ignore };
        match &anomaly.finding {
            Finding::GoalViolation { unfixable, .. } => Answer { verdict: mend(unfixable.is_empty()), alert: true },
            Finding::DiskFailure { .. } => Answer { verdict: mend(true), alert: true },
            Finding::BrokerFailure { since, fixable } => {
                // The one that is gone longest decides: with its load go those of all others.
                let first = since.values().copied().min().unwrap_or(now);
                let (alert_at, fix_at) = (first + self.broker_alert_after, first + self.broker_fix_after);
                if now < alert_at {
                    Answer { verdict: Verdict::Check(alert_at), alert: false }
                } else if may && *fixable && now < fix_at {
                    Answer { verdict: Verdict::Check(fix_at), alert: true }
                } else {
                    Answer { verdict: mend(*fixable), alert: true }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::goal::Goal;
    use uuid::Uuid;

    use super::*;
    use crate::detect::Status;

    fn anomaly(finding: Finding) -> Anomaly {
        Anomaly { id: Uuid::nil(), detected: 0, finding, status: (Status::Detected, 0) }
    }

    fn healing(enabled: &[Kind]) -> Healing {
        Healing { enabled: enabled.iter().copied().collect(), broker_alert_after: 900, broker_fix_after: 1_800 }
    }

    #[test]
    fn nothing_is_mended_unless_it_may_be() {
        let disk = anomaly(Finding::DiskFailure { since: Default::default() });
        assert_eq!(healing(&[]).answer(&disk, 0), Answer { verdict: Verdict::Ignore, alert: true });
        assert_eq!(healing(&[Kind::DiskFailure]).answer(&disk, 0).verdict, Verdict::Fix);
        assert_eq!(healing(&[Kind::GoalViolation]).answer(&disk, 0).verdict, Verdict::Ignore);
    }

    #[test]
    fn one_goal_that_cannot_be_met_keeps_all_from_being_mended() {
        let violation = |unfixable: &[Goal]| {
            anomaly(Finding::GoalViolation { fixable: vec![Goal::DiskCapacity], unfixable: unfixable.to_vec() })
        };
        let healing = healing(&[Kind::GoalViolation]);
        assert_eq!(healing.answer(&violation(&[]), 0).verdict, Verdict::Fix);
        assert_eq!(healing.answer(&violation(&[Goal::RackAware]), 0).verdict, Verdict::Ignore);
    }

    #[test]
    fn brokers_are_given_time_to_come_back() {
        let gone = |fixable| anomaly(Finding::BrokerFailure { since: [(1, 100), (2, 500)].into(), fixable });
        let healing = healing(&[Kind::BrokerFailure]);
        let at = |now| healing.answer(&gone(true), now);
        assert_eq!(at(200), Answer { verdict: Verdict::Check(1_000), alert: false });
        assert_eq!(at(1_000), Answer { verdict: Verdict::Check(1_900), alert: true });
        assert_eq!(at(1_900), Answer { verdict: Verdict::Fix, alert: true });
        assert_eq!(healing.answer(&gone(false), 1_000), Answer { verdict: Verdict::Ignore, alert: true });
    }
}
