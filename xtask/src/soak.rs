//! `cargo xtask soak`: the suites in which chance plays a part, with many more seeds than every run of the tests can try.
//! A failure names its seed; the same seed tells the same story again.

use anyhow::{Result, bail};
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
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
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
