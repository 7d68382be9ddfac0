//! What the operator costs, and how soon it does what is asked for: a process of its own, beside the embedded Kubernetes
//! API and a node that runs simulated brokers and engines in this one.
//!
//! `cargo xtask bench operator` starts this. It asserts nothing about time, but stops when something never happens.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod crowd;
mod idle;
mod manifests;
mod operator;
mod scaling;
mod sizes;
mod stand;

use std::{env, path::PathBuf, sync::LazyLock, time::Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{self, Numbers, Run};

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The operator: memory, idle work, and how soon it acts")]
struct Options {
    #[command(flatten)]
    common: measure::Options<Part>,
    /// So many clusters where there are many.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    clusters: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// One cluster that grows and shrinks with its data.
    Scaling,
    /// Many clusters and rebalances at rest.
    Idle,
    /// Many clusters, all of them scaled at once.
    Crowd,
}

fn main() -> Result<()> {
    // The same program is the operator that is measured.
    if let Some(kubeconfig) = env::args().skip_while(|word| word != operator::WORD).nth(1) {
        return operator::live(PathBuf::from(kubeconfig));
    }
    let options = Options::parse();
    let mut sizes = if options.common.quick { Sizes::QUICK } else { Sizes::FULL };
    sizes.clusters = options.clusters.map_or(sizes.clusters, usize::from);
    let run = Run::begin();
    let mut numbers = Numbers::default();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    if options.common.wants(Part::Scaling) {
        runtime.block_on(scaling::measure(&sizes, &mut numbers)).context("scaling")?;
    }
    if options.common.wants(Part::Idle) {
        runtime.block_on(idle::measure(&sizes, &mut numbers)).context("idle")?;
    }
    if options.common.wants(Part::Crowd) {
        runtime.block_on(crowd::measure(&sizes, &mut numbers)).context("crowd")?;
    }
    run.end(&options.common, &sizes, &[("rows", &numbers.report())])
}

/// Says what is done now, and how long the bench has taken up to then.
pub(crate) fn step(what: &str) {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    eprintln!("{:5.0} s  {what}", BEGAN.elapsed().as_secs_f64());
}
