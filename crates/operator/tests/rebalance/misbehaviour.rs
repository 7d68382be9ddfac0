//! Engines that do not answer as they should. Whatever they say, nothing is lost, nobody is driven in circles, and the
//! resource says what is the matter and what to do about it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use evenkeel_api::Reason;
use evenkeel_api::rebalance::RebalanceState;
use tower::ServiceExt;

use crate::stage::{Stage, condition, finalizers, warning};

const NAME: &str = "my-rebalance";
const TASK: &str = "11111111-2222-3333-4444-555555555555";

/// Says the same to everybody.
fn always(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> Router {
    let status = StatusCode::from_u16(status).unwrap();
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect();
    Router::new().fallback(move || async move { (status, headers, body).into_response() })
}

/// How often a proposal or an execution was asked for.
fn asked_for_plans(made: &[String]) -> usize {
    made.iter().filter(|call| call.starts_with("engine POST") && call.contains("/rebalance")).count()
}

/// A new one has failed: why.
async fn why_it_failed(stage: &Stage) -> String {
    stage.create(NAME, |_| {}).await;
    let failed = stage.until_state(NAME, RebalanceState::NotReady).await;
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert!(condition(&failed).has_reason(Reason::CruiseControlRestException));
    condition(&failed).message.unwrap()
}

pub async fn garbage_is_called_garbage(stage: Stage) {
    let _operator = stage.operator();
    let engine = stage.replace_engine(always(200, &[("content-type", "text/html")], "<html>Welcome!</html>"));
    let why = why_it_failed(&stage).await;
    assert!(why.contains("makes no sense") && why.contains("text/html") && why.contains("refresh"), "{why}");
    // Only a person knows when that is mended.
    stage.mend_engine(engine);
    stage.ask(NAME, "refresh").await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

/// However much an engine sends, the operator has room for other things.
pub async fn an_answer_without_end_is_not_read_to_its_end(stage: Stage) {
    const MEBIBYTE: usize = 1 << 20;
    let _operator = stage.operator();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let engine = stage.replace_engine(Router::new().fallback(move || {
        let sent = Arc::clone(&counted);
        let chunks = futures::stream::repeat_with(move || {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[b' '; MEBIBYTE]))
        });
        async move { Body::from_stream(chunks).into_response() }
    }));
    let why = why_it_failed(&stage).await;
    assert!(why.contains("larger than 64 MiB") && why.contains("refresh"), "{why}");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent <= 66, "{sent} MiB were read, once");
    stage.mend_engine(engine);
    stage.ask(NAME, "refresh").await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

/// A number of `key` in a body becomes one that JSON does not have. Also how many there were.
fn without_a_number(body: &str, key: &str) -> (String, usize) {
    let found = body.matches(key).count();
    let mut parts = body.split(key);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| "\": .-+eE".contains(c) || c.is_ascii_digit());
        text.push_str(&format!("{key}\":NaN{rest}"));
    }
    (text, found)
}

pub async fn what_is_no_number_is_shown_as_none(stage: Stage) {
    let _operator = stage.operator();
    // The engine itself, but for the numbers.
    let engine = stage.cut_engine();
    let inner = engine.clone();
    let replaced = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&replaced);
    let strange = Router::new().fallback(move |request: Request<Body>| {
        let (inner, replaced) = (inner.clone(), Arc::clone(&counted));
        async move {
            let plans = request.uri().path().ends_with("/rebalance") || request.uri().path().ends_with("/user_tasks");
            let Ok(answer) = inner.oneshot(request).await;
            if !plans {
                return answer;
            }
            let (mut head, body) = answer.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            head.headers.remove("content-length");
            // Bodies in bodies have their quotes escaped: only plain ones are changed.
            if text.contains("originalResponse") {
                return Response::from_parts(head, Body::from(text));
            }
            let (text, found) = without_a_number(&text, "\"DiskPct");
            replaced.fetch_add(found, Ordering::Relaxed);
            Response::from_parts(head, Body::from(text))
        }
    });
    stage.mend_engine(strange);
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    let load = stage.data(NAME, "brokerLoad.json").await.expect("loads");
    let load: serde_json::Value = serde_json::from_str(&load).expect("JSON whatever the engine said");
    assert!(replaced.load(Ordering::Relaxed) >= 8, "four brokers, before and after");
    for broker in ["0", "1", "2", "3"] {
        assert!(load[broker]["replicas"]["before"].is_number(), "{load}");
        assert_eq!(load[broker]["diskUsedPercentage"], serde_json::json!({}), "{load}");
    }
    stage.mend_engine(engine);
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
}

pub async fn a_proposal_that_is_never_finished_is_warned_of(stage: Stage) {
    let operator = stage.operator();
    // A task that is accepted, and active for ever.
    let came = stage.brokers.wall_clock();
    let computing = Router::new().fallback(move |method: Method, uri: Uri| async move {
        let name = [("User-Task-ID", TASK)];
        match method {
            Method::POST => (StatusCode::ACCEPTED, name, r#"{"progress":[],"version":1}"#.to_owned()).into_response(),
            _ => {
                assert!(uri.path().ends_with("/user_tasks"), "{uri}");
                let task = format!(
                    r#"{{"Status":"Active","ClientIdentity":"x","RequestURL":"POST /kafkacruisecontrol/rebalance","UserTaskId":"{TASK}","StartMs":"{came}"}}"#
                );
                (StatusCode::OK, name, format!(r#"{{"userTasks":[{task}],"version":1}}"#)).into_response()
            }
        }
    });
    let engine = stage.replace_engine(computing);
    stage.create(NAME, |_| {}).await;
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    let why = warning(&warned, Reason::CruiseControlRestException).unwrap();
    assert!(why.contains("ten minutes") && why.contains("refresh") && why.contains("stop"), "{why}");
    assert_eq!(warned.state(), RebalanceState::PendingProposal);
    assert_eq!(asked_for_plans(&operator.fate.made()), 1, "and is not asked for a second time unasked");
    stage.mend_engine(engine);
    let done = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(warning(&done, Reason::CruiseControlRestException), None);
}

pub async fn a_proposal_without_a_name_is_not_asked_for_again_and_again(stage: Stage) {
    let operator = stage.operator();
    let engine = stage.replace_engine(always(202, &[], r#"{"progress":[],"version":1}"#));
    stage.create(NAME, |_| {}).await;
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    assert!(warning(&warned, Reason::CruiseControlRestException).unwrap().contains("User-Task-ID"));
    assert_eq!(warned.state(), RebalanceState::PendingProposal);
    stage.linger(600).await;
    let times = asked_for_plans(&operator.fate.made());
    assert!((1..=40).contains(&times), "{times} times in ten minutes");
    stage.mend_engine(engine);
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn an_engine_that_says_nothing_holds_up_nobody(stage: Stage) {
    let _operator = stage.operator();
    let silent = Router::new().fallback(|| async { std::future::pending::<Response>().await });
    let engine = stage.replace_engine(silent);
    stage.create(NAME, |_| {}).await;
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    let why = warning(&warned, Reason::CruiseControlRestException).unwrap();
    assert!(why.contains("no complete answer within"), "{why}");
    assert_eq!(warned.state(), RebalanceState::PendingProposal);
    stage.mend_engine(engine);
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn a_wrong_password_is_explained(stage: Stage) {
    let _operator = stage.operator();
    // As a web server answers who is not known.
    let engine = stage.replace_engine(always(401, &[("www-authenticate", "Basic realm=\"x\"")], ""));
    stage.create(NAME, |_| {}).await;
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    let why = warning(&warned, Reason::CruiseControlRestException).unwrap();
    assert!(why.contains("cruise-control-api") && why.contains("401"), "{why}");
    assert_eq!(warned.state(), RebalanceState::PendingProposal);
    stage.mend_engine(engine);
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

/// The execution is taken on, but what comes back is a bare 500 of something between.
pub async fn a_run_is_not_lost_on_an_answer_that_is_none(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    let engine = stage.cut_engine();
    let inner = engine.clone();
    stage.mend_engine(Router::new().fallback(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let executes = request.uri().query().is_some_and(|query| query.contains("dryrun=false"));
            let Ok(answer) = inner.oneshot(request).await;
            if executes { StatusCode::INTERNAL_SERVER_ERROR.into_response() } else { answer }
        }
    }));
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.executions().await.len(), 1, "found again, and not submitted twice");
    assert_eq!(stage.brokers.holders().len(), 4);
}
