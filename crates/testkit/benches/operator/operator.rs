//! The operator as a process of its own: this program once more. It finds services by their EndpointSlices, because pods
//! share one address here; all else is as in `evenkeel operator`.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use evenkeel_operator::{
    process,
    seams::{Context, EndpointSlices},
    settings::Settings,
};
use evenkeel_testkit::measure::Cost;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// What makes this program the operator, with a kubeconfig behind it.
pub(crate) const WORD: &str = "live-as-operator";

/// A running one; it is killed when this is dropped.
pub(crate) struct Operator(Child);

impl Operator {
    pub(crate) fn start(kubeconfig: &Path, log: &Path) -> Result<Self> {
        let log = File::create(log).context("could not write a log file")?;
        let mut command = Command::new(std::env::current_exe()?);
        // As its Deployment says.
        command.env("MALLOC_ARENA_MAX", "1");
        command.arg(WORD).arg(kubeconfig).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(Self(command.spawn().context("could not start the operator")?))
    }

    /// What it has cost so far.
    pub(crate) fn cost(&self) -> Result<Cost> {
        Cost::of(self.0.id())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // One that is gone already cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The API as whoever has the kubeconfig reaches it.
pub(crate) async fn outside(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}

/// The life of the operator's process.
pub(crate) fn live(kubeconfig: PathBuf) -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    process::runtime().context("could not start a runtime")?.block_on(async {
        let client = outside(&kubeconfig).await?;
        let context = Context::new(client.clone(), Settings::default()).finding(Arc::new(EndpointSlices(client)));
        process::run(context, None, std::future::pending()).await?;
        Ok(())
    })
}
