//! The real parts, made in the background while steps run that do not need them.
//!
//! To build the control plane takes a quarter of an hour of CPU on a cold machine. The steps before it leave about as
//! much unused, where they link or wait; so the build runs beside them and gives way to everything else. If a step
//! fails meanwhile it is left alone: what it makes is kept for the next run.

use std::{
    env,
    fs::File,
    io::Read,
    path::PathBuf,
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::process;

pub(crate) struct Preparation {
    child: Child,
    /// What it says; a terminal has only room for one.
    log: PathBuf,
}

impl Preparation {
    /// Begins to make whatever is missing: `cargo xtask real parts`, at the lowest priority.
    pub(crate) fn begin() -> Result<Self> {
        let own = env::current_exe().context("could not find our own program")?;
        let (file, log) = tempfile::Builder::new()
            .prefix("evenkeel-parts-")
            .suffix(".log")
            .tempfile()
            .context("could not make a log file")?
            .keep()
            .context("could not keep a log file")?;
        let child = process::command("nice")
            .args(["-n", "19"])
            .arg(own)
            .args(["real", "parts"])
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("could not share a log file")?)
            .stderr(file)
            .spawn()
            .context("could not start `nice`")?;
        Ok(Self { child, log })
    }

    /// Waits until everything is there.
    pub(crate) fn end(mut self) -> Result<()> {
        let status = self.child.wait().context("could not wait for the real parts")?;
        let mut said = String::new();
        // Whatever cannot be read cannot be shown.
        let _ = File::open(&self.log).and_then(|mut log| log.read_to_string(&mut said));
        if !status.success() {
            bail!("the real parts could not be made: {status}\n{said}");
        }
        let _ = std::fs::remove_file(&self.log);
        Ok(())
    }
}
