//! `cargo xtask image`: the program as the image holds it, linked statically, in a folder with nothing else.
//!
//! Who has docker builds the image itself (`deploy/Containerfile`); here the same program is built by the same command, and
//! run with that folder as its root. A program that needed a library, a shell or any other file would not start there.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{metadata::Metadata, process, workspace::Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Builds it without optimisation, which is quicker.
    #[arg(long)]
    quick: bool,
}

/// Where the image has the program, and the scripts of which it is the interpreter.
const PROGRAM: &str = "usr/local/bin/evenkeel";
const SCRIPTS: &str = "opt/cruise-control";
/// What links a program of glibc statically.
const STATIC: [&str; 3] = ["--", "-C", "target-feature=+crt-static"];

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let profile = if options.quick { "dev" } else { "release" };
    let mut build = process::cargo();
    build.args(["rustc", "--locked", "--package", "evenkeel-cli", "--bin", "evenkeel", "--profile", profile]);
    process::run(build.args(STATIC).current_dir(workspace.root()))?;
    let folder = if options.quick { "debug" } else { "release" };
    let built = Metadata::of_members(workspace)?.target_directory.join(folder).join("evenkeel");

    let root = tempfile::tempdir().context("could not make a folder")?;
    let place = |path: &str, from: &Path| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(root.path()))
            .and_then(|()| fs::copy(from, &path))
            .with_context(|| format!("could not copy {}", from.display()))
    };
    let size = place(PROGRAM, &built)?;
    for script in ["cruise_control_run.sh", "cruise_control_healthcheck.sh"] {
        place(&format!("{SCRIPTS}/{script}"), &workspace.root().join("deploy/strimzi").join(script))?;
    }
    fs::create_dir(root.path().join("tmp")).context("could not make a folder for files that do not stay")?;

    let inside = |program: &str, arguments: &[&str]| {
        let mut command = process::command("unshare");
        command.args(["--map-root-user", "--root"]).arg(root.path()).arg(format!("/{program}")).args(arguments);
        command
    };
    process::run(&mut inside(PROGRAM, &["--version"]))?;
    let brokers = ["generate", "--brokers", "6", "--topics", "20", "--replicas", "300", "-o", "/tmp/cluster.snap"];
    process::run(&mut inside(PROGRAM, &brokers))?;
    let plan = process::read(&mut inside(PROGRAM, &["plan", "--snapshot", "/tmp/cluster.snap"]))?;
    ensure!(plan.contains("6 brokers"), "a plan says for how many brokers it is:\n{plan}");
    // Strimzi's variables are not set here: that it says so is the proof that the script found its interpreter.
    let probe = inside(&format!("{SCRIPTS}/cruise_control_healthcheck.sh"), &[]).env_clear().output()?;
    let told = String::from_utf8_lossy(&probe.stderr);
    ensure!(told.contains("STRIMZI_KAFKA_BOOTSTRAP_SERVERS"), "the health check says what it lacks, not: {told}");
    println!("a static program of {} MB runs where there is nothing else", size / 1_000_000);
    Ok(())
}
