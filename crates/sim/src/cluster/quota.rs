//! A replication quota as Kafka measures it: an average over eleven windows of a second, looked at
//! before each fetch. Hence bursts, then standstill; and traffic from before a lower rate was set
//! still counts. So does that of followers in sync, which no quota holds up: a rate below theirs leaves nothing for
//! copies.

use std::collections::VecDeque;

use crate::ids::Millis;

const WINDOW: Millis = 1_000;
const WINDOWS: Millis = 11;

/// How far back traffic counts.
pub(crate) const COUNTED: Millis = WINDOW * WINDOWS;

/// The traffic of the last eleven seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(VecDeque<(Millis, f64)>);

impl Windows {
    pub(crate) fn record(&mut self, now: Millis, bytes: f64) {
        if bytes <= 0.0 {
            return;
        }
        match self.0.back_mut() {
            Some((since, sum)) if now < *since + WINDOW => *sum += bytes,
            _ => self.0.push_back((now, bytes)),
        }
        while self.0.front().is_some_and(|(since, _)| *since + WINDOW * WINDOWS <= now) {
            self.0.pop_front();
        }
    }

    /// Traffic that flows all the time, between two moments.
    pub(crate) fn record_steady(&mut self, from: Millis, until: Millis, bytes_per_second: f64) {
        let mut since = from;
        while since < until && bytes_per_second > 0.0 {
            let next = (since + WINDOW).min(until);
            self.record(since, bytes_per_second * (next - since) as f64 / 1_000.0);
            since = next;
        }
    }

    pub(crate) fn exceeds(&self, bytes_per_second: f64, now: Millis) -> bool {
        let counted = || self.0.iter().filter(|(since, _)| *since + WINDOW * WINDOWS > now);
        let Some((oldest, _)) = counted().next() else { return false };
        let elapsed = (now - oldest).max(WINDOW) as f64 / 1_000.0;
        counted().map(|(_, bytes)| bytes).sum::<f64>() / elapsed > bytes_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_the_quota_is_exceeded_until_the_average_has_come_down() {
        let mut windows = Windows::default();
        windows.record(0, 20.0);
        assert!(windows.exceeds(10.0, 100) && windows.exceeds(10.0, 1_900));
        assert!(!windows.exceeds(10.0, 2_000));
    }

    #[test]
    fn what_flows_all_the_time_is_counted_as_its_rate() {
        let mut windows = Windows::default();
        windows.record_steady(0, 9_500, 10.0);
        assert!(windows.exceeds(9.5, 9_500) && !windows.exceeds(10.5, 9_500));
    }

    #[test]
    fn traffic_before_a_lower_rate_counts_for_eleven_seconds() {
        let mut windows = Windows::default();
        windows.record(0, 1_000.0);
        assert!(!windows.exceeds(1_000.0, 1_000));
        assert!(windows.exceeds(1.0, 10_900));
        assert!(!windows.exceeds(1.0, 11_000));
    }
}
