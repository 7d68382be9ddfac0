//! `evenkeel status`, as a program: what it shows of a Kubernetes that is there, and what it says if it is asked wrongly.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use evenkeel_api::{Kafka, KafkaRebalance};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::json;

fn evenkeel(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("status").args(arguments).env_remove("RUST_LOG").env("KUBECONFIG", "/nowhere/kubeconfig");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The complaint of a program that was asked for something that it does not do.
fn refusal(arguments: &[&str]) -> String {
    let output = evenkeel(arguments);
    let complaint = text(&output.stderr);
    assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
    complaint
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_one_line() {
    assert!(refusal(&["pod/p"]).contains("there is no status of a `pod`: write kafkarebalance/NAME or kafka/NAME"));
    assert!(refusal(&["kafka/"]).contains("names nothing"));
    assert!(refusal(&["r", "--kubeconfig", "/nowhere/at/all"]).contains("--kubeconfig /nowhere/at/all: "));
    assert!(refusal(&["a", "b"]).contains("unexpected argument"));
}

#[test]
fn without_a_kubeconfig_the_cause_is_said_once() {
    let output = evenkeel(&[]);
    let complaint = text(&output.stderr);
    assert_eq!((output.status.code(), complaint.lines().count()), (Some(1), 1), "{complaint}");
    assert!(complaint.starts_with("evenkeel: could not find the Kubernetes API; name a --kubeconfig: "), "{complaint}");
    assert_eq!(complaint.matches("/nowhere/kubeconfig").count(), 1, "{complaint}");
}

/// `evenkeel kube`, which ends with the test.
struct Kubernetes {
    program: Child,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Kubernetes {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut program = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["kube", "--install-crds", "--dir"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says where it is when it is ready.
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { program, kubeconfig, _folder: folder }
    }
}

async fn client(kubeconfig: &Path) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A Kafka, and a rebalance of it that is done.
async fn furnish(client: &Client) {
    let params = PostParams::default();
    let kafka = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "c"},
        "spec": {"cruiseControl": {"autoRebalance": [{"mode": "add-brokers"}]}}});
    Api::<Kafka>::default_namespaced(client.clone())
        .create(&params, &serde_json::from_value(kafka).unwrap())
        .await
        .unwrap();
    let rebalances = Api::<KafkaRebalance>::default_namespaced(client.clone());
    let rebalance = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
        "metadata": {"name": "r", "labels": {"strimzi.io/cluster": "c"}}, "spec": {}});
    let made = rebalances.create(&params, &serde_json::from_value(rebalance).unwrap()).await.unwrap();
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    rebalances.patch_status("r", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let owner =
        json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance", "name": "r", "uid": made.metadata.uid});
    let map = json!({"metadata": {"name": "r", "ownerReferences": [owner]}, "data": {"completedByteMovementPercentage": "100"}});
    Api::<ConfigMap>::default_namespaced(client.clone())
        .create(&params, &serde_json::from_value(map).unwrap())
        .await
        .unwrap();
}

#[test]
fn a_rebalance_a_cluster_and_all_of_them_are_shown() {
    let kubernetes = Kubernetes::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { furnish(&client(&kubernetes.kubeconfig).await).await });
    let shown = |arguments: &[&str]| {
        let mut all = vec!["--kubeconfig", kubernetes.kubeconfig.to_str().unwrap()];
        all.extend(arguments);
        let output = evenkeel(&all);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let bar = "#".repeat(30);
    let done = format!("KafkaRebalance r of c\nReady\n\nProgress  [{bar}] 100 %\n");
    assert_eq!(shown(&["r"]), done);
    assert_eq!(shown(&["kafkarebalance/r", "--watch"]), done, "what is over is not watched any longer");
    let cluster = shown(&["kafka/c"]);
    assert!(cluster.contains("Automatic rebalancing: Idle") && cluster.contains("add-brokers"), "{cluster}");
    let all = shown(&[]);
    assert!(all.contains("kafka/c") && all.contains("kafkarebalance/r  c        Ready"), "{all}");
    let missing = evenkeel(&["--kubeconfig", kubernetes.kubeconfig.to_str().unwrap(), "nobody"]);
    let complaint = text(&missing.stderr);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(complaint, "evenkeel: there is no KafkaRebalance nobody in namespace default\n");
}

/// `evenkeel status r --watch`, line by line.
struct Watch {
    program: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watch {
    fn start(kubernetes: &Kubernetes) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["status", "r", "--watch", "--kubeconfig"])
            .arg(&kubernetes.kubeconfig)
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(program.stdout.take().unwrap()).lines();
        Self { program, lines }
    }

    /// Reads on until a line has this in it.
    fn until(&mut self, what: &str) {
        for line in self.lines.by_ref() {
            if line.unwrap().contains(what) {
                return;
            }
        }
        panic!("it ended without `{what}`");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn whoever_watches_sees_it_go_on_begin_anew_and_go() {
    let kubernetes = Kubernetes::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(client(&kubernetes.kubeconfig));
    runtime.block_on(furnish(&client));
    let rebalances = Api::<KafkaRebalance>::default_namespaced(client.clone());
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let params = PatchParams::default();
    let annotated = |value| Patch::Merge(json!({"metadata": {"annotations": {"strimzi.io/rebalance": value}}}));
    let stands = |state: &str| Patch::Merge(json!({"status": {"conditions": [{"type": state, "status": "True"}]}}));
    let moved = |percent: &str| Patch::Merge(json!({"data": {"completedByteMovementPercentage": percent}}));

    // It is Ready, but a refresh was asked for: there is more to come.
    runtime.block_on(rebalances.patch("r", &params, &annotated(json!("refresh")))).unwrap();
    let mut watch = Watch::start(&kubernetes);
    watch.until("Asked for: refresh");
    runtime.block_on(async {
        maps.patch("r", &params, &moved("10")).await.unwrap();
        rebalances.patch_status("r", &params, &stands("Rebalancing")).await.unwrap();
        rebalances.patch("r", &params, &annotated(json!(null))).await.unwrap();
    });
    watch.until("10 %");
    runtime.block_on(maps.patch("r", &params, &moved("55"))).unwrap();
    watch.until("55 %");

    // The ConfigMap becomes somebody else's: what it says is about something else.
    let foreign =
        Patch::Merge(json!({"metadata": {"ownerReferences": null}, "data": {"completedByteMovementPercentage": "77"}}));
    runtime.block_on(maps.patch("r", &params, &foreign)).unwrap();
    runtime.block_on(rebalances.patch_status("r", &params, &stands("PendingProposal"))).unwrap();
    watch.until("PendingProposal");

    runtime.block_on(rebalances.delete("r", &DeleteParams::default())).unwrap();
    watch.until("KafkaRebalance r is gone");
    assert!(watch.program.wait().unwrap().success());
}
