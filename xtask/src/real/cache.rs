//! What real parts are made into is kept in the user's cache folder, by the hash of all it is made from: neither
//! `cargo clean` nor a fresh clone loses it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// Where the thing called `name`, made from these parts, is or will be kept.
pub(super) fn folder(name: &str, parts: &[Vec<u8>]) -> Result<PathBuf> {
    Ok(base()?.join(format!("{name}-{}", fingerprint(parts))))
}

/// Makes `kept` unless an earlier run left it. `make` fills a folder beside it, which is then renamed, so that a
/// half-made one is never found there.
pub(super) fn make_once(kept: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if kept.is_dir() {
        return Ok(());
    }
    let parent = kept.parent().context("the cache has no parent folder")?;
    fs::create_dir_all(parent).with_context(|| format!("could not make {}", parent.display()))?;
    let unfinished = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(parent)
        .with_context(|| format!("could not write in {}", parent.display()))?;
    make(unfinished.path())?;
    let finished = unfinished.keep();
    match fs::rename(&finished, kept) {
        Ok(()) => Ok(()),
        // Another run was faster; what it made is the same.
        Err(_) if kept.is_dir() => fs::remove_dir_all(&finished).context("could not remove a superfluous build"),
        Err(cause) => Err(cause).with_context(|| format!("could not move what was made to {}", kept.display())),
    }
}

/// The contents of files in one folder, as parts of a fingerprint.
pub(super) fn contents(source: &Path, files: &[&str]) -> Result<Vec<Vec<u8>>> {
    files
        .iter()
        .map(|file| {
            let path = source.join(file);
            fs::read(&path).with_context(|| format!("could not read {}", path.display()))
        })
        .collect()
}

/// `$XDG_CACHE_HOME/evenkeel`, or `~/.cache/evenkeel`.
fn base() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => env::home_dir().context("neither XDG_CACHE_HOME nor a home folder is known")?.join(".cache"),
    };
    Ok(base.join("evenkeel"))
}

/// Changes when anything does that could change what is made.
fn fingerprint(parts: &[Vec<u8>]) -> String {
    let mut hasher = Sha256::new();
    let platform = [env::consts::OS, env::consts::ARCH];
    let parts = parts.iter().map(Vec::as_slice).chain(platform.iter().map(|word| word.as_bytes()));
    for part in parts {
        // The length keeps two neighbours from trading bytes unnoticed.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    digest.iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_sees_contents_and_where_one_ends() {
        let parts = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let before = fingerprint(&parts(&["module x", "sum", "-s"]));
        assert_eq!(before, fingerprint(&parts(&["module x", "sum", "-s"])));
        assert_ne!(before, fingerprint(&parts(&["module y", "sum", "-s"])));
        assert_ne!(before, fingerprint(&parts(&["module x", "sum", "-w"])));
        assert_ne!(before, fingerprint(&parts(&["module xs", "um", "-s"])));
    }

    #[test]
    fn what_could_not_be_made_is_not_found_later() {
        let cache = tempfile::tempdir().unwrap();
        let kept = cache.path().join("thing");
        let failed = make_once(&kept, |folder| {
            fs::write(folder.join("half"), "x")?;
            anyhow::bail!("the network is gone")
        });
        assert!(failed.is_err());
        assert!(fs::read_dir(cache.path()).unwrap().next().is_none(), "nothing is left");

        make_once(&kept, |folder| Ok(fs::write(folder.join("whole"), "x")?)).unwrap();
        make_once(&kept, |_| anyhow::bail!("made twice")).unwrap();
        assert!(kept.join("whole").is_file());
    }
}
