//! Where servers work and log; it stays for the reader when the test that owns it fails.

use std::{path::Path, thread};

use anyhow::{Context, Result};
use tempfile::TempDir;

#[derive(Debug)]
pub(crate) struct RunFolder {
    whose: &'static str,
    folder: TempDir,
}

impl RunFolder {
    /// A new folder for a group of servers, whose name is part of the folder's.
    pub(crate) fn new(whose: &'static str) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("evenkeel-{whose}-"))
            .tempdir()
            .with_context(|| format!("could not make a folder for the {whose}"))?;
        Ok(Self { whose, folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    #[expect(clippy::print_stderr, reason = "whoever reads the failed test needs to know where")]
    pub(crate) fn keep(&mut self) {
        self.folder.disable_cleanup(true);
        eprintln!("the logs of the {} are kept in {}", self.whose, self.path().display());
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if thread::panicking() {
            self.keep();
        }
    }
}
