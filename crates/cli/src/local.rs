//! `evenkeel local`: a Kubernetes API, a node, the operator, a Kafka cluster and its engine, in this process.

mod data;
mod example;
mod greeting;
mod logs;
mod operator;
mod patience;
mod stack;
mod tour;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use evenkeel_kafka::connect::Tcp;
use evenkeel_kafka::{Client as Kafka, Settings as KafkaSettings};
use evenkeel_node::programs::jvm::Jvm;

use self::example::Scale;
use self::stack::{Kind, Stack};
use self::tour::{Backstage, Guide};
use crate::directory::Directory;
use crate::ending::{self, Signals};
use crate::misuse::Misuse;

/// What is run, and where its files go.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tour: tour::Options,
    /// How large the example cluster is.
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    scale: Scale,
    /// What brokers are: simulated ones in this process, or Apache Kafka, each node in a JVM of its own.
    #[arg(long, value_enum, default_value_t = BrokerKind::Sim)]
    brokers: BrokerKind,
    /// With `--brokers jvm`: where Apache Kafka was unpacked [default: $KAFKA_HOME]
    #[arg(long, value_name = "DIR")]
    kafka_home: Option<PathBuf>,
    /// Address and port of the Kubernetes API; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Directory for the kubeconfig and the files of pods, which are removed at the end; made if it is not there
    /// [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Begin with nothing. Every run does, so this only says it
    #[arg(long)]
    fresh: bool,
}

/// What brokers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BrokerKind {
    /// Simulated.
    Sim,
    /// Apache Kafka.
    Jvm,
}

impl Args {
    /// What brokers are, if that is to be had here and goes together with the rest.
    fn kind(&self) -> Result<Kind, Misuse> {
        let wrong = |what: &str| Err(Misuse::Local { what: what.to_owned() });
        if self.tour.tour && self.scale != Scale::Small {
            return wrong("--tour is told on the small example; leave --scale out, or --tour");
        }
        if self.brokers == BrokerKind::Sim {
            return Ok(Kind::Simulated);
        }
        if self.scale != Scale::Small {
            return wrong("--scale medium would be 33 JVMs; leave it out, or --brokers jvm");
        }
        let home = self.kafka_home.clone().or_else(|| std::env::var_os("KAFKA_HOME").map(PathBuf::from));
        let Some(home) = home else {
            return wrong("--brokers jvm: say where Apache Kafka was unpacked, with --kafka-home or in KAFKA_HOME");
        };
        let java = std::env::var_os("JAVA_HOME").map_or_else(|| "java".into(), |it| PathBuf::from(it).join("bin/java"));
        match Jvm::find(java, &home) {
            Ok(jvm) => Ok(Kind::Jvm(jvm)),
            Err(why) => Err(Misuse::Local { what: format!("--brokers jvm: {why}") }),
        }
    }
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
    let (kind, last) = (args.kind()?, args.tour.last()?);
    let directory = Directory::make(args.dir.clone(), "evenkeel-local-")?;
    let stack = Stack::start(args.listen, directory.path(), kind).await?;
    let outcome = tokio::select! {
        () = signals.one() => interrupted(&args.tour),
        () = ending::reader_gone() => interrupted(&args.tour),
        outcome = live(&stack, begun, &args, last) => match outcome {
            Err(error) if is_reader_gone(&error) => interrupted(&args.tour),
            outcome => outcome,
        },
        ended = stack.ended() => ended,
    };
    tokio::select! {
        () = stack.stop() => outcome,
        // Whoever asks twice does not want to wait. What runs in this process ends with it, and JVMs do by themselves.
        () = signals.one() => Err(anyhow::anyhow!("stopped at once: nobody waited for the pods to end")),
    }
}

/// Told to stop: that is how a run ends, and no way for a tour to end.
fn interrupted(options: &tour::Options) -> anyhow::Result<()> {
    anyhow::ensure!(!options.tour, "the tour was interrupted");
    Ok(())
}

fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn live(stack: &Stack, begun: Instant, args: &Args, last: usize) -> anyhow::Result<()> {
    greeting::begin(stack, &mut io::stdout().lock())?;
    example::apply(stack, args.scale).await?;
    let mut guide = Guide::new(stack.client(), example::NAMESPACE, example::CLUSTER, stack.kafka(), tour::show());
    guide.pauses = args.tour.pauses();
    guide.until_ready().await?;
    guide.until_engine().await?;
    let addresses = stack.bootstrap().await?;
    guide.bootstrap = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    // From here on Kafka is asked as people's own clients would, at the very address that was printed.
    guide.kafka = Kafka::new(Arc::new(Tcp), KafkaSettings::new(addresses));
    guide.topics = example::fill(stack, args.scale, &guide.kafka).await?;
    greeting::ready(begun.elapsed(), &guide.bootstrap, &mut io::stdout().lock())?;

    let world = stack.world(example::NAMESPACE, example::CLUSTER);
    guide.backstage = Backstage { operator: Some(stack.operator()), world };
    if args.tour.tour {
        return tour::play(&mut guide, last).await;
    }
    greeting::invite(args.scale, &mut io::stdout().lock())?;
    std::future::pending().await
}
