//! `cargo xtask bench …`: builds what is to be compared, and lets the bench compare it.

pub(crate) mod balancer;

use std::{
    env::consts::EXE_SUFFIX,
    path::{self, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::{metadata::Metadata, process, real, workspace::Workspace};

/// How much of a bench.
#[derive(Args)]
struct Scope {
    /// Small sizes, under a minute: shows that it works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Measures this part alone (repeatable); `docs/benchmarks.md` names them.
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<String>,
    /// Writes the numbers there, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct KubeOptions {
    #[command(flatten)]
    scope: Scope,
    /// Measures one of the two alone.
    #[arg(long, value_name = "SERVER")]
    only: Option<Server>,
}

#[derive(Args)]
pub(crate) struct KafkaOptions {
    #[command(flatten)]
    scope: Scope,
    /// Leaves out what needs real brokers.
    #[arg(long)]
    no_real: bool,
}

#[derive(Args)]
pub(crate) struct EngineOptions {
    #[command(flatten)]
    scope: Scope,
}

#[derive(Args)]
pub(crate) struct OperatorOptions {
    #[command(flatten)]
    scope: Scope,
    /// So many clusters where there are many.
    #[arg(long, value_name = "NUMBER")]
    clusters: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    Ours,
    Real,
}

/// Both named in every call, though each needs but one: cargo then resolves the same features for the server and for the
/// bench, and optimises their common dependencies once instead of twice.
const PACKAGES: [&str; 4] = ["--package", "evenkeel-cli", "--package", "evenkeel-testkit"];

/// Builds the program and a bench of it, which is then to be run.
fn beside_program(workspace: &Workspace, name: &str, scope: &Scope) -> Result<Command> {
    let cargo = |arguments: &[&str]| {
        let mut cargo = process::cargo();
        cargo.args(arguments).args(PACKAGES).current_dir(workspace.root());
        cargo
    };
    process::run(cargo(&["build", "--locked", "--release"]).args(["--bin", "evenkeel", "--bench", name]))?;
    let mut bench = cargo(&["bench", "--locked"]);
    bench.args(["--bench", name, "--"]).args(scope.arguments()?);
    Ok(bench)
}

/// The operator over the embedded API, simulated brokers and engines. The bench itself is the operator's process, too.
pub(crate) fn operator(workspace: &Workspace, options: &OperatorOptions) -> Result<()> {
    let mut bench = process::cargo();
    bench.args(["bench", "--locked"]).args(PACKAGES).args(["--bench", "operator", "--"]);
    bench.args(options.scope.arguments()?).current_dir(workspace.root());
    if let Some(clusters) = options.clusters {
        bench.arg(format!("--clusters={clusters}"));
    }
    process::run(&mut bench)
}

/// The engine as users run it, over simulated brokers.
pub(crate) fn engine(workspace: &Workspace, options: &EngineOptions) -> Result<()> {
    let mut bench = beside_program(workspace, "engine", &options.scope)?;
    process::run(bench.env("EVENKEEL_BINARY", release_binary(workspace)?))
}

/// Our API server beside kube-apiserver and etcd.
pub(crate) fn kube(workspace: &Workspace, options: &KubeOptions) -> Result<()> {
    let mut bench = beside_program(workspace, "kube", &options.scope)?;
    if let Some(server) = options.only.and_then(|server| server.to_possible_value()) {
        bench.arg(format!("--only={}", server.get_name()));
    }
    if options.only != Some(Server::Real) {
        bench.env("EVENKEEL_BINARY", release_binary(workspace)?);
    }
    if options.only != Some(Server::Ours) {
        bench.env("EVENKEEL_KUBETEST", real::kubetest::binary(workspace)?);
    }
    process::run(&mut bench)
}

/// Our Kafka client: what it decodes and consumes, and its round trips beside another client's.
pub(crate) fn kafka(workspace: &Workspace, options: &KafkaOptions) -> Result<()> {
    let mut bench = process::cargo();
    bench.args(["bench", "--locked", "--package", "evenkeel-testkit", "--bench", "kafka", "--"]);
    bench.args(options.scope.arguments()?).current_dir(workspace.root());
    if options.no_real {
        bench.arg("--no-real");
    } else {
        bench.envs(real::kafka_parts(workspace)?);
    }
    process::run(&mut bench)
}

/// Where a release build puts the program.
fn release_binary(workspace: &Workspace) -> Result<PathBuf> {
    let release = Metadata::of_members(workspace)?.target_directory.join("release");
    Ok(release.join(format!("evenkeel{EXE_SUFFIX}")))
}

impl Scope {
    /// What a bench is told. It runs in another folder, so a path must not depend on ours.
    fn arguments(&self) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        if self.quick {
            arguments.push("--quick".to_owned());
        }
        arguments.extend(self.parts.iter().map(|part| format!("--part={part}")));
        if let Some(file) = &self.json {
            let file = path::absolute(file).context("the file for the numbers has no usable path")?;
            let file = file.to_str().context("the file for the numbers is not UTF-8")?;
            arguments.push(format!("--json={file}"));
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bench_is_told_what_was_asked_for() {
        let scope =
            Scope { quick: true, parts: vec!["lists".into(), "memory".into()], json: Some("numbers.json".into()) };
        let arguments = scope.arguments().unwrap();
        assert_eq!(arguments[..3], ["--quick", "--part=lists", "--part=memory"]);
        let file = arguments[3].strip_prefix("--json=").unwrap();
        assert!(PathBuf::from(file).is_absolute() && file.ends_with("numbers.json"), "{file}");
        let nothing = Scope { quick: false, parts: vec![], json: None };
        assert!(nothing.arguments().unwrap().is_empty());
    }
}
