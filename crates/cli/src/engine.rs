//! `evenkeel engine`

mod check;
mod outlets;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use evenkeel_engine::{
    clock::WallClock,
    config::{
        capacity::Capacities,
        properties::Properties,
        settings::{Read, Settings},
    },
    engine::{Engine, Parts},
    serve::{listen::Server, router},
};
use tokio::signal::unix::{SignalKind, signal};

/// Cruise Control's API over one Kafka cluster.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Cruise Control's properties file.
    #[arg(default_value = "config/cruisecontrol.properties")]
    config: PathBuf,
    /// Port to listen on, instead of `webserver.http.port`; 0 takes a free one.
    port: Option<u16>,
    /// Address to listen on, instead of `webserver.http.address`.
    address: Option<String>,
    /// Only read the files, and say what they come to.
    #[arg(long)]
    check: bool,
    /// How log lines are written, to standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Runs an engine until it is told to stop.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (read, capacities) = check::read(&args)?;
    if args.check {
        return check::explain(&read, &capacities, &mut std::io::stdout().lock());
    }
    for warning in &read.warnings {
        tracing::warn!(key = warning.key, "{}", warning.text);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(read.settings, capacities))
}

async fn serve(settings: Settings, capacities: Capacities) -> anyhow::Result<()> {
    // Before anything is started, so that no signal is missed.
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let client = settings.connection.client().context("could not prepare the connection to Kafka")?;
    let courier = outlets::courier(&settings.detectors).await?;
    let (settings, capacities) = (Arc::new(settings), Arc::new(capacities));
    let parts = Parts {
        client,
        settings: Arc::clone(&settings),
        capacities,
        courier,
        clock: WallClock::system(),
    };
    let engine = Engine::start(parts)?;
    let server = Server::start(&settings.webserver, router(engine.door())).await?;
    let scheme = if settings.webserver.tls.is_some() { "https" } else { "http" };
    {
        let mut out = std::io::stdout().lock();
        // Whoever does not read it does not need it.
        let _ = writeln!(out, "{scheme}://{}{}", server.address(), settings.webserver.prefix);
    }
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    server.stop().await;
    Ok(())
}
