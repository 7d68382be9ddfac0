//! `evenkeel engine`

mod check;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::engine::{Engine, Parts, Running, WORK};
use evenkeel_engine::files::{self, Files};
use evenkeel_engine::serve::listen::Server;
use evenkeel_engine::serve::router;

use crate::ending::Signals;
use crate::misuse::Misuse;

const LOOK_AFTER_ENGINE: Duration = Duration::from_secs(1);

/// Where its files are, and where it listens.
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
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Args {
    /// Whether log lines are for machines.
    pub(crate) fn logs_json(&self) -> bool {
        self.log == Log::Json
    }
}

/// Runs an engine until it is told to stop.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let files = Files::read(Path::new("/"), &args.config, |name| std::env::var(name).ok());
    let mut files = files.map_err(|why| Misuse::Configuration { what: why.to_string() })?;
    let webserver = &mut files.settings.webserver;
    webserver.port = args.port.unwrap_or(webserver.port);
    webserver.address = args.address.clone().unwrap_or_else(|| webserver.address.clone());
    if args.check {
        files.open_all().map_err(|why| Misuse::Configuration { what: format!("{:#}", anyhow::Error::new(why)) })?;
        let text = check::explained(&args.config, &files);
        return Ok(std::io::stdout().lock().write_all(text.as_bytes())?);
    }
    run_with(files)
}

/// Runs an engine with these files until it is told to stop.
pub(crate) fn run_with(files: Files) -> anyhow::Result<()> {
    for warning in &files.warnings {
        tracing::warn!(key = warning.key, "{}", warning.text);
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(files))
}

async fn serve(files: Files) -> anyhow::Result<()> {
    // Before anything is started, so that no signal is missed.
    let mut signals = Signals::listen()?;
    let settings = Arc::new(files.settings);
    let client = settings.connection.client().context("could not prepare the connection to Kafka")?;
    let parts = Parts {
        client,
        settings: Arc::clone(&settings),
        capacities: Arc::new(files.capacities),
        courier: files::courier(&settings.detectors, || async { Ok(kube::Client::try_default().await?) }).await?,
        clock: WallClock::system(),
    };
    let engine = Engine::start(parts)?;
    let server = Server::start(&settings.webserver, router(engine.door())).await?;
    let scheme = if settings.webserver.tls.is_some() { "https" } else { "http" };
    {
        let mut out = std::io::stdout().lock();
        // Whoever does not read it does not need it.
        let _ =
            writeln!(out, "{scheme}://{}{}/", server.address(), settings.webserver.prefix).and_then(|()| out.flush());
    }
    tokio::select! {
        () = signals.one() => {}
        why = broken(&engine) => bail!(why),
    }
    server.stop().await;
    Ok(())
}

/// Waits until a fault of ours has ended a part of the engine: only whoever starts programs can help then.
async fn broken(engine: &Running) -> String {
    loop {
        if let Some(why) = engine.door().readiness().of(WORK) {
            return why;
        }
        tokio::time::sleep(LOOK_AFTER_ENGINE).await;
    }
}
