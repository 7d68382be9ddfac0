//! Transactions and producers as an administrator sees them, and a transaction ended by hand in one partition.

use std::collections::BTreeSet;

use regex::Regex;

use super::Cluster;
use super::txn::Transaction;
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, Millis, TopicPartition};
use crate::log::{End, ProducerView};

/// Where a transaction stands. The states in between are passed at once here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// None has begun since the producer came.
    Empty,
    /// It is open.
    Ongoing,
    /// The last one was committed.
    CompleteCommit,
    /// The last one was aborted.
    CompleteAbort,
}

impl TransactionState {
    /// Every state that Kafka has a name for, ours among them.
    pub const NAMES: [&str; 8] = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ];

    /// Kafka's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    fn of(transaction: &Transaction) -> Self {
        match (transaction.open_since, transaction.ended) {
            (Some(_), _) => Self::Ongoing,
            (None, None) => Self::Empty,
            (None, Some(true)) => Self::CompleteCommit,
            (None, Some(false)) => Self::CompleteAbort,
        }
    }
}

/// A transactional id, as its coordinator tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionView {
    /// The id.
    pub transactional_id: String,
    /// Where it stands.
    pub state: TransactionState,
    /// Whose it is.
    pub producer: (i64, i16),
    /// After how long it is aborted.
    pub timeout: Millis,
    /// The wall-clock time at which the last one began.
    pub began: Option<i64>,
    /// What it has been told it will write to.
    pub partitions: BTreeSet<TopicPartition>,
}

/// Which transactions are wanted; what is empty does not count.
#[derive(Clone, Debug, Default)]
pub struct TransactionFilter {
    /// By Kafka's names of states; one that it does not know matches nothing.
    pub states: Vec<String>,
    /// By producers.
    pub producers: Vec<i64>,
    /// Those that began longer ago than this.
    pub older_than: Option<Millis>,
    /// Those whose id is this from its first letter to its last.
    pub pattern: Option<String>,
}

impl Cluster {
    /// The transactional ids that this broker looks after.
    pub fn list_transactions(&self, me: BrokerId, filter: &TransactionFilter) -> Result<Vec<TransactionView>, Refusal> {
        let pattern = match &filter.pattern {
            Some(pattern) => {
                Some(Regex::new(&format!("^(?:{pattern})$")).map_err(|_| Code::InvalidRegularExpression.plain())?)
            }
            None => None,
        };
        let wall_clock = self.wall_clock();
        let views = self.transactions.transactions.iter().filter(|(id, _)| self.coordinator_of(id) == Ok(me));
        let views = views.map(|(id, transaction)| self.view(id, transaction)).filter(|view| {
            let age = wall_clock - view.began.unwrap_or(-1);
            (filter.states.is_empty() || filter.states.iter().any(|state| state == view.state.name()))
                && (filter.producers.is_empty() || filter.producers.contains(&view.producer.0))
                && filter.older_than.is_none_or(|least| age > least)
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&view.transactional_id))
        });
        Ok(views.collect())
    }

    /// One of them.
    pub fn describe_transaction(&self, transactional_id: &str) -> Result<TransactionView, Refusal> {
        let found = self.transactions.transactions.get(transactional_id);
        found
            .map(|transaction| self.view(transactional_id, transaction))
            .ok_or_else(|| Code::TransactionalIdNotFound.plain())
    }

    fn view(&self, id: &str, transaction: &Transaction) -> TransactionView {
        TransactionView {
            transactional_id: id.to_owned(),
            state: TransactionState::of(transaction),
            producer: (transaction.producer_id, transaction.epoch),
            timeout: transaction.timeout,
            began: transaction.began.map(|began| self.options.wall_start + began),
            partitions: transaction.partitions.clone(),
        }
    }

    /// Who has written to a partition, as one of its replicas knows.
    pub fn describe_producers(&self, asked: BrokerId, tp: &TopicPartition) -> Result<Vec<ProducerView>, Refusal> {
        let (_, partition) = self.lookup(tp).ok_or_else(|| Code::UnknownTopicOrPartition.plain())?;
        if !partition.registration.replicas.contains(&asked) {
            return Err(Code::NotLeaderOrFollower.plain());
        }
        Ok(partition.log.producers())
    }

    /// Ends a producer's transaction in one partition that `asked` must lead, whatever its coordinator thinks.
    pub fn write_marker(
        &mut self,
        asked: BrokerId,
        tp: &TopicPartition,
        producer: (i64, i16),
        end: End,
    ) -> Result<(), Refusal> {
        let (now, wall_clock) = (self.now, self.wall_clock());
        self.led_by(asked, tp)?;
        let unknown = || Code::UnknownTopicOrPartition.plain();
        let topic = self.topics.get_mut(&tp.topic).ok_or_else(unknown)?;
        let place = topic.next_place(tp.partition, now);
        let partition = topic.partition_mut(tp.partition).ok_or_else(unknown)?;
        partition.log.end_transaction(producer, end, wall_clock, place)
    }
}
