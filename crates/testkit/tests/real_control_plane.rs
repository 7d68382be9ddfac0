//! The real control plane itself: it starts, serves, collects garbage, and kubectl can reach it.
#![cfg(feature = "real-kube")]

use std::time::Duration;

use evenkeel_testkit::{
    kubectl::Kubectl,
    real_kube::{ControlPlane, KUBETEST},
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;

mod real_arm {
    use super::*;

    #[tokio::test]
    async fn an_object_is_created_watched_and_deleted() {
        let client = client().await;
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let since = maps.list(&Default::default()).await.unwrap().metadata.resource_version.unwrap();

        maps.create(&PostParams::default(), &config_map("watched", &[])).await.unwrap();
        maps.delete("watched", &DeleteParams::default()).await.unwrap();

        let only_this = WatchParams::default().fields("metadata.name=watched");
        let events = maps.watch(&only_this, &since).await.unwrap();
        let seen: Vec<_> = events.take(2).collect().await;
        assert!(matches!(&seen[0], Ok(WatchEvent::Added(map)) if map.name_any() == "watched"));
        assert!(matches!(&seen[1], Ok(WatchEvent::Deleted(map)) if map.name_any() == "watched"));
    }

    #[tokio::test]
    async fn what_an_owner_leaves_behind_is_collected() {
        let client = client().await;
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let create = async |map: ConfigMap| maps.create(&PostParams::default(), &map).await.unwrap();
        let owner = create(config_map("owner", &[])).await;
        create(config_map("owned", &[&owner])).await;

        maps.delete("owner", &DeleteParams::background()).await.unwrap();

        let gone = async {
            while maps.get_opt("owned").await.unwrap().is_some() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.expect("nobody collected it");
    }

    #[tokio::test]
    async fn kubectl_reaches_it_with_the_kubeconfig() {
        let control_plane = ControlPlane::shared().await.unwrap();
        let kubetest = std::env::var_os(KUBETEST).unwrap();
        let version = Kubectl::in_kubetest(kubetest.as_ref())
            .command(&control_plane.kubeconfig())
            .args(["version", "--output=json"])
            .output()
            .unwrap();
        let version: serde_json::Value = serde_json::from_slice(&version.stdout).unwrap();
        assert_eq!(version["serverVersion"]["gitVersion"], version["clientVersion"]["gitVersion"]);
        assert_eq!(version["serverVersion"]["minor"], "35");
    }
}

async fn client() -> Client {
    let control_plane = ControlPlane::shared().await.unwrap();
    control_plane.start_controller_manager().await.unwrap();
    control_plane.client().await.unwrap()
}

fn config_map(name: &str, owners: &[&ConfigMap]) -> ConfigMap {
    let owners: Vec<_> = owners
        .iter()
        .map(|owner| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid()}))
        .collect();
    serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owners}})).unwrap()
}
