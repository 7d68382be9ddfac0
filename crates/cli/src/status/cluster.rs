//! One Kafka: why it was, or was not, rebalanced by itself.

use std::collections::BTreeSet;
use std::fmt::Write;

use evenkeel_api::Kafka;
use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_operator::auto_rebalance::explain::Explained;
use evenkeel_operator::auto_rebalance::state::state_name;
use jiff::Timestamp;
use kube::ResourceExt;

use super::paint::{self, moment, table};

/// A map of violated goals may be large. More of it than this is for nobody's eyes.
const MOST_SHOWN: usize = 10;

/// The Kafka, and what its automatic rebalancing says of itself.
pub(super) fn paint(kafka: &Kafka, explained: &Explained, now: Timestamp) -> String {
    let mut text = format!("Kafka {}\n", kafka.name_any());
    let said = kafka.status.as_ref().map(|status| paint::conditions(&status.conditions, now)).unwrap_or_default();
    text.push_str(if said.is_empty() { "New: nobody has looked at it yet\n" } else { &said });
    if explained.modes.is_empty() {
        text.push_str("\nAutomatic rebalancing is off: spec.cruiseControl.autoRebalance names no mode.\n");
        return text;
    }
    let since = explained.since.map(|since| format!(" since {}", moment(since, now))).unwrap_or_default();
    let _ = writeln!(text, "\nAutomatic rebalancing: {}{since}", state_name(explained.state));
    if let Some(end) = explained.last_end {
        let _ = writeln!(
            text,
            "The last KafkaRebalance came to an end (Ready, Stopped or NotReady) at {}",
            moment(end, now)
        );
    }
    text + &queue(explained)
        + &modes(explained)
        + &violations(explained)
        + &guards(explained, now)
        + &failures(explained)
}

/// What runs and what waits, in the order of its turn.
fn queue(explained: &Explained) -> String {
    let ids = |ids: &BTreeSet<i32>| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let runs = explained.generated.iter().map(|it| {
        let brokers: String =
            if it.brokers.is_empty() { String::new() } else { format!("brokers {}", ids(&it.brokers)) };
        vec![format!("  {}", it.state), format!("kafkarebalance/{}", it.name), brokers]
    });
    // What runs is not queued.
    let waiting = |mode: AutoRebalanceMode, all: &BTreeSet<i32>| -> BTreeSet<i32> {
        let runs = explained.generated.iter().filter(|it| it.mode == mode);
        let runs: BTreeSet<i32> = runs.flat_map(|it| &it.brokers).copied().collect();
        all - &runs
    };
    let queued = [
        ("to be emptied", waiting(AutoRebalanceMode::RemoveBrokers, &explained.removals)),
        ("to be filled", waiting(AutoRebalanceMode::AddBrokers, &explained.additions)),
    ];
    let queued = queued.iter().filter(|(_, brokers)| !brokers.is_empty()).map(|(what, brokers)| {
        vec!["  queued".to_owned(), format!("brokers {what}"), format!("brokers {}", ids(brokers))]
    });
    let rows: Vec<_> = runs.chain(queued).collect();
    if rows.is_empty() {
        return "\nNothing runs, and nothing is queued.\n".to_owned();
    }
    table("Queue", &[], rows)
}

fn modes(explained: &Explained) -> String {
    let rows = explained.modes.iter().map(|it| {
        let template = it.template.clone().unwrap_or_else(|| "Cruise Control's defaults".to_owned());
        vec![format!("  {}", it.mode), template, it.trouble.clone().unwrap_or_else(|| "fine".to_owned())]
    });
    table("Modes", &["  MODE", "TEMPLATE", "VERDICT"], rows.collect())
}

fn violations(explained: &Explained) -> String {
    let found = &explained.violations;
    let kinds = [("can be mended", &found.fixable), ("cannot be mended", &found.unfixable)];
    let rows = kinds.into_iter().flat_map(|(kind, all)| {
        let rest = all.len().saturating_sub(MOST_SHOWN);
        let rest = (rest > 0).then(|| vec![format!("  and {rest} more"), kind.to_owned(), String::new()]);
        let shown = all.iter().take(MOST_SHOWN).map(move |anomaly| {
            let mut goals: Vec<&str> = anomaly.goals.iter().take(MOST_SHOWN).map(String::as_str).collect();
            let more = anomaly.goals.len().saturating_sub(MOST_SHOWN);
            let more = if more > 0 { format!("and {more} more") } else { String::new() };
            goals.extend(Some(more.as_str()).filter(|more| !more.is_empty()));
            vec![format!("  {}", anomaly.id), kind.to_owned(), goals.join(", ")]
        });
        shown.chain(rest)
    });
    let wrong = found.trouble.iter().map(|wrong| vec!["  unreadable".to_owned(), String::new(), wrong.clone()]);
    table("Violated goals", &["  ANOMALY", "KIND", "GOALS"], rows.chain(wrong).collect())
}

fn guards(explained: &Explained, now: Timestamp) -> String {
    let rows = explained.guards.iter().map(|it| {
        let verdict = match &it.closed {
            None => "open".to_owned(),
            Some(closed) => match closed.opens {
                Some(opens) => format!("closed until {}: {}", moment(opens, now), closed.why),
                None => format!("closed: {}", closed.why),
            },
        };
        vec![format!("  {}", it.name), it.set_to.clone(), verdict]
    });
    table("Guards", &["  GUARD", "SET TO", "NOW"], rows.collect())
}

fn failures(explained: &Explained) -> String {
    let rows = explained.failures.iter().map(|(mode, why)| vec![format!("  {mode}"), why.clone()]);
    table("Last failures", &[], rows.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evenkeel_api::KafkaRebalance;
    use evenkeel_operator::auto_rebalance::explain::explain;
    use evenkeel_operator::auto_rebalance::tracker::MEMORY;
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn kafka(spec: Value, status: Value) -> Kafka {
        serde_json::from_value(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "c"}, "spec": spec,
            "status": status,
        }))
        .unwrap()
    }

    fn data(key: &str, value: String) -> BTreeMap<String, String> {
        [(key.to_owned(), value)].into()
    }

    #[test]
    fn a_drain_with_an_imbalance_behind_it() {
        let spec = json!({"maintenanceTimeWindows": ["0 0 3 * * ?"], "cruiseControl": {
            "config": {"evenkeel.auto.rebalance.max.data.mb": 500},
            "autoRebalance": [
                {"mode": "add-brokers"}, {"mode": "remove-brokers"}, {"mode": "imbalance", "template": {"name": "t"}},
            ],
        }});
        let status = json!({
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}],
            "autoRebalance": {
                "state": "RebalanceOnScaleDown", "lastTransitionTime": "2026-01-01T11:58:00Z",
                "modes": [{"mode": "remove-brokers", "brokers": [3, 4]}, {"mode": "add-brokers", "brokers": [7]}],
            },
        });
        let drain: KafkaRebalance = serde_json::from_value(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
            "metadata": {"name": "c-auto-rebalancing-remove-brokers", "finalizers": ["strimzi.io/auto-rebalancing"]},
            "spec": {"brokers": [3, 4]},
            "status": {"conditions": [{"type": "Rebalancing", "status": "True"}]},
        }))
        .unwrap();
        let memory = json!({
            "imbalance": {"ended": "2026-01-01T11:55:00Z"},
            "failures": {"imbalance": {"stopped": false, "message": "no brokers", "specVersion": ""}},
        });
        let tracker = data(MEMORY, memory.to_string());
        let map = data("fixableAnomalies", "- a1: [RackAwareGoal]".to_owned());
        let kafka = kafka(spec, status);
        let explained = explain(&kafka, &[drain], Some(&map), Some(&tracker), now());
        expect![[r#"
            Kafka c
            Ready since 2026-01-01 10:00:00 UTC (2 h ago)

            Automatic rebalancing: RebalanceOnScaleDown since 2026-01-01 11:58:00 UTC (2 min ago)

            Queue
              Rebalancing  kafkarebalance/c-auto-rebalancing-remove-brokers  brokers 3, 4
              queued       brokers to be filled                              brokers 7

            Modes
              MODE            TEMPLATE                   VERDICT
              add-brokers     Cruise Control's defaults  fine
              remove-brokers  Cruise Control's defaults  fine
              imbalance       t                          mode imbalance of autoRebalance does nothing, because of its template: there is no KafkaRebalance t in this namespace

            Violated goals
              ANOMALY  KIND           GOALS
              a1       can be mended  RackAwareGoal

            Guards
              GUARD     SET TO                         NOW
              brake     all modes                      open
              emptying  30 s after a failure, growing  open
              filling   30 s after a failure, growing  open
              rate      2 an hour                      open
              pause     10 min, growing                closed until 2026-01-01 12:05:00 UTC (in 5 min): the last rebalance on imbalance has just ended
              window    one window                     closed until 2026-01-02 03:00:00 UTC (in 15 h): it is outside of spec.maintenanceTimeWindows
              data      at most 500 MB                 open
              brokers   after those that come or go    closed: brokers [3, 4, 7] are to be filled or emptied first
              users     after rebalances of theirs     open

            Last failures
              imbalance  no brokers
        "#]]
        .assert_eq(&paint(&kafka, &explained, now()));
    }

    #[test]
    fn of_very_many_violations_some_are_shown() {
        let kafka = kafka(json!({"cruiseControl": {"autoRebalance": [{"mode": "imbalance"}]}}), json!(null));
        let goals: Vec<String> = (0..12).map(|number| format!("Goal{number:02}")).collect();
        let found: String = (0..13).map(|number| format!("- a{number:02}: [{}]\n", goals.join(", "))).collect();
        let map = data("fixableAnomalies", found);
        let text = paint(&kafka, &explain(&kafka, &[], Some(&map), None, now()), now());
        assert!(text.contains("a09") && text.contains("Goal09, and 2 more") && text.contains("and 3 more"), "{text}");
        assert!(!text.contains("a10") && !text.contains("Goal10"), "{text}");
    }

    #[test]
    fn where_nothing_is_asked_for_it_says_so() {
        let kafka = kafka(json!({"cruiseControl": {}}), json!(null));
        let explained = explain(&kafka, &[], None, None, now());
        expect![[r#"
            Kafka c
            New: nobody has looked at it yet

            Automatic rebalancing is off: spec.cruiseControl.autoRebalance names no mode.
        "#]]
        .assert_eq(&paint(&kafka, &explained, now()));
    }
}
