//! Producer ids and transactions: who may write under which epoch, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};

use super::Cluster;
use crate::code::{Code, Refusal};
use crate::dice::mix;
use crate::ids::{BrokerId, Millis, TopicPartition};
use crate::log::End;

/// The epoch of a coordinator: here none ever comes after another.
const OWN_EPOCH: i32 = 0;
/// transaction.max.timeout.ms
const LONGEST: Millis = 900_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Coordinator {
    next_producer_id: i64,
    pub(super) transactions: BTreeMap<String, Transaction>,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) producer_id: i64,
    pub(super) epoch: i16,
    /// What the producer was before it asked for the present epoch itself. Asking so again gets the same answer: the
    /// first may have been lost.
    before: Option<(i64, i16)>,
    pub(super) timeout: Millis,
    /// Since when one is open.
    pub(super) open_since: Option<Millis>,
    /// When the last one began, whether it is open or not.
    pub(super) began: Option<Millis>,
    pub(super) partitions: BTreeSet<TopicPartition>,
    /// How the last one ended, so that the same end may be asked for twice.
    pub(super) ended: Option<bool>,
}

impl Coordinator {
    fn new_producer_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    /// Whether a transactional batch may be written: its producer is the present one, and the
    /// partition was added to the open transaction.
    pub(crate) fn check_write(
        &self,
        transactional_id: Option<&str>,
        producer: (i64, i16),
        tp: &TopicPartition,
    ) -> Result<(), Refusal> {
        let transaction = transactional_id.and_then(|id| self.transactions.get(id));
        let Some(transaction) = transaction.filter(|transaction| transaction.producer_id == producer.0) else {
            return Err(Code::InvalidProducerIdMapping.plain());
        };
        if producer.1 < transaction.epoch {
            return Err(Code::InvalidProducerEpoch.plain());
        }
        if transaction.open_since.is_none() || !transaction.partitions.contains(tp) {
            return Err(Code::InvalidTxnState.plain());
        }
        Ok(())
    }

    fn find(&mut self, transactional_id: &str, producer: (i64, i16)) -> Result<&mut Transaction, Refusal> {
        let found = self.transactions.get_mut(transactional_id).filter(|it| it.producer_id == producer.0);
        let Some(transaction) = found else { return Err(Code::InvalidProducerIdMapping.plain()) };
        if transaction.epoch != producer.1 {
            return Err(Code::ProducerFenced.plain());
        }
        Ok(transaction)
    }
}

impl Cluster {
    /// The broker that looks after a group or a transactional id: any live one, always the same.
    pub fn coordinator_of(&self, key: &str) -> Result<BrokerId, Refusal> {
        let live: Vec<BrokerId> = self
            .brokers
            .iter()
            .filter(|(_, broker)| broker.is_active() && broker.is_running())
            .map(|(id, _)| *id)
            .collect();
        let hash = key.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        // The live broker with the highest draw: others keep their keys when one dies.
        let draw = |id: &BrokerId| mix(hash ^ mix(id.0 as u64));
        live.into_iter().max_by_key(draw).ok_or_else(|| Code::CoordinatorNotAvailable.plain())
    }

    /// A producer's id and epoch. For a transactional id the epoch grows: whoever wrote under it
    /// before is fenced, and what it left open is aborted.
    pub fn init_producer_id(
        &mut self,
        transactional_id: Option<&str>,
        timeout: Millis,
        known: Option<(i64, i16)>,
    ) -> Result<(i64, i16), Refusal> {
        let Some(transactional_id) = transactional_id else {
            return Ok((self.transactions.new_producer_id(), 0));
        };
        if transactional_id.is_empty() {
            return Err(Code::InvalidRequest.plain());
        }
        if !(1..=LONGEST).contains(&timeout) {
            return Err(Code::InvalidTransactionTimeout.plain());
        }
        let Some(transaction) = self.transactions.transactions.get(transactional_id) else {
            let producer_id = self.transactions.new_producer_id();
            let transaction = Transaction {
                producer_id,
                epoch: 0,
                before: None,
                timeout,
                open_since: None,
                began: None,
                partitions: BTreeSet::new(),
                ended: None,
            };
            self.transactions.transactions.insert(transactional_id.to_owned(), transaction);
            return Ok((producer_id, 0));
        };
        let present = (transaction.producer_id, transaction.epoch);
        let open = transaction.open_since.is_some();
        if known.is_some_and(|known| known != present) {
            let again = known == transaction.before && !open;
            return if again { Ok(present) } else { Err(Code::ProducerFenced.plain()) };
        }
        let renewed = (transaction.epoch >= i16::MAX - 1).then(|| self.transactions.new_producer_id());
        if let Some(transaction) = self.transactions.transactions.get_mut(transactional_id) {
            transaction.timeout = timeout;
            transaction.epoch = transaction.epoch.saturating_add(1);
        }
        if open {
            // The marker carries the new epoch, so the logs fence the old producer too.
            self.finish(transactional_id, false);
        }
        let transaction = self
            .transactions
            .transactions
            .get_mut(transactional_id)
            .ok_or_else(|| Code::InvalidProducerIdMapping.plain())?;
        (transaction.ended, transaction.began) = (None, None);
        transaction.before = known;
        if let Some(producer_id) = renewed {
            (transaction.producer_id, transaction.epoch) = (producer_id, 0);
        }
        Ok((transaction.producer_id, transaction.epoch))
    }

    /// Takes partitions into the transaction, which opens it. All of them or none.
    pub fn add_partitions_to_txn(
        &mut self,
        transactional_id: &str,
        producer: (i64, i16),
        partitions: &[TopicPartition],
    ) -> Vec<(TopicPartition, Result<(), Refusal>)> {
        let now = self.now;
        let refused_for_all =
            |refusal: Refusal| partitions.iter().map(|tp| (tp.clone(), Err(refusal.clone()))).collect::<Vec<_>>();
        let unknown: BTreeSet<&TopicPartition> = partitions.iter().filter(|tp| self.lookup(tp).is_none()).collect();
        if !unknown.is_empty() {
            let code = |tp: &TopicPartition| {
                if unknown.contains(tp) { Code::UnknownTopicOrPartition } else { Code::OperationNotAttempted }
            };
            return partitions.iter().map(|tp| (tp.clone(), Err(code(tp).plain()))).collect();
        }
        match self.transactions.find(transactional_id, producer) {
            Err(refusal) => refused_for_all(refusal),
            Ok(transaction) => {
                transaction.began = Some(*transaction.open_since.get_or_insert(now));
                transaction.ended = None;
                transaction.partitions.extend(partitions.iter().cloned());
                partitions.iter().map(|tp| (tp.clone(), Ok(()))).collect()
            }
        }
    }

    /// Commits or aborts; markers are in all partitions when this returns.
    pub fn end_txn(&mut self, transactional_id: &str, producer: (i64, i16), commit: bool) -> Result<(), Refusal> {
        let transaction = self.transactions.find(transactional_id, producer)?;
        if transaction.open_since.is_none() {
            let again = transaction.ended == Some(commit);
            return if again { Ok(()) } else { Err(Code::InvalidTxnState.plain()) };
        }
        self.finish(transactional_id, commit);
        Ok(())
    }

    fn finish(&mut self, transactional_id: &str, commit: bool) {
        let (now, wall_clock) = (self.now, self.wall_clock());
        let Some(transaction) = self.transactions.transactions.get_mut(transactional_id) else { return };
        let producer = (transaction.producer_id, transaction.epoch);
        transaction.open_since = None;
        transaction.ended = Some(commit);
        for tp in std::mem::take(&mut transaction.partitions) {
            let Some(topic) = self.topics.get_mut(&tp.topic) else { continue };
            let place = topic.next_place(tp.partition, now);
            if let Some(partition) = topic.partition_mut(tp.partition) {
                // An epoch older than the log's was fenced there already: it has nothing left to end.
                let end = End { commit, coordinator_epoch: OWN_EPOCH };
                let _fenced = partition.log.end_transaction(producer, end, wall_clock, place);
            }
        }
    }

    /// Aborts what has been open for longer than its producer said, and fences that producer.
    pub(super) fn abort_old_transactions(&mut self) {
        let now = self.now;
        let old = |it: &Transaction| it.open_since.is_some_and(|since| now - since >= it.timeout);
        let ids: Vec<String> =
            self.transactions.transactions.iter().filter(|(_, it)| old(it)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            if let Some(transaction) = self.transactions.transactions.get_mut(&id) {
                transaction.epoch = transaction.epoch.saturating_add(1);
                transaction.before = None;
            }
            self.finish(&id, false);
        }
    }
}
