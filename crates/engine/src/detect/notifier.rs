//! What is done about an anomaly, and whether people hear of it.

use std::collections::BTreeMap;

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

/// How anomalies are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Nothing is done and nobody is told.
    Indifferent,
    /// Violated goals are told, and nothing is done: somebody else decides on a rebalance.
    Tells,
    /// All is told, and what may be is mended.
    Heals,
}

/// How anomalies are taken, and how patient it is with brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healing {
    /// How anomalies are taken.
    pub manner: Manner,
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
    /// When it is mended, if it may be.
    pub mends_at: Millis,
}

impl Healing {
    /// What to do about an anomaly at this moment. `may` says whether its kind is mended without asking.
    pub fn answer(&self, anomaly: &Anomaly, may: bool, now: Millis) -> Answer {
        let ignore = |alert: bool| Answer { verdict: Verdict::Ignore, alert, mends_at: now };
        match self.manner {
            Manner::Indifferent => return ignore(false),
            Manner::Tells => return ignore(anomaly.finding.kind() == Kind::GoalViolation),
            Manner::Heals => {}
        }
        let mend = |fixable: bool| if may && fixable { Verdict::Fix } else { Verdict::Ignore };
        match &anomaly.finding {
            Finding::GoalViolation { unfixable, .. } => {
                Answer { verdict: mend(unfixable.is_empty()), alert: true, mends_at: now }
            }
            Finding::DiskFailure { .. } => Answer { verdict: mend(true), alert: true, mends_at: now },
            Finding::BrokerFailure { since, fixable } => {
                // The one that is gone longest decides: with its load go those of all others.
                let first = since.values().copied().min().unwrap_or(now);
                let (alert_at, mends_at) = (first + self.broker_alert_after, first + self.broker_fix_after);
                let verdict = if now < alert_at {
                    Verdict::Check(alert_at)
                } else if now < mends_at {
                    Verdict::Check(mends_at)
                } else {
                    mend(*fixable)
                };
                Answer { verdict, alert: now >= alert_at, mends_at }
            }
        }
    }
}

/// Which missing brokers people have heard of: one that stays away is no news each time it is looked for.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// By broker and by whether its load was about to go elsewhere: since when it was missing.
    brokers: BTreeMap<(i32, bool), Millis>,
}

impl Told {
    /// Whether the finding is news, which from now on it is not.
    pub fn is_news(&mut self, finding: &Finding, fixing: bool) -> bool {
        let Finding::BrokerFailure { since, .. } = finding else { return true };
        let mut news = false;
        for (broker, at) in since {
            news |= self.brokers.insert((*broker, fixing), *at) != Some(*at);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::goal::Goal;
    use uuid::Uuid;

    use super::*;
    use crate::detect::Status;

    fn anomaly(finding: Finding) -> Anomaly {
        Anomaly { id: Uuid::nil(), detected: 0, finding, status: (Status::Detected, 0), plan: None }
    }

    fn healing(manner: Manner) -> Healing {
        Healing { manner, broker_alert_after: 900, broker_fix_after: 1_800 }
    }

    fn gone(fixable: bool) -> Finding {
        Finding::BrokerFailure { since: [(1, 100), (2, 500)].into(), fixable }
    }

    fn violated(unfixable: &[Goal]) -> Finding {
        Finding::GoalViolation { fixable: vec![Goal::DiskCapacity], unfixable: unfixable.to_vec() }
    }

    #[test]
    fn nothing_is_mended_unless_it_may_be() {
        let disk = anomaly(Finding::DiskFailure { since: Default::default() });
        let healing = healing(Manner::Heals);
        let answer = |may| healing.answer(&disk, may, 7);
        assert_eq!(answer(false), Answer { verdict: Verdict::Ignore, alert: true, mends_at: 7 });
        assert_eq!(answer(true), Answer { verdict: Verdict::Fix, alert: true, mends_at: 7 });
    }

    #[test]
    fn one_goal_that_cannot_be_met_keeps_all_from_being_mended() {
        let healing = healing(Manner::Heals);
        let verdict = |unfixable: &[Goal]| healing.answer(&anomaly(violated(unfixable)), true, 0).verdict;
        assert_eq!(verdict(&[]), Verdict::Fix);
        assert_eq!(verdict(&[Goal::RackAware]), Verdict::Ignore);
    }

    #[test]
    fn brokers_are_given_time_to_come_back() {
        let healing = healing(Manner::Heals);
        let at = |now, may, fixable| {
            let answer = healing.answer(&anomaly(gone(fixable)), may, now);
            assert_eq!(answer.mends_at, 1_900);
            (answer.verdict, answer.alert)
        };
        assert_eq!(at(200, true, true), (Verdict::Check(1_000), false));
        assert_eq!(at(1_000, true, true), (Verdict::Check(1_900), true));
        assert_eq!(at(1_000, false, true), (Verdict::Check(1_900), true));
        assert_eq!(at(1_900, true, true), (Verdict::Fix, true));
        assert_eq!(at(1_900, false, true), (Verdict::Ignore, true));
        assert_eq!(at(1_900, true, false), (Verdict::Ignore, true), "too many");
    }

    #[test]
    fn who_only_tells_tells_of_goals_and_who_is_indifferent_of_nothing() {
        let answer = |manner, finding| {
            let answer = healing(manner).answer(&anomaly(finding), true, 1_000_000);
            (answer.verdict, answer.alert)
        };
        assert_eq!(answer(Manner::Tells, violated(&[])), (Verdict::Ignore, true));
        assert_eq!(answer(Manner::Tells, gone(true)), (Verdict::Ignore, false));
        assert_eq!(answer(Manner::Indifferent, violated(&[])), (Verdict::Ignore, false));
    }

    #[test]
    fn a_missing_broker_is_news_once_and_again_when_its_load_goes() {
        let mut told = Told::default();
        assert!(told.is_news(&gone(true), false));
        assert!(!told.is_news(&gone(true), false));
        assert!(told.is_news(&gone(true), true));
        let again = Finding::BrokerFailure { since: [(2, 900)].into(), fixable: true };
        assert!(told.is_news(&again, false), "it came back and went again");
        assert!(told.is_news(&violated(&[]), false) && told.is_news(&violated(&[]), false));
    }
}
