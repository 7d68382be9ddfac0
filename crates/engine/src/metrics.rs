//! Figures for Prometheus, in its text form.
//!
//! The original's sensors are JMX beans, and dashboards know them by the names that its usual exporter
//! gives: `Executor.replica-action-pending` of the attribute `Value` is
//! `kafka_cruisecontrol_executor_replica_action_pending_value`. Ours begin with `evenkeel_`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use evenkeel_balancer::provision::ProvisionStatus;
use evenkeel_rest::{Endpoint, body::state::MonitorFigures, parameter::AnomalyType};

use crate::{
    detect::service::Detectors,
    executor::{Executor, Progress, service::Tally},
    monitor::Fetches,
    planner,
    watch::Sighting,
};

/// A page of figures being written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// A sensor of the original with its present value.
    pub fn value(&mut self, sensor: &str, value: impl Into<f64>) {
        self.sensor(sensor, "value", value.into());
    }

    /// A sensor of the original that counts.
    pub fn count(&mut self, sensor: &str, count: u64) {
        self.sensor(sensor, "count", count as f64);
    }

    /// A sensor of the original that times something, in milliseconds.
    pub fn timer(&mut self, sensor: &str, timer: Timer) {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.count(sensor, timer.times);
        self.sensor(sensor, "mean", millis(timer.spent) / timer.times.max(1) as f64);
        self.sensor(sensor, "max", millis(timer.longest));
    }

    /// An attribute of a sensor of the original.
    pub fn sensor(&mut self, sensor: &str, attribute: &str, value: f64) {
        let name = format!("kafka_cruisecontrol_{sensor}_{attribute}").to_ascii_lowercase().replace(['.', '-'], "_");
        self.own(&name, "gauge", &[], value);
    }

    /// A figure of our own.
    pub fn own(&mut self, name: &str, kind: &str, labels: &[(&str, &str)], value: f64) {
        let of = if name.starts_with("evenkeel_") { "of this engine" } else { "a sensor of Cruise Control" };
        let heading = format!("# HELP {name} {}, {of}\n# TYPE {name} {kind}\n", name.replace('_', " "));
        if !self.text.contains(&heading) {
            self.text.push_str(&heading);
        }
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    /// All of it.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// How often something was done, and how long it took.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    times: u64,
    spent: Duration,
    longest: Duration,
}

impl Timer {
    /// It was done once more, and took so long.
    pub fn took(&mut self, time: Duration) {
        self.times += 1;
        self.spent += time;
        self.longest = self.longest.max(time);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What the executor does.
pub fn executor(page: &mut Page, executor: &Executor) {
    let running = executor.running();
    let progress = running.as_ref().map(|(_, report)| report.progress).unwrap_or_default();
    execution(page, running.is_some(), &progress, executor.tally());
    let report = running.as_ref().map(|(_, report)| report);
    let gauge = |is_so: bool| f64::from(u8::from(is_so));
    page.own("evenkeel_execution_slow_tasks", "gauge", &[], report.map_or(0.0, |it| it.slow as f64));
    page.own("evenkeel_execution_held", "gauge", &[], gauge(report.is_some_and(|it| it.hold.is_some())));
    page.own("evenkeel_execution_in_trouble", "gauge", &[], gauge(report.is_some_and(|it| it.trouble.is_some())));
    page.own("evenkeel_throttles_left", "gauge", &[], executor.throttles_left() as f64);
}

fn execution(page: &mut Page, runs: bool, progress: &Progress, tally: Tally) {
    let kinds =
        [("replica", progress.replicas), ("intra-broker-replica", progress.dirs), ("leadership", progress.leaders)];
    for (kind, counts) in kinds {
        let mut set = |what: &str, number: usize| page.value(&format!("Executor.{kind}-action-{what}"), number as u32);
        set("in-progress", counts.in_progress);
        set("pending", counts.pending);
        set("aborting", counts.aborting);
        set("aborted", counts.aborted);
        set("dead", counts.dead);
    }
    page.value("Executor.ongoing-execution-non-kafka-assigner", u32::from(runs));
    page.value("Executor.ongoing-execution-kafka-assigner", 0_u32);
    page.value("Executor.execution-started-kafka-assigner", 0_u32);
    page.value("Executor.execution-started-non-kafka-assigner", tally.started as f64);
    page.value("Executor.execution-stopped", (tally.stopped + tally.incomplete) as f64);
    page.value("Executor.execution-stopped-by-user", tally.stopped as f64);
    page.timer("Executor.proposal-execution-time", tally.runs);
    page.own("evenkeel_execution_bytes_done", "gauge", &[], progress.bytes_done as f64);
    page.own("evenkeel_execution_bytes_total", "gauge", &[], progress.bytes_total as f64);
}

/// What is known of the loads, and how it is fetched.
pub fn monitor(page: &mut Page, figures: Option<&MonitorFigures>, sighting: Option<&Sighting>, fetches: Fetches) {
    page.timer("MetricFetcherManager.partition-samples-fetcher-timer", fetches.well);
    page.count("MetricFetcherManager.partition-samples-fetcher-failure-rate", fetches.failed);
    if let Some(figures) = figures {
        page.value("LoadMonitor.valid-windows", figures.num_monitored_windows as f64);
        page.value("LoadMonitor.total-monitored-windows", figures.num_total_windows as f64);
        page.value("LoadMonitor.monitored-partitions-percentage", figures.monitoring_coverage_pct.0);
        page.value("LoadMonitor.num-partitions-with-extrapolations", figures.num_flawed_partitions as f64);
    }
    let Some(sighting) = sighting else { return };
    let view = &sighting.view;
    let topics: BTreeSet<&str> = view.partitions.keys().map(|partition| partition.topic.as_str()).collect();
    let holding: BTreeSet<i32> = view.partitions.values().flat_map(|seen| &seen.replicas).copied().collect();
    let offline: BTreeSet<i32> = view.partitions.values().flat_map(|seen| &seen.offline).copied().collect();
    let dead = holding.iter().filter(|id| !view.brokers.get(id).is_some_and(|broker| broker.up)).count();
    page.value("LoadMonitor.num-topics", topics.len() as f64);
    page.value("LoadMonitor.brokers-with-replicas", holding.len() as f64);
    page.value("LoadMonitor.dead-brokers-with-replicas", dead as f64);
    page.value("LoadMonitor.brokers-with-offline-replicas", offline.len() as f64);
    // The original's, with the exponent that it has unless told otherwise.
    let replicas: usize = view.partitions.values().map(|seen| seen.replicas.len()).sum();
    page.value("LoadMonitor.metadata-factor", (replicas * holding.len()) as f64);
}

/// Plans.
pub fn planner(page: &mut Page, tally: planner::Tally) {
    page.timer("GoalOptimizer.proposal-computation-timer", tally.made);
    page.value("GoalOptimizer.has-unfixable-proposal-optimization", u32::from(tally.unfixable));
    page.timer("LoadMonitor.cluster-model-creation-timer", tally.models);
    page.own("evenkeel_plans_failed_total", "counter", &[], tally.failed as f64);
}

/// What is wrong with the cluster.
pub fn detectors(page: &mut Page, detectors: &Detectors) {
    let (state, provision) = (detectors.state(), detectors.provision().status);
    page.value("AnomalyDetector.balancedness-score", state.balancedness_score.0);
    for (status, sensor) in [
        (ProvisionStatus::UnderProvisioned, "under-provisioned"),
        (ProvisionStatus::OverProvisioned, "over-provisioned"),
        (ProvisionStatus::RightSized, "right-sized"),
    ] {
        page.value(&format!("AnomalyDetector.{sensor}"), u32::from(provision == status));
    }
    page.value("AnomalyDetector.GOAL_VIOLATION-has-unfixable-goals", u32::from(detectors.has_unfixable_goals()));
    page.value("AnomalyDetector.mean-time-to-start-fix-ms", state.metrics.mean_time_to_start_fix_ms.0);
    page.value("AnomalyDetector.number-of-self-healing-started", state.metrics.num_self_healing_started as f64);
    page.value("AnomalyDetector.ongoing-anomaly-duration-ms", state.metrics.ongoing_anomaly_duration_ms as f64);
    let timers = detectors.timers();
    page.timer("AnomalyDetector.goal-violation-detection-timer", timers.judging);
    for kind in AnomalyType::ALL {
        page.count(&format!("AnomalyDetector.{kind}-rate"), timers.handled.get(kind).copied().unwrap_or(0));
        let fixes = timers.fixes.get(kind).copied().unwrap_or_default();
        page.timer(&format!("AnomalyDetector.{kind}-self-healing-fix-generation-timer"), fixes);
        let on = state.self_healing_enabled.contains(kind);
        page.value(&format!("AnomalyDetector.{kind}-self-healing-enabled"), u32::from(on));
    }
}

/// Requests by endpoint, counted.
#[derive(Debug, Default)]
pub struct Requests {
    by_endpoint: Mutex<BTreeMap<Endpoint, Served>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Served {
    asked: u64,
    well: Timer,
}

impl Requests {
    /// A request has come.
    pub fn asked(&self, endpoint: Endpoint) {
        self.change(endpoint, |served| served.asked += 1);
    }

    /// Its answer has been worked out, well.
    pub fn answered(&self, endpoint: Endpoint, within: Duration) {
        self.change(endpoint, |served| served.well.took(within));
    }

    fn change(&self, endpoint: Endpoint, change: impl FnOnce(&mut Served)) {
        change(self.by_endpoint.lock().unwrap_or_else(PoisonError::into_inner).entry(endpoint).or_default());
    }

    /// What was counted.
    pub fn write(&self, page: &mut Page) {
        let counted = self.by_endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (endpoint, served) in counted {
            let name = endpoint.name();
            page.count(&format!("KafkaCruiseControlServlet.{name}-request-rate"), served.asked);
            page.timer(&format!("KafkaCruiseControlServlet.{name}-successful-request-execution-timer"), served.well);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_have_the_names_that_dashboards_know() {
        let mut page = Page::default();
        execution(&mut page, true, &Progress::default(), Tally { started: 3, stopped: 1, ..Tally::default() });
        page.value("AnomalyDetector.balancedness-score", 91.5);
        let text = page.into_text();
        for line in [
            "kafka_cruisecontrol_executor_ongoing_execution_non_kafka_assigner_value 1",
            "kafka_cruisecontrol_executor_replica_action_in_progress_value 0",
            "kafka_cruisecontrol_executor_execution_stopped_by_user_value 1",
            "kafka_cruisecontrol_anomalydetector_balancedness_score_value 91.5",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_family_is_announced_once_and_labels_are_escaped() {
        let mut page = Page::default();
        page.own("evenkeel_x", "counter", &[("why", "a \"b\"\n\\")], 1.0);
        page.own("evenkeel_x", "counter", &[("why", "c")], 2.0);
        assert_eq!(
            page.into_text(),
            "# HELP evenkeel_x evenkeel x, of this engine\n# TYPE evenkeel_x counter\nevenkeel_x{why=\"a \\\"b\\\"\\n\\\\\"} 1\nevenkeel_x{why=\"c\"} 2\n"
        );
    }

    #[test]
    fn requests_are_counted_by_endpoint() {
        let (requests, mut page) = (Requests::default(), Page::default());
        requests.asked(Endpoint::State);
        requests.asked(Endpoint::State);
        requests.answered(Endpoint::State, Duration::from_millis(4));
        requests.write(&mut page);
        let text = page.into_text();
        assert!(text.contains("kafka_cruisecontrol_kafkacruisecontrolservlet_state_request_rate_count 2\n"), "{text}");
        assert!(text.contains("state_successful_request_execution_timer_mean 4\n"), "{text}");
    }
}
