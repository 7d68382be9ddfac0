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

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{Numbers, cores, load_average};
use serde_json::json;

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The engine: plans, executions, memory, start")]
struct Options {
    /// Small sizes: shows that it works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Runs these parts alone (repeatable).
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<Part>,
    /// Writes the numbers, the sizes and the machine here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// `cargo bench` says so to every bench.
    #[arg(long, hide = true)]
    bench: bool,
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

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
    let (started, load_before) = (Instant::now(), load_average());
    let mut numbers = Numbers::default();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    if options.wants(Part::Plans) {
        runtime.block_on(plans::measure(&sizes, &mut numbers)).context("plans")?;
    }
    if options.wants(Part::Start) {
        runtime.block_on(start::measure(&sizes, &mut numbers)).context("start")?;
    }
    if options.wants(Part::Memory) {
        runtime.block_on(memory::measure(&sizes, &mut numbers)).context("memory")?;
    }
    if options.wants(Part::Throttle) {
        throttle::measure(&sizes, &mut numbers).context("throttle")?;
    }
    let report = numbers.report();
    let load = [load_before, load_average()];
    println!("\n{report}");
    println!("{} cores, {:.0} s", cores(), started.elapsed().as_secs_f64());
    println!("load average before: {}; after: {}", load[0], load[1]);
    if let Some(file) = &options.json {
        let numbers = json!({"cores": cores(), "loadAverages": load, "quick": options.quick, "sizes": sizes,
            "rows": report.rows()});
        fs::write(file, format!("{numbers:#}\n")).with_context(|| format!("could not write {}", file.display()))?;
    }
    Ok(())
}

/// Says what is done now.
pub(crate) fn step(what: &str) {
    eprintln!("{what}");
}
