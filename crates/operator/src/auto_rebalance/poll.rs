//! Violated goals of a Cruise Control that cannot write them down itself: the operator asks for its
//! state and writes the same ConfigMap.
//!
//! Such an engine tells only what it once found, never that it finds nothing any more. So what it
//! found before the last rebalance ended, or too long ago, counts as over.

use std::collections::BTreeMap;

use evenkeel_rest::body::state::{Anomaly, GoalViolation};
use jiff::{SignedDuration, Timestamp};

use super::imbalance::{FIXABLE, UNFIXABLE, Violations};

/// How often an engine is asked for what it found.
const EVERY: SignedDuration = SignedDuration::from_secs(30);
/// After this many rounds of detection without finding it again, an anomaly is over.
const ROUNDS: i32 = 2;
/// As far as the clock of an engine may be ahead of ours: what it finds within this time after a rebalance may be what that has
/// mended. If it is not, it is found again.
const CLOCKS_DIFFER_BY: SignedDuration = SignedDuration::from_secs(5);

/// What an engine has told of the goals that it found violated.
#[derive(Clone, Debug, PartialEq)]
pub struct Polled {
    /// When it was asked.
    pub at: Timestamp,
    /// What it found, or why it did not tell.
    pub found: Result<Vec<Anomaly<GoalViolation>>, String>,
}

impl Polled {
    /// When it is to be asked again.
    pub(crate) fn due(&self) -> Timestamp {
        self.at.saturating_add(EVERY).unwrap_or(Timestamp::MAX)
    }
}

/// The map's data after this engine was asked, or None if nothing changes. Only to be asked while no
/// rebalance runs: what it finds then is about to be mended.
pub fn noted(
    data: Option<&BTreeMap<String, String>>,
    recent: &[Anomaly<GoalViolation>],
    last_completion: Option<Timestamp>,
    detection_interval: SignedDuration,
    now: Timestamp,
) -> Option<BTreeMap<String, String>> {
    let mut next = data.cloned().unwrap_or_default();
    next.entry(FIXABLE.to_owned()).or_default();
    let patience = detection_interval.saturating_mul(ROUNDS);
    let news_from = last_completion.map(|time| time.saturating_add(CLOCKS_DIFFER_BY).unwrap_or(Timestamp::MAX));
    let newest = recent.iter().max_by_key(|anomaly| anomaly.detection_ms).filter(|anomaly| {
        let Ok(found) = Timestamp::from_millisecond(anomaly.detection_ms) else { return false };
        news_from.is_none_or(|time| found > time) && now.duration_since(found) <= patience
    });
    match newest {
        Some(anomaly) if !anomaly.what.unfixable_violated_goals.is_empty() => {
            // Goals of both kinds at once make the whole of it unmendable: it is in both lists, each with its own.
            let mendable = &anomaly.what.fixable_violated_goals;
            let in_part = if mendable.is_empty() { String::new() } else { written(&anomaly.anomaly_id, mendable) };
            next.insert(FIXABLE.to_owned(), in_part);
            next.insert(UNFIXABLE.to_owned(), written(&anomaly.anomaly_id, &anomaly.what.unfixable_violated_goals));
        }
        Some(anomaly) => {
            next.remove(UNFIXABLE);
            let goals = &anomaly.what.fixable_violated_goals;
            let known = Violations::read(&next);
            if !goals.is_empty() && !known.fixable.iter().any(|other| other.id == anomaly.anomaly_id) {
                // What was found earlier and not dealt with is what the newest one tells, or is over.
                next.insert(FIXABLE.to_owned(), written(&anomaly.anomaly_id, goals));
            }
        }
        None => {
            next.remove(UNFIXABLE);
            next.insert(FIXABLE.to_owned(), String::new());
        }
    }
    (Some(&next) != data).then_some(next)
}

/// An anomaly as a list of one. Names come from outside, so they are quoted; JSON is YAML.
fn written<'a>(id: &str, goals: impl IntoIterator<Item = &'a String>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let goals: String = goals.into_iter().map(|goal| format!("    - {}\n", quoted(goal))).collect();
    format!("- {}:\n{goals}", quoted(id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn anomaly(id: &str, seconds: i64, fixable: &[&str], unfixable: &[&str]) -> Anomaly<GoalViolation> {
        serde_json::from_value(json!({
            "anomalyId": id, "detectionMs": seconds * 1_000, "statusUpdateMs": seconds * 1_000, "status": "IGNORED",
            "fixableViolatedGoals": fixable, "unfixableViolatedGoals": unfixable,
        }))
        .unwrap()
    }

    fn read(data: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
        let found = Violations::read(data);
        assert_eq!(found.trouble, [""; 0]);
        let ids = |list: &[super::super::imbalance::Anomaly]| list.iter().map(|anomaly| anomaly.id.clone()).collect();
        (ids(&found.fixable), ids(&found.unfixable))
    }

    fn ids(list: &[&str]) -> Vec<String> {
        list.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn the_newest_finding_counts() {
        let two = [anomaly("new", 20, &["A"], &[]), anomaly("old", 10, &["B"], &["C"])];
        let first = noted(None, &two, None, MINUTE, at(30)).unwrap();
        assert_eq!(read(&first), (ids(&["new"]), vec![]));
        assert_eq!(noted(Some(&first), &two, None, MINUTE, at(40)), None);
        let mixed = [anomaly("mixed", 50, &["A"], &["C"])];
        let second = noted(Some(&first), &mixed, None, MINUTE, at(60)).unwrap();
        assert_eq!(read(&second), (vec![], ids(&["mixed"])), "what was found before is over");
        let told = Violations::read(&second);
        assert_eq!((&told.unfixable[0].goals, &told.mixed), (&["C".to_owned()].into(), &["mixed".to_owned()].into()));
        assert_eq!(noted(Some(&second), &mixed, None, MINUTE, at(70)), None);
        let hopeless = noted(Some(&second), &[anomaly("worse", 80, &[], &["C"])], None, MINUTE, at(90)).unwrap();
        assert!(Violations::read(&hopeless).mixed.is_empty());
    }

    #[test]
    fn an_engine_whose_clock_is_ahead_makes_no_news_of_what_was_just_mended() {
        for (found, is_news) in [(20, false), (25, false), (26, true)] {
            let data = noted(None, &[anomaly("a", found, &["A"], &[])], Some(at(20)), MINUTE, at(30)).unwrap();
            assert_eq!(!read(&data).0.is_empty(), is_news, "{found}");
        }
    }

    #[test]
    fn what_was_found_before_the_last_rebalance_or_long_ago_is_over() {
        let found = [anomaly("a", 20, &["A"], &[])];
        for (completion, now) in [(Some(at(20)), 30), (None, 141)] {
            let data = noted(None, &found, completion, MINUTE, at(now)).unwrap();
            assert_eq!(read(&data), (vec![], vec![]), "{now}");
        }
        let data = noted(None, &found, Some(at(14)), MINUTE, at(140)).unwrap();
        assert_eq!(read(&data), (ids(&["a"]), vec![]));
        let unfixable = noted(None, &[anomaly("b", 20, &[], &["A"])], None, MINUTE, at(30)).unwrap();
        let later = noted(Some(&unfixable), &[], None, MINUTE, at(500)).unwrap();
        assert_eq!(read(&later), (vec![], vec![]));
        let fixable = noted(None, &[anomaly("c", 20, &["A"], &[])], None, MINUTE, at(30)).unwrap();
        let later = noted(Some(&fixable), &[], None, MINUTE, at(500)).unwrap();
        assert_eq!(read(&later), (vec![], vec![]), "it healed while nobody was allowed to mend it");
        let odd = [anomaly("odd", i64::MAX / 1_000, &["A"], &[])];
        assert_eq!(read(&noted(None, &odd, None, MINUTE, at(30)).unwrap()), (vec![], vec![]));
    }

    #[test]
    fn odd_names_stay_names() {
        let odd = [anomaly("a: [\"b\"]\n- c", 20, &["x: {y}", "#"], &[])];
        let data = noted(None, &odd, None, MINUTE, at(30)).unwrap();
        assert_eq!(read(&data).0, ids(&["a: [\"b\"]\n- c"]));
    }
}
