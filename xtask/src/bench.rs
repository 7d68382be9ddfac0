//! `cargo xtask bench …`: builds what is to be compared, and lets the bench compare it.

use std::{
    env::consts::EXE_SUFFIX,
    path::{self, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::{metadata::Metadata, process, real, workspace::Workspace};

#[derive(Args)]
pub(crate) struct KubeOptions {
    /// Small sizes, under a minute: shows that it works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Measures one of the two alone.
    #[arg(long, value_name = "SERVER")]
    only: Option<Server>,
    /// Writes the numbers there, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    Ours,
    Real,
}

/// Our API server beside kube-apiserver and etcd.
pub(crate) fn kube(workspace: &Workspace, options: &KubeOptions) -> Result<()> {
    let mut bench = process::cargo();
    bench
        .args(["bench", "--locked", "--package", "evenkeel-testkit", "--bench", "kube", "--"])
        .args(options.arguments()?)
        .current_dir(workspace.root());
    if options.only != Some(Server::Real) {
        bench.env("EVENKEEL_BINARY", evenkeel(workspace)?);
    }
    if options.only != Some(Server::Ours) {
        bench.env("EVENKEEL_KUBETEST", real::kubetest::binary(workspace)?);
    }
    process::run(&mut bench)
}

/// The binary as a user builds it: the features of the product alone, none that tests bring in.
fn evenkeel(workspace: &Workspace) -> Result<PathBuf> {
    process::run(release_build().current_dir(workspace.root()))?;
    let target = Metadata::of_members(workspace)?.target_directory;
    Ok(target.join("release").join(format!("evenkeel{EXE_SUFFIX}")))
}

fn release_build() -> Command {
    let mut cargo = process::cargo();
    cargo.args(["build", "--locked", "--release", "--package", "evenkeel-cli"]);
    cargo
}

impl KubeOptions {
    /// What the bench is told. It runs in another folder, so a path must not depend on ours.
    fn arguments(&self) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        if self.quick {
            arguments.push("--quick".to_owned());
        }
        if let Some(server) = self.only.and_then(|server| server.to_possible_value()) {
            arguments.push(format!("--only={}", server.get_name()));
        }
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
        let options = KubeOptions { quick: true, only: Some(Server::Ours), json: Some("numbers.json".into()) };
        let arguments = options.arguments().unwrap();
        assert_eq!(arguments[..2], ["--quick", "--only=ours"]);
        let file = arguments[2].strip_prefix("--json=").unwrap();
        assert!(PathBuf::from(file).is_absolute() && file.ends_with("numbers.json"), "{file}");
        let nothing = KubeOptions { quick: false, only: None, json: None };
        assert!(nothing.arguments().unwrap().is_empty());
    }
}
