//! Files and volumes in real directories, when the node has one.
//!
//! ```text
//! <dir>/pods/<pod uid>/files/<container>/<absolute path>   files; volumes are links to their place
//! <dir>/pods/<pod uid>/volumes/<volume id>                 empty directories, gone with the pod
//! <dir>/volumes/<volume id>                                data of claims, gone with the claim
//! ```
//!
//! Only the user can enter. A changed file is replaced in one step, so that nobody reads half of it. The files are few
//! and small, so they are written where the kubelet runs; what is removed may be large.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::program::Volume;
use super::tree::{File, Tree};

/// Where things are laid out; nowhere if it has no directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    dir: Option<PathBuf>,
}

impl Layout {
    /// Below a directory. What an earlier node left of its pods is removed: they do not run any more.
    pub(crate) fn below(dir: Option<PathBuf>) -> io::Result<Self> {
        if let Some(dir) = &dir {
            private(dir)?;
            remove(&dir.join("pods"))?;
        }
        Ok(Self { dir })
    }

    /// Lays out what a container sees. Returns its root and its volumes with their places.
    pub(crate) fn prepare(
        &self,
        uid: &str,
        container: &str,
        files: &Tree,
        volumes: &BTreeMap<String, Volume>,
    ) -> io::Result<(Option<PathBuf>, BTreeMap<String, Volume>)> {
        let mut placed = volumes.clone();
        let Some(dir) = &self.dir else { return Ok((None, placed)) };
        let pod = dir.join("pods").join(uid);
        let root = pod.join("files").join(container);
        remove(&root)?;
        private(&root)?;
        for (path, volume) in &mut placed {
            let base = if volume.persistent { dir } else { &pod };
            let place = inside(&base.join("volumes"), &volume.id);
            private(&place)?;
            let link = inside(&root, path);
            if let Some(above) = link.parent() {
                private(above)?;
            }
            // Inside another volume there may be one of an earlier start.
            match fs::symlink_metadata(&link) {
                Ok(old) if old.is_symlink() => fs::remove_file(&link)?,
                _ => (),
            }
            symlink(&place, &link)?;
            volume.directory = Some(place);
        }
        replace(&root, &Tree::default(), files)?;
        Ok((Some(root), placed))
    }

    /// Removes what was laid out for a pod.
    pub(crate) async fn forget(&self, uid: &str) -> io::Result<()> {
        match &self.dir {
            Some(dir) => remove_aside(dir.join("pods").join(uid)).await,
            None => Ok(()),
        }
    }

    /// Removes the data of a claim.
    pub(crate) async fn discard(&self, volume: &str) -> io::Result<()> {
        match &self.dir {
            Some(dir) => remove_aside(inside(&dir.join("volumes"), volume)).await,
            None => Ok(()),
        }
    }
}

/// Volumes of real brokers hold gigabytes: they are removed where nobody waits.
async fn remove_aside(dir: PathBuf) -> io::Result<()> {
    tokio::task::spawn_blocking(move || remove(&dir)).await.map_err(io::Error::other)?
}

/// Brings the files below a container's root from one state to another.
pub(crate) fn replace(root: &Path, old: &Tree, new: &Tree) -> io::Result<()> {
    for (path, file) in new.iter().filter(|(path, file)| old.file(path) != Some(file)) {
        write(&inside(root, path), file)?;
    }
    for (path, _) in old.iter().filter(|(path, _)| new.file(path).is_none()) {
        match fs::remove_file(inside(root, path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
    }
    Ok(())
}

fn write(path: &Path, file: &File) -> io::Result<()> {
    if let Some(above) = path.parent() {
        private(above)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.new"));
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => (),
    }
    let mut out = OpenOptions::new().write(true).create_new(true).mode(file.mode).open(&fresh)?;
    out.write_all(&file.bytes)?;
    fs::rename(fresh, path)
}

/// A path below a directory, whatever the path says.
fn inside(dir: &Path, path: &str) -> PathBuf {
    let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    parts.fold(dir.to_owned(), |dir, part| dir.join(part))
}

fn private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn tree(files: &[(&str, &str, u32)]) -> Tree {
        let file = |text: &str, mode| File { bytes: text.into(), mode };
        files.iter().map(|(path, text, mode)| ((*path).to_owned(), file(text, *mode))).collect()
    }

    #[tokio::test]
    async fn files_are_laid_out_changed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::below(Some(dir.path().join("node"))).unwrap();
        let files = tree(&[("/etc/key", "hush", 0o600), ("/etc/plain", "1", 0o644), ("/data/init/rack", "a", 0o644)]);
        let volume = |persistent| Volume { id: "v1".into(), capacity: None, persistent, directory: None };
        let volumes = [("/data/init".to_owned(), volume(false)), ("/keep".to_owned(), volume(true))].into();
        let (root, placed) = layout.prepare("u1", "main", &files, &volumes).unwrap();
        let root = root.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&root.join("etc/key")), mode(&root)), (0o600, 0o700));
        let directory = |path: &str| placed[path].directory.clone().unwrap();
        assert_eq!(fs::read_to_string(directory("/data/init").join("rack")).unwrap(), "a");
        fs::write(root.join("keep/data"), "kept").unwrap();

        let changed = tree(&[("/etc/key", "psst", 0o600), ("/data/init/rack", "a", 0o644)]);
        replace(&root, &files, &changed).unwrap();
        assert_eq!(fs::read_to_string(root.join("etc/key")).unwrap(), "psst");
        assert!(!root.join("etc/plain").exists());

        let (again, _) = layout.prepare("u1", "main", &changed, &volumes).unwrap();
        assert_eq!(fs::read_to_string(again.unwrap().join("keep/data")).unwrap(), "kept");
        layout.forget("u1").await.unwrap();
        assert!(!root.exists() && directory("/keep").join("data").exists());
        layout.discard("v1").await.unwrap();
        assert!(!directory("/keep").exists());
        layout.discard("v1").await.unwrap();
    }

    #[test]
    fn a_volume_inside_another_is_there_at_every_start() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::below(Some(dir.path().join("node"))).unwrap();
        let volume = |id: &str, persistent| Volume { id: id.into(), capacity: None, persistent, directory: None };
        let volumes =
            [("/data".to_owned(), volume("kept", true)), ("/data/init".to_owned(), volume("fresh", false))].into();
        for uid in ["u1", "u1", "u2"] {
            let (root, placed) = layout.prepare(uid, "main", &Tree::default(), &volumes).unwrap();
            fs::write(root.unwrap().join("data/init/rack"), uid).unwrap();
            let fresh = placed["/data/init"].directory.clone().unwrap();
            assert_eq!(fs::read_to_string(fresh.join("rack")).unwrap(), uid);
        }
    }

    #[test]
    fn no_path_leads_out() {
        assert_eq!(inside(Path::new("/r"), "/../../etc/./passwd"), Path::new("/r/etc/passwd"));
    }

    #[tokio::test]
    async fn without_a_directory_nothing_is_written() {
        let layout = Layout::below(None).unwrap();
        let (root, _) = layout.prepare("u1", "main", &tree(&[("/a", "1", 0o644)]), &BTreeMap::new()).unwrap();
        assert_eq!(root, None);
        layout.forget("u1").await.unwrap();
    }
}
