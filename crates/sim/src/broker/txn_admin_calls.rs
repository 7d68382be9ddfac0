//! Transactions and producers, for whoever looks after them.

use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState as Described};
use kafka_protocol::messages::list_transactions_response::TransactionState as Listed;
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, DescribeTransactionsRequest, DescribeTransactionsResponse,
    ListTransactionsRequest, ListTransactionsResponse, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

use super::Call;
use super::convert::{by_topic, outcome, partition, text, topic};
use crate::cluster::{TransactionFilter, TransactionState, TransactionView};
use crate::code::{Code, Refusal};
use crate::log::{End, ProducerView};

impl Call<'_> {
    pub(super) fn list_transactions(&mut self, request: ListTransactionsRequest) -> ListTransactionsResponse {
        let states = request.state_filters;
        let unknown = states.iter().filter(|state| !TransactionState::NAMES.contains(&state.as_str())).cloned();
        let response = ListTransactionsResponse::default().with_unknown_state_filters(unknown.collect());
        let filter = TransactionFilter {
            states: states.iter().map(|state| state.to_string()).collect(),
            producers: request.producer_id_filters.iter().map(|id| id.0).collect(),
            older_than: (request.duration_filter >= 0).then_some(request.duration_filter),
            pattern: request.transactional_id_pattern.map(|it| it.to_string()).filter(|it| !it.is_empty()),
        };
        match self.cluster.list_transactions(self.me, &filter) {
            Err(refusal) => response.with_error_code(refusal.code.number()),
            Ok(views) => response.with_transaction_states(
                views
                    .into_iter()
                    .map(|view| {
                        Listed::default()
                            .with_transactional_id(text(&view.transactional_id).into())
                            .with_producer_id(view.producer.0.into())
                            .with_transaction_state(text(view.state.name()))
                    })
                    .collect(),
            ),
        }
    }

    pub(super) fn describe_transactions(
        &mut self,
        request: DescribeTransactionsRequest,
    ) -> DescribeTransactionsResponse {
        let states = request.transactional_ids.into_iter().map(|id| {
            let found = self.coordinates(Some(&id)).and_then(|()| self.cluster.describe_transaction(&id));
            let described = found.map_or_else(
                |refusal| Described::default().with_error_code(refusal.code.number()),
                |view| described(&view),
            );
            described.with_transactional_id(id)
        });
        DescribeTransactionsResponse::default().with_transaction_states(states.collect())
    }

    pub(super) fn describe_producers(&mut self, request: DescribeProducersRequest) -> DescribeProducersResponse {
        let topics = request.topics.into_iter().map(|wanted| {
            let partitions = wanted.partition_indexes.iter().map(|number| {
                let known = self.cluster.describe_producers(self.me, &partition(&wanted.name, *number));
                let (code, message) = outcome(&known);
                PartitionResponse::default()
                    .with_partition_index(*number)
                    .with_error_code(code)
                    .with_error_message(message)
                    .with_active_producers(known.unwrap_or_default().iter().map(producer).collect())
            });
            let partitions = partitions.collect();
            TopicResponse::default().with_name(wanted.name).with_partitions(partitions)
        });
        DescribeProducersResponse::default().with_topics(topics.collect())
    }

    /// Between brokers this is how a transaction ends; from an administrator, how one ends that nobody else will end.
    pub(super) fn write_txn_markers(&mut self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse {
        let markers = request.markers.into_iter().map(|marker| {
            let producer = (marker.producer_id.0, marker.producer_epoch);
            let end = End { commit: marker.transaction_result, coordinator_epoch: marker.coordinator_epoch };
            let topics = marker.topics.into_iter().map(|wanted| {
                let partitions = wanted.partition_indexes.iter().map(|number| {
                    let tp = partition(&wanted.name, *number);
                    let known = self.cluster.knows_it_leads(self.me, &tp);
                    let result = known.and_then(|()| self.cluster.write_marker(self.me, &tp, producer, end));
                    WritableTxnMarkerPartitionResult::default()
                        .with_partition_index(*number)
                        .with_error_code(marker_code(&result))
                });
                let partitions = partitions.collect();
                WritableTxnMarkerTopicResult::default().with_name(wanted.name).with_partitions(partitions)
            });
            WritableTxnMarkerResult::default().with_producer_id(producer.0.into()).with_topics(topics.collect())
        });
        WriteTxnMarkersResponse::default().with_markers(markers.collect())
    }
}

fn described(view: &TransactionView) -> Described {
    let partitions = view.partitions.iter().map(|tp| (tp.clone(), ()));
    let topics = by_topic(partitions).into_iter().map(|(name, partitions)| {
        let numbers = partitions.into_iter().map(|(number, ())| number).collect();
        TopicData::default().with_topic(topic(&name)).with_partitions(numbers)
    });
    Described::default()
        .with_transaction_state(text(view.state.name()))
        .with_transaction_timeout_ms(i32::try_from(view.timeout).unwrap_or(i32::MAX))
        .with_transaction_start_time_ms(view.began.unwrap_or(-1))
        .with_producer_id(view.producer.0.into())
        .with_producer_epoch(view.producer.1)
        .with_topics(topics.collect())
}

fn producer(view: &ProducerView) -> ProducerState {
    ProducerState::default()
        .with_producer_id(view.id.into())
        .with_producer_epoch(view.epoch.into())
        .with_last_sequence(view.last_sequence.unwrap_or(-1))
        .with_last_timestamp(view.last_timestamp)
        .with_coordinator_epoch(view.coordinator_epoch)
        .with_current_txn_start_offset(view.open_since.unwrap_or(-1))
}

/// A marker of an older epoch is the one refusal that Kafka has no code for here.
fn marker_code(result: &Result<(), Refusal>) -> i16 {
    match result {
        Err(refusal) if refusal.code == Code::InvalidProducerEpoch => Code::UnknownServerError.number(),
        result => outcome(result).0,
    }
}
