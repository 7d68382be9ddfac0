//! `evenkeel kube`

pub(crate) mod greeting;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use evenkeel_apiserver::http::{self, Options, Shared};
use evenkeel_apiserver::serve::{self, Server, Settings};
use tokio::task::JoinHandle;

use self::greeting::Greeting;
use crate::directory::{Directory, absolute};
use crate::ending::{self, Signals};
use crate::misuse::Misuse;

/// Where the API listens, and where its kubeconfig goes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Allow an address that other machines can reach.
    #[arg(long)]
    allow_remote: bool,
    /// A further name or address that clients reach the server by (repeatable).
    #[arg(long = "name")]
    names: Vec<String>,
    /// Directory for the kubeconfig; made if it is not there [default: a temporary one, removed at the end]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// File for the kubeconfig [default: kubeconfig in the directory]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Install the CRDs of Kafka, KafkaNodePool, KafkaRebalance and StrimziPodSet.
    #[arg(long)]
    install_crds: bool,
    /// The Kubernetes version that the server says it has, such as v1.35.0.
    #[arg(long, default_value_t = Options::default().version.to_string())]
    kubernetes_version: String,
}

/// Runs a Kubernetes API until it is told to stop.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Runtime::new()?.block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    // Before anything is started, so that no signal is missed.
    let mut signals = Signals::listen()?;
    let asked = args.kubernetes_version;
    let version = asked.parse().map_err(|why| Misuse::Version { asked, why })?;
    let options = Options { version, ..Options::default() };
    let settings = Settings { listen: args.listen, allow_remote: args.allow_remote, names: args.names, options };
    let (kubeconfig, _directory) = place(args.dir, args.kubeconfig)?;
    let server = Server::start(settings).await.map_err(refused)?;
    server.write_kubeconfig(&kubeconfig).map_err(refused)?;
    if args.install_crds {
        install_crds(server.shared()).await?;
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut node = tokio::spawn(evenkeel_node::run(client(server.shared()), async { drop(stopped.await) }));
    let program = greeting::program(&std::env::current_exe()?, std::env::var_os("PATH").as_deref());
    let (url, crds_installed) = (server.url(), args.install_crds);
    let greeting = Greeting { kubeconfig: &kubeconfig, url: &url, crds_installed, program: &program };
    let outcome = match greeting.print(&mut std::io::stdout().lock()) {
        // Whoever read it has seen enough, as `head -1` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => until_told(told(&mut signals), &mut node).await,
    };
    drop(stop);
    if outcome.is_ok() {
        node.await?;
    }
    server.stop().await;
    outcome
}

/// A signal, or nobody to read what was printed.
async fn told(signals: &mut Signals) {
    tokio::select! {
        () = signals.one() => {}
        () = ending::reader_gone() => {}
    }
}

/// Waits until it is told to stop. Should the controllers end before, nobody would collect garbage any more, and
/// namespaces would never go: then nothing goes on.
async fn until_told(told: impl Future<Output = ()>, controllers: &mut JoinHandle<()>) -> anyhow::Result<()> {
    tokio::select! {
        () = told => Ok(()),
        ended = controllers => match ended {
            Ok(()) => bail!("the controllers have ended by themselves; RUST_LOG=info tells more of it"),
            Err(error) => Err(error).context("the controllers have ended by themselves"),
        },
    }
}

/// Where the kubeconfig is written, and the directory that is held for it: none if only a file was named.
fn place(dir: Option<PathBuf>, kubeconfig: Option<PathBuf>) -> anyhow::Result<(PathBuf, Option<Directory>)> {
    let directory = match (dir, &kubeconfig) {
        (None, Some(_)) => None,
        (dir, _) => Some(Directory::make(dir, "evenkeel-kube-")?),
    };
    let usual = || directory.as_ref().map(|made| made.path().join("kubeconfig")).unwrap_or_default();
    Ok((absolute(&kubeconfig.unwrap_or_else(usual))?, directory))
}

/// Says in the program's own words what the server refuses because of how it was started.
fn refused(error: serve::Error) -> anyhow::Error {
    match error {
        serve::Error::NotLoopback { address } => Misuse::Remote { address }.into(),
        serve::Error::Name { name } => Misuse::Name { name }.into(),
        serve::Error::ForeignKubeconfig { foreign } => Misuse::Kubeconfig { foreign }.into(),
        other => other.into(),
    }
}

/// A client that needs no socket.
pub(crate) fn client(shared: &Arc<Shared>) -> kube::Client {
    kube::Client::new(http::router(Arc::clone(shared)), "default")
}

pub(crate) async fn install_crds(shared: &Arc<Shared>) -> anyhow::Result<()> {
    let api = kube::Api::all(client(shared));
    for crd in evenkeel_api::crds() {
        api.create(&kube::api::PostParams::default(), &crd).await.context("could not install the CRDs")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn controllers_that_end_are_noticed() {
        let mut working = tokio::spawn(pending());
        until_told(ready(()), &mut working).await.unwrap();
        for mut ended in [tokio::spawn(ready(())), tokio::spawn(async { panic!("a bug") })] {
            let error = until_told(pending(), &mut ended).await.unwrap_err();
            assert!(error.to_string().starts_with("the controllers have ended by themselves"), "{error:#}");
        }
    }
}
