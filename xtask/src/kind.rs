//! `cargo xtask kind`: the operator, its brokers and its engine under a real kubelet.
//!
//! CI has no containers, so nothing here runs there: it is for those who have docker, and does what `docs/install.md` says
//! by hand. The cluster stays until `kind delete cluster --name evenkeel`.

use std::ffi::OsStr;

use anyhow::{Context, Result, bail};

use crate::{process, workspace::Workspace};

const CLUSTER: &str = "evenkeel";
const IMAGE: &str = "evenkeel:kind";
const EXAMPLE: &str = "examples/cluster-small.yaml";
const ENGINE: &str = "deployment/dinghy-cruise-control";
/// What must be there, and cannot be made here.
const NEEDED: [&str; 3] = ["docker", "kind", "kubectl"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|program| !process::is_installed(program)).collect();
    if !missing.is_empty() {
        bail!("this needs {}, and here is no {}", NEEDED.join(", "), missing.join(", no "));
    }
    let there = process::read(process::command("kind").args(["get", "clusters"]))?;
    if !there.lines().any(|name| name == CLUSTER) {
        process::run(process::command("kind").args(["create", "cluster", "--name", CLUSTER]))?;
    }
    let folder = tempfile::tempdir().context("could not make a folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let text = process::read(process::command("kind").args(["get", "kubeconfig", "--name", CLUSTER]))?;
    std::fs::write(&kubeconfig, text).context("could not write a kubeconfig")?;
    let run = |program: &str, arguments: &[&str]| {
        let cluster: (&str, &OsStr) = ("KUBECONFIG", kubeconfig.as_os_str());
        process::run(process::command(program).args(arguments).envs([cluster]).current_dir(workspace.root()))
    };
    run("docker", &["build", "--file", "deploy/Containerfile", "--tag", IMAGE, "."])?;
    run("kind", &["load", "docker-image", IMAGE, "--name", CLUSTER])?;
    run("cargo", &["run", "--package", "evenkeel-cli", "--", "install", "--apply", "--image", IMAGE])?;
    run("kubectl", &["apply", "--server-side", "--filename", EXAMPLE])?;
    run("kubectl", &["wait", "kafka", "--all", "--for=condition=Ready", "--timeout=600s"])?;
    // The engine is ready on its own account.
    run("kubectl", &["rollout", "status", ENGINE, "--timeout=600s"])
}
