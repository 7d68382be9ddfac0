//! One node of a cluster through its lives.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::time::{Instant, sleep};

use super::kit::Kit;
use crate::{readiness, server::Server};

/// What a node logs once it serves; a broker by then is registered and not fenced.
const STARTED: &str = "Kafka Server started";
/// A clean stop takes a second. One that lasts this long has lost its controller, and would wait for it for minutes.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Node {
    name: String,
    folder: PathBuf,
    /// Counts its starts. Each has a log of its own, or a restart would look finished by the lines of the last one.
    lives: u32,
    running: Option<Server>,
}

impl Node {
    pub(super) fn lay_out(name: &str, folder: &Path, properties: &str) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("could not make a folder for {name}"))?;
        fs::write(folder.join("server.properties"), properties)
            .with_context(|| format!("could not write the properties of {name}"))?;
        Ok(Self { name: name.to_owned(), folder: folder.to_owned(), lives: 0, running: None })
    }

    pub(super) fn spawn(&mut self, kit: &Kit) -> Result<()> {
        ensure!(self.running.is_none(), "{} runs already", self.name);
        self.lives += 1;
        let mut command = kit.command(&self.folder.join("server.properties"));
        command.current_dir(&self.folder);
        let log = self.folder.join(format!("{}.log", self.lives));
        self.running = Some(Server::spawn(self.name.clone(), command, log)?);
        Ok(())
    }

    /// Waits until it serves.
    pub(super) async fn serves(&mut self) -> Result<()> {
        let name = &self.name;
        let server = self.running.as_mut().with_context(|| format!("{name} does not run"))?;
        readiness::log_line(server, STARTED).await
    }

    /// Asks it to stop and waits until it has.
    pub(super) async fn stop(&mut self) -> Result<()> {
        let name = &self.name;
        let server = self.running.as_mut().with_context(|| format!("{name} does not run"))?;
        // The shell's own `kill`: signals are beyond the standard library.
        let told = Command::new("sh")
            .args(["-c", "kill -TERM \"$0\"", &server.id().to_string()])
            .status()
            .context("could not start a shell")?;
        ensure!(told.success(), "{name} could not be told to stop");
        let deadline = Instant::now() + STOP_LIMIT;
        while server.has_ended()?.is_none() {
            if Instant::now() > deadline {
                bail!("{name} did not stop in {STOP_LIMIT:?}; the end of its log:\n{}", server.log_tail());
            }
            sleep(PAUSE).await;
        }
        self.running = None;
        Ok(())
    }

    /// Ends it, if it runs, and returns when it is gone, and with it its locks on files.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }
}
