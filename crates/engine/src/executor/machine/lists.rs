//! Which of the moves are held back: those that are being copied.

use std::collections::BTreeSet;

use super::{Asks, Execution, Throttling};
use crate::executor::{task::Kind, throttle::Relisting};

impl Execution {
    /// Nobody knows whether what was to begin is held back now.
    pub fn not_listed(&mut self, lists: &Relisting) {
        for partition in lists.partitions() {
            if let Some(of) = self.by_partition.get(&partition) {
                self.listed.remove(of);
            }
        }
    }

    /// Moves that brokers are copying, or are asked to.
    pub(super) fn copied(&self) -> BTreeSet<usize> {
        let in_flight = self.tasks.iter().filter(|task| task.kind == Kind::Replicas && task.stage.is_in_flight());
        in_flight.map(|task| task.of).filter(|of| self.order.moves[*of].added().next().is_some()).collect()
    }

    /// How the lists of what is held back have to change for what is asked for. Once nothing is copied any more all of it
    /// is lifted.
    pub(super) fn relist(&mut self, asks: &Asks) -> Relisting {
        let mut lists = Relisting::default();
        let copied = self.copied();
        if self.throttling != Throttling::On || copied.is_empty() {
            return lists;
        }
        for mv in self.listed.difference(&copied).map(|of| &self.order.moves[*of]) {
            lists.ends(mv);
        }
        for of in &copied {
            let mv = &self.order.moves[*of];
            // What is asked for again may not have been listed either.
            if !self.listed.contains(of) || asks.reassign.contains_key(&mv.partition) {
                lists.begins(mv);
            }
        }
        self.listed = copied;
        lists
    }
}
