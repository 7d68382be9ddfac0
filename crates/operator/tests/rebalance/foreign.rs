//! An engine that is not ours: it has no names for its proposals, and refuses every parameter that the original does not
//! have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use evenkeel_api::Kafka;
use evenkeel_api::rebalance::RebalanceState;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::stage::{CLUSTER, Stage, finalizers};

const NAME: &str = "my-rebalance";
/// What the original has never heard of.
const OF_OURS: [&str; 4] = ["broker_progress", "proposal_id", "max_proposals", "max_data_to_move_mb"];

/// Ours, in the manner of the original; and how often it was asked for what that does not know.
fn foreign(engine: Router) -> (Router, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let router = Router::new().fallback(move |request: Request<Body>| {
        let (engine, refused) = (engine.clone(), Arc::clone(&counted));
        async move {
            let query = request.uri().query().unwrap_or_default();
            let names = query.split('&').filter_map(|pair| pair.split('=').next());
            let unknown: Vec<&str> = names.filter(|name| OF_OURS.contains(name)).collect();
            if !unknown.is_empty() {
                refused.fetch_add(1, Ordering::Relaxed);
                let message = format!("Unrecognized endpoint parameters: {unknown:?}");
                let body = json!({"version": 1, "errorMessage": message, "stackTrace": ""}).to_string();
                return (StatusCode::BAD_REQUEST, [("content-type", "application/json")], body).into_response();
            }
            let Ok(answer) = engine.oneshot(request).await;
            let (mut head, body) = answer.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            head.headers.remove("content-length");
            let text = String::from_utf8(body.to_vec()).unwrap().replace("proposalId", "nameless");
            Response::from_parts(head, Body::from(text))
        }
    });
    (router, refused)
}

async fn set_engine(stage: &Stage, engine: Value) {
    let patch = Patch::Merge(json!({"spec": {"cruiseControl": engine}}));
    stage.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &patch).await.unwrap();
}

/// Data moves, by an engine that is not ours.
async fn moving(stage: &Stage) -> Arc<AtomicUsize> {
    set_engine(stage, json!({"image": "linkedin/cruise-control"})).await;
    let (engine, refused) = foreign(stage.cut_engine());
    stage.mend_engine(engine);
    stage.run(NAME).await;
    refused
}

pub async fn it_is_followed_to_its_end_when_nobody_wants_it_any_more(stage: Stage) {
    let _operator = stage.operator();
    let refused = moving(&stage).await;
    set_engine(&stage, json!(null)).await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert!(done.status.unwrap().optimization_result.is_some_and(|it| !it.contains_key("proposalId")));
    assert_eq!(refused.load(Ordering::Relaxed), 0, "it was asked for nothing that it does not know");
    assert_eq!(stage.data(NAME, "brokerProgress.json").await, None);
    assert!(stage.brokers.are_at_rest() && stage.brokers.holders().len() == 4);
}

pub async fn it_can_still_be_stopped_then(stage: Stage) {
    let operator = stage.operator();
    moving(&stage).await;
    set_engine(&stage, json!(null)).await;
    stage.ask(NAME, "stop").await;
    stage.until_state(NAME, RebalanceState::Stopped).await;
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert!(operator.fate.made().iter().any(|call| call.contains("stop_proposal_execution")));
    stage.until("nothing moves", || async { stage.brokers.are_at_rest() }).await;
}
