//! The kinds of values: how each is read, what is said when it cannot be, how it is written.
//!
//! The texts are the original's, which are often those of Java's own parsers: clients and their users know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::str::FromStr;

use uuid::Uuid;

use super::choices::{AdjusterType, AnomalyType, DataFrom, Resource, Substate, TaskStatus};
use super::pattern::TopicPattern;
use super::{Kind, Unfit};
use crate::endpoint::Endpoint;
use crate::json::java_double;

/// Log directories by broker.
pub type LogDirs = BTreeMap<i32, BTreeSet<String>>;

/// Declares a kind: its name, its value, how it is read and how it is written.
macro_rules! kind {
    ($kind:ident, $name:literal, $value:ty, $parse:expr, $write:expr) => {
        #[doc = concat!("A kind of values: ", $name, ".")]
        #[derive(Debug)]
        pub struct $kind;

        impl Kind for $kind {
            type Value = $value;
            const NAME: &'static str = $name;

            fn parse(text: &str) -> Result<$value, Unfit> {
                ($parse)(text)
            }

            fn write(value: &$value) -> String {
                ($write)(value)
            }
        }
    };
}

kind!(Flag, "flag", bool, |text: &str| Ok(text.eq_ignore_ascii_case("true")), bool::to_string);
kind!(Text, "text", String, |text: &str| Ok(text.to_owned()), String::clone);
kind!(Names, "list of names", Vec<String>, |text| Ok(owned(items(text))), |names: &Vec<String>| names.join(","));
kind!(BrokerIds, "list of broker ids", BTreeSet<i32>, |text| items(text).map(number).collect(), joined);
kind!(LogDirsOfBrokers, "list of `broker-/log/dir`", LogDirs, parse_log_dirs, write_log_dirs);
kind!(Pattern, "regular expression", TopicPattern, TopicPattern::new, |it: &TopicPattern| it.as_str().to_owned());
kind!(Millis, "milliseconds", i64, number, i64::to_string);
kind!(Time, "`NOW` or milliseconds", TimeOrNow, parse_time, TimeOrNow::to_string);
kind!(Partitions, "partition or `first-last`", PartitionRange, parse_partitions, PartitionRange::to_string);
kind!(Ratio, "number from 0 to 1", f64, parse_ratio, |ratio: &f64| java_double(*ratio));
kind!(ReviewId, "number", i32, number, i32::to_string);
kind!(Megabytes, "MB", u64, |text| at_least(0, text, "The data to move must not be negative"), u64::to_string);
kind!(
    Throttle,
    "bytes per second",
    u64,
    |text| at_least(0, text, "Requested rebalance throttle must be non-negative"),
    u64::to_string
);
kind!(
    Concurrency,
    "number, at least 1",
    u32,
    |text| at_least(1, text, "The requested movement concurrency must be positive").and_then(|n| in_int(n, text)),
    u32::to_string
);
kind!(
    Entries,
    "number, at least 1",
    u32,
    |text| at_least(1, text, "The requested entries must be positive").and_then(|n| in_int(n, text)),
    u32::to_string
);
kind!(Sources, "`VALID_WINDOWS` or `VALID_PARTITIONS`", DataFrom, parse_source, DataFrom::to_string);
kind!(ResourceName, "`CPU`, `DISK`, `NW_IN` or `NW_OUT`", Resource, parse_resource, |it: &Resource| {
    it.name().to_ascii_lowercase()
});
kind!(Substates, "list of substates", BTreeSet<Substate>, parse_substates, |them: &BTreeSet<Substate>| {
    joined(them).to_ascii_lowercase()
});
kind!(Anomalies, "list of anomaly types", BTreeSet<AnomalyType>, parse_anomalies, joined);
kind!(Adjusters, "list of concurrency types", BTreeSet<AdjusterType>, parse_adjusters, joined);
kind!(TaskIds, "list of task ids", BTreeSet<Uuid>, |text| items(text).map(parse_task_id).collect(), joined);
// The original ignores endpoints and statuses that it does not know.
kind!(
    Endpoints,
    "list of endpoints",
    BTreeSet<Endpoint>,
    |text| Ok(items(text).filter_map(Endpoint::named).collect()),
    joined
);
kind!(
    TaskStatuses,
    "list of `Active`, `InExecution`, `Completed`, `CompletedWithError`",
    BTreeSet<TaskStatus>,
    |text| Ok(items(text).filter_map(TaskStatus::named).collect()),
    joined
);

/// A moment, or the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOrNow {
    /// The present moment.
    Now,
    /// Milliseconds since 1970.
    At(i64),
}

impl fmt::Display for TimeOrNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("NOW"),
            Self::At(ms) => write!(f, "{ms}"),
        }
    }
}

/// Partitions of a topic by number, both ends included. A range with nothing in it is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRange {
    /// The first one.
    pub first: i32,
    /// The last one.
    pub last: i32,
}

impl PartitionRange {
    /// Whether a partition is in it.
    pub fn contains(&self, partition: i32) -> bool {
        (self.first..=self.last).contains(&partition)
    }
}

impl fmt::Display for PartitionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// The parts of a list. Empty ones do not count: the original stumbles over them, and nobody means anything by them.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn owned<'t>(items: impl Iterator<Item = &'t str>) -> Vec<String> {
    items.map(str::to_owned).collect()
}

fn joined<T: Display>(values: &BTreeSet<T>) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn not_a_number(text: &str) -> Unfit {
    Unfit(format!("For input string: \"{text}\""))
}

fn number<N: FromStr>(text: &str) -> Result<N, Unfit> {
    text.parse().map_err(|_| not_a_number(text))
}

/// A number that is not less than `least`; what is said of one that is, goes before the number.
fn at_least(least: i64, text: &str, complaint: &str) -> Result<u64, Unfit> {
    let value: i64 = number(text)?;
    if value < least {
        return Err(Unfit(format!("{complaint} (Requested: {value}).")));
    }
    u64::try_from(value).map_err(|_| not_a_number(text))
}

/// Java's `int` holds less than what was read.
fn in_int(value: u64, text: &str) -> Result<u32, Unfit> {
    i32::try_from(value).ok().and_then(|value| u32::try_from(value).ok()).ok_or_else(|| not_a_number(text))
}

fn parse_ratio(text: &str) -> Result<f64, Unfit> {
    let ratio: f64 = number(text)?;
    if (0.0..=1.0).contains(&ratio) {
        return Ok(ratio);
    }
    let requested = java_double(ratio);
    Err(Unfit(format!("The requested minimum partition ratio must be in range [0.0, 1.0] (Requested: {requested}).")))
}

fn parse_time(text: &str) -> Result<TimeOrNow, Unfit> {
    if text.eq_ignore_ascii_case("now") { Ok(TimeOrNow::Now) } else { number(text).map(TimeOrNow::At) }
}

fn parse_partitions(text: &str) -> Result<PartitionRange, Unfit> {
    match text.split_once('-') {
        Some((first, last)) => Ok(PartitionRange { first: number(first)?, last: number(last)? }),
        None => number(text).map(|only| PartitionRange { first: only, last: only }),
    }
}

/// `broker-/log/dir`, cut at the first dash.
fn parse_log_dirs(text: &str) -> Result<LogDirs, Unfit> {
    let mut dirs = LogDirs::new();
    for item in items(text) {
        // What Java says when a text without a dash is cut at its dash.
        let cut = || Unfit(format!("begin 0, end -1, length {}", item.encode_utf16().count()));
        let (broker, dir) = item.split_once('-').ok_or_else(cut)?;
        dirs.entry(number(broker)?).or_default().insert(dir.to_owned());
    }
    Ok(dirs)
}

fn write_log_dirs(dirs: &LogDirs) -> String {
    let pairs = dirs.iter().flat_map(|(broker, dirs)| dirs.iter().map(move |dir| format!("{broker}-{dir}")));
    pairs.collect::<Vec<_>>().join(",")
}

fn parse_source(text: &str) -> Result<DataFrom, Unfit> {
    let class = "com.linkedin.kafka.cruisecontrol.servlet.parameters.ParameterUtils.DataFrom";
    DataFrom::named(text).ok_or_else(|| Unfit(format!("No enum constant {class}.{}", text.to_uppercase())))
}

fn parse_resource(text: &str) -> Result<Resource, Unfit> {
    let complaint = || {
        Unfit(format!(
            "Invalid resource type {text}. The resource type must be one of the following: CPU, DISK, NW_IN, NW_OUT"
        ))
    };
    Resource::named(text).ok_or_else(complaint)
}

fn parse_substates(text: &str) -> Result<BTreeSet<Substate>, Unfit> {
    all_named(text, "substates", Substate::named, Substate::ALL)
}

fn parse_anomalies(text: &str) -> Result<BTreeSet<AnomalyType>, Unfit> {
    all_named(text, "anomaly types", AnomalyType::named, AnomalyType::ALL)
}

fn parse_adjusters(text: &str) -> Result<BTreeSet<AdjusterType>, Unfit> {
    all_named(text, "concurrency types", AdjusterType::named, AdjusterType::ALL)
}

/// A list of which each item must be one of a few names; the complaint names the whole list.
fn all_named<T: Copy + Ord + Display>(
    text: &str,
    what: &str,
    named: impl Fn(&str) -> Option<T>,
    all: &[T],
) -> Result<BTreeSet<T>, Unfit> {
    let found: Option<BTreeSet<T>> = items(text).map(named).collect();
    found.ok_or_else(|| {
        let given = items(text).collect::<Vec<_>>().join(", ");
        let supported = all.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
        Unfit(format!("Unsupported {what} in [{given}]. Supported: [{supported}]"))
    })
}

/// Only the form with four dashes: that is how ids are handed out.
fn parse_task_id(text: &str) -> Result<Uuid, Unfit> {
    let id = (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten();
    id.ok_or_else(|| Unfit(format!("Invalid UUID string: {text}")))
}
