//! `evenkeel status`: what a rebalance is about and how far it is, and why a cluster was, or was not, rebalanced.
//!
//! [`target`] says what is asked about, [`look`] reads it, and the others are pure: what was read in, text out.

mod cluster;
mod look;
mod overview;
mod paint;
mod rebalance;
mod target;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;

use self::look::Eyes;
use self::target::Target;
use crate::ending::Signals;
use crate::misuse::Misuse;

/// How often it is looked again.
const AGAIN: Duration = Duration::from_secs(1);
/// To the first line, and nothing below it.
const FROM_THE_TOP: &str = "\u{1b}[H\u{1b}[J";

/// What to look at, and where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `kafkarebalance/NAME`, `kafka/NAME`, or the name of a KafkaRebalance [default: all of both in the namespace]
    name: Option<String>,
    /// Namespace [default: the kubeconfig's]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Kubeconfig [default: as kubectl finds it]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Go on looking; a KafkaRebalance is looked at until it is over.
    #[arg(short, long)]
    watch: bool,
}

/// Looks, and prints what there is to see.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let wrong = |what| Misuse::Status { what };
    let target = args.name.as_deref().map_or(Ok(Target::Everything), str::parse).map_err(wrong)?;
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(follow(args, &target))
}

async fn follow(args: &Args, target: &Target) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let eyes = Eyes::open(args.kubeconfig.as_deref(), args.namespace.as_deref()).await?;
    let mut last = String::new();
    let mut complaint = String::new();
    loop {
        let seen = match eyes.look(target).await {
            Ok(Some(seen)) => seen,
            Ok(None) if last.is_empty() => bail!("there is no {target} in namespace {}", eyes.namespace()),
            Ok(None) => {
                show(&format!("{target} is gone\n"), args.watch, false);
                return Ok(());
            }
            // Whoever watches waits for what comes, also through an API server that is away for a while.
            Err(error) if args.watch && !last.is_empty() => {
                let said = format!("{error:#}");
                if said != complaint {
                    // Whoever has closed it does not want to know.
                    let _ = writeln!(std::io::stderr(), "evenkeel: {said}; looking again");
                }
                complaint = said;
                if wait(&mut signals).await {
                    continue;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        complaint.clear();
        if seen.text != last && !show(&seen.text, args.watch, last.is_empty()) {
            return Ok(());
        }
        last = seen.text;
        if !args.watch || seen.is_over {
            return Ok(());
        }
        if !wait(&mut signals).await {
            return Ok(());
        }
    }
}

/// Until it is time to look again. False: nobody wants to.
async fn wait(signals: &mut Signals) -> bool {
    tokio::select! {
        () = signals.one() => false,
        () = tokio::time::sleep(AGAIN) => true,
    }
}

/// Prints it: over what was there before on a terminal, below it elsewhere. False: nobody reads any more.
fn show(text: &str, again: bool, is_first: bool) -> bool {
    let mut out = std::io::stdout().lock();
    let before = match (again, out.is_terminal()) {
        (true, true) => FROM_THE_TOP,
        (true, false) if !is_first => "\n",
        _ => "",
    };
    write!(out, "{before}{text}").and_then(|()| out.flush()).is_ok()
}
