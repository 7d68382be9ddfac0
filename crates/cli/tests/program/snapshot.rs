//! `evenkeel snapshot` and `evenkeel plan --bootstrap`, as programs, against a simulated cluster behind TLS and SCRAM.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

struct Sim {
    child: Child,
    bootstrap: String,
    settings: String,
}

impl Sim {
    fn start(dir: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args([
                "sim",
                "--output",
                "json",
                "--load",
                "6MB/s",
                "--tls",
                "--user",
                "alice",
                "--dir",
                dir,
                "--no-metrics",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let greeting: serde_json::Value = serde_json::from_str(&line).unwrap();
        let bootstrap = greeting["bootstrapServers"].as_str().unwrap().to_owned();
        Sim { child, bootstrap, settings: format!("{dir}/client.properties") }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn a_running_cluster_is_recorded_and_planned_for() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::start(dir.path().to_str().unwrap());
    let live = ["--bootstrap", &sim.bootstrap, "--command-config", &sim.settings, "--seconds", "2"];

    let recorded = evenkeel(&[&["snapshot"], &live[..]].concat());
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let snapshot = text(&recorded.stdout);
    assert!(snapshot.starts_with("evenkeel-snapshot v1 brokers=3 topics=3 partitions=18 replicas=54"), "{snapshot}");
    // What was not measured is unknown, never 0.
    assert!(snapshot.contains("\nunknown cpu"), "{snapshot}");

    let planned = evenkeel(&[&["plan", "--output", "json"], &live[..]].concat());
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert!(serde_json::from_slice::<serde_json::Value>(&planned.stdout).is_ok());
}

#[test]
fn what_is_wrong_with_the_settings_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("client.properties");
    std::fs::write(&file, "security.protocol=SSL\nssl.truststore.location=/t.jks\n").unwrap();
    let file = file.to_str().unwrap();
    let refused = evenkeel(&["snapshot", "--bootstrap", "localhost:1", "--command-config", file]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("ssl.truststore.type: JKS") && said.lines().count() == 1, "{said}");
}

/// Nothing was asked of anybody: there is no cluster at that address.
#[test]
fn a_file_that_is_missing_or_wrong_is_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("capacity.json");
    std::fs::write(&broken, "{").unwrap();
    let (broken, missing) = (broken.to_str().unwrap(), dir.path().join("missing"));
    let missing = missing.to_str().unwrap();
    let tls = dir.path().join("tls.properties");
    std::fs::write(
        &tls,
        format!("security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={missing}\n"),
    )
    .unwrap();
    for (option, file, says) in [
        ("--capacity", missing, "missing: cannot be read: No such file or directory"),
        ("--command-config", missing, "missing: cannot be read: No such file or directory"),
        ("--capacity", broken, "capacity.json: the capacity file is not as it should be: "),
        ("--command-config", tls.to_str().unwrap(), "TLS cannot be used: "),
    ] {
        for command in ["plan", "snapshot"] {
            let refused = evenkeel(&[command, "--bootstrap", "127.0.0.1:1", option, file]);
            let said = text(&refused.stderr);
            assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            assert!(said.contains(says) && refused.stdout.is_empty(), "{said}");
        }
    }
}

/// That it refused is said, not that it took too long.
#[test]
fn addresses_that_all_refuse_are_not_tried_for_long() {
    let closed = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let bootstrap = format!("{},{}", closed(), closed());
    let refused = evenkeel(&["plan", "--bootstrap", &bootstrap]);
    let said = text(&refused.stderr);
    assert_eq!((refused.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("the address cannot be reached: Connection refused"), "{said}");
}
