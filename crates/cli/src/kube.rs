//! `evenkeel kube`

use std::fs::Permissions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use evenkeel_apiserver::http::{self, Options, Shared};
use evenkeel_apiserver::serve::{Server, Settings};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

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
    /// The Kubernetes version that the server says it has.
    #[arg(long, default_value_t = Options::default().git_version)]
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
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let place = Place::make(args.dir, args.kubeconfig)?;
    let options = Options { git_version: args.kubernetes_version, ..Options::default() };
    let settings = Settings { listen: args.listen, allow_remote: args.allow_remote, names: args.names, options };
    let server = Server::start(settings).await?;
    server.write_kubeconfig(&place.kubeconfig)?;
    if args.install_crds {
        install_crds(server.shared()).await?;
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let node = tokio::spawn(evenkeel_node::run(client(server.shared()), async { drop(stopped.await) }));
    greet(&mut io::stdout().lock(), &place.kubeconfig, &server.url(), args.install_crds)?;
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    drop(stop);
    node.await?;
    server.stop().await;
    Ok(())
}

/// A client that needs no socket.
fn client(shared: &Arc<Shared>) -> kube::Client {
    kube::Client::new(http::router(Arc::clone(shared)), "default")
}

async fn install_crds(shared: &Arc<Shared>) -> anyhow::Result<()> {
    let api = kube::Api::all(client(shared));
    for crd in evenkeel_api::crds() {
        api.create(&kube::api::PostParams::default(), &crd).await.context("could not install the CRDs")?;
    }
    Ok(())
}

/// Where the kubeconfig is written. A directory of our own making goes when we do: what it leads to is gone then.
struct Place {
    kubeconfig: PathBuf,
    _temporary: Option<TempDir>,
}

impl Place {
    fn make(dir: Option<PathBuf>, kubeconfig: Option<PathBuf>) -> anyhow::Result<Self> {
        let (dir, temporary) = match (dir, &kubeconfig) {
            (Some(dir), _) => {
                make_private(&dir).with_context(|| format!("could not make the directory {}", dir.display()))?;
                (dir, None)
            }
            (None, Some(_)) => (PathBuf::new(), None),
            (None, None) => {
                let made = temporary().context("could not make a temporary directory")?;
                (made.path().to_owned(), Some(made))
            }
        };
        let kubeconfig = absolute(kubeconfig.unwrap_or_else(|| dir.join("kubeconfig")))?;
        Ok(Self { kubeconfig, _temporary: temporary })
    }
}

/// A fresh directory. Its name cannot be guessed and it must not be there already: in a place where all may write, one
/// that somebody else has made is somebody else's to read.
fn temporary() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("evenkeel-kube-").permissions(Permissions::from_mode(0o700)).tempdir()
}

fn absolute(path: PathBuf) -> anyhow::Result<PathBuf> {
    std::path::absolute(&path).with_context(|| format!("{} is no usable path", path.display()))
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// The line to paste, and what to try after it.
fn greet(out: &mut impl Write, kubeconfig: &Path, url: &str, crds_installed: bool) -> io::Result<()> {
    writeln!(out, "export KUBECONFIG={}", quoted(&kubeconfig.display().to_string()))?;
    writeln!(out)?;
    writeln!(
        out,
        "A Kubernetes API is at {url}; ctrl-c stops it. Paste the line above into another terminal, then try:"
    )?;
    writeln!(out)?;
    if !crds_installed {
        writeln!(out, "  evenkeel crd | kubectl apply -f -")?;
    }
    writeln!(out, "  kubectl api-resources")?;
    writeln!(out, "  kubectl apply -f examples/")?;
    writeln!(out, "  kubectl get kafka,kafkanodepool,kafkarebalance")?;
    out.flush()
}

/// Quotes a path for the shell where it needs that.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_can_be_pasted() {
        let mut out = Vec::new();
        greet(&mut out, Path::new("/tmp/it's here/kubeconfig"), "https://127.0.0.1:1", false).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.lines().next(), Some(r"export KUBECONFIG='/tmp/it'\''s here/kubeconfig'"));
    }

    #[test]
    fn a_temporary_directory_is_new_and_nobody_elses() {
        let (one, two) = (temporary().expect("a directory"), temporary().expect("another"));
        assert_ne!(one.path(), two.path());
        assert_eq!(std::fs::metadata(one.path()).expect("there").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let failed = Place::make(Some("/proc/evenkeel".into()), None).map(|_| ()).expect_err("nobody writes there");
        assert!(format!("{failed:#}").starts_with("could not make the directory /proc/evenkeel: "), "{failed:#}");
    }
}
