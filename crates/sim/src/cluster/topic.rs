//! Topics, partitions and replicas as the heart keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::broker::{Broker, Process};
use super::registration::Registration;
use crate::ids::{BrokerId, Millis, TopicId};
use crate::log::{Cleaning, Log, Roll};
use crate::traffic::{History, Keep, Load, Tape};

#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) id: TopicId,
    pub(crate) created_at: Millis,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) configs: BTreeMap<String, String>,
    /// What the settings above come to.
    pub(crate) rules: Rules,
    pub(crate) history: History,
    /// How much of the topic each broker leads and follows; made anew when somebody asks after a change.
    pub(crate) weights: Option<BTreeMap<BrokerId, Weight>>,
}

/// A broker's part of a topic's load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weight {
    /// Share led.
    pub(crate) leads: f64,
    /// Share followed, in sync.
    pub(crate) follows: f64,
    /// Share led, times its followers in sync.
    pub(crate) feeds: f64,
    /// The part of `follows` that counts against the follower's quota.
    pub(crate) follows_throttled: f64,
    /// The part of `feeds` that counts against the leader's quota.
    pub(crate) feeds_throttled: f64,
}

/// A topic's settings, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) keep: Keep,
    /// Nobody may delete its records by hand either.
    pub(crate) only_compacted: bool,
    pub(crate) roll: Roll,
    pub(crate) cleaning: Cleaning,
    pub(crate) min_isr: usize,
    pub(crate) unclean: bool,
    pub(crate) max_message: usize,
    pub(crate) leader_throttled: Throttled,
    pub(crate) follower_throttled: Throttled,
}

/// Which replicas of a topic a throttle is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Throttled {
    #[default]
    None,
    All,
    These(BTreeSet<(i32, BrokerId)>),
}

impl Throttled {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" => return Some(Self::None),
            "*" => return Some(Self::All),
            _ => {}
        }
        let pair = |part: &str| {
            let (partition, broker) = part.trim().split_once(':')?;
            Some((partition.parse().ok()?, BrokerId(broker.parse().ok()?)))
        };
        text.split(',').map(pair).collect::<Option<_>>().map(Self::These)
    }

    pub(crate) fn has(&self, partition: i32, broker: BrokerId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(these) => these.contains(&(partition, broker)),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub(crate) registration: Registration,
    /// What it was until the given moments, for brokers whose metadata trails.
    pub(crate) past: Vec<(Millis, Registration)>,
    pub(crate) created_at: Millis,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) log: Log,
    pub(crate) tape: Tape,
    /// Where the high watermark stands for as long as fewer are in sync than the topic wants.
    pub(crate) held_mark: Option<i64>,
    /// The leader epoch in which the present leader was chosen.
    pub(crate) led_since: i32,
}

#[derive(Clone, Debug)]
pub(crate) struct Replica {
    pub(crate) broker: BrokerId,
    pub(crate) dir: usize,
    pub(crate) progress: Progress,
    /// The broker has heard of it from then on.
    pub(crate) appears_at: Millis,
    pub(crate) future: Option<Future>,
}

impl Replica {
    /// Where in the log it is.
    pub(crate) fn position(&self, extent: &Extent) -> f64 {
        match self.progress {
            Progress::Following => extent.end,
            Progress::Behind(lag) => lag.position,
        }
    }
}

/// How far a replica is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Progress {
    /// At its leader's end, always.
    Following,
    /// Behind it.
    Behind(Lag),
}

/// How far behind its leader a replica is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lag {
    /// Where in the log it is, in bytes ever written.
    pub(crate) position: f64,
    /// It has the records below this offset.
    pub(crate) offset: i64,
    /// When it last had all that its leader had at its last fetch but one.
    pub(crate) caught_up_at: Millis,
    /// When it last fetched, and where the leader's log ended then.
    pub(crate) fetched: (Millis, f64),
}

impl Lag {
    /// A replica that has stopped, or starts, here.
    pub(crate) fn at(position: f64, offset: i64, now: Millis) -> Self {
        Self { position, offset, caught_up_at: now, fetched: (now, position) }
    }

    /// Has fetched up to `position` of a log that ends at `end`. Offsets are taken to lie evenly
    /// between where it was and the end.
    pub(crate) fn fetch(&mut self, position: f64, end: (f64, i64), now: Millis) {
        if position >= self.fetched.1 {
            self.caught_up_at = self.fetched.0;
        }
        self.fetched = (now, end.0);
        let part = (position - self.position) / (end.0 - self.position).max(1.0);
        self.offset += ((end.1 - self.offset) as f64 * part.clamp(0.0, 1.0)) as i64;
        self.position = position;
    }
}

/// A replica on its way to another directory of its broker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Future {
    pub(crate) dir: usize,
    pub(crate) position: f64,
}

/// Where a log begins and ends at a moment, in bytes ever written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) start: f64,
    pub(crate) end: f64,
}

impl Extent {
    pub(crate) fn size_up_to(&self, position: f64) -> f64 {
        (position.min(self.end) - self.start).max(0.0)
    }
}

impl Topic {
    pub(crate) fn load(&self) -> &Load {
        self.history.present()
    }

    pub(crate) fn partition(&self, number: i32) -> Option<&Partition> {
        usize::try_from(number).ok().and_then(|n| self.partitions.get(n))
    }

    pub(crate) fn partition_mut(&mut self, number: i32) -> Option<&mut Partition> {
        usize::try_from(number).ok().and_then(|n| self.partitions.get_mut(n))
    }

    pub(crate) fn share(&self, number: i32) -> f64 {
        self.load().share(number, self.partitions.len() as i32)
    }

    /// Where the log of partition `number` begins and ends: simulated bytes and real ones.
    pub(crate) fn extent(&self, number: i32, now: Millis) -> Extent {
        let Some(partition) = self.partition(number) else { return Extent { start: 0.0, end: 0.0 } };
        let log = &partition.log;
        Extent {
            start: partition.tape.start(&self.history, self.rules.keep, now) + log.trimmed_bytes() as f64,
            end: partition.tape.end(&self.history, now) + log.appended_bytes() as f64,
        }
    }

    /// A partition to be changed, and the load that its tape is read with.
    pub(crate) fn with_history(&mut self, number: i32) -> Option<(&History, &mut Partition)> {
        let partition = usize::try_from(number).ok().and_then(|n| self.partitions.get_mut(n))?;
        Some((&self.history, partition))
    }

    /// Each broker's part of the load.
    pub(crate) fn weigh(&self) -> BTreeMap<BrokerId, Weight> {
        let mut weights: BTreeMap<BrokerId, Weight> = BTreeMap::new();
        for (number, partition) in self.partitions.iter().enumerate() {
            let share = self.share(number as i32);
            let registration = &partition.registration;
            let Some(leader) = registration.leader else { continue };
            // One that is behind fetches what it can get; see `copy`.
            let in_step = |replica: &&Replica| replica.progress == Progress::Following && replica.broker != leader;
            let followers = partition.replicas.iter().filter(in_step);
            for follower in followers.clone() {
                let weight = weights.entry(follower.broker).or_default();
                weight.follows += share;
                if self.rules.follower_throttled.has(number as i32, follower.broker) {
                    weight.follows_throttled += share;
                }
            }
            let weight = weights.entry(leader).or_default();
            let fed = share * followers.count() as f64;
            weight.leads += share;
            weight.feeds += fed;
            if self.rules.leader_throttled.has(number as i32, leader) {
                weight.feeds_throttled += fed;
            }
        }
        weights
    }
}

impl Partition {
    pub(crate) fn replica(&self, broker: BrokerId) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.broker == broker)
    }

    pub(crate) fn replica_mut(&mut self, broker: BrokerId) -> Option<&mut Replica> {
        self.replicas.iter_mut().find(|replica| replica.broker == broker)
    }

    /// Whether the replica on `broker` could lead: the broker is active and its disk is well.
    pub(crate) fn may_lead(&self, broker: BrokerId, brokers: &BTreeMap<BrokerId, Broker>) -> bool {
        brokers.get(&broker).is_some_and(Broker::is_active) && !self.is_offline(broker, brokers)
    }

    /// Whether the controller has heard that the replica's directory has failed; of a process that is
    /// down it hears nothing.
    pub(crate) fn is_offline(&self, broker: BrokerId, brokers: &BTreeMap<BrokerId, Broker>) -> bool {
        let Some(replica) = self.replica(broker) else { return false };
        let reporter = brokers.get(&broker).filter(|broker| broker.process != Process::Down);
        reporter.and_then(|broker| broker.dirs.get(replica.dir)).is_some_and(|dir| dir.failed)
    }
}
