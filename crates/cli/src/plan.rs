//! `evenkeel plan`: reads a snapshot, asks the balancer, prints the answer.
//!
//! What is asked is put together in `request` and `what_if`, what is printed in `report`, `table`, `why` and
//! `reassignment`; all of these are pure. Here is what touches files and the terminal.

mod progress;
mod reassignment;
mod refusal;
mod report;
mod request;
mod settings;
mod table;
#[cfg(test)]
mod testing;
mod timings;
pub(crate) mod units;
mod what_if;
mod why;

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use evenkeel_balancer::cluster::Cluster;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::plan::Plan;
use evenkeel_balancer::planner::{self, Outcome};
use evenkeel_snapshot::Snapshot;

pub(crate) use refusal::Refusal;
use report::Report;
use request::Asked;
pub(crate) use what_if::with_new_brokers;

/// What to plan for, what to ask, and how to answer.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster: a file as in docs/snapshot.md, plain or compressed, or - for standard input.
    #[arg(long, value_name = "FILE")]
    snapshot: PathBuf,
    #[command(flatten)]
    question: request::Question,
    #[command(flatten)]
    what_if: what_if::WhatIf,
    /// What is printed.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// With `--output reassignment`: the way back, to the placement as found.
    #[arg(long)]
    rollback: bool,
    /// Where the answer goes instead of to standard output.
    #[arg(short = 'o', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Says on standard error how long each part took, and the most memory used.
    #[arg(long)]
    timings: bool,
}

/// The shapes an answer can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people.
    Table,
    /// Everything, as docs/plan.md describes it.
    Json,
    /// The same as YAML.
    Yaml,
    /// The file that `kafka-reassign-partitions --reassignment-json-file` takes.
    Reassignment,
    /// The cluster as it is after the plan, to plan on from there.
    Snapshot,
}

/// Plans, and prints the plan. Nothing is printed unless there is a whole plan.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    if args.rollback && args.output != Format::Reassignment {
        return Err(Refusal::Options("--rollback goes with --output reassignment only".to_owned()).into());
    }
    // Everything that can be refused without the cluster is refused before it is read.
    let asked = args.question.parse(&args.what_if)?;
    let mut clock = timings::Clock::start();
    let snapshot = read(&args.snapshot)?;
    clock.lap("read");
    let cluster = args.what_if.apply(snapshot.cluster)?;
    clock.lap("change");
    asked.check_brokers(&cluster)?;
    let outcome = plan(&cluster, &asked)?;
    clock.lap("plan");
    check(&cluster, &asked, &outcome)?;
    clock.lap("inspect");
    let name = snapshot.notes.get("name").map(String::as_str);
    let answer = Answer { cluster: &cluster, name, asked: &asked, outcome: &outcome, rollback: args.rollback };
    answer.write(args.output, args.file.as_deref())?;
    clock.lap("write");
    if args.timings {
        writeln!(io::stderr(), "{}", clock.report()).context("the timings could not be written")?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Snapshot, Refusal> {
    let bar = progress::Reading::start();
    let snapshot = evenkeel_snapshot::read_path(path, |progress| bar.update(progress));
    bar.finish();
    snapshot.map_err(Refusal::Snapshot)
}

fn plan(cluster: &Cluster, asked: &Asked) -> Result<Outcome, Refusal> {
    let bar = progress::planning(cluster.replica_count());
    let outcome = planner::plan(cluster, &asked.request, &asked.settings);
    bar.finish_and_clear();
    Ok(outcome?)
}

/// What must hold of any plan before anybody sees it.
fn check(cluster: &Cluster, asked: &Asked, outcome: &Outcome) -> anyhow::Result<()> {
    let findings = inspect(cluster, &asked.request, &outcome.plan);
    if let Some(first) = findings.first() {
        let count = units::counted(findings.len() as u64, "thing", "things");
        bail!("the plan is wrong in {count}, which is a bug of evenkeel; the first: {first}");
    }
    Ok(())
}

/// A plan with what is needed to print it.
struct Answer<'a> {
    cluster: &'a Cluster,
    name: Option<&'a str>,
    asked: &'a Asked,
    outcome: &'a Outcome,
    rollback: bool,
}

impl Answer<'_> {
    fn write(&self, format: Format, file: Option<&Path>) -> anyhow::Result<()> {
        let plan: &Plan = &self.outcome.plan;
        if format == Format::Snapshot {
            let cluster = evenkeel_balancer::after::after(self.cluster, plan).context("the plan cannot be applied")?;
            let written = evenkeel_snapshot::write_path(file.unwrap_or(Path::new("-")), &Snapshot::from(cluster));
            return match written {
                Err(evenkeel_snapshot::Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
                outcome => Ok(outcome?),
            };
        }
        let written = match file {
            None => self.print(format, &mut BufWriter::new(io::stdout().lock())),
            Some(path) => {
                let failed = || format!("{}: could not be written", path.display());
                let mut out = BufWriter::new(File::create(path).with_context(failed)?);
                self.print(format, &mut out).with_context(failed)
            }
        };
        match written {
            // A reader that has seen enough, such as `head`, is no error.
            Err(error) if is_broken_pipe(&error) => Ok(()),
            outcome => outcome,
        }
    }

    fn print(&self, format: Format, out: &mut impl Write) -> anyhow::Result<()> {
        let plan = &self.outcome.plan;
        let report = || Report::of(self.cluster, self.name, self.asked, self.outcome);
        match format {
            Format::Table => out.write_all(table::render(&report()).as_bytes())?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, &report())?;
                out.write_all(b"\n")?;
            }
            Format::Yaml => out.write_all(serde_saphyr::to_string(&report())?.as_bytes())?,
            Format::Reassignment | Format::Snapshot => {
                serde_json::to_writer_pretty(&mut *out, &reassignment::of(self.cluster, plan, self.rollback))?;
                out.write_all(b"\n")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Whether nobody reads any more; serde hides the IO error in one of its own.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(ErrorKind::BrokenPipe)
    })
}
