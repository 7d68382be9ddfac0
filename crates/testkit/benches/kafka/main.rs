//! What the Kafka client costs: the metadata of a large cluster, a metrics topic read by one consumer, and round trips
//! to a real broker beside another client's.
//!
//! `cargo xtask bench kafka` starts this. It asserts nothing about time, but stops when an answer is wrong.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod admin;
mod metadata;
mod metrics;
mod sizes;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::{
    measure::{self, Report, Run},
    real_kafka::{BrokerSpec, Cluster, Kit},
};

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The Kafka client: decoding, consuming, and round trips beside kafka-python")]
struct Options {
    #[command(flatten)]
    common: measure::Options<Part>,
    /// Leaves out what needs real brokers.
    #[arg(long)]
    no_real: bool,
    /// Decodes the metadata in this file and says what it took: a process of its own, for its peak of memory.
    #[arg(long, value_name = "FILE", hide = true)]
    decode: Option<PathBuf>,
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

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(file) = &options.decode {
        return metadata::decode(file);
    }
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let sizes = if options.common.quick { Sizes::QUICK } else { Sizes::FULL };
    let run = Run::begin();
    let step = |what: &str| eprintln!("{what}");
    let mut measured = Vec::new();
    if options.common.wants(Part::Metadata) {
        step("metadata");
        measured.extend(metadata::measure(&sizes).context("metadata")?);
    }
    if options.common.wants(Part::Metrics) {
        step("metrics topic, simulated brokers");
        measured.extend(metrics::measure_simulated(&sizes).await.context("simulated brokers")?);
    }
    let mut round_trips = None;
    if !options.no_real && (options.common.wants(Part::Metrics) || options.common.wants(Part::Admin)) {
        step("starting real brokers");
        let cluster = Cluster::start(Kit::from_env()?, &BrokerSpec::several(3)).await?;
        if options.common.wants(Part::Metrics) {
            step("metrics topic, real brokers");
            measured.extend(metrics::measure_real(&cluster, &sizes).await.context("real brokers")?);
        }
        if options.common.wants(Part::Admin) {
            step("round trips");
            round_trips = Some(admin::measure(&cluster, &sizes).await.context("round trips")?);
        }
    }
    let costs = Report::alone(&measured);
    let mut tables = vec![("costs", &costs)];
    tables.extend(round_trips.as_ref().map(|report| ("roundTrips", report)));
    run.end(&options.common, &sizes, &tables)
}
