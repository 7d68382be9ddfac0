//! Files by their absolute path, as a container sees them.

use std::collections::BTreeMap;
use std::fmt;

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Who may read it, as Unix permission bits.
    pub mode: u32,
}

impl fmt::Debug for File {
    /// The size only: many files hold secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes, mode {:o}", self.bytes.len(), self.mode)
    }
}

/// Absolute paths in a container to files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, File>);

impl Tree {
    /// Puts a file at an absolute path, in place of what was there.
    pub fn insert(&mut self, path: impl Into<String>, file: File) {
        self.0.insert(path.into(), file);
    }

    /// The file at a path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }

    /// The contents of the file at a path.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.file(path).map(|file| file.bytes.as_slice())
    }

    /// The file at a path as text.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.get(path)?).ok()
    }

    /// In order of paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The files below a directory, by what follows its path and a slash.
    pub fn below<'a>(&'a self, directory: &str) -> impl Iterator<Item = (&'a str, &'a File)> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let below = self.0.range(prefix.clone()..).take_while({
            let prefix = prefix.clone();
            move |(path, _)| path.starts_with(&prefix)
        });
        below.map(move |(path, file)| (&path[prefix.len()..], file))
    }
}

impl FromIterator<(String, File)> for Tree {
    fn from_iter<T: IntoIterator<Item = (String, File)>>(files: T) -> Self {
        Self(files.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_what_begins_with_its_path() {
        let file = |text: &str| File { bytes: text.into(), mode: 0o644 };
        let tree: Tree = [("/a/b", "1"), ("/a/c/d", "2"), ("/ab", "3"), ("/a", "4")]
            .map(|(path, text)| (path.to_owned(), file(text)))
            .into_iter()
            .collect();
        let names: Vec<_> = tree.below("/a/").map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "c/d"]);
        assert_eq!((tree.text("/ab"), tree.text("/b")), (Some("3"), None));
    }

    #[test]
    fn contents_are_not_printed() {
        let tree: Tree = [("/key".to_owned(), File { bytes: b"hidden".to_vec(), mode: 0o600 })].into_iter().collect();
        assert_eq!(format!("{tree:?}"), r#"Tree({"/key": 6 bytes, mode 600})"#);
    }
}
