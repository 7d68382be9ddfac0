//! Clusters drawn as text, one line per broker:
//!
//! ```text
//! b0 a: t0* t1@/d0      broker 0 in rack a leads t-0 and follows t-1, which lies in /d0
//! b1 b down: t0!        broker 1 is down, and so is its replica
//! ```
//!
//! A replica list is its leader, then the others by broker. Every partition is of 100 MB, unless told otherwise.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_balancer::cluster::Resources;
use evenkeel_kafka::{BrokerId, TopicPartition};
use evenkeel_rest::{Failure, Method, Query, Request, body::OptimizationResult};

use crate::{
    config::{
        capacity::{Capacities, Capacity, Disk},
        properties::Properties,
        settings::Settings,
    },
    journal::History,
    model::{self, BrokerView, PartitionView, View},
    monitor::{
        Known,
        sample::{Metric, Values},
        windows::Aggregate,
    },
    proposals::{Ask, Proposal, ask, make, result},
    watch::Sighting,
};

const MB: f64 = 1024.0 * 1024.0;

/// A cluster, what is known of it, and how the engine is set up.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) sighting: Sighting,
    pub(crate) loads: BTreeMap<TopicPartition, Values>,
    pub(crate) capacities: Capacities,
    pub(crate) settings: Settings,
    pub(crate) history: History,
    pub(crate) generation: u64,
}

impl Scene {
    /// Reads a picture; a mistake in it is a mistake in the test, so it panics.
    pub(crate) fn draw(picture: &str) -> Scene {
        let mut view = View::default();
        for line in picture.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (head, replicas) = line.split_once(':').expect("a line is `broker rack: replicas`");
            let mut words = head.split_whitespace();
            let id: i32 = words.next().and_then(|word| word.strip_prefix('b')?.parse().ok()).expect("a broker is `b0`");
            let rack = words.next().map(str::to_owned);
            let up = words.next() != Some("down");
            let mut broker = BrokerView { host: format!("h{id}"), rack, up, ..BrokerView::default() };
            for replica in replicas.split_whitespace() {
                let (name, dir) = replica.split_once('@').map_or((replica, None), |(name, dir)| (name, Some(dir)));
                let partition = named(name.trim_end_matches(['*', '!']));
                let seen = view.partitions.entry(partition.clone()).or_default();
                if name.contains('*') {
                    seen.replicas.insert(0, id);
                    seen.leader = Some(id);
                } else {
                    seen.replicas.push(id);
                }
                if name.contains('!') || !up {
                    seen.offline.insert(id);
                }
                if let Some(dir) = dir {
                    broker.dirs.insert(partition, dir.into());
                }
            }
            view.brokers.insert(id, broker);
        }
        let capacity =
            Capacity { disk: Disk::Whole(10_000.0), cores: 4.0, network_in: 10_000.0, network_out: 10_000.0 };
        let loads = view.partitions.keys().map(|partition| (partition.clone(), weighing(100.0))).collect();
        Scene {
            capacities: Capacities {
                listed: view.brokers.keys().map(|id| (*id, capacity.clone())).collect(),
                default: None,
            },
            sighting: Sighting { view, at: 1_000, ..Sighting::default() },
            loads,
            settings: settings(""),
            history: History::default(),
            generation: 1,
        }
    }

    /// Every broker has two directories of 5,000 MB.
    pub(crate) fn with_dirs(mut self) -> Scene {
        let dirs: BTreeMap<String, f64> = ["/d0", "/d1"].map(|dir| (dir.to_owned(), 5_000.0)).into();
        self.capacities.listed.values_mut().for_each(|capacity| capacity.disk = Disk::Dirs(dirs.clone()));
        self
    }

    pub(crate) fn with_settings(mut self, text: &str) -> Scene {
        self.settings = settings(text);
        self
    }

    /// A partition holds so many MB.
    pub(crate) fn with_size(mut self, partition: &str, megabytes: f64) -> Scene {
        self.loads.insert(named(partition), weighing(megabytes));
        self
    }

    /// Nobody measures these.
    pub(crate) fn without(mut self, metrics: &[Metric]) -> Scene {
        for values in self.loads.values_mut() {
            metrics.iter().for_each(|metric| values.0[*metric as usize] = f64::NAN);
        }
        self
    }

    pub(crate) fn broker(&mut self, id: i32) -> &mut BrokerView {
        self.sighting.view.brokers.get_mut(&id).unwrap()
    }

    pub(crate) fn partition(&mut self, name: &str) -> &mut PartitionView {
        self.sighting.view.partitions.get_mut(&named(name)).unwrap()
    }

    pub(crate) fn known(&self) -> Known {
        Known {
            sighting: Arc::new(self.sighting.clone()),
            loads: Arc::new(self.aggregate()),
            unmeasured: self.unknown(),
            generation: self.generation,
        }
    }

    pub(crate) fn aggregate(&self) -> Aggregate {
        Aggregate { windows: vec![2, 1], loads: self.loads.clone(), coverage: 1.0, stretched: 0 }
    }

    pub(crate) fn unknown(&self) -> Resources {
        model::unknown(&self.aggregate())
    }

    /// What is asked for by `endpoint?query`.
    pub(crate) fn ask(&self, url: &str) -> Result<Ask, Failure> {
        ask(&request(url), &self.settings, &self.sighting.view, self.unknown(), &self.history)
    }

    pub(crate) fn propose(&self, url: &str) -> Result<Proposal, Failure> {
        make(self.ask(url)?, request(url).endpoint(), &self.known(), &self.capacities, &self.settings, &|_| {})
    }

    pub(crate) fn result(&self, url: &str) -> OptimizationResult {
        result(&self.propose(url).unwrap(), &request(url), &self.settings.executor)
    }

    /// What goes wrong, in words.
    pub(crate) fn failure(&self, url: &str) -> String {
        self.propose(url).map(|made| made.id).unwrap_err().to_string()
    }

    /// The plan as text: `t-0 [0, 1]>1 -> [2, 1]>2` for a partition that moves from 0 to 2 with its lead.
    pub(crate) fn plan(&self, url: &str) -> Vec<String> {
        let ids = |ids: &[evenkeel_balancer::cluster::BrokerId]| {
            format!("{:?}", ids.iter().map(|id| id.0).collect::<Vec<_>>())
        };
        let made = self.propose(url).unwrap();
        let told = made.outcome.plan.changes.iter().map(|change| {
            let disks: String =
                change.disks.iter().map(|disk| format!(" {}:{}>{}", disk.broker, disk.from, disk.to)).collect();
            let (old, new) = (ids(&change.old_replicas), ids(&change.new_replicas));
            format!(
                "{}-{} {old}>{} -> {new}>{}{disks}",
                change.topic, change.partition, change.old_leader, change.new_leader
            )
        });
        let mut told: Vec<String> = told.collect();
        told.sort();
        told
    }
}

pub(crate) fn request(url: &str) -> Request {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let method =
        if ["proposals", "load", "partition_load", "state"].contains(&path) { Method::Get } else { Method::Post };
    Request::parse(method, &format!("/{path}"), &Query::parse(query)).unwrap()
}

/// `t12` is partition 12 of `t`.
pub(crate) fn named(name: &str) -> TopicPartition {
    let digits = name.find(|letter: char| letter.is_ascii_digit()).expect("a partition ends with its number");
    TopicPartition::new(&name[..digits], name[digits..].parse().expect("a number"))
}

pub(crate) fn past(ids: &[i32]) -> BTreeMap<BrokerId, i64> {
    ids.iter().map(|id| (BrokerId(*id), 500)).collect()
}

fn weighing(megabytes: f64) -> Values {
    Values::UNKNOWN
        .with(Metric::Cpu, 1.0)
        .with(Metric::Disk, megabytes * MB)
        .with(Metric::LeaderBytesIn, 10.0 * 1024.0)
        .with(Metric::LeaderBytesOut, 10.0 * 1024.0)
        .with(Metric::MessagesIn, 5.0)
        .with(Metric::ReplicationBytesIn, 0.0)
        .with(Metric::ReplicationBytesOut, 10.0 * 1024.0)
}

fn settings(text: &str) -> Settings {
    let text = format!("bootstrap.servers=localhost:9092\n{text}");
    Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings
}
