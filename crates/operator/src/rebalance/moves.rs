//! `biggestMoves.json`: the moves of a proposal that copy the most, each with why it is made. Only our engine says how
//! much a move copies; with another one there is nothing to show.

use std::cmp::Reverse;

use evenkeel_api::rebalance::RebalanceMode;
use evenkeel_rest::body::{OptimizationResult, Proposal};
use serde::Serialize;

/// How many are shown.
pub(super) const SHOWN: usize = 20;

/// The biggest moves of a plan as JSON text. None if it does not say how big they are. `mode` is what it was made for.
pub(super) fn json(result: &OptimizationResult, mode: RebalanceMode) -> Option<String> {
    let mut sized: Vec<(u64, &Proposal)> =
        result.proposals.iter().flatten().filter_map(|proposal| Some((proposal.bytes?, proposal))).collect();
    // A plan in which nothing moves has none, which is not the same as not knowing.
    if sized.is_empty() && !result.proposals.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let name = |proposal: &Proposal| (proposal.topic_partition.topic.clone(), proposal.topic_partition.partition);
    sized.sort_by_cached_key(|(bytes, proposal)| (Reverse(*bytes), name(proposal)));
    let moves: Vec<Move<'_>> =
        sized.into_iter().take(SHOWN).map(|(bytes, proposal)| Move::of(bytes, proposal, mode)).collect();
    serde_json::to_string_pretty(&moves).ok()
}

#[derive(Serialize)]
struct Move<'a> {
    topic: &'a str,
    partition: i32,
    /// Brokers that give a replica away, or the leadership if nothing else moves.
    from: Vec<i32>,
    to: Vec<i32>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'a str>,
    reason: String,
}

impl<'a> Move<'a> {
    fn of(bytes: u64, proposal: &'a Proposal, mode: RebalanceMode) -> Self {
        let (old, new) = (&proposal.old_replicas, &proposal.new_replicas);
        let mut from: Vec<i32> = old.iter().copied().filter(|broker| !new.contains(broker)).collect();
        let mut to: Vec<i32> = new.iter().copied().filter(|broker| !old.contains(broker)).collect();
        let only_leads = from.is_empty() && to.is_empty() && new.first() != Some(&proposal.old_leader);
        if only_leads {
            from.push(proposal.old_leader);
            to.extend(new.first());
        }
        let goal = proposal.goal.as_deref();
        let reason = match mode {
            // No goal asks for it.
            RebalanceMode::RemoveDisks => "the disk that it lies on is to be removed".to_owned(),
            _ => reason(goal, &from, &to, only_leads),
        };
        Self {
            topic: &proposal.topic_partition.topic,
            partition: proposal.topic_partition.partition,
            from,
            to,
            bytes,
            goal,
            reason,
        }
    }
}

/// In a sentence. Beside goals our engine knows three words for what else asks for a move.
fn reason(goal: Option<&str>, from: &[i32], to: &[i32], only_leads: bool) -> String {
    let ids = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let (from, to) = (ids(from), ids(to));
    match goal {
        Some("removed") => format!("broker {from} is to be removed"),
        Some("offline") => "a replica of it is offline".to_owned(),
        Some("demoted") => format!("broker {from} is to lead nothing"),
        _ if from.is_empty() => "it changes the disk on its broker".to_owned(),
        Some(goal) if only_leads => format!("{goal}: broker {to} leads instead of broker {from}"),
        Some(goal) => {
            format!("{goal}: broker {from} has more than its share, or what belongs elsewhere; broker {to} takes over")
        }
        None => format!("from broker {from} to broker {to}"),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::TopicPartition;
    use serde_json::{Value, json};

    use super::super::tests::scene::plan;
    use super::*;

    fn proposal(partition: i32, old: [i32; 2], new: [i32; 2], goal: &str, bytes: Option<u64>) -> Proposal {
        Proposal {
            old_leader: old[0],
            old_replicas: old.to_vec(),
            topic_partition: TopicPartition::new("orders", partition),
            new_replicas: new.to_vec(),
            goal: Some(goal.to_owned()),
            bytes,
        }
    }

    fn shown(proposals: Vec<Proposal>) -> Option<Value> {
        shown_for(RebalanceMode::Full, proposals)
    }

    fn shown_for(mode: RebalanceMode, proposals: Vec<Proposal>) -> Option<Value> {
        let text = super::json(&OptimizationResult { proposals: Some(proposals), ..plan() }, mode)?;
        Some(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn what_leaves_a_disk_that_goes_says_so() {
        let mut leaves = proposal(3, [0, 1], [0, 1], "", Some(1));
        leaves.goal = None;
        let shown = shown_for(RebalanceMode::RemoveDisks, vec![leaves]).unwrap();
        assert_eq!(shown[0]["reason"], "the disk that it lies on is to be removed");
    }

    #[test]
    fn the_biggest_come_first_with_their_reasons() {
        let all = vec![
            proposal(0, [0, 1], [1, 0], "LeaderReplicaDistributionGoal", Some(0)),
            proposal(1, [0, 1], [2, 1], "RackAwareGoal", Some(5)),
            proposal(2, [0, 1], [3, 1], "removed", Some(9)),
            proposal(3, [0, 1], [0, 1], "DiskCapacityGoal", Some(1)),
        ];
        let shown = shown(all).unwrap();
        let order: Vec<i64> = shown.as_array().unwrap().iter().map(|it| it["partition"].as_i64().unwrap()).collect();
        assert_eq!(order, [2, 1, 3, 0]);
        assert_eq!(shown[0]["reason"], "broker 0 is to be removed");
        assert_eq!(
            shown[3],
            json!({"topic": "orders", "partition": 0, "from": [0], "to": [1], "bytes": 0,
                "goal": "LeaderReplicaDistributionGoal",
                "reason": "LeaderReplicaDistributionGoal: broker 1 leads instead of broker 0"})
        );
        assert!(shown[1]["reason"].as_str().unwrap().starts_with("RackAwareGoal: broker 0"));
        assert_eq!(shown[2]["reason"], "it changes the disk on its broker");
    }

    #[test]
    fn twenty_are_enough_and_an_engine_without_sizes_shows_none() {
        let many = (0..50).map(|n| proposal(n, [0, 1], [2, 1], "RackAwareGoal", Some(7))).collect();
        let shown_many = shown(many).unwrap();
        assert_eq!(shown_many.as_array().unwrap().len(), SHOWN);
        assert_eq!(shown_many[0]["partition"], 0, "of equal ones the first by name");
        assert_eq!(shown(vec![proposal(0, [0, 1], [2, 1], "RackAwareGoal", None)]), None);
        assert_eq!(shown(vec![]), Some(json!([])), "nothing moves, and that is known");
    }
}
