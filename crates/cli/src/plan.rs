//! `evenkeel plan`: reads a snapshot, asks the balancer, prints the answer.
//!
//! What is asked is put together in `request` and `what_if`, what is printed in `report`, `table`, `why` and
//! `reassignment`; all of these are pure. Here is what touches files and the terminal.

mod page;
pub(crate) mod progress;
mod reassignment;
mod rebuild;
mod refusal;
mod report;
mod request;
mod settings;
mod shortfall;
mod table;
#[cfg(test)]
mod testing;
mod timings;
pub(crate) mod units;
mod what_if;
mod why;

use std::collections::BTreeMap;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use evenkeel_balancer::cluster::Cluster;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::planner::{self, Outcome};
use evenkeel_snapshot::Snapshot;

pub(crate) use refusal::Refusal;
use report::Report;
use request::Asked;
pub(crate) use what_if::with_new_brokers;

use crate::live;

/// What to plan for, what to ask, and how to answer.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster: a file as in docs/snapshot.md, plain or compressed, or - for standard input.
    // Because of the conflict with it, what else requires `bootstrap` would pass without: it is in conflict, too.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "bootstrap",
        conflicts_with_all = ["bootstrap", "command_config", "capacity", "seconds"]
    )]
    snapshot: Option<PathBuf>,
    /// The cluster: a running one, recorded from outside. Brokers to ask first, separated by commas.
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap: Option<String>,
    #[command(flatten)]
    live: live::Options,
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
    /// Where the answer goes: a file, compressed if its name ends in .gz, or - for standard output.
    #[arg(short = 'o', value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Also writes the plan as one page for a browser, with pictures; it needs no network.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
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
    /// One page for a browser, with pictures; what `--report` writes.
    Html,
}

/// Plans, and prints the plan. Nothing is printed unless there is a whole plan.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    if args.rollback && args.output != Format::Reassignment {
        return Err(Refusal::Options("--rollback goes with --output reassignment only".to_owned()).into());
    }
    args.check_files()?;
    // Everything that can be refused without the cluster is refused before it is read.
    let mut asked = args.question.parse(&args.what_if)?;
    let mut clock = timings::Clock::start();
    let snapshot = match (&args.bootstrap, &args.snapshot) {
        (Some(bootstrap), _) => live::snapshot(bootstrap, &args.live)?,
        (None, Some(path)) => read(path)?,
        (None, None) => return Err(Refusal::Options("a --snapshot or a --bootstrap is needed".to_owned()).into()),
    };
    clock.lap("read");
    let cluster = args.what_if.apply(snapshot.cluster)?;
    clock.lap("change");
    asked.check_against(&cluster)?;
    asked.forget_dead(&cluster);
    let outcome = plan(&cluster, &asked)?;
    clock.lap("plan");
    check(&cluster, &asked, &outcome)?;
    clock.lap("inspect");
    let (notes, rollback) = (&snapshot.notes, args.rollback);
    let answer = Answer { cluster: &cluster, notes, asked: &asked, outcome: &outcome, rollback };
    if let Some(file) = &args.report {
        answer.write(Format::Html, file)?;
    }
    answer.write(args.output, &args.file)?;
    clock.lap("write");
    if args.timings {
        writeln!(io::stderr(), "{}", clock.report()).context("the timings could not be written")?;
    }
    Ok(())
}

impl Args {
    /// Refuses to write what is being read, and two answers to one file.
    fn check_files(&self) -> Result<(), Refusal> {
        let written: Vec<(&str, &Path)> = [("-o", Some(&self.file)), ("--report", self.report.as_ref())]
            .into_iter()
            .filter_map(|(option, path)| Some((option, path?.as_path())))
            .collect();
        if let [(_, one), (_, other)] = written[..]
            && meant(one) == meant(other)
        {
            let file = one.display();
            let problem = format!("--report and -o both write {file}: one would be lost in the other");
            return Err(Refusal::Options(problem));
        }
        let given = self.snapshot.iter().map(|path| ("--snapshot", path.as_path()));
        for (input, read) in given.chain(self.live.files()).filter(|(_, path)| !is_stream(path)) {
            let is_read = |(_, path): &&(&str, &Path)| !is_stream(path) && meant(path) == meant(read);
            if let Some((output, path)) = written.iter().find(is_read) {
                let problem = format!("{output} would overwrite {}, which {input} reads: name another", path.display());
                return Err(Refusal::Options(problem));
            }
        }
        Ok(())
    }
}

/// Standard input, or standard output.
fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The file that a path means, whether it is there yet or not: two spellings of one are the same.
fn meant(path: &Path) -> PathBuf {
    let beside = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
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
    outcome.map_err(|refused| Refusal::of(refused, cluster, asked))
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
    notes: &'a BTreeMap<String, String>,
    asked: &'a Asked,
    outcome: &'a Outcome,
    rollback: bool,
}

impl Answer<'_> {
    fn write(&self, format: Format, file: &Path) -> anyhow::Result<()> {
        let written = evenkeel_snapshot::write_file(file, |out| self.print(format, &mut BufWriter::new(out)));
        match written.with_context(|| format!("{}: could not be written", file.display())) {
            // A reader that has seen enough, such as `head`, is no error.
            Err(error) if is_broken_pipe(&error) => Ok(()),
            outcome => outcome,
        }
    }

    fn print(&self, format: Format, out: &mut impl Write) -> anyhow::Result<()> {
        let plan = &self.outcome.plan;
        let name = self.notes.get("name").map(String::as_str);
        let report = || Report::of(self.cluster, name, self.asked, self.outcome);
        match format {
            Format::Table => out.write_all(table::render(&report()).as_bytes())?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, &report())?;
                out.write_all(b"\n")?;
            }
            Format::Yaml => out.write_all(serde_saphyr::to_string(&report())?.as_bytes())?,
            Format::Reassignment => {
                serde_json::to_writer_pretty(&mut *out, &reassignment::of(self.cluster, plan, self.rollback))?;
                out.write_all(b"\n")?;
            }
            Format::Html => out.write_all(page::render(&report()).as_bytes())?,
            Format::Snapshot => evenkeel_snapshot::write(&self.after()?, &mut *out)?,
        }
        Ok(out.flush()?)
    }

    /// The cluster as the plan leaves it, with its name.
    fn after(&self) -> anyhow::Result<Snapshot> {
        let after = evenkeel_balancer::after::after(self.cluster, &self.outcome.plan);
        let cluster = after.and_then(|after| rebuild::in_the_states_asked_for(&after, &self.asked.request.operation));
        Ok(Snapshot { notes: self.notes.clone(), cluster: cluster.context("the plan cannot be applied")? })
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
