//! What we depend on: where it comes from, under which licence, and what must stay out.
//!
//! The policy is `deny.toml`, which cargo-deny reads too: one list, whoever checks it.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Finding, spdx};
use crate::metadata::{Metadata, Package};

/// Cargo's own name for crates.io.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
pub(super) struct Policy {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that one crate may have besides.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    #[serde(default)]
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

impl Policy {
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("deny.toml could not be read")
    }
}

pub(super) fn check(tree: &Metadata, policy: &Policy) -> Vec<Finding> {
    tree.packages
        .iter()
        .flat_map(|package| {
            let faults = [source(package), licence(package, policy), ban(package, policy)];
            faults
                .into_iter()
                .flatten()
                .map(|what| Finding::in_file(&format!("dependency {} {}", package.name, package.version), what))
        })
        .collect()
}

fn source(package: &Package) -> Option<String> {
    match package.source.as_deref() {
        // Ours; a path outside the workspace is found by the rule about paths.
        None | Some(CRATES_IO) => None,
        Some(elsewhere) => Some(format!("comes from {elsewhere}, not from crates.io")),
    }
}

fn licence(package: &Package, policy: &Policy) -> Option<String> {
    let Some(expression) = package.license.as_deref() else {
        return Some("names no licence".to_owned());
    };
    let allowed = |licence: &str| {
        let is_it = |name: &String| name == licence;
        policy.licenses.allow.iter().any(is_it)
            || policy
                .licenses
                .exceptions
                .iter()
                .any(|exception| exception.name == package.name && exception.allow.iter().any(is_it))
    };
    match spdx::satisfied(expression, &allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("licence `{expression}` is not allowed by deny.toml")),
        Err(why) => Some(format!("licence `{expression}` could not be read: {why}")),
    }
}

fn ban(package: &Package, policy: &Policy) -> Option<String> {
    let banned = policy.bans.deny.iter().find(|banned| banned.name == package.name)?;
    Some(format!("must stay out: {}", banned.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]
        [bans]
        deny = [{ crate = "aws-lc-rs", reason = "one crypto provider" }]
    "#;

    fn faults(name: &str, source: Option<&str>, license: Option<&str>) -> Vec<String> {
        let package = Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            source: source.map(str::to_owned),
            license: license.map(str::to_owned),
            dependencies: Vec::new(),
            manifest_path: String::new(),
        };
        let policy = Policy::parse(POLICY).unwrap();
        check(&Metadata { packages: vec![package], target_directory: "target".into() }, &policy)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn an_allowed_licence_from_crates_io_is_fine() {
        assert!(faults("serde", Some(CRATES_IO), Some("MIT OR Apache-2.0")).is_empty());
    }

    #[test]
    fn a_licence_that_is_not_listed_is_refused() {
        assert_eq!(
            faults("x", Some(CRATES_IO), Some("GPL-3.0-only")),
            ["licence `GPL-3.0-only` is not allowed by deny.toml"]
        );
        assert_eq!(faults("x", Some(CRATES_IO), None), ["names no licence"]);
    }

    #[test]
    fn an_exception_holds_for_its_crate_alone() {
        assert!(faults("roots", Some(CRATES_IO), Some("CDLA-Permissive-2.0")).is_empty());
        assert_eq!(faults("branches", Some(CRATES_IO), Some("CDLA-Permissive-2.0")).len(), 1);
    }

    #[test]
    fn a_git_dependency_is_refused() {
        let found = faults("x", Some("git+https://example.test/x#abc"), Some("MIT"));
        assert_eq!(found, ["comes from git+https://example.test/x#abc, not from crates.io"]);
    }

    #[test]
    fn a_banned_crate_is_refused_with_its_reason() {
        assert_eq!(faults("aws-lc-rs", Some(CRATES_IO), Some("MIT")), ["must stay out: one crypto provider"]);
    }
}
