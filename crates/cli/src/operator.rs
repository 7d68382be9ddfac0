//! `evenkeel operator`

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::Context as _;
use evenkeel_operator::process::{self, PORT};
use evenkeel_operator::seams::Context;
use evenkeel_operator::settings::Settings;
use tokio::net::TcpListener;

use crate::ending::Signals;

/// The file that tells a pod in which namespace it is.
const HERE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Everything else is read from Strimzi's environment variables.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address for `/healthy`, `/ready` and `/metrics`.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    address: IpAddr,
    /// Port for the same; 0 takes a free one.
    #[arg(long, default_value_t = PORT)]
    port: u16,
}

/// Runs an operator until it is told to stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let here = std::fs::read_to_string(HERE).ok().map(|text| text.trim().to_owned());
    let settings = Settings::read(|name| std::env::var(name).ok(), here.as_deref())?;
    process::runtime()?.block_on(serve(args, settings))
}

async fn serve(args: &Args, settings: Settings) -> anyhow::Result<()> {
    // Before anything is started, so that no signal is missed.
    let mut signals = Signals::listen()?;
    let client = kube::Client::try_default().await.context("could not find the Kubernetes API")?;
    let door = TcpListener::bind((args.address, args.port)).await;
    let door = door.with_context(|| format!("could not listen on {}:{}", args.address, args.port))?;
    {
        let mut out = std::io::stdout().lock();
        // Whoever does not read it does not need it.
        let _ = writeln!(out, "http://{}/", door.local_addr()?).and_then(|()| out.flush());
    }
    process::run(Context::new(client, settings), Some(door), signals.one()).await.map_err(|ended| {
        let remedy = ended.remedy();
        anyhow::Error::new(ended).context(remedy)
    })
}
