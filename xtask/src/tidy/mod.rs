//! `cargo xtask tidy`: rules of this repository that no compiler knows.
//!
//! Each rule is a pure function from text or metadata to findings, in a file of its own, with
//! tests that show it can fail. This file only gathers what they look at.

mod arrows;
mod dependencies;
mod inspected;
mod length;
mod lints;
mod markers;
mod outside;
mod purity;
mod spdx;

use std::{fmt, fs, path::Path};

use anyhow::{Result, bail};

use crate::{metadata::Metadata, process, workspace::Workspace};

/// Something that breaks a rule, and where.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    place: String,
    what: String,
}

impl Finding {
    fn in_file(path: &str, what: impl Into<String>) -> Self {
        Self { place: path.to_owned(), what: what.into() }
    }

    /// `line` counts from zero, as `enumerate` does; people count from one.
    fn at_line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { place: format!("{path}:{}", line + 1), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut findings = Vec::new();
    let files = workspace.files()?;
    findings.extend(purity::roots_without_files(&files, |folder| workspace.path(folder).is_dir()));
    for path in &files {
        // What is not text has no words to find fault with.
        let Ok(text) = fs::read_to_string(workspace.path(path)) else {
            continue;
        };
        findings.extend(purity::check(path, &text));
        findings.extend(inspected::check(path, &text));
        findings.extend(length::check(path, &text));
        findings.extend(markers::check(path, &text));
        findings.extend(outside::check(path, &text));
    }

    let members = Metadata::of_members(workspace)?;
    findings.extend(arrows::check(&members));
    for member in &members.packages {
        let manifest = fs::read_to_string(&member.manifest_path)?;
        findings.extend(lints::check(&member.name, &manifest));
    }

    let policy = dependencies::Policy::parse(&workspace.read("deny.toml")?)?;
    findings.extend(dependencies::check(&Metadata::of_everything(workspace)?, &policy));

    if !findings.is_empty() {
        for finding in &findings {
            println!("{finding}");
        }
        bail!("{} finding(s)", findings.len());
    }
    println!("tidy: {} files, {} crates: nothing to complain about", files.len(), members.packages.len());
    ask_cargo_deny(workspace)
}

/// cargo-deny reads the same policy and also knows duplicates, but not every machine has it.
fn ask_cargo_deny(workspace: &Workspace) -> Result<()> {
    if !process::is_installed("cargo-deny") {
        println!("tidy: cargo-deny is not installed; licences, sources and bans were checked without it");
        return Ok(());
    }
    process::run(
        process::cargo()
            .args(["deny", "--locked", "check", "licenses", "sources", "bans"])
            .current_dir(workspace.root()),
    )
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Whether `text` has `word` with no letter, digit or underscore touching it.
///
/// A word that itself ends in punctuation (`tokio::`) is bounded there already.
fn has_word(text: &str, word: &str) -> bool {
    let in_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts_bounded = !word.starts_with(in_a_name);
    let ends_bounded = !word.ends_with(in_a_name);
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        (starts_bounded || !before.is_some_and(in_a_name)) && (ends_bounded || !after.is_some_and(in_a_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_inside_a_longer_name_is_not_that_word() {
        assert!(has_word("let x: HashMap<A, B>", "HashMap"));
        assert!(!has_word("let x: MyHashMap<A, B>", "HashMap"));
        assert!(!has_word("fn instantiate()", "Instant"));
        assert!(!has_word("struct Instantly;", "Instant"));
        assert!(has_word("use kube::Client", "kube::"));
        assert!(!has_word("use mykube::Client", "kube::"));
        assert!(has_word("Timestamp::now()", "::now()"));
    }
}
