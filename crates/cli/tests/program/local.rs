//! `evenkeel local`

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("local");
    command
}

fn evenkeel(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit code 2, one line, and nothing done.
fn refused(arguments: &[&str], why: &str) {
    let output = evenkeel(arguments);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), format!("evenkeel: {why}\n")), "{arguments:?}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
}

#[test]
fn the_tour_keeps_its_promises() {
    let output = evenkeel(&["--tour"]);
    let (told, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}\n{complaints}");
    assert!(
        told.lines().any(|line| line.starts_with("All ") && line.contains(" promises of 8 chapters were kept, in ")),
        "{told}"
    );
    assert!(!told.contains('✗') && !told.contains('\u{1b}'), "plain lines for a pipe: {told}");
    for line in excerpt() {
        assert!(told.lines().any(|it| it == line), "README.md shows what the tour does not say: {line}\n{told}");
    }
}

/// What README.md shows of the tour, without what is different each time.
fn excerpt() -> Vec<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).expect("it is there");
    let (_, shown) = page.split_once("```text tour\n").expect("an excerpt");
    let (shown, _) = shown.split_once("```").expect("it ends");
    let stays = |line: &&str| ["Chapter ", "  $ ", "  ✓ "].iter().any(|mark| line.starts_with(mark));
    let lines: Vec<String> = shown.lines().filter(stays).map(str::to_owned).collect();
    assert!(lines.len() > 5, "{shown}");
    lines
}

#[test]
fn what_does_not_go_together_is_refused_in_one_line() {
    refused(&["--tour", "--chapter", "99"], "--chapter 99: there are chapters 1 to 8");
    let small = "--tour is told on the small example; leave --scale out, or --tour";
    refused(&["--tour", "--scale", "medium"], small);
    let many = "--scale medium would be 33 JVMs; leave it out, or --brokers jvm";
    refused(&["--brokers", "jvm", "--scale", "medium"], many);
    let nowhere = "--brokers jvm: /nowhere/libs holds no Kafka: its libraries are missing";
    refused(&["--brokers", "jvm", "--kafka-home", "/nowhere"], nowhere);
    let remote = "--listen 0.0.0.0:0 is reachable from other machines, and everything here is for this one; listen on \
                  127.0.0.1:0";
    refused(&["--listen", "0.0.0.0:0"], remote);
}

/// A run in the background, in a group of its own, as a terminal starts one. Killed when dropped.
struct Run {
    process: Child,
    output: BufReader<ChildStdout>,
    /// What it printed so far.
    told: String,
    /// Where its temporary directories are.
    scratch: tempfile::TempDir,
}

impl Run {
    fn start(arguments: &[&str]) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut command = program();
        command.args(arguments).env("TMPDIR", scratch.path()).process_group(0);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, output, told: String::new(), scratch }
    }

    /// Reads on to a line that contains this.
    fn until(&mut self, wanted: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("text");
            if read == 0 {
                let complaints = self.complaints();
                panic!("it ended without saying {wanted}: {}{complaints}", self.told);
            }
            self.told.push_str(&line);
            if line.contains(wanted) {
                return line.trim_end().to_owned();
            }
        }
    }

    fn complaints(&mut self) -> String {
        let mut text = String::new();
        let _ = self.process.stderr.take().map(|mut errors| errors.read_to_string(&mut text));
        text
    }

    fn signal(&self, name: &str) {
        let to = self.process.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &to]).status().expect("kill");
        assert!(sent.success());
    }

    /// What became of it, what it said on the way, and what temporary files it left.
    fn ended(mut self) -> (ExitStatus, String, Vec<String>) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let (status, complaints) = (self.process.wait().expect("it ends"), self.complaints());
        (status, format!("{}{rest}{complaints}", self.told), names(self.scratch.path()))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ports in a line such as `https://127.0.0.1:40001` or `127.0.0.1:1,127.0.0.1:2`.
fn ports(line: &str) -> Vec<u16> {
    let after = line.split("127.0.0.1:").skip(1);
    after
        .map(|rest| rest.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default().parse().expect("a port"))
        .collect()
}

fn kubeconfig(line: &str) -> PathBuf {
    line.strip_prefix("export KUBECONFIG=").expect("the first line is for pasting").trim_matches('\'').into()
}

#[test]
fn it_says_how_to_look_in_comes_up_and_leaves_nothing_behind() {
    let mut run = Run::start(&["--fresh"]);
    let first = run.until("");
    let kubeconfig = kubeconfig(&first);
    assert!(fs::read_to_string(&kubeconfig).expect("it is there").contains("https://127.0.0.1:"));
    let mut open = ports(&run.until("A Kubernetes API is at"));
    let ready = run.until("was ready after");
    open.extend(ports(&ready));
    assert_eq!(open.len(), 4, "the API's and those of three brokers: {ready}");
    run.until("kubectl get");
    for port in &open {
        TcpStream::connect(("127.0.0.1", *port)).expect("it is open");
    }
    run.signal("INT");
    let (status, told, left) = run.ended();
    assert!(status.success(), "{told}");
    for port in open {
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "port {port} is still open");
    }
    assert!(left.is_empty() && !kubeconfig.exists(), "{left:?}");
}

#[test]
fn a_directory_is_one_runs_and_keeps_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let named = dir.path().to_str().expect("text");
    let mut run = Run::start(&["--dir", named]);
    run.until("A Kubernetes API is at");
    assert!(dir.path().join("kubeconfig").exists());
    let holder = run.process.id();
    refused(
        &["--dir", named],
        &format!("{named} is in use by another evenkeel, process {holder}; stop it or name another --dir"),
    );
    run.signal("TERM");
    let (status, told, _) = run.ended();
    assert!(status.success(), "{told}");
    assert_eq!(names(dir.path()), ["evenkeel.pid"]);
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .expect("a directory")
        .map(|it| it.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = evenkeel(&["--listen", &address]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&address) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_tour_that_is_interrupted_has_failed() {
    let mut run = Run::start(&["--tour"]);
    run.until("Chapter 1:");
    run.signal("TERM");
    let (status, told, left) = run.ended();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.ends_with("evenkeel: the tour was interrupted\n"), "{told}");
    assert_eq!(left, [""; 0]);
}

#[test]
fn it_ends_when_nobody_reads_what_it_prints() {
    let mut run = Run::start(&[]);
    run.until("export KUBECONFIG=");
    // As after `head -1`.
    drop(std::mem::replace(&mut run.output, BufReader::new(closed())));
    assert!(run.process.wait().expect("it ends").success());
}

/// Something to read from where nothing comes.
fn closed() -> ChildStdout {
    let mut nothing = Command::new("true").stdout(Stdio::piped()).spawn().expect("it starts");
    let output = nothing.stdout.take().expect("a pipe");
    nothing.wait().expect("it ends");
    output
}

/// What needs Apache Kafka: run by `cargo xtask real kafka`, which says where that is.
mod real_arm {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_tour_is_true_of_real_brokers() {
        let Some(kit) = std::env::var_os("EVENKEEL_KAFKA_KIT") else {
            // Nobody reads it if it cannot be written.
            let _ = writeln!(std::io::stderr(), "skipped: cargo xtask real kafka runs this");
            return;
        };
        let kit = kit.to_str().expect("text").to_owned();
        let output = evenkeel(&["--brokers", "jvm", "--kafka-home", &kit, "--tour"]);
        let (told, complaints) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{told}\n{complaints}");
    }
}
