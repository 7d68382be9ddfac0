//! Strimzi's own CustomResourceDefinitions, for the suite that has our operator work on them: printed by Strimzi's
//! generator from the types that Strimzi publishes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{
    cache,
    maven::{POM, copy_libraries},
};
use crate::{process, workspace::Workspace};

const SOURCE: &str = "real/strimzi";
const GENERATOR: &str = "io.strimzi.crdgenerator.CrdGenerator";
/// The kinds that are ours as well, by the packages of their types.
const KINDS: [(&str, &str); 4] =
    [("kafka", "Kafka"), ("nodepool", "KafkaNodePool"), ("podset", "StrimziPodSet"), ("rebalance", "KafkaRebalance")];

/// A folder with one file for each kind, made first if no earlier run left it.
pub(super) fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.path(SOURCE);
    let kept = cache::folder("strimzi", &cache::contents(&source, &[POM])?)?;
    cache::make_once(&kept, |folder| {
        println!("having Strimzi's definitions printed, once");
        print(&source, folder)
    })?;
    Ok(kept)
}

fn print(source: &Path, folder: &Path) -> Result<()> {
    let libraries = tempfile::tempdir().context("could not make a scratch folder")?;
    copy_libraries(source, libraries.path(), &[])?;
    let class_path = format!("{}/*", libraries.path().display());
    for (package, kind) in KINDS {
        let file = folder.join(format!("{kind}.yaml"));
        process::read(
            process::command("java")
                .args(["-classpath", &class_path, GENERATOR, "--yaml"])
                .arg(format!("io.strimzi.api.kafka.model.{package}.{kind}={}", file.display())),
        )
        .with_context(|| {
            format!("Strimzi's definition of {kind} could not be printed (this needs Java 17 or newer)")
        })?;
    }
    Ok(())
}
