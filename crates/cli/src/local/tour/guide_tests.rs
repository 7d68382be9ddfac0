//! The guide over an embedded server, with nobody who would change anything but the tests.

use evenkeel_api::{Kafka as KafkaResource, KafkaNodePool};
use evenkeel_apiserver::http::{Options, Shared};
use evenkeel_kafka::Settings as KafkaSettings;
use evenkeel_kafka::connect::Memory;
use k8s_openapi::api::core::v1::ConfigMap;
use std::sync::Arc;

use super::*;

async fn guide() -> Guide<Vec<u8>> {
    let shared = Shared::new(Options::default());
    crate::kube::install_crds(&shared).await.expect("they are valid");
    let kafka = Kafka::new(Arc::new(Memory::default()), KafkaSettings::new(Vec::new()));
    Guide::new(crate::kube::client(&shared), "default", "lagoon", kafka, Show::new(Vec::new(), false))
}

fn broken(outcome: anyhow::Result<()>) -> String {
    outcome.expect_err("it is broken").downcast::<Broken>().expect("a promise").0
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_no_verdict() {
    let mut guide = guide().await;
    let mut looks = 0;
    let outcome = guide
        .until("it comes", async |_| {
            looks += 1;
            anyhow::ensure!(looks % 3 == 0, "nobody answers");
            Ok(Standing::reached_if(looks >= 9, "not yet"))
        })
        .await;
    outcome.expect("it came");
    assert_eq!((looks, guide.kept()), (9, 1));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_and_says_where_it_stood() {
    let mut guide = guide().await;
    let begun = Instant::now();
    let outcome = guide.until("it comes", async |_| Err(anyhow::anyhow!("nobody answers"))).await;
    assert_eq!(broken(outcome), "it comes: not within 300 s; it stands at: nobody answers");
    assert!(begun.elapsed() >= PATIENCE);
    let begun = Instant::now();
    let outcome = guide.until("it comes", async |_| Ok(Standing::Never("it has failed".into()))).await;
    assert_eq!(broken(outcome), "it comes: it has failed");
    assert!(begun.elapsed() < PATIENCE && guide.kept() == 0, "what cannot come is not waited for");
}

#[tokio::test(start_paused = true)]
async fn what_must_last_is_looked_at_more_than_once() {
    let mut guide = guide().await;
    let mut looks = 0;
    let outcome = guide
        .throughout("it stays", async |_| {
            looks += 1;
            anyhow::ensure!(looks != 2, "nobody answers");
            Ok(true)
        })
        .await;
    outcome.expect("it stayed");
    assert!(looks > 5, "{looks}");
    let outcome = guide.throughout("it stays", async |_| Ok(looks < 3)).await;
    assert_eq!(broken(outcome), "it stays");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_at_does_not_last() {
    let mut guide = guide().await;
    let begun = Instant::now();
    let outcome = guide.throughout("it stays", async |_| Err(anyhow::anyhow!("nobody answers"))).await;
    assert_eq!(broken(outcome), "it stays: nothing is seen of it for 300 s: nobody answers");
    assert!(begun.elapsed() >= PATIENCE && guide.kept() == 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_what_is_done() {
    let mut guide = guide().await;
    guide.create::<ConfigMap>("\nmetadata:\n  name: a\ndata:\n  key: value\n").await.expect("made");
    guide.annotate::<ConfigMap>("a", "example.com/word", "x").await.expect("annotated");
    guide.patch::<ConfigMap>("a", &json!({"data": {"key": "other"}})).await.expect("patched");
    let found = guide.api::<ConfigMap>().get("a").await.expect("there");
    assert_eq!(found.annotations()["example.com/word"], "x");
    assert_eq!(found.data.expect("data")["key"], "other");
    guide.delete::<ConfigMap>("a").await.expect("deleted");
    assert!(guide.api::<ConfigMap>().get_opt("a").await.expect("asked").is_none());
    let shown = String::from_utf8(guide.show.into_inner()).expect("text");
    let expected = "  $ kubectl create -f - <<'END'\nmetadata:\n  name: a\ndata:\n  key: value\nEND\n  \
                    $ kubectl annotate configmap/a example.com/word=x\n  \
                    $ kubectl patch configmap/a --type merge -p '{\"data\":{\"key\":\"other\"}}'\n  \
                    $ kubectl delete configmap/a --wait=false\n";
    assert_eq!(shown, expected);
}

#[tokio::test(start_paused = true)]
async fn a_kafka_is_not_ready_before_its_pools_were_looked_at() {
    let guide = guide().await;
    let example = serde_saphyr::from_multiple::<Value>(include_str!("../example.yaml")).expect("YAML");
    for document in example {
        match document["kind"].as_str() {
            Some("Kafka") => drop(make::<KafkaResource>(&guide, document).await),
            _ => drop(make::<KafkaNodePool>(&guide, document).await),
        }
    }
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 1});
    say::<KafkaResource>(&guide, "lagoon", &ready).await;
    assert!(matches!(guide.readiness().await, Ok(Standing::Not(..))), "nobody has looked at the pools");
    for pool in ["pilots", "quay"] {
        say::<KafkaNodePool>(&guide, pool, &json!({"observedGeneration": 1})).await;
    }
    assert_eq!(guide.readiness().await.expect("asked"), Standing::Reached);
    let scaled = Patch::Merge(json!({"spec": {"replicas": 4}}));
    guide.api::<KafkaNodePool>().patch("quay", &PatchParams::default(), &scaled).await.expect("patched");
    assert!(matches!(guide.readiness().await, Ok(Standing::Not(..))), "it was scaled since");
}

async fn make<K: Told>(guide: &Guide<Vec<u8>>, document: Value) -> K {
    let wanted = serde_json::from_value(document).expect("a resource");
    guide.api::<K>().create(&PostParams::default(), &wanted).await.expect("made")
}

async fn say<K: Told>(guide: &Guide<Vec<u8>>, name: &str, status: &Value) {
    let patch = Patch::Merge(json!({"status": status}));
    guide.api::<K>().patch_status(name, &PatchParams::default(), &patch).await.expect("said");
}
