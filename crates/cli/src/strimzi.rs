//! `evenkeel strimzi`: the interpreter of the scripts in `deploy/strimzi`, so that an image needs no shell.

use std::path::PathBuf;

use evenkeel_engine::strimzi::{Container, Script};

use crate::engine;
use crate::misuse::Misuse;

/// Which script it is.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The path of cruise_control_run.sh or cruise_control_healthcheck.sh.
    script: PathBuf,
}

/// Does what the script is for.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unfit = |why| Misuse::Configuration { what: format!("{:#}", anyhow::Error::new(why)) };
    let script = std::path::absolute(&args.script)?;
    let variable = |name: &str| std::env::var(name).ok();
    let (container, which) = Container::of(&script).map_err(unfit)?;
    match which {
        Script::Run => engine::run_with(container.files(variable).map_err(unfit)?),
        Script::HealthCheck => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(container.health(variable))?)
        }
    }
}
