//! `evenkeel`: joins the parts. One file per subcommand, and no logic in any of them.

mod crd;

use clap::{Parser, Subcommand};

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
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Crd => crd::run(),
    }
}
