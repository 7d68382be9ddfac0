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

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use evenkeel_testkit::measure::{self, Measurement, Report, Run, Spread, Unit};

use contestant::Contestant;
use load::Write;
use sizes::Sizes;

#[derive(Parser)]
#[command(about = "The embedded Kubernetes API beside kube-apiserver and etcd")]
struct Options {
    #[command(flatten)]
    common: measure::Options<Part>,
    /// Runs one contestant alone.
    #[arg(long)]
    only: Option<Side>,
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

fn main() -> Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let sizes = if options.common.quick { Sizes::QUICK } else { Sizes::FULL };
    let run = Run::begin();
    // Never both at once: each has the machine, and half of it is the client's.
    let mut real = Vec::new();
    if options.only != Some(Side::Ours) {
        real = measure(&Contestant::real()?, &sizes, options).await.context("the real server")?;
    }
    let mut ours = Vec::new();
    if options.only != Some(Side::Real) {
        ours = measure(&Contestant::ours()?, &sizes, options).await.context("our server")?;
    }
    run.end(&options.common, &sizes, &[("rows", &Report::new(&ours, &real))])
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
    if options.common.wants(Part::Writes) || options.common.wants(Part::Lists) {
        for write in [Write::Create, Write::Patch] {
            step(write.plural());
            measured.extend(load::measure(&server, sizes, write).await.context(write.plural())?);
        }
    }
    if options.common.wants(Part::Lists) {
        step("lists");
        measured.extend(lists::measure(&server, sizes).await.context("lists")?);
    }
    if options.common.wants(Part::Watches) {
        step("watches");
        measured.extend(watches::measure(&server, sizes).await.context("watches")?);
    }
    drop(server);
    if options.common.wants(Part::Memory) {
        step("memory");
        // A process of its own: what a thousand watchers left behind in the allocator is another question.
        let server = contestant.start().await?;
        measured.extend(memory::measure(&server, sizes).await.context("memory")?);
    }
    Ok(measured)
}
