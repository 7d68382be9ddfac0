//! README and docs: what is marked as runnable runs, what is linked is there, what can be said is explained.
//!
//! A code block says after its language what is done with it here:
//!
//! | mark | what |
//! |---|---|
//! | `sh runnable` | a shell runs it, with the built `evenkeel` in its path |
//! | `sh runnable kube` | the same beside `evenkeel kube`, with `KUBECONFIG` set |
//! | `sh runnable local` | the same beside `evenkeel local`, once its cluster is ready |
//! | `yaml file=NAME` (or any other language) | it is written to this file |
//!
//! Blocks are taken in the order of their page, in a directory of the page's own with copies of `deploy` and `examples`.
//! People build with cargo; here it is built already, so `cargo run --release -- ` is read as `evenkeel `.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");
/// The one program that blocks may need beside a shell and ours. Where it is absent, pages that need it are skipped.
const KUBECTL: &str = "kubectl";
/// Only so that nothing hangs for ever: blocks have time limits of their own.
const LONGEST: Duration = Duration::from_secs(900);
/// The pages that are played below.
const PLAYED: [&str; 9] = [
    "README.md",
    "docs/auto-rebalancing.md",
    "docs/engine.md",
    "docs/install.md",
    "docs/kube.md",
    "docs/plan.md",
    "docs/quick-start.md",
    "docs/rebalancing.md",
    "docs/sim.md",
];

#[test]
fn the_readme_does_what_it_says() {
    play("README.md");
}

#[test]
fn the_quick_start_does_what_it_says() {
    play("docs/quick-start.md");
}

#[test]
fn the_page_on_the_kubernetes_api_does_what_it_says() {
    play("docs/kube.md");
}

#[test]
fn the_page_on_installing_does_what_it_says() {
    play("docs/install.md");
}

#[test]
fn the_page_on_the_simulator_does_what_it_says() {
    play("docs/sim.md");
}

#[test]
fn the_page_on_rebalancing_does_what_it_says() {
    play("docs/rebalancing.md");
}

#[test]
fn the_page_on_automatic_rebalancing_does_what_it_says() {
    play("docs/auto-rebalancing.md");
}

#[test]
fn the_pages_on_plans_and_the_engine_do_what_they_say() {
    play("docs/plan.md");
    play("docs/engine.md");
}

#[test]
fn no_page_with_runnable_blocks_is_forgotten() {
    let runs = |page: &String| blocks(&text_of(page)).iter().any(|block| block.stage().is_some());
    let found: Vec<String> = pages().into_iter().filter(runs).collect();
    assert_eq!(found, PLAYED, "list the page in this file, and play it");
}

#[test]
fn links_lead_to_something() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = Path::new(&page).parent().unwrap_or(Path::new("")).to_owned();
        for target in links(&text_of(&page)) {
            let (path, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let file = if path.is_empty() { PathBuf::from(&page) } else { folder.join(path) };
            let there = root().join(&file);
            let is_page = file.extension().is_some_and(|extension| extension == "md");
            let leads = match there.exists() {
                true if is_page && !anchor.is_empty() => {
                    headings(&fs::read_to_string(&there).unwrap()).contains(anchor)
                }
                exists => exists,
            };
            if !leads {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_reason_of_a_condition_is_explained() {
    let page = text_of("docs/troubleshooting.md");
    let unexplained: Vec<&str> = evenkeel_api::Reason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .filter(|reason| !page.contains(&format!("\n| `{reason}` |")))
        .collect();
    assert!(unexplained.is_empty(), "no row in docs/troubleshooting.md: {unexplained:?}");
}

#[test]
fn every_key_that_the_engine_reads_is_explained() {
    let page = text_of("docs/configuration.md");
    let mut unexplained = BTreeSet::new();
    for file in ["connection", "detectors", "settings", "store", "webserver"] {
        let source = text_of(&format!("crates/engine/src/config/{file}.rs"));
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        // Between two quotes, dots and nothing but letters besides: no other code looks like that.
        let keys = code.split('"').filter(|text| {
            text.trim_end_matches('.').contains('.') && text.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
        });
        unexplained.extend(keys.filter(|key| !page.contains(*key)).map(str::to_owned));
    }
    assert!(unexplained.is_empty(), "not in docs/configuration.md: {unexplained:?}");
}

/// What has to run beside a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Nothing,
    Kube,
    Local,
}

/// A code block of a page.
struct Block {
    line: usize,
    marks: Vec<String>,
    text: String,
}

impl Block {
    fn stage(&self) -> Option<Stage> {
        let marks: Vec<&str> = self.marks.iter().map(String::as_str).collect();
        match marks[..] {
            ["sh", "runnable"] => Some(Stage::Nothing),
            ["sh", "runnable", "kube"] => Some(Stage::Kube),
            ["sh", "runnable", "local"] => Some(Stage::Local),
            _ => {
                assert!(!marks.contains(&"runnable"), "line {}: nobody understands the marks {marks:?}", self.line);
                None
            }
        }
    }

    fn file(&self) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix("file="))
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut closed, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in page.lines().enumerate() {
        // A block within a list is indented.
        open = match (open, line.trim_start().strip_prefix("```")) {
            (None, None) => None,
            (None, Some(marks)) => Some(Block {
                line: number + 1,
                marks: marks.split_whitespace().map(str::to_owned).collect(),
                text: String::new(),
            }),
            (Some(block), Some(_)) => {
                closed.push(block);
                None
            }
            (Some(mut block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
                Some(block)
            }
        };
    }
    assert!(open.is_none(), "a code block is not closed");
    closed
}

/// Runs the blocks of a page.
fn play(page: &str) {
    let blocks = blocks(&text_of(page));
    let runnable = || blocks.iter().filter(|block| block.stage().is_some());
    if runnable().any(|block| block.text.contains(KUBECTL)) && !is_installed(KUBECTL) {
        assert!(env::var_os("CI").is_none(), "{KUBECTL} is not installed, and in CI {page} must not be skipped");
        // Past the test harness, which shows what a test prints only if it fails.
        let _ = writeln!(io::stderr(), "{KUBECTL} is not installed: skipped {page}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for folder in ["deploy", "examples"] {
        copy(&root().join(folder), &dir.path().join(folder));
    }
    let beside = Beside::start(runnable().filter_map(Block::stage).max().unwrap_or(Stage::Nothing), dir.path());
    for block in &blocks {
        if let Some(name) = block.file() {
            fs::write(dir.path().join(name), &block.text).unwrap();
        }
        if block.stage().is_some() {
            let (status, output) = run(block, dir.path());
            assert!(
                status.success(),
                "{page}:{}: {status}\n{}\n{output}{}",
                block.line,
                block.text,
                beside.complaint()
            );
        }
    }
}

/// Copies a folder. A link to it would not do: kubectl does not look behind one.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs one block; how it ended, and what it printed.
fn run(block: &Block, dir: &Path) -> (ExitStatus, String) {
    let script = block.text.replace("cargo run --release -- ", "evenkeel ");
    let printed = dir.join("printed");
    let output = File::create(&printed).unwrap();
    let folder = Path::new(PROGRAM).parent().unwrap().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(folder).chain(env::split_paths(&others))).unwrap();
    let mut child = Ended(
        Command::new("sh")
            .args(["-eu", "-c", &script])
            .current_dir(dir)
            .env("PATH", path)
            .env("KUBECONFIG", dir.join("run").join("kubeconfig"))
            // Nothing of whoever runs the tests is read or written.
            .env("HOME", dir)
            .env("KUBERC", "off")
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .spawn()
            .unwrap(),
    );
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
        let so_far = || fs::read_to_string(&printed).unwrap_or_default();
        assert!(begun.elapsed() < LONGEST, "line {} does not end:\n{}", block.line, so_far());
        thread::sleep(Duration::from_millis(20));
    };
    (status, fs::read_to_string(&printed).unwrap_or_default())
}

/// Ends a program when a test is over, or fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What runs beside the blocks of a page.
struct Beside {
    complaints: PathBuf,
    _program: Option<Ended>,
}

impl Beside {
    fn start(stage: Stage, dir: &Path) -> Self {
        let complaints = dir.join("complaints");
        let subcommand = match stage {
            Stage::Nothing => return Self { complaints, _program: None },
            Stage::Kube => "kube",
            Stage::Local => "local",
        };
        let program = Command::new(PROGRAM)
            .args([subcommand, "--dir"])
            .arg(dir.join("run"))
            .env("HOME", dir)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&complaints).unwrap())
            .spawn();
        let mut program = Ended(program.unwrap());
        let lines = BufReader::new(program.0.stdout.take().unwrap()).lines();
        let (tell, told) = mpsc::channel();
        // It reads on to the end, so that the program can always write.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let beside = Self { complaints, _program: Some(program) };
        // The invitation is the last thing that either says when all is ready.
        let mut said = String::new();
        while !said.contains("into another terminal") {
            match told.recv_timeout(LONGEST) {
                Ok(line) => said.extend([line.as_str(), "\n"]),
                Err(_) => panic!("`evenkeel {subcommand}` did not come up:\n{said}{}", beside.complaint()),
            }
        }
        beside
    }

    fn complaint(&self) -> String {
        fs::read_to_string(&self.complaints).unwrap_or_default()
    }
}

fn is_installed(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// All pages, by their paths from the root, in order.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(if folder.is_empty() { name } else { format!("{folder}/{name}") });
            }
        }
    }
    pages.sort();
    pages
}

/// Lines that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Where a page's links lead, those out of the repository left out.
fn links(page: &str) -> Vec<String> {
    let targets = prose(page).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn headings(page: &str) -> BTreeSet<String> {
    let titles = prose(page).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |title: &str| -> String {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    titles.map(anchor).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let found = headings("# The engine\n## `GET load`\n```sh\n# no heading\n```\n### Probes, metrics, security");
    assert_eq!(found, ["get-load", "probes-metrics-security", "the-engine"].map(str::to_owned).into());
}
