//! What the program refuses because of how it was started: one line that says what to do instead, and exit code 2.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenkeel_apiserver::http::NoVersion;
use evenkeel_apiserver::serve::Foreign;

/// Asked for something that is not done. Trying again changes nothing; asking differently does.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    /// Nobody said that others may come in.
    #[error(
        "--listen {address} is reachable from other machines; add --allow-remote if that is wanted, or listen on \
         127.0.0.1:{}",
        address.port()
    )]
    Remote {
        /// What was asked for.
        address: SocketAddr,
    },
    /// No certificate could be good for it.
    #[error("--name {name:?} is neither a host's name nor an address; write one such as laptop.local or 192.0.2.7")]
    Name {
        /// What was asked for.
        name: String,
    },
    /// Two of us would overwrite each other's files.
    #[error("{} is in use by {}; stop it or name another --dir", dir.display(), holder(*.pid))]
    DirectoryInUse {
        /// The directory.
        dir: PathBuf,
        /// Who has it, if it has said so already.
        pid: Option<u32>,
    },
    /// The file is somebody else's.
    #[error("{foreign}; name another with --kubeconfig")]
    Kubeconfig {
        /// Which file, and what it is instead.
        foreign: Foreign,
    },
    /// Clients would choke on it.
    #[error("--kubernetes-version {asked}: {why}")]
    Version {
        /// What was asked for.
        asked: String,
        /// What is wrong with it.
        why: NoVersion,
    },
    /// A running cluster cannot be reached, or recorded, like that.
    #[error("{what}")]
    Recording {
        /// Which file or which settings are wrong, and how.
        what: String,
    },
    /// No such cluster can be drawn.
    #[error(transparent)]
    Generation(evenkeel_snapshot::Error),
    /// The engine's files are not as they should be.
    #[error("{what}")]
    Configuration {
        /// In which file, and what.
        what: String,
    },
    /// Nothing can be installed like that.
    #[error("{what}")]
    Installation {
        /// Which option is wrong, and how.
        what: String,
    },
    /// No such local run.
    #[error("{what}")]
    Local {
        /// Which option is wrong, and how.
        what: String,
    },
    /// No such thing to look at.
    #[error("{what}")]
    Status {
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// No such cluster can be simulated.
    #[error("{what}")]
    Simulation {
        /// Which options do not go together, or what is wrong with one.
        what: String,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another evenkeel".to_owned(), |pid| format!("another evenkeel, process {pid}"))
}
