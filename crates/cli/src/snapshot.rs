//! `evenkeel snapshot`: records a running cluster for `evenkeel plan`.

use std::path::PathBuf;

use crate::live;

/// Which cluster, and where the recording goes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Brokers to ask first, separated by commas.
    #[arg(long, value_name = "HOST:PORT", required = true)]
    bootstrap: String,
    #[command(flatten)]
    options: live::Options,
    /// Where the snapshot goes: a file, compressed if its name ends in .gz, or - for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Records, and writes the recording. Nothing is written to the cluster.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let snapshot = live::snapshot(&args.bootstrap, &args.options)?;
    Ok(evenkeel_snapshot::write_path(&args.output, &snapshot)?)
}
