//! The ConfigMap `<cluster>-goal-violation-map`, in which the engine tells of violated goals.
//!
//! ```yaml
//! fixableAnomalies: |
//!   - 3f2c…:
//!       - RackAwareGoal
//! unfixableAnomalies: |      # only while there is such an anomaly
//!   - 77aa…:
//!       - DiskCapacityGoal
//! ```
//!
//! An anomaly that can be mended in part is in both lists, in each with its goals.
//!
//! Two write it, and any user can. So it is read leniently, never without bounds, and what cannot be
//! read counts as empty and is pointed out.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{Condition, Reason};

use super::settings::short_name;

/// Key of the anomalies that a rebalance can mend.
pub const FIXABLE: &str = "fixableAnomalies";
/// Key of those that it cannot.
pub const UNFIXABLE: &str = "unfixableAnomalies";

/// The engine writes at most this much; whatever is longer was written by somebody else.
const MOST_BYTES: usize = 256 * 1024;
/// A condition is for people: more goals than this are counted instead of named.
const MOST_NAMED: usize = 10;
/// No id, and no goal, is longer: both are told to people, and ids become part of a name.
const LONGEST_WORD: usize = 253;

/// Name of the map.
pub fn map_name(cluster: &str) -> String {
    format!("{cluster}-goal-violation-map")
}

/// Goals that were found violated together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anomaly {
    /// The engine's id of it.
    pub id: String,
    /// The goals, without their packages.
    pub goals: BTreeSet<String>,
}

/// What the map says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// Anomalies that a rebalance can mend, in the order in which they were found.
    pub fixable: Vec<Anomaly>,
    /// Anomalies that it cannot mend, at least not wholly, with the goals that it cannot.
    pub unfixable: Vec<Anomaly>,
    /// Those of them that it could mend in part.
    pub mixed: BTreeSet<String>,
    /// What could not be read, in words.
    pub trouble: Vec<String>,
}

impl Violations {
    /// What this data says.
    pub fn read(data: &BTreeMap<String, String>) -> Self {
        let mut trouble = Vec::new();
        let mut list = |key: &str| {
            list(data.get(key).map_or("", String::as_str)).unwrap_or_else(|wrong| {
                trouble.push(format!("{key} {wrong}"));
                Vec::new()
            })
        };
        let (all, unfixable) = (list(FIXABLE), list(UNFIXABLE));
        let (mut fixable, mut mixed) = (Vec::new(), BTreeSet::new());
        for anomaly in all {
            // What has goals of both kinds cannot be mended as a whole, so it is left alone as a whole.
            match unfixable.iter().any(|other| other.id == anomaly.id) {
                true => drop(mixed.insert(anomaly.id)),
                false => fixable.push(anomaly),
            }
        }
        Self { fixable, unfixable, mixed, trouble }
    }

    /// The id of the anomaly that a rebalance would be for.
    pub(super) fn first(&self) -> Option<&str> {
        self.fixable.first().map(|anomaly| anomaly.id.as_str())
    }

    /// All goals that a rebalance could mend.
    pub fn fixable_goals(&self) -> BTreeSet<String> {
        self.fixable.iter().flat_map(|anomaly| &anomaly.goals).cloned().collect()
    }

    /// What to tell the Kafka's owner.
    pub(super) fn warnings(&self, cluster: &str) -> Vec<Condition> {
        let unfixable = self.unfixable.iter().take(MOST_NAMED).map(|anomaly| {
            let goals: Vec<String> = anomaly.goals.iter().take(MOST_NAMED).map(|goal| format!("`{goal}`")).collect();
            let noun = if goals.len() == 1 { "goal" } else { "goals" };
            let text = format!("The detected {} has unfixable {} {noun}.", anomaly.id, goals.join(", "));
            Condition::warning(Reason::UnfixableViolatedGoal, text)
        });
        let trouble = self.trouble.iter().map(|wrong| {
            let text = format!("ConfigMap {}: {wrong}. It counts as empty", map_name(cluster));
            Condition::warning(Reason::InvalidResourceException, text)
        });
        unfixable.chain(trouble).collect()
    }
}

/// The data without the anomalies that can be mended, or without any. None if nothing changes.
pub fn emptied(data: &BTreeMap<String, String>, unfixable_too: bool) -> Option<BTreeMap<String, String>> {
    let mut next = data.clone();
    next.insert(FIXABLE.to_owned(), String::new());
    if unfixable_too {
        next.remove(UNFIXABLE);
    }
    let says_nothing = |text: &str| matches!(text.trim(), "" | "[]" | "null");
    let nothing_to_do = data.get(FIXABLE).is_none_or(|text| says_nothing(text))
        && (!unfixable_too || data.get(UNFIXABLE).is_none_or(|text| says_nothing(text)));
    (!nothing_to_do).then_some(next)
}

fn list(text: &str) -> Result<Vec<Anomaly>, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("is longer than {MOST_BYTES} bytes"));
    }
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    type Items = Option<Vec<BTreeMap<String, Option<Vec<String>>>>>;
    let items: Items =
        serde_saphyr::from_str(text).map_err(|_| "is no YAML list of anomalies with their goals".to_owned())?;
    let mut anomalies: Vec<Anomaly> = Vec::new();
    let mut known = BTreeSet::new();
    for (id, goals) in items.unwrap_or_default().into_iter().flatten() {
        if goals.iter().flatten().chain([&id]).any(|word| word.len() > LONGEST_WORD) {
            return Err(format!("has an id or a goal of more than {LONGEST_WORD} letters"));
        }
        if known.insert(id.clone()) {
            let goals = goals.unwrap_or_default().iter().map(|goal| short_name(goal).to_owned()).collect();
            anomalies.push(Anomaly { id, goals });
        }
    }
    Ok(anomalies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn anomaly(id: &str, goals: &[&str]) -> Anomaly {
        Anomaly { id: id.into(), goals: goals.iter().map(|goal| (*goal).to_owned()).collect() }
    }

    const TWO: &str = "- a1:\n    - x.RackAwareGoal\n    - DiskCapacityGoal\n- a2:\n    - CpuCapacityGoal\n";

    #[test]
    fn anomalies_are_read_in_order_and_by_short_names() {
        let found = Violations::read(&data(&[(FIXABLE, TWO)]));
        let expected = [anomaly("a1", &["DiskCapacityGoal", "RackAwareGoal"]), anomaly("a2", &["CpuCapacityGoal"])];
        assert_eq!((&found.fixable[..], found.unfixable.len(), found.trouble.len()), (&expected[..], 0, 0));
        assert_eq!(found.fixable_goals().len(), 3);
    }

    #[test]
    fn what_cannot_be_mended_as_a_whole_cannot_be_mended() {
        let found = Violations::read(&data(&[(FIXABLE, TWO), (UNFIXABLE, "- a2:\n    - RackAwareGoal\n")]));
        assert_eq!(found.fixable, [anomaly("a1", &["DiskCapacityGoal", "RackAwareGoal"])]);
        assert_eq!(found.unfixable, [anomaly("a2", &["RackAwareGoal"])], "and only what cannot is told");
        assert_eq!(found.mixed, ["a2".to_owned()].into());
        let one = Violations { unfixable: vec![anomaly("a3", &["DiskCapacityGoal"])], ..Violations::default() };
        assert_eq!(
            one.warnings("c")[0].message.as_deref(),
            Some("The detected a3 has unfixable `DiskCapacityGoal` goal.")
        );
    }

    #[test]
    fn emptiness_has_many_forms() {
        for empty in ["", "  \n", "[]", "null", "~"] {
            assert_eq!(
                Violations::read(&data(&[(FIXABLE, empty), (UNFIXABLE, empty)])),
                Violations::default(),
                "{empty:?}"
            );
        }
        assert_eq!(Violations::read(&data(&[])), Violations::default());
        assert_eq!(Violations::read(&data(&[(FIXABLE, "- a1:")])).fixable, [anomaly("a1", &[])]);
    }

    #[test]
    fn nonsense_counts_as_empty_and_is_pointed_out() {
        let huge = format!("- a1:\n    - {}\n", "x".repeat(MOST_BYTES));
        let bomb = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]";
        let (long_id, long_goal) = (format!("- {}: [A]", "y".repeat(300)), format!("- a1: [{}]", "Y".repeat(300)));
        let long = [huge.as_str(), &long_id, &long_goal];
        for nonsense in ["{", "a: b", "- 1", "- a1: b", "- [a]", "\t", bomb, "- a: {b: c}"].into_iter().chain(long) {
            let found = Violations::read(&data(&[(FIXABLE, nonsense)]));
            assert!(found.fixable.is_empty(), "{nonsense:.40}");
            if !nonsense.trim().is_empty() {
                assert_eq!(found.trouble.len(), 1, "{nonsense:.40}");
                let warning = &found.warnings("c")[0];
                assert!(
                    warning
                        .message
                        .as_ref()
                        .is_some_and(|text| text.len() < 300 && text.contains("c-goal-violation-map"))
                );
            }
        }
    }

    #[test]
    fn an_id_counts_once() {
        let found = Violations::read(&data(&[(FIXABLE, "[{x: [A]}, {x: [B]}, {y: [A]}]")]));
        assert_eq!(found.fixable, [anomaly("x", &["A"]), anomaly("y", &["A"])]);
    }

    #[test]
    fn emptying_keeps_what_others_wrote_and_changes_nothing_twice() {
        let full = data(&[(FIXABLE, TWO), (UNFIXABLE, "- a3:\n    - A\n"), ("note", "hi")]);
        let fixable = emptied(&full, false).unwrap();
        assert_eq!(fixable, data(&[(FIXABLE, ""), (UNFIXABLE, "- a3:\n    - A\n"), ("note", "hi")]));
        assert_eq!(emptied(&fixable, false), None);
        let all = emptied(&fixable, true).unwrap();
        assert_eq!(all, data(&[(FIXABLE, ""), ("note", "hi")]));
        assert_eq!(emptied(&all, true), None);
        assert!(emptied(&data(&[(FIXABLE, "{")]), false).is_some(), "nonsense is cleared away as well");
        assert_eq!(emptied(&data(&[]), true), None);
    }
}
