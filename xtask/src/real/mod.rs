//! The suites against real parts: makes sure the part is there, then runs the tests that need it.

mod cache;
mod clients;
mod kafka_kit;
pub(crate) mod kubetest;
mod maven;
mod strimzi_definitions;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{process, workspace::Workspace};

/// What the tests that need something real have in their path, whatever the suite: against the real control plane or real
/// brokers, against the real API server with our controllers, against simulated brokers with clients that are not ours,
/// and against our API server with the kubectl that comes with the real one.
const REAL_ARMS: [&str; 4] = ["real_arm::", "node_arm::", "sim_with_clients_arm::", "newest_kubectl_arm::"];
/// Their twins against our own server, and against simulated brokers; a user's filter would match both.
const OUR_ARMS: [&str; 2] = ["embedded_arm::", "sim_arm::"];

/// What turns the real arms on. Always both: every suite is then built once for them.
const FEATURES: [&str; 2] = ["--features", "evenkeel-testkit/real-kube,evenkeel-testkit/real-kafka"];

/// Test binaries with real arms, by the part that these need.
const KUBE_SUITES: [&str; 4] = ["kubectl", "operator", "promises", "real_control_plane"];
/// Their tests wait for the servers half of their time, so more of them run side by side than there are cores.
const AT_ONCE: &str = "4";
/// These wait for the clock almost all of their time, so many are told side by side, whatever the number of cores.
const WAITING_KUBE_SUITES: [&str; 1] = ["rebalances_on_a_real_server"];
const WAITING_AT_ONCE: &str = "20";
const KAFKA_SUITES: [&str; 4] = ["engine_and_others", "kafka_clients", "kafka_promises", "program"];

/// What tells the harness where Apache Kafka is, and where Strimzi's definitions are.
const KIT: &str = "EVENKEEL_KAFKA_KIT";
const STRIMZI_DEFINITIONS: &str = "EVENKEEL_STRIMZI_DEFINITIONS";

/// One kind of real part, and the tests that need it.
struct Suites<'a> {
    /// What the part is called.
    part: &'a str,
    /// Names of test binaries.
    tests: &'a [&'a str],
    /// What tells the tests where the part is.
    environment: &'a [(&'a str, &'a OsStr)],
}

/// Runs the real arms of the suites about the Kubernetes API. One of them has real brokers as well.
pub(crate) fn kube(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (kubetest, kit) = (kubetest::binary(workspace)?, kafka_kit::folder(workspace)?);
    let definitions = strimzi_definitions::folder(workspace)?;
    let environment = [
        ("EVENKEEL_KUBETEST", kubetest.as_os_str()),
        (KIT, kit.as_os_str()),
        (STRIMZI_DEFINITIONS, definitions.as_os_str()),
    ];
    for (tests, at_once) in [(&KUBE_SUITES[..], AT_ONCE), (&WAITING_KUBE_SUITES, WAITING_AT_ONCE)] {
        let environment = [&environment[..], &[("RUST_TEST_THREADS", OsStr::new(at_once))]].concat();
        Suites { part: "kube", tests, environment: &environment }.run(workspace, arguments)?;
    }
    Ok(())
}

/// Runs the real arms of the suites about Kafka.
pub(crate) fn kafka(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let parts = kafka_parts(workspace)?;
    let environment = parts.each_ref().map(|(name, path)| (*name, path.as_os_str()));
    Suites { part: "kafka", tests: &KAFKA_SUITES, environment: &environment }.run(workspace, arguments)
}

/// Makes or fetches every part, so that whoever needs one finds it. What is small comes first.
pub(crate) fn parts(workspace: &Workspace) -> Result<()> {
    kafka_parts(workspace)?;
    strimzi_definitions::folder(workspace)?;
    kubetest::binary(workspace)?;
    Ok(())
}

/// Apache Kafka and clients of it that are not ours, made first if no earlier run left them; and what tells the harness
/// where they are.
pub(crate) fn kafka_parts(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2]> {
    Ok([(KIT, kafka_kit::folder(workspace)?), ("EVENKEEL_KAFKA_PYTHON", clients::python(workspace)?)])
}

impl Suites<'_> {
    fn run(&self, workspace: &Workspace, arguments: &[String]) -> Result<()> {
        let Self { part, tests, environment } = self;
        // The servers of a test binary live as long as its process, so no destructor removes
        // their files (tens of megabytes): they go into a folder that is ours to remove, or to leave
        // for the reader when something failed.
        let scratch = tempfile::Builder::new()
            .prefix(&format!("evenkeel-real-{part}-"))
            .tempdir()
            .context("could not make a scratch folder")?;
        let outcome = process::run(
            process::cargo()
                // The whole workspace, though one crate has the tests: cargo then resolves the same features as
                // CI's step `test` does, and builds nothing a second time.
                .args(["test", "--locked", "--workspace"])
                .args(FEATURES)
                .args(tests.iter().flat_map(|test| ["--test", test]))
                .arg("--")
                .args(test_arguments(arguments))
                .envs(environment.iter().copied())
                .env("TMPDIR", scratch.path())
                .current_dir(workspace.root()),
        );
        match outcome {
            Ok(()) => remove(scratch.path()),
            Err(failure) => {
                println!("the logs of the real servers are kept in {}", scratch.keep().display());
                Err(failure)
            }
        }
    }
}

fn test_arguments(asked: &[String]) -> Vec<String> {
    if asked.is_empty() {
        // Several filters run what any of them matches.
        return REAL_ARMS.map(str::to_owned).to_vec();
    }
    let skipped = OUR_ARMS.iter().flat_map(|arm| ["--skip", arm]).map(str::to_owned);
    asked.iter().cloned().chain(skipped).collect()
}

/// Removes the folder of servers that have just been told to die and may still be writing.
fn remove(folder: &Path) -> Result<()> {
    for _ in 0..20 {
        if fs::remove_dir_all(folder).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    fs::remove_dir_all(folder).with_context(|| format!("could not remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_real_arm_runs_unless_a_filter_is_given() {
        assert_eq!(test_arguments(&[]), REAL_ARMS);
        assert_eq!(
            test_arguments(&["stale".to_owned(), "--nocapture".to_owned()]),
            ["stale", "--nocapture", "--skip", "embedded_arm::", "--skip", "sim_arm::"]
        );
    }

    /// Tests of an arm that no filter names, or of a suite that nobody runs, would never run, and nobody would see it.
    #[test]
    fn there_are_no_other_arms_and_no_other_suites() {
        let workspace = Workspace::find().unwrap();
        let mut suites = std::collections::BTreeSet::new();
        for path in workspace.files().unwrap().iter().filter(|path| path.ends_with(".rs")) {
            let text = workspace.read(path).unwrap();
            let modules = text.lines().filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(" {"));
            for arm in modules.filter(|module| module.ends_with("_arm")).map(|module| format!("{module}::")) {
                assert!(OUR_ARMS.iter().chain(&REAL_ARMS).any(|known| *known == arm), "{path}: {arm} never runs");
                let (_, suite) = path.split_once("/tests/").expect("only suites have arms");
                if REAL_ARMS.contains(&arm.as_str()) {
                    suites.insert(suite.split(['/', '.']).next().unwrap_or_default().to_owned());
                }
            }
        }
        let mut known = [KUBE_SUITES.as_slice(), &WAITING_KUBE_SUITES, KAFKA_SUITES.as_slice()].concat();
        known.sort_unstable();
        assert_eq!(suites.into_iter().collect::<Vec<_>>(), known);
    }
}
