//! What Cruise Control made of the same clusters, and whether ours is worse in anything.
//!
//! Its numbers are of its default mode with its 16 default goals, measured once: a cold JVM, two cores.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{Measured, Report, count};

/// What Cruise Control needed and moved, and what it left.
pub(super) struct Original {
    /// Seconds of CPU.
    pub(super) cpu: &'static str,
    /// MB moved, by the size of the replicas that moved.
    pub(super) own: f64,
    /// The same as it reports it: by the size of the partition's leader, in whole MB.
    pub(super) by_leader: f64,
    /// The goals left violated, without their last syllable.
    pub(super) violated: &'static [&'static str],
}

const LEADERS: &str = "LeaderReplicaDistribution";
const LEADER_IN: &str = "LeaderBytesInDistribution";
const TOPICS: &str = "TopicReplicaDistribution";
const CPU: &str = "CpuUsageDistribution";

pub(super) const A: Original =
    Original { cpu: "10–14 s", own: 336_521.0, by_leader: 310_479.0, violated: &[LEADERS, LEADER_IN] };
pub(super) const AR: Original =
    Original { cpu: "10–13 s", own: 140_514.0, by_leader: 118_032.0, violated: &[LEADERS, LEADER_IN] };
pub(super) const B: Original =
    Original { cpu: "16–25 s", own: 570_858.0, by_leader: 537_597.0, violated: &[TOPICS, LEADERS, LEADER_IN] };
pub(super) const F: Original =
    Original { cpu: "10–11 s", own: 599_650.0, by_leader: 605_609.0, violated: &[TOPICS, LEADERS, LEADER_IN] };
pub(super) const G: Original = Original {
    cpu: "9–13 s",
    own: 118_899.0,
    by_leader: 104_609.0,
    violated: &["NetworkOutboundUsageDistribution", CPU, LEADERS, LEADER_IN],
};
pub(super) const MR: Original = Original {
    cpu: "38–45 s",
    own: 206_499.0,
    by_leader: 158_116.0,
    violated: &["ReplicaDistribution", CPU, TOPICS, LEADERS, LEADER_IN],
};
pub(super) const C: Original =
    Original { cpu: "134–160 s", own: 3_431_033.0, by_leader: 3_402_746.0, violated: &[TOPICS, LEADERS, LEADER_IN] };
pub(super) const D: Original = Original {
    cpu: "319–454 s",
    own: 3_457_264.0,
    by_leader: 3_346_726.0,
    violated: &[CPU, TOPICS, LEADERS, LEADER_IN],
};

/// In what the plan is worse than the original's, in words; empty as it should be.
pub(super) fn worse(original: &Original, report: &Report, by_leader: f64) -> Vec<String> {
    let mut found = Vec::new();
    let own = report.summary.data_to_move;
    for (what, ours, theirs) in [("moved", own, original.own), ("by leaders' size", by_leader, original.by_leader)] {
        // Theirs is told in whole MB.
        if ours > theirs + 0.5 {
            found.push(format!("{} MB {what}, Cruise Control {}", count(ours), count(theirs)));
        }
    }
    let left = report.violated().into_iter().filter(|goal| !original.violated.contains(goal));
    found.extend(left.map(|goal| format!("{goal} is left violated, not so by Cruise Control")));
    found
}

/// What the plan moves as Cruise Control counts it: for every replica that moves, the whole MB of the partition's leader.
/// `snapshot` is the text of the cluster as found.
pub(super) fn by_leader(snapshot: &str, report: &Report) -> Result<f64> {
    let moving = report.changes.iter().filter(|change| !change.moves.is_empty());
    let mut wanted: BTreeMap<(&str, i32), (i32, f64)> = BTreeMap::new();
    for change in moving {
        // The leader to be brings along what it has where it is found.
        let came = change.moves.iter().find(|step| step.to == change.new_leader);
        let found_on = came.map_or(change.new_leader, |step| step.from);
        wanted.insert((&change.topic, change.partition), (found_on, change.moves.len() as f64));
    }
    let mut sum = 0.0;
    for line in snapshot.lines().filter(|line| line.starts_with("p ")) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, topic, partition, brokers, _, loads @ ..] = &fields[..] else { continue };
        let number: i32 = partition.parse()?;
        let Some((leader, moves)) = wanted.get(&(*topic, number)) else { continue };
        let place = brokers.split(',').position(|id| id.parse::<i32>() == Ok(*leader));
        let load = place.and_then(|place| loads.get(place)).context("the leader is not in the list")?;
        sum += moves * megabytes(load)?.trunc();
    }
    Ok(sum)
}

/// The last of a load's four numbers, without the marks behind it.
fn megabytes(load: &str) -> Result<f64> {
    let last = load.rsplit(',').next().unwrap_or_default().trim_end_matches('!');
    Ok(last.split('@').next().unwrap_or_default().parse()?)
}

/// Both side by side, for those clusters that were measured there.
pub(super) fn table(measured: &[Measured]) -> String {
    let mut text = String::from(
        "| cluster | Cruise Control, CPU | GB moved, own / leader's size | ours | violated at the end | ours |\n\
         |---|---:|---:|---:|---|---|\n",
    );
    let gigabytes = |own: f64, by_leader: f64| format!("{} / {}", count(own / 1e3), count(by_leader / 1e3));
    let listed = |goals: &[&str]| if goals.is_empty() { "–".to_owned() } else { goals.join(", ") };
    for measured in measured {
        let Some(original) = &measured.original else { continue };
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            measured.case.name,
            original.cpu,
            gigabytes(original.own, original.by_leader),
            gigabytes(measured.report.summary.data_to_move, measured.by_leader),
            listed(original.violated),
            listed(&measured.report.violated()),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{ChangeLine, GoalLine, MoveLine, Summary, Totals};
    use super::*;

    fn report(data_to_move: f64, violated: &[&str], changes: Vec<ChangeLine>) -> Report {
        let line = |goal: &&str| GoalLine { goal: format!("{goal}Goal"), status: "VIOLATED".to_owned() };
        Report {
            plan_id: String::new(),
            cluster: Totals { replicas: 0 },
            summary: Summary { data_to_move, least: 0.0, replica_moves: 0, leader_moves: 0 },
            goals: violated.iter().map(line).collect(),
            spread: Vec::new(),
            changes,
        }
    }

    #[test]
    fn more_data_and_other_goals_are_worse() {
        assert!(worse(&AR, &report(140_514.0, &[LEADERS], Vec::new()), 118_032.0).is_empty());
        let found = worse(&AR, &report(150_000.0, &[TOPICS], Vec::new()), 118_033.0);
        assert_eq!(
            found,
            [
                "150,000 MB moved, Cruise Control 140,514",
                "118,033 MB by leaders' size, Cruise Control 118,032",
                "TopicReplicaDistribution is left violated, not so by Cruise Control",
            ]
        );
    }

    #[test]
    fn data_is_counted_by_the_leader_to_be() {
        let snapshot = "evenkeel-snapshot v1 brokers=3\nbroker 0 a h0 ALIVE 1 1 1 1\n\
                        p t 0 0,1 0 1,1,1,10.9@0 1,1,0,20.5\np t 1 0,1 0 1,1,1,7 1,1,0,7!\n";
        let change = |partition, new_leader, moves: &[(i32, i32)]| ChangeLine {
            topic: "t".to_owned(),
            partition,
            new_leader,
            moves: moves.iter().map(|(from, to)| MoveLine { from: *from, to: *to }).collect(),
        };
        let counted = |change| by_leader(snapshot, &report(0.0, &[], vec![change])).unwrap();
        assert_eq!(counted(change(0, 1, &[(0, 2)])), 20.0);
        assert_eq!(counted(change(0, 2, &[(0, 2)])), 10.0);
        assert_eq!(counted(change(0, 1, &[])), 0.0);
        assert_eq!(counted(change(1, 2, &[(1, 2), (0, 3)])), 14.0);
    }
}
