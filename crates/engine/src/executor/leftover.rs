//! What is left of the throttles of runs that are over: brokers that nobody could reach, topics that would not have it
//! changed. It is on record, and lifted as soon as that can be.
//!
//! Also while another run is under way, unless that one holds the same back: a broker that was given up, and struck off
//! Kafka's list, comes back with the rate that it had, and what is begun then, to fill it again perhaps, may take days.

use std::sync::{MutexGuard, PoisonError};

use evenkeel_kafka::{Client, Error};

use super::{Throttle, hands::lift_leftover};
use crate::journal::{self, Entry, Journal};

/// What is left, for the many hands that add to it and lift it.
#[derive(Debug)]
pub struct Leftover {
    client: Client,
    journal: Journal,
    known: std::sync::Mutex<Throttle>,
    /// Held while it is changed and recorded: what is on record is the whole of it.
    changing: tokio::sync::Mutex<()>,
}

impl Leftover {
    /// With what is on record.
    pub fn new(client: Client, journal: Journal, known: Throttle) -> Leftover {
        Leftover { client, journal, known: known.into(), changing: tokio::sync::Mutex::default() }
    }

    /// What is left now.
    pub fn known(&self) -> Throttle {
        self.lock().clone()
    }

    /// Puts the end of a run on record together with what it leaves: neither is there without the other.
    pub(super) async fn add(&self, left: &Throttle, mut entries: Vec<Entry>) -> Result<(), Error> {
        let _alone = self.changing.lock().await;
        let before = self.known();
        let after = before.clone().with(left);
        entries.extend(journal::leftover(&before, &after));
        self.journal.append(entries).await?;
        *self.lock() = after;
        Ok(())
    }

    /// Lifts what can be lifted, except what is `held` by a run that is under way. Nothing may begin meanwhile.
    pub(super) async fn lift(&self, held: &Throttle) -> Result<(), Error> {
        let mut left = self.known().without(held);
        // Who is away would only be waited for, and whoever wants to begin something with it.
        let cluster = self.client.describe_cluster().await?;
        let up = cluster.brokers.iter().filter(|broker| !broker.fenced).map(|broker| broker.id).collect();
        left.brokers = left.brokers.intersection(&up).copied().collect();
        if left.is_empty() {
            return Ok(());
        }
        // A newer engine, which this one has not heard of yet, may hold the same back by now.
        self.journal.confirm().await?;
        let lifted = left.clone().without(&lift_leftover(&self.client, &left).await?);
        if lifted.is_empty() {
            return Ok(());
        }
        let _alone = self.changing.lock().await;
        let before = self.known();
        let after = before.clone().without(&lifted);
        self.journal.append(journal::leftover(&before, &after)).await?;
        tracing::info!(lifted = ?lifted.brokers, left = ?after.brokers, "what was left of a throttle is lifted");
        *self.lock() = after;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Throttle> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
