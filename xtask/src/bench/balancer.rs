//! `cargo xtask bench balancer`: how long the balancer takes for clusters of many sizes, how much memory it needs, and
//! how good its plans are.
//!
//! Every plan is made by the program itself, as a child process, so that its peak memory is its own. A plan that is worse
//! than what Cruise Control made of the same cluster is an error, and so are too much memory, time that grows too fast with
//! the cluster, and a second plan that finds something to do. A time that misses its aim is only told, as it depends on the
//! machine.

mod original;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;

use original::Original;

use super::release_binary;
use crate::{process, workspace::Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Plans for this cluster alone: a, ar, f, b, mr, g, c or d (repeatable).
    #[arg(long = "cluster", value_name = "NAME")]
    clusters: Vec<String>,
    /// How often each plan is made; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Plans for the clusters in this folder instead: NAME.gz as Cruise Control's own generator drew them (`ccsnap v1`).
    #[arg(long, value_name = "DIR")]
    shared: Option<PathBuf>,
}

/// A cluster, ascending by size, and what its plan needs to be told.
struct Case {
    name: &'static str,
    what: &'static str,
    options: &'static [&'static str],
    /// What planning may take, in milliseconds on two quiet cores.
    aim: f64,
    /// What the whole command may need of memory, in MB, where somebody asks.
    memory: Option<f64>,
    /// Whether planning again for what the plan leaves must find nothing. Where replicas are offline it may find what was
    /// held back, and the largest clusters were never held to it.
    steady: bool,
    /// What Cruise Control made of it.
    original: Original,
    /// Whether the preset is the very cluster that Cruise Control planned for, or one of the same size.
    same: bool,
}

/// What most clusters are asked for.
const SMALL_CASE: Case = Case {
    name: "",
    what: "",
    options: &[],
    aim: 100.0,
    memory: None,
    steady: true,
    original: original::A,
    same: true,
};

const CASES: [Case; 8] = [
    Case { name: "a", what: "40 brokers", ..SMALL_CASE },
    Case { name: "ar", what: "40 brokers, rack-aware", original: original::AR, ..SMALL_CASE },
    Case { name: "f", what: "40 brokers, 5 of them dead", original: original::F, steady: false, ..SMALL_CASE },
    // Ours is balanced by our own planner, theirs by theirs.
    Case { name: "g", what: "80 brokers and 2 new ones", original: original::G, same: false, ..SMALL_CASE },
    Case { name: "b", what: "140 brokers", aim: 200.0, original: original::B, ..SMALL_CASE },
    Case { name: "mr", what: "60 brokers, rack-aware", aim: 400.0, original: original::MR, ..SMALL_CASE },
    Case {
        name: "c",
        what: "270 brokers, 10,500 topics",
        aim: 1_300.0,
        memory: Some(500.0),
        steady: false,
        original: original::C,
        ..SMALL_CASE
    },
    // On average 13,000 replicas on each broker: more than a broker may hold unless told otherwise. Drawn from the same
    // parameters as theirs.
    Case {
        name: "d",
        what: "215 brokers",
        options: &["--max-replicas-per-broker", "20000"],
        aim: 3_000.0,
        memory: Some(1_000.0),
        steady: false,
        original: original::D,
        ..SMALL_CASE
    },
];

/// The two clusters between which growth is told.
const SMALL: &str = "a";
const LARGE: &str = "d";
/// The most that time may grow by: with this power of the number of replicas.
const MOST_GROWTH: f64 = 1.15;

/// What a run of the program says in JSON, as far as it is used here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    plan_id: String,
    cluster: Totals,
    summary: Summary,
    goals: Vec<GoalLine>,
    spread: Vec<Spread>,
    changes: Vec<ChangeLine>,
}

impl Report {
    /// The goals left violated, without their last syllable.
    fn violated(&self) -> Vec<&str> {
        let left = self.goals.iter().filter(|goal| goal.status == "VIOLATED");
        left.map(|goal| goal.goal.strip_suffix("Goal").unwrap_or(&goal.goal)).collect()
    }
}

#[derive(Deserialize)]
struct Totals {
    replicas: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    #[serde(rename = "dataToMoveMB")]
    data_to_move: f64,
    #[serde(rename = "leastDataToMoveMB")]
    least: f64,
    replica_moves: u64,
    leader_moves: u64,
}

#[derive(Deserialize)]
struct GoalLine {
    goal: String,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangeLine {
    topic: String,
    partition: i32,
    new_leader: i32,
    moves: Vec<MoveLine>,
}

#[derive(Deserialize)]
struct MoveLine {
    from: i32,
    to: i32,
}

#[derive(Deserialize)]
struct Spread {
    unit: String,
    of: String,
    before: Statistics,
    after: Statistics,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statistics {
    standard_deviation: f64,
}

/// What one run took.
#[derive(Debug, PartialEq)]
struct Cost {
    read: f64,
    plan: f64,
    /// The whole command, from its start to its end: reading, planning, inspecting, writing the plan as JSON.
    whole: f64,
    peak_kib: f64,
}

/// What all runs of a case took, and what came out.
struct Measured {
    case: &'static Case,
    report: Report,
    /// Medians, and the highest peak.
    cost: Cost,
    /// What Cruise Control made of this very cluster.
    original: Option<&'static Original>,
    /// MB moved as Cruise Control counts them.
    by_leader: f64,
    /// How many changes a plan for the cluster that this one leaves makes, and how many MB it moves.
    again: (usize, f64),
}

/// Plans for every cluster and prints the table of `docs/benchmarks.md`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    for name in &options.clusters {
        ensure!(CASES.iter().any(|case| case.name == name), "there is no cluster {name} to plan for");
    }
    ensure!(options.runs > 0, "at least one run is needed");
    let mut build = process::cargo();
    build.args(["build", "--locked", "--release", "--package", "evenkeel-cli"]).current_dir(workspace.root());
    process::run(&mut build)?;
    let bench = Bench {
        binary: release_binary(workspace)?,
        folder: tempfile::tempdir()?,
        runs: options.runs,
        shared: options.shared.clone(),
    };
    let wanted = |case: &&'static Case| {
        (options.clusters.is_empty() || options.clusters.iter().any(|name| name == case.name)) && bench.has(case)
    };
    let mut measured = Vec::new();
    println!("load average before: {}", load_average());
    for case in CASES.iter().filter(wanted) {
        eprintln!("{}: {}", case.name, case.what);
        measured.push(bench.measure(case)?);
    }
    println!("load average after: {}", load_average());
    println!("\n{}", table(&measured));
    println!("{}", original::table(&measured));
    for measured in measured.iter().filter(|measured| measured.cost.plan > measured.case.aim) {
        let (name, took, aim) = (measured.case.name, time(measured.cost.plan), time(measured.case.aim));
        println!("{name}: {took} instead of {aim}");
    }
    if let Some(exponent) = growth(&measured) {
        println!("growth from {SMALL} to {LARGE}: time ~ replicas^{exponent:.2}");
    }
    match bench.instructions()? {
        Some(number) => println!("instructions to plan for {SMALL}, one thread: {}", count(number)),
        None => println!("instructions were not counted: there is no valgrind (apt-get install valgrind)"),
    }
    for Measured { case, again: (changes, megabytes), .. } in measured.iter().filter(|measured| measured.again.0 > 0) {
        println!(
            "{}: planning again changes {} partitions, {} MB",
            case.name,
            count(*changes as f64),
            count(*megabytes)
        );
    }
    let broken = broken(&measured, options.shared.is_some());
    ensure!(broken.is_empty(), "not as it should be:\n{}", broken.join("\n"));
    let compared = measured.iter().filter_map(|measured| Some((measured, measured.original?)));
    let worse: Vec<String> = compared
        .flat_map(|(measured, original)| {
            let name = measured.case.name;
            let found = original::worse(original, &measured.report, measured.by_leader);
            found.into_iter().map(move |what| format!("{name}: {what}"))
        })
        .collect();
    ensure!(worse.is_empty(), "worse than Cruise Control:\n{}", worse.join("\n"));
    Ok(())
}

/// How busy the machine is: times mean nothing without.
fn load_average() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split(' ').next().filter(|number| !number.is_empty()).unwrap_or("unknown").to_owned()
}

struct Bench {
    binary: PathBuf,
    folder: tempfile::TempDir,
    runs: usize,
    /// Where clusters are that others drew.
    shared: Option<PathBuf>,
}

impl Bench {
    fn measure(&self, case: &'static Case) -> Result<Measured> {
        let snapshot = self.snapshot(case.name)?;
        let answer = self.folder.path().join("plan.json");
        let mut costs = Vec::new();
        let mut first: Option<Report> = None;
        for _ in 0..self.runs {
            let mut plan = self.plan(&snapshot);
            plan.args(["--threads", "2", "--output", "json", "--timings", "-o"]).arg(&answer).args(case.options);
            let start = Instant::now();
            let line = said(&mut plan)?;
            costs.push(cost(&line, start.elapsed().as_secs_f64() * 1e3)?);
            let report: Report = serde_json::from_slice(&fs::read(&answer)?).context("the plan is not as expected")?;
            if let Some(first) = &first {
                ensure!(first.plan_id == report.plan_id, "{}: two runs gave two plans", case.name);
            }
            first.get_or_insert(report);
        }
        let report = first.context("there was no run")?;
        let by_leader = original::by_leader(&fs::read_to_string(&snapshot)?, &report)?;
        let again = self.again(case, &snapshot)?;
        fs::remove_file(&snapshot)?;
        let original = (case.same || self.shared.is_some()).then_some(&case.original);
        Ok(Measured { case, report, cost: typical(&costs), original, by_leader, again })
    }

    /// What a plan for the cluster that the plan leads to changes, and how many MB that moves.
    fn again(&self, case: &Case, snapshot: &Path) -> Result<(usize, f64)> {
        let (after, answer) = (self.folder.path().join("after"), self.folder.path().join("again.json"));
        said(self.plan(snapshot).args(["--output", "snapshot", "-o"]).arg(&after).args(case.options))?;
        said(self.plan(&after).args(["--output", "json", "-o"]).arg(&answer).args(case.options))?;
        let report: Report = serde_json::from_slice(&fs::read(&answer)?).context("the plan is not as expected")?;
        fs::remove_file(&after)?;
        Ok((report.changes.len(), report.summary.data_to_move))
    }

    /// Whether there is such a cluster to plan for.
    fn has(&self, case: &Case) -> bool {
        self.shared.as_ref().is_none_or(|folder| folder.join(case.name).with_extension("gz").exists())
    }

    /// Writes the cluster down.
    fn snapshot(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        if let Some(folder) = &self.shared {
            let packed = folder.join(name).with_extension("gz");
            let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().context("could not start gzip")?;
            ensure!(unpacked.status.success(), "{} could not be unpacked", packed.display());
            fs::write(&path, ours(&String::from_utf8(unpacked.stdout)?)?)?;
            return Ok(path);
        }
        said(Command::new(&self.binary).args(["generate", "--preset", name, "-o"]).arg(&path))?;
        Ok(path)
    }

    /// How many instructions planning for the small cluster takes: the same on a busy machine as on a quiet one.
    fn instructions(&self) -> Result<Option<f64>> {
        if Command::new("valgrind").arg("--version").output().is_err() {
            return Ok(None);
        }
        let snapshot = self.snapshot(SMALL)?;
        let mut counted = Command::new("valgrind");
        counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        // Reading and writing are left out, and a single thread makes the number exact.
        counted.arg("--toggle-collect=evenkeel_balancer::planner::plan").arg(&self.binary);
        counted.args(["plan", "--threads", "1", "--output", "json", "-o"]).arg(self.folder.path().join("plan.json"));
        counted.arg("--snapshot").arg(&snapshot);
        collected(&said(&mut counted)?).map(Some)
    }

    fn plan(&self, snapshot: &Path) -> Command {
        let mut plan = Command::new(&self.binary);
        plan.arg("plan").arg("--snapshot").arg(snapshot);
        plan
    }
}

/// The same cluster as a snapshot of ours: the formats differ in their first word.
fn ours(theirs: &str) -> Result<String> {
    let rest = theirs.strip_prefix("ccsnap v1 ").context("not a cluster in the format `ccsnap v1`")?;
    Ok(format!("evenkeel-snapshot v1 {rest}"))
}

/// Runs to the end and returns what was said on standard error.
fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start {:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        bail!("{:?} failed: {said}", command.get_args());
    }
    Ok(said)
}

/// What callgrind counted: `==123== Collected : 456`.
fn collected(told: &str) -> Result<f64> {
    let number = told.lines().find_map(|line| line.split_once("Collected :"));
    Ok(number.context("callgrind did not say what it counted")?.1.trim().parse()?)
}

/// The line that `--timings` prints.
fn cost(line: &str, whole: f64) -> Result<Cost> {
    let number = |name: &str| -> Result<f64> {
        let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Ok(value.with_context(|| format!("no {name} in `{line}`"))?.parse()?)
    };
    Ok(Cost { read: number("readMs")?, plan: number("planMs")?, whole, peak_kib: number("peakKiB")? })
}

fn typical(costs: &[Cost]) -> Cost {
    let median = |of: fn(&Cost) -> f64| {
        let mut numbers: Vec<f64> = costs.iter().map(of).collect();
        numbers.sort_by(f64::total_cmp);
        numbers[numbers.len() / 2]
    };
    Cost {
        read: median(|cost| cost.read),
        plan: median(|cost| cost.plan),
        whole: median(|cost| cost.whole),
        peak_kib: costs.iter().map(|cost| cost.peak_kib).fold(0.0, f64::max),
    }
}

/// What is not as it should be on any machine, in words. What a plan for a `shared` cluster leaves is only told.
fn broken(measured: &[Measured], shared: bool) -> Vec<String> {
    let mut found = Vec::new();
    for Measured { case, cost, again: (changes, _), .. } in measured {
        let (needed, name) = (cost.peak_kib * 1024.0 / 1e6, case.name);
        if let Some(memory) = case.memory.filter(|memory| needed >= *memory) {
            found.push(format!("{name}: {} MB of memory, it must be less than {}", count(needed), count(memory)));
        }
        if case.steady && !shared && *changes > 0 {
            found.push(format!("{name}: planning again finds something to do"));
        }
    }
    let exponent = growth(measured).filter(|exponent| *exponent > MOST_GROWTH);
    found
        .extend(exponent.map(|it| format!("time grows with replicas^{it:.2}, it must not by more than {MOST_GROWTH}")));
    found
}

/// The power of the number of replicas with which the time grows.
fn growth(measured: &[Measured]) -> Option<f64> {
    let point = |name| {
        let of = measured.iter().find(|measured| measured.case.name == name)?;
        Some((of.report.cluster.replicas as f64, of.cost.plan))
    };
    let ((few, fast), (many, slow)) = (point(SMALL)?, point(LARGE)?);
    Some((slow / fast).ln() / (many / few).ln())
}

fn table(measured: &[Measured]) -> String {
    let mut text = String::from(
        "| cluster | replicas | plan | aim | read | whole command | peak memory | MB moved | least possible | replica moves | leader moves | left violated | deviation of use in %: CPU, in, out, disk |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|\n",
    );
    for Measured { case, report, cost, .. } in measured {
        let violated = report.violated();
        let spread: Vec<String> = report
            .spread
            .iter()
            // The four resources; what a broker would send if it led all it holds is none.
            .filter(|spread| spread.unit == "percent" && !spread.of.starts_with("potential"))
            .map(|spread| format!("{:.2} → {:.2}", spread.before.standard_deviation, spread.after.standard_deviation))
            .collect();
        text.push_str(&format!(
            "| `{}`: {} | {} | {} | {} | {} | {} | {:.0} MiB | {} | {} | {} | {} | {} | {} |\n",
            case.name,
            case.what,
            count(report.cluster.replicas as f64),
            time(cost.plan),
            time(case.aim),
            time(cost.read),
            time(cost.whole),
            cost.peak_kib / 1024.0,
            count(report.summary.data_to_move),
            count(report.summary.least),
            count(report.summary.replica_moves as f64),
            count(report.summary.leader_moves as f64),
            if violated.is_empty() { "–".to_owned() } else { violated.join(", ") },
            spread.join(", "),
        ));
    }
    text
}

fn time(milliseconds: f64) -> String {
    if milliseconds < 1000.0 { format!("{milliseconds:.0} ms") } else { format!("{:.2} s", milliseconds / 1000.0) }
}

/// A whole number with its thousands told apart.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_read_from_the_line_of_timings() {
        let line = "readMs=12.500 changeMs=0.000 planMs=90.250 inspectMs=1.000 writeMs=3.000 peakKiB=20480";
        assert_eq!(cost(line, 111.0).unwrap(), Cost { read: 12.5, plan: 90.25, whole: 111.0, peak_kib: 20_480.0 });
        assert_eq!(cost("readMs=1", 1.0).unwrap_err().to_string(), "no planMs in `readMs=1`");
    }

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let told = "==7== Events    : Ir\n==7== Collected : 312618866\n==7==\n==7== I   refs:      312,618,866";
        assert_eq!(collected(told).unwrap(), 312_618_866.0);
        assert!(collected("==7== Command: evenkeel").is_err());
    }

    #[test]
    fn the_middle_run_counts_and_the_highest_peak() {
        let run = |read, plan, peak_kib| Cost { read, plan, whole: read + plan, peak_kib };
        let costs = [run(3.0, 10.0, 5.0), run(1.0, 30.0, 7.0), run(2.0, 20.0, 6.0)];
        assert_eq!(typical(&costs), run(2.0, 20.0, 7.0));
    }

    fn measured(name: &str, replicas: u64, plan: f64) -> Measured {
        Measured {
            case: CASES.iter().find(|case| case.name == name).unwrap(),
            report: Report {
                plan_id: String::new(),
                cluster: Totals { replicas },
                summary: Summary { data_to_move: 0.0, least: 0.0, replica_moves: 0, leader_moves: 0 },
                goals: Vec::new(),
                spread: Vec::new(),
                changes: Vec::new(),
            },
            cost: Cost { read: 0.0, plan, whole: plan, peak_kib: 0.0 },
            original: None,
            by_leader: 0.0,
            again: (0, 0.0),
        }
    }

    #[test]
    fn growth_is_told_as_a_power() {
        // A hundred times the replicas, a thousand times the time.
        let power = growth(&[measured(SMALL, 10, 1.0), measured(LARGE, 1_000, 1_000.0)]).unwrap();
        assert!((power - 1.5).abs() < 1e-12);
        assert_eq!(growth(&[measured(SMALL, 10, 1.0)]), None);
    }

    #[test]
    fn memory_growth_and_second_plans_are_held_to_what_was_promised() {
        let good = [measured(SMALL, 10, 1.0), measured(LARGE, 1_000, 100.0)];
        assert_eq!(broken(&good, false), [""; 0]);
        let mut bad = [measured(SMALL, 10, 1.0), measured("c", 500, 9.0), measured(LARGE, 1_000, 1_000.0)];
        bad[0].again = (1, 7.0);
        // What is held back, or was never promised, is told and no more.
        bad[2].again = (1, 7.0);
        bad[1].cost.peak_kib = 500e6 / 1024.0;
        assert_eq!(
            broken(&bad, false),
            [
                "a: planning again finds something to do",
                "c: 500 MB of memory, it must be less than 500",
                "time grows with replicas^1.50, it must not by more than 1.15",
            ]
        );
        assert_eq!(broken(&bad, true).len(), 2);
    }

    #[test]
    fn clusters_of_the_other_format_are_read_as_ours() {
        assert_eq!(ours("ccsnap v1 name=a brokers=1\n").unwrap(), "evenkeel-snapshot v1 name=a brokers=1\n");
        assert!(ours("something else").is_err());
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0.0, 999.4, 1_000.0, 2_800_429.0].map(count), ["0", "999", "1,000", "2,800,429"]);
    }
}
