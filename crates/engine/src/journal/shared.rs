//! The journal as many hands share it: a run, user tasks and history are written by different tasks.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use evenkeel_kafka::{Client, Error};
use tokio::{
    sync::{Mutex, watch},
    task::AbortHandle,
    time::{Instant, timeout},
};

use super::{Entry, Recovered, keeping, topic::JournalTopic};
use crate::said::chain;

/// How often an engine that has nothing to say says so. Brokers forget an idle writer after a day, and its
/// transactional id after seven.
const HEARTBEAT: Duration = Duration::from_secs(600);
/// How often it is looked whose the journal is: an engine that was replaced should not believe for long that it was not.
const GLANCE: Duration = Duration::from_secs(5);

/// Whoever has switched something is not to wait for its record for longer.
const OWED_FOR: Duration = Duration::from_secs(5);

/// The journal. Clones write to the same one, each step whole and one after the other.
#[derive(Debug, Clone)]
pub struct Journal {
    shared: Arc<Shared>,
    /// Stops with the last clone.
    heart: Arc<Heart>,
}

#[derive(Debug)]
struct Shared {
    topic: Mutex<JournalTopic>,
    /// What has to be on record before anything else is: it takes back what may be there, and must not be.
    owed: std::sync::Mutex<Vec<Entry>>,
    fenced: watch::Sender<bool>,
}

#[derive(Debug)]
struct Heart(AbortHandle);

impl Journal {
    /// See [`JournalTopic::open`].
    pub async fn open(client: Client) -> Result<(Journal, Recovered), Error> {
        let (topic, recovered) = JournalTopic::open(client).await?;
        let shared =
            Arc::new(Shared { topic: Mutex::new(topic), owed: Default::default(), fenced: watch::Sender::new(false) });
        let heart = tokio::spawn(beat(Arc::clone(&shared))).abort_handle();
        Ok((Journal { shared, heart: Arc::new(Heart(heart)) }, recovered))
    }

    /// Writes entries, all or none. Whoever goes away before this returns leaves nothing half done. It is
    /// [`Error::Fenced`] only if another engine has taken over; after any other error the same may work later.
    pub async fn append(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.shared.append(entries).await
    }

    /// Writes entries, and `back` if that fails or whoever waits for it goes away: nobody knows then whether they are
    /// on record. If even that cannot be written now, it will be with whatever is next, and before it.
    pub async fn append_or_take_back(&self, entries: Vec<Entry>, back: Vec<Entry>) -> Result<(), Error> {
        let mut back = TakeBack { shared: &self.shared, entries: back };
        let done = self.append(entries).await;
        if done.is_ok() {
            back.entries.clear();
            return done;
        }
        drop(back);
        if let Err(error) = self.append(Vec::new()).await {
            tracing::warn!(error = chain(&error), "what failed to be recorded is not taken back yet");
        }
        done
    }

    /// Writes entries now, or if that cannot be with whatever is next, and before it: for what holds whether or not it
    /// is on record yet.
    pub async fn append_or_owe(&self, entries: Vec<Entry>) {
        self.shared.owed().extend(entries);
        let late = match timeout(OWED_FOR, self.append(Vec::new())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => "it takes too long".to_owned(),
        };
        tracing::warn!(error = late, "what was switched is not on record yet");
    }

    /// Makes sure that no other engine has taken over, before something is done that needs no record.
    pub async fn confirm(&self) -> Result<(), Error> {
        self.shared.confirm().await
    }

    /// Whether a newer engine has taken it over: then nobody here may act any more.
    pub fn fenced(&self) -> watch::Receiver<bool> {
        self.shared.fenced.subscribe()
    }

    /// The same, as it is now.
    pub fn is_fenced(&self) -> bool {
        *self.shared.fenced.borrow()
    }

    /// Whether it is being looked after: only being replaced, or a fault of ours, ends that.
    pub fn is_at_work(&self) -> bool {
        self.is_fenced() || !self.heart.0.is_finished()
    }
}

impl Shared {
    async fn append(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let mut topic = self.topic.lock().await;
        let mut all = self.owed().clone();
        let owed = all.len();
        all.extend(entries);
        if all.is_empty() {
            return Ok(());
        }
        let done = topic.append(all).await;
        if done.is_ok() {
            self.owed().drain(..owed);
        }
        self.heed(done)
    }

    async fn confirm(&self) -> Result<(), Error> {
        let confirmed = self.topic.lock().await.confirm().await;
        self.heed(confirmed)?;
        self.append(Vec::new()).await
    }

    /// Looks whose the journal is. Others write meanwhile.
    async fn glance(&self) -> Result<(), Error> {
        let glance = self.topic.lock().await.glance();
        let replaced = glance.is_replaced().await?;
        if replaced {
            let stepped_down = self.topic.lock().await.step_down();
            return self.heed(Err(stepped_down));
        }
        Ok(())
    }

    fn heed(&self, done: Result<(), Error>) -> Result<(), Error> {
        if matches!(done, Err(Error::Fenced { .. })) {
            self.fenced.send_replace(true);
        }
        done
    }

    fn owed(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Owes what it still holds when it goes.
struct TakeBack<'a> {
    shared: &'a Shared,
    entries: Vec<Entry>,
}

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.shared.owed().append(&mut self.entries);
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn beat(shared: Arc<Shared>) {
    let client = shared.topic.lock().await.client().clone();
    let mut spoken = Instant::now();
    loop {
        tokio::time::sleep(GLANCE).await;
        let beaten = if spoken.elapsed() < HEARTBEAT {
            shared.glance().await
        } else {
            spoken = Instant::now();
            match shared.confirm().await {
                Ok(()) => keeping::mend(&client).await,
                late => late,
            }
        };
        match beaten {
            Ok(()) => {}
            Err(Error::Fenced { .. }) => return,
            Err(error) => tracing::debug!(error = chain(&error), "the journal could not be looked after"),
        }
    }
}
