//! The real control plane as one binary: built from published Go modules, kept by content hash.
//!
//! A cold build takes about a quarter of an hour of CPU, so the result is [kept](super::cache).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cache;
use crate::{process, workspace::Workspace};

const SOURCE: &str = "real/kubetest";
/// All that decides what the binary is, besides the flags.
const SOURCE_FILES: [&str; 3] = ["go.mod", "go.sum", "main.go"];
/// What the servers call themselves; the version of `k8s.io/kubernetes` in go.mod.
const KUBERNETES: (&str, &str, &str) = ("1", "35", "4");

/// The path of the binary, built first if no earlier run left it.
pub(crate) fn binary(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.path(SOURCE);
    let mut parts = cache::contents(&source, &SOURCE_FILES)?;
    parts.extend(build_arguments().into_iter().map(String::into_bytes));
    let kept = cache::folder("kubetest", &parts)?;
    cache::make_once(&kept, |folder| {
        println!("building the real control plane, once: minutes on a cold machine");
        build(&source, folder)
    })?;
    Ok(kept.join("kubetest"))
}

fn build(source: &Path, folder: &Path) -> Result<()> {
    process::run(
        process::command("go")
            .args(build_arguments())
            .arg("-o")
            .arg(folder.join("kubetest"))
            .arg(".")
            .env("CGO_ENABLED", "0")
            .current_dir(source),
    )
    .context("the real control plane could not be built (it needs Go 1.25 or newer)")
}

fn build_arguments() -> Vec<String> {
    let (major, minor, patch) = KUBERNETES;
    let mut linker = String::from("-s -w");
    // Left alone, the servers and kubectl report a placeholder, and clients then skip what they
    // do only for servers known to be new enough.
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{major}.{minor}.{patch}")),
            ("gitMajor", major.to_owned()),
            ("gitMinor", minor.to_owned()),
            ("gitTreeState", "clean".to_owned()),
        ] {
            linker.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    ["build", "-p", "2", "-trimpath", "-ldflags", &linker].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_call_themselves_what_go_mod_says() {
        let workspace = Workspace::find().unwrap();
        let (major, minor, patch) = KUBERNETES;
        let go_mod = workspace.read("real/kubetest/go.mod").unwrap();
        assert!(go_mod.contains(&format!("k8s.io/kubernetes v{major}.{minor}.{patch}\n")));
    }
}
