//! Partition records: nearly every line of a snapshot is one, so nothing here allocates per line.

use std::borrow::Cow;

use evenkeel_balancer::cluster::{BrokerId, LeadLoad, Load, ReplicaSpec};

use super::records::{broker_id, partition_number};
use crate::Problem;
use crate::error::Quoted;
use crate::words::{Words, cut, decode};

/// What one record says.
pub(super) struct Partition<'l, 'p> {
    pub(super) topic: Cow<'l, str>,
    pub(super) number: i32,
    pub(super) leader: usize,
    /// The leader with what it carries as a follower, if the rest is told apart.
    pub(super) replicas: &'p [ReplicaSpec],
    /// What goes with leadership, if it is told apart.
    pub(super) leading: Option<LeadLoad>,
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
        let leading = self.parse_replicas(words, leader)?;
        let topic = decode(topic).filter(|topic| !topic.is_empty()).ok_or_else(|| Problem::Field {
            field: "the topic",
            found: Quoted::new(topic),
            wanted: "a name",
        })?;
        Ok(Partition { topic, number, leader, replicas: &self.replicas, leading })
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

    fn parse_replicas(&mut self, mut words: Words<'_>, leader: usize) -> Result<Option<LeadLoad>, Problem> {
        self.replicas.clear();
        let mut leading = None;
        for (position, broker) in self.brokers.iter().enumerate() {
            let Some(word) = words.next() else { break };
            let (replica, parts) = replica(*broker, word, position == leader)?;
            leading = leading.or(parts);
            self.replicas.push(replica);
        }
        let loads = self.replicas.len() + words.count();
        if loads == self.brokers.len() {
            return Ok(leading);
        }
        let wanted = format!("{} for {} replicas", 4 + self.brokers.len(), self.brokers.len());
        Err(Problem::Fields { kind: "p", found: 4 + loads, wanted })
    }
}

/// `<cpu>,<in>,<out>,<disk>`, then `@<n>` if it lives on the broker's n-th disk, then `!` if it is offline. A leader's
/// CPU and outbound traffic may be told in two parts, `<as a follower>+<for leading>`.
fn replica(broker: BrokerId, word: &str, leads: bool) -> Result<(ReplicaSpec, Option<LeadLoad>), Problem> {
    parts(broker, word, leads).ok_or_else(|| Problem::Field {
        field: "a load",
        found: Quoted::new(word),
        wanted: "cpu,in,out,disk in numbers, then @ and the disk's position if disks are listed, then ! if offline",
    })
}

fn parts(broker: BrokerId, word: &str, leads: bool) -> Option<(ReplicaSpec, Option<LeadLoad>)> {
    let (word, offline) = match word.strip_suffix('!') {
        Some(before) => (before, true),
        None => (word, false),
    };
    let (cpu, rest) = cut(word, b',');
    let (nw_in, rest) = cut(rest?, b',');
    let (nw_out, rest) = cut(rest?, b',');
    let (disk, position) = cut(rest?, b'@');
    let (nw_in, disk) = (number(nw_in)?, number(disk)?);
    // Hardly any leader is told in parts, so nobody else looks for them.
    let (cpu, nw_out, leading) = match (number(cpu), number(nw_out)) {
        (Some(cpu), Some(nw_out)) => (cpu, nw_out, None),
        (None, whole) if leads => {
            let (following, leading) = two_parts(cpu)?;
            let (follower_out, leader_out) = whole.map_or_else(|| two_parts(nw_out), |whole| Some((0.0, whole)))?;
            (following, follower_out, Some(LeadLoad { cpu: leading, nw_out: leader_out }))
        }
        _ => return None,
    };
    let disk_position = match position {
        None => None,
        Some(position) => Some(position.parse().ok()?),
    };
    let load = Load { cpu, nw_in, nw_out, disk };
    Some((ReplicaSpec { broker, disk: disk_position, load, offline }, leading))
}

/// The two numbers of `<one>+<other>`; the plus of an exponent parts nothing.
fn two_parts(word: &str) -> Option<(f32, f32)> {
    let parts = |at: usize| at > 0 && !matches!(word.as_bytes()[at - 1], b'e' | b'E');
    let (at, _) = word.match_indices('+').find(|(at, _)| parts(*at))?;
    Some((number(&word[..at])?, number(&word[at + 1..])?))
}

fn number(word: &str) -> Option<f32> {
    // Followers send nothing out: a quarter of all numbers and more.
    if word == "0" {
        return Some(0.0);
    }
    // There is one zero: `-0` is the same load and must be the same text when written again.
    word.parse::<f32>().ok().map(|value| value + 0.0)
}
