//! What nodes are started from; `xtask` makes it and says what is in it.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// The environment variable with the folder of the kit.
pub const KIT: &str = "EVENKEEL_KAFKA_KIT";

/// Ends the JVM when our standard input is closed, which is when the harness that holds its other end is gone, however
/// it went. A JVM does not look at its standard input, so a watcher beside it does: it knows the JVM by the id of the
/// shell, which becomes the JVM.
const DIE_WITH_THE_HARNESS: &str = r#"
exec 3<&0 </dev/null
(cat <&3; kill -KILL $$) >/dev/null 2>&1 &
exec "$@" 3<&-
"#;

/// A folder with the libraries of Apache Kafka and all else that a start needs.
#[derive(Debug, Clone)]
pub struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// The kit that `cargo xtask real kafka` made.
    ///
    /// # Errors
    ///
    /// When [`KIT`] is not set.
    pub fn from_env() -> Result<Self> {
        let folder = env::var_os(KIT).with_context(|| format!("{KIT} is not set; `cargo xtask real kafka` sets it"))?;
        Ok(Self { folder: folder.into() })
    }

    /// Where Kafka's libraries are.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("libs")
    }

    /// What `java` is told before the class: the class path, a small heap, and the archive of classes.
    pub fn java_options(&self) -> [OsString; 2] {
        let mut options = OsString::from("@");
        options.push(self.folder.join("java.options"));
        let mut archive = OsString::from("-XX:SharedArchiveFile=");
        archive.push(self.folder.join("classes.jsa"));
        [options, archive]
    }

    /// A node with these properties, that dies with us.
    pub(super) fn command(&self, properties: &Path) -> Command {
        let mut command = mortal("java");
        command.args(self.java_options()).arg("kafka.Kafka").arg(properties);
        command
    }

    /// The first records of a cluster, for the folder of its controller.
    pub(super) fn bootstrap_checkpoint(&self) -> PathBuf {
        self.folder.join("bootstrap.checkpoint")
    }

    /// The users those records tell of, with their passwords.
    pub(super) fn users(&self) -> Result<BTreeMap<String, String>> {
        let users = fs::read(self.folder.join("users.json")).context("could not read the users of the kit")?;
        serde_json::from_slice(&users).context("the users of the kit are not names with passwords")
    }
}

/// A program that dies when its standard input is closed; it takes arguments as ever.
pub fn mortal(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", DIE_WITH_THE_HARNESS, "node", program]);
    command
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Stdio};

    use super::*;

    #[test]
    fn a_node_dies_when_its_harness_is_gone() {
        let mut child = mortal("sleep").arg("600").stdin(Stdio::piped()).spawn().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        // Closes the pipe, as the end of this process would, and then waits.
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn a_node_that_ends_by_itself_is_seen_to_end() {
        let mut child = mortal("sh").args(["-c", "exit 7"]).stdin(Stdio::piped()).spawn().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::yield_now();
        };
        assert_eq!(status.code(), Some(7));
    }
}
