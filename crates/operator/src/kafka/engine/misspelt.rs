//! Goals that nobody knows. An engine does not start with one, and its log is the last place where anybody looks.

use evenkeel_api::Reason;

use super::goals::{GOALS, PACKAGE};
use crate::auto_rebalance::settings::{DETECTION_GOALS, short_name};
use crate::kafka::{problem::Remark, properties::Properties};

/// Settings that list goals.
const LISTS: [&str; 5] = ["goals", "default.goals", "hard.goals", "intra.broker.goals", DETECTION_GOALS];

/// Goals that no list has unless it is asked for; the last three are LinkedIn's alone.
const FURTHER: [&str; 6] = [
    "PreferredLeaderElectionGoal",
    "IntraBrokerDiskCapacityGoal",
    "IntraBrokerDiskUsageDistributionGoal",
    "BrokerSetAwareGoal",
    "KafkaAssignerDiskUsageDistributionGoal",
    "KafkaAssignerEvenRackAwareGoal",
];

/// Nothing that is longer was meant to be one of them.
const LONGEST: usize = 100;

/// A warning for each setting that names goals which nobody knows. `ours`: the engine is ours. Another one may have goals of
/// its own, in packages of their own.
pub(super) fn remarks(settings: &Properties, ours: bool) -> Vec<Remark> {
    let unknown = |name: &&str| !known().any(|goal| goal.eq_ignore_ascii_case(short_name(name)));
    let may_be_its_own = |name: &str| !ours && name.contains('.') && !name.starts_with(PACKAGE);
    let said = LISTS.into_iter().filter_map(|key| {
        let listed = settings.get(key)?.split(',').map(str::trim).filter(|name| !name.is_empty());
        let wrong = listed.filter(unknown).filter(|name| !may_be_its_own(name));
        let each: Vec<String> = wrong.map(|name| told(short_name(name))).collect();
        (!each.is_empty()).then(|| {
            let text = format!(
                "spec.cruiseControl.config: {key}: there is no goal {}. Cruise Control does not start with it",
                each.join(", ")
            );
            Remark::of_kafka(Reason::InvalidResourceException, text)
        })
    });
    said.collect()
}

fn known() -> impl Iterator<Item = &'static str> {
    GOALS.into_iter().chain(FURTHER)
}

fn told(name: &str) -> String {
    match nearest(name) {
        Some(goal) => format!("`{name}` (did you mean `{goal}`?)"),
        None => format!("`{name}`"),
    }
}

/// The goal that was likeliest meant: the shortest of those with all of the name in theirs, or the one that is fewest letters
/// away, if these are few. That it is called a goal says nothing of which.
fn nearest(name: &str) -> Option<&'static str> {
    let stem = |name: &str| name.to_ascii_lowercase().trim_end_matches("goal").to_owned();
    let asked = Some(stem(name)).filter(|asked| !asked.is_empty() && asked.len() <= LONGEST)?;
    let with_all_of_it = known().filter(|goal| stem(goal).contains(&asked)).min_by_key(|goal| goal.len());
    with_all_of_it.or_else(|| {
        let (letters, goal) = known().map(|goal| (distance(&stem(goal), &asked), goal)).min()?;
        (letters * 3 <= asked.len()).then_some(goal)
    })
}

/// How many letters must be typed, dropped or changed to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kafka::testing::harbour;

    fn warned(key: &str, goals: &str, ours: bool) -> Vec<String> {
        let settings = Properties::from([(key.to_owned(), goals.to_owned())]);
        remarks(&settings, ours).into_iter().filter_map(|remark| remark.condition.message).collect()
    }

    #[test]
    fn the_nearest_goal_is_named_if_one_is_near() {
        for (typed, meant) in [
            ("RakcAwareGoal", Some("RackAwareGoal")),
            ("DiskUsageGoal", Some("DiskUsageDistributionGoal")),
            ("leaderreplicadistributiongaol", Some("LeaderReplicaDistributionGoal")),
            ("IntraBrokerDiskUsage", Some("IntraBrokerDiskUsageDistributionGoal")),
            ("Goal", None),
            ("Sunshine", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
        assert_eq!(nearest(&"RackAware".repeat(1_000)), None);
    }

    #[test]
    fn a_misspelt_goal_is_said_where_it_stands() {
        assert_eq!(
            warned("default.goals", "RakcAwareGoal, RackAwareGoal,Sunshine,,", true),
            [
                "spec.cruiseControl.config: default.goals: there is no goal `RakcAwareGoal` (did you mean `RackAwareGoal`?), \
                 `Sunshine`. Cruise Control does not start with it"
            ]
        );
        let all = [GOALS.as_slice(), &FURTHER].concat().join(",");
        for key in LISTS {
            assert_eq!(warned(key, &all, true), [""; 0]);
            assert_eq!(warned(key, &format!("{PACKAGE}RackAware"), false).len(), 1, "{key}");
        }
        assert_eq!(warned("num.partition.metrics.windows", "RakcAwareGoal", true), [""; 0]);
    }

    #[test]
    fn another_engine_may_have_goals_of_its_own() {
        assert_eq!(warned("goals", "com.example.GreenGoal", false), [""; 0]);
        assert_eq!(warned("goals", "com.example.GreenGoal", true).len(), 1, "ours has none");
        assert_eq!(warned("goals", &format!("{PACKAGE}GreenGoal"), false).len(), 1);
    }

    #[test]
    fn the_cluster_is_made_all_the_same() {
        let goals = json!("RackAwareGoal,DiskUsageGoal");
        let said = harbour().with("/spec/cruiseControl/config/goals", goals).warned().join("\n");
        assert!(said.contains("did you mean `DiskUsageDistributionGoal`?"), "{said}");
    }
}
