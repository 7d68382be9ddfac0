//! Directories for files that lead others in: a kubeconfig, a password. Each is one process's alone as long as that runs.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::misuse::Misuse;

/// Who has the directory. The file stays when its owner goes; it is the lock on it that counts, and the system takes
/// that back however the owner ends.
const OWNER: &str = "evenkeel.pid";

/// A directory that is ours until this is dropped. One of our own making goes with it: what is in it leads nowhere then.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _held: Held,
}

#[derive(Debug)]
enum Held {
    /// Others may name it as well.
    Locked { _owner: File },
    /// Nobody else knows it.
    Temporary { _directory: TempDir },
}

impl Directory {
    /// The one that was named, or a new one whose name begins with `prefix`.
    pub(crate) fn make(named: Option<PathBuf>, prefix: &str) -> anyhow::Result<Self> {
        match named {
            Some(dir) => {
                make_private(&dir).with_context(|| format!("could not make the directory {}", dir.display()))?;
                let owner = lock(&dir)?;
                Ok(Self { path: absolute(&dir)?, _held: Held::Locked { _owner: owner } })
            }
            None => {
                let made = temporary(prefix).context("could not make a temporary directory")?;
                Ok(Self { path: absolute(made.path())?, _held: Held::Temporary { _directory: made } })
            }
        }
    }

    /// From the root on, so that it can be told to others.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The path from the root on.
pub(crate) fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is no usable path", path.display()))
}

/// A fresh directory. Its name cannot be guessed and it must not be there already: in a place where all may write, one
/// that somebody else has made is somebody else's to read.
fn temporary(prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir()
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Takes the directory, or says who has it.
fn lock(dir: &Path) -> anyhow::Result<File> {
    let could_not = || format!("could not lock the directory {}", dir.display());
    let mut options = File::options();
    let mut owner = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(dir.join(OWNER))
        .with_context(could_not)?;
    match owner.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Just taken, it may be empty or still name the one before; then there is nobody to name, or the wrong one.
            let pid = owner.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(Misuse::DirectoryInUse { dir: dir.to_owned(), pid }.into());
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(could_not),
    }
    owner.set_len(0).and_then(|()| writeln!(owner, "{}", std::process::id())).with_context(could_not)?;
    Ok(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_new_and_nobody_elses() {
        let make = || Directory::make(None, "evenkeel-test-").expect("a directory");
        let (one, two) = (make(), make());
        assert_ne!(one.path(), two.path());
        assert_eq!(std::fs::metadata(one.path()).expect("there").permissions().mode() & 0o777, 0o700);
        let gone = one.path().to_owned();
        drop(one);
        assert!(!gone.exists());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let failed = Directory::make(Some("/proc/evenkeel".into()), "").map(|_| ()).expect_err("nobody writes there");
        assert!(format!("{failed:#}").starts_with("could not make the directory /proc/evenkeel: "), "{failed:#}");
    }

    #[test]
    fn a_directory_is_one_owners_until_it_is_given_back() {
        let dir = temporary("evenkeel-test-").expect("a directory");
        let make = || Directory::make(Some(dir.path().to_owned()), "");
        // A longer number than ours could be, left by one that is gone.
        std::fs::write(dir.path().join(OWNER), "4294967295 and more\n").expect("written");
        let first = make().expect("nobody has it");
        let refused = make().expect_err("it is taken").to_string();
        let holder = format!("is in use by another evenkeel, process {}; ", std::process::id());
        assert!(refused.contains(&holder), "{refused}");
        drop(first);
        make().expect("it is free again");
    }
}
