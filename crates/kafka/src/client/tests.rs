//! Routing and repetition, against peers that the test plays, under paused time.

mod lost;
mod shares;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use kafka_protocol::messages::{
    self, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ApiKey, CreateTopicsResponse,
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, EndTxnResponse, FindCoordinatorResponse,
    ListOffsetsResponse, SaslAuthenticateResponse, SaslHandshakeResponse, TopicName,
    alter_partition_reassignments_response::{ReassignablePartitionResponse, ReassignableTopicResponse},
    create_topics_response::CreatableTopicResult,
    describe_topic_partitions_response::{
        Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
    },
    find_coordinator_response::Coordinator,
    list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse},
};

use super::*;
use crate::{
    calls::{
        offsets::{Isolation, Place},
        reassignments::Target,
        topics::{Layout, NewTopic, Which},
        transactions::{End, ProducerIdentity},
    },
    connect::Memory,
    connection::Ended,
    guard::Limits,
    login::Secret,
    testing::{self, Reply, address, answer, client, key, metadata, play},
    types::{TopicPartition, text},
};

fn new_topic() -> NewTopic {
    let layout = Layout::Automatic { partitions: Some(1), replication_factor: None };
    NewTopic { name: "t".to_owned(), layout, configs: BTreeMap::new() }
}

fn created(code: i16) -> CreateTopicsResponse {
    let topic = CreatableTopicResult::default().with_name(TopicName(text("t"))).with_error_code(code);
    CreateTopicsResponse::default().with_topics(vec![topic])
}

fn offsets(code: i16, offset: i64) -> ListOffsetsResponse {
    let partition = ListOffsetsPartitionResponse::default().with_error_code(code).with_offset(offset);
    let topic = ListOffsetsTopicResponse::default().with_name(TopicName(text("t"))).with_partitions(vec![partition]);
    ListOffsetsResponse::default().with_topics(vec![topic])
}

#[tokio::test(start_paused = true)]
async fn a_change_follows_the_controller() {
    let memory = Memory::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    play(&memory, 1, move |request| match key(request) {
        // The first picture is old.
        ApiKey::Metadata => {
            let controller = if seen.load(Ordering::Relaxed) == 0 { 1 } else { 2 };
            answer(request, metadata(&[(1, 1), (2, 2)], controller, &[]))
        }
        _ => {
            seen.fetch_add(1, Ordering::Relaxed);
            answer(request, created(41))
        }
    });
    play(&memory, 2, |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2)], 2, &[])),
        _ => answer(request, created(0)),
    });
    let results = client(&memory, 1).create_topics(&[new_topic()], false).await.whole().unwrap();
    assert_eq!(results["t"], Ok(()));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_was_lost_is_not_repeated() {
    let memory = Memory::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    play(&memory, 1, move |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[])),
        _ => {
            seen.fetch_add(1, Ordering::Relaxed);
            Reply::Hangup
        }
    });
    let error = client(&memory, 1).create_topics(&[new_topic()], false).await.whole().unwrap_err();
    assert!(matches!(error, Error::Call { source: CallError::Lost(Ended::Closed), .. }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Retry);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_repeated_over_a_new_connection() {
    let memory = Memory::default();
    let mut silent = true;
    play(&memory, 1, move |request| match std::mem::take(&mut silent) {
        true => Reply::Silence,
        false => {
            let description = messages::DescribeClusterResponse::default().with_cluster_id(text("c"));
            answer(request, description)
        }
    });
    assert_eq!(client(&memory, 1).describe_cluster().await.unwrap().id, "c");
}

#[tokio::test(start_paused = true)]
async fn a_dead_broker_in_the_bootstrap_does_no_harm() {
    let memory = Memory::default();
    play(&memory, 2, |request| {
        answer(request, messages::DescribeClusterResponse::default().with_cluster_id(text("c")))
    });
    let client = Client::new(Arc::new(memory), Settings::new(vec![address(1), address(2)]));
    assert_eq!(client.describe_cluster().await.unwrap().id, "c");
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_an_error_when_patience_ends() {
    let client = client(&Memory::default(), 1);
    let before = Instant::now();
    let error = client.describe_cluster().await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Retry);
    assert!(before.elapsed() <= client.settings().patience);
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_partition_follows_its_leader() {
    let memory = Memory::default();
    let mut looked = 0;
    play(&memory, 1, move |request| match key(request) {
        ApiKey::Metadata => {
            looked += 1;
            let leader = if looked == 1 { 1 } else { 2 };
            answer(request, metadata(&[(1, 1), (2, 2)], 1, &[("t", &[leader])]))
        }
        _ => answer(request, offsets(ErrorCode::NOT_LEADER_OR_FOLLOWER.0, -1)),
    });
    play(&memory, 2, |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2)], 1, &[("t", &[2])])),
        _ => answer(request, offsets(0, 77)),
    });
    let place = BTreeMap::from([(TopicPartition::new("t", 0), Place::Latest)]);
    let found = client(&memory, 1).list_offsets(&place, Isolation::Uncommitted).await.unwrap();
    assert_eq!(found[&TopicPartition::new("t", 0)], Ok(Some(77)));
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_not_there_is_refused_before_patience_ends() {
    let memory = Memory::default();
    play(&memory, 1, |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[("t", &[1])])),
        _ => answer(request, offsets(0, 5)),
    });
    let there = TopicPartition::new("t", 0);
    let nowhere = TopicPartition::new("t", 9);
    let places = BTreeMap::from([(there.clone(), Place::Latest), (nowhere.clone(), Place::Latest)]);
    let before = Instant::now();
    let found = client(&memory, 1).list_offsets(&places, Isolation::Uncommitted).await.unwrap();
    assert_eq!(found[&there], Ok(Some(5)));
    assert_eq!(found[&nowhere].as_ref().unwrap_err().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_large_change_goes_out_in_pieces() {
    let memory = Memory::default();
    let pieces = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&pieces);
    play(&memory, 1, move |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[])),
        _ => {
            seen.fetch_add(1, Ordering::Relaxed);
            let asked: AlterPartitionReassignmentsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
            assert!(!asked.allow_replication_factor_change);
            let topics = asked.topics.into_iter().map(|topic| {
                let partitions = topic.partitions.into_iter().map(|partition| {
                    let code = if partition.replicas.is_none() { 85 } else { 0 };
                    ReassignablePartitionResponse::default()
                        .with_partition_index(partition.partition_index)
                        .with_error_code(code)
                });
                ReassignableTopicResponse::default().with_name(topic.name).with_partitions(partitions.collect())
            });
            answer(request, AlterPartitionReassignmentsResponse::default().with_responses(topics.collect()))
        }
    });
    let mut targets: BTreeMap<_, _> = (0..2500)
        .map(|index| (TopicPartition::new("t", index), Target::Replicas(vec![BrokerId(1), BrokerId(2)])))
        .collect();
    targets.insert(TopicPartition::new("u", 0), Target::Cancel);
    let changes = client(&memory, 1).alter_reassignments(&targets, false).await;
    assert!(changes.interrupted.is_none());
    assert_eq!(changes.answers.len(), 2501);
    assert_eq!(pieces.load(Ordering::Relaxed), 3);
    let cancelled = changes.answers[&TopicPartition::new("u", 0)].clone();
    assert_eq!(cancelled.unwrap_err().code, ErrorCode::NO_REASSIGNMENT_IN_PROGRESS);
}

#[tokio::test(start_paused = true)]
async fn topics_are_read_page_by_page() {
    let memory = Memory::default();
    play(&memory, 1, |request| {
        let asked: DescribeTopicPartitionsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
        let page = |topics: &[(&str, std::ops::Range<i32>)], next: Option<(&str, i32)>| {
            let topics = topics.iter().map(|(name, partitions)| {
                let partitions = partitions
                    .clone()
                    .map(|index| DescribeTopicPartitionsResponsePartition::default().with_partition_index(index));
                DescribeTopicPartitionsResponseTopic::default()
                    .with_name(Some(TopicName(text(name))))
                    .with_partitions(partitions.collect())
            });
            let cursor = next.map(|(name, index)| {
                Cursor::default().with_topic_name(TopicName(text(name))).with_partition_index(index)
            });
            DescribeTopicPartitionsResponse::default().with_topics(topics.collect()).with_next_cursor(cursor)
        };
        let response = match asked.cursor.map(|cursor| cursor.partition_index) {
            None => page(&[("a", 0..2), ("b", 0..3)], Some(("b", 3))),
            Some(3) => page(&[("b", 3..5)], Some(("c", 0))),
            Some(_) => page(&[("c", 0..1)], None),
        };
        answer(request, response)
    });
    let topics = client(&memory, 1).topics(Which::All).await.unwrap();
    let counts: Vec<_> =
        topics.iter().map(|(name, topic)| (name.as_str(), topic.as_ref().unwrap().partitions.len())).collect();
    assert_eq!(counts, [("a", 2), ("b", 5), ("c", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_told_at_once_and_tried_once() {
    let memory = Memory::default();
    let logins = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&logins);
    play(&memory, 1, move |request| match key(request) {
        ApiKey::SaslHandshake => answer(request, SaslHandshakeResponse::default()),
        _ => {
            seen.fetch_add(1, Ordering::Relaxed);
            answer(request, SaslAuthenticateResponse::default().with_error_code(58))
        }
    });
    let password = Secret::new("wrong");
    let credentials = Some(Credentials::Plain { username: "alice".to_owned(), password });
    let settings = Settings { credentials, ..Settings::new(vec![address(1)]) };
    let error = Client::new(Arc::new(memory), settings).describe_cluster().await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser);
    assert_eq!(logins.load(Ordering::Relaxed), 1);
}

/// What would be written to a log, at its most talkative.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_in_a_log_an_error_or_the_settings() {
    const PASSWORD: &str = "hunter2-and-nobody-else";
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    // This thread's alone, and everything here runs on it.
    let _logging = tracing::subscriber::set_default(subscriber);
    let username = "alice".to_owned();
    let scram = |hash| Credentials::Scram { hash, username: username.clone(), password: Secret::new(PASSWORD) };
    let ways = [
        Credentials::Plain { username: username.clone(), password: Secret::new(PASSWORD) },
        scram(crate::login::scram::Hash::Sha256),
        scram(crate::login::scram::Hash::Sha512),
    ];
    for credentials in ways {
        // A broker that repeats what it was told, and one that hangs up on it, so that it is tried again.
        for hangs_up in [false, true] {
            let memory = Memory::default();
            play(&memory, 1, move |request| match key(request) {
                ApiKey::SaslHandshake => answer(request, SaslHandshakeResponse::default()),
                _ if hangs_up => Reply::Hangup,
                _ => {
                    let why = Some(text(&format!("{PASSWORD} is not the password of alice")));
                    answer(request, SaslAuthenticateResponse::default().with_error_code(58).with_error_message(why))
                }
            });
            let settings = Settings { credentials: Some(credentials.clone()), ..Settings::new(vec![address(1)]) };
            let client = Client::new(Arc::new(memory), settings);
            let error = client.describe_cluster().await.unwrap_err();
            let mut said = format!("{client:?} {error:?}");
            let mut cause: Option<&dyn std::error::Error> = Some(&error);
            while let Some(error) = cause {
                said += &format!(" {error}");
                cause = error.source();
            }
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    tracing::debug!("the log is written");
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the log is written") && !logged.contains("hunter2"), "{logged}");
}

#[tokio::test(start_paused = true)]
async fn an_older_producer_hears_that_it_is_fenced_off() {
    let memory = Memory::default();
    play(&memory, 1, |request| match key(request) {
        ApiKey::FindCoordinator => {
            let here = Coordinator::default().with_host(text("peer")).with_port(1);
            answer(request, FindCoordinatorResponse::default().with_coordinators(vec![here]))
        }
        _ => answer(request, EndTxnResponse::default().with_error_code(ErrorCode::INVALID_PRODUCER_EPOCH.0)),
    });
    let producer = ProducerIdentity { id: 1, epoch: 0 };
    let error = client(&memory, 1).end_transaction("journal", producer, End::Commit).await.unwrap_err();
    assert!(matches!(&error, Error::Fenced { transactional_id } if transactional_id == "journal"), "{error:?}");
    assert_eq!(error.remedy(), Remedy::AskUser);
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_moved_is_found_again() {
    let memory = Memory::default();
    let mut found = 0;
    play(&memory, 1, move |request| match testing::key(request) {
        ApiKey::FindCoordinator => {
            found += 1;
            let here = Coordinator::default().with_host(text("peer")).with_port(if found == 1 { 1 } else { 2 });
            answer(request, FindCoordinatorResponse::default().with_coordinators(vec![here]))
        }
        _ => answer(request, EndTxnResponse::default().with_error_code(ErrorCode::NOT_COORDINATOR.0)),
    });
    play(&memory, 2, |request| answer(request, EndTxnResponse::default()));
    let producer = ProducerIdentity { id: 1, epoch: 0 };
    client(&memory, 1).end_transaction("journal", producer, End::Abort).await.unwrap();
}

/// Whoever works with a cluster does so in tasks of its own: what calls give must be free to go to any thread. That it
/// compiles is the test.
#[test]
fn calls_may_be_made_in_tasks_of_their_own() {
    fn may_go_anywhere<T: Send>(_: T) {}
    type Alterations = BTreeMap<crate::calls::configs::Resource, BTreeMap<String, crate::calls::configs::Change>>;
    #[allow(dead_code, reason = "only its types matter")]
    fn calls(client: Client, mut writer: crate::topic::TopicWriter, mut reader: crate::topic::TopicReader) {
        may_go_anywhere(async move {
            let (partitions, configs) = (Vec::new(), Alterations::new());
            let _ = client.describe_cluster().await;
            let _ = client.alter_configs(&configs, false).await;
            let _ = client.describe_configs(&[], None).await;
            let _ = client.alter_reassignments(&BTreeMap::new(), true).await;
            let _ = client.alter_replica_log_dirs(BrokerId(1), &BTreeMap::new()).await;
            let _ = client.elect_leaders(crate::calls::elections::Election::Preferred, &partitions).await;
            let _ = (writer.write(&BTreeMap::new()).await, writer.commit().await, reader.next().await);
        });
    }
}
