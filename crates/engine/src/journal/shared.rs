//! The journal as many hands share it: a run, user tasks and history are written by different tasks.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use evenkeel_kafka::{Client, Error, ErrorCode, Refusal};
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

/// Whoever wants what holds at once is not to wait for its record for longer.
const OWED_FOR: Duration = Duration::from_secs(5);
/// Nor is who wants something that does not hold before it is on record.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);
/// Somebody who writes for so long gets nothing written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(15);

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
    /// Why nothing can be recorded, if so.
    trouble: std::sync::Mutex<Option<String>>,
}

#[derive(Debug)]
struct Heart(AbortHandle);

impl Journal {
    /// See [`JournalTopic::open`].
    pub async fn open(client: Client) -> Result<(Journal, Recovered), Error> {
        let (topic, recovered) = JournalTopic::open(client).await?;
        let (topic, fenced) = (Mutex::new(topic), watch::Sender::new(false));
        let shared = Arc::new(Shared { topic, owed: Default::default(), fenced, trouble: Default::default() });
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

    /// The same, and it fails if it takes long: for somebody who waits for it.
    pub async fn append_soon_or_take_back(&self, entries: Vec<Entry>, back: Vec<Entry>) -> Result<(), Error> {
        match timeout(RECORDED_WITHIN, self.append_or_take_back(entries, back)).await {
            Ok(done) => done,
            Err(_) => Err(self.shared.is_late()),
        }
    }

    /// Writes entries now, or if that cannot be as soon as it can, and before anything else: for what holds whether or not
    /// it is on record yet. It is an error only if another engine has taken over.
    pub async fn append_or_owe(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.shared.owed().extend(entries);
        let late = match timeout(OWED_FOR, self.append(Vec::new())).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error @ Error::Fenced { .. })) => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => self.shared.is_late(),
        };
        tracing::warn!(error = chain(&late), "what was asked for holds, and is not on record yet");
        Ok(())
    }

    /// That somebody has waited for long enough.
    pub(crate) fn is_late(&self) -> Error {
        self.shared.is_late()
    }

    /// Why nothing can be recorded now, if so.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble().clone()
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
        self.note(&done);
        self.heed(done)
    }

    /// Remembers whether something could be recorded: only a later record shows that it can again.
    fn note(&self, done: &Result<(), Error>) {
        *self.trouble() = done.as_ref().err().map(|error| chain(error));
    }

    /// Nobody waits for a record any longer.
    fn is_late(&self) -> Error {
        let message = Some("it takes too long".to_owned());
        let refusal = Refusal { code: ErrorCode::REQUEST_TIMED_OUT, message };
        let late = Error::Refused { operation: "write to the journal", refusal };
        *self.trouble() = Some(chain(&late));
        late
    }

    async fn confirm(&self) -> Result<(), Error> {
        let confirmed = self.topic.lock().await.confirm().await;
        self.note(&confirmed);
        self.heed(confirmed)?;
        self.append(Vec::new()).await
    }

    /// Looks whose the journal is. Others write meanwhile.
    async fn glance(&self) -> Result<(), Error> {
        let Ok(topic) = timeout(WRITTEN_WITHIN, self.topic.lock()).await else { return Err(self.is_late()) };
        let glance = topic.glance();
        drop(topic);
        match glance.is_replaced().await {
            Ok(false) => Ok(()),
            Ok(true) => {
                let stepped_down = self.topic.lock().await.step_down();
                self.heed(Err(stepped_down))
            }
            // What cannot be read cannot be written either.
            Err(error) => {
                let lost = Err(error);
                self.note(&lost);
                lost
            }
        }
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

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
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
        // After a record that failed only one that does not shows that all is well, and what is owed goes with it. But
        // first it is looked who owns the journal: whoever was replaced is not to get in the other's way.
        let (due, troubled) = (spoken.elapsed() >= HEARTBEAT, shared.trouble().is_some());
        let beaten = async {
            shared.glance().await?;
            if due || troubled {
                shared.confirm().await?;
            }
            if due { keeping::mend(&client).await } else { Ok(()) }
        };
        let beaten = beaten.await;
        if due {
            spoken = Instant::now();
        }
        match beaten {
            Ok(()) => {}
            Err(Error::Fenced { .. }) => return,
            Err(error) => tracing::debug!(error = chain(&error), "the journal could not be looked after"),
        }
    }
}
