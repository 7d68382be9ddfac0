//! The journal's topic in the managed Kafka itself.
//!
//! Opening it takes the transactional id over first and reads then: whoever had it before can write
//! no more, and all it had decided is seen. `owner` says what becomes of one that is shut out.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    Client, Error, ErrorCode, Refusal, TopicPartition,
    calls::offsets::Isolation,
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};
use uuid::Uuid;

use super::{Entry, Fold, Recovered, keeping, owner::Owner};
use crate::said::chain;

/// Its name. One partition: the order of records is the order of deeds.
pub const TOPIC: &str = "__EvenkeelJournal";
/// The transactional id that whoever acts has taken.
pub const TRANSACTIONAL_ID: &str = "evenkeel-engine";
/// A transaction is one step of an execution: it is over in no time, or its process is gone.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How often one step is tried while it is shut out and nobody else has become the owner: engines that begin at
/// the same time may get in each other's way for a moment.
const TRIES: usize = 5;
/// How long one broker may take to show whose the journal is, and how long it is tried at all.
const GLANCE_WITHIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];

/// The journal, open for writing.
#[derive(Debug)]
pub struct JournalTopic {
    client: Client,
    /// For looks that are not to wait long.
    watching: Client,
    writer: TopicWriter,
    me: Owner,
    /// Whom this engine has replaced.
    before: Option<Owner>,
    standing: Standing,
    /// A transaction was begun and not seen to its end, for whoever wrote it has gone away.
    unfinished: bool,
    /// No other engine's name is on record before this offset, unless it came before ours.
    checked_to: i64,
}

/// Whether this engine may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is the owner, as far as it knows.
    Owner,
    /// It was shut out, and nobody has looked yet by whom.
    Doubtful,
    /// Another engine has taken over.
    Replaced,
}

impl JournalTopic {
    /// Opens it, shutting out whoever had it open, and tells what it holds. It is made if it is not
    /// there, with up to three replicas.
    pub async fn open(client: Client) -> Result<(JournalTopic, Recovered), Error> {
        keeping::make(&client).await?;
        let writer = take_over(&client).await?;
        let me = Owner { engine: Uuid::new_v4() };
        let [request, whole] = GLANCE_WITHIN;
        let mut journal = JournalTopic {
            watching: client.apart(request, whole),
            client,
            writer,
            me,
            before: None,
            standing: Standing::Owner,
            unfinished: false,
            checked_to: 0,
        };
        journal.claim().await?;
        let (mut fold, mut owners) = (Fold::default(), Vec::new());
        read(&journal.client, &Start::Earliest, |entry| {
            owners.extend(Owner::of(&entry));
            fold.take(entry);
        })
        .await?;
        // Our own name may not be seen yet, and another's may be there by now.
        journal.before = owners.into_iter().take_while(|owner| *owner != me).last();
        Ok((journal, fold.recovered()))
    }

    /// Writes this engine's name. Here being shut out is no reason to step down: nobody has been replaced yet.
    async fn claim(&mut self) -> Result<(), Error> {
        for _ in 0..TRIES {
            match self.write(&records(vec![self.me.entry()])).await {
                Err(Error::Fenced { .. }) => self.writer = take_over(&self.client).await?,
                done => return done,
            }
            self.unfinished = false;
        }
        Err(contended())
    }

    /// Writes entries, all or none. When this returns they will be found by whoever comes next. It is
    /// [`Error::Fenced`] only if another engine has taken over.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let records = records(entries);
        for _ in 0..TRIES {
            match self.standing {
                Standing::Owner => {}
                Standing::Doubtful => self.look_who_owns().await?,
                Standing::Replaced => return Err(replaced()),
            }
            if self.standing == Standing::Owner {
                match self.write(&records).await {
                    Err(Error::Fenced { .. }) => self.standing = Standing::Doubtful,
                    done => return done,
                }
            }
        }
        if self.standing == Standing::Replaced { Err(replaced()) } else { Err(contended()) }
    }

    /// Writes the owner's name again: it fails if another engine has taken over, and keeps brokers from forgetting
    /// a writer that has had nothing to say for days.
    pub async fn confirm(&mut self) -> Result<(), Error> {
        self.append(vec![self.me.entry()]).await
    }

    /// What is needed to look whose it is, without keeping others from writing.
    pub(super) fn glance(&self) -> Glance {
        Glance { client: self.watching.clone(), me: self.me, before: self.before, from: self.checked_to }
    }

    /// Another engine's name was seen: this one writes no more.
    pub(super) fn step_down(&mut self) -> Error {
        tracing::error!(me = %self.me.engine, "another engine has taken over");
        self.standing = Standing::Replaced;
        replaced()
    }

    /// The cluster that it is in.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Takes the transactional id again, and looks whose name came last. Until that is known it stays doubtful.
    async fn look_who_owns(&mut self) -> Result<(), Error> {
        match take_over(&self.client).await {
            Ok(writer) => self.writer = writer,
            // Somebody else was asking for it at the same moment.
            Err(Error::Fenced { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Taking over has ended whatever was open.
        self.unfinished = false;
        let mut last = None;
        let mut look = |entry: Entry| last = Owner::of(&entry).or(last);
        match read(&self.client, &Start::Offsets([(0, self.checked_to)].into()), &mut look).await {
            // The log has lost its end, and perhaps our own name with it.
            Err(error @ Error::Shortened { .. }) => {
                tracing::warn!(error = chain(&error), "the journal is read anew");
                read(&self.client, &Start::Earliest, look).await?;
                self.checked_to = 0;
            }
            done => done?,
        }
        self.standing = match last {
            Some(owner) if owner != self.me && Some(owner) != self.before => {
                tracing::error!(owner = %owner.engine, me = %self.me.engine, "another engine has taken over");
                Standing::Replaced
            }
            _ => {
                tracing::warn!("the journal's writer was shut out, and nobody has taken over: it goes on");
                Standing::Owner
            }
        };
        Ok(())
    }

    async fn write(&mut self, records: &BTreeMap<TopicPartition, Vec<Record>>) -> Result<(), Error> {
        if self.unfinished {
            self.writer.abort().await?;
        }
        self.unfinished = true;
        let done = match self.writer.write(records).await {
            Ok(offsets) => self.writer.commit().await.map(|()| offsets),
            Err(error) => Err(error),
        };
        if done.is_err() {
            // Nobody knows how much is there: none of it must be seen, unless all of it was decided already.
            self.writer.abort().await?;
        }
        self.unfinished = false;
        // Whoever had come before these would have shut this writer out.
        self.checked_to = done?.into_values().fold(self.checked_to, i64::max);
        Ok(())
    }
}

/// A look at whose the journal is.
pub(super) struct Glance {
    client: Client,
    me: Owner,
    before: Option<Owner>,
    from: i64,
}

impl Glance {
    /// Whether another engine's name came after this one's.
    pub(super) async fn is_replaced(&self) -> Result<bool, Error> {
        let mut last = None;
        let start = Start::Offsets([(0, self.from)].into());
        read(&self.client, &start, |entry| last = Owner::of(&entry).or(last)).await?;
        Ok(last.is_some_and(|owner| owner != self.me && Some(owner) != self.before))
    }
}

async fn take_over(client: &Client) -> Result<TopicWriter, Error> {
    TopicWriter::transactional(client.clone(), TRANSACTIONAL_ID, TRANSACTION_TIMEOUT, Compression::None).await
}

fn records(entries: Vec<Entry>) -> BTreeMap<TopicPartition, Vec<Record>> {
    let record = |entry: Entry| Record {
        key: Some(Bytes::from(entry.key)),
        value: entry.value.map(Bytes::from),
        ..Record::default()
    };
    BTreeMap::from([(TopicPartition::new(TOPIC, 0), entries.into_iter().map(record).collect())])
}

/// All that is on record from a place on, one after the other.
async fn read(client: &Client, start: &Start, mut take: impl FnMut(Entry)) -> Result<(), Error> {
    let mut reader = TopicReader::open(client.clone(), TOPIC, start, Until::End, Isolation::Committed).await?;
    while let Some(records) = reader.next().await? {
        for record in records.into_iter().map(|record| record.stored.record) {
            if let Some(key) = record.key.and_then(|key| String::from_utf8(key.to_vec()).ok()) {
                take(Entry { key, value: record.value.map(|value| value.to_vec()) });
            }
        }
    }
    Ok(())
}

fn replaced() -> Error {
    Error::Fenced { transactional_id: TRANSACTIONAL_ID.to_owned() }
}

/// Shut out again and again, by somebody who never became the owner.
fn contended() -> Error {
    let message = Some("another engine keeps asking for the journal and does not take it".to_owned());
    let refusal = Refusal { code: ErrorCode::CONCURRENT_TRANSACTIONS, message };
    Error::Refused { operation: "write to the journal", refusal }
}
