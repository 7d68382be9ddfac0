//! Producer ids and transactions: what fences an old writer off when a new one has taken over.
//!
//! The classic protocol, which every broker since 0.11 speaks: partitions are added to a transaction
//! before they are written to.

use std::time::Duration;

use kafka_protocol::messages::{
    self, AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProducerId, TransactionalId,
    add_partitions_to_txn_request::AddPartitionsToTxnTopic,
};

use crate::{
    client::{Call, Client, Effect, To},
    error::{Error, Refusal},
    types::{TopicPartition, by_topic, text, topic_name},
};

/// A producer, as brokers know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// Its id.
    pub id: i64,
    /// Its epoch: of two with the same id, the higher one lives.
    pub epoch: i16,
}

/// Who asks for its first id.
const NOBODY: ProducerIdentity = ProducerIdentity { id: -1, epoch: -1 };

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it becomes visible.
    Commit,
    /// None of it does.
    Abort,
}

impl Client {
    /// A producer id of nobody else's, for writing without transactions.
    pub async fn init_idempotent(&self) -> Result<ProducerIdentity, Error> {
        self.init_producer(To::Any, init_request(i32::MAX, NOBODY)).await
    }

    /// The producer of a transactional id, with a new epoch: whoever had the id before is fenced off,
    /// and its open transaction is aborted. Transactions that stay open longer than `timeout` are
    /// aborted by the coordinator.
    pub async fn init_transactional(
        &self,
        transactional_id: &str,
        timeout: Duration,
    ) -> Result<ProducerIdentity, Error> {
        self.init_epoch(transactional_id, timeout, NOBODY).await
    }

    /// A new epoch for a producer that still is the living one; an older one is refused as fenced,
    /// and so cannot come back by this (brokers of Kafka 2.5 and later).
    pub async fn renew_transactional(
        &self,
        transactional_id: &str,
        timeout: Duration,
        current: ProducerIdentity,
    ) -> Result<ProducerIdentity, Error> {
        self.init_epoch(transactional_id, timeout, current).await
    }

    async fn init_epoch(
        &self,
        transactional_id: &str,
        timeout: Duration,
        current: ProducerIdentity,
    ) -> Result<ProducerIdentity, Error> {
        let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let request =
            init_request(timeout, current).with_transactional_id(Some(TransactionalId(text(transactional_id))));
        let identity = self.init_producer(To::Coordinator(transactional_id), request).await;
        identity.map_err(|error| fenced(error, Some(transactional_id)))
    }

    async fn init_producer(&self, to: To<'_>, request: InitProducerIdRequest) -> Result<ProducerIdentity, Error> {
        // Twice means two epochs, and the last is ours.
        let call = Call { operation: "get a producer id", to, effect: Effect::Repeatable };
        let verdict = |answer: &messages::InitProducerIdResponse| Refusal::check(answer.error_code, None);
        let answer = self.ask(call, |_| request.clone(), verdict).await?;
        Ok(ProducerIdentity { id: answer.producer_id.0, epoch: answer.producer_epoch })
    }

    /// Makes partitions part of the open transaction, or opens one.
    pub async fn add_to_transaction(
        &self,
        transactional_id: &str,
        producer: ProducerIdentity,
        partitions: &[TopicPartition],
    ) -> Result<(), Error> {
        let operation = "add partitions to a transaction";
        let call = Call { operation, to: To::Coordinator(transactional_id), effect: Effect::Repeatable };
        let request = |_| {
            let topics = by_topic(partitions.iter().map(|one| (one.topic.as_str(), one.partition)));
            let topics = topics.into_iter().map(|(name, indexes)| {
                AddPartitionsToTxnTopic::default().with_name(topic_name(name)).with_partitions(indexes)
            });
            AddPartitionsToTxnRequest::default()
                .with_v3_and_below_transactional_id(TransactionalId(text(transactional_id)))
                .with_v3_and_below_producer_id(ProducerId(producer.id))
                .with_v3_and_below_producer_epoch(producer.epoch)
                .with_v3_and_below_topics(topics.collect())
        };
        let verdict = |answer: &messages::AddPartitionsToTxnResponse| {
            let mut topics = answer.results_by_topic_v3_and_below.iter();
            // All are added or none: the first that is no consequence of another tells why.
            let codes = topics.by_ref().flat_map(|topic| &topic.results_by_partition);
            let codes: Vec<i16> = codes.map(|partition| partition.partition_error_code).collect();
            const OPERATION_NOT_ATTEMPTED: i16 = 55;
            let cause = codes.iter().find(|code| !matches!(**code, 0 | OPERATION_NOT_ATTEMPTED));
            Refusal::check(cause.or(codes.iter().find(|code| **code != 0)).copied().unwrap_or(0), None)
        };
        self.ask(call, request, verdict).await.map_err(|error| fenced(error, Some(transactional_id)))?;
        Ok(())
    }

    /// Ends the open transaction.
    pub async fn end_transaction(
        &self,
        transactional_id: &str,
        producer: ProducerIdentity,
        end: End,
    ) -> Result<(), Error> {
        // The coordinator knows the second of two same ends.
        let to = To::Coordinator(transactional_id);
        let call = Call { operation: "end a transaction", to, effect: Effect::Repeatable };
        let request = |_| {
            EndTxnRequest::default()
                .with_transactional_id(TransactionalId(text(transactional_id)))
                .with_producer_id(ProducerId(producer.id))
                .with_producer_epoch(producer.epoch)
                .with_committed(end == End::Commit)
        };
        self.ask(call, request, |answer: &messages::EndTxnResponse| Refusal::check(answer.error_code, None))
            .await
            .map_err(|error| fenced(error, Some(transactional_id)))?;
        Ok(())
    }
}

/// The codec would ask for the transactional id "", which brokers refuse.
fn init_request(timeout_ms: i32, current: ProducerIdentity) -> InitProducerIdRequest {
    InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(timeout_ms)
        .with_producer_id(ProducerId(current.id))
        .with_producer_epoch(current.epoch)
}

/// Gives fencing its own error.
pub(crate) fn fenced(error: Error, transactional_id: Option<&str>) -> Error {
    match (error.refusal(), transactional_id) {
        (Some(refusal), Some(id)) if refusal.code.is_fenced() => Error::Fenced { transactional_id: id.to_owned() },
        _ => error,
    }
}
