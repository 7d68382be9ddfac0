//! Coordinators, producer ids and transactions.

use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, InitProducerIdRequest, InitProducerIdResponse,
};

use super::Call;
use super::convert::{broker, by_topic, outcome, partition, text, topic};
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, TopicPartition};

impl Call<'_> {
    pub(super) fn find_coordinator(&mut self, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        let find = |key: &str| {
            let found = self.cluster.coordinator_of(key).ok().and_then(|id| Some((id, self.address(id)?)));
            match found {
                Some((id, (host, port))) => {
                    Coordinator::default().with_node_id(broker(Some(id))).with_host(host).with_port(port)
                }
                None => {
                    let code = Code::CoordinatorNotAvailable;
                    let nobody = Coordinator::default().with_node_id(broker(None)).with_port(-1);
                    nobody.with_error_code(code.number()).with_error_message(Some(text(code.text())))
                }
            }
        };
        if self.raw.version >= 4 {
            let all = request.coordinator_keys.iter().map(|key| find(key).with_key(key.clone()));
            return FindCoordinatorResponse::default().with_coordinators(all.collect());
        }
        let found = find(&request.key);
        FindCoordinatorResponse::default()
            .with_error_code(found.error_code)
            .with_error_message(found.error_message)
            .with_node_id(found.node_id)
            .with_host(found.host)
            .with_port(found.port)
    }

    pub(super) fn init_producer_id(&mut self, request: InitProducerIdRequest) -> InitProducerIdResponse {
        let transactional_id = request.transactional_id.as_ref().map(|id| id.to_string());
        let known = (request.producer_id.0 >= 0).then_some((request.producer_id.0, request.producer_epoch));
        let result = self.coordinates(transactional_id.as_deref()).and_then(|()| {
            let timeout = i64::from(request.transaction_timeout_ms);
            self.cluster.init_producer_id(transactional_id.as_deref(), timeout, known)
        });
        let response = InitProducerIdResponse::default().with_error_code(outcome(&result).0);
        match result {
            Ok((id, epoch)) => response.with_producer_id(id.into()).with_producer_epoch(epoch),
            Err(_) => response.with_producer_id((-1).into()).with_producer_epoch(-1),
        }
    }

    pub(super) fn add_partitions_to_txn(&mut self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse {
        let id = request.v3_and_below_transactional_id.to_string();
        let producer = (request.v3_and_below_producer_id.0, request.v3_and_below_producer_epoch);
        let topics = request.v3_and_below_topics.iter();
        let partitions: Vec<TopicPartition> =
            topics.flat_map(|it| it.partitions.iter().map(|n| partition(&it.name, *n))).collect();
        let results = match self.coordinates(Some(&id)) {
            Ok(()) => self.cluster.add_partitions_to_txn(&id, producer, &partitions),
            Err(refusal) => partitions.into_iter().map(|tp| (tp, Err(refusal.clone()))).collect(),
        };
        let old = self.raw.version < 2;
        let topics = by_topic(results).into_iter().map(|(name, results)| {
            let partitions = results.into_iter().map(|(number, result)| {
                AddPartitionsToTxnPartitionResult::default()
                    .with_partition_index(number)
                    .with_partition_error_code(fenced_code(&result, old))
            });
            AddPartitionsToTxnTopicResult::default()
                .with_name(topic(&name))
                .with_results_by_partition(partitions.collect())
        });
        AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics.collect())
    }

    pub(super) fn end_txn(&mut self, request: EndTxnRequest) -> EndTxnResponse {
        let id = request.transactional_id.to_string();
        let producer = (request.producer_id.0, request.producer_epoch);
        let result = self.coordinates(Some(&id)).and_then(|()| self.cluster.end_txn(&id, producer, request.committed));
        EndTxnResponse::default().with_error_code(fenced_code(&result, self.raw.version < 2))
    }

    /// Whether this broker looks after the id; without one anybody does.
    pub(super) fn coordinates(&self, transactional_id: Option<&str>) -> Result<(), Refusal> {
        let Some(id) = transactional_id else { return Ok(()) };
        let coordinator: BrokerId = self.cluster.coordinator_of(id)?;
        if coordinator == self.me { Ok(()) } else { Err(Code::NotCoordinator.plain()) }
    }
}

/// Old versions do not know of fenced producers, only of old epochs.
fn fenced_code(result: &Result<(), Refusal>, old: bool) -> i16 {
    match result {
        Err(refusal) if old && refusal.code == Code::ProducerFenced => Code::InvalidProducerEpoch.number(),
        result => outcome(result).0,
    }
}
