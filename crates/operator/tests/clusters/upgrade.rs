//! The operator and the engine are replaced by a newer build in the midst of a run.
//!
//! A newer build is another image: the operator that is started with it gives it to the engine, whose pod is replaced.
//! An older build is what it has left: records of a run, in each form in which they were ever written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use evenkeel_api::annotations::ASKED_OF;
use evenkeel_api::{Kafka, KafkaRebalance};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::play::{ADD, Play, REMOVE, operator, scaling};
use crate::stage::{CLUSTER, patch};

const NEXT: &str = "registry.example/evenkeel:next";
const TRACKER: &str = "my-cluster-rebalancing-tracker";

/// The records of operators that emptied broker 3, by the name of the file that they are kept in.
fn forms() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/forms");
    let form = |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), form(&path)))
        .collect()
}

/// The merge patch that makes one of the other.
fn instead(of: &Value, new: &Value) -> Value {
    let (Value::Object(of), Value::Object(new)) = (of, new) else { return new.clone() };
    let gone = of.keys().filter(|name| !new.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let there = new.iter().map(|(name, value)| (name.clone(), instead(of.get(name).unwrap_or(&Value::Null), value)));
    Value::Object(gone.chain(there).collect())
}

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
        let session = session_of(&begun).expect("a run has a name");
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
        self.until_it_is_over(name, &begun, session).await;
    }

    /// It is the same one to its end, and nothing is left of it.
    async fn until_it_is_over(&self, name: &str, begun: &KafkaRebalance, session: &str) {
        self.until("it is over", async |play| {
            let Some(now) = play.rebalance(name).await else { return true };
            assert_eq!(now.metadata.uid, begun.metadata.uid, "the run goes on, and no other is made");
            assert!(session_of(&now).is_none_or(|now| now == session), "it was asked for twice");
            false
        })
        .await;
        self.until_settled().await;
        let told = self.told().await;
        assert_eq!(told.len(), 2, "there and back: {told:?}");
    }

    /// Ends the operator, puts what an older one had on record in the place of its records, and starts it again. What
    /// the engine and the API server have called things stays as it is.
    async fn take_over_from(&mut self, older: &Value) {
        self.operator.abort();
        let _ = (&mut self.operator).await;
        let rebalances = self.stage.api::<KafkaRebalance>();
        let live = serde_json::to_value(rebalances.get(REMOVE).await.unwrap()).unwrap();
        let mut notes = older["rebalance"]["metadata"]["annotations"].clone();
        if let Some(asked_of) = notes.get_mut(ASKED_OF) {
            *asked_of = live["metadata"]["annotations"][ASKED_OF].clone();
        }
        let notes = instead(&live["metadata"]["annotations"], &notes);
        patch(&rebalances, REMOVE, json!({"metadata": {"annotations": notes}})).await;
        let mut status = older["rebalance"]["status"].clone();
        status["sessionId"] = live["status"]["sessionId"].clone();
        status["optimizationResult"]["proposalId"] = live["status"]["optimizationResult"]["proposalId"].clone();
        let status = Patch::Merge(json!({"status": instead(&live["status"], &status)}));
        rebalances.patch_status(REMOVE, &PatchParams::default(), &status).await.unwrap();

        let maps = self.stage.api::<ConfigMap>();
        let uid = |rebalance: &Value| rebalance["metadata"]["uid"].as_str().unwrap().to_owned();
        let memory = older["tracker"]["data"]["memory.json"].as_str().unwrap();
        let mut data = older["tracker"]["data"].clone();
        data["memory.json"] = json!(memory.replace(&uid(&older["rebalance"]), &uid(&live)));
        let tracker = serde_json::to_value(maps.get(TRACKER).await.unwrap()).unwrap();
        patch(&maps, TRACKER, json!({"data": instead(&tracker["data"], &data)})).await;

        let kafkas = self.stage.api::<Kafka>();
        let kafka = serde_json::to_value(kafkas.get(CLUSTER).await.unwrap()).unwrap();
        let mut status = older["kafka"]["status"].clone();
        status["clusterId"] = kafka["status"]["clusterId"].clone();
        let status = Patch::Merge(json!({"status": instead(&kafka["status"], &status)}));
        kafkas.patch_status(CLUSTER, &PatchParams::default(), &status).await.unwrap();
        self.operator = tokio::spawn(operator(self.stage.context.clone(), self.machines.clone(), self.room.clone()));
    }
}

fn session_of(rebalance: &KafkaRebalance) -> Option<&str> {
    rebalance.status.as_ref()?.session_id.as_deref()
}

#[tokio::test(start_paused = true)]
async fn a_drain_on_record_in_any_form_is_carried_to_its_end() {
    let forms = forms();
    assert!(forms.contains_key("1.json"), "{:?}", forms.keys());
    for (form, older) in forms {
        let mut play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
        play.scale(3).await;
        play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
        let begun = play.rebalance(REMOVE).await.unwrap();
        play.take_over_from(&older).await;
        assert!(play.is_moving(REMOVE).await, "{form}: it was replaced in the midst of the run");
        play.until_it_is_over(REMOVE, &begun, session_of(&begun).expect("a run has a name")).await;
        play.until("the drained one goes", async |play| play.brokers().await.len() == 3).await;
        assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]), "{form}");
        let tracker = play.stage.api::<ConfigMap>().get(TRACKER).await.unwrap().data.unwrap();
        let memory: Value = serde_json::from_str(&tracker["memory.json"]).unwrap();
        assert!(memory["inSight"].is_null(), "{form}: {memory}");
        play.operator.abort();
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
