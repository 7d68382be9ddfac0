//! When not to go on: the health of the cluster comes before any plan.
//!
//! No new move begins while a broker has gone down, or a partition outside the plan has fallen
//! under its minimum in sync, since the plan was made. What was wrong already then does not count,
//! nor do brokers that the plan empties; plans that repair are never held. Who answers may trail the
//! others, so what one look shows of a broker ends nothing: only what looks in a row show does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use evenkeel_kafka::{BrokerId, TopicPartition};

use super::{
    order::{Millis, Order},
    sight::Sight,
};

/// Why nothing new begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// These brokers went down.
    BrokersDown(BTreeSet<BrokerId>),
    /// These partitions fell under their minimum in sync.
    PartitionsShort(BTreeSet<TopicPartition>),
}

impl fmt::Display for Hold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// So many are named.
        const NAMED: usize = 5;
        let (what, names): (_, Vec<String>) = match self {
            Hold::BrokersDown(brokers) => ("brokers went down", brokers.iter().map(ToString::to_string).collect()),
            Hold::PartitionsShort(partitions) => {
                ("partitions fell under their minimum in sync", partitions.iter().map(ToString::to_string).collect())
            }
        };
        let more = names.len().saturating_sub(NAMED);
        write!(out, "{what}: {}", names[..names.len() - more].join(", "))?;
        if more > 0 { write!(out, " and {more} more") } else { Ok(()) }
    }
}

/// A broker that is seen to be down for so long is: longer than brokers trail.
const DOWN_AFTER: Millis = 5_000;
/// Looks that are further apart are not in a row.
const GAP: Millis = 30_000;
/// A broker that nobody knows for so long is not coming back.
const UNREGISTERED_AFTER: Millis = 10_000;

/// Remembers how long brokers have been down.
#[derive(Debug, Clone)]
pub(super) struct Care {
    /// Who matters: all that were up, and all that take part.
    watched: BTreeSet<BrokerId>,
    down_since: BTreeMap<BrokerId, Millis>,
    unregistered_since: BTreeMap<BrokerId, Millis>,
    /// When the last look was.
    looked: Option<Millis>,
}

impl Care {
    pub(super) fn of(order: &Order) -> Care {
        let parts = order.moves.iter().flat_map(|mv| mv.old.iter().chain(&mv.new));
        Care {
            watched: order.baseline.up.iter().chain(parts).copied().collect(),
            down_since: BTreeMap::new(),
            unregistered_since: BTreeMap::new(),
            looked: None,
        }
    }

    /// Takes note of who is down, and whom nobody knows.
    pub(super) fn look(&mut self, sight: &Sight) {
        let since_last = self.looked.replace(sight.now).map_or(0, |last| sight.now - last);
        if since_last > GAP {
            // Nobody knows how it was meanwhile; the cluster itself may just be coming back.
            self.down_since.clear();
            self.unregistered_since.clear();
        }
        note(&mut self.down_since, &self.watched, &sight.up, sight.now);
        // Who does not name those that are down cannot tell them from those that are struck off.
        if sight.names_all {
            note(&mut self.unregistered_since, &self.watched, &sight.registered, sight.now);
        }
    }

    /// Whether a broker is down, and not only to somebody who trails.
    pub(super) fn is_down(&self, sight: &Sight, broker: BrokerId) -> bool {
        !sight.up.contains(&broker) && has_lasted(&self.down_since, broker, DOWN_AFTER, sight.now)
    }

    /// Whether a broker is not coming back: nobody knows it any longer, or it is down for too long.
    pub(super) fn has_given_up(&self, order: &Order, sight: &Sight, broker: BrokerId) -> bool {
        if sight.up.contains(&broker) {
            return false;
        }
        has_lasted(&self.unregistered_since, broker, UNREGISTERED_AFTER, sight.now)
            || order.gives_up_after.is_some_and(|patience| has_lasted(&self.down_since, broker, patience, sight.now))
    }

    /// Why nothing new may begin, if so.
    pub(super) fn hold(&self, order: &Order, sight: &Sight) -> Option<Hold> {
        if order.repairs {
            return None;
        }
        let down: BTreeSet<BrokerId> = order
            .baseline
            .up
            .difference(&sight.up)
            .copied()
            .filter(|broker| !order.emptied.contains(broker) && !self.has_given_up(order, sight, *broker))
            .collect();
        if !down.is_empty() {
            return Some(Hold::BrokersDown(down));
        }
        let ours: BTreeSet<&TopicPartition> = order.moves.iter().map(|mv| &mv.partition).collect();
        let short: BTreeSet<TopicPartition> = sight
            .short
            .iter()
            .filter(|partition| !ours.contains(partition) && !order.baseline.short.contains(*partition))
            .cloned()
            .collect();
        (!short.is_empty()).then_some(Hold::PartitionsShort(short))
    }
}

/// Keeps since when those who are watched are missing.
fn note(since: &mut BTreeMap<BrokerId, Millis>, watched: &BTreeSet<BrokerId>, there: &BTreeSet<BrokerId>, now: Millis) {
    since.retain(|broker, _| !there.contains(broker));
    for broker in watched.difference(there) {
        since.entry(*broker).or_insert(now);
    }
}

fn has_lasted(since: &BTreeMap<BrokerId, Millis>, broker: BrokerId, patience: Millis, now: Millis) -> bool {
    since.get(&broker).is_some_and(|since| now - since >= patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_says_what_it_is_about_and_no_more_than_can_be_read() {
        assert_eq!(Hold::BrokersDown([BrokerId(3), BrokerId(1)].into()).to_string(), "brokers went down: 1, 3");
        let many = (0..8).map(|index| TopicPartition::new("t", index)).collect();
        assert_eq!(
            Hold::PartitionsShort(many).to_string(),
            "partitions fell under their minimum in sync: t-0, t-1, t-2, t-3, t-4 and 3 more"
        );
    }
}
