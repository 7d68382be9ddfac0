//! Programs of `real/clients`: Kafka clients that share no code with ours, as child processes.

use std::{
    env,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// The environment variable with the path of a Python that has the clients' packages.
pub const PYTHON: &str = "EVENKEEL_KAFKA_PYTHON";

/// Far more than any of them takes; one that hangs must not hang the suite.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a program to its end and returns what it printed.
///
/// # Errors
///
/// When it cannot be started, does not end in time, or ends badly; the error carries what it wrote.
pub async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = timeout(PATIENCE, command(program, arguments)?.output())
        .await
        .with_context(|| format!("{program} did not end in {PATIENCE:?}"))?
        .with_context(|| format!("could not start {program}"))?;
    let Output { status, stdout, stderr } = output;
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    ensure!(status.success(), "{program} failed ({status}):\n{stdout}{stderr}");
    Ok(stdout)
}

/// A program that works until it is told to finish.
#[derive(Debug)]
pub struct Running {
    program: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(program: &str, arguments: &[&str]) -> Result<Self> {
        let mut child = command(program, arguments)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its complaints are part of the test's output: librdkafka tells of every lost connection there.
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("could not start {program}"))?;
        let stdout = child.stdout.take().context("its output is not ours")?;
        Ok(Self { program: program.to_owned(), child, lines: BufReader::new(stdout).lines() })
    }

    /// The next line that it prints.
    ///
    /// # Errors
    ///
    /// When it ends instead, or says nothing for too long.
    pub async fn line(&mut self) -> Result<String> {
        let program = &self.program;
        match timeout(PATIENCE, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(Ok(None)) => bail!("{program} ended early"),
            Ok(Err(cause)) => Err(cause).with_context(|| format!("could not read what {program} printed")),
            Err(_) => bail!("{program} said nothing for {PATIENCE:?}"),
        }
    }

    /// Tells it to finish and returns its last line.
    ///
    /// # Errors
    ///
    /// When it has ended, or does so without a word.
    pub async fn finish(mut self) -> Result<String> {
        let mut stdin = self.child.stdin.take().context("told to finish twice")?;
        stdin.write_all(b"finish\n").await.with_context(|| format!("{} is gone", self.program))?;
        let line = self.line().await?;
        let status = timeout(PATIENCE, self.child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "{} failed ({status}) after `{line}`", self.program);
        Ok(line)
    }
}

fn command(program: &str, arguments: &[&str]) -> Result<Command> {
    let python =
        env::var_os(PYTHON).with_context(|| format!("{PYTHON} is not set; `cargo xtask real kafka` sets it"))?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../real/clients").join(program);
    let mut command = Command::new(python);
    // No compiled twins of our programs in the repository.
    command.arg("-B").arg(program).args(arguments).kill_on_drop(true);
    Ok(command)
}
