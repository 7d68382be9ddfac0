//! `cargo xtask check`: the steps of CI, one after the other, and a table of what each took.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::{image, preparation::Preparation, process, real, tidy, workspace::Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Leaves out the suites against real parts, which take minutes on a cold machine.
    #[arg(long)]
    no_real: bool,
    /// Runs this step alone.
    #[arg(long, value_name = "STEP", conflicts_with = "no_real")]
    only: Option<Step>,
}

/// In the order in which they run: what fails fastest comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Step {
    Format,
    Tidy,
    Clippy,
    Docs,
    Test,
    RealKafka,
    RealKube,
    Image,
}

struct Finished {
    step: Step,
    took: Duration,
    passed: bool,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let mut finished = Vec::new();
    let mut failure = None;
    let steps = options.steps();
    let mut parts = if steps.contains(&Step::RealKube) { Some(Preparation::begin()?) } else { None };
    for step in steps {
        println!("\n==> {}", step.name());
        let start = Instant::now();
        let parts = if step == Step::RealKube { parts.take() } else { None };
        let outcome = parts.map_or(Ok(()), Preparation::end).and_then(|()| step.run(workspace));
        finished.push(Finished { step, took: start.elapsed(), passed: outcome.is_ok() });
        if let Err(cause) = outcome {
            failure = Some((step, cause));
            break;
        }
    }
    print!("\n{}", table(&finished));
    match failure {
        None => Ok(()),
        Some((step, cause)) => bail!("check stopped at step `{}`: {cause:#}", step.name()),
    }
}

impl Options {
    fn steps(&self) -> Vec<Step> {
        match self.only {
            Some(step) => vec![step],
            None => Step::value_variants()
                .iter()
                .copied()
                .filter(|step| !(self.no_real && step.needs_real_parts()))
                .collect(),
        }
    }
}

impl Step {
    fn name(self) -> String {
        // Every variant is offered on the command line, so every variant has a name there.
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn needs_real_parts(self) -> bool {
        matches!(self, Self::RealKafka | Self::RealKube)
    }

    fn run(self, workspace: &Workspace) -> Result<()> {
        let cargo = |arguments: &[&str]| {
            let mut cargo = process::cargo();
            cargo.args(arguments).current_dir(workspace.root());
            cargo
        };
        match self {
            Self::Format => process::run(&mut cargo(&["fmt", "--all", "--check"])),
            Self::Tidy => tidy::run(workspace),
            // All features, or the real arms would be code that nobody lints.
            Self::Clippy => process::run(&mut cargo(&[
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ])),
            Self::Docs => process::run(
                cargo(&["doc", "--locked", "--workspace", "--no-deps", "--all-features"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ),
            // As the README has it, and nothing else.
            Self::Test => process::run(&mut cargo(&["test", "--locked", "--workspace"])),
            Self::RealKafka => real::kafka(workspace, &[]),
            Self::RealKube => real::kube(workspace, &[]),
            // Last, because it leaves a program where the steps before it have theirs.
            Self::Image => image::run(workspace, &image::Options { quick: true }),
        }
    }
}

fn table(finished: &[Finished]) -> String {
    let mut table = String::new();
    for Finished { step, took, passed } in finished {
        let verdict = if *passed { "ok" } else { "FAILED" };
        let _ = writeln!(table, "{:<10} {:>9.1} s  {verdict}", step.name(), took.as_secs_f64());
    }
    let total: Duration = finished.iter().map(|step| step.took).sum();
    let _ = writeln!(table, "{:<10} {:>9.1} s", "total", total.as_secs_f64());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_real_parts_everything_else_still_runs() {
        let options = Options { no_real: true, only: None };
        assert_eq!(options.steps(), [Step::Format, Step::Tidy, Step::Clippy, Step::Docs, Step::Test, Step::Image]);
    }

    #[test]
    fn a_step_can_be_run_alone() {
        let options = Options { no_real: false, only: Some(Step::RealKube) };
        assert_eq!(options.steps(), [Step::RealKube]);
    }

    #[test]
    fn the_table_tells_what_failed_and_when() {
        let finished = [
            Finished { step: Step::Format, took: Duration::from_millis(1500), passed: true },
            Finished { step: Step::RealKube, took: Duration::from_secs(61), passed: false },
        ];
        assert_eq!(
            table(&finished),
            "format           1.5 s  ok\n\
             real-kube       61.0 s  FAILED\n\
             total           62.5 s\n"
        );
    }
}
