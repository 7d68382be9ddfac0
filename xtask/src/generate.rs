//! Writing generated files anew. Each one has a test that fails when it is stale; the same test
//! writes the file when it is told to bless, so that there is one way to make it.

use anyhow::Result;

use crate::{process, workspace::Workspace};

/// Who owns generated files: crate, test binary, and which of its tests.
const OWNERS: [(&str, &str, &str); 4] = [
    ("evenkeel-api", "api", ""),             // The custom resource definitions in deploy/crds.
    ("evenkeel-rest", "reference_page", ""), // The reference page docs/rest.md.
    ("evenkeel-engine", "engine", "configuration_page::"), // The table of keys in docs/configuration.md.
    ("evenkeel-cli", "program", "pictures::"), // The picture of a plan in docs/pictures, and its text in docs/plan.md.
];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for (owner, binary, tests) in OWNERS {
        process::run(
            process::cargo()
                .args(["test", "--quiet", "--package", owner, "--test", binary, tests])
                .env("EVENKEEL_BLESS", "1")
                .current_dir(workspace.root()),
        )?;
    }
    Ok(())
}
