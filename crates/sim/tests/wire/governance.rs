//! What an administrator asks beyond topics, in the brokers' words. That kafka-python understands them, and that real
//! brokers answer the same, is for the suite `kafka_clients`.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};

use super::*;

const ELIGIBLE_LEADERS: &str = "eligible.leader.replicas.version";

/// The level in force.
fn eligible_leaders(cluster: &mut Cluster) -> Option<i16> {
    let answer = ask(cluster, &ApiVersionsRequest::default(), 4).expect("an answer");
    answer.finalized_features.iter().find(|it| it.name.as_str() == ELIGIBLE_LEADERS).map(|it| it.max_version_level)
}

#[test]
fn a_feature_goes_down_and_up_and_a_refusal_changes_nothing() {
    let mut cluster = cluster();
    let change = |cluster: &mut Cluster, level, kind, dry_run| {
        let update = FeatureUpdateKey::default().with_feature(word(ELIGIBLE_LEADERS));
        let update = update.with_max_version_level(level).with_upgrade_type(kind);
        let request = UpdateFeaturesRequest::default().with_feature_updates(vec![update]);
        ask(cluster, &request.with_validate_only(dry_run), 2).expect("an answer").error_code
    };
    assert_eq!(eligible_leaders(&mut cluster), Some(1));
    assert_eq!(change(&mut cluster, 0, 1, false), 95, "an upgrade does not go down");
    assert_eq!(change(&mut cluster, 0, 2, true), 0, "only tried");
    assert_eq!(eligible_leaders(&mut cluster), Some(1));
    assert_eq!(change(&mut cluster, 0, 2, false), 0);
    assert_eq!(eligible_leaders(&mut cluster), None);
    assert_eq!(change(&mut cluster, 1, 3, false), 95, "a downgrade does not go up");
    assert_eq!(change(&mut cluster, 1, 1, false), 0);
    assert_eq!(eligible_leaders(&mut cluster), Some(1));
}

#[test]
fn a_transaction_is_seen_and_ended_by_hand() {
    let mut cluster = cluster();
    let id = || TransactionalId(word("writer"));
    // Whoever looks after the id, and whoever does not.
    let me = cluster.coordinator_of("writer").expect("somebody");
    let init = InitProducerIdRequest::default().with_transactional_id(Some(id())).with_transaction_timeout_ms(60_000);
    let own = ask_at(&mut cluster, me, &init, 4).expect("an answer");
    let state = |cluster: &mut Cluster| {
        let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![id()]);
        let seen = ask_at(cluster, me, &request, 0).expect("an answer").transaction_states.remove(0);
        (seen.error_code, seen.transaction_state.to_string(), seen.topics.len())
    };
    assert_eq!(state(&mut cluster), (0, "Empty".to_owned(), 0));
    let topic = AddPartitionsToTxnTopic::default().with_name(name("t")).with_partitions(vec![0]);
    let add = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(id())
        .with_v3_and_below_producer_id(own.producer_id)
        .with_v3_and_below_producer_epoch(own.producer_epoch)
        .with_v3_and_below_topics(vec![topic]);
    ask_at(&mut cluster, me, &add, 3).expect("an answer");
    let producer = (own.producer_id.0, own.producer_epoch, 0);
    let records = Batch::of_producer(1_767_225_600_000, producer, true, &[(None, None)]);
    let partition = PartitionProduceData::default().with_records(Some(records));
    let topic = TopicProduceData::default().with_name(name("t")).with_partition_data(vec![partition]);
    let write = ProduceRequest::default().with_acks(1).with_transactional_id(Some(id())).with_topic_data(vec![topic]);
    let written = ask(&mut cluster, &write, 11).expect("an answer");
    assert_eq!(written.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(state(&mut cluster), (0, "Ongoing".to_owned(), 1));
    let listed = |cluster: &mut Cluster, broker| {
        let all = ListTransactionsRequest::default().with_duration_filter(-1).with_transactional_id_pattern(None);
        ask_at(cluster, broker, &all, 2).expect("an answer").transaction_states.len()
    };
    for broker in [0, 1, 2].map(BrokerId) {
        assert_eq!(listed(&mut cluster, broker), usize::from(broker == me), "{broker}");
    }

    let open = |cluster: &mut Cluster| {
        let topic = describe_producers_request::TopicRequest::default().with_name(name("t"));
        let request = DescribeProducersRequest::default().with_topics(vec![topic.with_partition_indexes(vec![0])]);
        let seen = ask(cluster, &request, 0).expect("an answer").topics.remove(0).partitions.remove(0);
        seen.active_producers[0].current_txn_start_offset
    };
    assert_eq!(open(&mut cluster), 0);
    let topic = WritableTxnMarkerTopic::default().with_name(name("t")).with_partition_indexes(vec![0]);
    let marker = WritableTxnMarker::default()
        .with_producer_id(own.producer_id)
        .with_producer_epoch(own.producer_epoch)
        .with_topics(vec![topic]);
    let end = WriteTxnMarkersRequest::default().with_markers(vec![marker]);
    let ended = ask(&mut cluster, &end, 1).expect("an answer");
    assert_eq!(ended.markers[0].topics[0].partitions[0].error_code, 0);
    assert_eq!(open(&mut cluster), -1);
    assert_eq!(state(&mut cluster), (0, "Ongoing".to_owned(), 1), "the coordinator has not heard of it");
}

#[test]
fn what_is_not_there_is_said_with_kafkas_codes() {
    let mut cluster = cluster();
    let nobody = describe_user_scram_credentials_request::UserName::default().with_name(word("nobody"));
    let users = DescribeUserScramCredentialsRequest::default().with_users(Some(vec![nobody]));
    assert_eq!(ask(&mut cluster, &users, 0).expect("an answer").results[0].error_code, 91);
    assert_eq!(ask(&mut cluster, &CreateDelegationTokenRequest::default(), 3).expect("an answer").error_code, 61);
    assert_eq!(ask(&mut cluster, &DescribeDelegationTokenRequest::default(), 3).expect("an answer").error_code, 61);
    let nonsense = ListTransactionsRequest::default().with_transactional_id_pattern(Some(word("(")));
    assert_eq!(ask(&mut cluster, &nonsense, 2).expect("an answer").error_code, 128);
    // Kafka hangs up on numbers that mean nothing.
    let acl = AclCreation::default().with_resource_name(word("t")).with_principal(word("User:x"));
    let unknown = CreateAclsRequest::default().with_creations(vec![acl]);
    assert!(ask(&mut cluster, &unknown, 3).is_none());
}
