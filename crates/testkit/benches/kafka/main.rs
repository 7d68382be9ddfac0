//! What the Kafka client costs: the metadata of a large cluster, a metrics topic read by one consumer, and round trips
//! to a real broker beside another client's.
//!
//! `cargo xtask bench kafka` starts this. It asserts nothing about time, but stops when an answer is wrong.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod admin;
mod metadata;
mod metrics;
mod sizes;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::{
    measure::{Report, cores, load_average},
    real_kafka::{BrokerSpec, Cluster, Kit},
};
use serde_json::json;

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The Kafka client: decoding, consuming, and round trips beside kafka-python")]
struct Options {
    /// Small sizes: shows that it works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Leaves out what needs real brokers.
    #[arg(long)]
    no_real: bool,
    /// Runs these parts alone (repeatable).
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<Part>,
    /// Writes the numbers, the sizes and the machine here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Decodes the metadata in this file and says what it took: a process of its own, for its peak of memory.
    #[arg(long, value_name = "FILE", hide = true)]
    decode: Option<PathBuf>,
    /// `cargo bench` says so to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Decoding the metadata of a large cluster.
    Metadata,
    /// Reading a metrics topic, from simulated brokers and from real ones.
    Metrics,
    /// Round trips to a real broker, beside kafka-python.
    Admin,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(file) = &options.decode {
        return metadata::decode(file);
    }
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
    let started = Instant::now();
    let load_before = load_average();
    let step = |what: &str| eprintln!("{what}");
    let mut measured = Vec::new();
    if options.wants(Part::Metadata) {
        step("metadata");
        measured.extend(metadata::measure(&sizes).context("metadata")?);
    }
    if options.wants(Part::Metrics) {
        step("metrics topic, simulated brokers");
        measured.extend(metrics::measure_simulated(&sizes).await.context("simulated brokers")?);
    }
    let mut round_trips = None;
    if !options.no_real && (options.wants(Part::Metrics) || options.wants(Part::Admin)) {
        step("starting real brokers");
        let cluster = Cluster::start(Kit::from_env()?, &BrokerSpec::several(3)).await?;
        if options.wants(Part::Metrics) {
            step("metrics topic, real brokers");
            measured.extend(metrics::measure_real(&cluster, &sizes).await.context("real brokers")?);
        }
        if options.wants(Part::Admin) {
            step("round trips");
            round_trips = Some(admin::measure(&cluster, &sizes).await.context("round trips")?);
        }
    }
    let costs = Report::alone(&measured);
    let load = [load_before, load_average()];
    println!("\n{costs}");
    if let Some(round_trips) = &round_trips {
        println!("{round_trips}");
    }
    println!("{} cores, {:.0} s", cores(), started.elapsed().as_secs_f64());
    println!("load average before: {}; after: {}", load[0], load[1]);
    if let Some(file) = &options.json {
        let round_trips = round_trips.as_ref().map(|report| json!(report.rows()));
        let numbers = json!({"cores": cores(), "loadAverages": load, "quick": options.quick, "sizes": sizes,
            "costs": costs.rows(), "roundTrips": round_trips});
        fs::write(file, format!("{numbers:#}\n")).with_context(|| format!("could not write {}", file.display()))?;
    }
    Ok(())
}
