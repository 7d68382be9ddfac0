//! The operator and the engine are replaced by a newer build in the midst of a run.
//!
//! A newer build is another image: the operator that is started with it gives it to the engine, whose pod is replaced.
//! That records of older builds are read by newer ones is tested where they are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::play::{ADD, Play, REMOVE, operator, scaling};

const NEXT: &str = "registry.example/evenkeel:next";

impl Play {
    /// Ends the operator, and starts the next version of it.
    async fn upgrade(&mut self) {
        self.operator.abort();
        let _ = (&mut self.operator).await;
        let mut context = self.stage.context.clone();
        let mut settings = (*context.settings).clone();
        settings.clusters.engine_image = NEXT.to_owned();
        settings.clusters.own_image = NEXT.to_owned();
        context.settings = Arc::new(settings);
        self.operator = tokio::spawn(operator(context, self.machines.clone(), self.room.clone()));
    }

    /// Names and images of the engine's pods.
    async fn engines(&self) -> Vec<(String, Option<String>)> {
        let pods = self.stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        let engines = pods.into_iter().filter(|pod| pod.name_any().contains("cruise-control"));
        let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone());
        engines.map(|pod| (pod.name_any(), image(&pod))).collect()
    }

    /// Upgrades while a rebalance moves data: it is the same one to its end, and was asked for once.
    async fn upgrade_during(&mut self, name: &str) {
        self.until("data moves", async |play| play.is_moving(name).await).await;
        let begun = self.rebalance(name).await.unwrap();
        let session = begun.status.and_then(|status| status.session_id).expect("a run has a name");
        let old = self.engines().await;
        let brokers = self.brokers().await;
        self.upgrade().await;
        self.until("the new engine is there, and no other", async |play| {
            let engines = play.engines().await;
            engines.iter().all(|engine| !old.contains(engine) && engine.1.as_deref() == Some(NEXT))
                && engines.len() == 1
        })
        .await;
        assert!(self.is_moving(name).await, "it was replaced in the midst of the run");
        assert_eq!(self.brokers().await, brokers, "brokers have nothing to do with it");
        self.until("it is over", async |play| {
            let Some(now) = play.rebalance(name).await else { return true };
            assert_eq!(now.metadata.uid, begun.metadata.uid, "the run goes on, and no other is made");
            let now = now.status.and_then(|status| status.session_id);
            assert!(now.is_none_or(|now| now == session), "it was asked for twice");
            false
        })
        .await;
        self.until_settled().await;
        let told = self.told().await;
        assert_eq!(told.len(), 2, "there and back: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_goes_on_under_newer_builds() {
    let mut play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.upgrade_during(REMOVE).await;
    play.until("the drained one goes", async |play| play.brokers().await.len() == 3).await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn new_brokers_get_their_data_under_newer_builds() {
    let mut play = Play::with(3, scaling()).await;
    play.scale(5).await;
    play.upgrade_during(ADD).await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3, 4]));
}
