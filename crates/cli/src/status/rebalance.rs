//! One KafkaRebalance: its state, its proposal, its biggest moves and why, and how far it is.

use std::collections::BTreeMap;
use std::fmt::Write;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, annotations, labels};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::Value;

use super::paint::{self, bar, table};
use crate::plan::units::{count, megabytes};
use crate::printable;

/// The resource, and the data of the ConfigMap that goes with it.
pub(super) fn paint(found: &KafkaRebalance, data: Option<&BTreeMap<String, String>>, now: Timestamp) -> String {
    let none = BTreeMap::new();
    let data = data.unwrap_or(&none);
    let cluster = found.labels().get(labels::CLUSTER).map_or("no cluster", String::as_str);
    let mut text = format!("KafkaRebalance {} of {}", found.name_any(), printable::line(cluster));
    if annotations::is_auto_approved(found.annotations()) {
        text.push_str(", approved by itself");
    }
    text.push_str(match found.metadata.deletion_timestamp {
        Some(_) => ", being deleted\n",
        None => "\n",
    });
    let said = found.status.as_ref().map(|status| paint::conditions(&status.conditions, now)).unwrap_or_default();
    text.push_str(if said.is_empty() { "New: nobody has looked at it yet\n" } else { &said });
    if let Some(command) = found.annotations().get(annotations::REBALANCE) {
        let _ = writeln!(text, "Asked for: {}", printable::line(command));
    }
    text.push_str(&progress(found.state(), data));
    text.push_str(&proposal(found));
    // Without a proposal they are those of one before.
    if found.status.as_ref().is_some_and(|status| status.optimization_result.is_some()) {
        text.push_str(&loads(data));
        text.push_str(&moves(data));
    }
    text
}

/// How far it is, all in all and for each broker.
fn progress(state: RebalanceState, data: &BTreeMap<String, String>) -> String {
    let Some(percent) = data.get("completedByteMovementPercentage").and_then(|text| text.parse::<u64>().ok()) else {
        return String::new();
    };
    if state == RebalanceState::ProposalReady {
        return String::new();
    }
    let left = match data.get("estimatedTimeToCompletionInMinutes").map(String::as_str) {
        Some("0") if state == RebalanceState::Rebalancing => ", less than a minute to go".to_owned(),
        Some(minutes) if state == RebalanceState::Rebalancing => {
            format!(", about {} min to go", printable::line(minutes))
        }
        _ => String::new(),
    };
    let mut text = format!("\nProgress  {} {percent} %{left}\n", bar(percent, 100));
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Broker {
        finished_data_movement: u64,
        total_data_to_move: u64,
    }
    let brokers = data.get("brokerProgress.json");
    let brokers: Option<BTreeMap<i32, Broker>> = brokers.and_then(|text| serde_json::from_str(text).ok());
    // Before anybody was asked nobody has said anything, either.
    let was_asked = state == RebalanceState::Rebalancing && data.contains_key("executorState");
    let Some(brokers) = brokers else {
        if was_asked {
            text.push_str("  (this engine does not say how far each broker is)\n");
        }
        return text;
    };
    let rows: Vec<Vec<String>> = brokers
        .iter()
        .map(|(id, it)| {
            let (done, of) = (it.finished_data_movement, it.total_data_to_move);
            vec![format!("  broker {id}"), bar(done, of), format!("{} of {} MB", count(done), count(of))]
        })
        .collect();
    text.push_str(&crate::columns::columns(&rows));
    text
}

/// What the proposal does, in numbers.
fn proposal(found: &KafkaRebalance) -> String {
    let Some(result) = found.status.as_ref().and_then(|status| status.optimization_result.as_ref()) else {
        return String::new();
    };
    let number = |key: &str| result.get(key).and_then(Value::as_f64);
    let whole = |key: &str| number(key).map(|value| count(value as u64));
    let size = |key: &str| number(key).map(megabytes);
    let score = |key: &str| number(key).map(|value| format!("{value:.1}"));
    let pairs = [
        ("replicas to move", whole("numReplicaMovements"), size("dataToMoveMB")),
        ("between disks", whole("numIntraBrokerReplicaMovements"), size("intraBrokerDataToMoveMB")),
        ("leaders to move", whole("numLeaderMovements"), None),
        (
            "balancedness",
            score("onDemandBalancednessScoreBefore"),
            score("onDemandBalancednessScoreAfter").map(|after| format!("-> {after}")),
        ),
        ("estimated time", number("estimatedMinutes").map(|minutes| format!("{minutes:.0} min")), None),
    ];
    let rows = pairs
        .into_iter()
        .filter_map(|(name, first, second)| Some(vec![format!("  {name}"), first?, second.unwrap_or_default()]));
    table("Proposal", &[], rows.collect())
}

/// What each broker has before and after.
fn loads(data: &BTreeMap<String, String>) -> String {
    let loads: Option<BTreeMap<i32, Value>> =
        data.get("brokerLoad.json").and_then(|text| serde_json::from_str(text).ok());
    let rows = loads.into_iter().flatten().map(|(id, load)| {
        let pair = |key: &str, digits: usize| {
            let side = |side: &str| {
                let value = load.get(key).and_then(|figure| figure.get(side)?.as_f64());
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            format!("{} -> {}", side("before"), side("after"))
        };
        vec![
            format!("  {id}"),
            pair("leaders", 0),
            pair("replicas", 0),
            pair("diskUsedMB", 0),
            pair("cpuPercentage", 1),
            pair("networkOutRateKB", 0),
        ]
    });
    let head = ["  BROKER", "LEADERS", "REPLICAS", "DISK MB", "CPU %", "OUT KB/S"];
    table("Brokers, before and after", &head, rows.collect())
}

/// The moves that copy the most, and why.
fn moves(data: &BTreeMap<String, String>) -> String {
    #[derive(Deserialize)]
    struct Move {
        topic: String,
        partition: i32,
        from: Vec<i32>,
        to: Vec<i32>,
        bytes: u64,
        reason: String,
    }
    let ids = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let Some(moves) = data.get("biggestMoves.json").and_then(|text| serde_json::from_str::<Vec<Move>>(text).ok())
    else {
        return match data.is_empty() {
            false => "\nWhich moves are the biggest, this engine does not say.\n".to_owned(),
            true => String::new(),
        };
    };
    if moves.is_empty() {
        return String::new();
    }
    let rows = moves.iter().map(|it| {
        vec![
            format!("  {}-{}", it.topic, it.partition),
            megabytes(it.bytes as f64 / 1_048_576.0),
            format!("{} -> {}", ids(&it.from), ids(&it.to)),
            it.reason.clone(),
        ]
    });
    table("Biggest moves", &["  PARTITION", "SIZE", "BROKERS", "WHY"], rows.collect())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn found(status: Value, notes: Value) -> KafkaRebalance {
        serde_json::from_value(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
            "metadata": {"name": "r", "labels": {"strimzi.io/cluster": "my-cluster"}, "annotations": notes},
            "spec": {}, "status": status,
        }))
        .unwrap()
    }

    fn result() -> Value {
        json!({
            "numReplicaMovements": 24, "dataToMoveMB": 2048, "numIntraBrokerReplicaMovements": 0,
            "intraBrokerDataToMoveMB": 0, "numLeaderMovements": 3, "onDemandBalancednessScoreBefore": 71.25,
            "onDemandBalancednessScoreAfter": 96.0, "estimatedMinutes": 7.4,
        })
    }

    fn data() -> BTreeMap<String, String> {
        let load = json!({
            "0": {"leaders": {"before": 6, "after": 3}, "replicas": {"before": 12, "after": 6},
                "diskUsedMB": {"before": 240.0, "after": 120.0}, "cpuPercentage": {"before": 1.5, "after": 0.75},
                "networkOutRateKB": {"before": 10.0, "after": 5.0}},
            "2": {"leaders": {"after": 3}, "replicas": {"after": 6}},
        });
        let moves = json!([
            {"topic": "orders", "partition": 3, "from": [0], "to": [2], "bytes": 21_000_000,
                "reason": "ReplicaDistributionGoal: broker 0 has more than its share"},
            {"topic": "\u{1b}[31mred", "partition": 0, "from": [1], "to": [3], "bytes": 5, "reason": "why"},
        ]);
        let brokers = json!({"2": {"finishedDataMovement": 20, "totalDataToMove": 1_040}});
        [
            ("brokerLoad.json", load.to_string()),
            ("biggestMoves.json", moves.to_string()),
            ("brokerProgress.json", brokers.to_string()),
            ("completedByteMovementPercentage", "45".to_owned()),
            ("estimatedTimeToCompletionInMinutes", "4".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    #[test]
    fn a_run_shows_its_bars_its_numbers_and_its_reasons() {
        let conditions = json!([
            {"type": "Rebalancing", "status": "True", "lastTransitionTime": "2026-01-01T11:57:00Z"},
            {"type": "Warning", "status": "True", "reason": "NotEnoughData", "message": "two windows are missing"},
        ]);
        let status = json!({"conditions": conditions, "optimizationResult": result()});
        let notes = json!({"strimzi.io/rebalance-auto-approval": "true"});
        expect![[r#"
            KafkaRebalance r of my-cluster, approved by itself
            Rebalancing since 2026-01-01 11:57:00 UTC (3 min ago)
            ! NotEnoughData: two windows are missing

            Progress  [#############.................] 45 %, about 4 min to go
              broker 2  [..............................]  20 of 1,040 MB

            Proposal
              replicas to move  24     2.00 GB
              between disks     0      0 B
              leaders to move   3
              balancedness      71.2   -> 96.0
              estimated time    7 min

            Brokers, before and after
              BROKER  LEADERS  REPLICAS  DISK MB     CPU %       OUT KB/S
              0       6 -> 3   12 -> 6   240 -> 120  1.5 -> 0.8  10 -> 5
              2       - -> 3   - -> 6    - -> -      - -> -      - -> -

            Biggest moves
              PARTITION        SIZE     BROKERS  WHY
              orders-3         20.0 MB  0 -> 2   ReplicaDistributionGoal: broker 0 has more than its share
              \u{1b}[31mred-0  5 B      1 -> 3   why
        "#]]
        .assert_eq(&paint(&found(status, notes), Some(&data()), now()));
    }

    #[test]
    fn an_engine_that_says_less_is_not_to_blame_for_nothing() {
        let conditions = json!([{"type": "Rebalancing", "status": "True"}]);
        let status = json!({"conditions": conditions, "optimizationResult": {"numReplicaMovements": 1}});
        let keys = [("completedByteMovementPercentage", "0"), ("executorState", "{}")];
        let mut data: BTreeMap<String, String> = keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        expect![[r#"
            KafkaRebalance r of my-cluster
            Rebalancing

            Progress  [..............................] 0 %
              (this engine does not say how far each broker is)

            Proposal
              replicas to move  1

            Which moves are the biggest, this engine does not say.
        "#]]
        .assert_eq(&paint(&found(status.clone(), json!({})), Some(&data), now()));
        // One that says of nobody that he receives anything has said it.
        data.insert("brokerProgress.json".to_owned(), "{}".to_owned());
        let only_leaders = paint(&found(status.clone(), json!({})), Some(&data), now());
        assert!(only_leaders.contains("0 %\n\nProposal"), "{only_leaders}");
        // Nor has anybody been asked in the first moments of a run.
        let young = [("completedByteMovementPercentage".to_owned(), "0".to_owned())].into();
        let young = paint(&found(status, json!({})), Some(&young), now());
        assert!(!young.contains("how far each broker is"), "{young}");
    }

    /// It may still be there for a moment, or for as long as the ConfigMap cannot be written.
    #[test]
    fn what_is_left_of_a_proposal_before_is_not_shown_as_one() {
        let status = json!({"conditions": [{"type": "PendingProposal", "status": "True"}]});
        let text = paint(&found(status, json!({})), Some(&data()), now());
        assert!(!text.contains("Brokers, before and after") && !text.contains("Biggest moves"), "{text}");
    }

    #[test]
    fn before_there_is_anything_it_says_so_and_nonsense_is_left_out() {
        let nobody = found(json!(null), json!({"strimzi.io/rebalance": "approve"}));
        expect![[r#"
            KafkaRebalance r of my-cluster
            New: nobody has looked at it yet
            Asked for: approve
        "#]]
        .assert_eq(&paint(&nobody, None, now()));
        let nonsense = [("brokerLoad.json", "{"), ("biggestMoves.json", "7"), ("completedByteMovementPercentage", "x")];
        let nonsense = nonsense.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let text = paint(&found(json!({"conditions": []}), json!({})), Some(&nonsense), now());
        assert_eq!(text, "KafkaRebalance r of my-cluster\nNew: nobody has looked at it yet\n");
    }
}
