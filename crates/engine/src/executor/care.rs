//! When not to go on: the health of the cluster comes before any plan.
//!
//! No new move begins while a broker has gone down, or a partition outside the plan has fallen
//! under its minimum in sync, since the plan was made. What was wrong already then does not count,
//! nor do brokers that the plan empties; plans that repair are never held. A disk that has failed is to what lies on it
//! as a broker that is down is. Who answers may trail the others, so what one look shows of a broker or a disk ends
//! nothing: only what looks in a row show does.

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
    /// Replicas of the plan's partitions whose disk has failed: their brokers are up.
    lost_since: BTreeMap<(BrokerId, TopicPartition), Millis>,
    /// Partitions that fall short because of who is lost.
    bereft_since: BTreeMap<TopicPartition, Millis>,
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
            lost_since: BTreeMap::new(),
            bereft_since: BTreeMap::new(),
            looked: None,
        }
    }

    /// Takes note of who is down, whom nobody knows, and which disks have failed.
    pub(super) fn look(&mut self, sight: &Sight) {
        let since_last = self.looked.replace(sight.now).map_or(0, |last| sight.now - last);
        if since_last > GAP {
            // Nobody knows how it was meanwhile; the cluster itself may just be coming back.
            self.down_since.clear();
            self.unregistered_since.clear();
            self.lost_since.clear();
            self.bereft_since.clear();
        }
        self.note_lost(sight);
        keep(&mut self.bereft_since, sight.bereft.iter().cloned(), sight.now);
        note(&mut self.down_since, &self.watched, &sight.up, sight.now);
        // Who does not name those that are down cannot tell them from those that are struck off.
        if sight.names_all {
            note(&mut self.unregistered_since, &self.watched, &sight.registered, sight.now);
        }
    }

    fn note_lost(&mut self, sight: &Sight) {
        let seen = sight.partitions.iter().filter(|(_, seen)| !seen.offline.is_empty());
        let lost = seen.flat_map(|(partition, seen)| {
            let disks = seen.offline.iter().filter(|broker| sight.up.contains(broker));
            disks.map(move |broker| (*broker, partition.clone()))
        });
        // What was not seen this time is neither well nor lost.
        let unseen = self.lost_since.keys().filter(|(_, partition)| !sight.partitions.contains_key(partition));
        let lost: BTreeSet<_> = lost.chain(unseen.cloned()).collect();
        keep(&mut self.lost_since, lost, sight.now);
    }

    /// Whether the disk of a replica has failed, and not only to somebody who trails. Such a disk is not well again before
    /// somebody has seen to it and its broker was started anew.
    pub(super) fn is_lost(&self, sight: &Sight, broker: BrokerId, partition: &TopicPartition) -> bool {
        let replica = (broker, partition.clone());
        sight.up.contains(&broker) && has_lasted(&self.lost_since, &replica, DOWN_AFTER, sight.now)
    }

    /// Whether nobody waits any longer for a replica: its broker is given up, or its disk has failed for as long.
    pub(super) fn has_given_up_on(
        &self,
        order: &Order,
        sight: &Sight,
        broker: BrokerId,
        partition: &TopicPartition,
    ) -> bool {
        let replica = (broker, partition.clone());
        let lost_for = |patience| has_lasted(&self.lost_since, &replica, patience, sight.now);
        self.has_given_up(order, sight, broker) || order.gives_up_after.is_some_and(lost_for)
    }

    /// Whether a broker is down, and not only to somebody who trails.
    pub(super) fn is_down(&self, sight: &Sight, broker: BrokerId) -> bool {
        !sight.up.contains(&broker) && has_lasted(&self.down_since, &broker, DOWN_AFTER, sight.now)
    }

    /// Whether a broker is not coming back: nobody knows it any longer, or it is down for too long.
    pub(super) fn has_given_up(&self, order: &Order, sight: &Sight, broker: BrokerId) -> bool {
        if sight.up.contains(&broker) {
            return false;
        }
        has_lasted(&self.unregistered_since, &broker, UNREGISTERED_AFTER, sight.now)
            || order.gives_up_after.is_some_and(|patience| has_lasted(&self.down_since, &broker, patience, sight.now))
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
        // Those that wait for who is given up would wait for ever.
        let given_up = |partition: &TopicPartition| {
            order.gives_up_after.is_some_and(|patience| has_lasted(&self.bereft_since, partition, patience, sight.now))
        };
        let short: BTreeSet<TopicPartition> = sight
            .short
            .iter()
            .filter(|partition| !ours.contains(partition) && !order.baseline.short.contains(*partition))
            .filter(|partition| !given_up(partition))
            .cloned()
            .collect();
        (!short.is_empty()).then_some(Hold::PartitionsShort(short))
    }
}

/// Keeps since when those who are watched are missing.
fn note(since: &mut BTreeMap<BrokerId, Millis>, watched: &BTreeSet<BrokerId>, there: &BTreeSet<BrokerId>, now: Millis) {
    keep(since, watched.difference(there).copied(), now);
}

/// Keeps since when these are so; of all others it is over.
fn keep<T: Ord>(since: &mut BTreeMap<T, Millis>, these: impl IntoIterator<Item = T>, now: Millis) {
    let mut before = std::mem::take(since);
    *since = these.into_iter().map(|it| before.remove_entry(&it).unwrap_or((it, now))).collect();
}

fn has_lasted<T: Ord>(since: &BTreeMap<T, Millis>, it: &T, patience: Millis, now: Millis) -> bool {
    since.get(it).is_some_and(|since| now - since >= patience)
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
