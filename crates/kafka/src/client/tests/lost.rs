//! Brokers that are unknown, silent, gone or odd, and what is kept of the answers of the others.

use kafka_protocol::messages::{
    CreateTopicsRequest, DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, ProduceRequest, ProduceResponse,
    describe_configs_response::DescribeConfigsResult,
    incremental_alter_configs_response::AlterConfigsResourceResponse,
    produce_response::{PartitionProduceResponse, TopicProduceResponse},
};

use super::*;
use crate::{
    calls::{
        configs::{Change, Resource},
        produce::Writing,
    },
    connect::{ConnectError, Opening},
    login::LogInError,
    message::RawRequest,
};

/// Says yes to whatever is asked about settings.
fn settle(request: &RawRequest) -> Reply {
    match key(request) {
        ApiKey::DescribeConfigs => {
            let asked: DescribeConfigsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
            let results = asked.resources.into_iter().map(|one| {
                DescribeConfigsResult::default()
                    .with_resource_type(one.resource_type)
                    .with_resource_name(one.resource_name)
            });
            answer(request, DescribeConfigsResponse::default().with_results(results.collect()))
        }
        ApiKey::IncrementalAlterConfigs => {
            let asked: IncrementalAlterConfigsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
            let results = asked.resources.into_iter().map(|one| {
                AlterConfigsResourceResponse::default()
                    .with_resource_type(one.resource_type)
                    .with_resource_name(one.resource_name)
            });
            answer(request, IncrementalAlterConfigsResponse::default().with_responses(results.collect()))
        }
        other => panic!("not in the script: {other:?}"),
    }
}

fn broker(id: i32) -> Resource {
    Resource::Broker(BrokerId(id))
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_not_known_yet_is_asked_for_again() {
    let memory = Memory::default();
    let mut looked = 0;
    play(&memory, 1, move |request| {
        looked += 1;
        let all: &[(i32, u16)] = if looked < 3 { &[(1, 1)] } else { &[(1, 1), (2, 2)] };
        answer(request, metadata(all, 1, &[]))
    });
    play(&memory, 2, settle);
    let told = client(&memory, 1).describe_configs(&[broker(2)], None).await;
    assert!(told.whole().unwrap()[&broker(2)].is_ok());
    // One that never comes is told to be none, and not only when patience ends.
    let before = Instant::now();
    let error = client(&memory, 1).describe_configs(&[broker(9)], None).await.whole().unwrap_err();
    assert!(matches!(error, Error::UnknownBroker { broker: 9 }), "{error:?}");
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_dead_broker_does_not_take_the_settings_of_others_with_it() {
    let memory = Memory::default();
    for port in [1, 3] {
        play(&memory, port, |request| match key(request) {
            ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2), (3, 3)], 1, &[])),
            _ => settle(request),
        });
    }
    let client = client(&memory, 1);
    let all = [1, 2, 3].map(broker);
    let told = client.describe_configs(&all, None).await;
    assert!(matches!(told.interrupted, Some(Error::Connect { .. })), "{told:?}");
    assert!(told.answers.keys().eq([&all[0], &all[2]]), "{told:?}");

    let change = || BTreeMap::from([("k".to_owned(), Change::Delete)]);
    let told = client.alter_configs(&all.iter().map(|one| (one.clone(), change())).collect(), false).await;
    assert!(matches!(told.interrupted, Some(Error::Connect { .. })), "{told:?}");
    assert!(told.answers.keys().eq([&all[0], &all[2]]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_does_not_hold_up_the_others() {
    let memory = Memory::default();
    // It takes connections and says nothing.
    let _silent = memory.listen(address(1));
    play(&memory, 2, |request| {
        answer(request, messages::DescribeClusterResponse::default().with_cluster_id(text("c")))
    });
    let client = Client::new(Arc::new(memory), Settings::new(vec![address(1), address(2)]));
    let before = Instant::now();
    assert_eq!(client.describe_cluster().await.unwrap().id, "c");
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn silent_brokers_cost_their_patience_together_and_not_each() {
    let memory = Memory::default();
    let everybody: Vec<(i32, u16)> = (1..=12).map(|id| (i32::from(id), id)).collect();
    for (id, port) in everybody.clone() {
        let everybody = everybody.clone();
        play(&memory, port, move |request| match key(request) {
            ApiKey::Metadata => answer(request, metadata(&everybody, 1, &[])),
            _ if id > 2 => Reply::Silence,
            _ => settle(request),
        });
    }
    let client = client(&memory, 1);
    let patience = client.settings().patience;
    let all: Vec<Resource> = everybody.iter().map(|(id, _)| broker(*id)).collect();
    let before = Instant::now();
    let told = client.describe_configs(&all, None).await;
    assert!(told.interrupted.is_some() && told.answers.keys().eq(&all[..2]), "{told:?}");
    assert!(before.elapsed() <= patience + Duration::from_secs(1), "{:?}", before.elapsed());
    let before = Instant::now();
    let change = || BTreeMap::from([("k".to_owned(), Change::Delete)]);
    let told = client.alter_configs(&all.iter().map(|one| (one.clone(), change())).collect(), false).await;
    assert!(told.interrupted.is_some() && told.answers.keys().eq(&all[..2]), "{told:?}");
    assert!(before.elapsed() <= patience + Duration::from_secs(1), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_throttles_does_not_outlast_the_callers_patience() {
    let memory = Memory::default();
    play(&memory, 1, |request| {
        let throttled = messages::DescribeClusterResponse::default().with_cluster_id(text("c"));
        answer(request, throttled.with_throttle_time_ms(100_000))
    });
    let client = client(&memory, 1);
    assert_eq!(client.describe_cluster().await.unwrap().id, "c");
    for patience in [Duration::from_secs(3), client.settings().patience] {
        let before = Instant::now();
        let failure = client.with_patience(patience).describe_cluster().await.unwrap_err();
        assert!(matches!(failure, Error::Call { source: CallError::TimedOut(_), .. }), "{failure:?}");
        assert!(before.elapsed() <= patience + Duration::from_millis(10), "{patience:?}: {:?}", before.elapsed());
    }
    // What was not said to it is no silence of its own: the connection is still good.
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(client.describe_cluster().await.unwrap().id, "c");
}

#[tokio::test(start_paused = true)]
async fn looking_for_a_broker_ends_when_patience_does() {
    let memory = Memory::default();
    play(&memory, 1, |_| Reply::Silence);
    let patience = Duration::from_secs(3);
    let settings = Settings { patience, ..Settings::new(vec![address(1)]) };
    let client = Client::new(Arc::new(memory), settings);
    let producer = ProducerIdentity { id: 1, epoch: 0 };
    for what in ["a broker", "a coordinator"] {
        let before = Instant::now();
        let failed = match what {
            "a broker" => client.describe_configs(&[broker(1)], None).await.interrupted.is_some(),
            _ => client.end_transaction("journal", producer, End::Commit).await.is_err(),
        };
        assert!(failed && before.elapsed() <= patience + Duration::from_millis(10), "{what}: {:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_nobodys_any_more_is_let_go() {
    let memory = Memory::default();
    let moved = Arc::new(AtomicUsize::new(2));
    let port = Arc::clone(&moved);
    play(&memory, 1, move |request| {
        answer(request, metadata(&[(1, 1), (2, port.load(Ordering::Relaxed) as u16)], 1, &[]))
    });
    let mut first = true;
    play(&memory, 2, move |request| if std::mem::take(&mut first) { settle(request) } else { Reply::Hangup });
    play(&memory, 3, settle);
    let client = client(&memory, 1);
    // Who listens is in it once; who is connected to, twice.
    let holds = |port: u16| format!("{:?}", client.inner.pool).matches(&format!("port: {port}")).count() > 1;
    client.describe_configs(&[broker(2)], None).await.whole().unwrap();
    assert!(holds(2));
    moved.store(3, Ordering::Relaxed);
    client.describe_configs(&[broker(2)], None).await.whole().unwrap();
    assert!(holds(3) && !holds(2));
}

#[tokio::test(start_paused = true)]
async fn many_topics_are_made_in_pieces_and_answers_are_kept() {
    let memory = Memory::default();
    let mut pieces = 0;
    play(&memory, 1, move |request| match key(request) {
        ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[])),
        _ => {
            pieces += 1;
            let asked: CreateTopicsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
            let made = asked.topics.into_iter().map(|topic| CreatableTopicResult::default().with_name(topic.name));
            match pieces {
                3 => Reply::Hangup,
                _ => answer(request, CreateTopicsResponse::default().with_topics(made.collect())),
            }
        }
    });
    let topics: Vec<NewTopic> = (0..250).map(|n| NewTopic { name: format!("t{n}"), ..new_topic() }).collect();
    let told = client(&memory, 1).create_topics(&topics, false).await;
    assert_eq!(told.answers.len(), 200);
    assert!(matches!(told.interrupted, Some(Error::Call { .. })), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_that_go_round_in_a_circle_come_to_an_end() {
    let memory = Memory::default();
    play(&memory, 1, |request| {
        let asked: DescribeTopicPartitionsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
        let next = match asked.cursor.is_some_and(|cursor| cursor.partition_index == 1) {
            true => ("b", 0),
            false => ("a", 1),
        };
        let cursor = Cursor::default().with_topic_name(TopicName(text(next.0))).with_partition_index(next.1);
        answer(request, DescribeTopicPartitionsResponse::default().with_next_cursor(Some(cursor)))
    });
    let error = client(&memory, 1).topics(Which::All).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_one_leader_has_written_is_told_though_another_is_lost() {
    // By a connection that ends, and by an answer that only the user can do something about.
    for talks_nonsense in [false, true] {
        let memory = Memory::default();
        for port in [1, 2] {
            play(&memory, port, move |request| match key(request) {
                ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2)], 1, &[("t", &[1, 2])])),
                _ if port == 2 && talks_nonsense => answer(request, metadata(&[(1, 1)], 1, &[])),
                _ if port == 2 => Reply::Hangup,
                _ => {
                    let asked: ProduceRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                    assert_eq!(asked.topic_data[0].partition_data.len(), 1);
                    let written = PartitionProduceResponse::default().with_index(0).with_base_offset(5);
                    let topic = TopicProduceResponse::default().with_name(TopicName(text("t")));
                    let topic = topic.with_partition_responses(vec![written]);
                    answer(request, ProduceResponse::default().with_responses(vec![topic]))
                }
            });
        }
        let batch = |partition| (TopicPartition::new("t", partition), bytes::Bytes::from_static(b"batch"));
        let client = client(&memory, 1);
        let told = client.produce(&BTreeMap::from([batch(0), batch(1)]), Writing::Plain).await.unwrap();
        assert_eq!(told[&TopicPartition::new("t", 0)], Ok(5));
        let lost = told[&TopicPartition::new("t", 1)].as_ref().unwrap_err();
        assert_eq!(lost.code, ErrorCode::REQUEST_TIMED_OUT);
        // Where nothing else is known, the cause is told.
        let error = client.produce(&BTreeMap::from([batch(1)]), Writing::Plain).await.unwrap_err();
        assert!(matches!(error, Error::Call { .. }), "{error:?}");
        assert_eq!(error.remedy() == Remedy::AskUser, talks_nonsense, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_out_of_reach_is_not_called_leaderless() {
    let there = TopicPartition::new("t", 0);
    let client = client(&Memory::default(), 1);
    let offsets = client.list_offsets(&BTreeMap::from([(there.clone(), Place::Latest)]), Isolation::Uncommitted).await;
    let limits = crate::calls::fetch::FetchLimits::default();
    let fetched = client.fetch(&BTreeMap::from([(there.clone(), 0)]), Isolation::Uncommitted, limits).await;
    let batch = BTreeMap::from([(there, bytes::Bytes::from_static(b"batch"))]);
    let written = client.produce(&batch, Writing::Plain).await;
    for error in [offsets.unwrap_err(), fetched.unwrap_err(), written.unwrap_err()] {
        assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_leader_says_is_told_though_another_is_silent() {
    let memory = Memory::default();
    for port in [1, 2] {
        play(&memory, port, move |request| match key(request) {
            ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2)], 1, &[("t", &[1, 2])])),
            _ if port == 2 => Reply::Silence,
            _ => answer(request, offsets(0, 5)),
        });
    }
    let places = [0, 1].map(|index| (TopicPartition::new("t", index), Place::Latest));
    let told = client(&memory, 1).list_offsets(&BTreeMap::from(places), Isolation::Uncommitted).await.unwrap();
    assert_eq!(told[&TopicPartition::new("t", 0)], Ok(Some(5)));
    let silent = told[&TopicPartition::new("t", 1)].as_ref().unwrap_err();
    assert_eq!(silent.code, ErrorCode::REQUEST_TIMED_OUT);
    assert!(silent.message.as_ref().is_some_and(|why| why.contains("no answer within")), "{silent}");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_of_a_partition_is_not_taken_back_by_a_question_without_an_answer() {
    let memory = Memory::default();
    let questions = AtomicUsize::new(0);
    play(&memory, 1, move |request| match key(request) {
        ApiKey::Metadata if questions.fetch_add(1, Ordering::Relaxed) > 2 => Reply::Silence,
        ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[("t", &[-1])])),
        other => panic!("nobody leads, and {other:?} was asked"),
    });
    let there = TopicPartition::new("t", 0);
    let places = BTreeMap::from([(there.clone(), Place::Latest)]);
    let told = client(&memory, 1).list_offsets(&places, Isolation::Uncommitted).await.unwrap();
    assert_eq!(told[&there].as_ref().unwrap_err().code, ErrorCode::LEADER_NOT_AVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_answer_was_lost_is_not_repeated() {
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
    let cancel = BTreeMap::from([(TopicPartition::new("t", 0), Target::Cancel)]);
    let told = client(&memory, 1).alter_reassignments(&cancel, false).await;
    assert!(matches!(told.interrupted, Some(Error::Call { .. })), "{told:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_hangs_up_on_everybody_is_said_to_want_a_login() {
    let memory = Memory::default();
    play(&memory, 1, |_| Reply::Hangup);
    let before = Instant::now();
    let error = client(&memory, 1).describe_cluster().await.unwrap_err();
    assert!(matches!(error, Error::Connect { source: ConnectError::LoginWanted, .. }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::AskUser);
    assert!(before.elapsed() < Duration::from_secs(5), "not only when patience ends");
}

#[tokio::test(start_paused = true)]
async fn brokers_that_all_hang_up_are_said_to_want_a_login() {
    let memory = Memory::default();
    (1..=30).for_each(|port| play(&memory, port, |_| Reply::Hangup));
    let before = Instant::now();
    let settings = Settings::new((1..=30).map(address).collect());
    let client = Client::new(Arc::new(memory), settings);
    let error = client.describe_cluster().await.unwrap_err();
    assert!(matches!(error, Error::Connect { source: ConnectError::LoginWanted, .. }), "{error:?}");
    assert!(before.elapsed() < Duration::from_secs(5), "not each of them for itself");
}

#[tokio::test(start_paused = true)]
async fn another_broker_is_asked_after_a_picture_that_was_wrong() {
    let memory = Memory::default();
    // The first believes for ever that it leads.
    for (port, leader) in [(1, 1), (2, 2)] {
        play(&memory, port, move |request| match key(request) {
            ApiKey::Metadata => answer(request, metadata(&[(1, 1), (2, 2)], 1, &[("t", &[leader])])),
            _ if port == 1 => answer(request, offsets(ErrorCode::NOT_LEADER_OR_FOLLOWER.0, -1)),
            _ => answer(request, offsets(0, 7)),
        });
    }
    let there = TopicPartition::new("t", 0);
    let places = BTreeMap::from([(there.clone(), Place::Latest)]);
    let told = client(&memory, 1).list_offsets(&places, Isolation::Uncommitted).await.unwrap();
    assert_eq!(told[&there], Ok(Some(7)));
}

#[test]
fn no_two_clients_pause_alike_unless_told_to() {
    assert_ne!(Settings::new(vec![]).seed, Settings::new(vec![]).seed);
}

/// A way that everybody can listen to.
#[derive(Debug)]
struct Overheard(Memory);

impl Connector for Overheard {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        self.0.open(address)
    }
}

#[tokio::test(start_paused = true)]
async fn a_password_is_not_sent_in_the_open_unless_that_is_wanted() {
    let memory = Memory::default();
    let logins = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&logins);
    play(&memory, 1, move |request| match key(request) {
        ApiKey::SaslHandshake => answer(request, SaslHandshakeResponse::default()),
        ApiKey::SaslAuthenticate => {
            seen.fetch_add(1, Ordering::Relaxed);
            answer(request, SaslAuthenticateResponse::default())
        }
        _ => answer(request, messages::DescribeClusterResponse::default().with_cluster_id(text("c"))),
    });
    let enter = |allow_plaintext_password| {
        let credentials = Some(Credentials::Plain { username: "alice".to_owned(), password: Secret::new("hunter2") });
        let settings = Settings { credentials, allow_plaintext_password, ..Settings::new(vec![address(1)]) };
        Client::new(Arc::new(Overheard(memory.clone())), settings)
    };
    let error = enter(false).describe_cluster().await.unwrap_err();
    let refused = ConnectError::LogIn(LogInError::PasswordInTheOpen).to_string();
    assert!(matches!(&error, Error::Connect { source, .. } if source.to_string() == refused), "{error:?}");
    assert_eq!((error.remedy(), logins.load(Ordering::Relaxed)), (Remedy::AskUser, 0));
    assert_eq!(enter(true).describe_cluster().await.unwrap().id, "c");
}
