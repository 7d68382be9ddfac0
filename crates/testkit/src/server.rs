//! One server as a child process: its log, its early death, and its end with ours.

use std::{
    borrow::Cow,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result};

/// How much of a log an error shows.
const LINES_SHOWN: usize = 30;

/// A server that ended before it was ready.
#[derive(Debug, thiserror::Error)]
#[error("{role} ended before it was ready ({status}); the end of its log:\n{log}")]
pub(crate) struct EarlyExit {
    role: String,
    status: ExitStatus,
    log: String,
}

#[derive(Debug)]
pub(crate) struct Server {
    role: Cow<'static, str>,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `<program> <role> <flags>` in `folder`; its output goes to `<role>.log` there.
    pub(crate) fn start(program: &Path, folder: &Path, role: &'static str, flags: &[String]) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(role)
            .args(flags)
            .current_dir(folder)
            // Kubetest ends when its standard input is closed.
            .env("KUBETEST_DIE_ON_STDIN_EOF", "1");
        Self::spawn(role, command, folder.join(format!("{role}.log")))
    }

    /// Starts a command that ends when its standard input is closed; we hold the other end of it for as long as we
    /// live, so it dies with us even when we are killed.
    pub(crate) fn spawn(role: impl Into<Cow<'static, str>>, mut command: Command, log: PathBuf) -> Result<Self> {
        let output = File::create(&log).context("could not write a log file")?;
        let child = command
            .stdin(Stdio::piped())
            .stdout(output.try_clone().context("could not share a log file")?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("could not start {}", command.get_program().display()))?;
        Ok(Self { role: role.into(), child, log })
    }

    /// An error if it has ended.
    pub(crate) fn must_be_alive(&mut self) -> Result<()> {
        match self.has_ended()? {
            None => Ok(()),
            Some(status) => Err(EarlyExit { role: self.role.to_string(), status, log: self.log_tail() }.into()),
        }
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("could not ask for a server's state")
    }

    /// The process, for whoever wants to know what it costs.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    /// All that it has written so far.
    pub(crate) fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log).with_context(|| format!("could not read the log of {}", self.role))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn log_tail(&self) -> String {
        match self.log() {
            Ok(log) => last_lines(&log, LINES_SHOWN).to_owned(),
            Err(failure) => format!("({failure:#})"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A polite stop takes seconds, and there is nothing to save. Failing means it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last_lines(text: &str, count: usize) -> &str {
    let start = text.trim_end().rmatch_indices('\n').nth(count.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_end_of_a_log() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 1), "c");
        assert_eq!(last_lines("a\n", 5), "a\n");
        assert_eq!(last_lines("", 5), "");
    }

    #[test]
    fn a_server_that_ends_early_is_told_from_a_slow_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start(Path::new("/bin/ls"), folder.path(), "no-such-role", &[]).unwrap();
        let _ = server.child.wait();
        let failure = server.must_be_alive().unwrap_err();
        assert!(failure.is::<EarlyExit>());
        assert!(failure.to_string().contains("no-such-role"), "{failure}");
    }
}
