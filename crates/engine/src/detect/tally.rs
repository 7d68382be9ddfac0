//! How often something was wrong, and how long until it was mended.

use std::collections::BTreeMap;

use evenkeel_rest::{body::state::AnomalyMetrics, parameter::AnomalyType};

use super::Millis;

/// Counts since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    began: Millis,
    handled: BTreeMap<AnomalyType, u64>,
    /// Since when something is wrong that nobody has begun to mend.
    wrong_since: Option<Millis>,
    /// How often it took how long, together, until somebody began to mend.
    begun: (u64, Millis),
    /// Fixes that began.
    pub started: u64,
    /// Fixes that could not begin.
    pub failed_to_start: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new(now: Millis) -> Tally {
        Tally { began: now, handled: BTreeMap::new(), wrong_since: None, begun: (0, 0), started: 0, failed_to_start: 0 }
    }

    /// An anomaly was looked into.
    pub fn handled(&mut self, kind: AnomalyType, now: Millis) {
        *self.handled.entry(kind).or_default() += 1;
        self.wrong_since.get_or_insert(now);
    }

    /// How many of each kind were looked into.
    pub fn times(&self) -> BTreeMap<AnomalyType, u64> {
        self.handled.clone()
    }

    /// An execution began, whoever asked for it: somebody mends.
    pub fn execution_began(&mut self, now: Millis) {
        if let Some(since) = self.wrong_since.take() {
            self.begun = (self.begun.0 + 1, self.begun.1 + (now - since));
        }
    }

    /// Nothing is wrong any more, without anybody's doing.
    pub fn nothing_wrong(&mut self) {
        self.wrong_since = None;
    }

    /// As the state shows them. The original gives a rate under the name of a mean time; this is the time.
    pub fn metrics(&self, now: Millis) -> AnomalyMetrics {
        let between = |kind: &AnomalyType| match self.handled.get(kind) {
            Some(times) if *times > 0 => (now - self.began) as f64 / *times as f64,
            _ => 0.0,
        };
        let mean = if self.begun.0 > 0 { self.begun.1 as f64 / self.begun.0 as f64 } else { 0.0 };
        AnomalyMetrics {
            mean_time_between_anomalies_ms: AnomalyType::ALL.iter().map(|kind| (*kind, between(kind).into())).collect(),
            ongoing_anomaly_duration_ms: self.wrong_since.map_or(0, |since| u64::try_from(now - since).unwrap_or(0)),
            num_self_healing_started: self.started,
            num_self_healing_failed_to_start: self.failed_to_start,
            mean_time_to_start_fix_ms: mean.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anomalies_last_until_somebody_mends_or_they_are_over() {
        let mut tally = Tally::new(0);
        tally.handled(AnomalyType::GoalViolation, 100);
        tally.handled(AnomalyType::GoalViolation, 200);
        let metrics = tally.metrics(600);
        assert_eq!(metrics.mean_time_between_anomalies_ms[&AnomalyType::GoalViolation].0, 300.0);
        assert_eq!(metrics.mean_time_between_anomalies_ms[&AnomalyType::DiskFailure].0, 0.0);
        assert_eq!((metrics.ongoing_anomaly_duration_ms, metrics.mean_time_to_start_fix_ms.0), (500, 0.0));
        tally.execution_began(700);
        tally.handled(AnomalyType::BrokerFailure, 1_000);
        tally.execution_began(1_200);
        tally.execution_began(1_300);
        assert_eq!(tally.metrics(1_300).mean_time_to_start_fix_ms.0, 400.0);
        tally.handled(AnomalyType::BrokerFailure, 1_400);
        tally.nothing_wrong();
        let metrics = tally.metrics(1_500);
        assert_eq!((metrics.ongoing_anomaly_duration_ms, metrics.mean_time_to_start_fix_ms.0), (0, 400.0));
    }
}
