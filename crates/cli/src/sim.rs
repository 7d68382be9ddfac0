//! `evenkeel sim`

mod command;
mod console;
mod deed;
mod doors;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use evenkeel_sim::cluster::{BrokerSpec, DirSpec, NewTopic, Reporter};
use evenkeel_sim::serve::{Listener, World};
use evenkeel_sim::traffic::Load;
use evenkeel_sim::{BrokerId, Cluster, Options};

use self::console::{Console, Ending};
use self::doors::Doors;
use crate::ending::{self, Signals};
use crate::misuse::Misuse;
use crate::plan::units;

/// More than any Kafka cluster has; they take some gigabytes of memory.
const MOST_PARTITIONS: u64 = 1_000_000;

/// What the cluster is made of, and how clients get in.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Brokers, with ids from 0 on.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    brokers: u16,
    /// Racks that the brokers are spread over; 0 for none.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=26))]
    racks: u16,
    /// Log directories on each broker.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    dirs: u16,
    /// What a directory holds; one that is full fails.
    #[arg(long, default_value = "1TB", value_parser = bytes)]
    capacity: f64,
    /// How fast a directory's disk is.
    #[arg(long, default_value = "200MB/s", value_parser = rate)]
    disk: f64,
    /// How fast a broker's link is, each way.
    #[arg(long, default_value = "120MB/s", value_parser = rate)]
    link: f64,
    /// Topics to begin with: topic-0 and so on.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    topics: u32,
    /// Partitions of each.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: i32,
    /// Replicas of each partition [default: 3, or one for each broker if there are fewer]
    #[arg(long, value_parser = clap::value_parser!(i16).range(1..=100))]
    replication_factor: Option<i16>,
    /// What is written to each topic, simulated: such as 5MB/s, or 0.
    #[arg(long, default_value = "0", value_parser = load)]
    load: f64,
    /// How far a day's peak and trough lie from that, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    swing: f64,
    /// How many times what is written to the others is written to topic-0.
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = times)]
    hot_topic: f64,
    /// How many times what is written to its others is written to partition 0 of each topic.
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = times)]
    hot_partition: f64,
    /// Where all chance comes from: the same seed, the same cluster.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Port of broker 0; the others follow. 0 takes free ones.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Seconds that pass in the cluster for each of ours.
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Let clients in through TLS only.
    #[arg(long)]
    tls: bool,
    /// Let nobody in but this user, by SCRAM or PLAIN.
    #[arg(long)]
    user: Option<String>,
    /// File with the user's password [default: a new one, in the client's settings]
    #[arg(long, requires = "user")]
    password_file: Option<PathBuf>,
    /// Directory for the authority's certificate and the client's settings [default: a temporary one, removed at the end]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// What is kept in memory of records that clients really produce; beyond that brokers refuse them as a failed disk does.
    #[arg(long, default_value = "1GB", value_parser = bytes)]
    memory: f64,
    /// Brokers without the metrics reporter.
    #[arg(long)]
    no_metrics: bool,
    /// Seconds from one report of a broker's metrics to the next.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(1..=86_400))]
    metrics_interval: i64,
    /// How the first lines are written.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people, and for `head -1`.
    Text,
    /// One line of JSON.
    Json,
}

/// How long signals, commands and clients may have to wait for what the cluster has missed.
const DILIGENCE: Duration = Duration::from_millis(500);

/// Runs a simulated cluster until it is told to stop.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(args));
    // A read of standard input cannot be called off; nobody waits for it.
    runtime.shutdown_background();
    outcome
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let cluster = args.cluster()?;
    let world = World::with_diligence(cluster, args.speed, Some(DILIGENCE));
    let doors = Doors::make(args.tls, args.user.as_deref(), args.password_file.as_deref(), args.dir.clone())?;
    let listener = doors.install(Listener::plain(world.clone()));
    for id in 0..args.brokers {
        let port = args.port_of(i32::from(id))?;
        listener.open_tcp(BrokerId(i32::from(id)), port).await?;
    }
    let bootstrap = listener.bootstrap();
    doors.write_settings(&bootstrap)?;
    let greeting = match args.output {
        Output::Json => format!("{}\n", doors.as_json(&bootstrap)),
        Output::Text => doors.greeting(&bootstrap),
    };
    console::say(&greeting).await?;
    let console = Console::new(world, listener, args);
    tokio::select! {
        () = signals.one() => return Ok(()),
        () = ending::reader_gone() => return Ok(()),
        ending = console.run() => if let Ending::Quit = ending? {
            return Ok(());
        },
    }
    // Whoever started us without an input wants the cluster all the same.
    tokio::select! {
        () = signals.one() => {}
        () = ending::reader_gone() => {}
    }
    Ok(())
}

impl Args {
    fn cluster(&self) -> anyhow::Result<Cluster> {
        let brokers = i16::try_from(self.brokers).unwrap_or(i16::MAX);
        let factor = self.replication_factor.unwrap_or_else(|| brokers.min(3));
        if self.topics > 0 && factor > brokers {
            return Err(Misuse::Simulation {
                what: format!("--replication-factor {factor} needs as many brokers, and --brokers is {brokers}"),
            }
            .into());
        }
        if u64::from(self.topics) * u64::from(self.partitions.unsigned_abs()) > MOST_PARTITIONS {
            return Err(Misuse::Simulation {
                what: format!(
                    "--topics {} with --partitions {} are more than {MOST_PARTITIONS} partitions",
                    self.topics, self.partitions
                ),
            }
            .into());
        }
        if self.port > 0 {
            self.port_of(i32::from(self.brokers) - 1)?;
        }
        self.check_load()?;
        let wall_clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let reporter = Reporter { interval: self.metrics_interval * 1_000, ..Reporter::default() };
        let options = Options {
            seed: self.seed,
            wall_start: i64::try_from(wall_clock.as_millis())?,
            reporter: (!self.no_metrics).then_some(reporter),
            memory: self.memory as u64,
            ..Options::default()
        };
        let specs = (0..i32::from(self.brokers)).map(|id| self.spec(BrokerId(id), None));
        let mut cluster = Cluster::new(options, specs);
        for n in 0..self.topics {
            let topic = NewTopic::new(&format!("topic-{n}"), self.partitions, factor);
            let topic = topic.loaded(self.load_of(n), 0);
            cluster.create_topic(&topic, false)?;
        }
        Ok(cluster)
    }

    /// Refuses what would change nothing.
    fn check_load(&self) -> Result<(), Misuse> {
        let uneven = [
            ("--swing", self.swing > 0.0),
            ("--hot-topic", self.hot_topic > 1.0),
            ("--hot-partition", self.hot_partition > 1.0),
        ];
        match uneven.into_iter().find(|(_, given)| *given && self.load == 0.0) {
            Some((option, _)) => Err(Misuse::Simulation { what: format!("{option} needs a --load, such as 5MB/s") }),
            None => Ok(()),
        }
    }

    /// What is written to the topic of this number.
    fn load_of(&self, topic: u32) -> Load {
        let times = if topic == 0 { self.hot_topic } else { 1.0 };
        let hot = if self.hot_partition > 1.0 { vec![(0, self.hot_partition)] } else { Vec::new() };
        Load { swing: self.swing, hot, ..Load::steady(self.load * times) }
    }

    fn port_of(&self, broker: i32) -> anyhow::Result<u16> {
        if self.port == 0 {
            return Ok(0);
        }
        let port = u16::try_from(i64::from(self.port) + i64::from(broker));
        port.map_err(|_| {
            let what = format!("--port {} leaves no port for broker {broker}: the last one is 65535", self.port);
            Misuse::Simulation { what }.into()
        })
    }

    /// A broker as all of them are, in the next rack unless one is named.
    fn spec(&self, id: BrokerId, rack: Option<String>) -> BrokerSpec {
        let next = || (self.racks > 0).then(|| rack_name(id.0 % i32::from(self.racks)));
        let dirs = (0..self.dirs).map(|n| DirSpec {
            path: format!("/data/d{n}"),
            capacity: self.capacity as u64,
            disk_bytes: self.disk,
        });
        BrokerSpec { rack: rack.or_else(next), dirs: dirs.collect(), link_bytes: self.link, ..BrokerSpec::new(id.0) }
    }
}

fn rack_name(n: i32) -> String {
    char::from(b'a' + n.clamp(0, 25) as u8).to_string()
}

fn bytes(text: &str) -> Result<f64, String> {
    let size = units::size(text).map(|megabytes| megabytes * 1024.0 * 1024.0);
    size.filter(|bytes| *bytes >= 1.0).ok_or_else(|| units::SIZE.to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    command::bytes_per_second(text).filter(|rate| *rate > 0.0).ok_or_else(|| units::RATE.to_owned())
}

fn load(text: &str) -> Result<f64, String> {
    command::bytes_per_second(text).ok_or_else(|| units::RATE.to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    command::part(text).ok_or_else(|| "not a percentage from 0 to 100".to_owned())
}

fn times(text: &str) -> Result<f64, String> {
    command::times(text).ok_or_else(|| "not a number from 1 to 1000".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.001..=100_000.0).contains(speed));
    speed.ok_or_else(|| "not a number from 0.001 to 100000".to_owned())
}
