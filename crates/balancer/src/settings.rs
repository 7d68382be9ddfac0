//! What can be tuned about goals. Names in the comments are Cruise Control's configuration keys.

use crate::cluster::Resource;
use crate::options::TopicPattern;

/// How far inside its band a distribution goal aims, so that the next small change does not violate it.
const BALANCE_MARGIN: f64 = 0.9;

/// Thresholds of the goals, with Cruise Control's defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `cpu.balance.threshold`, `network.inbound.balance.threshold`, … per resource.
    pub balance_thresholds: [f64; Resource::COUNT],
    /// `cpu.capacity.threshold` (0.7), `network.inbound.capacity.threshold`, … per resource.
    pub capacity_thresholds: [f64; Resource::COUNT],
    /// `cpu.low.utilization.threshold`, … per resource: below it a cluster counts as idle.
    pub low_utilization_thresholds: [f64; Resource::COUNT],
    /// `max.replicas.per.broker`.
    pub max_replicas_per_broker: u64,
    /// `replica.count.balance.threshold`.
    pub replica_count_balance_threshold: f64,
    /// `leader.replica.count.balance.threshold`.
    pub leader_replica_count_balance_threshold: f64,
    /// `topic.replica.count.balance.threshold`.
    pub topic_replica_count_balance_threshold: f64,
    /// `topic.replica.count.balance.min.gap`.
    pub topic_replica_count_balance_min_gap: u32,
    /// `topic.replica.count.balance.max.gap`.
    pub topic_replica_count_balance_max_gap: u32,
    /// `topics.with.min.leaders.per.broker`; none by default.
    pub topics_with_min_leaders_per_broker: Option<TopicPattern>,
    /// `min.topic.leaders.per.broker`; 0 means an even share.
    pub min_topic_leaders_per_broker: u32,
    /// `goal.violation.distribution.threshold.multiplier`: bands are so much wider for the goal violation detector, and
    /// for requests that it [triggers](crate::options::Request::triggered_by_violation), and for nobody else.
    pub distribution_threshold_multiplier: f64,
    /// `goal.balancedness.priority.weight`.
    pub priority_weight: f64,
    /// `goal.balancedness.strictness.weight`.
    pub strictness_weight: f64,
    /// `overprovisioned.min.brokers`.
    pub overprovisioned_min_brokers: usize,
    /// `overprovisioned.min.extra.racks`.
    pub overprovisioned_min_extra_racks: usize,
    /// `overprovisioned.max.replicas.per.broker`.
    pub overprovisioned_max_replicas_per_broker: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            balance_thresholds: [1.10; Resource::COUNT],
            capacity_thresholds: [0.7, 0.8, 0.8, 0.8],
            low_utilization_thresholds: [0.0; Resource::COUNT],
            max_replicas_per_broker: 10_000,
            replica_count_balance_threshold: 1.10,
            leader_replica_count_balance_threshold: 1.10,
            topic_replica_count_balance_threshold: 3.0,
            topic_replica_count_balance_min_gap: 2,
            topic_replica_count_balance_max_gap: 40,
            topics_with_min_leaders_per_broker: None,
            min_topic_leaders_per_broker: 1,
            distribution_threshold_multiplier: 1.0,
            priority_weight: 1.1,
            strictness_weight: 1.5,
            overprovisioned_min_brokers: 3,
            overprovisioned_min_extra_racks: 2,
            overprovisioned_max_replicas_per_broker: 1_500,
        }
    }
}

impl Settings {
    /// The settings for requests of people: what is the detector's alone is left out.
    pub(crate) fn without_detector(&self) -> Settings {
        Settings { distribution_threshold_multiplier: 1.0, ..self.clone() }
    }

    /// How far from the mean, relative to it, a value may lie under a balance threshold.
    pub(crate) fn half_width(&self, threshold: f64) -> f64 {
        ((threshold * self.distribution_threshold_multiplier - 1.0) * BALANCE_MARGIN).max(0.0)
    }

    /// How many replicas of a topic with `mean` per broker each broker may hold: fewest and most.
    pub(crate) fn topic_band(&self, mean: f64) -> (u32, u32) {
        let width = self.half_width(self.topic_replica_count_balance_threshold);
        let (min_gap, max_gap) =
            (f64::from(self.topic_replica_count_balance_min_gap), f64::from(self.topic_replica_count_balance_max_gap));
        let (floor, ceil) = (mean.floor(), mean.ceil());
        let upper = (mean * (1.0 + width)).ceil().clamp(ceil + min_gap, ceil + max_gap.max(min_gap));
        let lower = (mean * (1.0 - width)).floor().max(0.0).clamp(floor - max_gap.max(min_gap), floor - min_gap);
        (lower.max(0.0) as u32, upper as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_band_is_nine_percent() {
        let settings = Settings::default();
        assert!((settings.half_width(1.10) - 0.09).abs() < 1e-12);
    }

    #[test]
    fn a_topic_band_is_kept_between_its_gaps() {
        let settings = Settings::default();
        assert_eq!(settings.topic_band(0.4), (0, 3)); // ceil(0.4 * 2.8) = 2, yet at least 1 + 2.
        assert_eq!(settings.topic_band(10.0), (0, 28)); // 10 * 2.8.
        assert_eq!(settings.topic_band(100.0), (60, 140)); // 280 and -80, yet at most 40 away.
    }
}
