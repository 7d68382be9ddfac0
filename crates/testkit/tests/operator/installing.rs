//! The operator is put on a cluster and taken off again, in every way in which somebody might be hurt by it.

use std::time::{Duration, Instant};

use evenkeel_api::{Kafka, KafkaRebalance, annotations};
use evenkeel_operator::installation::{self, DEFAULT_NAMESPACE, Done, Extent, Manifests, Outcome};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// How long kinds may take until they are served.
const PATIENCE: Duration = Duration::from_secs(120);

mod embedded_arm {
    #[tokio::test]
    async fn nothing_hangs_and_what_others_installed_stays() {
        super::nothing_hangs_and_what_others_installed_stays(evenkeel_testkit::embedded().await, async || {}).await;
    }
}

#[cfg(feature = "real-kube")]
mod real_arm {
    use evenkeel_testkit::real_kube::{ControlPlane, KUBETEST};

    /// On a control plane of its own: it removes everything.
    #[tokio::test]
    async fn nothing_hangs_and_what_others_installed_stays() {
        let kubetest = std::env::var_os(KUBETEST).expect("`cargo xtask real kube` says where kubetest is");
        let control_plane = ControlPlane::start(kubetest.as_ref()).await.expect("a control plane");
        let client = control_plane.client().await.expect("a client");
        let controllers = async || control_plane.start_controller_manager().await.expect("the real controllers");
        super::nothing_hangs_and_what_others_installed_stays(client, controllers).await;
    }
}

async fn put(client: &Client) -> Vec<Done> {
    installation::put(client, &Manifests::default()).await.expect("the manifests are taken")
}

async fn remove(client: &Client, extent: Extent) -> Vec<Done> {
    installation::remove(client, &Manifests::default(), extent).await.expect("a removal")
}

/// `controllers` starts those that every cluster has: the real ones want to know our kinds from the beginning.
async fn nothing_hangs_and_what_others_installed_stays(client: Client, controllers: impl AsyncFn()) {
    let all_applied = |done: &[Done]| assert!(done.iter().all(|it| it.outcome == Outcome::Applied), "{done:?}");
    all_applied(&put(&client).await);
    all_applied(&put(&client).await);
    controllers().await;
    let kafkas = Api::<Kafka>::namespaced(client.clone(), "default");
    let rebalances = Api::<KafkaRebalance>::namespaced(client.clone(), "default");
    let begun = Instant::now();
    while kafkas.list(&Default::default()).await.is_err() || rebalances.list(&Default::default()).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "our kinds are not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let kafka = json!({"metadata": {"name": "lagoon"}, "spec": {}});
    kafkas.create(&PostParams::default(), &serde_json::from_value(kafka).unwrap()).await.expect("a Kafka");
    // As an operator leaves it that was killed in the midst of a run.
    let finalizers = [annotations::REBALANCE_FINALIZER, annotations::AUTO_REBALANCING_FINALIZER];
    let held = json!({"metadata": {"name": "held", "finalizers": finalizers}, "spec": {}});
    rebalances.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.expect("a rebalance");
    rebalances.delete("held", &DeleteParams::default()).await.expect("a deletion that waits");
    assert!(rebalances.get_opt("held").await.expect("an answer").is_some());

    // Clusters do not go by the way.
    let refused =
        installation::remove(&client, &Manifests::default(), Extent::Crds).await.expect_err("a Kafka is there");
    assert!(refused.to_string().contains("default/lagoon"), "{refused}");
    let done = remove(&client, Extent::Operator).await;
    assert!(!done.iter().any(|it| it.outcome == Outcome::Going), "{done:?}");
    assert!(rebalances.get_opt("held").await.expect("an answer").is_none(), "its finalizers are off: {done:?}");
    assert!(kafkas.get_opt("lagoon").await.expect("an answer").is_some(), "clusters stay");
    let namespaces = Api::<Namespace>::all(client.clone());
    assert!(namespaces.get_opt(DEFAULT_NAMESPACE).await.expect("an answer").is_none());

    // If it is said that they may, everything goes.
    all_applied(&put(&client).await);
    let done = remove(&client, Extent::Clusters).await;
    assert!(done.iter().all(|it| it.outcome == Outcome::Removed), "{done:?}");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let left = definitions.list_metadata(&Default::default()).await.expect("a list").items;
    assert!(left.is_empty(), "{left:?}");

    // Somebody else's definition is neither overwritten nor removed.
    let mut foreign = evenkeel_api::crds().remove(0);
    foreign.metadata.labels = Some([("app".to_owned(), "strimzi".to_owned())].into());
    definitions.create(&PostParams::default(), &foreign).await.expect("a definition");
    let name = foreign.metadata.name.unwrap_or_default();
    for done in [put(&client).await, remove(&client, Extent::Clusters).await] {
        let left: Vec<_> = done.iter().filter(|it| matches!(it.outcome, Outcome::Left(_))).collect();
        assert_eq!(left.len(), 1, "{done:?}");
        assert!(left[0].what.ends_with(&name), "{left:?}");
    }
    let found = definitions.get(&name).await.expect("it is still there").metadata;
    assert_eq!((found.labels, found.generation), (foreign.metadata.labels, Some(1)));
}
