//! The operator as a process of its own: this program once more. It finds services by their EndpointSlices, because pods
//! share one address here; all else is as in `evenkeel operator`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
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
use tokio::net::TcpListener;

/// What makes this program the operator, with a kubeconfig behind it.
pub(crate) const WORD: &str = "live-as-operator";

/// A running one; it is killed when this is dropped.
pub(crate) struct Operator {
    process: Child,
    /// Where it is asked how it fares.
    door: SocketAddr,
}

impl Operator {
    pub(crate) fn start(kubeconfig: &Path, log: &Path) -> Result<Self> {
        let log = File::create(log).context("could not write a log file")?;
        let mut command = Command::new(std::env::current_exe()?);
        // As its Deployment says.
        command.env("MALLOC_ARENA_MAX", "1");
        command.arg(WORD).arg(kubeconfig).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().context("could not start the operator")?;
        let mut said = String::new();
        BufReader::new(process.stdout.take().context("the operator says nothing")?).read_line(&mut said)?;
        let door =
            said.trim().parse().with_context(|| format!("the operator did not say where its door is: {said}"))?;
        Ok(Self { process, door })
    }

    /// What it has cost so far.
    pub(crate) fn cost(&self) -> Result<Cost> {
        Cost::of(self.process.id())
    }

    /// How often it has looked at something so far, by kind.
    pub(crate) fn reconciliations(&self) -> Result<BTreeMap<String, u64>> {
        let mut stream = TcpStream::connect(self.door).context("the operator's door is closed")?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let mut all = BTreeMap::new();
        for line in page.lines().filter(|line| line.starts_with("strimzi_reconciliations_total{")) {
            let kind = line.split("kind=\"").nth(1).and_then(|rest| rest.split('"').next());
            let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
            let (kind, count) = kind.zip(count).with_context(|| format!("this is no figure: {line}"))?;
            *all.entry(kind.to_owned()).or_default() += count;
        }
        Ok(all)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // One that is gone already cannot be killed, and need not be.
        let _ = self.process.kill();
        let _ = self.process.wait();
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
        let door = TcpListener::bind("127.0.0.1:0").await.context("could not open a door")?;
        println!("{}", door.local_addr()?);
        process::run(context, Some(door), std::future::pending()).await?;
        Ok(())
    })
}
