//! Replicas move between brokers and directories, and leaders change.

use evenkeel_kafka::calls::log_dirs;
use evenkeel_kafka::message::MessageError;
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse, DescribeLogDirsRequest, DescribeLogDirsResponse, ElectLeadersRequest,
    ElectLeadersResponse, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use super::convert::{brokers, by_topic, ids, outcome, partition, text, topic};
use super::{Call, Reply};
use crate::cluster::{ElectionKind, Reassignment};
use crate::code::Code;
use crate::ids::TopicPartition;

impl Call<'_> {
    pub(super) fn alter_reassignments(
        &mut self,
        request: AlterPartitionReassignmentsRequest,
    ) -> AlterPartitionReassignmentsResponse {
        // Before version 1 nobody could ask for the factor to be kept.
        let allow = self.raw.version < 1 || request.allow_replication_factor_change;
        let responses = request.topics.iter().map(|wanted| {
            let lines: Vec<Reassignment> = wanted
                .partitions
                .iter()
                .map(|it| Reassignment {
                    partition: partition(&wanted.name, it.partition_index),
                    target: it.replicas.as_deref().map(ids),
                })
                .collect();
            let results = self.cluster.alter_reassignments(&lines, allow);
            let partitions = lines.iter().zip(&results).map(|(line, result)| {
                let (code, message) = outcome(result);
                let answer = ReassignablePartitionResponse::default().with_partition_index(line.partition.partition);
                answer.with_error_code(code).with_error_message(message)
            });
            ReassignableTopicResponse::default().with_name(wanted.name.clone()).with_partitions(partitions.collect())
        });
        AlterPartitionReassignmentsResponse::default()
            .with_allow_replication_factor_change(allow)
            .with_responses(responses.collect())
    }

    pub(super) fn list_reassignments(
        &mut self,
        request: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        let among: Option<Vec<TopicPartition>> = request.topics.map(|topics| {
            let each = topics.iter().flat_map(|it| it.partition_indexes.iter().map(|n| partition(&it.name, *n)));
            each.collect()
        });
        let moves = self.cluster.list_reassignments(among.as_deref());
        let topics =
            by_topic(moves.into_iter().map(|it| (it.partition.clone(), it))).into_iter().map(|(name, moves)| {
                let partitions = moves.into_iter().map(|(number, it)| {
                    OngoingPartitionReassignment::default()
                        .with_partition_index(number)
                        .with_replicas(brokers(&it.replicas))
                        .with_adding_replicas(brokers(&it.adding))
                        .with_removing_replicas(brokers(&it.removing))
                });
                OngoingTopicReassignment::default().with_name(topic(&name)).with_partitions(partitions.collect())
            });
        ListPartitionReassignmentsResponse::default().with_topics(topics.collect())
    }

    pub(super) fn elect_leaders(&mut self, request: ElectLeadersRequest) -> ElectLeadersResponse {
        let kind = match request.election_type {
            0 => ElectionKind::Preferred,
            1 => ElectionKind::Unclean,
            _ => return ElectLeadersResponse::default().with_error_code(Code::InvalidRequest.number()),
        };
        let among: Option<Vec<TopicPartition>> = request.topic_partitions.map(|topics| {
            topics.iter().flat_map(|it| it.partitions.iter().map(|n| partition(&it.topic, *n))).collect()
        });
        let results = by_topic(self.cluster.elect_leaders(kind, among.as_deref()));
        let topics = results.into_iter().map(|(name, results)| {
            let partitions = results.into_iter().map(|(number, result)| {
                let (code, message) = outcome(&result);
                PartitionResult::default().with_partition_id(number).with_error_code(code).with_error_message(message)
            });
            ReplicaElectionResult::default().with_topic(topic(&name)).with_partition_result(partitions.collect())
        });
        ElectLeadersResponse::default().with_replica_election_results(topics.collect())
    }

    pub(super) fn alter_replica_log_dirs(
        &mut self,
        request: AlterReplicaLogDirsRequest,
    ) -> AlterReplicaLogDirsResponse {
        let mut results = Vec::new();
        for dir in &request.dirs {
            for tp in dir.topics.iter().flat_map(|it| it.partitions.iter().map(|n| partition(&it.name, *n))) {
                let result = self.cluster.alter_replica_log_dir(self.me, &tp, &dir.path);
                results.push((tp, outcome(&result).0));
            }
        }
        let topics = by_topic(results).into_iter().map(|(name, results)| {
            let partitions = results.into_iter().map(|(number, code)| {
                AlterReplicaLogDirPartitionResult::default().with_partition_index(number).with_error_code(code)
            });
            AlterReplicaLogDirTopicResult::default().with_topic_name(topic(&name)).with_partitions(partitions.collect())
        });
        AlterReplicaLogDirsResponse::default().with_results(topics.collect())
    }

    pub(super) fn describe_log_dirs(&mut self) -> Result<Reply, MessageError> {
        let request: DescribeLogDirsRequest = self.decode()?;
        let among: Option<Vec<TopicPartition>> = request.topics.map(|topics| {
            topics.iter().flat_map(|it| it.partitions.iter().map(|n| partition(&it.topic, *n))).collect()
        });
        let dirs = self.cluster.describe_log_dirs(self.me, among.as_deref());
        let cordoned: Vec<bool> = dirs.iter().map(|dir| dir.cordoned).collect();
        let results = dirs.into_iter().map(|dir| {
            let result = DescribeLogDirsResult::default()
                .with_error_code(dir.error.map_or(0, Code::number))
                .with_log_dir(text(&dir.path))
                .with_total_bytes(dir.total_bytes)
                .with_usable_bytes(dir.usable_bytes);
            let topics = by_topic(dir.replicas.into_iter().map(|it| (it.partition.clone(), it)));
            let topics = topics.into_iter().map(|(name, replicas)| {
                let partitions = replicas.into_iter().map(|(number, it)| {
                    DescribeLogDirsPartition::default()
                        .with_partition_index(number)
                        .with_partition_size(it.size as i64)
                        .with_offset_lag(it.offset_lag)
                        .with_is_future_key(it.is_future)
                });
                DescribeLogDirsTopic::default().with_name(topic(&name)).with_partitions(partitions.collect())
            });
            result.with_topics(topics.collect())
        });
        let answer = DescribeLogDirsResponse::default().with_results(results.collect());
        log_dirs::encode_response(&answer, &cordoned, self.raw.version, self.raw.correlation).map(Reply::Answer)
    }
}
