//! `cargo xtask soak`: the suites in which chance plays a part, with many more seeds than every run of the tests can try.
//! A failure names its seed; the same seed tells the same story again.

use anyhow::{Result, bail};
use clap::Args;

use crate::{process, workspace::Workspace};

/// Tells the suites how many seeds to try; where it is set, they also leave no crash out.
const SEEDS: &str = "EVENKEEL_SEEDS";

/// The suites that look at it: package, test binary (or the tests beside the code), and the names of the tests.
const SUITES: [(&str, &str, &str); 4] = [
    ("evenkeel-engine", "draining", "brokers_that_were_just_filled"),
    ("evenkeel-operator", LIB, "in_orders_that_seeds_choose"),
    ("evenkeel-operator", "rebalance", "in_bad_weather"),
    ("evenkeel-operator", "clusters", "whenever_the_operator_dies"),
];

/// In place of a test binary: the tests beside the code.
const LIB: &str = "lib";

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
