//! All Kafkas and KafkaRebalances of a namespace, one line each.

use evenkeel_api::{Kafka, KafkaRebalance, annotations, labels};
use evenkeel_operator::auto_rebalance::state::state_name;
use jiff::Timestamp;
use kube::ResourceExt;

use super::paint;

/// What there is.
pub(super) fn paint(namespace: &str, kafkas: &[Kafka], rebalances: &[KafkaRebalance], now: Timestamp) -> String {
    let nothing = || "-".to_owned();
    let clusters = kafkas.iter().map(|kafka| {
        let status = kafka.status.as_ref();
        let state = status.and_then(|status| status.conditions.first()).map_or_else(nothing, |it| it.type_.clone());
        let auto = status.and_then(|status| status.auto_rebalance.as_ref());
        let auto = auto.map_or_else(|| "off".to_owned(), |auto| state_name(auto.state).to_owned());
        vec![format!("kafka/{}", kafka.name_any()), state, auto]
    });
    let (templates, others): (Vec<_>, Vec<_>) =
        rebalances.iter().partition(|it| it.metadata.annotations.as_ref().is_some_and(annotations::is_template));
    let rows = others.iter().map(|it| {
        let cluster = it.labels().get(labels::CLUSTER).cloned().unwrap_or_else(nothing);
        let since = it.status.iter().flat_map(|status| &status.conditions).find_map(|condition| condition.since());
        let since = since.map_or_else(nothing, |since| paint::span(now.duration_since(since)));
        vec![format!("kafkarebalance/{}", it.name_any()), cluster, it.state().to_string(), since]
    });
    let (clusters, rows): (Vec<_>, Vec<_>) = (clusters.collect(), rows.collect());
    if clusters.is_empty() && rows.is_empty() && templates.is_empty() {
        return format!("There is no Kafka and no KafkaRebalance in namespace {namespace}.\n");
    }
    let names = templates.iter().map(|it| vec![it.name_any()]).collect();
    let text = paint::table("Clusters", &["NAME", "STATE", "AUTOMATIC REBALANCING"], clusters)
        + &paint::table("Rebalances", &["NAME", "CLUSTER", "STATE", "SINCE"], rows)
        + &paint::table("Templates", &[], names);
    text.trim_start().to_owned()
}
