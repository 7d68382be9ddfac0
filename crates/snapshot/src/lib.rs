//! Clusters as files, and clusters out of nothing.
//!
//! `docs/snapshot.md` describes the format: a line of text per record, canonical, and checked when it
//! is read, so that a file that was cut off or edited badly is refused with the line where it happened.
//! [`read`] and [`write()`] are its two sides; [`generate`] makes clusters to plan for from a handful of
//! parameters, always the same ones from the same parameters.

mod error;
pub mod generate;
mod read;
mod words;
mod write;

use std::collections::BTreeMap;

use evenkeel_balancer::cluster::Cluster;

pub use error::{Error, Place, Problem};
pub use read::{Progress, read, read_path};
pub use write::{write, write_file, write_path};

/// The first word of every snapshot.
const MAGIC: &str = "evenkeel-snapshot";
/// The version of the format, as the second word says it.
const VERSION: &str = "v1";
/// The keys of the header that say how many records there are; the topics are counted last.
const TOTALS: [&str; 6] = ["brokers", "disks", "partitions", "replicas", "moves", "topics"];
/// The path that stands for standard input or output.
const STANDARD_STREAM: &str = "-";

/// What a snapshot file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What the header says besides the totals: a name, where it came from.
    pub notes: BTreeMap<String, String>,
    /// The cluster with its loads.
    pub cluster: Cluster,
}

impl From<Cluster> for Snapshot {
    fn from(cluster: Cluster) -> Self {
        Snapshot { notes: BTreeMap::new(), cluster }
    }
}
