//! Writes records so that each is there once, or a whole transaction of them or none.
//!
//! When a write ends without an answer nobody knows which batches are there, and after a commit
//! without one nobody knows whether the transaction is over: a transactional writer must then abort,
//! an idempotent one begins anew under another id (what it repeats may be doubled; it says so by the
//! error). A writer that hears [`Error::Fenced`] must stop for good.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    calls::{
        produce::Writing,
        transactions::{End, ProducerIdentity, fenced},
    },
    client::Client,
    error::{Error, ErrorCode},
    records::{BatchOptions, Compression, Producer, Record, encode_batch},
    types::TopicPartition,
};

/// Bytes of records in a batch, before compression: half of what brokers take by default, so that
/// heads and the like need no counting. A record that is longer goes alone.
const BATCH_BYTES: usize = 512 * 1024;

/// A writer of records.
#[derive(Debug)]
pub struct TopicWriter {
    client: Client,
    compression: Compression,
    transaction: Option<Transaction>,
    producer: ProducerIdentity,
    /// The next sequence of each partition.
    sequences: BTreeMap<TopicPartition, i32>,
    state: State,
}

/// What the writer may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Write.
    Ready,
    /// Nobody knows what is written, or whether the transaction is open: abort, or begin anew.
    Uncertain,
    /// Nothing, ever again.
    Fenced,
}

#[derive(Debug)]
struct Transaction {
    id: String,
    timeout: Duration,
    /// Partitions that the open transaction has, or may have; none if none is open.
    partitions: BTreeSet<TopicPartition>,
}

impl TopicWriter {
    /// A writer without transactions.
    pub async fn idempotent(client: Client, compression: Compression) -> Result<Self, Error> {
        let producer = client.init_idempotent().await?;
        Ok(Self { client, compression, transaction: None, producer, sequences: BTreeMap::new(), state: State::Ready })
    }

    /// A writer that takes over a transactional id, fencing off whoever had it.
    pub async fn transactional(
        client: Client,
        id: &str,
        timeout: Duration,
        compression: Compression,
    ) -> Result<Self, Error> {
        let producer = client.init_transactional(id, timeout).await?;
        let transaction = Some(Transaction { id: id.to_owned(), timeout, partitions: BTreeSet::new() });
        Ok(Self { client, compression, transaction, producer, sequences: BTreeMap::new(), state: State::Ready })
    }

    /// Who the brokers take this writer for.
    pub fn producer(&self) -> ProducerIdentity {
        self.producer
    }

    /// Writes records, in order within each partition. With transactions they are seen once
    /// [`TopicWriter::commit`] has been called. Tells the offset of the first record in each partition
    /// (-1 if it was there already).
    pub async fn write(
        &mut self,
        records: &BTreeMap<TopicPartition, Vec<Record>>,
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let written = self.write_all(records).await;
        self.heed(written)
    }

    async fn write_all(
        &mut self,
        records: &BTreeMap<TopicPartition, Vec<Record>>,
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        match self.state {
            State::Ready => {}
            State::Uncertain => self.begin_anew().await?,
            State::Fenced => return Err(self.fenced()),
        }
        self.join_transaction(records.keys()).await?;
        let mut queues: BTreeMap<&TopicPartition, Vec<&[Record]>> =
            records.iter().map(|(partition, records)| (partition, batches(records))).collect();
        queues.values_mut().for_each(|queue| queue.reverse());
        let mut first = BTreeMap::new();
        loop {
            let mut round = BTreeMap::new();
            let mut counts = BTreeMap::new();
            for (partition, queue) in &mut queues {
                if let Some(some) = queue.pop() {
                    round.insert((*partition).clone(), self.encode(partition, some)?);
                    counts.insert((*partition).clone(), some.len());
                }
            }
            if round.is_empty() {
                return Ok(first);
            }
            for (partition, offset) in self.send(&round).await? {
                let written = counts.get(&partition).copied().unwrap_or(0);
                let sequence = self.sequences.entry(partition.clone()).or_default();
                *sequence = advance(*sequence, written);
                first.entry(partition).or_insert(offset);
            }
        }
    }

    /// Makes all that was written since the last end visible, or nothing. It is decided when this
    /// returns, and seen by readers a moment later; whoever takes the transactional id over waits for
    /// it, so taking over first and reading then misses nothing. When it fails, [`TopicWriter::abort`]
    /// before anything else is written.
    pub async fn commit(&mut self) -> Result<(), Error> {
        let ended = self.end(End::Commit).await;
        self.heed(ended)
    }

    /// Takes back all that was written since the last end. After a commit that failed it is taken back
    /// unless it had been decided by then: readers see all of it or nothing in either case.
    pub async fn abort(&mut self) -> Result<(), Error> {
        let mut ended = self.end(End::Abort).await;
        if ended.is_ok() && self.state == State::Uncertain {
            ended = self.begin_anew().await;
        }
        self.heed(ended)
    }

    /// Remembers that it was fenced off.
    fn heed<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if matches!(result, Err(Error::Fenced { .. })) {
            self.state = State::Fenced;
        }
        result
    }

    fn fenced(&self) -> Error {
        let transactional_id = self.transaction.as_ref().map(|transaction| transaction.id.clone()).unwrap_or_default();
        Error::Fenced { transactional_id }
    }

    async fn end(&mut self, end: End) -> Result<(), Error> {
        if self.state == State::Fenced {
            return Err(self.fenced());
        }
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        if transaction.partitions.is_empty() {
            return Ok(());
        }
        if end == End::Commit && self.state == State::Uncertain {
            return Err(uncertain());
        }
        // Until the answer is a good one: the transaction may be over, and it may not.
        let before = std::mem::replace(&mut self.state, State::Uncertain);
        match self.client.end_transaction(&transaction.id, self.producer, end).await {
            Ok(()) => {}
            // It may have been over, or never begun; so it was.
            Err(error) if before == State::Uncertain && is_of_no_transaction(&error) => {}
            Err(error) => return Err(error),
        }
        transaction.partitions.clear();
        self.state = before;
        Ok(())
    }

    /// After an uncertain write: a new id, or for transactions a new epoch, with fresh sequences.
    async fn begin_anew(&mut self) -> Result<(), Error> {
        self.producer = match &self.transaction {
            None => self.client.init_idempotent().await?,
            Some(transaction) if !transaction.partitions.is_empty() => return Err(uncertain()),
            Some(Transaction { id, timeout, .. }) => {
                self.client.renew_transactional(id, *timeout, self.producer).await?
            }
        };
        self.sequences.clear();
        self.state = State::Ready;
        Ok(())
    }

    async fn join_transaction(&mut self, partitions: impl Iterator<Item = &TopicPartition>) -> Result<(), Error> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let new: Vec<TopicPartition> =
            partitions.filter(|partition| !transaction.partitions.contains(*partition)).cloned().collect();
        if !new.is_empty() {
            // They may be part of it although the answer is lost: whoever aborts must not think that none is open.
            transaction.partitions.extend(new.iter().cloned());
            self.state = State::Uncertain;
            self.client.add_to_transaction(&transaction.id, self.producer, &new).await?;
            self.state = State::Ready;
        }
        Ok(())
    }

    fn encode(&self, partition: &TopicPartition, records: &[Record]) -> Result<Bytes, Error> {
        let sequence = self.sequences.get(partition).copied().unwrap_or(0);
        let options = BatchOptions {
            compression: self.compression,
            producer: Producer { id: self.producer.id, epoch: self.producer.epoch, sequence },
            transactional: self.transaction.is_some(),
        };
        encode_batch(records, &options).map_err(|source| Error::Records {
            operation: "write the records",
            topic: partition.topic.to_string(),
            partition: partition.partition,
            source,
        })
    }

    async fn send(&mut self, round: &BTreeMap<TopicPartition, Bytes>) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let id = self.transaction.as_ref().map(|transaction| transaction.id.as_str());
        let writing = id.map_or(Writing::Idempotent, Writing::Transactional);
        // Until every answer is a good one: a caller that gives up in between leaves it so.
        self.state = State::Uncertain;
        let answers = self.client.produce(round, writing).await?;
        let mut offsets = BTreeMap::new();
        for (partition, answer) in answers {
            let offset = match answer {
                Ok(offset) => offset,
                Err(refusal) if refusal.code == ErrorCode::DUPLICATE_SEQUENCE_NUMBER => -1,
                Err(refusal) => return Err(fenced(Error::Refused { operation: "write records", refusal }, id)),
            };
            offsets.insert(partition, offset);
        }
        self.state = State::Ready;
        Ok(offsets)
    }
}

fn is_of_no_transaction(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::INVALID_TXN_STATE)
}

fn uncertain() -> Error {
    let message = Some("a write or a commit has ended without an answer: abort the transaction".to_owned());
    let refusal = crate::Refusal { code: ErrorCode::INVALID_TXN_STATE, message };
    Error::Refused { operation: "go on with a transaction", refusal }
}

/// Sequences go round after the largest.
fn advance(sequence: i32, by: usize) -> i32 {
    let next = (i64::from(sequence) + by as i64) % (i64::from(i32::MAX) + 1);
    next as i32
}

/// Cuts records into batches.
fn batches(records: &[Record]) -> Vec<&[Record]> {
    let mut cut = Vec::new();
    let mut rest = records;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|record| {
            bytes += size(record);
            bytes <= BATCH_BYTES
        });
        let (batch, after) = rest.split_at(fitting.count().max(1));
        cut.push(batch);
        rest = after;
    }
    cut
}

/// About as long as it will be on the wire, and not shorter.
fn size(record: &Record) -> usize {
    let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + length(value) + 10).sum();
    length(&record.key) + length(&record.value) + headers + 30
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_full_and_keep_the_order() {
        let of = |length: usize| Record { value: Some(vec![0; length].into()), ..Record::default() };
        let records: Vec<Record> = [300_000, 200_000, 100_000, 900_000, 1].map(of).into();
        let lengths: Vec<usize> = batches(&records).iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1]);
        assert_eq!(batches(&records).concat(), records);
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn sequences_go_round() {
        assert_eq!(advance(0, 3), 3);
        assert_eq!(advance(i32::MAX, 1), 0);
        assert_eq!(advance(i32::MAX - 1, 3), 1);
    }
}
