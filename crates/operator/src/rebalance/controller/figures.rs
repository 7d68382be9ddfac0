//! Figures for Prometheus: under the names that Strimzi's dashboards know, and some of our own.
//!
//! What can be counted from the resources as they are is counted when somebody asks; only what passes is kept.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, annotations, labels};
use jiff::Timestamp;
use kube::runtime::reflector::Store;

use crate::auto_rebalance::Generated;
use crate::rebalance::result;

const KIND: &str = "KafkaRebalance";

/// What is counted. Shared between the controller and whoever shows it.
#[derive(Debug, Default)]
pub struct Figures {
    sums: Mutex<BTreeMap<Series, f64>>,
    stores: Mutex<Vec<Store<KafkaRebalance>>>,
    selector: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    family: &'static str,
    labels: Vec<(&'static str, String)>,
}

/// How a reconciliation came about, and how it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reconciled {
    /// Nothing had happened: its time had come.
    pub periodical: bool,
    pub succeeded: bool,
    pub took: Duration,
}

impl Figures {
    /// For an operator with this selector of Kafkas.
    pub fn new(selector: Option<&str>) -> Self {
        Self { selector: selector.unwrap_or_default().to_owned(), ..Self::default() }
    }

    pub(super) fn count_resources_of(&self, store: Store<KafkaRebalance>) {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store);
    }

    fn add(&self, family: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        *sums.entry(Series { family, labels }).or_default() += value;
    }

    pub(super) fn reconciled(&self, resource: &KafkaRebalance, what: Reconciled) {
        let namespace = resource.metadata.namespace.as_deref().unwrap_or_default();
        let trigger = trigger(resource);
        let labels = [
            ("kind", KIND),
            ("mode", resource.spec.mode.as_str()),
            ("namespace", namespace),
            ("selector", &self.selector),
            ("trigger", &trigger),
        ];
        for (family, counts) in [
            ("strimzi_reconciliations_total", true),
            ("strimzi_reconciliations_successful_total", what.succeeded),
            ("strimzi_reconciliations_failed_total", !what.succeeded),
            ("strimzi_reconciliations_periodical_total", what.periodical),
            // Nobody waits for a lock here; dashboards know the name.
            ("strimzi_reconciliations_locked_total", false),
            ("strimzi_reconciliations_duration_seconds_count", true),
        ] {
            self.add(family, &labels, f64::from(u8::from(counts)));
        }
        self.add("strimzi_reconciliations_duration_seconds_sum", &labels, what.took.as_secs_f64());
    }

    /// An engine was asked something.
    pub(super) fn asked(&self, call: &str, answer: &str, took: Duration) {
        self.add("evenkeel_engine_requests_total", &[("answer", answer), ("call", call)], 1.0);
        self.add("evenkeel_engine_request_seconds_count", &[("call", call)], 1.0);
        self.add("evenkeel_engine_request_seconds_sum", &[("call", call)], took.as_secs_f64());
    }

    /// A resource has come from one state to another; `percent` of its data had been moved.
    pub(super) fn moved_on(&self, before: &KafkaRebalance, after: &KafkaRebalance, percent: u64, now: Timestamp) {
        let outcome = after.state();
        let ended = matches!(outcome, RebalanceState::Ready | RebalanceState::Stopped | RebalanceState::NotReady);
        if before.state() != RebalanceState::Rebalancing || !ended {
            return;
        }
        let began = before.status.iter().flat_map(|status| &status.conditions).next().and_then(|it| it.since());
        let took = began.map_or(0.0, |began| now.duration_since(began).as_secs_f64().max(0.0));
        let trigger = trigger(before);
        let mode = before.spec.mode.as_str();
        let labels = [("mode", mode), ("outcome", outcome.as_str()), ("trigger", &trigger)];
        self.add("evenkeel_rebalance_seconds_count", &labels, 1.0);
        self.add("evenkeel_rebalance_seconds_sum", &labels, took);
        let planned = result::megabytes(before.status.as_ref().and_then(|status| status.optimization_result.as_ref()));
        let moved = planned as f64 * percent.min(100) as f64 / 100.0;
        self.add("evenkeel_rebalance_moved_megabytes_total", &[("mode", mode), ("trigger", &trigger)], moved);
    }

    /// All of it, in Prometheus' text form.
    pub fn render(&self) -> String {
        let mut all = self.sums.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.count_resources(&mut all);
        let mut page = String::new();
        let mut last = "";
        for (series, value) in &all {
            let Series { family, labels } = series;
            let (base, kind) = kind_of(family);
            if last != base {
                // Writing to a string cannot fail.
                let _ = writeln!(page, "# TYPE {base} {kind}");
                last = base;
            }
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(page, "{family}{{{}}} {value}", labels.join(","));
        }
        page
    }

    fn count_resources(&self, all: &mut BTreeMap<Series, f64>) {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        for resource in stores.iter().flat_map(Store::state) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (namespace, name) = (text(&resource.metadata.namespace), text(&resource.metadata.name));
            let selector = ("selector", self.selector.clone());
            let counted = [("kind", KIND.to_owned()), ("namespace", namespace.clone()), selector];
            let mut add = |family, labels: &[(&'static str, String)], value| {
                *all.entry(Series { family, labels: labels.to_vec() }).or_default() += value;
            };
            add("strimzi_resources", &counted, 1.0);
            if resource.metadata.annotations.as_ref().is_some_and(annotations::is_template) {
                continue;
            }
            let state = resource.state().to_string();
            add("evenkeel_rebalances", &[("namespace", namespace.clone()), ("state", state)], 1.0);
            let result = resource.status.as_ref().and_then(|status| status.optimization_result.as_ref());
            for (moment, key) in
                [("before", "onDemandBalancednessScoreBefore"), ("after", "onDemandBalancednessScoreAfter")]
            {
                if let Some(score) = result.and_then(|result| result.get(key)?.as_f64()) {
                    let labels =
                        [("moment", moment.to_owned()), ("name", name.clone()), ("namespace", namespace.clone())];
                    add("evenkeel_rebalance_balancedness", &labels, score);
                }
            }
        }
    }
}

/// What set a rebalance off: a person, or automatic rebalancing in one of its modes.
fn trigger(resource: &KafkaRebalance) -> String {
    let cluster = resource.metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER));
    let generated = cluster.and_then(|cluster| Generated::read(resource, cluster));
    generated.map_or_else(|| "manual".to_owned(), |it| it.mode.to_string())
}

/// The name under which a family is declared, and what it is.
fn kind_of(family: &'static str) -> (&'static str, &'static str) {
    match family.strip_suffix("_count").or_else(|| family.strip_suffix("_sum")) {
        Some(base) => (base, "summary"),
        None if family.ends_with("_total") => (family, "counter"),
        None => (family, "gauge"),
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{Condition, KafkaRebalanceStatus};
    use serde_json::json;

    use super::*;

    fn rebalance(name: &str, state: &str) -> KafkaRebalance {
        let mut resource = KafkaRebalance::new(name, Default::default());
        resource.metadata.namespace = Some("ns".into());
        resource.metadata.labels = Some([(labels::CLUSTER.to_owned(), "c".to_owned())].into());
        let since = Some("2026-01-01T00:00:00Z".to_owned());
        let conditions = vec![Condition { last_transition_time: since, ..Condition::state(state) }];
        let result = json!({"dataToMoveMB": 200}).as_object().cloned().map(|it| it.into_iter().collect());
        resource.status = Some(KafkaRebalanceStatus { conditions, optimization_result: result, ..Default::default() });
        resource
    }

    #[test]
    fn what_set_a_rebalance_off_is_in_its_name() {
        assert_eq!(trigger(&rebalance("mine", "Ready")), "manual");
        assert_eq!(trigger(&rebalance("c-auto-rebalancing-add-brokers", "Ready")), "add-brokers");
        assert_eq!(trigger(&rebalance("c-auto-rebalancing-imbalance-x", "Ready")), "imbalance");
    }

    #[test]
    fn an_end_is_counted_with_its_time_and_its_data() {
        let figures = Figures::new(None);
        let now = "2026-01-01T00:01:30Z".parse().unwrap();
        figures.moved_on(&rebalance("r", "Rebalancing"), &rebalance("r", "Rebalancing"), 0, now);
        figures.moved_on(&rebalance("r", "ProposalReady"), &rebalance("r", "Ready"), 0, now);
        assert_eq!(figures.render(), "");
        figures.moved_on(&rebalance("r", "Rebalancing"), &rebalance("r", "Stopped"), 25, now);
        assert_eq!(
            figures.render(),
            "# TYPE evenkeel_rebalance_moved_megabytes_total counter\n\
             evenkeel_rebalance_moved_megabytes_total{mode=\"full\",trigger=\"manual\"} 50\n\
             # TYPE evenkeel_rebalance_seconds summary\n\
             evenkeel_rebalance_seconds_count{mode=\"full\",outcome=\"Stopped\",trigger=\"manual\"} 1\n\
             evenkeel_rebalance_seconds_sum{mode=\"full\",outcome=\"Stopped\",trigger=\"manual\"} 90\n"
        );
    }

    #[test]
    fn reconciliations_have_the_labels_that_dashboards_know() {
        let figures = Figures::new(Some("team=a"));
        let what = Reconciled { periodical: false, succeeded: true, took: Duration::from_millis(500) };
        figures.reconciled(&rebalance("r", "Ready"), what);
        let page = figures.render();
        let labels = "{kind=\"KafkaRebalance\",mode=\"full\",namespace=\"ns\",selector=\"team=a\",trigger=\"manual\"}";
        for line in [
            format!("strimzi_reconciliations_total{labels} 1"),
            format!("strimzi_reconciliations_failed_total{labels} 0"),
            format!("strimzi_reconciliations_duration_seconds_sum{labels} 0.5"),
        ] {
            assert!(page.contains(&line), "{line}\nis not in\n{page}");
        }
    }
}
