//! `evenkeel kube` as users run it: a process of its own, reached over TLS with the kubeconfig that it wrote.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{readiness, server::Server};

/// The environment variable with the path of the `evenkeel` binary.
pub const EVENKEEL: &str = "EVENKEEL_BINARY";

const ROLE: &str = "kube";
const KUBECONFIG: &str = "kubeconfig";

/// A running `evenkeel kube`; it is killed when this is dropped.
#[derive(Debug)]
pub struct EvenkeelKube {
    // In this order: the process goes before the folder it writes to.
    server: Server,
    folder: TempDir,
}

impl EvenkeelKube {
    /// Starts it on a free port and returns once the API is ready.
    ///
    /// # Errors
    ///
    /// When it ends early, or is not ready in time; the error carries the end of its log.
    pub async fn start(binary: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("evenkeel-kube-")
            .tempdir()
            .context("could not make a folder for the kubeconfig")?;
        let kubeconfig = folder.path().join(KUBECONFIG);
        let flags = ["--listen=127.0.0.1:0".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
        let mut server = Server::start(binary, folder.path(), ROLE, &flags)?;
        readiness::quick_api(&mut server, &kubeconfig).await?;
        Ok(Self { server, folder })
    }

    /// The kubeconfig that it wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(KUBECONFIG)
    }

    /// The server's role and process id.
    pub fn process(&self) -> (&'static str, u32) {
        (ROLE, self.server.id())
    }
}
