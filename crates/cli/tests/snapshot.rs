//! `evenkeel snapshot` and `evenkeel plan --bootstrap`, as programs, against a simulated cluster behind TLS and SCRAM.

use std::io::{BufRead, BufReader};
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
