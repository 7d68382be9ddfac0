//! Every call in every version that the client may choose: the broker answers, and the answer's bytes are those that our
//! codec would have written.
//!
//! With `EVENKEEL_BLESS=1` the real arm writes the answers down; tests of the `kafka` crate read them back, so that
//! client and simulator cannot be wrong about the protocol in the same way.

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::{
    BrokerId as Node, TopicPartition,
    calls::reassignments::Target,
    records::{self, BatchOptions, Compression, Producer, Record},
    versions,
};
use kafka_protocol::{
    messages::*,
    protocol::{Request, StrBytes},
};

use crate::{
    wire::{Made, Wire},
    world::World,
};

promises!(every_version_the_client_speaks_is_answered);

const LEADER: i32 = 0;
const MINUTE_MS: i32 = 60_000;

async fn every_version_the_client_speaks_is_answered(world: &World) {
    let topic = world.name("topic");
    let mut calls = Calls { wire: Wire::open(world, LEADER).await, made: Made::new() };
    session(&mut calls).await;
    topics(&mut calls, &topic).await;
    cluster(&mut calls, &topic).await;
    configs(&mut calls, &topic).await;
    placement(world, &mut calls, &topic).await;
    log_dirs(&mut calls, &topic).await;
    data(&mut calls, &topic).await;
    transactions(world, &mut calls, &topic).await;
    calls
        .each(|_| DeleteTopicsRequest::default().with_topic_names(vec![name(&topic)]).with_timeout_ms(MINUTE_MS))
        .await;
    for (key, spoken) in versions::CLIENT.into_iter().filter(|(key, _)| !OF_LOGINS.contains(key)) {
        assert_eq!(calls.made.get(&(key as i16)), Some(&spoken), "{key:?} was not tried");
    }
}

/// What is only answered at another door.
const OF_LOGINS: [ApiKey; 2] = [ApiKey::SaslHandshake, ApiKey::SaslAuthenticate];

mod logins {
    use evenkeel_kafka::connect::Connector;
    use evenkeel_testkit::real_kafka::Listener;

    use super::*;
    use crate::doors::tls;

    promises_at_doors!(every_version_of_a_login_is_answered);

    async fn every_version_of_a_login_is_answered(world: &World) {
        let password = world.brokers.password("admin");
        let said = Bytes::from(format!("\0admin\0{password}"));
        let [handshakes, logins] = OF_LOGINS.map(|key| versions::of_client(key).expect("a call of the client's"));
        assert_eq!(handshakes, 1..=1);
        // A connection is logged in once, so each version has its own.
        for version in logins {
            let address = &world.brokers.bootstrap(Listener::SaslSsl)[0];
            let stream = tls(world, None).open(address).await.expect("a door");
            let mut wire = Wire::over(stream, world.brokers.are_real());
            let plain = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
            let hands = wire.once(&plain, *handshakes.end()).await;
            assert!(hands.error_code == 0 && hands.mechanisms.len() >= 3, "{hands:?}");
            let login = SaslAuthenticateRequest::default().with_auth_bytes(said.clone());
            assert_eq!(wire.once(&login, version).await.error_code, 0);
        }
    }
}

/// A wire, and what was tried on it.
struct Calls {
    wire: Wire,
    made: Made,
}

impl Calls {
    async fn each<Q: Request>(&mut self, request: impl Fn(i16) -> Q) -> Vec<Q::Response> {
        self.each_until(request, |_| true).await
    }

    async fn each_until<Q: Request>(
        &mut self,
        request: impl Fn(i16) -> Q,
        settled: impl Fn(&Q::Response) -> bool,
    ) -> Vec<Q::Response> {
        self.wire.each(&mut self.made, request, settled).await
    }
}

async fn session(calls: &mut Calls) {
    calls
        .each(|version| match version {
            0..=2 => ApiVersionsRequest::default(),
            _ => ApiVersionsRequest::default()
                .with_client_software_name(text("me"))
                .with_client_software_version(text("1")),
        })
        .await;
}

async fn topics(calls: &mut Calls, topic: &str) {
    // All but the first are refused: it is there already. Both are answers that clients get.
    calls
        .each(|_| {
            let assignment = create_topics_request::CreatableReplicaAssignment::default()
                .with_partition_index(0)
                .with_broker_ids(vec![BrokerId(LEADER), BrokerId(1)]);
            let topic = create_topics_request::CreatableTopic::default()
                .with_name(name(topic))
                .with_num_partitions(-1)
                .with_replication_factor(-1)
                .with_assignments(vec![assignment]);
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(MINUTE_MS)
        })
        .await;
    calls
        .each(|version| {
            let topic = create_partitions_request::CreatePartitionsTopic::default()
                .with_name(name(topic))
                .with_count(i32::from(version) + 2);
            CreatePartitionsRequest::default()
                .with_topics(vec![topic])
                .with_timeout_ms(MINUTE_MS)
                .with_validate_only(true)
        })
        .await;
}

async fn cluster(calls: &mut Calls, topic: &str) {
    // What the controller was told this broker learns a moment later.
    calls.each_until(|_| metadata(topic), |answer| answer.topics.iter().all(|topic| topic.error_code == 0)).await;
    calls.each(|version| DescribeClusterRequest::default().with_include_fenced_brokers(version >= 2)).await;
    calls
        .each(|_| {
            let partition = describe_quorum_request::PartitionData::default();
            let log = describe_quorum_request::TopicData::default().with_topic_name(name("__cluster_metadata"));
            DescribeQuorumRequest::default().with_topics(vec![log.with_partitions(vec![partition])])
        })
        .await;
    calls
        .each(|_| {
            let topics = vec![describe_topic_partitions_request::TopicRequest::default().with_name(name(topic))];
            DescribeTopicPartitionsRequest::default().with_topics(topics)
        })
        .await;
    calls.each(|_| UnregisterBrokerRequest::default().with_broker_id(BrokerId(4711))).await;
}

async fn configs(calls: &mut Calls, topic: &str) {
    calls
        .each(|_| {
            let retention = incremental_alter_configs_request::AlterableConfig::default()
                .with_name(text("retention.ms"))
                .with_value(Some(text("3600000")));
            let resource = incremental_alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(text(topic))
                .with_configs(vec![retention]);
            IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
        })
        .await;
    calls
        .each(|_| {
            let resource = describe_configs_request::DescribeConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(text(topic))
                .with_configuration_keys(Some(vec![text("retention.ms"), text("segment.bytes")]));
            DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true)
        })
        .await;
}

async fn placement(world: &World, calls: &mut Calls, topic: &str) {
    calls
        .each(|_| {
            let partitions = vec![
                alter_partition_reassignments_request::ReassignablePartition::default().with_replicas(None),
                alter_partition_reassignments_request::ReassignablePartition::default()
                    .with_partition_index(9)
                    .with_replicas(Some(vec![BrokerId(1)])),
            ];
            let topics = vec![
                alter_partition_reassignments_request::ReassignableTopic::default()
                    .with_name(name(topic))
                    .with_partitions(partitions),
            ];
            AlterPartitionReassignmentsRequest::default().with_topics(topics).with_timeout_ms(MINUTE_MS)
        })
        .await;
    // One that is under way, with something on every list.
    let stalled = world.stalled_topic(&[&[1, 2]]).await;
    let target = Target::Replicas(vec![Node(3), Node(0)]);
    let targets = BTreeMap::from([(TopicPartition::new(&stalled, 0), target)]);
    world.client.alter_reassignments(&targets, false).await.whole().expect("an answer");
    calls
        .each_until(
            |_| {
                let topic = list_partition_reassignments_request::ListPartitionReassignmentsTopics::default()
                    .with_name(name(&stalled))
                    .with_partition_indexes(vec![0]);
                ListPartitionReassignmentsRequest::default().with_topics(Some(vec![topic])).with_timeout_ms(MINUTE_MS)
            },
            |answer| !answer.topics.is_empty(),
        )
        .await;
    world.release(&stalled).await;
    calls
        .each(|_| {
            let partitions =
                elect_leaders_request::TopicPartitions::default().with_topic(name(topic)).with_partitions(vec![0, 9]);
            ElectLeadersRequest::default().with_topic_partitions(Some(vec![partitions])).with_timeout_ms(MINUTE_MS)
        })
        .await;
}

async fn log_dirs(calls: &mut Calls, topic: &str) {
    calls
        .each(|_| {
            let topics = describe_log_dirs_request::DescribableLogDirTopic::default()
                .with_topic(name(topic))
                .with_partitions(vec![0]);
            DescribeLogDirsRequest::default().with_topics(Some(vec![topics]))
        })
        .await;
    calls
        .each(|_| {
            let topics = alter_replica_log_dirs_request::AlterReplicaLogDirTopic::default()
                .with_name(name(topic))
                .with_partitions(vec![0]);
            let nowhere = alter_replica_log_dirs_request::AlterReplicaLogDir::default()
                .with_path(text("/there/is/no/such/directory"))
                .with_topics(vec![topics]);
            AlterReplicaLogDirsRequest::default().with_dirs(vec![nowhere])
        })
        .await;
}

async fn data(calls: &mut Calls, topic: &str) {
    calls.each(|_| produce(topic)).await;
    calls
        .each(|_| {
            let partition = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
            let topic = list_offsets_request::ListOffsetsTopic::default()
                .with_name(name(topic))
                .with_partitions(vec![partition]);
            ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
        })
        .await;
    calls
        .each(|_| {
            let partition = fetch_request::FetchPartition::default().with_partition_max_bytes(1 << 20);
            let topic = fetch_request::FetchTopic::default().with_topic(name(topic)).with_partitions(vec![partition]);
            FetchRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_max_wait_ms(MINUTE_MS)
                .with_min_bytes(1)
                .with_max_bytes(1 << 20)
                .with_session_epoch(-1)
                .with_topics(vec![topic])
        })
        .await;
}

async fn transactions(world: &World, calls: &mut Calls, topic: &str) {
    let id = world.name("producer");
    // The first question makes the broker create the topic that transactions are kept in.
    let found = calls
        .each_until(
            |version| match version {
                0..=3 => FindCoordinatorRequest::default().with_key(text(&id)).with_key_type(1),
                _ => FindCoordinatorRequest::default().with_coordinator_keys(vec![text(&id)]).with_key_type(1),
            },
            |answer| answer.error_code == 0 && answer.coordinators.iter().all(|found| found.error_code == 0),
        )
        .await;
    let leader = std::mem::replace(&mut calls.wire, Wire::open(world, found[0].node_id.0).await);
    let producer = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text(&id))))
        .with_transaction_timeout_ms(MINUTE_MS);
    let answers = calls.each_until(|_| producer.clone(), |answer| answer.error_code == 0).await;
    let own = answers.last().expect("an answer in every version");
    calls
        .each(|_| {
            let topic = add_partitions_to_txn_request::AddPartitionsToTxnTopic::default()
                .with_name(name(topic))
                .with_partitions(vec![0]);
            AddPartitionsToTxnRequest::default()
                .with_v3_and_below_transactional_id(TransactionalId(text(&id)))
                .with_v3_and_below_producer_id(own.producer_id)
                .with_v3_and_below_producer_epoch(own.producer_epoch)
                .with_v3_and_below_topics(vec![topic])
        })
        .await;
    calls
        .each(|_| {
            EndTxnRequest::default()
                .with_transactional_id(TransactionalId(text(&id)))
                .with_producer_id(own.producer_id)
                .with_producer_epoch(own.producer_epoch)
                .with_committed(true)
        })
        .await;
    calls.wire = leader;
}

fn metadata(topic: &str) -> MetadataRequest {
    let topic = metadata_request::MetadataRequestTopic::default().with_name(Some(name(topic)));
    MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false)
}

fn produce(topic: &str) -> ProduceRequest {
    let record =
        Record { key: Some(Bytes::from_static(b"k")), value: Some(Bytes::from_static(b"v")), ..Record::default() };
    let nobody = Producer { id: -1, epoch: -1, sequence: -1 };
    let options = BatchOptions { compression: Compression::None, producer: nobody, transactional: false };
    let batch = records::encode_batch(&[record], &options).expect("a batch");
    let partition = produce_request::PartitionProduceData::default().with_records(Some(batch));
    let topic =
        produce_request::TopicProduceData::default().with_name(name(topic)).with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(MINUTE_MS).with_topic_data(vec![topic])
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn name(topic: &str) -> TopicName {
    TopicName(text(topic))
}
