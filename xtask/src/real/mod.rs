//! The suites against real parts: makes sure the part is there, then runs the tests that need it.

mod cache;
mod clients;
mod kafka_kit;
pub(crate) mod kubetest;

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
/// brokers, against the real API server with our controllers, and against simulated brokers with clients that are not
/// ours.
const REAL_ARMS: [&str; 3] = ["real_arm", "node_arm", "sim_with_clients_arm"];
/// Their twins against our own server, and against simulated brokers; a user's filter would match both.
const OUR_ARMS: [&str; 2] = ["embedded_arm", "sim_arm"];

/// One kind of real part, and the tests that need it.
struct Suites<'a> {
    /// Of the testkit: turns the real arms on.
    feature: &'a str,
    /// Names of test binaries; `*` for all of the workspace.
    tests: &'a [&'a str],
    /// What tells the tests where the part is.
    environment: &'a [(&'a str, &'a OsStr)],
}

/// Runs the real arms of the suites about the Kubernetes API.
pub(crate) fn kube(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let kubetest = kubetest::binary(workspace)?;
    let environment = [("EVENKEEL_KUBETEST", kubetest.as_os_str())];
    Suites { feature: "real-kube", tests: &["*"], environment: &environment }.run(workspace, arguments)
}

/// Runs the real arms of the suites about Kafka.
pub(crate) fn kafka(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let parts = kafka_parts(workspace)?;
    let environment = parts.each_ref().map(|(name, path)| (*name, path.as_os_str()));
    Suites { feature: "real-kafka", tests: &KAFKA_SUITES, environment: &environment }.run(workspace, arguments)
}

/// Apache Kafka and clients of it that are not ours, made first if no earlier run left them; and what tells the harness
/// where they are.
pub(crate) fn kafka_parts(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2]> {
    Ok([("EVENKEEL_KAFKA_KIT", kafka_kit::folder(workspace)?), ("EVENKEEL_KAFKA_PYTHON", clients::python(workspace)?)])
}

/// Named, unlike those about Kubernetes: building and linking the others again, for a feature that they do not look at,
/// would take longer than these tests.
const KAFKA_SUITES: [&str; 3] = ["kafka_promises", "kafka_clients", "local"];

impl Suites<'_> {
    fn run(&self, workspace: &Workspace, arguments: &[String]) -> Result<()> {
        let Self { feature, tests, environment } = self;
        // The servers of a test binary live as long as its process, so no destructor removes
        // their files (tens of megabytes): they go into a folder that is ours to remove, or to leave
        // for the reader when something failed.
        let scratch = tempfile::Builder::new()
            .prefix(&format!("evenkeel-{feature}-"))
            .tempdir()
            .context("could not make a scratch folder")?;
        let outcome = process::run(
            process::cargo()
                // The whole workspace, though one crate has the tests: cargo then resolves the same features as
                // `cargo test --workspace` does, and builds none of the dependencies a second time.
                .args(["test", "--locked", "--workspace"])
                .args(tests.iter().flat_map(|test| ["--test", test]))
                .args(["--features", &format!("evenkeel-testkit/{feature}"), "--"])
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
        assert_eq!(test_arguments(&[]), ["real_arm", "node_arm", "sim_with_clients_arm"]);
        assert_eq!(
            test_arguments(&["stale".to_owned(), "--nocapture".to_owned()]),
            ["stale", "--nocapture", "--skip", "embedded_arm", "--skip", "sim_arm"]
        );
    }

    /// Tests of an arm that no filter names would never run, and nobody would see it.
    #[test]
    fn the_suites_have_no_other_arms() {
        let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testkit/tests");
        for suite in ["promises", "kubectl", "kafka_promises", "kafka_clients"] {
            let text = fs::read_to_string(suites.join(suite).join("main.rs")).expect("the suite's root");
            let arms: Vec<_> = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(" {"))
                .inspect(|arm| assert!(OUR_ARMS.contains(arm) || REAL_ARMS.contains(arm), "{suite}: {arm} never runs"))
                .collect();
            assert!(arms.contains(&REAL_ARMS[0]), "{suite}: {arms:?}");
        }
    }
}
