//! The journal as many hands share it: a run, user tasks and history are written by different tasks.

use std::sync::Arc;

use evenkeel_kafka::{Client, Error};
use tokio::sync::{Mutex, watch};

use super::{Entry, Recovered, topic::JournalTopic};

/// The journal. Clones write to the same one, each step whole and one after the other.
#[derive(Debug, Clone)]
pub struct Journal {
    topic: Arc<Mutex<JournalTopic>>,
    fenced: watch::Sender<bool>,
}

impl Journal {
    /// See [`JournalTopic::open`].
    pub async fn open(client: Client) -> Result<(Journal, Recovered), Error> {
        let (topic, recovered) = JournalTopic::open(client).await?;
        Ok((Journal { topic: Arc::new(Mutex::new(topic)), fenced: watch::Sender::new(false) }, recovered))
    }

    /// Writes entries, all or none. Whoever goes away before this returns leaves nothing half done.
    pub async fn append(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let done = self.topic.lock().await.append(entries).await;
        if matches!(done, Err(Error::Fenced { .. })) {
            self.fenced.send_replace(true);
        }
        done
    }

    /// Whether a newer engine has taken it over: then nobody here may act any more.
    pub fn fenced(&self) -> watch::Receiver<bool> {
        self.fenced.subscribe()
    }
}
