//! `evenkeel generate`, as a program.

use std::process::{Command, Output};

fn generate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("generate").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn a_preset_is_written_to_standard_output_and_nothing_else() {
    let output = generate(&["--preset", "a"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let first = text(&output.stdout).lines().next().map(str::to_owned);
    assert_eq!(
        first.as_deref(),
        Some("evenkeel-snapshot v1 brokers=40 topics=3001 partitions=16707 replicas=50081 name=a")
    );
}

#[test]
fn a_file_can_be_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.gz");
    let options = ["--brokers", "6", "--topics", "3", "--replicas", "30", "--disks", "2", "--rack-aware", "-o"];
    let output = generate(&[&options[..], &[path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let snapshot = evenkeel_snapshot::read_path(&path, |_| {}).unwrap();
    // The added topic has two replicas for each broker.
    assert_eq!(snapshot.cluster.replica_count(), 30 + 2 * 6);
    assert!(snapshot.cluster.has_disks());
}

#[test]
fn parameters_that_contradict_each_other_are_refused_in_one_line() {
    let output = generate(&["--brokers", "2"]);
    assert!(!output.status.success());
    assert_eq!(
        text(&output.stderr),
        "evenkeel: cannot generate such a cluster: 2 brokers cannot hold 3 replicas of a partition\n"
    );
    assert_eq!(text(&output.stdout), "");
}
