//! The lines after the first: what each says, and in which order their kinds come.

use std::collections::BTreeMap;

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskSpec, DiskState, Invalid, PendingMove, Resource,
};

use super::Flaw;
use super::partition::{Partition, PartitionParser};
use crate::Problem;
use crate::error::Quoted;
use crate::words::{Words, decode};

/// Which kinds of records may still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Section {
    #[default]
    Brokers,
    Partitions,
    Moves,
}

/// A broker until all its disks are known.
struct Draft {
    line: u64,
    spec: BrokerSpec,
    disk_lines: Vec<u64>,
}

/// Takes records one by one and makes a cluster of them.
#[derive(Default)]
pub(super) struct Records {
    section: Section,
    drafts: BTreeMap<BrokerId, Draft>,
    rack_of_host: BTreeMap<String, String>,
    builder: ClusterBuilder,
    partitions: PartitionParser,
    /// Partitions follow each other without a gap, so the first one's line tells all of theirs.
    first_partition: u64,
    partition_count: u64,
    replica_count: u64,
    moves: Vec<(u64, PendingMove)>,
}

impl Records {
    /// Takes the record that `line` holds.
    pub(super) fn take(&mut self, number: u64, line: &str) -> Result<(), Flaw> {
        let mut words = Words::of(line);
        let kind = words.next().unwrap_or_default();
        if kind == "p" && self.section == Section::Brokers {
            self.hand_over_brokers()?;
            self.first_partition = number;
        }
        let taken = match kind {
            "p" => self.partition(words),
            "broker" => self.broker(number, words),
            "disk" => self.disk(number, words),
            "unknown" => self.unknown(words),
            "move" => self.pending(number, words),
            other => Err(Problem::Kind(Quoted::new(other))),
        };
        taken.map_err(|problem| Flaw { line: number, problem })
    }

    /// How many brokers, disks, partitions, replicas and moves there were.
    pub(super) fn totals(&self) -> [u64; 5] {
        let disks = self.drafts.values().map(|draft| draft.spec.disks.len() as u64).sum();
        [self.drafts.len() as u64, disks, self.partition_count, self.replica_count, self.moves.len() as u64]
    }

    /// Makes the cluster; `last` is the number of the last line.
    pub(super) fn finish(mut self, last: u64) -> Result<Cluster, Flaw> {
        if self.first_partition == 0 {
            self.hand_over_brokers()?;
        }
        for (_, pending) in &self.moves {
            self.builder.pending(pending.clone());
        }
        self.builder.build().map_err(|invalid| {
            let line = match &invalid {
                Invalid::PartitionTwice { record, .. } => self.first_partition + *record as u64,
                Invalid::Partition { topic, partition, .. } => self
                    .moves
                    .iter()
                    .find(|(_, pending)| pending.topic == *topic && pending.partition == *partition)
                    .map_or(last, |(line, _)| *line),
                _ => last,
            };
            Flaw { line, problem: invalid.into() }
        })
    }

    fn enter(&mut self, section: Section, kind: &'static str) -> Result<(), Problem> {
        if section < self.section {
            let after = if self.section == Section::Moves { "moves" } else { "partitions" };
            return Err(Problem::Order { kind, after });
        }
        self.section = section;
        Ok(())
    }

    fn unknown(&mut self, words: Words<'_>) -> Result<(), Problem> {
        self.enter(Section::Brokers, "unknown")?;
        let mut found = 0;
        for word in words {
            found += 1;
            let resource = Resource::ALL.into_iter().find(|resource| resource.name() == word);
            self.builder.unknown(resource.ok_or_else(|| Problem::Field {
                field: "the resource",
                found: Quoted::new(word),
                wanted: "cpu, networkInbound, networkOutbound or disk",
            })?);
        }
        if found == 0 {
            return Err(Problem::Fields { kind: "unknown", found, wanted: "1 to 4".into() });
        }
        Ok(())
    }

    fn broker(&mut self, line: u64, words: Words<'_>) -> Result<(), Problem> {
        self.enter(Section::Brokers, "broker")?;
        let [id, rack, host, state, cpu, nw_in, nw_out, disk] = exactly("broker", words)?;
        let id = broker_id(id)?;
        let (rack, host) = (name("the rack", rack)?, name("the host", host)?);
        let state = broker_state(state)?;
        let mut capacity = [0.0; Resource::COUNT];
        for (value, word) in capacity.iter_mut().zip([cpu, nw_in, nw_out, disk]) {
            // Nobody knows what a broker that is gone could carry: -1 says so, and counts as nothing.
            *value = match number("a capacity", word)? {
                -1.0 | 0.0 if state == BrokerState::Dead => 0.0,
                value => value,
            };
        }
        if self.drafts.contains_key(&id) {
            return Err(Invalid::BrokerTwice(id).into());
        }
        self.check_rack(&rack, &host)?;
        let spec = BrokerSpec { id, rack, host, state, capacity, disks: Vec::new() };
        self.drafts.insert(id, Draft { line, spec, disk_lines: Vec::new() });
        Ok(())
    }

    /// The builder would find it too, but only at the end, where the line is forgotten.
    fn check_rack(&mut self, rack: &str, host: &str) -> Result<(), Problem> {
        let rack = if rack.is_empty() { host } else { rack };
        let known = self.rack_of_host.entry(host.to_owned()).or_insert_with(|| rack.to_owned());
        if known == rack {
            return Ok(());
        }
        let (one, other) = (known.clone(), rack.to_owned());
        Err(Invalid::HostInTwoRacks { host: host.to_owned(), one, other }.into())
    }

    fn disk(&mut self, line: u64, words: Words<'_>) -> Result<(), Problem> {
        self.enter(Section::Brokers, "disk")?;
        let [id, directory, state, capacity] = exactly("disk", words)?;
        let id = broker_id(id)?;
        let disk = DiskSpec {
            name: name("the directory", directory)?,
            state: disk_state(state)?,
            capacity: number("a capacity", capacity)?,
        };
        let draft = self.drafts.get_mut(&id).ok_or(Problem::UnknownBroker(id.0))?;
        draft.spec.disks.push(disk);
        draft.disk_lines.push(line);
        Ok(())
    }

    fn hand_over_brokers(&mut self) -> Result<(), Flaw> {
        for draft in self.drafts.values() {
            let mut spec = draft.spec.clone();
            // Replicas name disks by their places among the names, so that the order of the lines means nothing.
            spec.disks.sort_by(|one, other| one.name.cmp(&other.name));
            self.builder.broker(spec).map_err(|invalid| {
                let line = match &invalid {
                    Invalid::Disk { disk, .. } => draft.line_of_disk(disk),
                    _ => draft.line,
                };
                Flaw { line, problem: invalid.into() }
            })?;
        }
        Ok(())
    }

    fn partition(&mut self, words: Words<'_>) -> Result<(), Problem> {
        self.enter(Section::Partitions, "p")?;
        let partition = self.partitions.parse(words)?;
        let Partition { topic, number, leader, replicas, leading } = &partition;
        match leading {
            None => self.builder.partition(topic, *number, *leader, replicas)?,
            Some(leading) => self.builder.partition_in_parts(topic, *number, *leader, replicas, *leading)?,
        }
        self.partition_count += 1;
        self.replica_count += partition.replicas.len() as u64;
        Ok(())
    }

    fn pending(&mut self, line: u64, words: Words<'_>) -> Result<(), Problem> {
        self.enter(Section::Moves, "move")?;
        let [topic, partition, to] = exactly("move", words)?;
        let to = broker_id(to)?;
        if !self.drafts.contains_key(&to) {
            return Err(Problem::UnknownBroker(to.0));
        }
        let pending = PendingMove { topic: name("the topic", topic)?, partition: partition_number(partition)?, to };
        self.moves.push((line, pending));
        Ok(())
    }
}

impl Draft {
    /// A name that stands there twice is wrong where it stands for the second time.
    fn line_of_disk(&self, name: &str) -> u64 {
        let mut lines = self.spec.disks.iter().zip(&self.disk_lines).filter(|(disk, _)| disk.name == name);
        lines.next_back().map_or(self.line, |(_, line)| *line)
    }
}

/// The fields of a record of which there are always `N`.
fn exactly<'l, const N: usize>(kind: &'static str, words: Words<'l>) -> Result<[&'l str; N], Problem> {
    let mut fields = [""; N];
    let mut found = 0;
    for word in words {
        if let Some(field) = fields.get_mut(found) {
            *field = word;
        }
        found += 1;
    }
    if found == N { Ok(fields) } else { Err(Problem::Fields { kind, found, wanted: N.to_string() }) }
}

fn name(field: &'static str, word: &str) -> Result<String, Problem> {
    let wanted = "a name without spaces, with %XX for bytes that cannot stand there";
    decode(word).map(String::from).ok_or_else(|| Problem::Field { field, found: Quoted::new(word), wanted })
}

fn number(field: &'static str, word: &str) -> Result<f64, Problem> {
    word.parse().map_err(|_| Problem::Field { field, found: Quoted::new(word), wanted: "a number" })
}

pub(super) fn broker_id(word: &str) -> Result<BrokerId, Problem> {
    counted("a broker's id", word).map(BrokerId)
}

pub(super) fn partition_number(word: &str) -> Result<i32, Problem> {
    counted("the partition's number", word)
}

fn counted(field: &'static str, word: &str) -> Result<i32, Problem> {
    let wanted = "a whole number from 0 to 2147483647";
    match word.parse() {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(Problem::Field { field, found: Quoted::new(word), wanted }),
    }
}

fn broker_state(word: &str) -> Result<BrokerState, Problem> {
    Ok(match word {
        "ALIVE" => BrokerState::Alive,
        "NEW" => BrokerState::New,
        "DEAD" => BrokerState::Dead,
        "DEMOTED" => BrokerState::Demoted,
        "BAD_DISKS" => BrokerState::BadDisks,
        _ => {
            let wanted = "ALIVE, NEW, DEAD, DEMOTED or BAD_DISKS";
            return Err(Problem::Field { field: "the state", found: Quoted::new(word), wanted });
        }
    })
}

fn disk_state(word: &str) -> Result<DiskState, Problem> {
    Ok(match word {
        "ALIVE" => DiskState::Alive,
        "DEAD" => DiskState::Dead,
        "REMOVED" => DiskState::Removed,
        _ => {
            let wanted = "ALIVE, DEAD or REMOVED";
            return Err(Problem::Field { field: "the state", found: Quoted::new(word), wanted });
        }
    })
}
