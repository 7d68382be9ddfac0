//! What can go wrong with a snapshot, said in one line that begins with the place.

use std::fmt;
use std::io;

use evenkeel_balancer::cluster::Invalid;

/// Where in a file something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or `-` for standard input.
    pub file: String,
    /// Counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An operation of this crate that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened.
    #[error("{file}: could not be opened")]
    Open {
        /// Its path.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed in the middle of reading.
    #[error("{place}: could not be read")]
    Read {
        /// How far it came.
        place: Place,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read, but does not describe a cluster.
    #[error("{place}: {problem}")]
    Parse {
        /// The line that is wrong.
        place: Place,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The file could not be made or written.
    #[error("{file}: could not be written")]
    Write {
        /// Its path.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// No cluster can be generated from these parameters.
    #[error("cannot generate such a cluster: {problem}")]
    Generate {
        /// Which parameters contradict each other.
        problem: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::Open { .. } => "check the path and its permissions",
            Error::Read { .. } => "check the medium the file is on",
            Error::Write { .. } => "check the path, its permissions and the room that is left",
            Error::Generate { .. } => "change one of the parameters named",
            Error::Parse { problem, .. } => problem.remedy(),
        }
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The first line is something else.
    #[error("not a snapshot: the first line begins with {0}, not with `evenkeel-snapshot`")]
    NotASnapshot(Quoted),
    /// A snapshot, but of a format that this program does not know.
    #[error("version {0} of the format is not known; this program reads v1")]
    Version(Quoted),
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// The last line has no end, or the compressed data have none.
    #[error("the file ends in the middle: it was cut off")]
    CutOff,
    /// The compressed data are damaged.
    #[error("the compressed data are damaged: {0}")]
    Damaged(String),
    /// Bytes that are no text.
    #[error("not UTF-8 from byte {0} of the line on")]
    NotText(usize),
    /// A line that nobody writes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// A record of an unknown kind.
    #[error("{0} is no kind of record; there are unknown, broker, disk, p and move")]
    Kind(Quoted),
    /// A record where its kind may not stand.
    #[error("{kind} after {after}: the order is brokers and disks, then partitions, then moves")]
    Order {
        /// The kind of the record.
        kind: &'static str,
        /// What already came.
        after: &'static str,
    },
    /// Too few or too many fields.
    #[error("{kind} has {found} fields, it needs {wanted}")]
    Fields {
        /// The kind of the record.
        kind: &'static str,
        /// How many there are after the kind.
        found: usize,
        /// How many there should be.
        wanted: String,
    },
    /// A field that does not say what it should.
    #[error("{field} is {found}, it must be {wanted}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What it says.
        found: Quoted,
        /// What it could say.
        wanted: &'static str,
    },
    /// A header entry that stands there twice.
    #[error("the header says {0} twice")]
    HeaderTwice(Quoted),
    /// The header does not announce what has to be counted to notice that the file was cut off.
    #[error("the header does not say how many {0} there are, as in {0}=3")]
    NotAnnounced(&'static str),
    /// The header announced another number of records than there were.
    #[error("the header announces {announced} {what}, there are {found}: the file was cut off or edited")]
    Total {
        /// Of what.
        what: &'static str,
        /// What the header says.
        announced: u64,
        /// What there was.
        found: u64,
    },
    /// A disk or a move of a broker that no line above told of.
    #[error("broker {0} is not listed above")]
    UnknownBroker(i32),
    /// What the records say cannot be a cluster.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Problem {
    fn remedy(&self) -> &'static str {
        match self {
            Problem::NotASnapshot(_) | Problem::Empty => "name a file that `evenkeel` or its documentation wrote",
            Problem::Version(_) => "use the version of evenkeel that wrote the file, or a newer one",
            Problem::CutOff | Problem::Damaged(_) | Problem::Total { .. } => "copy or make the file again",
            Problem::Invalid(_) => "correct the line, or make the snapshot again",
            _ => "correct the line; docs/snapshot.md describes the format",
        }
    }
}

/// A piece of a file, fit to be shown: short, on one line, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    const LONGEST: usize = 40;

    pub(crate) fn new(text: &str) -> Quoted {
        let mut shown = String::from("`");
        let mut rest = text.chars();
        shown.extend(rest.by_ref().take(Self::LONGEST).flat_map(char::escape_debug));
        shown.push_str(if rest.next().is_some() { "…`" } else { "`" });
        Quoted(shown)
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
