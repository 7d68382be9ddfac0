//! Where the repository is, and which files are its own.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::process;

/// The repository that this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // Set by `cargo run`; the value compiled in serves a binary started by hand.
        let manifest_dir =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir.parent().context("xtask does not live in a workspace")?.to_path_buf();
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        fs::read_to_string(self.path(relative)).with_context(|| format!("could not read {relative}"))
    }

    /// Paths, relative to the root, of all files that git tracks or would track, in order.
    ///
    /// New files count before they are added, so that tidy speaks up before the commit does.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let listed = process::command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .context("could not start git")?;
        anyhow::ensure!(
            listed.status.success(),
            "git could not list the files of {}: {}",
            self.root.display(),
            String::from_utf8_lossy(&listed.stderr).trim()
        );
        let mut files: Vec<String> = String::from_utf8(listed.stdout)
            .context("a path is not UTF-8")?
            .split_terminator('\0')
            .map(str::to_owned)
            // Deleted in the work tree, not yet in the index.
            .filter(|file| self.path(file).is_file())
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}
