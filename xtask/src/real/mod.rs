//! The suites against real parts: makes sure the part is there, then runs the tests that need it.

pub(crate) mod kubetest;

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context, Result};

use crate::{process, workspace::Workspace};

/// What the tests that need the real server have in their path, whatever the suite: against the real control plane, and
/// against the real API server with our controllers.
const REAL_ARMS: [&str; 2] = ["real_arm", "node_arm"];
/// Their twins against our own server; a user's filter would match both.
const EMBEDDED_ARM: &str = "embedded_arm";

/// Runs the real arms of the suites about the Kubernetes API.
pub(crate) fn kube(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let kubetest = kubetest::binary(workspace)?;
    // The control plane of a test binary lives as long as its process, so no destructor removes
    // its files (tens of megabytes): they go into a folder that is ours to remove, or to leave
    // for the reader when something failed.
    let scratch =
        tempfile::Builder::new().prefix("evenkeel-real-kube-").tempdir().context("could not make a scratch folder")?;
    let outcome = process::run(
        process::cargo()
            // The whole workspace, though one crate has the tests: cargo then resolves the same features as
            // `cargo test --workspace` does, and builds none of the dependencies a second time.
            .args(["test", "--locked", "--workspace", "--test", "*"])
            .args(["--features", "evenkeel-testkit/real-kube", "--"])
            .args(test_arguments(arguments))
            .env("EVENKEEL_KUBETEST", &kubetest)
            .env("TMPDIR", scratch.path())
            .current_dir(workspace.root()),
    );
    match outcome {
        Ok(()) => remove(scratch.path()),
        Err(failure) => {
            println!("the logs of the real control plane are kept in {}", scratch.keep().display());
            Err(failure)
        }
    }
}

fn test_arguments(asked: &[String]) -> Vec<String> {
    if asked.is_empty() {
        // Several filters run what any of them matches.
        return REAL_ARMS.map(str::to_owned).to_vec();
    }
    let mut arguments = asked.to_vec();
    arguments.extend(["--skip".to_owned(), EMBEDDED_ARM.to_owned()]);
    arguments
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
        assert_eq!(test_arguments(&[]), ["real_arm", "node_arm"]);
        assert_eq!(
            test_arguments(&["stale".to_owned(), "--nocapture".to_owned()]),
            ["stale", "--nocapture", "--skip", "embedded_arm"]
        );
    }

    /// Tests of an arm that no filter names would never run, and nobody would see it.
    #[test]
    fn the_suites_have_no_other_arms() {
        let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testkit/tests");
        for suite in ["promises", "kubectl"] {
            let text = fs::read_to_string(suites.join(suite).join("main.rs")).expect("the suite's root");
            let arms: Vec<_> = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(" {"))
                .inspect(|arm| assert!(*arm == EMBEDDED_ARM || REAL_ARMS.contains(arm), "{suite}: {arm} never runs"))
                .collect();
            assert!(arms.contains(&REAL_ARMS[0]), "{suite}: {arms:?}");
        }
    }
}
