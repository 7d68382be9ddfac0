//! An operator that was frozen wakes up with a decision about what is long gone, while another one has gone on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tower::service_fn;

use crate::play::{ADD, Play, operator, scaling};

/// A client that freezes, once it is to, when it looks at the rebalance to added brokers in order to take it away.
fn freezing(inner: Client, freezes: Arc<AtomicBool>, frozen: Arc<Notify>, thawed: Arc<Notify>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (inner, frozen, thawed, freezes) = (inner.clone(), frozen.clone(), thawed.clone(), freezes.clone());
        async move {
            let is_it = request.method() == Method::GET && request.uri().path().ends_with(ADD);
            if is_it && freezes.swap(false, Ordering::SeqCst) {
                frozen.notify_one();
                thawed.notified().await;
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn whoever_wakes_up_late_does_not_take_away_the_next_one() {
    let mut play = Play::with(3, scaling()).await;
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let mut usual = play.stage.context.clone().dialling(&play.machines.way());
    usual.engines = Arc::new(play.room.clone());
    let (frozen, thawed, freezes) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let mut late = usual.clone();
    late.client = freezing(late.client, freezes.clone(), frozen.clone(), thawed.clone());
    let first = tokio::spawn(evenkeel_operator::kafka::run(late));
    let others = tokio::spawn(async move {
        let pod_sets = evenkeel_operator::pod_set::run(usual.clone());
        tokio::join!(pod_sets, evenkeel_operator::rebalance::controller::run(usual));
    });
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    // From now on it is found by its label.
    freezes.store(true, Ordering::SeqCst);
    timeout(Duration::from_secs(1_200), frozen.notified()).await.expect("it comes to its end");
    let began = Instant::now();
    others.abort();
    play.operator = tokio::spawn(operator(play.stage.context.clone(), play.machines.clone(), play.room.clone()));
    play.until("the other one takes it away", async |play| play.rebalance(ADD).await.is_none()).await;
    play.scale(5).await;
    play.until("the next one moves data", async |play| play.is_moving(ADD).await).await;
    let next = play.rebalance(ADD).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(180), "it has given up by itself: {:?}", began.elapsed());

    thawed.notify_one();
    sleep(Duration::from_secs(1)).await;
    first.abort();
    let still = play.rebalance(ADD).await.expect("it is left alone").metadata;
    assert_eq!((still.uid, still.deletion_timestamp), (next.metadata.uid, None));
    assert_eq!(still.finalizers, next.metadata.finalizers);
    play.until_settled().await;
    assert!(play.holders().is_superset(&[3, 4].into()));
}
