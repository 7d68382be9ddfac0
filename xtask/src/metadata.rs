//! What cargo knows about the workspace: its crates, their arrows, and all that they need.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{process, workspace::Workspace};

/// The part of `cargo metadata` that the rules look at.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// Where cargo puts what it builds.
    pub(crate) target_directory: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Where it comes from; nothing for the crates of this workspace.
    pub(crate) source: Option<String>,
    /// An SPDX expression.
    pub(crate) license: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) manifest_path: String,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or nothing for an ordinary dependency.
    pub(crate) kind: Option<String>,
    /// Set only for a crate in this repository.
    pub(crate) path: Option<String>,
}

impl Metadata {
    /// The crates of this workspace and what each names in its manifest.
    pub(crate) fn of_members(workspace: &Workspace) -> Result<Self> {
        Self::read(workspace, &["--no-deps"])
    }

    /// Every package in the dependency tree, whatever feature brings it in.
    pub(crate) fn of_everything(workspace: &Workspace) -> Result<Self> {
        Self::read(workspace, &["--all-features"])
    }

    fn read(workspace: &Workspace, arguments: &[&str]) -> Result<Self> {
        let printed = process::read(
            process::cargo()
                .args(["metadata", "--format-version", "1", "--locked"])
                .args(arguments)
                .current_dir(workspace.root()),
        )?;
        serde_json::from_str(&printed).context("cargo metadata printed something unexpected")
    }
}
