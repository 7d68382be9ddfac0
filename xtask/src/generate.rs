//! Writing generated files anew. Each one has a test that fails when it is stale; the same test
//! writes the file when it is told to bless, so that there is one way to make it.

use anyhow::Result;

use crate::{process, workspace::Workspace};

/// Crates whose tests own generated files.
const OWNERS: [&str; 2] = [
    "evenkeel-api",  // The custom resource definitions in deploy/crds.
    "evenkeel-rest", // The reference page docs/rest.md.
];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for owner in OWNERS {
        process::run(
            process::cargo()
                .args(["test", "--quiet", "--package", owner])
                .env("EVENKEEL_BLESS", "1")
                .current_dir(workspace.root()),
        )?;
    }
    Ok(())
}
