//! Our API server beside the real one: the same client, the same work, one after the other on the same machine.
//!
//! `cargo xtask bench kube` builds both servers and starts this. It asserts nothing about time, but stops when an
//! answer is wrong: a server that loses objects is not fast.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]

mod contestant;
mod lists;
mod load;
mod memory;
mod meter;
mod objects;
mod sizes;
mod watches;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{Measurement, Report, Spread, Unit, cores, load_average};
use serde_json::json;

use contestant::Contestant;
use load::Write;
use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The embedded Kubernetes API beside kube-apiserver and etcd")]
struct Options {
    /// Small sizes: shows that it works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Runs one contestant alone.
    #[arg(long)]
    only: Option<Side>,
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
enum Side {
    Ours,
    Real,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Creates and merge patches.
    Writes,
    /// Lists of what was written, so with the writes before them.
    Lists,
    Watches,
    Memory,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let sizes = if options.quick { Sizes::QUICK } else { Sizes::FULL };
    let started = Instant::now();
    let load_before = load_average();
    // Never both at once: each has the machine, and half of it is the client's.
    let mut real = Vec::new();
    if options.only != Some(Side::Ours) {
        real = measure(&Contestant::real()?, &sizes, options).await.context("the real server")?;
    }
    let mut ours = Vec::new();
    if options.only != Some(Side::Real) {
        ours = measure(&Contestant::ours()?, &sizes, options).await.context("our server")?;
    }
    let report = Report::new(&ours, &real);
    let load = [load_before, load_average()];
    println!("\n{report}\n{} cores, {:.0} s", cores(), started.elapsed().as_secs_f64());
    println!("load average before: {}; after: {}", load[0], load[1]);
    if let Some(file) = &options.json {
        let numbers = json!({"cores": cores(), "loadAverages": load, "quick": options.quick, "sizes": sizes, "rows": report.rows()});
        fs::write(file, format!("{numbers:#}\n")).with_context(|| format!("could not write {}", file.display()))?;
    }
    Ok(())
}

/// All that is measured, of one server.
async fn measure(contestant: &Contestant, sizes: &Sizes, options: &Options) -> Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    let step = |what: &str| eprintln!("{}: {what}", contestant.name());

    step("start");
    let mut starts = Vec::new();
    // The last one stays, and does the work.
    for _ in 1..sizes.starts {
        starts.push(contestant.start().await?.start);
    }
    let server = contestant.start().await?;
    starts.push(server.start);
    let start = Spread::of(starts).context("no start was measured")?.median();
    measured.push(Measurement::time("start until ready", Unit::Milliseconds, start));

    load::warm_up(&server, sizes).await.context("warming up")?;
    if options.wants(Part::Writes) || options.wants(Part::Lists) {
        for write in [Write::Create, Write::Patch] {
            step(write.plural());
            measured.extend(load::measure(&server, sizes, write).await.context(write.plural())?);
        }
    }
    if options.wants(Part::Lists) {
        step("lists");
        measured.extend(lists::measure(&server, sizes).await.context("lists")?);
    }
    if options.wants(Part::Watches) {
        step("watches");
        measured.extend(watches::measure(&server, sizes).await.context("watches")?);
    }
    drop(server);
    if options.wants(Part::Memory) {
        step("memory");
        // A process of its own: what a thousand watchers left behind in the allocator is another question.
        let server = contestant.start().await?;
        measured.extend(memory::measure(&server, sizes).await.context("memory")?);
    }
    Ok(measured)
}
