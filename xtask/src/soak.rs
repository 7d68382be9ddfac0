//! `cargo xtask soak`: the suites in which chance plays a part, with many more seeds than every run of the tests can try.
//! A failure names its seed; the same seed tells the same story again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{process, workspace::Workspace};

/// Tells the suites how many seeds to try; where it is set, they also leave no crash out.
const SEEDS: &str = "EVENKEEL_SEEDS";

/// The suites that look at it: package, test binary, and the names of the tests.
const SUITES: [(&str, &str, &str); 2] = [
    ("evenkeel-operator", "rebalance", "in_bad_weather"),
    ("evenkeel-operator", "clusters", "whenever_the_operator_dies"),
];

#[derive(Args)]
pub(crate) struct Options {
    /// How many seeds to try.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Plays the tour of `evenkeel local` so many times in a row instead.
    #[arg(long, conflicts_with = "seeds", value_parser = clap::value_parser!(u32).range(1..))]
    tours: Option<u32>,
    /// Keeps every core busy with something else meanwhile.
    #[arg(long, requires = "tours")]
    busy: bool,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if let Some(number) = options.tours {
        return tours(workspace, number, options.busy);
    }
    let mut failed = Vec::new();
    for (package, binary, tests) in SUITES {
        println!("\n==> {package}, {tests}, {} seeds", options.seeds);
        let mut cargo = process::cargo();
        cargo.args(arguments(package, binary, tests)).env(SEEDS, options.seeds.to_string());
        if let Err(cause) = process::run(cargo.current_dir(workspace.root())) {
            // The others may find something else.
            println!("{cause:#}");
            failed.push(tests);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// The first command of the README, again and again: all of its promises are kept each time.
fn tours(workspace: &Workspace, number: u32, busy: bool) -> Result<()> {
    let package = ["--locked", "--release", "--package", "evenkeel-cli", "--bin", "evenkeel"];
    let cargo = |verb: &str| {
        let mut cargo = process::cargo();
        cargo.arg(verb).args(package).current_dir(workspace.root());
        cargo
    };
    process::run(&mut cargo("build"))?;
    let _busy = busy.then(Busy::begin);
    let mut took: Vec<Duration> = Vec::new();
    for tour in 1..=number {
        println!("\n==> tour {tour} of {number}");
        let begun = Instant::now();
        process::run(cargo("run").args(["--", "local", "--tour"]))
            .with_context(|| format!("tour {tour} of {number} did not keep what it promises"))?;
        took.push(begun.elapsed());
    }
    let seconds = |time: Option<&Duration>| time.map_or(0, Duration::as_secs);
    println!("{number} tours passed, in {} to {} s each", seconds(took.iter().min()), seconds(took.iter().max()));
    Ok(())
}

/// A loop on every core, until dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn begin() -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            let enough = Arc::clone(&enough);
            thread::spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(enough)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Optimised: a thousand stories take a while.
fn arguments<'a>(package: &'a str, binary: &'a str, tests: &'a str) -> [&'a str; 10] {
    ["test", "--locked", "--release", "-p", package, "--test", binary, "--", "--include-ignored", tests]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_one_that_looks_at_the_number_of_seeds() {
        let root = Workspace::find().unwrap();
        for (package, binary, tests) in SUITES {
            let folder =
                root.root().join("crates").join(package.trim_start_matches("evenkeel-")).join("tests").join(binary);
            let texts: Vec<String> = std::fs::read_dir(&folder)
                .unwrap()
                .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
                .collect();
            assert!(texts.iter().any(|text| text.contains(SEEDS) && text.contains(tests)), "{tests} in {folder:?}");
        }
    }
}
