//! `evenkeel generate`, as a program.

use std::process::{Command, Output};

use evenkeel_balancer::cluster::BrokerState;

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
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "evenkeel: cannot generate such a cluster: 2 brokers cannot hold 3 replicas of a partition\n"
    );
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn g_is_balanced_and_has_two_new_empty_brokers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g");
    let smaller = ["--preset", "g", "--brokers", "6", "--topics", "3", "--replicas", "30", "-o"];
    let output = generate(&[&smaller[..], &[path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let cluster = evenkeel_snapshot::read_path(&path, |_| {}).unwrap().cluster;
    let ids: Vec<i32> = cluster.brokers().iter().map(|broker| broker.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
    let is_new = |id: i32| cluster.brokers()[id as usize].state == BrokerState::New;
    assert!(is_new(6) && is_new(7) && !is_new(5));
    let mut used: Vec<i32> =
        cluster.partitions().flat_map(|partition| partition.replicas()).map(|replica| replica.broker.0).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [0, 1, 2, 3, 4, 5]);
}
