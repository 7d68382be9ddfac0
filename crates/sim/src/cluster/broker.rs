//! One simulated broker: its directories, links, registration, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};

use super::quota::Windows;
use super::report::Reporter;
use crate::ids::{BrokerId, Millis, TopicPartition};

/// What a broker is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerSpec {
    /// Its node id.
    pub id: BrokerId,
    /// Its rack, if it has one.
    pub rack: Option<String>,
    /// Its log directories.
    pub dirs: Vec<DirSpec>,
    /// Bytes per second its link carries, each way.
    pub link_bytes: f64,
    /// Cores, for the CPU it reports.
    pub cores: f64,
    /// What else its file says: all of it is shown, what is simulated is heeded.
    pub file: BTreeMap<String, String>,
    /// Its metrics reporter, if not the one that all brokers have.
    pub reporter: Option<Reporter>,
}

impl BrokerSpec {
    /// A broker with one directory of a terabyte, a link of 1 Gbit/s, and eight cores.
    pub fn new(id: i32) -> Self {
        Self {
            id: BrokerId(id),
            rack: None,
            dirs: vec![DirSpec::new("/data/d0")],
            link_bytes: 125e6,
            cores: 8.0,
            file: BTreeMap::new(),
            reporter: None,
        }
    }

    /// The same in a rack.
    pub fn in_rack(mut self, rack: &str) -> Self {
        self.rack = Some(rack.to_owned());
        self
    }

    /// The same with these directories.
    pub fn with_dirs<'a>(mut self, paths: impl IntoIterator<Item = &'a str>) -> Self {
        self.dirs = paths.into_iter().map(DirSpec::new).collect();
        self
    }
}

/// What a log directory is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct DirSpec {
    /// Its absolute path.
    pub path: String,
    /// Bytes it holds.
    pub capacity: u64,
    /// Bytes per second it reads or writes.
    pub disk_bytes: f64,
}

impl DirSpec {
    /// A terabyte at 200 MB/s.
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), capacity: 1_000_000_000_000, disk_bytes: 200e6 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LogDir {
    pub(crate) spec: DirSpec,
    pub(crate) failed: bool,
    pub(crate) cordoned: bool,
    /// The broker's file does not name it any more; what was in it cannot be reached.
    pub(crate) retired: bool,
    /// What is left of the disk's speed.
    pub(crate) pace: f64,
    /// Logs in it, future ones included: a new one goes where there are fewest.
    pub(crate) logs: usize,
}

/// How a broker's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    Running,
    /// Running, and nobody can reach it.
    Isolated,
    Down,
}

#[derive(Clone, Debug)]
pub(crate) struct Broker {
    pub(crate) spec: BrokerSpec,
    pub(crate) dirs: Vec<LogDir>,
    pub(crate) process: Process,
    /// When it was last heard of, if it has been silent since.
    pub(crate) silent_since: Option<Millis>,
    pub(crate) registered: bool,
    pub(crate) fenced: bool,
    pub(crate) epoch: i64,
    pub(crate) stopped_cleanly: bool,
    /// Started again while the session of its last life is not over: the controller lets nobody register twice.
    pub(crate) waits_to_register: bool,
    /// What is left of the link's speed.
    pub(crate) pace: f64,
    /// Dynamic settings.
    pub(crate) configs: BTreeMap<String, String>,
    /// Directories asked for before the replica was there.
    pub(crate) remembered: BTreeMap<TopicPartition, usize>,
    /// Replicas here that are behind their leaders.
    pub(crate) behind: BTreeSet<TopicPartition>,
    /// Replicas here on their way to another directory.
    pub(crate) dir_moves: BTreeSet<TopicPartition>,
    /// How often one of them set out.
    pub(crate) dir_moves_begun: u64,
    pub(crate) leader_traffic: Windows,
    pub(crate) follower_traffic: Windows,
    pub(crate) dir_traffic: Windows,
    /// Metadata stands still since the first, until the second.
    pub(crate) stale: Option<(Millis, Millis)>,
    /// When it was fenced or unfenced, and what it was before: for brokers that do not know yet.
    pub(crate) past: Vec<(Millis, Standing)>,
}

/// What the cluster is told of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) registered: bool,
    pub(crate) fenced: bool,
}

impl Broker {
    pub(crate) fn new(spec: BrokerSpec) -> Self {
        let dirs = spec.dirs.iter().map(LogDir::new).collect();
        Self {
            spec,
            dirs,
            process: Process::Down,
            silent_since: None,
            registered: false,
            fenced: true,
            epoch: -1,
            stopped_cleanly: true,
            waits_to_register: false,
            pace: 1.0,
            configs: BTreeMap::new(),
            remembered: BTreeMap::new(),
            behind: BTreeSet::new(),
            dir_moves: BTreeSet::new(),
            dir_moves_begun: 0,
            leader_traffic: Windows::default(),
            follower_traffic: Windows::default(),
            dir_traffic: Windows::default(),
            stale: None,
            past: Vec::new(),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process == Process::Running
    }

    /// Whether the controller lets it lead and follow.
    pub(crate) fn is_active(&self) -> bool {
        self.registered && !self.fenced
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing { registered: self.registered, fenced: self.fenced }
    }

    pub(crate) fn dir_at(&self, path: &str) -> Option<usize> {
        self.dirs.iter().position(|dir| dir.spec.path == path)
    }

    /// Where a new replica goes: the remembered choice, else the directory with the fewest logs
    /// that is not cordoned. A broker that is cordoned as a whole still takes what it is told to.
    pub(crate) fn dir_for(&mut self, tp: &TopicPartition) -> usize {
        let remembered = self.remembered.remove(tp).filter(|dir| !self.dirs[*dir].failed);
        let fewest = |cordoned: bool| {
            let usable = self.dirs.iter().enumerate().filter(|(_, dir)| !dir.failed && (cordoned || !dir.cordoned));
            usable.min_by_key(|(n, dir)| (dir.logs, *n)).map(|(n, _)| n)
        };
        remembered.or_else(|| fewest(false)).or_else(|| fewest(true)).unwrap_or(0)
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.configs.get(key).and_then(|value| value.parse().ok())
    }
}

impl LogDir {
    pub(super) fn new(spec: &DirSpec) -> Self {
        Self { spec: spec.clone(), failed: false, cordoned: false, retired: false, pace: 1.0, logs: 0 }
    }
}
