//! `evenkeel plan`, as a program.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const BROKERS: &str = "\
broker 0 a h0 ALIVE 100 300000 200000 300000
broker 1 a h1 ALIVE 100 300000 200000 300000
broker 2 b h2 ALIVE 100 300000 200000 300000
";

/// Both replicas of T-0 are in rack a.
const PARTITIONS: &str = "\
p T 0 0,1 0 8,9000,12000,20000 1,9000,0,20000
p T 1 0,2 0 8,9000,12000,20000 1,9000,0,20000
";

fn run(arguments: &[&str], snapshot: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["plan", "--snapshot", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What is refused before the snapshot is read leaves a pipe that nobody reads.
    let _ = child.stdin.take().unwrap().write_all(snapshot.as_bytes());
    child.wait_with_output().unwrap()
}

fn small() -> String {
    format!("evenkeel-snapshot v1 brokers=3\n{BROKERS}{PARTITIONS}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// Nothing on standard output, one line on standard error.
fn refused(arguments: &[&str], snapshot: &str, code: i32, says: &str) {
    let output = run(arguments, snapshot);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(says), "{said}");
}

#[test]
fn a_plan_is_printed_in_every_format() {
    let goals = ["--goals", "RackAwareGoal"];
    let print = |format: &[&str]| {
        let output = run(&[&goals[..], format].concat(), &small());
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    };
    assert!(print(&[]).contains("RackAwareGoal  hard  FIXED"));
    assert!(print(&["--output", "json"]).contains("\"dataToMoveMB\": 20000.0"));
    assert!(print(&["--output", "yaml"]).contains("mode: rebalance"));
    assert!(print(&["--output", "snapshot"]).starts_with("evenkeel-snapshot v1 brokers=3"));
    let there: serde_json::Value = serde_json::from_str(&print(&["--output", "reassignment"])).unwrap();
    let back: serde_json::Value = serde_json::from_str(&print(&["--output", "reassignment", "--rollback"])).unwrap();
    assert_eq!(back["partitions"][0]["replicas"], serde_json::json!([0, 1]));
    assert_eq!(there["partitions"][0]["topic"], "T");
    assert_ne!(there["partitions"][0]["replicas"], back["partitions"][0]["replicas"]);
}

#[test]
fn the_answer_can_go_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("plan.json");
    let output = run(&["--goals", "RackAwareGoal", "--output", "json", "-o", path.to_str().unwrap()], &small());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["summary"]["replicaMoves"], 1);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    refused(&[], &small().replace("brokers=3", "brokers=4"), 2, "evenkeel: -:6: ");
    refused(&[], "not a snapshot\n", 2, "evenkeel: -:1: ");
    refused(&["--goals", "RackAwarGoal"], &small(), 2, "did you mean `RackAwareGoal`?");
    refused(&["--exclude-topics", "a(b"], &small(), 2, "--exclude-topics a(b: unclosed group");
    refused(&["--mode", "remove-brokers", "--brokers", "9"], &small(), 2, "broker 9 is not part of the cluster");
    refused(&["--exclude-brokers-for-leadership", "9"], &small(), 2, "broker 9 is not part of the cluster");
    refused(&["--lose-rack", "q"], &small(), 2, "there are a, b");
    refused(&["--rollback"], &small(), 2, "--output reassignment");
    let unmeasured = format!("evenkeel-snapshot v1\nunknown cpu\n{BROKERS}{PARTITIONS}");
    refused(&["--goals", "CpuCapacityGoal"], &unmeasured, 2, "cpu not measured");
}

#[test]
fn a_hard_goal_that_cannot_be_satisfied_is_exit_code_3() {
    // Two replicas, and only rack a is left.
    refused(&["--goals", "RackAwareGoal", "--lose-rack", "b"], &small(), 3, "[RackAwareGoal]");
}

#[test]
fn what_if_questions_change_the_cluster_before_it_is_planned() {
    let ask = |arguments: &[&str]| -> serde_json::Value {
        let output = run(&[&["--output", "json", "--goals", "RackAwareGoal"], arguments].concat(), &small());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let added = ask(&["--add-broker", "7:c"]);
    assert_eq!(added["brokers"][3]["rack"], "c");
    assert_eq!(added["brokers"][3]["state"], "NEW");
    assert_eq!(added["whatIf"]["addBrokers"], serde_json::json!(["7:c"]));
    let removed = ask(&["--remove-broker", "1"]);
    assert_eq!(removed["mode"], "remove-brokers");
    assert_eq!(removed["brokers"][1]["after"]["replicas"], 0);
}
