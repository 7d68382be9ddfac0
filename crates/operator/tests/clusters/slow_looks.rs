//! Looks that take long: a large cluster is read page by page, and an engine may not answer for a while. Whoever waits for a
//! drained broker to go waits longer then, and not for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_kafka as kafka;
use evenkeel_operator::seams::{
    BoxFuture, ClusterRef, Context, EngineService, Engines, Kafkas, TlsKafkas, Trust, Unreachable,
};
use serde_json::json;
use tokio::time::sleep;

use crate::play::{Play, REMOVE, mode, scaling};

/// Whoever asks here is kept waiting.
#[derive(Debug)]
struct Slow<T>(T, Duration);

impl<T: Kafkas> Kafkas for Slow<T> {
    fn client<'a>(&'a self, of: &'a ClusterRef, trust: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        Box::pin(async move {
            sleep(self.1).await;
            self.0.client(of, trust).await
        })
    }

    fn forget(&self, of: &ClusterRef) {
        self.0.forget(of);
    }
}

impl<T: Engines> Engines for Slow<T> {
    fn service<'a>(
        &'a self,
        of: &'a ClusterRef,
        trust: &'a Trust,
    ) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        Box::pin(async move {
            sleep(self.1).await;
            self.0.service(of, trust).await
        })
    }

    fn forget(&self, of: &ClusterRef) {
        self.0.forget(of);
    }
}

/// The cluster is looked after by somebody who asks like this; rebalances and pods are looked after as ever.
async fn succeeded_by(play: &mut Play, asks: impl FnOnce(&mut Context)) {
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let mut usual = play.stage.context.clone().dialling(&play.machines.way());
    usual.engines = Arc::new(play.room.clone());
    let mut slow = usual.clone();
    asks(&mut slow);
    play.operator = tokio::spawn(async move {
        tokio::join!(
            evenkeel_operator::pod_set::run(usual.clone()),
            evenkeel_operator::kafka::run(slow),
            evenkeel_operator::rebalance::controller::run(usual),
        );
    });
}

async fn check_drain(play: &Play) {
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    play.until("the drained one goes", async |play| play.brokers().await.len() == 3).await;
    play.until("nothing is under way any more", async |play| {
        play.state().await == Some(AutoRebalanceState::Idle) && play.rebalance(REMOVE).await.is_none()
    })
    .await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    assert_eq!(play.warning("KubernetesClientException").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_drained_broker_goes_though_kafka_is_read_for_long() {
    let mut play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    let kafkas = Slow(TlsKafkas::over(play.machines.way()), Duration::from_secs(7));
    succeeded_by(&mut play, |context| context.kafkas = Arc::new(kafkas)).await;
    check_drain(&play).await;
}

/// Somebody else's engine, which is asked again and again for what it has found.
#[tokio::test(start_paused = true)]
async fn a_drained_broker_goes_though_the_engine_answers_late() {
    let engine = json!({
        "image": "quay.io/strimzi/kafka:latest",
        "autoRebalance": [mode("remove-brokers"), {"mode": "imbalance"}],
    });
    let mut play = Play::placed(4, engine, &[0, 1, 2, 3]).await;
    let engines = Slow(play.room.clone(), Duration::from_secs(20));
    succeeded_by(&mut play, |context| context.engines = Arc::new(engines)).await;
    check_drain(&play).await;
}

/// Each look waits for it, and what is asked for meanwhile comes all the same: within the time that a test has.
#[tokio::test(start_paused = true)]
async fn brokers_come_and_go_though_the_engine_never_answers_the_looks() {
    let engine = json!({
        "image": "quay.io/strimzi/kafka:latest",
        "autoRebalance": [mode("remove-brokers"), {"mode": "imbalance"}],
    });
    let mut play = Play::placed(4, engine, &[0, 1, 2, 3]).await;
    let engines = Slow(play.room.clone(), Duration::from_secs(24 * 60 * 60));
    succeeded_by(&mut play, |context| context.engines = Arc::new(engines)).await;
    play.scale(5).await;
    play.until("the new one comes", async |play| play.brokers().await.len() == 5).await;
    play.scale(4).await;
    play.until("it goes", async |play| play.brokers().await.len() == 4).await;
    check_drain(&play).await;
}
