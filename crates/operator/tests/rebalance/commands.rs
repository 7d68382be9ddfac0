//! The commands with which people follow a rebalance, as they are written in its proposal, run as they stand.

use std::path::Path;
use std::process::Command;

use evenkeel_apiserver::serve::{Server, Settings};
use evenkeel_testkit::kubectl::{Kubectl, in_ci};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;

use crate::stage::Stage;

const NAME: &str = "my-rebalance";

/// The ConfigMap of a rebalance that moves data.
async fn of_a_run() -> ConfigMap {
    let stage = Stage::embedded().await;
    let _operator = stage.operator();
    stage.run(NAME).await;
    let has_estimate = || async { stage.data(NAME, "estimatedTimeToCompletionInMinutes").await.is_some() };
    stage.until("there is an estimate", has_estimate).await;
    stage.api::<ConfigMap>().get(NAME).await.unwrap()
}

/// What a shell makes of a pipe that begins with kubectl.
fn shell(kubectl: &Kubectl, kubeconfig: &Path, filter: &str) -> Value {
    let mut command = kubectl.command(kubeconfig);
    let found = command.args(["get", "configmaps", NAME, "-o", "json"]).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let file = kubeconfig.with_extension("json");
    std::fs::write(&file, &found.stdout).unwrap();
    let printed = Command::new("jq").arg(filter).arg(&file).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    serde_json::from_slice(&printed.stdout).unwrap()
}

#[test]
fn kubectl_and_jq_show_how_far_a_rebalance_is() {
    let kubectls = Kubectl::installed_or_skip("the commands of the progress proposal");
    if Command::new("jq").arg("--version").output().is_err() {
        assert!(!in_ci(), "jq is not installed, and in CI nothing may be skipped unseen");
        return;
    }
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let mut map = paused.block_on(of_a_run());
    drop(paused);
    // For kubectl it has to stand behind a socket, where time passes.
    map.metadata.resource_version = None;
    map.metadata.owner_references = None;
    map.metadata.namespace = None;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _server = runtime.block_on(async {
        let server = Server::start(Settings::default()).await.unwrap();
        server.write_kubeconfig(&kubeconfig).unwrap();
        let client = kube::Client::new(evenkeel_apiserver::http::router(server.shared().clone()), "default");
        Api::<ConfigMap>::default_namespaced(client).create(&PostParams::default(), &map).await.unwrap();
        server
    });
    for kubectl in &kubectls {
        let ask = |filter: &str| shell(kubectl, &kubeconfig, filter);
        let whole = |value: Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
        let minutes = ask(r#".["data"]["estimatedTimeToCompletionInMinutes"]"#);
        assert!(whole(minutes.clone()).is_some(), "{minutes}");
        let percent = ask(r#".["data"]["completedByteMovementPercentage"]"#);
        assert!(whole(percent.clone()).is_some_and(|it| (1..=100).contains(&it)), "{percent}");
        let executor = ask(r#".["data"]["executorState"] | fromjson | ."#);
        assert_eq!(executor["state"], "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    }
}
