//! The real control plane as one binary: built from published Go modules, kept by content hash.
//!
//! A cold build takes about a quarter of an hour of CPU, so the result is kept in the user's cache
//! folder, where neither `cargo clean` nor a fresh clone loses it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{process, workspace::Workspace};

const SOURCE: &str = "real/kubetest";
/// All that decides what the binary is, besides the flags.
const SOURCE_FILES: [&str; 3] = ["go.mod", "go.sum", "main.go"];
/// What the servers call themselves; the version of `k8s.io/kubernetes` in go.mod.
const KUBERNETES: (&str, &str, &str) = ("1", "35", "4");

/// The path of the binary, built first if no earlier run left it.
pub(crate) fn binary(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.path(SOURCE);
    let mut contents = Vec::new();
    for file in SOURCE_FILES {
        let path = source.join(file);
        let text = fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
        contents.push(text);
    }
    let kept = cache_folder()?.join(format!("kubetest-{}", fingerprint(&contents, &build_arguments())));
    let binary = kept.join("kubetest");
    if binary.is_file() {
        return Ok(binary);
    }
    println!("building the real control plane, once: minutes on a cold machine");
    build(&source, &kept)?;
    Ok(binary)
}

/// Builds beside the final place and renames, so that a half-written binary is never found there.
fn build(source: &Path, kept: &Path) -> Result<()> {
    let parent = kept.parent().context("the cache has no parent folder")?;
    fs::create_dir_all(parent).with_context(|| format!("could not make {}", parent.display()))?;
    let unfinished = tempfile::Builder::new()
        .prefix("kubetest-unfinished-")
        .tempdir_in(parent)
        .with_context(|| format!("could not write in {}", parent.display()))?;
    process::run(
        process::command("go")
            .args(build_arguments())
            .arg("-o")
            .arg(unfinished.path().join("kubetest"))
            .arg(".")
            .env("CGO_ENABLED", "0")
            .current_dir(source),
    )
    .context("the real control plane could not be built (it needs Go 1.25 or newer)")?;
    let finished = unfinished.keep();
    match fs::rename(&finished, kept) {
        Ok(()) => Ok(()),
        // Another run was faster; its binary is the same.
        Err(_) if kept.join("kubetest").is_file() => {
            fs::remove_dir_all(&finished).context("could not remove a superfluous build")
        }
        Err(cause) => Err(cause).with_context(|| format!("could not move the build to {}", kept.display())),
    }
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

/// `$XDG_CACHE_HOME/evenkeel`, or `~/.cache/evenkeel`.
fn cache_folder() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => env::home_dir().context("neither XDG_CACHE_HOME nor a home folder is known")?.join(".cache"),
    };
    Ok(base.join("evenkeel"))
}

/// Changes when anything does that could change the binary.
fn fingerprint(contents: &[Vec<u8>], arguments: &[String]) -> String {
    let mut hasher = Sha256::new();
    let platform = [env::consts::OS, env::consts::ARCH];
    let parts = contents
        .iter()
        .map(Vec::as_slice)
        .chain(arguments.iter().map(String::as_bytes))
        .chain(platform.iter().map(|word| word.as_bytes()));
    for part in parts {
        // The length keeps two neighbours from trading bytes unnoticed.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    digest.iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_sees_contents_flags_and_where_one_ends() {
        let files = |a: &str, b: &str| vec![a.as_bytes().to_vec(), b.as_bytes().to_vec()];
        let flags = |flag: &str| vec![flag.to_owned()];
        let before = fingerprint(&files("module x", "sum"), &flags("-s"));
        assert_eq!(before, fingerprint(&files("module x", "sum"), &flags("-s")));
        assert_ne!(before, fingerprint(&files("module y", "sum"), &flags("-s")));
        assert_ne!(before, fingerprint(&files("module x", "sum"), &flags("-w")));
        assert_ne!(before, fingerprint(&files("module xs", "um"), &flags("-s")));
    }

    #[test]
    fn the_servers_call_themselves_what_go_mod_says() {
        let workspace = Workspace::find().unwrap();
        let (major, minor, patch) = KUBERNETES;
        let go_mod = workspace.read("real/kubetest/go.mod").unwrap();
        assert!(go_mod.contains(&format!("k8s.io/kubernetes v{major}.{minor}.{patch}\n")));
    }
}
