//! What is written for a new cluster: side by side, because somebody waits for it, and in an order in which it can be begun
//! anew at any point.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::time::sleep;
use tower::service_fn;

use crate::scene::{begun_by, is_ready, pool, usual};
use crate::stage::{Stage, until};

/// What pods start from.
const NEEDS: [&str; 4] = ["secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts"];

#[derive(Debug, Default)]
struct Seen {
    /// Writes of what pods start from that are under way.
    under_way: Vec<String>,
    /// The most of them at once.
    most: usize,
    /// What of it was under way when a list of pods was written.
    too_early: Vec<String>,
}

/// A client whose writes take a while.
fn slow(inner: Client, seen: Arc<Mutex<Seen>>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (inner, seen) = (inner.clone(), Arc::clone(&seen));
        async move {
            let path = request.uri().path().to_owned();
            let is_write = [Method::POST, Method::PATCH, Method::PUT].contains(request.method());
            let is_need = is_write && NEEDS.iter().any(|kind| path.split('/').any(|part| part == *kind));
            let is_list = is_write && path.contains("/strimzipodsets/") && !path.ends_with("/status");
            {
                let mut seen = seen.lock().unwrap();
                if is_need {
                    seen.under_way.push(path.clone());
                    seen.most = seen.most.max(seen.under_way.len());
                }
                if is_list {
                    let early = seen.under_way.clone();
                    seen.too_early.extend(early);
                }
            }
            if is_write {
                sleep(Duration::from_millis(100)).await;
            }
            let answer = inner.send(request).await;
            if is_need {
                let mut seen = seen.lock().unwrap();
                let own = seen.under_way.iter().position(|other| *other == path).unwrap();
                seen.under_way.remove(own);
            }
            answer
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn what_pods_start_from_is_written_side_by_side_and_before_them() {
    let stage = Stage::new().await;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut context = stage.context.clone();
    context.client = slow(context.client, Arc::clone(&seen));
    let controllers = pool("controllers", 3, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    let pools = vec![controllers, pool("brokers", 3, &["broker"], json!({}))];
    let (_machines, _operator) = begun_by(&stage, context, usual(), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    let seen = seen.lock().unwrap();
    assert!((4..=8).contains(&seen.most), "{} at once", seen.most);
    assert_eq!(seen.too_early, [""; 0]);
}
