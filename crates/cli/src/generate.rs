//! `evenkeel generate`

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::PossibleValue;
use evenkeel_balancer::after::after;
use evenkeel_balancer::cluster::Cluster;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::Request;
use evenkeel_balancer::planner;
use evenkeel_balancer::settings::Settings;
use evenkeel_snapshot::generate::{self, Distribution, Parameters};
use evenkeel_snapshot::{Error, Snapshot};
use indicatif::{ProgressBar, ProgressStyle};

use crate::misuse::Misuse;
use crate::plan;

/// What the cluster is drawn from. What is not given is as in the preset.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A cluster that benchmarks are about, to take as it is or to start from [default: a]
    #[arg(long, value_parser = presets())]
    preset: Option<String>,
    /// Racks.
    #[arg(long)]
    racks: Option<u32>,
    /// Brokers, dead ones included.
    #[arg(long)]
    brokers: Option<u32>,
    /// How many of the brokers are dead; those with the lowest ids are.
    #[arg(long)]
    dead_brokers: Option<u32>,
    /// Log directories on each broker; 0 does not tell them apart.
    #[arg(long)]
    disks: Option<u32>,
    /// Topics; one more is added, with one partition per broker and two replicas of each.
    #[arg(long)]
    topics: Option<u32>,
    /// Replicas of all topics but the added one.
    #[arg(long)]
    replicas: Option<u32>,
    /// Replicas of each partition: a number, or a range such as 2-4.
    #[arg(long, value_parser = factor)]
    factor: Option<(u32, u32)>,
    /// Mean CPU load of a replica, in percent of a core.
    #[arg(long)]
    mean_cpu: Option<f64>,
    /// Mean inbound load of a replica, in KB/s.
    #[arg(long)]
    mean_in: Option<f64>,
    /// Mean outbound load of a leader, in KB/s.
    #[arg(long)]
    mean_out: Option<f64>,
    /// Mean size of a replica, in MB.
    #[arg(long)]
    mean_disk: Option<f64>,
    /// How replicas are spread over the brokers: uniform, linear or exponential.
    #[arg(long)]
    distribution: Option<Distribution>,
    /// Whether the replicas of a partition all get a rack of their own.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    rack_aware: Option<bool>,
    /// Added to every seed: another number gives another cluster.
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<i64>,
    /// Where the snapshot goes: a file, compressed if its name ends in .gz, or - for standard output.
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
}

/// Writes a snapshot of a random cluster.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let parameters = args.parameters()?;
    let bar = bar(parameters.all_replicas());
    let mut cluster =
        generate::generate(&parameters, |replicas| bar.set_position(replicas)).map_err(Misuse::Generation)?;
    if args.preset.as_deref() == Some(GROWN) {
        bar.set_message("balancing");
        cluster = grown(cluster)?;
    }
    let mut snapshot = Snapshot::from(cluster);
    if let Some(name) = args.preset.filter(|name| preset(name).as_ref() == Some(&parameters)) {
        snapshot.notes.insert("name".to_owned(), name);
    }
    bar.set_message("writing");
    let written = evenkeel_snapshot::write_path(&args.output, &snapshot);
    bar.finish_and_clear();
    match written {
        // A reader that has seen enough, such as `head`, is no error.
        Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

impl Args {
    fn parameters(&self) -> anyhow::Result<Parameters> {
        let name = self.preset.as_deref().unwrap_or("a");
        let mut parameters = preset(name).with_context(|| format!("there is no preset {name}"))?;
        let given = |place: &mut u32, value: Option<u32>| *place = value.unwrap_or(*place);
        given(&mut parameters.racks, self.racks);
        given(&mut parameters.brokers, self.brokers);
        given(&mut parameters.dead_brokers, self.dead_brokers);
        given(&mut parameters.disks_per_broker, self.disks);
        given(&mut parameters.topics, self.topics);
        given(&mut parameters.replicas, self.replicas);
        given(&mut parameters.min_factor, self.factor.map(|(min, _)| min));
        given(&mut parameters.max_factor, self.factor.map(|(_, max)| max));
        let means = &mut parameters.means;
        let given = |place: &mut f64, value: Option<f64>| *place = value.unwrap_or(*place);
        given(&mut means.cpu, self.mean_cpu);
        given(&mut means.nw_in, self.mean_in);
        given(&mut means.nw_out, self.mean_out);
        given(&mut means.disk, self.mean_disk);
        parameters.distribution = self.distribution.unwrap_or(parameters.distribution);
        parameters.rack_aware = self.rack_aware.unwrap_or(parameters.rack_aware);
        parameters.seed = self.seed.unwrap_or(parameters.seed);
        Ok(parameters)
    }
}

/// The preset that is planned for on top of being drawn.
const GROWN: &str = "g";

fn presets() -> Vec<PossibleValue> {
    let grown = (GROWN, "80 brokers that `evenkeel plan` balanced, plus the new and empty brokers 80 and 81");
    let all = generate::PRESETS.into_iter().chain([grown]);
    all.map(|(name, what)| PossibleValue::new(name).help(what)).collect()
}

fn preset(name: &str) -> Option<Parameters> {
    if name == GROWN { Some(Parameters { brokers: 80, ..Parameters::default() }) } else { generate::preset(name) }
}

/// The cluster balanced by all goals, and then two more brokers.
fn grown(cluster: Cluster) -> anyhow::Result<Cluster> {
    let request =
        Request { threads: thread::available_parallelism().map_or(1, NonZeroUsize::get), ..Request::default() };
    let outcome = planner::plan(&cluster, &request, &Settings::default()).map_err(plan::Refusal::Refused)?;
    if let Some(finding) = inspect(&cluster, &request, &outcome.plan).first() {
        bail!("the plan that balances it is wrong, which is a bug of evenkeel: {finding}");
    }
    let balanced = after(&cluster, &outcome.plan).context("the plan cannot be applied")?;
    let next = balanced.brokers().last().map_or(0, |broker| broker.id.0 + 1);
    Ok(plan::with_new_brokers(balanced, &[next, next + 1])?)
}

/// Drawn on standard error, and only if that is a terminal.
fn bar(replicas: u64) -> ProgressBar {
    let bar = ProgressBar::new(replicas);
    if let Ok(style) = ProgressStyle::with_template("{msg:10} {wide_bar} {human_pos} of {human_len} replicas") {
        bar.set_style(style);
    }
    bar.set_message("drawing");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn factor(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse().map_err(|_| "a number, or a range such as 2-4".to_owned());
    match text.split_once('-') {
        Some((min, max)) => Ok((number(min)?, number(max)?)),
        None => number(text).map(|factor| (factor, factor)),
    }
}
