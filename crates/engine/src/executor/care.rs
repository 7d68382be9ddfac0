//! When not to go on: the health of the cluster comes before any plan.
//!
//! No new move begins while a broker has gone down, or a partition outside the plan has fallen
//! under its minimum in sync, since the plan was made. What was wrong already then does not count,
//! nor do brokers that the plan empties; plans that repair are never held.

use std::collections::{BTreeMap, BTreeSet};

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

/// Remembers how long brokers have been down.
#[derive(Debug, Clone, Default)]
pub(super) struct Care {
    down_since: BTreeMap<BrokerId, Millis>,
}

impl Care {
    /// Takes note of who is down.
    pub(super) fn look(&mut self, order: &Order, sight: &Sight) {
        self.down_since.retain(|broker, _| !sight.up.contains(broker));
        for broker in order.baseline.up.difference(&sight.up) {
            self.down_since.entry(*broker).or_insert(sight.now);
        }
    }

    /// Whether a broker is not coming back: nobody knows it any longer, or it is down for too long.
    pub(super) fn has_given_up(&self, order: &Order, sight: &Sight, broker: BrokerId) -> bool {
        if sight.up.contains(&broker) {
            return false;
        }
        let patience_over = match (order.gives_up_after, self.down_since.get(&broker)) {
            (Some(patience), Some(since)) => sight.now - since >= patience,
            _ => false,
        };
        !sight.registered.contains(&broker) || patience_over
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
