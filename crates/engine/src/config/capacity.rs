//! What brokers can carry, from the file that the original reads too.
//!
//! Everything in it may be written as text or as a number. An entry for broker -1 stands for all
//! that are not listed; what it says of them is an estimate.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What brokers can carry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capacities {
    /// Of those that are listed.
    pub listed: BTreeMap<i32, Capacity>,
    /// Of all others.
    pub default: Option<Capacity>,
}

/// What one broker can carry.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// MB, by log directory if it has several that matter.
    pub disk: Disk,
    /// Cores; percent of one core are a hundred times as many.
    pub cores: f64,
    /// KB per second in.
    pub network_in: f64,
    /// KB per second out.
    pub network_out: f64,
}

/// Room on disk, in MB.
#[derive(Debug, Clone, PartialEq)]
pub enum Disk {
    /// Of the broker as a whole.
    Whole(f64),
    /// Of each log directory.
    Dirs(BTreeMap<String, f64>),
}

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Not JSON, or not of this shape.
    #[error("the capacity file is not as it should be")]
    Shape(#[source] serde_json::Error),
    /// A broker twice.
    #[error("broker {0} is listed twice")]
    Twice(i32),
    /// A broker id that is none.
    #[error("`{0}` is no broker id")]
    Id(String),
    /// A number that cannot be.
    #[error("broker {broker}: {what} is `{value}`, it must be a positive number")]
    Number {
        /// Whose.
        broker: i32,
        /// Of what.
        what: String,
        /// As given.
        value: String,
    },
    /// A directory that is no absolute path.
    #[error("broker {broker}: log directory `{dir}` is not an absolute path")]
    Dir {
        /// Whose.
        broker: i32,
        /// Which.
        dir: String,
    },
    /// Cores here and percent there.
    #[error("Inconsistent num.cores config: either all brokers have it or none")]
    MixedCores,
    /// No directory at all.
    #[error("broker {0}: DISK names no log directory")]
    NoDirs(i32),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    broker_capacities: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    broker_id: Written,
    capacity: Written4,
}

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct Written4 {
    disk: WrittenDisk,
    cpu: WrittenCpu,
    nw_in: Written,
    nw_out: Written,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(serde_json::Number),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenDisk {
    Dirs(BTreeMap<String, Written>),
    Whole(Written),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenCpu {
    Cores {
        #[serde(rename = "num.cores")]
        cores: Written,
    },
    Percent(Written),
}

impl Written {
    fn text(&self) -> String {
        match self {
            Written::Text(text) => text.trim().to_owned(),
            Written::Number(number) => number.to_string(),
        }
    }

    fn positive(&self, broker: i32, what: &str) -> Result<f64, Unreadable> {
        let text = self.text();
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| Unreadable::Number { broker, what: what.to_owned(), value: text })
    }
}

impl Capacities {
    /// Reads the file.
    pub fn read(json: &str) -> Result<Capacities, Unreadable> {
        let file: File = serde_json::from_str(json).map_err(Unreadable::Shape)?;
        let with_cores =
            file.broker_capacities.iter().filter(|entry| matches!(entry.capacity.cpu, WrittenCpu::Cores { .. }));
        if ![0, file.broker_capacities.len()].contains(&with_cores.count()) {
            return Err(Unreadable::MixedCores);
        }
        let mut found = Capacities::default();
        for entry in file.broker_capacities {
            let id = entry.broker_id.text();
            let broker: i32 = id.parse().ok().filter(|id| *id >= -1).ok_or(Unreadable::Id(id))?;
            let capacity = capacity(broker, &entry.capacity)?;
            let before = match broker {
                -1 => found.default.replace(capacity),
                _ => found.listed.insert(broker, capacity),
            };
            if before.is_some() {
                return Err(Unreadable::Twice(broker));
            }
        }
        Ok(found)
    }

    /// What a broker can carry, and whether that is an estimate.
    pub fn of(&self, broker: i32) -> Option<(&Capacity, bool)> {
        let listed = self.listed.get(&broker).map(|capacity| (capacity, false));
        listed.or_else(|| self.default.as_ref().map(|capacity| (capacity, true)))
    }
}

fn capacity(broker: i32, written: &Written4) -> Result<Capacity, Unreadable> {
    let disk = match &written.disk {
        WrittenDisk::Whole(room) => Disk::Whole(room.positive(broker, "DISK")?),
        WrittenDisk::Dirs(dirs) if dirs.is_empty() => return Err(Unreadable::NoDirs(broker)),
        WrittenDisk::Dirs(dirs) => {
            let mut rooms = BTreeMap::new();
            for (dir, room) in dirs {
                if !dir.starts_with('/') {
                    return Err(Unreadable::Dir { broker, dir: dir.clone() });
                }
                rooms.insert(dir.clone(), room.positive(broker, &format!("DISK of `{dir}`"))?);
            }
            Disk::Dirs(rooms)
        }
    };
    let cores = match &written.cpu {
        WrittenCpu::Cores { cores } => cores.positive(broker, "num.cores")?,
        WrittenCpu::Percent(percent) => percent.positive(broker, "CPU")? / 100.0,
    };
    Ok(Capacity {
        disk,
        cores,
        network_in: written.nw_in.positive(broker, "NW_IN")?,
        network_out: written.nw_out.positive(broker, "NW_OUT")?,
    })
}

impl Disk {
    /// All of it.
    pub fn total(&self) -> f64 {
        match self {
            Disk::Whole(room) => *room,
            Disk::Dirs(dirs) => dirs.values().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"brokerCapacities":[
        {"brokerId":"-1","capacity":{"DISK":"100000","CPU":{"num.cores":"1.5"},"NW_IN":"10000","NW_OUT":"20000"},"doc":"all others"},
        {"brokerId":"0","capacity":{"DISK":{"/data/1":"250000","/data/2":250000},"CPU":{"num.cores":16},"NW_IN":"50000","NW_OUT":"50000"}}]}"#;

    #[test]
    fn listed_brokers_have_their_own_and_others_the_estimate() {
        let capacities = Capacities::read(FILE).unwrap();
        let (own, estimated) = capacities.of(0).unwrap();
        assert_eq!((own.disk.total(), own.cores, own.network_in, estimated), (500_000.0, 16.0, 50_000.0, false));
        let (other, estimated) = capacities.of(7).unwrap();
        assert_eq!((&other.disk, other.cores, other.network_out, estimated), (&Disk::Whole(1e5), 1.5, 2e4, true));
    }

    #[test]
    fn percent_of_one_core_are_cores_too_but_not_both() {
        let percent =
            r#"{"brokerCapacities":[{"brokerId":3,"capacity":{"DISK":"1","CPU":"100","NW_IN":"1","NW_OUT":"1"}}]}"#;
        let capacities = Capacities::read(percent).unwrap();
        assert_eq!(capacities.of(3).unwrap().0.cores, 1.0);
        assert_eq!(capacities.of(4), None);
        let mixed = FILE.replace(r#"{"num.cores":16}"#, "\"100\"");
        assert!(matches!(Capacities::read(&mixed), Err(Unreadable::MixedCores)));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let said = |from: &str, to: &str| Capacities::read(&FILE.replace(from, to)).unwrap_err().to_string();
        assert_eq!(said("\"20000\"", "\"-1\""), "broker -1: NW_OUT is `-1`, it must be a positive number");
        assert_eq!(said("\"100000\"", "\"lots\""), "broker -1: DISK is `lots`, it must be a positive number");
        assert_eq!(said("/data/2", "data/2"), "broker 0: log directory `data/2` is not an absolute path");
        assert_eq!(said("\"brokerId\":\"0\"", "\"brokerId\":\"-1\""), "broker -1 is listed twice");
        assert_eq!(said("\"brokerId\":\"0\"", "\"brokerId\":\"x\""), "`x` is no broker id");
        assert_eq!(said("brokerCapacities", "capacities"), "the capacity file is not as it should be");
    }
}
