//! Who is there, and what topics look like.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_kafka::message::{MessageError, encode_response};
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_quorum_response::{Node, PartitionData, ReplicaState, TopicData};
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, DescribeClusterRequest, DescribeClusterResponse, DescribeQuorumRequest, DescribeQuorumResponse,
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse,
    UnregisterBrokerRequest, UnregisterBrokerResponse,
};

use super::convert::{broker, brokers, outcome, text, topic, topic_id, uuid};
use super::feature_calls::versions;
use super::{Call, Reply};
use crate::cluster::{PartitionView, TopicView, Voter};
use crate::code::Code;
use crate::ids::BrokerId;

/// What anybody may do with a topic, and with the cluster, where that is asked.
const TOPIC_OPERATIONS: i32 = 0xdf8;
const CLUSTER_OPERATIONS: i32 = 0x1fa0;
/// max.request.partition.size.limit
const PARTITIONS_AT_ONCE: i32 = 2_000;

impl Call<'_> {
    pub(super) fn api_versions(&self) -> Result<Reply, MessageError> {
        self.decode::<ApiVersionsRequest>()?;
        self.encode(&versions(self.cluster, 0))
    }

    /// A version we do not speak is answered in version 0, so that the client can choose another.
    pub(super) fn unsupported_version(&self) -> Result<Reply, MessageError> {
        let response = versions(self.cluster, Code::UnsupportedVersion.number());
        encode_response(&response, 0, self.raw.correlation).map(Reply::Answer)
    }

    pub(super) fn metadata(&mut self, request: MetadataRequest) -> MetadataResponse {
        // In version 0 an empty list stood for all topics.
        let wanted = request.topics.filter(|topics| self.raw.version > 0 || !topics.is_empty());
        let operations = request.include_topic_authorized_operations;
        // However often a topic is named, it is shown once.
        let mut asked = BTreeSet::new();
        let topics = match wanted {
            None => self.cluster.describe_topics(self.me).iter().map(|view| metadata_topic(view, operations)).collect(),
            Some(wanted) => wanted
                .into_iter()
                .filter(|wanted| asked.insert((wanted.name.clone(), wanted.topic_id)))
                .map(|wanted| {
                    let by_id = wanted.name.is_none();
                    let name = match &wanted.name {
                        Some(name) => Some(name.to_string()),
                        None => self.cluster.topic_name(topic_id(&wanted.topic_id)).map(|name| name.to_string()),
                    };
                    let view = name.as_deref().map(|name| self.cluster.describe_topic(self.me, name));
                    match view {
                        Some(Ok(view)) => metadata_topic(&view, operations),
                        Some(Err(refusal)) if !by_id => {
                            let shown = MetadataResponseTopic::default().with_name(wanted.name);
                            let shown = shown.with_error_code(refusal.code.number());
                            if operations { shown.with_topic_authorized_operations(TOPIC_OPERATIONS) } else { shown }
                        }
                        _ => MetadataResponseTopic::default()
                            .with_error_code(Code::UnknownTopicId.number())
                            .with_topic_id(wanted.topic_id),
                    }
                })
                .collect(),
        };
        let seen = self.cluster.describe_brokers(self.me, false);
        let nodes = seen.into_iter().filter_map(|view| {
            let (host, port) = self.address(view.id)?;
            let node = MetadataResponseBroker::default().with_node_id(broker(Some(view.id)));
            Some(node.with_host(host).with_port(port).with_rack(view.rack.as_deref().map(text)))
        });
        let response = MetadataResponse::default()
            .with_brokers(nodes.collect())
            .with_cluster_id(Some(text(self.cluster.cluster_id())))
            .with_controller_id(broker(self.cluster.shown_controller()))
            .with_topics(topics);
        if request.include_cluster_authorized_operations {
            return response.with_cluster_authorized_operations(CLUSTER_OPERATIONS);
        }
        response
    }

    pub(super) fn describe_cluster(&mut self, request: DescribeClusterRequest) -> DescribeClusterResponse {
        let response = DescribeClusterResponse::default();
        if request.endpoint_type == 2 {
            // Brokers speak of brokers; controllers are asked elsewhere.
            let text_of =
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
            return response
                .with_error_code(Code::MismatchedEndpointType.number())
                .with_error_message(Some(text(text_of)));
        }
        let seen = self.cluster.describe_brokers(self.me, request.include_fenced_brokers);
        let nodes = seen.into_iter().filter_map(|view| {
            let (host, port) = self.address(view.id)?;
            let node =
                DescribeClusterBroker::default().with_broker_id(broker(Some(view.id))).with_is_fenced(view.fenced);
            Some(node.with_host(host).with_port(port).with_rack(view.rack.as_deref().map(text)))
        });
        let response = response
            .with_brokers(nodes.collect())
            .with_endpoint_type(1)
            .with_cluster_id(text(self.cluster.cluster_id()))
            .with_controller_id(broker(self.cluster.shown_controller()));
        if request.include_cluster_authorized_operations {
            return response.with_cluster_authorized_operations(CLUSTER_OPERATIONS);
        }
        response
    }

    /// Page by page, ordered by topic and partition.
    pub(super) fn describe_topic_partitions(
        &mut self,
        request: DescribeTopicPartitionsRequest,
    ) -> DescribeTopicPartitionsResponse {
        let mut names: Vec<Arc<str>> = if request.topics.is_empty() {
            self.cluster.topic_names(self.me)
        } else {
            request.topics.iter().map(|wanted| Arc::from(wanted.name.as_str())).collect()
        };
        names.sort_unstable();
        names.dedup();
        let (first_topic, first_partition) =
            request.cursor.map_or((String::new(), 0), |cursor| (cursor.topic_name.to_string(), cursor.partition_index));
        let mut left = request.response_partition_limit.clamp(1, PARTITIONS_AT_ONCE) as usize;
        let mut topics = Vec::new();
        let mut next = None;
        // Only what is on the page is looked at: there may be a hundred pages.
        for name in names.into_iter().filter(|name| **name >= *first_topic) {
            if left == 0 {
                next = Some(Cursor::default().with_topic_name(topic(&name)).with_partition_index(0));
                break;
            }
            let shown = DescribeTopicPartitionsResponseTopic::default()
                .with_name(Some(topic(&name)))
                .with_topic_authorized_operations(TOPIC_OPERATIONS);
            let view = match self.cluster.describe_topic(self.me, &name) {
                Ok(view) => view,
                Err(refusal) => {
                    topics.push(shown.with_error_code(refusal.code.number()));
                    continue;
                }
            };
            let from = if *name == *first_topic { first_partition } else { 0 };
            let mut rest = view.partitions.iter().filter(|it| it.partition >= from).peekable();
            let page: Vec<_> = rest.by_ref().take(left).map(described_partition).collect();
            left -= page.len();
            next = rest
                .next()
                .map(|it| Cursor::default().with_topic_name(topic(&name)).with_partition_index(it.partition));
            topics.push(shown.with_topic_id(uuid(view.id)).with_is_internal(view.internal).with_partitions(page));
            if next.is_some() {
                break;
            }
        }
        DescribeTopicPartitionsResponse::default().with_topics(topics).with_next_cursor(next)
    }

    pub(super) fn describe_quorum(&mut self, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
        let log_end = self.cluster.metadata_offset();
        let caught_up_at = self.cluster.wall_clock();
        let version = self.raw.version;
        let state = |it: Voter| {
            let state = ReplicaState::default().with_replica_id(broker(Some(BrokerId(it.id))));
            let state = state.with_log_end_offset(it.log_end);
            if version == 0 {
                return state;
            }
            state.with_last_fetch_timestamp(it.caught_up_at).with_last_caught_up_timestamp(it.caught_up_at)
        };
        let observers = self.cluster.describe_brokers(self.me, false).into_iter();
        let observers = observers.map(|view| state(Voter { id: view.id.0, log_end, caught_up_at })).collect();
        let quorum = PartitionData::default()
            .with_leader_id(broker(self.cluster.leading_voter().map(BrokerId)))
            .with_leader_epoch(1)
            .with_high_watermark(log_end)
            .with_current_voters(self.cluster.voters().map(state).collect())
            .with_observers(observers);
        let mut asked = BTreeSet::new();
        let once = request.topics.into_iter().filter(|wanted| asked.insert(wanted.topic_name.clone()));
        let topics = once.map(|wanted| {
            let metadata_log = wanted.topic_name.as_str() == "__cluster_metadata";
            let mut asked = BTreeSet::new();
            let once = wanted.partitions.iter().filter(|it| asked.insert(it.partition_index));
            let partitions = once.map(|it| {
                if metadata_log && it.partition_index == 0 {
                    quorum.clone()
                } else {
                    let unknown = PartitionData::default().with_partition_index(it.partition_index);
                    unknown.with_error_code(Code::UnknownTopicOrPartition.number())
                }
            });
            TopicData::default().with_topic_name(wanted.topic_name.clone()).with_partitions(partitions.collect())
        });
        let nodes = self.cluster.voters().map(|voter| Node::default().with_node_id(broker(Some(BrokerId(voter.id)))));
        let nodes = nodes.filter(|_| version >= 2).collect();
        DescribeQuorumResponse::default().with_topics(topics.collect()).with_nodes(nodes)
    }

    pub(super) fn unregister_broker(&mut self, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse {
        let result = self.cluster.unregister_broker(BrokerId(request.broker_id.0));
        let (code, message) = outcome(&result);
        UnregisterBrokerResponse::default().with_error_code(code).with_error_message(message)
    }
}

fn partition_error(view: &PartitionView) -> i16 {
    view.registration.leader.map_or(Code::LeaderNotAvailable.number(), |_| 0)
}

fn metadata_topic(view: &TopicView, operations: bool) -> MetadataResponseTopic {
    let partitions = view.partitions.iter().map(|it| {
        MetadataResponsePartition::default()
            .with_error_code(partition_error(it))
            .with_partition_index(it.partition)
            .with_leader_id(broker(it.registration.leader))
            .with_leader_epoch(it.registration.leader_epoch)
            .with_replica_nodes(brokers(&it.registration.replicas))
            .with_isr_nodes(brokers(&it.registration.isr))
            .with_offline_replicas(brokers(&it.offline))
    });
    let shown = MetadataResponseTopic::default()
        .with_name(Some(topic(&view.name)))
        .with_topic_id(uuid(view.id))
        .with_is_internal(view.internal)
        .with_partitions(partitions.collect());
    if operations { shown.with_topic_authorized_operations(TOPIC_OPERATIONS) } else { shown }
}

fn described_partition(view: &PartitionView) -> DescribeTopicPartitionsResponsePartition {
    let registration = &view.registration;
    let last: Vec<BrokerId> = registration.last_known_leader.into_iter().collect();
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(partition_error(view))
        .with_partition_index(view.partition)
        .with_leader_id(broker(registration.leader))
        .with_leader_epoch(registration.leader_epoch)
        .with_replica_nodes(brokers(&registration.replicas))
        .with_isr_nodes(brokers(&registration.isr))
        .with_eligible_leader_replicas(Some(brokers(&registration.eligible)))
        .with_last_known_elr(Some(brokers(&last)))
        .with_offline_replicas(brokers(&view.offline))
}
