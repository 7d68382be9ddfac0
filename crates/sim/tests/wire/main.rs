//! The brokers over the wire: in-memory streams, paused time, and hostile bytes.

mod governance;
mod hostile;
mod metrics;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use evenkeel_kafka::connect::Connector;
use evenkeel_kafka::frame::FrameReader;
use evenkeel_kafka::guard::Limits;
use evenkeel_kafka::message::{decode_response, encode_request, response_body};
use evenkeel_sim::broker::{Addresses, Reply, handle, served};
use evenkeel_sim::cluster::{Alteration, BrokerSpec, DirSpec, Fault, NewTopic, Operation, Reporter, Resource};
use evenkeel_sim::log::Batch;
use evenkeel_sim::serve::{Listener, Pipes, World};
use evenkeel_sim::traffic::Load;
use evenkeel_sim::{BrokerId, Cluster, Options};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Request, StrBytes};
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::Instant;

const B0: BrokerId = BrokerId(0);

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Options::default(), (0..3).map(BrokerSpec::new));
    cluster.create_topic(&NewTopic::manual("t", &[&[0, 1]]), false).expect("a topic that can be made");
    cluster.tick(1_000);
    cluster
}

fn addresses() -> Addresses {
    (0..3).map(|id| (BrokerId(id), ("sim".to_owned(), 9_092))).collect()
}

/// A client's end of a connection to a broker.
struct Peer<S = DuplexStream> {
    frames: FrameReader<ReadHalf<S>>,
    writer: WriteHalf<S>,
}

impl Peer {
    fn new(world: &World) -> Self {
        Self::of(world, B0)
    }

    fn of(world: &World, broker: BrokerId) -> Self {
        let listener = Listener::plain(world.clone());
        (0..3).for_each(|id| listener.announce(BrokerId(id), "sim", 9_092));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move { listener.serve(broker, theirs).await });
        let (reader, writer) = tokio::io::split(ours);
        Self { frames: FrameReader::new(reader), writer }
    }
}

impl<S: AsyncRead + AsyncWrite> Peer<S> {
    /// The answer, or nothing if the broker hung up.
    async fn call<Q: Request>(&mut self, request: &Q, version: i16) -> Option<Q::Response> {
        let frame = encode_request(request, version, 7, "test").expect("a request that can be written");
        self.writer.write_all(&frame).await.ok()?;
        let answer = self.frames.next().await.ok().flatten()?;
        Some(decode_response::<Q>(answer, version, Limits::KNOWN_PEER).expect("an answer that can be read"))
    }
}

fn name(name: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(name))
}

fn fetch(offset: i64, patience: i32) -> FetchRequest {
    fetch_of("t", offset, patience)
}

fn fetch_of(topic: &'static str, offset: i64, patience: i32) -> FetchRequest {
    let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(name(topic)).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_wait_ms(patience)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic])
}

fn produce(acks: i16) -> ProduceRequest {
    let records = Batch::of_records(1_767_225_600_000, &[(None, Some(Bytes::from_static(b"hello")))]);
    let partition = PartitionProduceData::default().with_records(Some(records));
    let topic = TopicProduceData::default().with_name(name("t")).with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(30_000).with_topic_data(vec![topic])
}

#[tokio::test(start_paused = true)]
async fn a_fetch_waits_for_records_and_no_longer_than_it_said() {
    let world = World::new(cluster());
    let (mut reader, mut writer) = (Peer::new(&world), Peer::new(&world));
    let start = Instant::now();
    let empty = reader.call(&fetch(0, 5_000), 12).await.expect("an answer");
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(empty.responses[0].partitions[0].records.as_ref().is_none_or(Bytes::is_empty));
    let start = Instant::now();
    let write = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        writer.call(&produce(-1), 11).await.expect("an answer")
    };
    let fetching = fetch(0, 60_000);
    let (read, written) = tokio::join!(reader.call(&fetching, 12), write);
    assert_eq!(written.responses[0].partition_responses[0].error_code, 0);
    let read = read.expect("an answer");
    assert_eq!((start.elapsed().as_secs(), read.responses[0].partitions[0].high_watermark), (2, 1));
    assert!(read.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_weeks_and_leaves_is_let_go() {
    let world = World::new(cluster());
    let listener = Listener::plain(world.clone());
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { listener.serve(B0, theirs).await });
    let (reader, writer) = tokio::io::split(ours);
    let mut peer = Peer { frames: FrameReader::new(reader), writer };
    let start = Instant::now();
    let weeks = fetch(0, i32::MAX);
    tokio::select! {
        answer = peer.call(&weeks, 12) => panic!("{answer:?}"),
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
    }
    drop(peer);
    serving.await.expect("no panic");
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_waits_for_no_more_than_it_would_take() {
    let world = World::new(cluster());
    let mut peer = Peer::new(&world);
    peer.call(&produce(1), 11).await.expect("an answer");
    let start = Instant::now();
    let all_there_is = fetch(0, 60_000).with_min_bytes(i32::MAX).with_max_bytes(10);
    let read = peer.call(&all_there_is, 12).await.expect("an answer");
    assert!(read.responses[0].partitions[0].records.as_ref().is_some_and(|records| records.len() > 10));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_by_all_waits_until_a_dead_follower_is_fenced() {
    let world = World::new(cluster());
    let mut peer = Peer::new(&world);
    world.with(|cluster| cluster.suffer(&Fault::Crash(BrokerId(1))));
    let start = Instant::now();
    let answer = peer.call(&produce(-1), 11).await.expect("an answer");
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    assert!((8..=9).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let start = Instant::now();
    peer.call(&produce(1), 11).await.expect("an answer");
    assert_eq!(start.elapsed().as_millis(), 0, "the leader alone does not wait");
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_lost_after_the_deed() {
    let world = World::new(cluster());
    world.lose_answer(B0, ApiKey::CreateTopics as i16);
    let topic = CreatableTopic::default().with_name(name("new")).with_num_partitions(1).with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(1_000);
    assert!(Peer::new(&world).call(&request, 7).await.is_none(), "the connection ends");
    let again = Peer::new(&world).call(&request, 7).await.expect("an answer");
    assert_eq!(again.topics[0].error_code, 36, "it was made all the same");
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_connections_and_a_cut_link_leaves_them_hanging() {
    let world = World::new(cluster());
    let metadata = MetadataRequest::default();
    let mut peer = Peer::new(&world);
    world.with(|cluster| cluster.suffer(&Fault::CutLink(B0)));
    let silent = tokio::time::timeout(Duration::from_secs(3), peer.call(&metadata, 12)).await;
    assert!(silent.is_err(), "no answer");
    world.with(|cluster| cluster.suffer(&Fault::MendedLink(B0)));
    assert!(peer.frames.next().await.is_ok_and(|late| late.is_some()), "the answer comes when the link is mended");
    world.with(|cluster| cluster.suffer(&Fault::Crash(B0)));
    assert!(peer.call(&metadata, 12).await.is_none());
    // One that was killed is let in again when its session is over.
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.with(|cluster| cluster.suffer(&Fault::Return(B0)));
    assert!(Peer::new(&world).call(&metadata, 12).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_calls_a_broker_behind_a_cut_link_hears_nothing_until_it_is_mended() {
    let world = World::new(cluster());
    let pipes = Pipes::new(world.clone());
    let call = async || {
        let stream = pipes.connector().open(&pipes.address(B0)).await.expect("a door");
        let mut frames = FrameReader::new(stream);
        frames.next().await.map(|frame| frame.is_some())
    };
    world.with(|cluster| cluster.suffer(&Fault::CutLink(B0)));
    let quiet = tokio::time::timeout(Duration::from_secs(60), call()).await;
    assert!(quiet.is_err(), "neither an answer nor an end");
    let stream = pipes.connector().open(&pipes.address(B0)).await.expect("a door");
    let (reader, writer) = tokio::io::split(stream);
    let mut peer = Peer { frames: FrameReader::new(reader), writer };
    let mended = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.with(|cluster| cluster.suffer(&Fault::MendedLink(B0)));
    };
    let metadata = MetadataRequest::default();
    let (answer, ()) = tokio::join!(peer.call(&metadata, 12), mended);
    assert!(answer.is_some());
    world.with(|cluster| cluster.suffer(&Fault::CutLink(B0)));
    let crash = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.with(|cluster| cluster.suffer(&Fault::Crash(B0)));
    };
    let (ended, ()) = tokio::join!(call(), crash);
    assert!(!ended.unwrap_or(false), "a process that ends lets go of the line");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_dies_of_a_full_disk_ends_idle_connections() {
    let full = DirSpec { capacity: 1_000, ..DirSpec::new("/d0") };
    let spec = BrokerSpec { dirs: vec![full], ..BrokerSpec::new(0) };
    let mut cluster = Cluster::new(Options::default(), [spec, BrokerSpec::new(1)]);
    let topic = NewTopic::manual("t", &[&[0]]).loaded(Load::steady(100.0), 0);
    cluster.create_topic(&topic, false).expect("a topic that can be made");
    let world = World::new(cluster);
    let mut idle = Peer::new(&world);
    assert!(idle.call(&MetadataRequest::default(), 12).await.is_some());
    tokio::time::sleep(Duration::from_secs(120)).await;
    // Somebody looks, and nobody does anything.
    assert!(world.look(|cluster| cluster.is_down(B0)));
    let end = tokio::time::timeout(Duration::from_secs(1), idle.frames.next()).await;
    assert!(end.is_ok_and(|end| end.is_ok_and(|frame| frame.is_none())), "the connection has ended");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_version_is_told_which_there_are() {
    let world = World::new(cluster());
    let mut peer = Peer::new(&world);
    let mut frame = BytesMut::from(&encode_request(&ApiVersionsRequest::default(), 3, 7, "test").expect("written")[..]);
    frame[6..8].copy_from_slice(&99_i16.to_be_bytes());
    peer.writer.write_all(&frame).await.expect("the broker reads");
    let answer = peer.frames.next().await.expect("a frame").expect("an answer");
    let answer = decode_response::<ApiVersionsRequest>(answer, 0, Limits::KNOWN_PEER).expect("version 0");
    assert_eq!(answer.error_code, 35);
    assert_eq!(answer.api_keys.len(), served().count());
}

/// A request that has something to say, in the words of a version.
macro_rules! answered {
    ($($request:ty => $of:expr),+ $(,)?) => {
        #[test]
        fn every_call_is_answered_in_every_version_it_is_announced_in() {
            let mut keys: Vec<i16> = Vec::new();
            $(
                let key = <$request as Request>::KEY;
                keys.push(key);
                let (_, oldest, newest) = served().find(|(served, _, _)| *served as i16 == key).expect("announced");
                for version in oldest..=newest {
                    let mut cluster = cluster();
                    let of: fn(i16, &Cluster) -> $request = $of;
                    let request = of(version, &cluster);
                    let frame = encode_request(&request, version, 7, "test").expect("written");
                    let Reply::Answer(answer) = handle(&mut cluster, B0, &addresses(), frame.slice(4..)) else {
                        panic!("{key} in version {version} is not answered");
                    };
                    let body = response_body::<$request>(answer.slice(4..), version, Limits::KNOWN_PEER);
                    body.unwrap_or_else(|error| panic!("{key} in version {version}: {error:?}"));
                }
            )+
            let login = [ApiKey::SaslHandshake as i16, ApiKey::SaslAuthenticate as i16];
            for (key, _, _) in served().filter(|(key, _, _)| !login.contains(&(*key as i16))) {
                assert!(keys.contains(&(key as i16)), "{key:?} is not tried here");
            }
        }
    };
}

fn word(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn metadata(version: i16, _: &Cluster) -> MetadataRequest {
    let request = MetadataRequest::default();
    let request = if version == 0 { request.with_topics(Some(vec![])) } else { request.with_topics(None) };
    let request = if version >= 8 { request.with_include_topic_authorized_operations(true) } else { request };
    if (8..=10).contains(&version) { request.with_include_cluster_authorized_operations(true) } else { request }
}

fn delete_topics(version: i16, cluster: &Cluster) -> DeleteTopicsRequest {
    let id = uuid::Uuid::from_u128(cluster.topic_id("t").expect("the topic").0);
    let by_id = delete_topics_request::DeleteTopicState::default().with_name(None).with_topic_id(id);
    let request = DeleteTopicsRequest::default();
    if version >= 6 {
        request.with_topics(vec![by_id])
    } else {
        request.with_topic_names(vec![name("t"), name("nope")])
    }
}

fn add_partitions(_: i16, _: &Cluster) -> AddPartitionsToTxnRequest {
    let topic =
        add_partitions_to_txn_request::AddPartitionsToTxnTopic::default().with_name(name("t")).with_partitions(vec![0]);
    AddPartitionsToTxnRequest::default().with_v3_and_below_topics(vec![topic])
}

fn find_coordinator(version: i16, _: &Cluster) -> FindCoordinatorRequest {
    let request = FindCoordinatorRequest::default();
    if version >= 4 { request.with_coordinator_keys(vec![word("tx")]) } else { request.with_key(word("tx")) }
}

fn fetch_in(version: i16, cluster: &Cluster) -> FetchRequest {
    let mut request = fetch(0, 0);
    if version >= 13 {
        request.topics[0].topic = TopicName::default();
        request.topics[0].topic_id = uuid::Uuid::from_u128(cluster.topic_id("t").expect("the topic").0);
    }
    request
}

answered!(
    ApiVersionsRequest => |_, _| ApiVersionsRequest::default(),
    MetadataRequest => metadata,
    DescribeClusterRequest => |_, _| DescribeClusterRequest::default().with_include_cluster_authorized_operations(true),
    DescribeTopicPartitionsRequest => |_, _| DescribeTopicPartitionsRequest::default(),
    DescribeQuorumRequest => |_, _| {
        let partition = describe_quorum_request::PartitionData::default();
        let topic = describe_quorum_request::TopicData::default().with_topic_name(name("__cluster_metadata"));
        DescribeQuorumRequest::default().with_topics(vec![topic.with_partitions(vec![partition])])
    },
    UnregisterBrokerRequest => |_, _| UnregisterBrokerRequest::default().with_broker_id(9.into()),
    FindCoordinatorRequest => find_coordinator,
    CreateTopicsRequest => |_, _| {
        let topic = CreatableTopic::default().with_name(name("new")).with_num_partitions(2).with_replication_factor(9);
        CreateTopicsRequest::default().with_topics(vec![topic.clone().with_replication_factor(2), topic.with_name(name("bad"))])
    },
    DeleteTopicsRequest => delete_topics,
    CreatePartitionsRequest => |_, _| {
        let topic = create_partitions_request::CreatePartitionsTopic::default().with_name(name("t")).with_count(3);
        CreatePartitionsRequest::default().with_topics(vec![topic.with_assignments(None)])
    },
    DescribeConfigsRequest => |_, _| {
        let of = |kind, name| describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(kind).with_resource_name(word(name)).with_configuration_keys(None);
        DescribeConfigsRequest::default().with_resources(vec![of(2, "t"), of(4, "0"), of(4, "1")]).with_include_synonyms(true)
    },
    AlterConfigsRequest => |_, _| {
        let config = alter_configs_request::AlterableConfig::default();
        let config = config.with_name(word("retention.ms")).with_value(Some(word("1000")));
        let topic = alter_configs_request::AlterConfigsResource::default().with_resource_type(2);
        AlterConfigsRequest::default()
            .with_resources(vec![topic.with_resource_name(word("t")).with_configs(vec![config])])
    },
    ListConfigResourcesRequest => |version, _| {
        ListConfigResourcesRequest::default().with_resource_types(if version > 0 { vec![2, 4] } else { vec![] })
    },
    DeleteRecordsRequest => |_, _| {
        let partition = delete_records_request::DeleteRecordsPartition::default().with_offset(-1);
        let topic = delete_records_request::DeleteRecordsTopic::default().with_name(name("t"));
        DeleteRecordsRequest::default().with_topics(vec![topic.with_partitions(vec![partition])])
    },
    IncrementalAlterConfigsRequest => |_, _| {
        let config = incremental_alter_configs_request::AlterableConfig::default()
            .with_name(word("retention.ms")).with_value(Some(word("1000")));
        let topic = incremental_alter_configs_request::AlterConfigsResource::default().with_resource_type(2);
        IncrementalAlterConfigsRequest::default()
            .with_resources(vec![topic.with_resource_name(word("t")).with_configs(vec![config])])
    },
    AlterPartitionReassignmentsRequest => |_, _| {
        let partition = alter_partition_reassignments_request::ReassignablePartition::default();
        let partition = partition.with_replicas(Some(vec![1.into(), 2.into()]));
        let topic = alter_partition_reassignments_request::ReassignableTopic::default().with_name(name("t"));
        AlterPartitionReassignmentsRequest::default().with_topics(vec![topic.with_partitions(vec![partition])])
    },
    ListPartitionReassignmentsRequest => |_, _| ListPartitionReassignmentsRequest::default().with_topics(None),
    ElectLeadersRequest => |_, _| {
        let topic = elect_leaders_request::TopicPartitions::default().with_topic(name("t")).with_partitions(vec![0, 7]);
        ElectLeadersRequest::default().with_topic_partitions(Some(vec![topic]))
    },
    DescribeLogDirsRequest => |_, _| DescribeLogDirsRequest::default().with_topics(None),
    AlterReplicaLogDirsRequest => |_, _| {
        let topic = alter_replica_log_dirs_request::AlterReplicaLogDirTopic::default().with_name(name("t")).with_partitions(vec![0]);
        let dir = alter_replica_log_dirs_request::AlterReplicaLogDir::default().with_path(word("/nowhere"));
        AlterReplicaLogDirsRequest::default().with_dirs(vec![dir.with_topics(vec![topic])])
    },
    ListOffsetsRequest => |_, _| {
        let latest = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
        let topic = list_offsets_request::ListOffsetsTopic::default().with_name(name("t")).with_partitions(vec![latest]);
        ListOffsetsRequest::default().with_topics(vec![topic])
    },
    InitProducerIdRequest => |_, _| InitProducerIdRequest::default().with_transactional_id(None),
    AddPartitionsToTxnRequest => add_partitions,
    EndTxnRequest => |_, _| EndTxnRequest::default(),
    ListTransactionsRequest => |_, _| ListTransactionsRequest::default().with_transactional_id_pattern(None).with_duration_filter(-1),
    DescribeTransactionsRequest => |_, _| {
        DescribeTransactionsRequest::default().with_transactional_ids(vec![TransactionalId(word("nobody"))])
    },
    DescribeProducersRequest => |_, _| {
        let topic = describe_producers_request::TopicRequest::default().with_name(name("t"));
        DescribeProducersRequest::default().with_topics(vec![topic.with_partition_indexes(vec![0, 7])])
    },
    WriteTxnMarkersRequest => |_, _| {
        let topic = write_txn_markers_request::WritableTxnMarkerTopic::default().with_name(name("t"));
        let marker = write_txn_markers_request::WritableTxnMarker::default();
        WriteTxnMarkersRequest::default()
            .with_markers(vec![marker.with_topics(vec![topic.with_partition_indexes(vec![0, 7])])])
    },
    DescribeUserScramCredentialsRequest => |_, _| DescribeUserScramCredentialsRequest::default().with_users(None),
    AlterUserScramCredentialsRequest => |_, _| {
        let one = alter_user_scram_credentials_request::ScramCredentialDeletion::default();
        AlterUserScramCredentialsRequest::default().with_deletions(vec![one.with_name(word("nobody"))])
    },
    DescribeAclsRequest => |_, _| {
        DescribeAclsRequest::default()
            .with_resource_type_filter(1)
            .with_pattern_type_filter(1)
            .with_operation(1)
            .with_permission_type(1)
    },
    CreateAclsRequest => |_, _| {
        let acl = create_acls_request::AclCreation::default()
            .with_resource_type(2)
            .with_resource_name(word("t"))
            .with_resource_pattern_type(3)
            .with_principal(word("User:x"))
            .with_host(word("*"))
            .with_operation(3)
            .with_permission_type(3);
        CreateAclsRequest::default().with_creations(vec![acl])
    },
    DeleteAclsRequest => |_, _| {
        let filter = delete_acls_request::DeleteAclsFilter::default()
            .with_resource_type_filter(1)
            .with_pattern_type_filter(1)
            .with_operation(1)
            .with_permission_type(1);
        DeleteAclsRequest::default().with_filters(vec![filter])
    },
    UpdateFeaturesRequest => |version, _| {
        let update = update_features_request::FeatureUpdateKey::default()
            .with_feature(word("metadata.version"))
            .with_max_version_level(30);
        UpdateFeaturesRequest::default()
            .with_feature_updates(vec![if version > 0 { update.with_upgrade_type(1) } else { update }])
    },
    DescribeClientQuotasRequest => |_, _| DescribeClientQuotasRequest::default(),
    AlterClientQuotasRequest => |_, _| {
        let user = alter_client_quotas_request::EntityData::default().with_entity_type(word("user"));
        let rate = alter_client_quotas_request::OpData::default().with_key(word("producer_byte_rate")).with_value(1.0);
        let entry = alter_client_quotas_request::EntryData::default();
        AlterClientQuotasRequest::default()
            .with_entries(vec![entry.with_entity(vec![user.with_entity_name(None)]).with_ops(vec![rate])])
    },
    CreateDelegationTokenRequest => |_, _| CreateDelegationTokenRequest::default(),
    RenewDelegationTokenRequest => |_, _| RenewDelegationTokenRequest::default(),
    ExpireDelegationTokenRequest => |_, _| ExpireDelegationTokenRequest::default(),
    DescribeDelegationTokenRequest => |_, _| DescribeDelegationTokenRequest::default(),
    ProduceRequest => |_, _| produce(-1),
    FetchRequest => fetch_in,
);

#[test]
fn a_fetch_from_another_than_the_leader_is_refused_in_every_version() {
    let (_, oldest, newest) = served().find(|(key, _, _)| *key == ApiKey::Fetch).expect("announced");
    for version in oldest..=newest {
        let mut cluster = cluster();
        let frame = encode_request(&fetch_in(version, &cluster), version, 7, "test").expect("written");
        let reply = handle(&mut cluster, BrokerId(2), &addresses(), frame.slice(4..));
        let Reply::Answer(answer) = reply else { panic!("version {version} is not answered") };
        let answer = decode_response::<FetchRequest>(answer.slice(4..), version, Limits::KNOWN_PEER).expect("read");
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 6);
        assert_eq!(partition.current_leader.leader_id.0, if version >= 12 { 0 } else { -1 });
    }
}

#[test]
fn a_leader_that_has_not_heard_of_its_topic_does_not_know_it() {
    let codes = |cluster: &mut Cluster| {
        let resource = describe_configs_request::DescribeConfigsResource::default().with_resource_type(2);
        let configs = DescribeConfigsRequest::default()
            .with_resources(vec![resource.with_resource_name(word("t")).with_configuration_keys(None)]);
        let latest = list_offsets_request::ListOffsetsPartition::default().with_timestamp(-1);
        let topic = list_offsets_request::ListOffsetsTopic::default().with_name(name("t"));
        let offsets = ListOffsetsRequest::default().with_topics(vec![topic.with_partitions(vec![latest])]);
        [
            ask(cluster, &produce(1), 11).expect("an answer").responses[0].partition_responses[0].error_code,
            ask(cluster, &fetch(0, 0), 12).expect("an answer").responses[0].partitions[0].error_code,
            ask(cluster, &offsets, 8).expect("an answer").topics[0].partitions[0].error_code,
            ask(cluster, &configs, 4).expect("an answer").results[0].error_code,
        ]
    };
    let mut cluster = Cluster::new(Options::default(), (0..3).map(BrokerSpec::new));
    cluster.create_topic(&NewTopic::manual("t", &[&[1, 0]]), false).expect("a topic that can be made");
    assert_eq!(codes(&mut cluster), [3, 3, 3, 3]);
    cluster.tick(1_000);
    cluster.stop_broker(BrokerId(1));
    assert_eq!(cluster.registration("t", 0).and_then(|it| it.leader), Some(B0));
    assert_eq!(codes(&mut cluster), [6, 6, 6, 0], "elected, and nobody has told it");
    cluster.tick(1_000);
    assert_eq!(codes(&mut cluster), [0, 0, 0, 0]);
}

/// Broker 0's answer to one request.
fn ask<Q: Request>(cluster: &mut Cluster, request: &Q, version: i16) -> Option<Q::Response> {
    ask_at(cluster, B0, request, version)
}

/// Another broker's.
fn ask_at<Q: Request>(cluster: &mut Cluster, broker: BrokerId, request: &Q, version: i16) -> Option<Q::Response> {
    let frame = encode_request(request, version, 7, "test").expect("written");
    let Reply::Answer(answer) = handle(cluster, broker, &addresses(), frame.slice(4..)) else { return None };
    Some(decode_response::<Q>(answer.slice(4..), version, Limits::KNOWN_PEER).expect("read"))
}

#[test]
fn a_broker_asked_for_controllers_says_that_it_is_none() {
    let request = DescribeClusterRequest::default().with_endpoint_type(2);
    let frame = encode_request(&request, 2, 7, "test").expect("written");
    let Reply::Answer(answer) = handle(&mut cluster(), B0, &addresses(), frame.slice(4..)) else { panic!("silent") };
    let answer = decode_response::<DescribeClusterRequest>(answer.slice(4..), 2, Limits::KNOWN_PEER).expect("read");
    assert_eq!(answer.error_code, 114);
}

#[test]
fn the_announced_versions_of_administration_are_those_of_a_real_broker() {
    let of = |key: ApiKey| served().find(|(served, _, _)| *served == key).map(|(_, oldest, newest)| (oldest, newest));
    for (key, versions) in [
        (ApiKey::CreateTopics, (2, 7)),
        (ApiKey::Metadata, (0, 13)),
        (ApiKey::DescribeConfigs, (1, 4)),
        (ApiKey::AlterConfigs, (0, 2)),
        (ApiKey::ListConfigResources, (0, 1)),
        (ApiKey::DeleteRecords, (0, 2)),
        (ApiKey::AlterReplicaLogDirs, (1, 2)),
        (ApiKey::DescribeLogDirs, (1, 5)),
        (ApiKey::ElectLeaders, (0, 2)),
        (ApiKey::IncrementalAlterConfigs, (0, 1)),
        (ApiKey::AlterPartitionReassignments, (0, 1)),
        (ApiKey::ListPartitionReassignments, (0, 0)),
        (ApiKey::DescribeCluster, (0, 2)),
        (ApiKey::UnregisterBroker, (0, 0)),
        (ApiKey::DescribeTopicPartitions, (0, 0)),
    ] {
        assert_eq!(of(key), Some(versions), "{key:?}");
    }
}

#[test]
fn log_dirs_in_version_5_say_what_is_cordoned() {
    let mut cluster = cluster();
    let ask = |cluster: &mut Cluster| {
        let request = DescribeLogDirsRequest::default().with_topics(None);
        let frame = encode_request(&request, 5, 7, "test").expect("written");
        let Reply::Answer(answer) = handle(cluster, B0, &addresses(), frame.slice(4..)) else { panic!("no answer") };
        response_body::<DescribeLogDirsRequest>(answer.slice(4..), 5, Limits::KNOWN_PEER).expect("well formed")
    };
    let before = ask(&mut cluster);
    let cordon =
        Alteration { name: "cordoned.log.dirs".to_owned(), operation: Operation::Set, value: Some("*".to_owned()) };
    cluster.incremental_alter_configs(&Resource::Broker(B0), &[cordon], false).expect("accepted");
    let after = ask(&mut cluster);
    let changed: Vec<(u8, u8)> = before.iter().copied().zip(after.iter().copied()).filter(|(a, b)| a != b).collect();
    assert_eq!(changed, [(0, 1)]);
}

#[test]
fn a_broker_alters_its_own_settings_only() {
    let ask = |id: &'static str| {
        let config = incremental_alter_configs_request::AlterableConfig::default();
        let config = config.with_name(word("leader.replication.throttled.rate")).with_value(Some(word("1000")));
        let broker = incremental_alter_configs_request::AlterConfigsResource::default().with_resource_type(4);
        let broker = broker.with_resource_name(word(id)).with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![broker]);
        let frame = encode_request(&request, 1, 7, "test").expect("written");
        let Reply::Answer(answer) = handle(&mut cluster(), B0, &addresses(), frame.slice(4..)) else {
            panic!("silent")
        };
        let answer = decode_response::<IncrementalAlterConfigsRequest>(answer.slice(4..), 1, Limits::KNOWN_PEER);
        answer.expect("read").responses[0].error_code
    };
    assert_eq!([ask("0"), ask("1"), ask("")], [0, 42, 0]);
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_and_nothing_else_is_disturbed(
        key in -2_i16..80,
        version in -2_i16..20,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut cluster = cluster();
        let head = [&key.to_be_bytes()[..], &version.to_be_bytes(), &7_i32.to_be_bytes(), &(-1_i16).to_be_bytes()].concat();
        let frame = Bytes::from([head, body].concat());
        drop(handle(&mut cluster, B0, &addresses(), frame));
        prop_assert_eq!(cluster.registration("t", 0).map(|it| it.replicas.clone()), Some(vec![BrokerId(0), BrokerId(1)]));
    }

    #[test]
    fn a_good_request_with_a_flipped_byte_never_panics(at in 0_usize..2_000, to in any::<u8>(), version in 3_i16..=11) {
        let mut cluster = cluster();
        let mut frame = BytesMut::from(&encode_request(&produce(-1), version, 7, "test").expect("written")[4..]);
        let at = at % frame.len();
        frame[at] = to;
        drop(handle(&mut cluster, B0, &addresses(), frame.freeze()));
    }
}

#[tokio::test(start_paused = true)]
async fn who_announces_much_and_sends_nothing_holds_up_long_requests_for_a_while_and_short_ones_never() {
    let world = World::new(cluster());
    let announce = async |kilobytes: u32| {
        let mut peer = Peer::new(&world);
        peer.writer.write_all(&(kilobytes * 1024).to_be_bytes()).await.expect("four bytes");
        peer
    };
    // All the room there is.
    let mut silent = Vec::new();
    for kilobytes in [100 * 1024, 100 * 1024, 100 * 1024, 100 * 1024, 100 * 1024, 12 * 1024] {
        silent.push(announce(kilobytes).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    let mut peer = Peer::new(&world);
    assert!(peer.call(&MetadataRequest::default(), 12).await.is_some());
    assert_eq!(start.elapsed().as_millis(), 0);
    let long = Bytes::from(vec![0; 100_000]);
    let records = Batch::of_records(1_767_225_600_000, &[(None, Some(long))]);
    let partition = PartitionProduceData::default().with_records(Some(records));
    let topic = TopicProduceData::default().with_name(name("t")).with_partition_data(vec![partition]);
    let request = ProduceRequest::default().with_acks(1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
    let answer = peer.call(&request, 11).await.expect("an answer");
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(start.elapsed().as_secs(), 59);
    assert!(silent.pop().expect("one of them").frames.next().await.is_ok_and(|frame| frame.is_none()), "cut off");
}
