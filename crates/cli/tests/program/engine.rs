//! `evenkeel engine` as a process: what is seen of it before there is any Kafka.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_log_that_nobody_looks_at_has_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    let [settings, capacities, log] = ["cc.properties", "capacity.json", "log"].map(|name| folder.path().join(name));
    let capacity = r#"{"DISK": "1000", "CPU": "100", "NW_IN": "1000", "NW_OUT": "1000"}"#;
    fs::write(&capacities, format!(r#"{{"brokerCapacities": [{{"brokerId": "-1", "capacity": {capacity}}}]}}"#))
        .unwrap();
    // Nobody listens there; the last line is warned of.
    let lines = ["bootstrap.servers=127.0.0.1:1", "webserver.ui.diskpath=/ui"];
    let file = format!("capacity.config.file={}\n{}\n", capacities.display(), lines.join("\n"));
    fs::write(&settings, file).unwrap();
    let mut engine = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["engine".as_ref(), settings.as_os_str(), "0".as_ref()])
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(engine.stdout.take().unwrap()).read_line(&mut said).unwrap();
    engine.kill().and_then(|()| engine.wait()).unwrap();
    assert!(said.starts_with("http://127.0.0.1:"), "{said}");
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("webserver.ui.diskpath") && !log.contains('\u{1b}'), "{log}");
}
