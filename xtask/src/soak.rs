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

/// The suites that look at it: package, test binary (or the tests beside the code), and the names of the tests.
const SUITES: [(&str, &str, &str); 6] = [
    ("evenkeel-engine", "engine", "brokers_that_were_just_filled"),
    ("evenkeel-operator", LIB, "in_orders_that_seeds_choose"),
    ("evenkeel-operator", "rebalance", "in_bad_weather"),
    ("evenkeel-operator", "clusters", "whenever_the_operator_dies"),
    ("evenkeel-operator", "clusters", "in_chaos"),
    ("evenkeel-operator", "clusters", "whoever_dies"),
];

/// In place of a test binary: the tests beside the code.
const LIB: &str = "lib";

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
fn arguments<'a>(package: &'a str, binary: &'a str, tests: &'a str) -> Vec<&'a str> {
    let mut all = vec!["test", "--locked", "--release", "-p", package];
    match binary {
        LIB => all.push("--lib"),
        binary => all.extend(["--test", binary]),
    }
    all.extend(["--", "--include-ignored", tests]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_at_the_number_of_seeds_is_a_suite_of_the_soak_and_the_other_way_round() {
        let workspace = Workspace::find().unwrap();
        let mut looking = Vec::new();
        for path in
            workspace.files().unwrap().iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
        {
            let text = workspace.read(path).unwrap();
            if !text.contains(SEEDS) {
                continue;
            }
            let mut parts = path.split('/').skip(1);
            let package = format!("evenkeel-{}", parts.next().unwrap_or_default());
            let binary = match parts.next() {
                Some("tests") => parts.next().unwrap_or_default().trim_end_matches(".rs").to_owned(),
                _ => LIB.to_owned(),
            };
            let tests: Vec<&str> = SUITES
                .iter()
                .filter(|(of, named, tests)| *of == package && *named == binary && text.contains(tests))
                .map(|(_, _, tests)| *tests)
                .collect();
            assert!(!tests.is_empty(), "{path} looks at the number of seeds, and no soak runs it");
            looking.extend(tests);
        }
        for (_, _, tests) in SUITES {
            assert!(looking.contains(&tests), "{tests} does not look at the number of seeds");
        }
    }
}
