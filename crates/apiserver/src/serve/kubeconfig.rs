//! The kubeconfig: what a client needs to find the server, trust it, and be trusted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use super::Error;
use super::certificates::Certificates;
use crate::decode;
use crate::http::moment::random;

/// Name of cluster, user and context.
const NAME: &str = "evenkeel";
/// Ours are some kilobytes; with a few extensions they are still far from this.
const LARGEST: u64 = 1 << 20;

/// Renders a kubeconfig. It is JSON, which is YAML too, so that nothing in it needs quoting rules.
pub(super) fn render(server: &str, certificates: &Certificates, token: &str) -> String {
    let encoded = |pem: &str| BASE64_STANDARD.encode(pem);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": NAME, "preferences": {},
        "clusters": [{"name": NAME, "cluster": {
            "server": server, "certificate-authority-data": encoded(&certificates.authority),
        }}],
        "users": [{"name": NAME, "user": {
            "client-certificate-data": encoded(&certificates.client),
            "client-key-data": encoded(&certificates.client_key),
            "token": token,
        }}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    });
    format!("{config:#}\n")
}

/// Why a file is not written over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// `~/.kube/config`, there or not: it holds the way into real clusters.
    #[error("{} is your own kubeconfig and is left alone", path.display())]
    UsersOwn {
        /// The file.
        path: PathBuf,
    },
    /// There is a file that does not look like one of ours.
    #[error("{} is there already and was not written by evenkeel", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
}

/// Writes a file that only its owner may read, whole or not at all. What is there and not ours is left alone.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::WriteKubeconfig { path: path.to_owned(), source };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let no_name = || failed(io::Error::new(io::ErrorKind::InvalidInput, "no file name"));
    let name = path.file_name().ok_or_else(no_name)?;
    if is_users_own(&directory.canonicalize().map_err(failed)?.join(name)) {
        return Err(Error::ForeignKubeconfig { foreign: Foreign::UsersOwn { path: path.to_owned() } });
    }
    if !may_be_replaced(path).map_err(failed)? {
        return Err(Error::ForeignKubeconfig { foreign: Foreign::Unknown { path: path.to_owned() } });
    }
    let mut suffix = [0; 8];
    random(&mut suffix);
    let temporary = directory.join(format!(".kubeconfig-{:016x}", u64::from_le_bytes(suffix)));
    let written = write_new(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

/// Whether nothing is lost with what is there: nothing, an empty file, or a kubeconfig that we wrote.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        metadata => metadata?,
    };
    // Pipes and devices would be waited for, and what is that large is not ours.
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Ok(false);
    }
    Ok(metadata.len() == 0 || is_ours(&std::fs::read(path)?))
}

/// Whether everything in a kubeconfig leads to one of us. Tools such as `kubectl config` write it anew as YAML; what they
/// added of other clusters is not ours to lose.
fn is_ours(text: &[u8]) -> bool {
    let Ok(config) = decode::yaml(text) else { return false };
    ["clusters", "contexts", "users"].iter().all(|part| {
        let named = config.value[part].as_array().map(Vec::as_slice).unwrap_or_default();
        !named.is_empty() && named.iter().all(|one| one["name"] == NAME)
    })
}

fn is_users_own(path: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.is_some_and(|home| {
        let kube = home.join(".kube");
        path == kube.canonicalize().unwrap_or(kube).join("config")
    })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("evenkeel-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    fn rendered(server: &str) -> String {
        let made = Certificates::make(&[], jiff::Timestamp::UNIX_EPOCH).expect("certificates");
        render(server, &made, "token")
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it_and_an_old_one_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let directory = directory("kubeconfig");
        let path = directory.join("config");
        let (old, new) = (rendered("https://127.0.0.1:1"), rendered("https://127.0.0.1:2"));
        write(&path, &old).expect("written");
        write(&path, &new).expect("replaced");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), new);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 1, "no leftovers");
        std::fs::remove_dir_all(directory).expect("cleaned up");
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let directory = directory("foreign-kubeconfig");
        let path = directory.join("config");
        let ours = |name: &str| {
            format!("clusters: [{{name: {name}}}]\ncontexts: [{{name: evenkeel}}]\nusers: [{{name: evenkeel}}]\n")
        };
        let mixed = ours("evenkeel}, {name: production");
        let empty = "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n".to_owned();
        for foreign in ["notes\n".to_owned(), "a: {".to_owned(), ours("production"), mixed, empty] {
            std::fs::write(&path, &foreign).expect("written");
            let refused = write(&path, "new").expect_err("it is not ours");
            assert!(matches!(refused, Error::ForeignKubeconfig { foreign: Foreign::Unknown { .. } }), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).expect("readable"), foreign);
        }
        for replaceable in [String::new(), ours("evenkeel")] {
            std::fs::write(&path, replaceable).expect("written");
            write(&path, "new").expect("nothing is lost");
        }
        assert!(write(&directory, "new").is_err(), "a directory is no file");
        std::fs::remove_dir_all(directory).expect("cleaned up");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        assert!(write(Path::new("/nonexistent/evenkeel/config"), "x").is_err());
        assert!(write(Path::new("/"), "x").is_err());
    }

    #[test]
    fn the_users_own_kubeconfig_is_left_alone() {
        let home = PathBuf::from(std::env::var_os("HOME").expect("a home"));
        assert!(is_users_own(&home.join(".kube").join("config")));
        assert!(!is_users_own(&home.join("config")));
    }
}
