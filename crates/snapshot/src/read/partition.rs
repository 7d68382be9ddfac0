//! Partition records: nearly every line of a snapshot is one, so nothing here allocates per line.

use std::borrow::Cow;

use evenkeel_balancer::cluster::{BrokerId, Load, ReplicaSpec};

use super::records::{broker_id, partition_number};
use crate::Problem;
use crate::error::Quoted;
use crate::words::{Words, cut, decode};

/// What one record says.
pub(super) struct Partition<'l, 'p> {
    pub(super) topic: Cow<'l, str>,
    pub(super) number: i32,
    pub(super) leader: usize,
    pub(super) replicas: &'p [ReplicaSpec],
}

/// Parses records one after the other, in the same memory.
#[derive(Default)]
pub(super) struct PartitionParser {
    brokers: Vec<BrokerId>,
    replicas: Vec<ReplicaSpec>,
}

impl PartitionParser {
    /// `<topic> <partition> <broker,...> <leader's position> <load> ...`, with a load per broker.
    pub(super) fn parse<'l>(&mut self, mut words: Words<'l>) -> Result<Partition<'l, '_>, Problem> {
        let mut fields = 0;
        let mut next = || {
            let word = words.next();
            fields += usize::from(word.is_some());
            word.ok_or_else(|| Problem::Fields { kind: "p", found: fields, wanted: "at least 5".into() })
        };
        let (topic, number, brokers, leader) = (next()?, next()?, next()?, next()?);
        let number = partition_number(number)?;
        self.parse_brokers(brokers)?;
        let leader = leader.parse().map_err(|_| Problem::Field {
            field: "the leader",
            found: Quoted::new(leader),
            wanted: "a position in the list of brokers, counted from 0",
        })?;
        self.parse_replicas(words)?;
        let topic = decode(topic).filter(|topic| !topic.is_empty()).ok_or_else(|| Problem::Field {
            field: "the topic",
            found: Quoted::new(topic),
            wanted: "a name",
        })?;
        Ok(Partition { topic, number, leader, replicas: &self.replicas })
    }

    fn parse_brokers(&mut self, list: &str) -> Result<(), Problem> {
        self.brokers.clear();
        let mut rest = Some(list);
        while let Some(list) = rest {
            let (id, after) = cut(list, b',');
            self.brokers.push(broker_id(id)?);
            rest = after;
        }
        Ok(())
    }

    fn parse_replicas(&mut self, mut words: Words<'_>) -> Result<(), Problem> {
        self.replicas.clear();
        for broker in &self.brokers {
            let Some(word) = words.next() else { break };
            self.replicas.push(replica(*broker, word)?);
        }
        let loads = self.replicas.len() + words.count();
        if loads == self.brokers.len() {
            return Ok(());
        }
        let wanted = format!("{} for {} replicas", 4 + self.brokers.len(), self.brokers.len());
        Err(Problem::Fields { kind: "p", found: 4 + loads, wanted })
    }
}

/// `<cpu>,<in>,<out>,<disk>`, then `@<n>` if it lives on the broker's n-th disk, then `!` if it is offline.
fn replica(broker: BrokerId, word: &str) -> Result<ReplicaSpec, Problem> {
    parts(broker, word).ok_or_else(|| Problem::Field {
        field: "a load",
        found: Quoted::new(word),
        wanted: "cpu,in,out,disk in numbers, then @ and the disk's position if disks are listed, then ! if offline",
    })
}

fn parts(broker: BrokerId, word: &str) -> Option<ReplicaSpec> {
    let (word, offline) = match word.strip_suffix('!') {
        Some(before) => (before, true),
        None => (word, false),
    };
    let (cpu, rest) = cut(word, b',');
    let (nw_in, rest) = cut(rest?, b',');
    let (nw_out, rest) = cut(rest?, b',');
    let (disk, position) = cut(rest?, b'@');
    let load = Load { cpu: number(cpu)?, nw_in: number(nw_in)?, nw_out: number(nw_out)?, disk: number(disk)? };
    let disk = match position {
        None => None,
        Some(position) => Some(position.parse().ok()?),
    };
    Some(ReplicaSpec { broker, disk, load, offline })
}

fn number(word: &str) -> Option<f32> {
    // Followers send nothing out: a quarter of all numbers and more.
    if word == "0" {
        return Some(0.0);
    }
    // There is one zero: `-0` is the same load and must be the same text when written again.
    word.parse::<f32>().ok().map(|value| value + 0.0)
}
