//! Published libraries, by Maven.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::process;

/// The file that names libraries.
pub(super) const POM: &str = "pom.xml";
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Copies what the pom in `source` names, and what that needs, into a folder.
pub(super) fn copy_libraries(source: &Path, folder: &Path, further: &[String]) -> Result<()> {
    // Maven may want to write beside the pom, and the repository is no place for that.
    let scratch = tempfile::tempdir().context("could not make a scratch folder")?;
    let pom = scratch.path().join(POM);
    fs::copy(source.join(POM), &pom).with_context(|| format!("could not copy {POM}"))?;
    process::run(
        process::command("mvn")
            .args(["--quiet", "--batch-mode", "--file"])
            .arg(&pom)
            .arg(COPY)
            .arg("-DincludeScope=runtime")
            .args(further)
            .arg(format!("-DoutputDirectory={}", folder.display())),
    )
    .context("libraries could not be fetched (this needs Maven)")
}
