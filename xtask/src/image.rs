//! `cargo xtask image`: the program as the image holds it, linked statically, in a folder with nothing else.
//!
//! Who has docker builds the image itself (`deploy/Containerfile`); here the same program is built by the same command, and
//! run with that folder as its root. A program that needed a library, a shell or any other file would not start there.
//! What a static program of glibc may well lack there is the way from a name to an address, on which operator and engine
//! live: so it also looks for a cluster by name, with no other files than those that a kubelet puts there, and asks a name
//! server.

mod name_server;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{metadata::Metadata, process, workspace::Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Builds it without optimisation, from what the tests have built: a minute, and what CI does.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// There are no examples, but whoever asks for them gets libraries with the features that the dev-dependencies of the
/// program's own package ask for. These are the features that the whole workspace has in tests, so that all that is left
/// to build is the program itself.
const AS_TESTED: [&str; 1] = ["--examples"];

/// Where the image has the program, and the scripts of which it is the interpreter.
const PROGRAM: &str = "usr/local/bin/evenkeel";
const SCRIPTS: &str = "opt/cruise-control";
/// What links a program of glibc statically.
const STATIC: [&str; 3] = ["--", "-C", "target-feature=+crt-static"];

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let profile = if options.quick { "dev" } else { "release" };
    let mut build = process::cargo();
    build.args(["rustc", "--locked", "--package", "evenkeel-cli", "--bin", "evenkeel", "--profile", profile]);
    build.args(if options.quick { &AS_TESTED[..] } else { &[] });
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
    finds_by_name(&built, root.path(), &inside)?;
    println!("a static program of {} MB runs where there is nothing else", size / 1_000_000);
    Ok(())
}

/// Looks at a simulated cluster, which runs outside, by a name: plainly, and then by TLS with a password.
fn finds_by_name(program: &Path, root: &Path, inside: &impl Fn(&str, &[&str]) -> Command) -> Result<()> {
    fs::create_dir_all(root.join("etc")).context("could not make a folder")?;
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost broker.test\n").context("could not write the names")?;
    let plain = Simulation::start(program, &[])?;
    let live = ["snapshot", "--seconds", "1", "--bootstrap"];
    let snapshot = process::read(&mut inside(PROGRAM, &[&live[..], &[&plain.at("broker.test")]].concat()))?;
    ensure!(snapshot.contains(" brokers=3 "), "a snapshot says of how many brokers it is:\n{snapshot}");
    if name_server::start()? {
        let resolver = format!("nameserver {}\noptions ndots:5\n", name_server::ADDRESS);
        fs::write(root.join("etc/resolv.conf"), resolver).context("could not write where names are asked for")?;
        let snapshot = process::read(&mut inside(PROGRAM, &[&live[..], &[&plain.at(name_server::NAME)]].concat()))?;
        ensure!(snapshot.contains(" brokers=3 "), "a snapshot says of how many brokers it is:\n{snapshot}");
    } else {
        println!("skipped: only root may be a name server here");
    }
    let folder = root.join("tmp/sim");
    let shown = folder.to_str().context("a folder with a strange name")?;
    let secured = Simulation::start(program, &["--tls", "--user", "alice", "--dir", shown])?;
    // Inside, the folder is elsewhere.
    let settings = folder.join("client.properties");
    let text = fs::read_to_string(&settings).context("could not read the client's settings")?;
    fs::write(&settings, text.replace(shown, "/tmp/sim")).context("could not write the client's settings")?;
    let by_tls = ["--command-config", "/tmp/sim/client.properties"];
    let snapshot =
        process::read(&mut inside(PROGRAM, &[&live[..], &[&secured.at("localhost")], &by_tls[..]].concat()))?;
    ensure!(snapshot.contains(" brokers=3 "), "a snapshot says of how many brokers it is:\n{snapshot}");
    Ok(())
}

/// A simulated cluster, until dropped.
struct Simulation {
    child: Child,
    port: String,
}

impl Simulation {
    fn start(program: &Path, further: &[&str]) -> Result<Self> {
        let mut command = process::command(program);
        command.args(["sim", "--no-metrics", "--output", "json"]).args(further);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("could not start it")?;
        let mut line = String::new();
        let greeting = child.stdout.as_mut().context("it has an output")?;
        let read = BufReader::new(greeting).read_line(&mut line);
        let mut simulation = Self { child, port: String::new() };
        read.context("could not read where the cluster is")?;
        // The first of the addresses in the greeting.
        let address = line.split_once("\"bootstrapServers\":\"").and_then(|(_, rest)| rest.split(['"', ',']).next());
        let port =
            address.and_then(|address| address.rsplit_once(':')).with_context(|| format!("no address: {line}"))?;
        simulation.port = port.1.to_owned();
        Ok(simulation)
    }

    fn at(&self, name: &str) -> String {
        format!("{name}:{}", self.port)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // There is nobody to tell if it ended by itself.
        let _ = self.child.kill().and_then(|()| self.child.wait().map(drop));
    }
}
