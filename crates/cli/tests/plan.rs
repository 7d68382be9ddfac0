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
    format!("evenkeel-snapshot v1 brokers=3 partitions=2\n{BROKERS}{PARTITIONS}")
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
    refused(&["--goals", "DiskUsageGoal"], &small(), 2, "did you mean `DiskUsageDistributionGoal`?");
    let unmeasured = format!("evenkeel-snapshot v1 brokers=3 partitions=2\nunknown cpu\n{BROKERS}{PARTITIONS}");
    refused(&["--goals", "CpuCapacityGoal"], &unmeasured, 2, "cpu not measured");
}

#[test]
fn a_snapshot_that_cannot_be_says_where_and_what() {
    for (good, bad, says) in [
        ("p T 0 0,1 0", "p T 0 0,7 0", "evenkeel: -:5: T-0: broker 7 is not listed"),
        ("p T 0 0,1 0", "p T 0 0,0 0", "evenkeel: -:5: T-0: two replicas on broker 0"),
        ("p T 1", "p T 0", "evenkeel: -:6: T-0: is listed twice"),
        ("8,9000", "NaN,9000", "evenkeel: -:5: T-0: cpu load NaN on broker 0"),
        ("8,9000", "8,-9000", "evenkeel: -:5: T-0: networkInbound load -9000 on broker 0"),
        ("h0 ALIVE 100", "h0 ALIVE 0", "evenkeel: -:2: broker 0: cpu capacity is 0"),
        ("broker 2 b h2", "broker 2 b h1", "evenkeel: -:4: host `h1` is in rack `a` and in rack `b`"),
        ("1,9000,0,20000\n", "1,9000,0", "evenkeel: -:5: "),
    ] {
        refused(&[], &small().replacen(good, bad, 1), 2, says);
    }
}

#[test]
fn the_cluster_after_a_plan_is_planned_for_again_without_a_change() {
    // The replicas of each partition weigh differently, and leadership changes hands.
    let partitions: String = (0..24)
        .map(|number| {
            let (size, follower) = (1000 + 137 * number, 500 + 311 * (number % 5));
            format!(
                "p T {number} {},2 0 {}.7,{size},{size},{size} 0.3,{follower},0,{follower}\n",
                number % 2,
                number % 4
            )
        })
        .collect();
    let snapshot = format!("evenkeel-snapshot v1 brokers=3 partitions=24\n{BROKERS}{partitions}");
    let goals = ["--goals", "LeaderBytesInDistributionGoal", "--output"];
    let output = run(&[&goals[..], &["snapshot"]].concat(), &snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let after = text(&output.stdout);
    assert!(after.contains('+'), "no leader is told in parts:\n{after}");
    let again = run(&[&goals[..], &["json"]].concat(), &after);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&report["summary"]["replicaMoves"], &report["summary"]["leaderMoves"]), (&0.into(), &0.into()));
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
