//! What the kubelet asks of whoever runs containers, and what it gets in return.
//!
//! The kubelet knows pods, and nothing of what is in them: it lays out files, resolves the environment, and hands over a
//! [`Launch`]. Whoever implements [`Programs`] starts something that behaves as the container would (a task, a child
//! process, a scripted one in tests) and returns a [`Process`]. Nothing else passes between the two.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use super::logs::Log;
use super::tree::Tree;
use crate::addresses::AddressTable;

/// One container that is to run, with everything resolved.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The pod as the API had it when the container was started.
    pub pod: Arc<Pod>,
    /// The container's name.
    pub container: String,
    /// Its image: what tells whoever runs it which program is meant.
    pub image: String,
    /// `command` and then `args`, with `$(NAME)` replaced.
    pub command: Vec<String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Absolute paths in the container to contents: ConfigMaps, Secrets, tokens, downward API, and what init containers
    /// wrote.
    pub files: Tree,
    /// The same files from now on: a changed ConfigMap or Secret reaches a container that runs.
    pub updates: watch::Receiver<Tree>,
    /// The real directory in which `files` are laid out (`<root>/<path in the container>`), when there is one.
    pub root: Option<PathBuf>,
    /// Volumes that hold data, by their absolute path in the container.
    pub volumes: BTreeMap<String, Volume>,
    /// Labels of the node that the pod was bound to.
    pub node_labels: BTreeMap<String, String>,
    /// How often the container has been restarted in this pod.
    pub restarts: u32,
    /// What the program prints goes here: a bounded ring behind `kubectl logs`.
    pub log: Log,
    /// Where names of Services and pods are found.
    pub addresses: AddressTable,
}

/// A volume that keeps data: a claim's, or one that lives as long as its pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The same for as long as the data is the same: by the claim's uid, or by the pod's uid and the volume's name.
    pub id: String,
    /// The size asked for, or the limit of an empty directory; nothing if there is none.
    pub capacity: Option<u64>,
    /// The data outlives the pod.
    pub persistent: bool,
    /// Where it is really, when there is a real directory.
    pub directory: Option<PathBuf>,
}

/// Runs containers.
pub trait Programs: Send + Sync + fmt::Debug {
    /// Starts one. The future ends when its ports are known; whether it is ready is said later, by the process. It may
    /// be dropped half way, and must leave nothing behind then.
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>>;

    /// The pod has ended with all its processes and is gone from the API, and its own volumes with it.
    fn forget(&self, _pod: &Pod) {}

    /// A claim is gone from the API, and its data with it. `volume` is the [`Volume::id`] that containers had it by.
    fn discard(&self, _volume: &str) {}
}

/// Something that runs. Dropping it ends it at once, whatever it does.
pub struct Process {
    /// Ports as the container knows them, to the real ones on 127.0.0.1. They stay as they are while it runs.
    pub ports: BTreeMap<u16, u16>,
    /// Whether it serves. A dropped sender means that it stays as it was.
    pub ready: watch::Receiver<bool>,
    /// Done when it has ended, for whatever reason.
    pub ended: BoxFuture<'static, Exit>,
    /// Asks it to end. May be called more often than once; must not block.
    pub stop: Box<dyn FnMut(Stop) + Send>,
}

impl fmt::Debug for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Process").field("ports", &self.ports).finish_non_exhaustive()
    }
}

/// How urgently a process is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// As `SIGTERM`: it may finish what it does. It has the pod's grace for that.
    Politely,
    /// As `SIGKILL`: the grace is over. The process is dropped soon after.
    Now,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// 0 if all went well; 137 for one that was killed.
    pub code: i32,
    /// For the container's status; empty if there is nothing to say.
    pub message: String,
}

impl Exit {
    /// The end of a process that was asked to end, or has done its work.
    pub fn success() -> Self {
        Self { code: 0, message: String::new() }
    }

    /// The end of one that could not go on.
    pub fn failure(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// The end of one that did not end by itself.
    pub fn killed() -> Self {
        Self { code: 137, message: String::new() }
    }
}

/// Why a container could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Nobody here knows how to run this image.
    #[error("nothing here can run the image `{0}`")]
    UnknownImage(String),
    /// It is no program that is run here; the line says which are.
    #[error("{0}")]
    NotHere(String),
    /// The program's configuration is missing something or is wrong.
    #[error("the container's configuration is not usable: {0}")]
    Configuration(String),
    /// It did not start.
    #[error("the program did not start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl LaunchError {
    /// The reason that the container's status shows, in kubelet's words.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownImage(_) | Self::NotHere(_) => "ErrImagePull",
            Self::Configuration(_) => "CreateContainerConfigError",
            Self::Start(_) => "RunContainerError",
        }
    }
}
