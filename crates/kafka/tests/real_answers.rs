//! Answers of real brokers, byte for byte as they came: Apache Kafka 4.3.1 in every version that the client speaks.
//!
//! `real_answers/NAME.VERSION.bin` is one answer with its header. `EVENKEEL_BLESS=1 cargo xtask real kafka -- every_version`
//! writes them anew. Client and simulated brokers share one codec and one guard, which could be wrong in the same way
//! on both sides; these bytes are the word of a third.

use std::{collections::BTreeSet, fs, path::PathBuf};

use bytes::Bytes;
use evenkeel_kafka::{
    calls::log_dirs,
    guard::{self, Limits},
    message, versions,
};
use kafka_protocol::{messages::*, protocol::Request};

/// Reads an answer through the guard and writes it again.
fn read_and_write<Q: Request>(frame: &Bytes, version: i16) -> Bytes {
    let correlation = message::correlation_of(frame).expect("a header");
    let answer = message::decode_response::<Q>(frame.clone(), version, Limits::KNOWN_PEER).expect("an answer");
    message::encode_response(&answer, version, correlation).expect("an answer").slice(4..)
}

/// The same, for the one call that is spoken beyond the codec.
fn read_and_write_log_dirs(frame: &Bytes, version: i16) -> Bytes {
    let correlation = message::correlation_of(frame).expect("a header");
    let (answer, cordoned) = log_dirs::decode_response(frame.clone(), version, Limits::KNOWN_PEER).expect("an answer");
    log_dirs::encode_response(&answer, &cordoned, version, correlation).expect("an answer").slice(4..)
}

fn of_call(key: ApiKey, frame: &Bytes, version: i16) -> Bytes {
    macro_rules! by_key {
        ($($call:ident $request:ident,)+) => {
            match key {
                ApiKey::DescribeLogDirs => read_and_write_log_dirs(frame, version),
                $( ApiKey::$call => read_and_write::<$request>(frame, version), )+
                other => panic!("the client does not make the call {other:?}"),
            }
        };
    }
    by_key!(
        Produce ProduceRequest,
        Fetch FetchRequest,
        ListOffsets ListOffsetsRequest,
        Metadata MetadataRequest,
        FindCoordinator FindCoordinatorRequest,
        SaslHandshake SaslHandshakeRequest,
        ApiVersions ApiVersionsRequest,
        CreateTopics CreateTopicsRequest,
        DeleteTopics DeleteTopicsRequest,
        InitProducerId InitProducerIdRequest,
        AddPartitionsToTxn AddPartitionsToTxnRequest,
        EndTxn EndTxnRequest,
        DescribeConfigs DescribeConfigsRequest,
        AlterReplicaLogDirs AlterReplicaLogDirsRequest,
        SaslAuthenticate SaslAuthenticateRequest,
        CreatePartitions CreatePartitionsRequest,
        ElectLeaders ElectLeadersRequest,
        IncrementalAlterConfigs IncrementalAlterConfigsRequest,
        AlterPartitionReassignments AlterPartitionReassignmentsRequest,
        ListPartitionReassignments ListPartitionReassignmentsRequest,
        DescribeQuorum DescribeQuorumRequest,
        DescribeCluster DescribeClusterRequest,
        UnregisterBroker UnregisterBrokerRequest,
        DescribeTopicPartitions DescribeTopicPartitionsRequest,
    )
}

#[test]
fn answers_of_real_brokers_are_read_and_written_to_the_byte() {
    for (key, spoken) in versions::CLIENT {
        for version in spoken {
            let frame = Bytes::from(fs::read(file(key, version)).unwrap_or_else(|_| panic!("no {key:?} {version}")));
            assert_eq!(of_call(key, &frame, version), frame, "{key:?} {version}");
        }
    }
}

/// An empty list has no layout that could be wrong, and neither has a refusal.
#[test]
fn real_answers_hold_what_matters_most() {
    let read = |key, version| Bytes::from(fs::read(file(key, version)).expect("an answer"));
    let limits = Limits::KNOWN_PEER;
    let frame = read(ApiKey::ListPartitionReassignments, 0);
    let listed = message::decode_response::<ListPartitionReassignmentsRequest>(frame, 0, limits).expect("an answer");
    let one = &listed.topics[0].partitions[0];
    let sizes = [&one.replicas, &one.adding_replicas, &one.removing_replicas].map(Vec::len);
    assert_eq!(sizes, [4, 2, 2]);
    let frame = read(ApiKey::SaslHandshake, 1);
    let hands = message::decode_response::<SaslHandshakeRequest>(frame, 1, limits).expect("an answer");
    assert_eq!((hands.error_code, hands.mechanisms.len()), (0, 3));
    let frame = read(ApiKey::SaslAuthenticate, 2);
    let login = message::decode_response::<SaslAuthenticateRequest>(frame, 2, limits).expect("an answer");
    assert_eq!(login.error_code, 0);
}

#[test]
fn a_real_answer_cut_anywhere_is_refused() {
    for (key, spoken) in versions::CLIENT {
        let version = *spoken.end();
        let frame = fs::read(file(key, version)).expect("an answer");
        let header = header_of(key, version);
        for end in header..frame.len() {
            let body = &frame[header..end];
            assert!(
                guard::check_response(key as i16, version, body, Limits::KNOWN_PEER).is_err(),
                "{key:?} {version} cut at {end}"
            );
        }
    }
}

#[test]
fn no_answer_is_left_from_versions_that_are_no_longer_spoken() {
    let spoken: BTreeSet<_> = versions::CLIENT
        .into_iter()
        .flat_map(|(key, versions)| versions.map(move |version| file(key, version)))
        .collect();
    let there: BTreeSet<_> =
        fs::read_dir(folder()).expect("the answers").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(there, spoken);
}

/// The correlation, and in a flexible header a byte that says that no tagged fields follow.
fn header_of(key: ApiKey, version: i16) -> usize {
    if key.response_header_version(version) >= 1 { 5 } else { 4 }
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "real_answers"].iter().collect()
}

fn file(key: ApiKey, version: i16) -> PathBuf {
    folder().join(format!("{key:?}.{version}.bin"))
}
