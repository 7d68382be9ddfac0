//! The container that Strimzi deploys as Cruise Control: where its files are, and what its scripts do there.
//!
//! Strimzi mounts settings that are not complete: where Kafka is, and with which certificates it is reached, is left to
//! the script that starts the server, which knows it from the environment. Everything is below one root, so that a folder
//! can stand for the container.

mod complete;
mod health;

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::files::{Files, Unusable};

use complete::Environment;
pub use complete::Incomplete;
pub use health::Ailing;

/// Where things are in the container.
const HOME: &str = "opt/cruise-control";
const SETTINGS: &str = "opt/cruise-control/custom-config/cruisecontrol.properties";
const PASSWORDS: &str = "opt/cruise-control/api-auth-config";
const CERTIFICATE: &str = "etc/cruise-control/cc-certs/cruise-control.crt";
const KEY: &str = "etc/cruise-control/cc-certs/cruise-control.key";
const AUTHORITIES: &str = "etc/cruise-control/cluster-ca-certs";

/// A container, seen from one of its scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    root: PathBuf,
}

/// What the scripts are for, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Starts the server.
    Run,
    /// Asks whether it serves.
    HealthCheck,
}

/// Why the container cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Not called by one of the scripts, or from elsewhere.
    #[error(
        "{} is none of Strimzi's scripts: those are /{HOME}/cruise_control_run.sh and \
         /{HOME}/cruise_control_healthcheck.sh",
        .0.display()
    )]
    NoScript(PathBuf),
    /// The environment is not as Strimzi makes it.
    #[error(transparent)]
    Environment(#[from] Incomplete),
    /// What Strimzi should have mounted cannot be read.
    #[error("could not read {}", path.display())]
    Read {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There are no certificates of authorities where they should be.
    #[error("{} holds no *.crt: nobody is trusted", .0.display())]
    NoAuthority(PathBuf),
    /// The folder for files that do not stay cannot be written to.
    #[error("could not write {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The settings, once complete, are wrong.
    #[error(transparent)]
    Settings(#[from] Unusable),
}

impl Container {
    /// By the path that a script was called by: `<root>/opt/cruise-control/<script>`.
    pub fn of(script: &Path) -> Result<(Container, Script), Unfit> {
        let none = || Unfit::NoScript(script.to_owned());
        let which = match script.file_name().and_then(|name| name.to_str()) {
            Some("cruise_control_run.sh") => Script::Run,
            Some("cruise_control_healthcheck.sh") => Script::HealthCheck,
            _ => return Err(none()),
        };
        let home = script.parent().filter(|home| home.ends_with(HOME)).ok_or_else(none)?;
        let root = home.ancestors().nth(Path::new(HOME).components().count()).ok_or_else(none)?;
        Ok((Container { root: root.to_owned() }, which))
    }

    /// Completes the settings, and reads them. What they name besides is written to the folder for files that do not stay:
    /// the key with its certificates, and all authorities.
    pub fn files(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Files, Unfit> {
        let environment = Environment::read(&variable)?;
        if environment.needs_identity() {
            let keystore = [self.read(CERTIFICATE)?, "\n".to_owned(), self.read(KEY)?].concat();
            self.write(complete::KEYSTORE, &keystore)?;
        }
        if environment.tls {
            self.write(complete::TRUSTSTORE, &self.authorities()?)?;
        }
        let settings = environment.complete(&self.read(SETTINGS)?);
        self.write(complete::SETTINGS, &settings)?;
        Ok(Files::read(&self.root, Path::new(complete::SETTINGS), variable)?)
    }

    /// All certificates of the authority, as while it is being renewed there are several.
    fn authorities(&self) -> Result<String, Unfit> {
        let folder = self.root.join(AUTHORITIES);
        let failed = |source| Unfit::Read { path: folder.clone(), source };
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "crt"));
        paths.sort();
        if paths.is_empty() {
            return Err(Unfit::NoAuthority(folder));
        }
        let texts: Result<Vec<String>, Unfit> = paths.into_iter().map(read).collect();
        Ok(texts?.join("\n"))
    }

    fn read(&self, path: &str) -> Result<String, Unfit> {
        read(self.root.join(path))
    }

    /// Anew each time: a container that starts again finds what the last one left.
    fn write(&self, path: &str, text: &str) -> Result<(), Unfit> {
        let path = self.root.join(path.trim_start_matches('/'));
        // The mode is one of new files: what is there may be for all to read, and is not written to.
        let written = match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::File::options().write(true).create_new(true).mode(0o600).open(&path),
        };
        written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| Unfit::Write { path, source })
    }
}

fn read(path: PathBuf) -> Result<String, Unfit> {
    fs::read_to_string(&path).map_err(|source| Unfit::Read { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_script_knows_its_container_by_where_it_is() {
        let (container, script) = Container::of(Path::new("/opt/cruise-control/cruise_control_run.sh")).unwrap();
        assert_eq!((container.root, script), (PathBuf::from("/"), Script::Run));
        let elsewhere = Path::new("/tmp/x/opt/cruise-control/cruise_control_healthcheck.sh");
        let (container, script) = Container::of(elsewhere).unwrap();
        assert_eq!((container.root, script), (PathBuf::from("/tmp/x"), Script::HealthCheck));
    }

    #[test]
    fn whatever_else_calls_is_told_who_may() {
        for path in ["/opt/cruise-control/run.sh", "/opt/kafka/cruise_control_run.sh", "cruise_control_run.sh"] {
            let refused = Container::of(Path::new(path)).unwrap_err().to_string();
            assert!(refused.contains("/opt/cruise-control/cruise_control_run.sh"), "{refused}");
        }
    }

    #[test]
    fn what_is_written_is_for_its_owner_alone_whatever_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (container, path) = (Container { root: folder.path().to_owned() }, folder.path().join("key.pem"));
        fs::write(&path, "for all to read, and longer than what takes its place").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        container.write("/key.pem", "hush").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "hush");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_mounted_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let container = Container { root: folder.path().to_owned() };
        let variable = |name: &str| (name == "STRIMZI_KAFKA_BOOTSTRAP_SERVERS").then(|| "a:9091".to_owned());
        let told = container.files(variable).unwrap_err().to_string();
        assert!(told.contains("etc/cruise-control/cc-certs/cruise-control.crt"), "{told}");
        let plain = |name: &str| (name == "STRIMZI_CC_TLS_ENABLED").then(|| "false".to_owned()).or(variable(name));
        let told = container.files(plain).unwrap_err().to_string();
        assert!(told.contains("cruisecontrol.properties"), "where nothing is encrypted no certificate is read: {told}");
        fs::create_dir_all(folder.path().join(AUTHORITIES)).unwrap();
        assert!(matches!(container.authorities(), Err(Unfit::NoAuthority(_))));
        fs::write(folder.path().join(AUTHORITIES).join("ca.password"), "hush").unwrap();
        fs::write(folder.path().join(AUTHORITIES).join("ca.crt"), "new").unwrap();
        fs::write(folder.path().join(AUTHORITIES).join("ca-2026-01-01T00-00-00Z.crt"), "old").unwrap();
        assert_eq!(container.authorities().unwrap(), "old\nnew");
    }
}
