//! Kafka clients that share no code with ours, in a Python environment that is made once and [kept](super::cache).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cache;
use crate::{process, workspace::Workspace};

const SOURCE: &str = "real/clients";
const REQUIREMENTS: &str = "requirements.txt";

/// The Python that knows the clients.
pub(super) fn python(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.path(SOURCE);
    let mut parts = cache::contents(&source, &[REQUIREMENTS])?;
    // The packages hold compiled code for one version of Python.
    let version = process::read(process::command("python3").arg("--version"))
        .context("the independent clients need Python 3 with its venv module")?;
    parts.push(version.into_bytes());
    let kept = cache::folder("clients", &parts)?;
    cache::make_once(&kept, |folder| {
        println!("installing independent Kafka clients, once");
        install(&source.join(REQUIREMENTS), folder)
    })?;
    Ok(kept.join("bin/python"))
}

/// Only the scripts in `bin` remember where they were made, and of those none is used: the environment can be renamed.
fn install(requirements: &Path, folder: &Path) -> Result<()> {
    process::run(process::command("python3").args(["-m", "venv"]).arg(folder))
        .context("could not make a Python environment (on Debian this needs python3-venv)")?;
    process::run(
        process::command(folder.join("bin/python"))
            .args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--requirement"])
            .arg(requirements),
    )
    .context("could not install the independent clients")
}
