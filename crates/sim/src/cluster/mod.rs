//! The heart: a whole cluster as one value.
//!
//! ```text
//! calls (alter_reassignments, create_topics, produce, …)      faults
//!        │                                                      │
//!        ▼                                                      ▼
//!   registration::Change ── the controller's next record ──▶ change::install
//!        ▲                                                      │ replicas appear, vanish, lead
//!        │ caught up: joins the ISR                             ▼
//!   copy: flows share links, disks, quotas  ◀── tick ── timeline: fencing, returns, disk checks
//! ```
//!
//! A tick touches what changes: running copies and due events. Sizes are formulas of time, and
//! what brokers show of the cluster is the controller's record as it was a moment ago.

mod acl;
mod broker;
mod change;
mod client_quotas;
mod configs;
mod copy;
mod elect;
mod fault;
mod features;
mod file;
mod life;
mod load;
mod log_dirs;
mod names;
mod offsets;
mod placement;
mod quorum;
mod quota;
mod reassign;
mod records;
mod registration;
mod report;
mod share;
mod status;
mod topic;
mod topics;
mod txn;
mod txn_view;
mod upkeep;
mod users;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use acl::{Acl, AclFilter};
pub use broker::{BrokerSpec, DirSpec};
pub use client_quotas::{QuotaEntity, QuotaMatch};
pub use configs::{Alteration, ConfigEntry, ConfigSource, Operation, Resource};
pub use elect::ElectionKind;
pub use fault::Fault;
pub use features::{Feature, FeatureChange};
pub use load::BrokerLoad;
pub use log_dirs::{DirView, ReplicaView};
pub(crate) use quorum::CONTROLLER;
pub use quorum::Voter;
pub use reassign::{MoveView, Reassignment};
pub use records::{Appended, FetchRequest, Fetched, Isolation, OffsetQuery, Term};
pub use registration::Registration;
pub use report::Reporter;
pub use status::{BrokerState, BrokerStatus, CopyStatus, DirStatus, TopicStatus};
pub use topics::{NewTopic, Placement, TopicMade};
pub use txn_view::{TransactionFilter, TransactionState, TransactionView};
pub use users::{ScramCredential, ScramUpsertion};
pub use view::{BrokerView, PartitionView, TopicView};

use crate::dice::Dice;
use crate::ids::{BrokerId, Millis, TopicId};
use broker::{Broker, Process};
use topic::Topic;

/// What a cluster is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where all chance comes from.
    pub seed: u64,
    /// What the cluster is called; made from the seed if nobody says.
    pub cluster_id: Option<String>,
    /// How long a broker may be silent before it is fenced (broker.session.timeout.ms).
    pub session_timeout: Millis,
    /// How long a broker takes from its start until it is unfenced.
    pub start_time: Millis,
    /// The least and the most by which brokers' metadata trails the controller.
    pub metadata_lag: (Millis, Millis),
    /// Whether replicas that may lead without loss are kept on record (on in clusters of 4.1 and later).
    pub eligible_leader_replicas: bool,
    /// The wall-clock time, in milliseconds since 1970, at which the story begins.
    pub wall_start: i64,
    /// The metrics reporter that every broker has, if they have one.
    pub reporter: Option<Reporter>,
    /// How many bytes of records that were really produced are kept, whatever disks would hold: these are in memory. Beyond
    /// that nothing is taken, as if the disk had failed.
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            cluster_id: None,
            session_timeout: 9_000,
            start_time: 300,
            metadata_lag: (20, 300),
            eligible_leader_replicas: true,
            wall_start: 1_767_225_600_000,
            reporter: None,
            memory: 1 << 30,
        }
    }
}

/// A simulated Kafka cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    options: Options,
    cluster_id: String,
    dice: Dice,
    now: Millis,
    /// Grows with all that goes into the metadata log; broker epochs are taken from it.
    metadata_offset: i64,
    brokers: BTreeMap<BrokerId, Broker>,
    topics: BTreeMap<Arc<str>, Topic>,
    topic_names: BTreeMap<TopicId, Arc<str>>,
    alike: names::Alike,
    /// Deleted topics that some broker may still show: when, and what they were.
    gone: Vec<(Millis, Topic)>,
    /// Settings for all brokers.
    broker_defaults: BTreeMap<String, String>,
    /// Settings of topics that say nothing of their own, as brokers' files have them.
    topic_defaults: BTreeMap<String, String>,
    timeline: BTreeMap<(Millis, u64), Event>,
    events_made: u64,
    transactions: txn::Coordinator,
    /// Who may log in by SCRAM.
    scram: users::ScramCredentials,
    acls: BTreeSet<Acl>,
    client_quotas: client_quotas::ClientQuotas,
    /// What clients ask of each broker, as copies feel it, and until when that is good enough.
    felt_loads: (Millis, BTreeMap<BrokerId, BrokerLoad>),
    /// Until when what followers in sync fetch has been counted against quotas.
    followers_counted: Millis,
    /// The controllers.
    voters: quorum::Voters,
    /// The broker that passes for the controller.
    shown_controller: Option<BrokerId>,
    /// How often a broker's process has started, ended, or changed how it is reached.
    process_changes: u64,
    /// When disks are looked at next: the sooner, the fuller they are.
    disks_due: Millis,
    /// What is in memory of records that were really produced.
    held: records::Held,
    /// How much the fullest disk could take when they were looked at, less what has come since.
    room: f64,
}

/// What happens by itself at a moment.
#[derive(Clone, Debug)]
enum Event {
    /// The broker's session ends unless it has been heard of since this moment.
    SessionEnds(BrokerId, Millis),
    /// A broker that was started before the session of its last life was over may register now.
    Start(BrokerId),
    /// The broker has caught up with the metadata.
    Unfence(BrokerId, i64),
    /// The broker's reporter sends its metrics, unless the process was another.
    Report(BrokerId, i64),
    /// Retention, slow followers and transactions that nobody ended.
    Housekeeping,
    /// Full disks, unless they are looked at another time.
    LookAtDisks,
}

/// How often the coordinator looks for old transactions, and leaders for slow followers.
const HOUSEKEEPING: Millis = 10_000;
/// How often brokers look at retention, which means looking at every log.
const LOOK_AT_LOGS: Millis = 60_000;

impl Cluster {
    /// A cluster of these brokers, all up and unfenced.
    pub fn new(options: Options, brokers: impl IntoIterator<Item = BrokerSpec>) -> Self {
        let mut cluster = Self {
            dice: Dice::new(options.seed),
            cluster_id: options.cluster_id.clone().unwrap_or_else(|| name_from(options.seed)),
            options,
            now: 0,
            metadata_offset: 0,
            brokers: BTreeMap::new(),
            topics: BTreeMap::new(),
            topic_names: BTreeMap::new(),
            alike: names::Alike::default(),
            gone: Vec::new(),
            broker_defaults: BTreeMap::new(),
            topic_defaults: BTreeMap::new(),
            timeline: BTreeMap::new(),
            events_made: 0,
            transactions: txn::Coordinator::default(),
            scram: BTreeMap::new(),
            acls: BTreeSet::new(),
            client_quotas: BTreeMap::new(),
            felt_loads: (0, BTreeMap::new()),
            followers_counted: 0,
            voters: BTreeMap::from([(CONTROLLER, None)]),
            shown_controller: None,
            process_changes: 0,
            disks_due: 0,
            held: records::Held::NOTHING,
            room: 0.0,
        };
        for spec in brokers {
            let id = spec.id;
            cluster.add_broker(spec);
            cluster.unfence(id);
        }
        // These were there before the story began.
        cluster.timeline.clear();
        for broker in cluster.brokers.values_mut() {
            broker.past.clear();
        }
        cluster.broker_ids().into_iter().for_each(|id| cluster.schedule_report(id));
        cluster.at(HOUSEKEEPING, Event::Housekeeping);
        cluster.look_at_disks_in(upkeep::DISKS_WITH_ROOM);
        cluster
    }

    /// Milliseconds since the story began.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// The wall-clock time of the present moment, in milliseconds since 1970.
    pub fn wall_clock(&self) -> i64 {
        self.options.wall_start + self.now
    }

    /// Lets `millis` pass.
    pub fn tick(&mut self, millis: Millis) {
        let until = self.now + millis.max(0);
        loop {
            while let Some(entry) = self.timeline.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.happen(event);
            }
            if self.now >= until {
                return;
            }
            let next = self.timeline.first_key_value().map_or(until, |((when, _), _)| *when).min(until);
            self.copy_until(next);
        }
    }

    fn at(&mut self, when: Millis, event: Event) {
        self.events_made += 1;
        self.timeline.insert((when, self.events_made), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::SessionEnds(broker, since) => self.end_session(broker, since),
            Event::Start(broker) => {
                if self.brokers.get(&broker).is_some_and(|it| it.waits_to_register) {
                    self.start_broker(broker);
                }
            }
            Event::Unfence(broker, epoch) => {
                let still_meant =
                    self.brokers.get(&broker).is_some_and(|it| it.epoch == epoch && it.registered && it.is_running());
                if still_meant {
                    self.unfence(broker);
                }
            }
            Event::Report(broker, epoch) => self.report(broker, epoch),
            Event::Housekeeping => {
                self.abort_old_transactions();
                self.slow_followers_fall_behind();
                self.shrink_isrs();
                if self.now % LOOK_AT_LOGS == 0 {
                    self.look_at_logs();
                }
                self.at(self.now + HOUSEKEEPING, Event::Housekeeping);
            }
            Event::LookAtDisks => {
                if self.now >= self.disks_due {
                    self.look_at_disks();
                }
            }
        }
    }

    fn next_metadata_offset(&mut self) -> i64 {
        self.metadata_offset += 1;
        self.metadata_offset
    }
}

/// A cluster id as Kafka's look: 22 characters that pass for base64.
fn name_from(seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Dice of its own: the name of the cluster is no part of its story.
    let mut dice = Dice::new(!seed);
    // Sixteen bytes leave four bits of the last letter unused.
    (0..22).map(|n| char::from(LETTERS[if n < 21 { dice.below(64) } else { 16 * dice.below(4) }])).collect()
}
