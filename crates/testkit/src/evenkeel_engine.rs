//! `evenkeel engine` as users run it: a process of its own, over any Kafka, reached over HTTP.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::server::Server;

const ROLE: &str = "engine";
const PROPERTIES: &str = "cruisecontrol.properties";
const CAPACITY: &str = "capacity.json";
/// How long it may take until it listens, which waits for nothing.
const LISTENS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A running `evenkeel engine`; it is killed when this is dropped.
#[derive(Debug)]
pub struct EvenkeelEngine {
    // In this order: the process goes before the folder it reads from.
    server: Server,
    _folder: TempDir,
    base: String,
}

impl EvenkeelEngine {
    /// Starts one with these properties and capacities, on a free port, and returns once it listens. Then it may still
    /// be far from ready.
    ///
    /// # Errors
    ///
    /// When it ends early, or does not listen in time; the error carries the end of its log.
    pub async fn start(binary: &Path, properties: &str, capacities: &str) -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("evenkeel-engine-").tempdir().context("could not make a folder")?;
        let [settings, brokers] = [PROPERTIES, CAPACITY].map(|name| folder.path().join(name));
        fs::write(&brokers, capacities).context("could not write the capacities")?;
        let text = format!("{properties}\ncapacity.config.file={}\n", brokers.display());
        fs::write(&settings, text).context("could not write the properties")?;
        let flags = [settings.display().to_string(), "0".to_owned(), "127.0.0.1".to_owned()];
        let mut server = Server::start(binary, folder.path(), ROLE, &flags)?;
        let deadline = Instant::now() + LISTENS_WITHIN;
        loop {
            // The line that says where; what it logs stands around it.
            let log = server.log()?;
            if let Some(base) = log.lines().find(|line| line.starts_with("http://") && line.ends_with('/')) {
                return Ok(Self { base: base.trim_end_matches('/').to_owned(), server, _folder: folder });
            }
            server.must_be_alive()?;
            if Instant::now() > deadline {
                bail!("the engine does not listen; the end of its log:\n{}", server.log_tail());
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Where its API is, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.server.id()
    }

    /// The end of what it has logged.
    pub fn log_tail(&self) -> String {
        self.server.log_tail()
    }
}
