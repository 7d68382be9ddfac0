//! `evenkeel local`: a Kubernetes API, a node, the operator, a Kafka cluster and its engine, in this process.

mod data;
mod example;
mod greeting;
mod logs;
mod stack;
mod tour;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use evenkeel_kafka::connect::Tcp;
use evenkeel_kafka::{Client as Kafka, Settings as KafkaSettings};

use self::example::Scale;
use self::stack::Stack;
use self::tour::Guide;
use crate::directory::Directory;
use crate::ending::Signals;

/// What is run, and where its files go.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tour: tour::Options,
    /// How large the example cluster is.
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    scale: Scale,
    /// Address and port of the Kubernetes API; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Directory for the kubeconfig and the files of pods; made if it is not there [default: a temporary one, removed at the end]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Runs all of it until it is told to stop, or until the tour is over.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(serve(args));
    // A read of standard input, as before a chapter, cannot be called off; nobody waits for it.
    runtime.shutdown_background();
    outcome
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let begun = Instant::now();
    // Before anything is started, so that no signal is missed.
    let mut signals = Signals::listen()?;
    let last = args.tour.last()?;
    let directory = Directory::make(args.dir, "evenkeel-local-")?;
    let stack = Stack::start(args.listen, directory.path()).await?;
    let outcome = tokio::select! {
        () = signals.one() => if args.tour.tour { Err(anyhow::anyhow!("the tour was interrupted")) } else { Ok(()) },
        outcome = live(&stack, begun, args.scale, &args.tour, last) => outcome,
        ended = stack.ended() => ended,
    };
    stack.stop().await;
    outcome
}

async fn live(stack: &Stack, begun: Instant, scale: Scale, options: &tour::Options, last: usize) -> anyhow::Result<()> {
    greeting::begin(stack, &mut std::io::stdout().lock())?;
    example::apply(stack, scale).await?;
    let mut guide = Guide::new(stack.client(), example::NAMESPACE, example::CLUSTER, stack.kafka(), tour::show());
    guide.pauses = options.pauses();
    guide.until_ready().await?;
    guide.until_engine().await?;
    let addresses = stack.bootstrap().await;
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    greeting::ready(begun.elapsed(), &shown.join(","), &mut std::io::stdout().lock())?;
    example::fill(stack, scale).await?;

    // From here on Kafka is asked as people's own clients would, at the very address that was printed.
    guide.kafka = Kafka::new(Arc::new(Tcp), KafkaSettings::new(addresses));
    guide.bootstrap = shown.join(",");
    guide.topics = scale.topics().into_iter().map(|(name, partitions, _)| (name, partitions)).collect();
    if options.tour {
        return tour::play(&mut guide, last).await;
    }
    greeting::invite(&mut std::io::stdout().lock())?;
    std::future::pending().await
}
