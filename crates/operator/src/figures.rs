//! Figures for Prometheus: under the names that Strimzi's dashboards know, and some of our own. All controllers count
//! here.
//!
//! What can be counted from the resources as they are is counted when somebody asks; only what passes is kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance, Reason, StrimziPodSet, annotations, labels};
use jiff::Timestamp;
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::Store;

use crate::auto_rebalance::imbalance::Violations;
use crate::auto_rebalance::state::state_name;
use crate::auto_rebalance::{Generated, held_for};
use crate::kept::BALANCEDNESS;
use crate::rebalance::megabytes;
use crate::seams::ClusterRef;

/// What is counted. Shared between the controllers and whoever shows it.
#[derive(Debug, Default)]
pub struct Figures {
    sums: Mutex<BTreeMap<Series, f64>>,
    stores: Mutex<Stores>,
    /// Anomalies of each cluster that were counted.
    anomalies: Mutex<BTreeMap<ClusterRef, Counted>>,
    selector: String,
}

/// The resources as they are, in each of the operator's scopes.
#[derive(Debug, Default)]
struct Stores {
    kafkas: Vec<Store<Kafka>>,
    pod_sets: Vec<Store<PartialObjectMeta<StrimziPodSet>>>,
    rebalances: Vec<Store<KafkaRebalance>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    family: &'static str,
    labels: Vec<(&'static str, String)>,
}

/// Anomalies that were counted, by their ids.
#[derive(Debug, Default)]
struct Counted {
    /// Those that are told of.
    told: BTreeSet<String>,
    /// Those that were, the latest last. An engine that is asked may tell of one again after it was forgotten.
    before: VecDeque<String>,
}

/// So many anomalies that are not told of any more are remembered for each cluster.
const MOST_REMEMBERED: usize = 100;

impl Counted {
    fn contains(&self, id: &str) -> bool {
        self.told.contains(id) || self.before.iter().any(|known| known == id)
    }

    /// These are told of now.
    fn tell(&mut self, ids: BTreeSet<String>) {
        let before = std::mem::replace(&mut self.told, ids);
        self.before.retain(|id| !self.told.contains(id));
        self.before.extend(before.into_iter().filter(|id| !self.told.contains(id)));
        let too_many = self.before.len().saturating_sub(MOST_REMEMBERED);
        self.before.drain(..too_many);
    }
}

/// How a reconciliation came about, and how it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reconciled {
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

    pub(crate) fn show_rebalances(&self, store: Store<KafkaRebalance>) {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).rebalances.push(store);
    }

    pub(crate) fn show_kafkas(&self, store: Store<Kafka>) {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).kafkas.push(store);
    }

    pub(crate) fn show_pod_sets(&self, store: Store<PartialObjectMeta<StrimziPodSet>>) {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).pod_sets.push(store);
    }

    fn add(&self, family: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        *sums.entry(Series { family, labels }).or_default() += value;
    }

    /// A KafkaRebalance was looked at. These also say what they are for.
    pub(crate) fn reconciled_rebalance(&self, resource: &KafkaRebalance, what: Reconciled) {
        let trigger = trigger(resource);
        self.count(resource, &[("mode", resource.spec.mode.as_str()), ("trigger", &trigger)], what);
    }

    /// Something else was looked at.
    pub(crate) fn reconciled<K: Resource<DynamicType = ()>>(&self, resource: &K, what: Reconciled) {
        self.count(resource, &[], what);
    }

    fn count<K: Resource<DynamicType = ()>>(&self, resource: &K, more: &[(&'static str, &str)], what: Reconciled) {
        let kind = K::kind(&());
        let namespace = resource.meta().namespace.as_deref().unwrap_or_default();
        let mut labels = vec![("kind", kind.as_ref()), ("namespace", namespace), ("selector", &self.selector)];
        labels.extend(more);
        labels.sort_unstable();
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

    /// What is told of a cluster's violated goals. Each anomaly counts once.
    pub(crate) fn told_of(&self, cluster: &ClusterRef, violations: &Violations) {
        let mut anomalies = self.anomalies.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = anomalies.entry(cluster.clone()).or_default();
        let mut told = BTreeSet::new();
        let kinds = [("fixable", &violations.fixable), ("unfixable", &violations.unfixable)];
        for (fixability, anomaly) in kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |it| (kind, it))) {
            told.insert(anomaly.id.clone());
            if !counted.contains(&anomaly.id) {
                let fixability = if violations.mixed.contains(&anomaly.id) { "mixed" } else { fixability };
                let labels = [
                    ("fixability", fixability),
                    ("name", cluster.name.as_str()),
                    ("namespace", cluster.namespace.as_str()),
                    ("type", "goal_violation"),
                ];
                self.add("strimzi_auto_rebalance_anomalies_detected_total", &labels, 1.0);
            }
        }
        counted.tell(told);
    }

    /// A cluster is gone: what was counted under its name is not shown any more.
    pub(crate) fn forget(&self, cluster: &ClusterRef) {
        self.anomalies.lock().unwrap_or_else(PoisonError::into_inner).remove(cluster);
        let is_of_it = |series: &Series| {
            let told = |label: &str| series.labels.iter().find(|(name, _)| *name == label).map(|(_, value)| value);
            told("name") == Some(&cluster.name) && told("namespace") == Some(&cluster.namespace)
        };
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).retain(|series, _| !is_of_it(series));
    }

    /// An engine was asked something.
    pub(crate) fn asked(&self, call: &str, answer: &str, took: Duration) {
        self.add("evenkeel_engine_requests_total", &[("answer", answer), ("call", call)], 1.0);
        self.add("evenkeel_engine_request_seconds_count", &[("call", call)], 1.0);
        self.add("evenkeel_engine_request_seconds_sum", &[("call", call)], took.as_secs_f64());
    }

    /// A resource has come from one state to another; `percent` of its data had been moved.
    pub(crate) fn moved_on(&self, before: &KafkaRebalance, after: &KafkaRebalance, percent: u64, now: Timestamp) {
        let outdated = || {
            let mut conditions = after.status.iter().flat_map(|status| &status.conditions);
            conditions.any(|it| it.is_warning() && it.has_reason(Reason::ProposalOutdated))
        };
        let outcome = match after.state() {
            ended @ (RebalanceState::Ready | RebalanceState::Stopped | RebalanceState::NotReady) => Some(ended),
            // It was stopped, for a new proposal; or it was refused after all, and was none.
            RebalanceState::PendingProposal if !outdated() => Some(RebalanceState::Stopped),
            _ => None,
        };
        // A run that came to its end during a pause is a run all the same.
        let (state, began) = crate::rebalance::before_any_pause(before);
        let Some(outcome) = outcome.filter(|_| state == RebalanceState::Rebalancing) else { return };
        let took = began.map_or(0.0, |began| now.duration_since(began).as_secs_f64().max(0.0));
        let trigger = trigger(before);
        let mode = before.spec.mode.as_str();
        let labels = [("mode", mode), ("outcome", outcome.as_str()), ("trigger", &trigger)];
        self.add("evenkeel_rebalance_seconds_count", &labels, 1.0);
        self.add("evenkeel_rebalance_seconds_sum", &labels, took);
        let planned = megabytes(before.status.as_ref().and_then(|status| status.optimization_result.as_ref()));
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
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut add = |family, labels: &[(&'static str, String)], value| {
            *all.entry(Series { family, labels: labels.to_vec() }).or_default() += value;
        };
        let counted = |kind: &str, namespace: &Option<String>| {
            [("kind", kind.to_owned()), ("namespace", text(namespace)), ("selector", self.selector.clone())]
        };
        for set in stores.pod_sets.iter().flat_map(Store::state) {
            add("strimzi_resources", &counted("StrimziPodSet", &set.metadata.namespace), 1.0);
        }
        for kafka in stores.kafkas.iter().flat_map(Store::state) {
            add("strimzi_resources", &counted("Kafka", &kafka.metadata.namespace), 1.0);
            if let Some(auto) = kafka.status.as_ref().and_then(|status| status.auto_rebalance.as_ref()) {
                let of = [("name", text(&kafka.metadata.name)), ("namespace", text(&kafka.metadata.namespace))];
                let labels: Vec<_> = of.into_iter().chain([("state", state_name(auto.state).to_owned())]).collect();
                add("evenkeel_auto_rebalance_state", &labels, 1.0);
            }
        }
        for resource in stores.rebalances.iter().flat_map(Store::state) {
            let (namespace, name) = (text(&resource.metadata.namespace), text(&resource.metadata.name));
            let [kind, of_namespace, selector] = counted("KafkaRebalance", &resource.metadata.namespace);
            let mode = ("mode", resource.spec.mode.as_str().to_owned());
            let labels = [kind, mode, of_namespace, selector, ("trigger", trigger(&resource))];
            add("strimzi_resources", &labels, 1.0);
            if resource.metadata.annotations.as_ref().is_some_and(annotations::is_template) {
                continue;
            }
            let state = resource.state().to_string();
            add("evenkeel_rebalances", &[("namespace", namespace.clone()), ("state", state)], 1.0);
            let result = resource.status.as_ref().and_then(|status| status.optimization_result.as_ref());
            for (moment, key) in BALANCEDNESS {
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
    // A user may have taken its label off.
    let label = || resource.metadata.labels.as_ref()?.get(labels::CLUSTER).map(String::as_str);
    let generated = held_for(&resource.metadata).or_else(label).and_then(|cluster| Generated::read(resource, cluster));
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
    fn what_set_one_of_ours_off_is_in_its_name() {
        let ours = |name: &str| {
            let mut made = rebalance(name, "Ready");
            made.metadata.finalizers = Some(vec![annotations::AUTO_REBALANCING_FINALIZER.to_owned()]);
            made
        };
        assert_eq!(trigger(&rebalance("mine", "Ready")), "manual");
        assert_eq!(trigger(&ours("c-auto-rebalancing-add-brokers")), "add-brokers");
        assert_eq!(trigger(&ours("c-auto-rebalancing-imbalance-x")), "imbalance");
        let mut unlabelled = ours("c-auto-rebalancing-remove-brokers");
        unlabelled.metadata.labels = None;
        assert_eq!(trigger(&unlabelled), "remove-brokers");
        assert_eq!(trigger(&rebalance("c-auto-rebalancing-add-brokers", "Ready")), "manual", "a user's of that name");
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
    fn a_run_that_ends_for_a_new_proposal_or_in_a_pause_is_counted_and_one_that_was_none_is_not() {
        let now = "2026-01-01T00:01:30Z".parse().unwrap();
        let ends = |before: &KafkaRebalance, after: &KafkaRebalance| {
            let figures = Figures::new(None);
            figures.moved_on(before, after, 25, now);
            figures.render()
        };
        let running = rebalance("r", "Rebalancing");
        let mut outdated = rebalance("r", "PendingProposal");
        let conditions = &mut outdated.status.as_mut().unwrap().conditions;
        conditions.push(Condition::warning(Reason::ProposalOutdated, "it was refused, and nothing was moved"));
        assert_eq!(ends(&running, &outdated), "");
        assert_eq!(ends(&running, &rebalance("r", "ReconciliationPaused")), "", "it is not over");
        let renewed = ends(&running, &rebalance("r", "PendingProposal"));
        let line = "evenkeel_rebalance_seconds_sum{mode=\"full\",outcome=\"Stopped\",trigger=\"manual\"} 90";
        assert!(renewed.contains(line) && renewed.contains("{mode=\"full\",trigger=\"manual\"} 50"), "{renewed}");
        let mut paused = rebalance("r", "ReconciliationPaused");
        let held = running.status.as_ref().unwrap().conditions.clone();
        paused.status.as_mut().unwrap().conditions.extend(held);
        let line = "evenkeel_rebalance_seconds_count{mode=\"full\",outcome=\"Ready\",trigger=\"manual\"} 1";
        let unpaused = ends(&paused, &rebalance("r", "Ready"));
        assert!(unpaused.contains(line), "{unpaused}");
    }

    #[test]
    fn what_engines_are_asked_is_counted_by_the_answer_and_timed() {
        let figures = Figures::new(None);
        figures.asked("propose", "ready", Duration::from_millis(250));
        figures.asked("propose", "refused", Duration::from_millis(500));
        assert_eq!(
            figures.render(),
            "# TYPE evenkeel_engine_request_seconds summary\n\
             evenkeel_engine_request_seconds_count{call=\"propose\"} 2\n\
             evenkeel_engine_request_seconds_sum{call=\"propose\"} 0.75\n\
             # TYPE evenkeel_engine_requests_total counter\n\
             evenkeel_engine_requests_total{answer=\"ready\",call=\"propose\"} 1\n\
             evenkeel_engine_requests_total{answer=\"refused\",call=\"propose\"} 1\n"
        );
    }

    #[test]
    fn balancedness_is_shown_for_what_has_a_proposal_and_for_no_template() {
        let (store, mut writer) = kube::runtime::reflector::store();
        let scores = json!({"onDemandBalancednessScoreBefore": 71.5, "onDemandBalancednessScoreAfter": 96});
        let scores = scores.as_object().cloned().map(|it| it.into_iter().collect());
        let mut proposed = rebalance("r", "ProposalReady");
        proposed.status.as_mut().unwrap().optimization_result = scores;
        let mut template = proposed.clone();
        template.metadata.name = Some("t".into());
        template.metadata.annotations = Some([(annotations::REBALANCE_TEMPLATE.to_owned(), "true".to_owned())].into());
        for it in [proposed, template, rebalance("bare", "Ready")] {
            writer.apply_watcher_event(&kube::runtime::watcher::Event::Apply(it));
        }
        let figures = Figures::new(None);
        figures.show_rebalances(store);
        let page = figures.render();
        let told: Vec<&str> = page.lines().filter(|line| line.contains("_balancedness{")).collect();
        let line = |moment: &str, score: &str| {
            format!("evenkeel_rebalance_balancedness{{moment=\"{moment}\",name=\"r\",namespace=\"ns\"}} {score}")
        };
        assert_eq!(told, [line("after", "96"), line("before", "71.5")], "{page}");
    }

    #[test]
    fn reconciliations_have_the_labels_that_dashboards_know() {
        let figures = Figures::new(Some("team=a"));
        let what = Reconciled { periodical: false, succeeded: true, took: Duration::from_millis(500) };
        figures.reconciled_rebalance(&rebalance("r", "Ready"), what);
        let page = figures.render();
        let labels = "{kind=\"KafkaRebalance\",mode=\"full\",namespace=\"ns\",selector=\"team=a\",trigger=\"manual\"}";
        for line in [
            format!("strimzi_reconciliations_total{labels} 1"),
            format!("strimzi_reconciliations_failed_total{labels} 0"),
            format!("strimzi_reconciliations_duration_seconds_sum{labels} 0.5"),
        ] {
            assert!(page.contains(&line), "{line}\nis not in\n{page}");
        }
        figures.reconciled(&Kafka::new("c", Default::default()), what);
        let line = "strimzi_reconciliations_total{kind=\"Kafka\",namespace=\"\",selector=\"team=a\"} 1";
        assert!(figures.render().contains(line), "{}", figures.render());
    }

    #[test]
    fn rebalances_are_counted_by_what_they_are_for() {
        let (store, mut writer) = kube::runtime::reflector::store();
        let mut ours = rebalance("c-auto-rebalancing-imbalance-x", "Rebalancing");
        ours.metadata.finalizers = Some(vec![annotations::AUTO_REBALANCING_FINALIZER.to_owned()]);
        for it in [ours, rebalance("mine", "Ready"), rebalance("yours", "Ready")] {
            writer.apply_watcher_event(&kube::runtime::watcher::Event::Apply(it));
        }
        let figures = Figures::new(None);
        figures.show_rebalances(store);
        let page = figures.render();
        for (trigger, count) in [("imbalance", 1), ("manual", 2)] {
            let labels = "kind=\"KafkaRebalance\",mode=\"full\",namespace=\"ns\",selector=\"\"";
            let line = format!("strimzi_resources{{{labels},trigger=\"{trigger}\"}} {count}");
            assert!(page.contains(&line), "{line}\nis not in\n{page}");
        }
    }

    #[test]
    fn few_anomalies_that_are_over_are_remembered_and_all_that_are_not() {
        let mut counted = Counted::default();
        let many = |from: usize| (from..from + 300).map(|number| format!("{number:04}")).collect::<BTreeSet<_>>();
        counted.tell(many(0));
        assert!(many(0).iter().all(|id| counted.contains(id)));
        counted.tell(many(1_000));
        assert!(many(1_000).iter().all(|id| counted.contains(id)));
        assert_eq!(counted.before.len(), MOST_REMEMBERED);
        assert!(counted.contains("0299") && !counted.contains("0000"), "the latest");
    }

    #[test]
    fn an_anomaly_counts_once() {
        let figures = Figures::new(None);
        let cluster = ClusterRef::new("ns", "c");
        let told = |fixable: &str, unfixable: &str| {
            let data = [("fixableAnomalies", fixable), ("unfixableAnomalies", unfixable)];
            let data = data.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
            figures.told_of(&cluster, &Violations::read(&data));
        };
        told("- a: [RackAwareGoal]", "");
        told("- a: [RackAwareGoal]", "- b: [DiskCapacityGoal]");
        told("", "");
        told("- a: [RackAwareGoal]", "");
        told("- c: [RackAwareGoal]", "");
        told("- d: [RackAwareGoal]", "- d: [DiskCapacityGoal]");
        let labels =
            |kind: &str| format!("{{fixability=\"{kind}\",name=\"c\",namespace=\"ns\",type=\"goal_violation\"}}");
        let family = "strimzi_auto_rebalance_anomalies_detected_total";
        let page = figures.render();
        for (kind, count) in [("fixable", 2), ("unfixable", 1), ("mixed", 1)] {
            let line = format!("{family}{} {count}", labels(kind));
            assert!(page.contains(&line), "{line}\nis not in\n{page}");
        }
    }

    #[test]
    fn nothing_is_shown_of_a_cluster_that_is_gone() {
        let figures = Figures::new(None);
        let found = Violations::read(&[("fixableAnomalies".to_owned(), "- a: [RackAwareGoal]".to_owned())].into());
        for (namespace, name) in [("ns", "c"), ("ns", "d"), ("other", "c")] {
            figures.told_of(&ClusterRef::new(namespace, name), &found);
        }
        figures.forget(&ClusterRef::new("ns", "c"));
        let page = figures.render();
        assert!(!page.contains("name=\"c\",namespace=\"ns\""), "{page}");
        assert!(page.contains("name=\"d\"") && page.contains("namespace=\"other\""), "{page}");
    }
}
