//! A connection against a peer that the test plays, under paused time.

use kafka_protocol::messages::{
    ApiVersionsResponse, MetadataRequest, MetadataResponse, SaslAuthenticateResponse, SaslHandshakeResponse,
    api_versions_response::ApiVersion,
};
use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::{
    connect::Memory,
    login::{Credentials, LogInError, Secret, log_in},
    message::{RawRequest, encode_response},
    testing::{self, Reply, all_versions, answer, play},
};

const PATIENCE: Duration = Duration::from_secs(5);

/// The other end of a connection.
struct Other {
    frames: FrameReader<ReadHalf<DuplexStream>>,
    writing: WriteHalf<DuplexStream>,
}

impl Other {
    async fn request(&mut self) -> RawRequest {
        RawRequest::parse(self.frames.next().await.unwrap().unwrap()).unwrap()
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.writing.write_all(bytes).await.unwrap();
    }

    async fn greet(&mut self) {
        let hello = self.request().await;
        self.send(&encode_response(&all_versions(), hello.version, hello.correlation).unwrap()).await;
    }
}

fn pipe() -> (DuplexStream, Other) {
    let (ours, theirs) = duplex(4096);
    let (reading, writing) = tokio::io::split(theirs);
    (ours, Other { frames: FrameReader::new(reading), writing })
}

async fn connected() -> (Connection, Other) {
    let (stream, mut other) = pipe();
    let (connection, ()) = tokio::join!(Connection::open(stream, "test", 1 << 20, PATIENCE), other.greet());
    (connection.unwrap(), other)
}

async fn ask(connection: &Connection) -> Result<MetadataResponse, CallError> {
    connection.call(&MetadataRequest::default(), PATIENCE).await
}

fn named(id: &str) -> MetadataResponse {
    MetadataResponse::default().with_cluster_id(Some(StrBytes::from_string(id.to_owned())))
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_callers_whatever_their_order() {
    let (connection, mut other) = connected().await;
    let peer = async {
        let first = other.request().await;
        let second = other.request().await;
        for (request, id) in [(second, "second"), (first, "first")] {
            other.send(&encode_response(&named(id), request.version, request.correlation).unwrap()).await;
        }
    };
    let (one, two, ()) = tokio::join!(ask(&connection), ask(&connection), peer);
    assert_eq!(one.unwrap().cluster_id.unwrap().to_string(), "first");
    assert_eq!(two.unwrap().cluster_id.unwrap().to_string(), "second");
}

#[tokio::test(start_paused = true)]
async fn everything_in_flight_fails_when_the_stream_dies() {
    let (connection, mut other) = connected().await;
    let peer = async {
        other.request().await;
        other.request().await;
        drop(other);
    };
    let (one, two, ()) = tokio::join!(ask(&connection), ask(&connection), peer);
    assert!(matches!(one, Err(CallError::Lost(Ended::ClosedAtFirst))), "{one:?}");
    assert!(matches!(two, Err(CallError::Lost(Ended::ClosedAtFirst))), "{two:?}");
    assert!(matches!(ask(&connection).await, Err(CallError::NotSent(Ended::ClosedAtFirst))));
    assert!(connection.ended().is_some());
}

#[tokio::test(start_paused = true)]
async fn silence_ends_the_connection_after_the_deadline() {
    let (connection, _other) = connected().await;
    let before = tokio::time::Instant::now();
    let error = ask(&connection).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(PATIENCE)), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Retry);
    assert_eq!(before.elapsed(), PATIENCE);
    assert!(matches!(ask(&connection).await, Err(CallError::NotSent(Ended::Silent))));
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_little_time_gives_up_alone() {
    let (connection, mut other) = connected().await;
    let peer = async {
        for _ in 0..2 {
            let request = other.request().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            other.send(&encode_response(&named("x"), request.version, request.correlation).unwrap()).await;
        }
    };
    let brief = Duration::from_millis(5);
    let (hurried, patient, ()) =
        tokio::join!(async { connection.call(&MetadataRequest::default(), brief).await }, ask(&connection), peer);
    assert!(matches!(hurried, Err(CallError::TimedOut(time)) if time == brief), "{hurried:?}");
    assert_eq!(patient.unwrap().cluster_id.unwrap().to_string(), "x");
    assert!(connection.ended().is_none());
    // A broker that is silent for good is noticed, even where nobody waits for as long.
    assert!(connection.call(&MetadataRequest::default(), brief).await.is_err());
    tokio::time::sleep(PATIENCE).await;
    assert!(matches!(connection.ended(), Some(Ended::Silent)));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_waits_as_long_as_it_is_told() {
    let (connection, mut other) = connected().await;
    let pause = 3 * PATIENCE;
    let throttled = named("first").with_throttle_time_ms(pause.as_millis() as i32);
    let peer = async {
        let request = other.request().await;
        other.send(&encode_response(&throttled, request.version, request.correlation).unwrap()).await;
        // It reads nothing for so long.
        tokio::time::sleep(pause).await;
        for id in ["second", "third"] {
            let request = other.request().await;
            other.send(&encode_response(&named(id), request.version, request.correlation).unwrap()).await;
        }
    };
    let before = Instant::now();
    let calls = async {
        // The second is on its way when the first is answered.
        let (first, second) = tokio::join!(ask(&connection), ask(&connection));
        first.unwrap();
        second.unwrap();
        ask(&connection).await.unwrap()
    };
    let (third, ()) = tokio::join!(calls, peer);
    assert_eq!(third.cluster_id.unwrap().to_string(), "third");
    assert_eq!(before.elapsed(), pause);
    assert!(connection.ended().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_found_no_place_is_not_waited_for() {
    let (connection, mut other) = connected().await;
    // More than the pipe and the queue before it hold, while nobody reads.
    let briefly = Duration::from_millis(10);
    let request = MetadataRequest::default();
    let calls = (0..500).map(|_| connection.call(&request, briefly));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_err));
    let peer = async {
        while let Ok(Ok(Some(frame))) = tokio::time::timeout(briefly, other.frames.next()).await {
            let request = RawRequest::parse(frame).unwrap();
            other.send(&encode_response(&named("late"), request.version, request.correlation).unwrap()).await;
        }
    };
    peer.await;
    tokio::time::sleep(2 * PATIENCE).await;
    assert!(connection.ended().is_none(), "all that was sent was answered: {:?}", connection.ended());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_ends_the_connection() {
    let (connection, mut other) = connected().await;
    let peer = async {
        let request = other.request().await;
        other.send(&encode_response(&named("x"), request.version, request.correlation + 1).unwrap()).await;
    };
    let (one, ()) = tokio::join!(ask(&connection), peer);
    assert!(matches!(one, Err(CallError::Lost(Ended::Unasked))), "{one:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hostile_answer_is_an_error_and_the_connection_goes_on() {
    let (connection, mut other) = connected().await;
    let peer = async {
        let request = other.request().await;
        // Correlation, no tags, throttle, then brokers beyond all bounds.
        let mut frame = crate::frame::begin();
        frame.extend_from_slice(&request.correlation.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        other.send(&crate::frame::finish(frame).unwrap()).await;
        let request = other.request().await;
        other.send(&encode_response(&named("fine"), request.version, request.correlation).unwrap()).await;
    };
    let calls = async {
        assert!(matches!(ask(&connection).await, Err(CallError::Answer(MessageError::Refused(_)))));
        assert_eq!(ask(&connection).await.unwrap().cluster_id.unwrap().to_string(), "fine");
    };
    tokio::join!(calls, peer);
}

#[tokio::test(start_paused = true)]
async fn an_old_broker_is_asked_again_in_a_version_it_knows() {
    let (stream, mut other) = pipe();
    let peer = async {
        let first = other.request().await;
        assert_eq!(first.version, 4);
        let own = ApiVersion::default().with_api_key(18).with_min_version(0).with_max_version(2);
        let refusal = ApiVersionsResponse::default().with_error_code(35).with_api_keys(vec![own]);
        other.send(&encode_response(&refusal, 0, first.correlation).unwrap()).await;
        let second = other.request().await;
        assert_eq!(second.version, 2);
        let metadata = ApiVersion::default().with_api_key(3).with_min_version(0).with_max_version(7);
        let answer = ApiVersionsResponse::default().with_api_keys(vec![metadata]);
        other.send(&encode_response(&answer, 2, second.correlation).unwrap()).await;
    };
    let (connection, ()) = tokio::join!(Connection::open(stream, "test", 1 << 20, PATIENCE), peer);
    let connection = connection.unwrap();
    assert_eq!(connection.version_of::<MetadataRequest>().unwrap(), 7);
    let unsupported = connection.version_of::<kafka_protocol::messages::UnregisterBrokerRequest>().unwrap_err();
    assert!(matches!(unsupported, CallError::Unsupported { theirs: None, .. }), "{unsupported:?}");
}

#[tokio::test(start_paused = true)]
async fn a_web_server_is_told_from_a_broker() {
    let (stream, mut other) = pipe();
    let peer = async {
        other.request().await;
        other.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    };
    let (connection, ()) = tokio::join!(Connection::open(stream, "test", 1 << 20, PATIENCE), peer);
    let error = connection.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser, "{error:?}");
}

/// What becomes of a call whose peer says `greeting` to the first question and `answer` to the second, then hangs up.
/// Wherever it ends, it ends.
fn meet(greeting: impl FnOnce(Bytes) -> Vec<u8>, answer: impl FnOnce(Bytes) -> Vec<u8>) -> Result<(), CallError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (stream, mut other) = pipe();
        let calling = async {
            let connection = Connection::open(stream, "test", 1 << 20, PATIENCE).await?;
            ask(&connection).await.map(drop)
        };
        let peer = async {
            let hello = other.request().await;
            let good = encode_response(&all_versions(), hello.version, hello.correlation).unwrap();
            let _ = other.writing.write_all(&greeting(good)).await;
            if let Ok(Some(frame)) = other.frames.next().await {
                let request = RawRequest::parse(frame).unwrap();
                let good = encode_response(&named("x"), request.version, request.correlation).unwrap();
                let _ = other.writing.write_all(&answer(good)).await;
            }
            drop(other);
        };
        tokio::join!(calling, peer).0
    })
}

#[test]
fn two_good_answers_are_the_answer() {
    assert!(meet(|good| good.to_vec(), |good| good.to_vec()).is_ok());
}

proptest! {
    #[test]
    fn noise_instead_of_a_greeting_is_an_error(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(meet(|_| noise, |good| good.to_vec()).is_err());
    }

    #[test]
    fn noise_instead_of_an_answer_is_an_error(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(meet(|good| good.to_vec(), |_| noise).is_err());
    }

    /// Lengths, correlations, bodies: anywhere in what is good otherwise.
    #[test]
    fn wounded_answers_end_in_an_answer_or_an_error(
        wounds in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        greeting: bool,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let wounded = |good: Bytes| {
            let mut bad = good.to_vec();
            wounds.iter().for_each(|(place, byte)| bad[place.index(good.len())] = *byte);
            bad.truncate(cut.map_or(bad.len(), |cut| cut.index(good.len())));
            bad
        };
        let untouched = |good: Bytes| good.to_vec();
        let _ = if greeting { meet(wounded, untouched) } else { meet(untouched, wounded) };
    }
}

fn plain() -> Credentials {
    Credentials::Plain { username: "alice".to_owned(), password: Secret::new("hunter2") }
}

async fn logged_in(script: impl FnMut(&RawRequest) -> Reply + Send + 'static) -> Result<Option<Duration>, LogInError> {
    let memory = Memory::default();
    play(&memory, 1, script);
    let stream = crate::connect::Connector::open(&memory, &testing::address(1)).await.unwrap();
    let connection = Connection::open(stream, "test", 1 << 20, PATIENCE).await.unwrap();
    log_in(&connection, &plain(), PATIENCE).await
}

#[tokio::test(start_paused = true)]
async fn plain_sends_user_and_password_and_learns_the_lifetime() {
    let lifetime = logged_in(|request| match testing::key(request) {
        ApiKey::SaslHandshake => answer(request, SaslHandshakeResponse::default()),
        _ => {
            let sent: kafka_protocol::messages::SaslAuthenticateRequest = request.decode(Limits::STRANGER).unwrap();
            assert_eq!(sent.auth_bytes, "\0alice\0hunter2");
            answer(request, SaslAuthenticateResponse::default().with_session_lifetime_ms(60_000))
        }
    });
    assert_eq!(lifetime.await.unwrap(), Some(Duration::from_secs(60)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_says_why_and_never_the_password() {
    let refused = logged_in(|request| match testing::key(request) {
        ApiKey::SaslHandshake => answer(request, SaslHandshakeResponse::default()),
        _ => {
            let why = StrBytes::from_static_str("no such pair: alice/hunter2");
            answer(request, SaslAuthenticateResponse::default().with_error_code(58).with_error_message(Some(why)))
        }
    });
    let error = refused.await.unwrap_err();
    let printed = format!("{error} {error:?}");
    assert!(printed.contains("no such pair: alice/(secret)") && !printed.contains("hunter2"), "{printed}");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_wants_another_mechanism_says_which() {
    let refused = logged_in(|request| {
        let offered = vec![StrBytes::from_static_str("SCRAM-SHA-512")];
        answer(request, SaslHandshakeResponse::default().with_error_code(33).with_mechanisms(offered))
    });
    let error = refused.await.unwrap_err();
    assert!(matches!(&error, LogInError::Mechanism { wanted: "PLAIN", offered } if offered == &["SCRAM-SHA-512"]));
}
