//! What the engine costs, end to end: `evenkeel engine` as users run it, over simulated brokers on loopback ports.
//!
//! `cargo xtask bench engine` builds the program and starts this. It asserts nothing about time, but stops when an answer
//! is wrong, and puts what was aimed at beside what was measured.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod memory;
mod plans;
mod samples;
mod sizes;
mod stand;
mod start;
mod throttle;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{self, Numbers, Run};

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The engine: plans, executions, memory, start")]
struct Options {
    #[command(flatten)]
    common: measure::Options<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Proposals, approvals, and the state while ten thousand moves are carried out.
    Plans,
    /// How much of the bandwidth that is allowed a throttled execution uses.
    Throttle,
    /// Memory with many partitions and windows.
    Memory,
    /// From the start until it is ready, with a day of samples.
    Start,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let sizes = if options.common.quick { Sizes::QUICK } else { Sizes::FULL };
    let run = Run::begin();
    let mut numbers = Numbers::default();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    if options.common.wants(Part::Plans) {
        runtime.block_on(plans::measure(&sizes, &mut numbers)).context("plans")?;
    }
    if options.common.wants(Part::Start) {
        runtime.block_on(start::measure(&sizes, &mut numbers)).context("start")?;
    }
    if options.common.wants(Part::Memory) {
        runtime.block_on(memory::measure(&sizes, &mut numbers)).context("memory")?;
    }
    if options.common.wants(Part::Throttle) {
        throttle::measure(&sizes, &mut numbers).context("throttle")?;
    }
    run.end(&options.common, &sizes, &[("rows", &numbers.report())])
}

/// Says what is done now.
pub(crate) fn step(what: &str) {
    eprintln!("{what}");
}
