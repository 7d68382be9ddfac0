//! The manifests of the chapters: each says what is its own, and the head that all of them have is written once.

use crate::local::example::CLUSTER;

/// A KafkaRebalance: its name, an annotation that it has, and its spec as YAML.
pub(super) fn rebalance(name: &str, annotation: Option<&str>, spec: &str) -> String {
    manifest("KafkaRebalance", name, annotation.map(|key| format!("{key}: \"true\"")), spec)
}

/// A pool of brokers whose ids begin where it is said.
pub(super) fn pool(name: &str, next_ids: &str, spec: &str) -> String {
    let annotation = format!("{}: \"{next_ids}\"", evenkeel_api::annotations::NEXT_NODE_IDS);
    manifest("KafkaNodePool", name, Some(annotation), spec)
}

fn manifest(kind: &str, name: &str, annotation: Option<String>, spec: &str) -> String {
    let notes = annotation.map_or_else(String::new, |note| format!("  annotations:\n    {note}\n"));
    format!(
        "apiVersion: kafka.strimzi.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  labels:\n    \
         {}: {CLUSTER}\n{notes}spec:{spec}",
        evenkeel_api::labels::CLUSTER
    )
}

#[cfg(test)]
mod tests {
    use evenkeel_api::annotations::REBALANCE_TEMPLATE;

    use super::*;

    #[test]
    fn what_is_said_stands_under_one_head() {
        let expected = "apiVersion: kafka.strimzi.io/v1
kind: KafkaRebalance
metadata:
  name: steady
  labels:
    strimzi.io/cluster: lagoon
  annotations:
    strimzi.io/rebalance-template: \"true\"
spec:
  goals: [RackAwareGoal]
";
        assert_eq!(rebalance("steady", Some(REBALANCE_TEMPLATE), "\n  goals: [RackAwareGoal]\n"), expected);
        assert!(rebalance("plain", None, " {}").ends_with("lagoon\nspec: {}"));
    }
}
