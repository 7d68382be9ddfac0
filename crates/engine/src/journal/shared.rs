//! The journal as many hands share it: a run, user tasks and history are written by different tasks.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use evenkeel_kafka::{BrokerId, Client, Error, ErrorCode, Refusal};
use tokio::{
    sync::{Mutex, watch},
    task::AbortHandle,
    time::{Instant, sleep_until, timeout},
};

use super::{
    Entry, HISTORY, History, Recovered,
    keeping::{self, Keeper},
    leave::{Leave, Moment, SETTLES},
    read,
    topic::JournalTopic,
};
use crate::{clock::WallClock, said::chain};

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
    /// The record that says whose it is.
    name: Entry,
    clock: WallClock,
    /// Nothing is done before: whoever was replaced may act until then.
    acts_from: Instant,
    /// What the last record of ours gave.
    leave: std::sync::Mutex<Option<Leave>>,
    /// Brokers that are to be empty: the journal itself goes to none of them.
    emptied: std::sync::Mutex<BTreeSet<BrokerId>>,
    /// Whether the topic is to be looked after with the next glance.
    due: AtomicBool,
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
    pub async fn open(client: Client, clock: WallClock) -> Result<(Journal, Recovered), Error> {
        let (topic, recovered) = JournalTopic::open(client).await?;
        let shared = Arc::new(Shared {
            name: topic.name(),
            clock,
            acts_from: Instant::now() + if topic.has_taken_over() { SETTLES } else { Duration::ZERO },
            topic: Mutex::new(topic),
            leave: Default::default(),
            emptied: recovered.history.removed.keys().copied().collect::<BTreeSet<_>>().into(),
            due: AtomicBool::new(true),
            owed: Default::default(),
            fenced: watch::Sender::new(false),
            trouble: Default::default(),
        });
        let heart = tokio::spawn(beat(Arc::clone(&shared), Keeper::new(recovered.said))).abort_handle();
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

    /// Has the topic itself looked after within seconds: something may have changed about it.
    pub fn look_after_soon(&self) {
        self.shared.due.store(true, Ordering::Relaxed);
    }

    /// Waits until nobody who was replaced by this engine can act any more.
    pub async fn settled(&self) {
        sleep_until(self.shared.acts_from).await;
    }

    /// Does something to the cluster, which needs leave: as long as it takes, the journal shows again and again that no
    /// other engine has taken over. It must not use the journal itself. After an error nobody knows how much of it is done.
    pub async fn under_leave<T>(&self, deed: impl Future<Output = T>) -> Result<T, Error> {
        self.shared.under_leave(deed).await
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
        let begun = Moment::now(&self.clock);
        let history: Option<History> =
            all.iter().rev().find(|entry| entry.key == HISTORY).and_then(|entry| read(entry.value.as_deref()?));
        let done = topic.append(all).await;
        if done.is_ok() {
            self.owed().drain(..owed);
            *self.leave() = Some(Leave::of_record_begun(begun));
            if let Some(history) = history {
                *self.emptied() = history.removed.into_keys().collect();
            }
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

    /// Writes the owner's name again: it fails if another engine has taken over, and keeps brokers from forgetting
    /// a writer that has had nothing to say for days.
    async fn confirm(&self) -> Result<(), Error> {
        self.append(vec![self.name.clone()]).await
    }

    async fn under_leave<T>(&self, deed: impl Future<Output = T>) -> Result<T, Error> {
        let mut deed = pin!(deed);
        loop {
            let leave = self.fresh_leave().await?;
            let mut renewal = pin!(sleep_until(leave.renewal()));
            let done = poll_fn(|context| {
                // Each time it is woken, before anything is done: nobody knows for how long it slept.
                if !leave.holds(Moment::now(&self.clock)) {
                    return Poll::Ready(None);
                }
                match deed.as_mut().poll(context) {
                    Poll::Ready(done) => Poll::Ready(Some(done)),
                    Poll::Pending => renewal.as_mut().poll(context).map(|()| None),
                }
            });
            if let Some(done) = done.await {
                return Ok(done);
            }
        }
    }

    /// Leave that lasts for a while: the last record's, or that of a new one.
    async fn fresh_leave(&self) -> Result<Leave, Error> {
        sleep_until(self.acts_from).await;
        let given = *self.leave();
        if let Some(leave) = given.filter(|leave| leave.is_fresh(Moment::now(&self.clock)))
            && !*self.fenced.borrow()
        {
            return Ok(leave);
        }
        self.confirm().await?;
        let given = *self.leave();
        // Records that take longer than leave lasts give none.
        given.filter(|leave| leave.holds(Moment::now(&self.clock))).ok_or_else(|| self.is_late())
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

    /// Whether the topic is to be looked after now. Asked once, it no longer is.
    fn is_due(&self) -> bool {
        self.due.swap(false, Ordering::Relaxed)
    }

    /// Looks after the topic itself.
    async fn look_after(&self, client: &Client, keeper: &mut Keeper) -> Result<(), Error> {
        let emptied = self.emptied().clone();
        match self.under_leave(keeping::mend(client, keeper, &emptied)).await?? {
            Some(said) => self.append(vec![said]).await,
            None => Ok(()),
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

    fn emptied(&self) -> MutexGuard<'_, BTreeSet<BrokerId>> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self) -> MutexGuard<'_, Option<Leave>> {
        self.leave.lock().unwrap_or_else(PoisonError::into_inner)
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

async fn beat(shared: Arc<Shared>, mut keeper: Keeper) {
    let client = shared.topic.lock().await.client().clone();
    let mut spoken = Instant::now();
    loop {
        tokio::time::sleep(GLANCE).await;
        // After a record that failed only one that does not shows that all is well, and what is owed goes with it. But
        // first it is looked who owns the journal: whoever was replaced is not to get in the other's way.
        let (due, troubled) = (shared.is_due() || spoken.elapsed() >= HEARTBEAT, shared.trouble().is_some());
        let beaten = async {
            shared.glance().await?;
            if due || troubled {
                shared.confirm().await?;
            }
            if due { shared.look_after(&client, &mut keeper).await } else { Ok(()) }
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
