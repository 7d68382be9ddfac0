//! The ConfigMap in which an operator finds violated goals: two YAML lists of anomalies.
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
//! Two write it: the engine adds, and takes back what a later round does not find any more; the operator empties. What somebody else wrote is read leniently;
//! what cannot be read counts as empty.

use std::collections::BTreeMap;

use evenkeel_balancer::goal::Goal;
use uuid::Uuid;

/// Key of those that a rebalance can mend.
pub const FIXABLE: &str = "fixableAnomalies";
/// Key of those that it cannot.
pub const UNFIXABLE: &str = "unfixableAnomalies";
/// Kubernetes takes objects of 1 MiB; this leaves room for everything else in it.
const MOST_BYTES: usize = 256 * 1024;

/// The map's data after a round of detection that found these goals violated, or none. `None` if
/// nothing changes.
pub fn after(
    data: &BTreeMap<String, String>,
    id: Uuid,
    fixable: &[Goal],
    unfixable: &[Goal],
) -> Option<BTreeMap<String, String>> {
    let mut next = data.clone();
    let (listed, hopeless) = (read(data.get(FIXABLE)), read(data.get(UNFIXABLE)));
    // The same goals again, round after round, are one anomaly until somebody has dealt with it.
    let id = match hopeless.as_slice() {
        [(known, goals)] if !unfixable.is_empty() && *goals == names(unfixable) => known.clone(),
        _ => id.to_string(),
    };
    // What could not be mended in this round is all that is known: earlier ones are over, with what could be of them.
    match unfixable {
        [] => drop(next.remove(UNFIXABLE)),
        _ => {
            let one = [(id.clone(), names(unfixable))];
            if hopeless != one {
                next.insert(UNFIXABLE.to_owned(), written(&one));
            }
        }
    }
    let is_over = |known: &String| *known != id && hopeless.iter().any(|(other, _)| other == known);
    let mut entries: Vec<Entry> = listed.iter().filter(|(known, _)| !is_over(known)).cloned().collect();
    match (fixable, unfixable) {
        // It healed while nobody was allowed to mend it: a rebalance for it would come too late.
        ([], []) => entries.clear(),
        (_, []) => {
            if !entries.iter().any(|(known, goals)| *known == id || *goals == names(fixable)) {
                entries.push((id, names(fixable)));
            }
        }
        // Goals of both kinds at once make the whole of it unmendable: under its id they are in both lists.
        _ => {
            let part = (id, names(fixable));
            if fixable.is_empty() || !entries.contains(&part) {
                entries.retain(|(known, _)| *known != part.0);
                entries.extend((!fixable.is_empty()).then_some(part));
            }
        }
    }
    drop_oldest(&mut entries);
    if entries != listed {
        next.insert(FIXABLE.to_owned(), written(&entries));
    }
    next.entry(FIXABLE.to_owned()).or_default();
    (next != *data).then_some(next)
}

/// As many of the oldest as it takes for the others to have room.
fn drop_oldest(entries: &mut Vec<Entry>) {
    let mut bytes = written(entries).len();
    let oldest = entries.iter().take_while(|entry| {
        let too_much = bytes > MOST_BYTES;
        bytes -= written(std::slice::from_ref(entry)).len();
        too_much
    });
    let too_old = oldest.count();
    entries.drain(..too_old);
}

type Entry = (String, Vec<String>);

fn names(goals: &[Goal]) -> Vec<String> {
    goals.iter().map(|goal| goal.name().to_owned()).collect()
}

fn written(entries: &[Entry]) -> String {
    let mut yaml = String::new();
    for (id, goals) in entries {
        yaml.push_str(&format!("- {id}:\n"));
        goals.iter().for_each(|goal| yaml.push_str(&format!("    - {goal}\n")));
    }
    yaml
}

fn read(yaml: Option<&String>) -> Vec<Entry> {
    let text = yaml.map_or("", String::as_str);
    let lists: Vec<BTreeMap<String, Option<Vec<String>>>> = serde_saphyr::from_str(text).unwrap_or_default();
    let mut entries: Vec<Entry> = Vec::new();
    for (id, goals) in lists.into_iter().flatten() {
        if !entries.iter().any(|(known, _)| *known == id) {
            entries.push((id, goals.unwrap_or_default()));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    const CPU: &str = "- 00000000-0000-0000-0000-000000000002:\n    - CpuCapacityGoal\n";
    const ONE: &str = "- 00000000-0000-0000-0000-000000000001:\n    - RackAwareGoal\n    - DiskCapacityGoal\n";

    #[test]
    fn violations_are_added_once() {
        let goals = [Goal::RackAware, Goal::DiskCapacity];
        let first = after(&data(&[]), id(1), &goals, &[]).unwrap();
        assert_eq!(first, data(&[(FIXABLE, ONE)]));
        assert_eq!(after(&first, id(2), &goals, &[]), None, "the same goals again");
        let second = after(&first, id(2), &[Goal::CpuCapacity], &[]).unwrap();
        let two = format!("{ONE}- 00000000-0000-0000-0000-000000000002:\n    - CpuCapacityGoal\n");
        assert_eq!(second, data(&[(FIXABLE, &two)]));
    }

    #[test]
    fn what_cannot_be_mended_is_the_latest_only_and_goes_when_it_is_over() {
        let before = data(&[(FIXABLE, ONE)]);
        let hopeless = after(&before, id(2), &[], &[Goal::CpuCapacity]).unwrap();
        assert_eq!(hopeless, data(&[(FIXABLE, ONE), (UNFIXABLE, CPU)]));
        assert_eq!(after(&hopeless, id(3), &[], &[Goal::CpuCapacity]), None);
        let other = after(&hopeless, id(4), &[], &[Goal::DiskCapacity]).unwrap();
        assert!(other[UNFIXABLE].contains("00000004"), "{other:?}");
        assert_eq!(after(&hopeless, id(5), &[Goal::RackAware, Goal::DiskCapacity], &[]).unwrap(), before);
    }

    #[test]
    fn what_can_be_mended_in_part_is_in_both_lists_each_with_its_goals() {
        let before = data(&[(FIXABLE, ONE)]);
        let mendable = [Goal::RackAware];
        let mixed = after(&before, id(2), &mendable, &[Goal::CpuCapacity]).unwrap();
        let part = format!("{ONE}- 00000000-0000-0000-0000-000000000002:\n    - RackAwareGoal\n");
        assert_eq!(mixed, data(&[(FIXABLE, &part), (UNFIXABLE, CPU)]));
        assert_eq!(after(&mixed, id(3), &mendable, &[Goal::CpuCapacity]), None, "the same goals again");

        let emptied = data(&[(FIXABLE, ""), (UNFIXABLE, CPU)]);
        let found = after(&emptied, id(4), &mendable, &[Goal::CpuCapacity]).unwrap();
        let two = "- 00000000-0000-0000-0000-000000000002:\n    - RackAwareGoal\n";
        assert_eq!(found, data(&[(FIXABLE, two), (UNFIXABLE, CPU)]), "it is still the same one");
        let more = after(&mixed, id(5), &[Goal::DiskCapacity], &[Goal::CpuCapacity]).unwrap();
        assert_eq!(more[FIXABLE], format!("{ONE}- 00000000-0000-0000-0000-000000000002:\n    - DiskCapacityGoal\n"));

        assert_eq!(after(&mixed, id(6), &[], &[Goal::CpuCapacity]).unwrap(), data(&[(FIXABLE, ONE), (UNFIXABLE, CPU)]));
        let other = after(&mixed, id(7), &mendable, &[Goal::DiskCapacity]).unwrap();
        assert!(other.values().all(|list| !list.contains("00000002") && list.contains("00000007")), "{other:?}");
        assert_eq!(after(&mixed, id(8), &[Goal::RackAware, Goal::DiskCapacity], &[]).unwrap(), before, "it is over");
        assert_eq!(after(&mixed, id(9), &[], &[]).unwrap(), data(&[(FIXABLE, "")]));
    }

    #[test]
    fn a_round_without_findings_leaves_an_empty_map() {
        assert_eq!(after(&data(&[]), id(1), &[], &[]).unwrap(), data(&[(FIXABLE, "")]));
        for kept in ["", "[]"] {
            assert_eq!(after(&data(&[(FIXABLE, kept)]), id(1), &[], &[]), None);
        }
        assert_eq!(after(&data(&[(FIXABLE, ONE)]), id(1), &[], &[]).unwrap(), data(&[(FIXABLE, "")]), "it is over");
    }

    #[test]
    fn what_somebody_else_wrote_is_read_leniently() {
        let goals = [Goal::RackAware, Goal::DiskCapacity];
        for unreadable in ["", "[]", "null", "- 1", "{", "a: b"] {
            assert_eq!(
                after(&data(&[(FIXABLE, unreadable)]), id(1), &goals, &[]).unwrap()[FIXABLE],
                ONE,
                "{unreadable}"
            );
        }
        let foreign =
            data(&[(FIXABLE, "[{x: [RackAwareGoal, DiskCapacityGoal]}, {x: [CpuCapacityGoal]}]"), ("note", "hi")]);
        assert_eq!(after(&foreign, id(1), &goals, &[]), None);
    }

    #[test]
    fn the_map_never_outgrows_its_place() {
        let many: String = (0..5_000).map(|number| format!("- {}:\n    - Goal{number}\n", id(number))).collect();
        let next = after(&data(&[(FIXABLE, &many)]), id(9_999), &[Goal::RackAware], &[]).unwrap();
        assert!(next[FIXABLE].len() <= MOST_BYTES);
        assert!(next[FIXABLE].ends_with(&format!("- {}:\n    - RackAwareGoal\n", id(9_999))));
    }
}
