//! What holds replication back while data moves, and what is left when it is lifted.
//!
//! A rate is set on every broker that takes part, and the lists of throttled replicas on every
//! topic that does. Whatever was set before stays: a rate is not overwritten, lists are joined, and
//! `*` already says it all. Lifting takes out what was put in, and deletes what is empty then.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::BrokerId;
use serde::{Deserialize, Serialize};

use super::order::Order;

/// What is to be throttled, all of it known before the first setting is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Bytes per second, on each of the brokers, in and out.
    pub rate: u64,
    /// Who takes part.
    pub brokers: BTreeSet<BrokerId>,
    /// What moves, by topic: old and new replicas of each partition.
    pub topics: BTreeMap<String, Listing>,
}

/// A list of replicas as Kafka writes it: `partition:broker,...`, or `*` for all there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing(pub BTreeSet<(i32, BrokerId)>);

impl Throttle {
    /// What the order asks to be throttled; nothing if it asks for no throttle or copies nothing.
    pub fn of(order: &Order) -> Option<Throttle> {
        let mut throttle = Throttle { rate: order.throttle?, ..Throttle::default() };
        for mv in order.moves.iter().filter(|mv| mv.added().next().is_some()) {
            let everybody = mv.everybody();
            let listing = throttle.topics.entry(mv.partition.topic.clone()).or_default();
            listing.0.extend(everybody.iter().map(|broker| (mv.partition.partition, *broker)));
            throttle.brokers.extend(everybody);
        }
        (!throttle.brokers.is_empty()).then_some(throttle)
    }
}

impl Throttle {
    /// Whether it holds nothing back.
    pub fn is_empty(&self) -> bool {
        self.brokers.is_empty() && self.topics.is_empty()
    }

    /// Both together, to be lifted.
    #[must_use]
    pub fn with(mut self, other: &Throttle) -> Throttle {
        self.rate = self.rate.max(other.rate);
        self.brokers.extend(&other.brokers);
        for (topic, listing) in &other.topics {
            self.topics.entry(topic.clone()).or_default().0.extend(&listing.0);
        }
        self
    }

    /// What of it is with these.
    #[must_use]
    pub fn of_those(&self, brokers: &BTreeSet<BrokerId>, topics: &BTreeSet<String>) -> Throttle {
        let mut left = self.clone();
        left.brokers.retain(|broker| brokers.contains(broker));
        left.topics.retain(|topic, _| topics.contains(topic));
        left
    }
}

impl Listing {
    /// The value to set over `existing`, if any has to be.
    pub fn joined_to(&self, existing: Option<&str>) -> Option<String> {
        let Some(existing) = existing.map(str::trim).filter(|text| !text.is_empty()) else {
            return Some(self.to_string());
        };
        if existing == "*" {
            return None;
        }
        let there: BTreeSet<&str> = existing.split(',').map(str::trim).collect();
        let missing: Vec<String> = self.entries().filter(|entry| !there.contains(entry.as_str())).collect();
        (!missing.is_empty()).then(|| format!("{existing},{}", missing.join(",")))
    }

    /// What is left of `existing` without these: `None` if it need not be touched, an empty text if
    /// nothing is left.
    pub fn taken_from(&self, existing: &str) -> Option<String> {
        let ours: BTreeSet<String> = self.entries().collect();
        let entries: Vec<&str> = existing.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        let left: Vec<&str> = entries.iter().copied().filter(|entry| !ours.contains(*entry)).collect();
        (left.len() != entries.len() || entries.is_empty()).then(|| left.join(","))
    }

    fn entries(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(partition, broker)| format!("{partition}:{broker}"))
    }
}

impl std::fmt::Display for Listing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.entries().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(entries: &[(i32, i32)]) -> Listing {
        Listing(entries.iter().map(|(partition, broker)| (*partition, BrokerId(*broker))).collect())
    }

    #[test]
    fn what_was_set_before_stays_and_ours_goes_without_a_trace() {
        let ours = listing(&[(1, 0), (1, 3)]);
        assert_eq!(ours.joined_to(None).as_deref(), Some("1:0,1:3"));
        assert_eq!(ours.joined_to(Some("")).as_deref(), Some("1:0,1:3"));
        assert_eq!(ours.joined_to(Some("*")), None);
        assert_eq!(ours.joined_to(Some("7:7,1:0")).as_deref(), Some("7:7,1:0,1:3"));
        assert_eq!(ours.joined_to(Some("1:3,1:0")), None);

        assert_eq!(ours.taken_from("1:0,1:3").as_deref(), Some(""));
        assert_eq!(ours.taken_from("7:7,1:0,1:3").as_deref(), Some("7:7"));
        assert_eq!(ours.taken_from("7:7"), None);
        assert_eq!(ours.taken_from("*"), None);
        // An empty list that an earlier life left behind is not left a second time.
        assert_eq!(ours.taken_from("").as_deref(), Some(""));
    }
}
