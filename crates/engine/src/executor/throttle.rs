//! What holds replication back while data moves, and what is left when it is lifted.
//!
//! A rate is set on every broker that takes part, and the lists of throttled replicas name what is being copied. Only
//! that: brokers count against the rate whatever they replicate of what is listed, also what in-sync followers fetch as
//! ever. With all of a large plan in the lists that alone could be more than the rate, and nothing would ever arrive. For
//! the same reason followers are listed only where they get a copy, as Kafka's own tool does it.
//! Whatever was set before stays: a rate is not overwritten, lists are joined, and
//! `*` already says it all. Lifting takes out what was put in, and deletes what is empty then.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, TopicPartition};
use serde::{Deserialize, Serialize};

use super::order::{Move, Order};

/// What is to be throttled, all of it known before the first setting is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Bytes per second, on each of the brokers, in and out.
    pub rate: u64,
    /// Who takes part.
    pub brokers: BTreeSet<BrokerId>,
    /// What may be in the lists, by topic: old and new replicas of each partition that moves.
    pub topics: BTreeMap<String, Listing>,
}

/// The lists that a topic has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Who is held back as long as it leads.
    Leaders,
    /// Who is held back as long as it follows.
    Followers,
}

impl List {
    /// Both.
    pub const BOTH: [List; 2] = [List::Leaders, List::Followers];

    /// The setting that it is.
    pub fn setting(self) -> &'static str {
        match self {
            List::Leaders => "leader.replication.throttled.replicas",
            List::Followers => "follower.replication.throttled.replicas",
        }
    }
}

/// How the lists change when moves begin and end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relisting {
    /// What begins to be copied, by topic: old and new replicas, any of which may lead meanwhile.
    pub begin: BTreeMap<String, Listing>,
    /// Of these, the replicas that are made.
    pub copies: BTreeMap<String, Listing>,
    /// What is no longer copied: old and new replicas.
    pub end: BTreeMap<String, Listing>,
}

impl Relisting {
    /// Nothing changes.
    pub fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty()
    }

    /// The topics of both.
    pub fn topics(&self) -> BTreeSet<&String> {
        self.begin.keys().chain(self.end.keys()).collect()
    }

    /// What begins to be copied.
    pub fn partitions(&self) -> impl Iterator<Item = TopicPartition> + '_ {
        let of = |(topic, listing): (&String, &Listing)| {
            let numbers: BTreeSet<i32> = listing.0.iter().map(|(number, _)| *number).collect();
            let topic = topic.clone();
            numbers.into_iter().map(move |number| TopicPartition::new(&topic, number))
        };
        self.begin.iter().flat_map(of)
    }

    /// A move begins.
    pub(super) fn begins(&mut self, mv: &Move) {
        Listing::add(&mut self.begin, mv, mv.everybody());
        Listing::add(&mut self.copies, mv, mv.added());
    }

    /// A move is over.
    pub(super) fn ends(&mut self, mv: &Move) {
        Listing::add(&mut self.end, mv, mv.everybody());
    }

    /// The value to set over `existing` in a list of a topic, if any has to be; an empty text if nothing is left.
    pub fn applied_to(&self, topic: &str, list: List, existing: Option<&str>) -> Option<String> {
        let before = existing.unwrap_or_default();
        let begin = match list {
            List::Leaders => &self.begin,
            List::Followers => &self.copies,
        };
        let shorter = self.end.get(topic).and_then(|listing| listing.taken_from(before));
        let shorter = shorter.unwrap_or_else(|| before.to_owned());
        let after = begin.get(topic).and_then(|listing| listing.joined_to(Some(&shorter))).unwrap_or(shorter);
        (after != before).then_some(after)
    }
}

/// A list of replicas as Kafka writes it: `partition:broker,...`, or `*` for all there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing(pub BTreeSet<(i32, BrokerId)>);

impl Throttle {
    /// What the order asks to be throttled; nothing if it asks for no throttle or copies nothing.
    pub fn of(order: &Order) -> Option<Throttle> {
        let mut throttle = Throttle { rate: order.throttle?, ..Throttle::default() };
        for mv in order.moves.iter().filter(|mv| mv.added().next().is_some()) {
            Listing::add(&mut throttle.topics, mv, mv.everybody());
            throttle.brokers.extend(mv.everybody());
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

    /// What of it is with nobody that `other` is with.
    #[must_use]
    pub fn without(mut self, other: &Throttle) -> Throttle {
        self.brokers.retain(|broker| !other.brokers.contains(broker));
        self.topics.retain(|topic, _| !other.topics.contains_key(topic));
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
    /// Adds replicas of what moves to the lists of topics.
    fn add(lists: &mut BTreeMap<String, Listing>, mv: &Move, replicas: impl IntoIterator<Item = BrokerId>) {
        let listing = lists.entry(mv.partition.topic.to_string()).or_default();
        listing.0.extend(replicas.into_iter().map(|broker| (mv.partition.partition, broker)));
    }

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

    #[test]
    fn lists_change_in_one_go_and_only_where_they_have_to() {
        let of = |listing: Listing| BTreeMap::from([("t".to_owned(), listing)]);
        let (begin, copies) = (of(listing(&[(2, 0), (2, 1)])), of(listing(&[(2, 1)])));
        let both = Relisting { begin, copies, end: of(listing(&[(1, 0)])) };
        let leaders = |existing: Option<&str>| both.applied_to("t", List::Leaders, existing);
        assert_eq!(leaders(Some("7:7,1:0")).as_deref(), Some("7:7,2:0,2:1"));
        assert_eq!(leaders(Some("1:0")).as_deref(), Some("2:0,2:1"));
        assert_eq!(leaders(None).as_deref(), Some("2:0,2:1"));
        assert_eq!(leaders(Some("*")), None);
        assert_eq!(leaders(Some("2:0,2:1")), None);
        assert_eq!(both.applied_to("t", List::Followers, Some("7:7,1:0")).as_deref(), Some("7:7,2:1"));
        assert_eq!(both.applied_to("another", List::Leaders, Some("1:0")), None);
        let end = Relisting { end: both.end.clone(), ..Relisting::default() };
        assert_eq!(end.applied_to("t", List::Followers, Some("1:0")).as_deref(), Some(""));
        assert_eq!(end.applied_to("t", List::Followers, None), None);
        assert_eq!(both.partitions().collect::<Vec<_>>(), [TopicPartition::new("t", 2)]);
    }
}
