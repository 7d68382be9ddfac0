//! The kubeconfig: what a client needs to find the server, trust it, and be trusted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use super::certificates::Certificates;
use crate::http::moment::random;

/// Name of cluster, user and context.
const NAME: &str = "evenkeel";

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

/// Writes a file that only its owner may read, whole or not at all.
///
/// The user's own `~/.kube/config` is refused: it holds the way into real clusters.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    if is_users_own(&directory.canonicalize()?.join(name)) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "that is your own kubeconfig, name another file"));
    }
    let mut suffix = [0; 8];
    random(&mut suffix);
    let temporary = directory.join(format!(".kubeconfig-{:016x}", u64::from_le_bytes(suffix)));
    let written = write_new(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    written
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

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it_and_an_old_one_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let directory = directory("kubeconfig");
        let path = directory.join("config");
        write(&path, "old").expect("written");
        write(&path, "new").expect("replaced");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "new");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 1, "no leftovers");
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
