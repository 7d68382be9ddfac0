//! `state` as text: a line for each part, then the details that were asked for.

mod executor;

use std::fmt::Write;

use super::{date, duration, line, list, map};
use crate::body::state::{
    AnalyzerState, Anomaly, AnomalyDetectorState, BrokerFailure, Described, DiskFailure, GoalViolation, MonitorState,
    Readiness, State,
};
use crate::parameter::AnomalyType;

impl State {
    /// As text. Details are there if the body has them.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(monitor) = &self.monitor_state {
            let _ = writeln!(out, "MonitorState: {}", monitor.text());
        }
        if let Some(executor) = &self.executor_state {
            let _ = writeln!(out, "ExecutorState: {}", executor.text());
        }
        if let Some(analyzer) = &self.analyzer_state {
            let _ = writeln!(out, "AnalyzerState: {}", analyzer.text());
        }
        if let Some(detector) = &self.anomaly_detector_state {
            let _ = write!(out, "AnomalyDetectorState: {}\n\n", detector.text());
        }
        let windows = self.monitor_state.as_ref().and_then(MonitorState::windows_text);
        let tasks = self.executor_state.as_ref().map(|executor| executor.tasks_text());
        let readiness = self.analyzer_state.as_ref().and_then(AnalyzerState::readiness_text);
        out.extend([windows, tasks, readiness].into_iter().flatten());
        out
    }
}

impl MonitorState {
    fn text(&self) -> String {
        let Some(it) = &self.figures else {
            return format!("{{state: {}, error: {}}}", self.state, self.error.as_deref().unwrap_or(""));
        };
        let windows = it.num_monitored_windows as f64 / it.num_total_windows as f64 * 100.0;
        let mut out = format!(
            "{{state: {}({:.3}% trained), NumValidWindows: ({}/{}) ({windows:.3}%), NumValidPartitions: {}/{} ({:.3}%), \
             flawedPartitions: {}",
            self.state,
            it.training_pct.0,
            it.num_monitored_windows,
            it.num_total_windows,
            it.num_valid_partitions,
            it.num_total_partitions,
            it.monitoring_coverage_pct.0,
            it.num_flawed_partitions
        );
        if let Some(loaded) = self.loading_progress_pct {
            let _ = write!(out, ", loadingProgress: {:.3}%", loaded.0);
        }
        // JSON says so if there was none.
        if let Some(reason) = self.reason_of_latest_pause_or_resume.as_deref().filter(|reason| *reason != "N/A") {
            let _ = write!(out, ", reasonOfPauseOrResume: {}", line(reason));
        }
        out.push('}');
        out
    }

    /// The newest window first.
    fn windows_text(&self) -> Option<String> {
        let windows = self.figures.as_ref()?.monitored_windows.as_ref()?;
        let windows = map(windows.iter().rev().map(|(end, part)| (end.0, format!("{:.3}%", part.0 * 100.0))));
        Some(format!("\n\nMonitored Windows [Window End_Time=Data_Completeness]:\n{windows}"))
    }
}

impl AnalyzerState {
    fn text(&self) -> String {
        format!("{{isProposalReady: {}, readyGoals: {}}}", self.is_proposal_ready, list(&self.ready_goals))
    }

    fn readiness_text(&self) -> Option<String> {
        let mut out = String::from("\n\nGoal Readiness:\n");
        for goal in self.goal_readiness.as_ref()? {
            let it = &goal.model_complete_requirement;
            let _ = writeln!(
                out,
                "{:>50}, (requiredNumWindows={}, minMonitoredPartitionPercentage={:.3}, includedAllTopics={}), {}",
                goal.name,
                it.required_num_snapshots,
                it.min_monitored_partitions_percentage.0,
                it.include_all_topics,
                if goal.status == Readiness::Ready { "Ready" } else { "NotReady" }
            );
        }
        Some(out)
    }
}

impl AnomalyDetectorState {
    fn text(&self) -> String {
        let metrics = &self.metrics;
        let between: Vec<String> = metrics
            .mean_time_between_anomalies_ms
            .iter()
            // The original forgets this one here, and scripts count columns.
            .filter(|(anomaly, _)| **anomaly != AnomalyType::MaintenanceEvent)
            .map(|(anomaly, ms)| format!("{anomaly}:{}", duration(ms.0)))
            .collect();
        format!(
            "{{selfHealingEnabled:{}, selfHealingDisabled:{}, selfHealingEnabledRatio:{}, recentGoalViolations:{}, \
             recentBrokerFailures:{}, recentMetricAnomalies:{}, recentDiskFailures:{}, recentTopicAnomalies:{}, \
             recentMaintenanceEvents:{}, metrics:{{meanTimeBetweenAnomalies:{{{}}}, meanTimeToStartFix:{}, \
             numSelfHealingStarted:{}, numSelfHealingFailedToStart:{}, ongoingAnomalyDuration={}}}, \
             ongoingSelfHealingAnomaly:{}, balancednessScore:{:.3}}}",
            list(&self.self_healing_enabled),
            list(&self.self_healing_disabled),
            map(&self.self_healing_enabled_ratio),
            anomalies(&self.recent_goal_violations, goal_violation),
            anomalies(&self.recent_broker_failures, broker_failure),
            anomalies(&self.recent_metric_anomalies, described),
            anomalies(&self.recent_disk_failures, disk_failure),
            anomalies(&self.recent_topic_anomalies, described),
            anomalies(&self.recent_maintenance_events, described),
            between.join(", "),
            duration(metrics.mean_time_to_start_fix_ms.0),
            metrics.num_self_healing_started,
            metrics.num_self_healing_failed_to_start,
            duration(metrics.ongoing_anomaly_duration_ms as f64),
            self.ongoing_self_healing_anomaly.as_deref().unwrap_or("None"),
            self.balancedness_score.0
        )
    }
}

fn anomalies<What>(anomalies: &[Anomaly<What>], what: impl Fn(&What) -> String) -> String {
    list(anomalies.iter().map(|anomaly| {
        format!(
            "{{anomalyId={}, detectionDate={}, statusUpdateDate={}, {}, status={}}}",
            anomaly.anomaly_id,
            date(anomaly.detection_ms),
            date(anomaly.status_update_ms),
            what(&anomaly.what),
            anomaly.status
        )
    }))
}

fn goal_violation(it: &GoalViolation) -> String {
    let (fixable, unfixable) = (list(&it.fixable_violated_goals), list(&it.unfixable_violated_goals));
    format!("fixableViolatedGoals={fixable}, unfixableViolatedGoals={unfixable}")
}

fn broker_failure(it: &BrokerFailure) -> String {
    let brokers = map(it.failed_brokers_by_time_ms.iter().map(|(broker, ms)| (broker.0, ms)));
    format!("failedBrokersByTimeMs={brokers}")
}

fn disk_failure(it: &DiskFailure) -> String {
    let brokers = map(it.failed_disks_by_time_ms.iter().map(|(broker, disks)| (broker.0, map(disks))));
    format!("failedDisksByTimeMs={brokers}")
}

fn described(it: &Described) -> String {
    format!("description={}", it.description)
}
