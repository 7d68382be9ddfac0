//! The client against services that answer well, badly and never; and the table of what answers mean.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tower::service_fn;

use super::*;
use crate::body::{Load, OptimizationResult, State};
use crate::request::{self, Rebalance};

const RESULT: &str = r#"{"summary":{"numReplicaMovements":1},"version":1}"#;
const PROGRESS: &str = r#"{"progress":[{"operation":"Rebalance","operationProgress":[]}],"version":1}"#;

type Answered = Result<http::Response<BoxBody<Bytes, std::io::Error>>, Infallible>;

fn answer(status: u16, body: impl Into<Bytes>) -> Answered {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    let mut response = http::Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    Ok(response)
}

fn base() -> Uri {
    Uri::from_static("http://engine:9090/kafkacruisecontrol/")
}

/// What the client makes of one answer.
async fn made_of(status: u16, body: &'static str) -> Answer<OptimizationResult> {
    let service = service_fn(move |_| async move { answer(status, body) });
    Client::new(service, base()).ask(&Rebalance::default()).await.answer
}

fn error_body(message: &str) -> &'static str {
    format!(r#"{{"stackTrace":"","version":1,"errorMessage":"{message}"}}"#).leak()
}

#[tokio::test]
async fn every_answer_has_its_meaning() {
    let html = "<html><title>Error</title></html>";
    let windows = "x.KafkaCruiseControlException: x.NotEnoughValidWindowsException: There is no window available";
    let broker = "java.lang.IllegalArgumentException: Broker [7] does not exist.";
    let busy =
        "Cannot start a new execution while there is an ongoing execution. Please use stop_ongoing_execution=true";
    let tasks = "There are already 5 active user tasks, which has reached the servlet capacity.";
    let cases: &[(u16, &str, &str)] = &[
        (200, RESULT, "ready"),
        (201, RESULT, "ready"),
        (200, error_body("anything"), "refused"),
        (200, error_body(windows), "not_enough_data"),
        (200, "{}", "unintelligible"),
        (200, html, "unintelligible"),
        (200, "", "unintelligible"),
        (200, r#"{"summary":{"numReplicaMovements":"#, "unintelligible"),
        (202, PROGRESS, "computing"),
        (202, RESULT, "unintelligible"),
        (202, "", "unintelligible"),
        (204, "", "refused"),
        (302, html, "refused"),
        (400, error_body("For input string"), "refused"),
        (400, "plain text", "refused"),
        (401, html, "unauthorised"),
        (401, "", "unauthorised"),
        (403, html, "unauthorised"),
        (403, error_body("Cannot process GET request"), "refused"),
        (404, error_body("Unrecognized endpoint"), "refused"),
        (405, "", "refused"),
        (500, error_body(windows), "not_enough_data"),
        (500, error_body(broker), "missing_broker"),
        (500, error_body("Broker [7] does not exist."), "refused"),
        (500, error_body(busy), "busy"),
        (500, error_body("x.OngoingExecutionException"), "busy"),
        (500, error_body("Cannot generate proposals while the executor is in X state"), "busy"),
        (500, error_body("There are ongoing inter-broker partition movements"), "busy"),
        (500, error_body("ongoing partition reassignments initiated by external agent"), "busy"),
        (500, error_body(tasks), "tasks_exhausted"),
        (500, error_body("The proposal cannot be carried out as it was approved (ab): x"), "proposal_outdated"),
        (500, error_body("x.OptimizationFailureException: [RackAwareGoal] x"), "refused"),
        (500, windows, "not_enough_data"),
        (500, html, "unintelligible"),
        (500, "", "unintelligible"),
        (501, error_body("not supported"), "refused"),
        (502, html, "unreachable"),
        (503, "", "unreachable"),
        (504, html, "unreachable"),
        (503, error_body(tasks), "tasks_exhausted"),
        (503, error_body("The journal is not open yet."), "not_yet"),
    ];
    for (status, body, label) in cases {
        let body: &'static str = body.to_string().leak();
        assert_eq!(made_of(*status, body).await.label(), *label, "{status} {body}");
    }
}

#[tokio::test]
async fn a_refusal_carries_the_servers_words() {
    let Answer::Refused { status, message } = made_of(400, error_body("For input string")).await else { panic!() };
    assert_eq!((status, message.as_str()), (400, "For input string"));
    let long: &'static str = "ä".repeat(100_000).leak();
    let Answer::Refused { message, .. } = made_of(400, long).await else { panic!() };
    assert_eq!(message.chars().count(), 500);
}

#[tokio::test]
async fn numbers_that_are_none_do_not_hurt() {
    let text = r#"{"summary":{"onDemandBalancednessScoreBefore":NaN,"onDemandBalancednessScoreAfter":-Infinity}}"#;
    let Answer::Ready(result) = made_of(200, text).await else { panic!("ready") };
    assert!(result.summary.on_demand_balancedness_score_before.0.is_nan());
    assert_eq!(result.summary.on_demand_balancedness_score_after.0, f64::NEG_INFINITY);
}

#[tokio::test]
async fn a_body_that_nests_without_end_is_not_followed() {
    let deep: &'static str = format!("{{\"summary\":{}", "[".repeat(5_000_000)).leak();
    assert_eq!(made_of(200, deep).await.label(), "unintelligible");
}

#[test]
fn an_empty_state_is_no_state() {
    assert_eq!(classify::<State>(200, "", b"{}").label(), "unintelligible");
    assert_eq!(classify::<Load>(200, "", br#"{"version":1}"#).label(), "unintelligible");
    assert_eq!(classify::<State>(200, "text/html", br#"{"version":1}"#).label(), "ready");
}

/// A body that never ends.
struct Endless(Arc<AtomicUsize>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1 << 16])))))
    }
}

#[tokio::test]
async fn a_body_without_end_is_read_up_to_the_limit() {
    let frames = Arc::new(AtomicUsize::new(0));
    let counted = frames.clone();
    let service = service_fn(move |_| {
        let frames = counted.clone();
        async move { Ok::<_, Infallible>(http::Response::new(Endless(frames))) }
    });
    let limits = Limits { body: 1 << 20, ..Limits::default() };
    let reply = Client::new(service, base()).with_limits(limits).ask(&Rebalance::default()).await;
    let Answer::Unintelligible(error) = reply.answer else { panic!("too large") };
    assert!(matches!(error, Error::TooLarge { limit } if limit == 1 << 20));
    assert_eq!(error.remedy(), Remedy::AskUser);
    assert!(frames.load(Ordering::Relaxed) <= 17);
}

/// A body of so many MiB that has an end when it may.
struct Held(usize, oneshot::Receiver<()>);

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0 {
            0 => Pin::new(&mut self.1).poll(cx).map(|_| None),
            _ => {
                self.0 -= 1;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1 << 20])))))
            }
        }
    }
}

fn limits(body: usize) -> Limits {
    Limits { body, ..Limits::default() }
}

fn in_time() -> Instant {
    Instant::now() + Limits::default().time
}

#[tokio::test]
async fn of_large_answers_there_is_one_at_a_time_and_small_ones_wait_for_none() {
    let room = Room::default();
    let read = |mebibytes| {
        let (end, ends) = oneshot::channel();
        let room = room.clone();
        (end, tokio::spawn(async move { room.read(Held(mebibytes, ends), limits(4 << 20), in_time()).await }))
    };
    let (end, first) = read(3);
    yield_now().await;
    let (other_end, second) = read(2);
    other_end.send(()).unwrap();
    let (small_end, small) = read(1);
    small_end.send(()).unwrap();
    assert_eq!(small.await.unwrap().unwrap().bytes.len(), 1 << 20);
    let waits = async |it: &JoinHandle<_>| {
        for _ in 0..10 {
            yield_now().await;
        }
        !it.is_finished()
    };
    assert!(waits(&second).await, "the first is being read");
    end.send(()).unwrap();
    let first = first.await.unwrap().unwrap();
    assert!(waits(&second).await, "and is there until it is dropped");
    drop(first);
    assert_eq!(second.await.unwrap().unwrap().bytes.len(), 2 << 20);
}

/// Each of these has sent much, and then no more. Who comes after them waits for the room, and loses nothing by it.
#[tokio::test(start_paused = true)]
async fn a_slow_server_keeps_the_room_from_others_for_a_while_only() {
    let room = Room::default();
    let read = |mebibytes| {
        let (end, ends) = oneshot::channel();
        let room = room.clone();
        let reading = async move { room.read(Held(mebibytes, ends), limits(4 << 20), in_time()).await };
        (end, tokio::spawn(async move { reading.await.map(|whole| whole.bytes.len()) }))
    };
    let (began, slow) = (Instant::now(), [read(3), read(3), read(3), read(3)]);
    yield_now().await;
    let (end, prompt) = read(2);
    end.send(()).unwrap();
    assert_eq!(prompt.await.unwrap().unwrap(), 2 << 20);
    assert!(began.elapsed() > Limits::default().time, "it has waited for longer than its own server may take");
    for (_end, slow) in slow {
        let given_up = slow.await.unwrap().unwrap_err();
        assert!(matches!(given_up, Error::TimedOut { after } if after == room::LARGE_WITHIN), "{given_up}");
    }
}

/// A body that says how long it is, and is never asked for anything.
struct Announced(u64);

impl Body for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("nobody has to read it")
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_not_read() {
    let refused = Room::default().read(Announced(11), limits(10), in_time()).await;
    assert!(matches!(refused.err(), Some(Error::TooLarge { limit: 10 })));
}

/// A body that breaks off.
struct BrokenOff;

impl Body for BrokenOff {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
    }
}

#[tokio::test]
async fn what_breaks_off_may_be_asked_again() {
    let service = service_fn(|_| async { Ok::<_, Infallible>(http::Response::new(BrokenOff)) });
    let Answer::Unreachable(error) = Client::new(service, base()).ask(&Rebalance::default()).await.answer else {
        panic!("broken off")
    };
    assert_eq!((error.label(), error.remedy()), ("read_body", Remedy::Retry));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let service = service_fn(|_| async {
        Err::<http::Response<Full<Bytes>>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
    });
    let Answer::Unreachable(error) = Client::new(service, base()).ask(&Rebalance::default()).await.answer else {
        panic!("unreachable")
    };
    assert_eq!((error.label(), error.remedy()), ("connect", Remedy::Retry));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_limit() {
    let service = service_fn(|_| async {
        pending::<()>().await;
        answer(200, RESULT)
    });
    let begun = Instant::now();
    let Answer::Unreachable(error) = Client::new(service, base()).ask(&Rebalance::default()).await.answer else {
        panic!("timed out")
    };
    assert_eq!(error.label(), "timed_out");
    assert_eq!(begun.elapsed(), Limits::default().time);
}

/// A service that keeps what it was asked, and answers from a list.
#[derive(Clone, Default)]
struct Scripted {
    asked: Arc<Mutex<Vec<http::Request<()>>>>,
    answers: Arc<Mutex<Vec<(u16, &'static str)>>>,
}

impl Scripted {
    fn answering(answers: &[(u16, &'static str)]) -> Self {
        let answers = answers.iter().rev().copied().collect();
        Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() }
    }

    fn client(
        &self,
    ) -> Client<
        impl Service<
            http::Request<Full<Bytes>>,
            Response = http::Response<BoxBody<Bytes, std::io::Error>>,
            Error = Infallible,
        > + Clone,
    > {
        let it = self.clone();
        let service = service_fn(move |request: http::Request<Full<Bytes>>| {
            it.asked.lock().expect("not poisoned").push(request.map(|_| ()));
            let (status, body) = it.answers.lock().expect("not poisoned").pop().unwrap_or((500, ""));
            async move {
                let mut response = answer(status, body)?;
                let task = Uuid::from_u128(7).to_string();
                response.headers_mut().insert(USER_TASK_ID, task.parse().expect("a value"));
                response.headers_mut().insert("set-cookie", "JSESSIONID=x; Path=/".parse().expect("a value"));
                Ok(response)
            }
        });
        Client::new(service, base())
    }

    fn header(&self, n: usize, name: &str) -> Option<String> {
        let asked = self.asked.lock().expect("not poisoned");
        asked[n].headers().get(name).map(|value| value.to_str().expect("text").to_owned())
    }
}

#[tokio::test]
async fn a_request_is_where_and_what_it_should_be() {
    let server = Scripted::answering(&[(200, RESULT), (200, r#"{"version":1}"#)]);
    let goals = request::GoalOptions { goals: vec!["A".to_owned(), "B".to_owned()], ..Default::default() };
    server.client().ask(&Rebalance { goal_options: goals, ..Default::default() }).await;
    server.client().ask(&request::State::default()).await;
    let asked = server.asked.lock().expect("not poisoned");
    assert_eq!(asked[0].method(), http::Method::POST);
    assert_eq!(asked[0].uri(), "http://engine:9090/kafkacruisecontrol/rebalance?goals=A%2CB&json=true");
    assert_eq!(asked[1].method(), http::Method::GET);
    assert_eq!(asked[1].uri(), "http://engine:9090/kafkacruisecontrol/state?json=true");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_by_its_id_and_without_cookies() {
    let server = Scripted::answering(&[(202, PROGRESS), (202, PROGRESS), (200, RESULT)]);
    let second = Duration::from_secs(1);
    let reply = server.client().ask_and_wait(&Rebalance::default(), 60 * second, second).await;
    assert_eq!((reply.answer.label(), reply.task), ("ready", Some(Uuid::from_u128(7))));
    assert_eq!(server.header(0, USER_TASK_ID), None);
    for n in [1, 2] {
        assert_eq!(server.header(n, USER_TASK_ID), Some(Uuid::from_u128(7).to_string()));
        assert_eq!(server.header(n, "cookie"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn patience_ends() {
    let server = Scripted::answering(&[(202, PROGRESS); 20]);
    let second = Duration::from_secs(1);
    let reply = server.client().ask_and_wait(&Rebalance::default(), 5 * second, second).await;
    assert_eq!((reply.answer.label(), reply.task), ("computing", Some(Uuid::from_u128(7))));
    assert_eq!(server.asked.lock().expect("not poisoned").len(), 6);
}

#[tokio::test]
async fn credentials_are_read_for_each_request_and_never_shown() {
    let server = Scripted::answering(&[(200, RESULT), (200, RESULT)]);
    let times = AtomicUsize::new(0);
    let provider = move || Some(Basic::new("me", format!("secret{}", times.fetch_add(1, Ordering::Relaxed))));
    let client = server.client().with_credentials(provider);
    client.ask(&Rebalance::default()).await;
    client.ask(&Rebalance::default()).await;
    // me:secret0 and me:secret1
    assert_eq!(server.header(0, "authorization").as_deref(), Some("Basic bWU6c2VjcmV0MA=="));
    assert_eq!(server.header(1, "authorization").as_deref(), Some("Basic bWU6c2VjcmV0MQ=="));
    let asked = format!("{:?}", server.asked.lock().expect("not poisoned"));
    let shown = format!("{asked} {client:?} {:?}", Basic::new("me", "secret0"));
    assert!(!shown.contains("secret") && !shown.contains("bWU6"), "{shown}");
}

#[test]
fn authorities_are_read_from_pem() {
    assert!(trusting(b"").is_ok());
    assert!(trusting(b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").is_err());
}
