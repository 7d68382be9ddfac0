//! What the operator costs, and how soon it does what is asked for: a process of its own, beside the embedded Kubernetes
//! API and a node that runs simulated brokers and engines in this one.
//!
//! `cargo xtask bench operator` starts this. It asserts nothing about time, but stops when something never happens.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod idle;
mod manifests;
mod operator;
mod scaling;
mod sizes;
mod stand;

use std::{env, fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{Numbers, cores, load_average};
use serde_json::json;

use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The operator: memory, idle work, and how soon it acts")]
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
    /// One cluster that grows and shrinks with its data.
    Scaling,
    /// Many clusters and rebalances at rest, and all of them scaled at once.
    Idle,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

fn main() -> Result<()> {
    // The same program is the operator that is measured.
    if let Some(kubeconfig) = env::args().skip_while(|word| word != operator::WORD).nth(1) {
        return operator::live(PathBuf::from(kubeconfig));
    }
    let options = Options::parse();
    let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
    let (started, load_before) = (Instant::now(), load_average());
    let mut numbers = Numbers::default();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    if options.wants(Part::Scaling) {
        runtime.block_on(scaling::measure(&sizes, &mut numbers)).context("scaling")?;
    }
    if options.wants(Part::Idle) {
        runtime.block_on(idle::measure(&sizes, &mut numbers)).context("idle")?;
    }
    let (report, load) = (numbers.report(), [load_before, load_average()]);
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
