//! `evenkeel`: joins the parts. One file per subcommand, and no logic in any of them.

mod columns;
mod crd;
mod directory;
mod ending;
mod engine;
mod generate;
mod install;
mod kube;
mod live;
mod local;
mod misuse;
mod operator;
mod plan;
mod printable;
mod rack;
mod sim;
mod snapshot;
mod status;
mod strimzi;
mod usage;

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Keeps Kafka clusters on an even keel.
#[derive(Parser)]
#[command(name = "evenkeel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the CustomResourceDefinitions as YAML, for `kubectl apply -f -`.
    Crd,
    /// Run a drop-in Cruise Control over a Kafka cluster.
    Engine(engine::Args),
    /// Write a snapshot of a random cluster, the same one for the same options.
    Generate(generate::Args),
    /// Print the manifests that put the operator on a cluster, or apply them.
    Install(install::Args),
    /// Run a Kubernetes API on this machine, in memory.
    Kube(kube::Args),
    /// Run Kubernetes, a Kafka cluster, its operator and its engine on this machine, and show what they do.
    Local(local::Args),
    /// Run the operator against the cluster that the kubeconfig, or the pod's account, names.
    Operator(operator::Args),
    /// Plan how the replicas of a cluster should lie, and say why.
    Plan(Box<plan::Args>),
    /// Write the rack of a node into a file, as a broker's init container does.
    Rack(rack::Args),
    /// Run a simulated Kafka cluster on this machine, and inject faults into it.
    Sim(Box<sim::Args>),
    /// Record a running cluster from outside, for `evenkeel plan`.
    Snapshot(snapshot::Args),
    /// Show what rebalances are about and how far they are, and why a cluster was, or was not, rebalanced.
    Status(status::Args),
    /// Be Cruise Control in the container that Strimzi deploys: what its two scripts call.
    Strimzi(strimzi::Args),
    /// Remove the operator from a cluster, so that nothing waits for it; clusters stay unless it is said that they may go.
    Uninstall(install::Removal),
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => match usage::complaint(&error, subcommand().as_deref()) {
            Some(complaint) => return complain(&complaint, ExitCode::from(2)),
            None => error.exit(),
        },
    };
    log(&command);
    let outcome = match command {
        Command::Crd => crd::run(),
        Command::Engine(args) => engine::run(&args),
        Command::Generate(args) => generate::run(args),
        Command::Install(args) => install::run(&args),
        Command::Kube(args) => kube::run(args),
        Command::Local(args) => local::run(args),
        Command::Operator(args) => operator::run(&args),
        Command::Plan(args) => plan::run(*args),
        Command::Rack(args) => rack::run(&args),
        Command::Sim(args) => sim::run(*args),
        Command::Snapshot(args) => snapshot::run(args),
        Command::Status(args) => status::run(&args),
        Command::Strimzi(args) => strimzi::run(&args),
        Command::Uninstall(args) => install::remove(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&printable::causes(&error), exit_code(&error)),
    }
}

/// Where log lines go: a server's are many and tell how it fares, everybody else's only what is wrong.
fn log(command: &Command) {
    let (usual, json) = match command {
        Command::Engine(args) => ("info", args.logs_json()),
        Command::Strimzi(_) => ("info", false),
        Command::Operator(_) => (operator_level(), false),
        _ => ("warn", false),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    // Colours are for people who look: not for files, and not for those who collect what containers say.
    let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(coloured);
    if json { lines.json().flatten_event(true).init() } else { lines.init() }
}

/// Strimzi's variable for how much an operator says; `RUST_LOG` says it more finely.
fn operator_level() -> &'static str {
    match std::env::var("STRIMZI_LOG_LEVEL").unwrap_or_default().to_ascii_uppercase().as_str() {
        "ERROR" => "error",
        "WARN" => "warn",
        "DEBUG" => "debug",
        "TRACE" => "trace",
        _ => "info",
    }
}

/// One line: what failed, and why. There is nobody to tell if even that cannot be written.
fn complain(what: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "evenkeel: {}", printable::line(what));
    code
}

/// The subcommand that was meant, for the hint where to read on.
fn subcommand() -> Option<String> {
    let known = |word: &String| Cli::command().get_subcommands().any(|it| it.get_name() == word);
    std::env::args_os().skip(1).filter_map(|word| word.into_string().ok()).find(known)
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(refusal) = error.downcast_ref::<plan::Refusal>() {
        return ExitCode::from(refusal.exit_code());
    }
    // As for a command line that cannot be read.
    if error.is::<misuse::Misuse>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
