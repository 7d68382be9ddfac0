//! The world: what the API server holds, who runs, and where data is. It complains of what must not be.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, annotations, kafka::AutoRebalanceMode, labels,
};
use evenkeel_kafka::calls::quorum::Quorum;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use serde_json::{Value, json};

use super::super::{Decision, Deed, Given, Step, decide, questioned};
use crate::{
    auto_rebalance::{Act, TrackerWrite, sort_rebalances, tracker::tracker_name},
    kafka::{
        config::{SERVER_CONFIG, ServerConfig, VOTERS},
        pools::{ids_of_pod_set, pool_of_pod},
        seen::{EngineSaid, FurtherUsers, Known, Live, Metadata, Missing, Partition, Seen},
        settings::Settings,
    },
};

/// A little generator (xorshift): the same seed gives the same life.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

const POOLS: [&str; 3] = ["a", "b", "c"];

pub(super) struct World {
    seed: u64,
    now: Timestamp,
    kafka: Kafka,
    pools: BTreeMap<String, KafkaNodePool>,
    rebalances: BTreeMap<String, KafkaRebalance>,
    live: Live,
    /// Pods that run, by name.
    running: BTreeMap<String, Pod>,
    /// Brokers on Kafka's list, and whether they are fenced.
    registered: BTreeMap<i32, bool>,
    /// Replicas by partition.
    data: BTreeMap<String, BTreeSet<i32>>,
    /// Brokers that are back, and have not caught up with the others.
    lagging: BTreeSet<i32>,
    empty_since: BTreeMap<i32, Timestamp>,
    missing_since: BTreeMap<Missing, Timestamp>,
    struck_off: BTreeMap<i32, Timestamp>,
    restarts: usize,
    /// What was told, by reason.
    told: Vec<String>,
    /// Whether Kafka does not answer the operator.
    is_away: bool,
    /// How long an answer is waited for.
    silence: SignedDuration,
    /// When the last look wanted another one, at the latest.
    look_again: Option<Timestamp>,
    /// Pods that find no place.
    unplaced: BTreeSet<String>,
    /// Whether the last look had nothing to do, now or later.
    is_quiet: bool,
    /// Whether the last look found it at rest.
    is_at_rest: bool,
    settings: Settings,
}

fn node_pool(name: &str, replicas: usize, role: &str) -> KafkaNodePool {
    serde_json::from_value(json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "generation": 1,
            "labels": {"strimzi.io/cluster": "w"}},
        "spec": {"replicas": replicas, "roles": [role], "storage": {"type": "ephemeral"}}}))
    .unwrap()
}

impl World {
    /// One controller, and three pools of brokers: 0; 1 and 2; 3.
    pub(super) fn new(seed: u64) -> Self {
        let pools: BTreeMap<String, KafkaNodePool> =
            [("a", 1), ("b", 2), ("c", 1)].map(|(name, n)| (name.to_owned(), node_pool(name, n, "broker"))).into();
        let kafka = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka",
            "metadata": {"name": "w", "namespace": "ns", "uid": "w", "generation": 1},
            "spec": {"kafka": {}, "cruiseControl": {"autoRebalance": [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]}}});
        let mut world = Self {
            seed,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            kafka: serde_json::from_value(kafka).unwrap(),
            pools,
            rebalances: BTreeMap::new(),
            live: Live::default(),
            running: BTreeMap::new(),
            registered: BTreeMap::new(),
            data: BTreeMap::new(),
            lagging: BTreeSet::new(),
            empty_since: BTreeMap::new(),
            missing_since: BTreeMap::new(),
            struck_off: BTreeMap::new(),
            restarts: 0,
            told: Vec::new(),
            is_away: false,
            silence: SignedDuration::ZERO,
            look_again: None,
            unplaced: BTreeSet::new(),
            is_quiet: false,
            is_at_rest: false,
            settings: Settings::default(),
        };
        world.add_controllers("k", 1);
        world
    }

    /// A further pool of controllers.
    pub(super) fn add_controllers(&mut self, pool: &str, replicas: usize) {
        let mut controllers = node_pool(pool, replicas, "controller");
        let ids = [(annotations::NEXT_NODE_IDS.to_owned(), "[100-109]".to_owned())];
        controllers.metadata.annotations = Some(ids.into());
        self.pools.insert(pool.to_owned(), controllers);
    }

    /// A pool carries the label of its cluster, or not.
    pub(super) fn label(&mut self, pool: &str, is_labelled: bool) {
        let label = is_labelled.then(|| (labels::CLUSTER.to_owned(), "w".to_owned()));
        self.pools.get_mut(pool).unwrap().metadata.labels = Some(label.into_iter().collect());
    }

    /// A pool goes. What is its own goes when the garbage collector comes.
    pub(super) fn delete(&mut self, pool: &str) {
        self.pools.remove(pool);
    }

    /// What belongs to pools that are gone, goes.
    pub(super) fn collect_garbage(&mut self) {
        let pools = &self.pools;
        self.live.objects.retain(|_, object| {
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let mut pool = owners.into_iter().flatten().filter(|owner| owner["kind"] == "KafkaNodePool");
            pool.all(|owner| pools.contains_key(owner["name"].as_str().unwrap()))
        });
    }

    /// Somebody writes this list of voters into the files of so many nodes.
    pub(super) fn tell_voters(&mut self, list: &str, nodes: usize) {
        let maps = self.live.objects.iter_mut().filter(|((kind, _), _)| kind == "ConfigMap");
        let files = maps.filter_map(|(_, map)| map.pointer_mut("/data")?.get_mut(SERVER_CONFIG));
        for file in files.take(nodes) {
            let mut config = ServerConfig::read(file.as_str().unwrap());
            config.entries.insert(VOTERS.to_owned(), list.to_owned());
            *file = json!(config.text());
        }
    }

    /// All lists of voters that nodes have, by the nodes that have them.
    pub(super) fn voters(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, map) in self.live.of_kind("ConfigMap") {
            let file = map.pointer("/data").and_then(|data| data.get(SERVER_CONFIG)?.as_str());
            if let Some(list) = file.and_then(|file| ServerConfig::read(file).entries.remove(VOTERS)) {
                lists.entry(list).or_default().insert(name.to_owned());
            }
        }
        lists
    }

    pub(super) fn want(&mut self, pool: &str, replicas: usize) {
        let pool = self.pools.get_mut(pool).unwrap();
        pool.spec.replicas = replicas as i32;
        pool.metadata.generation = pool.metadata.generation.map(|n| n + 1);
    }

    /// Some pool gets another size; there are always two brokers at least.
    pub(super) fn scale(&mut self, dice: &mut Dice) {
        let pool = POOLS[dice.below(3)];
        let least = if pool == "b" { 2 } else { 0 };
        self.want(pool, least + dice.below(4));
    }

    /// A topic is made, on whoever lives.
    pub(super) fn put_data(&mut self, dice: &mut Dice) {
        let alive: Vec<i32> = self.registered.iter().filter(|(_, fenced)| !**fenced).map(|(id, _)| *id).collect();
        if alive.len() > 1 {
            let first = dice.below(alive.len());
            let name = format!("t-{}", self.data.len());
            self.put_on(&name, &[alive[first], alive[(first + 1) % alive.len()]]);
        }
    }

    /// A setting changes that brokers and controllers have to be restarted for.
    pub(super) fn configure(&mut self, partitions: usize) {
        let kafka = self.kafka.spec.kafka.get_or_insert_default();
        kafka.config.get_or_insert_default().insert("num.partitions".to_owned(), json!(partitions));
        self.kafka.metadata.generation = self.kafka.metadata.generation.map(|n| n + 1);
    }

    /// All pods of a pool are to be restarted.
    pub(super) fn ask_for_restarts(&mut self, pool: &str) {
        let set = self.live.objects.get_mut(&("StrimziPodSet".to_owned(), format!("w-{pool}"))).unwrap();
        set["metadata"]["annotations"][annotations::MANUAL_ROLLING_UPDATE] = json!("true");
    }

    /// Since when pods run, by name.
    pub(super) fn uids(&self) -> BTreeMap<String, String> {
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap();
        self.running.iter().map(|(name, pod)| (name.clone(), uid(pod))).collect()
    }

    pub(super) fn put_on(&mut self, name: &str, brokers: &[i32]) {
        self.data.insert(name.to_owned(), brokers.iter().copied().collect());
    }

    pub(super) fn drop_data(&mut self, dice: &mut Dice) {
        let name = self.data.keys().nth(dice.below(self.data.len().max(1))).cloned();
        if let Some(name) = name {
            self.data.remove(&name);
        }
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Automatic rebalancing is held.
    pub(super) fn hold(&mut self) {
        let off = ("evenkeel.io/auto-rebalance".to_owned(), "off".to_owned());
        self.kafka.metadata.annotations.get_or_insert_default().extend([off]);
    }

    pub(super) fn brokers(&self) -> BTreeSet<i32> {
        POOLS.iter().flat_map(|pool| self.set(pool).map(|set| ids_of_pod_set(&set)).unwrap_or_default()).collect()
    }

    /// What is remembered as added.
    pub(super) fn added(&self) -> Vec<i32> {
        let auto = self.kafka.status.as_ref().and_then(|status| status.auto_rebalance.as_ref());
        let modes = auto.into_iter().flat_map(|auto| &auto.modes);
        modes.filter(|it| it.mode == AutoRebalanceMode::AddBrokers).flat_map(|it| it.brokers.clone()).collect()
    }

    fn set(&self, pool: &str) -> Option<StrimziPodSet> {
        self.live.read("StrimziPodSet", &format!("w-{pool}"))
    }

    /// One look of an operator, who dies after so many writes. How many there would have been.
    pub(super) fn look(&mut self, dies_after: Option<usize>) -> usize {
        let given = Given {
            settings: &self.settings,
            operation_timeout: std::time::Duration::from_secs(300),
            random: || [7; 16],
        };
        let mut decision = decide(&self.seen(false), given);
        if decision.look_closer {
            decision = decide(&self.seen(true), given);
            assert!(!decision.look_closer, "seed {}: there is nothing more to see", self.seed);
        }
        self.told.extend(decision.told.iter().map(|event| event.reason.to_string()));
        let Decision {
            first,
            deeds,
            tracker,
            status,
            acts,
            found_empty,
            found_missing,
            struck_off,
            look_again,
            is_at_rest,
            ..
        } = decision;
        let mut writes = 0;
        let mut lives = || {
            writes += 1;
            dies_after.is_none_or(|end| writes <= end)
        };
        if let Some(first) = first
            && lives()
        {
            self.kafka.status = Some(first);
        }
        for Step { deed, .. } in &deeds {
            if lives() {
                self.perform(deed);
            }
        }
        if tracker != TrackerWrite::Keep && lives() {
            let data = if let TrackerWrite::Write(data) = tracker { json!(data) } else { Value::Null };
            self.put("ConfigMap", &tracker_name("w"), json!({"metadata": {"name": tracker_name("w")}, "data": data}));
        }
        if self.kafka.status.as_ref() != Some(&status) && lives() {
            self.kafka.status = Some(status);
        }
        for act in &acts {
            // These are two writes.
            if matches!(act, Act::Remove { .. } | Act::Withdraw { .. }) && lives() {
                self.begin_act(act);
            }
            if lives() {
                self.act(act);
            }
        }
        // Whoever dies forgets.
        let survives = dies_after.is_none_or(|end| writes <= end);
        self.empty_since = if survives { found_empty } else { BTreeMap::new() };
        self.missing_since = if survives { found_missing } else { BTreeMap::new() };
        self.struck_off = if survives { struck_off } else { BTreeMap::new() };
        self.is_quiet = writes == 0 && look_again.is_none();
        self.look_again = look_again;
        self.is_at_rest = is_at_rest;
        writes
    }

    /// Whether a look finds it at rest.
    pub(super) fn rests(&mut self) -> bool {
        self.look(None);
        self.is_at_rest
    }

    /// How many pods were restarted.
    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    /// What was told since this was last asked.
    pub(super) fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// Another operator takes over, who knows nothing but what is on record.
    pub(super) fn forget(&mut self) {
        (self.empty_since, self.missing_since, self.struck_off) = Default::default();
    }

    /// What the Kafka warns of.
    pub(super) fn warned(&self) -> Vec<String> {
        let conditions = self.kafka.status.iter().flat_map(|status| &status.conditions);
        conditions.filter(|it| it.is_warning()).filter_map(|it| it.message.clone()).collect()
    }

    /// One look of an operator that lives, and what others do then.
    pub(super) fn round(&mut self) {
        self.look(None);
        self.machines();
        self.rebalances_go_on(&mut Dice::new(self.seed));
        self.pass(3);
    }

    /// For a while Kafka does not answer.
    pub(super) fn look_while_kafka_is_away(&mut self) {
        self.is_away = true;
        self.look_often();
        self.is_away = false;
    }

    /// The pause after a look at a Kafka that does not answer for so many seconds.
    pub(super) fn pause_after_silence(&mut self, seconds: i64) -> SignedDuration {
        (self.is_away, self.silence) = (true, SignedDuration::from_secs(seconds));
        self.look(None);
        (self.is_away, self.silence) = (false, SignedDuration::ZERO);
        self.look_again.unwrap().duration_since(self.now)
    }

    /// There is no place for a pod.
    pub(super) fn crowd_out(&mut self, pod: &str) {
        self.unplaced.insert(pod.to_owned());
    }

    /// A pod is gone, and there is no place for another.
    pub(super) fn lose(&mut self, pod: &str) {
        self.running.remove(pod).unwrap();
        self.crowd_out(pod);
    }

    /// Now there is.
    pub(super) fn make_room(&mut self) {
        self.unplaced.clear();
    }

    pub(super) fn look_often(&mut self) {
        for _ in 0..8 {
            self.look(None);
            self.machines();
            self.pass(6);
        }
    }

    /// Nobody dies any more, rebalances come to their end, and all that is not held goes its way.
    pub(super) fn settle(&mut self) {
        let mut dice = Dice::new(self.seed);
        for _ in 0..80 {
            self.look(None);
            self.machines();
            self.rebalances_go_on(&mut dice);
            self.pass(60);
            if self.is_quiet && self.rebalances.is_empty() {
                break;
            }
        }
        let wanted: usize = POOLS.iter().map(|pool| self.pools[*pool].spec.replicas as usize).sum();
        assert_eq!(self.brokers().len(), wanted, "seed {}: as many as the spec says", self.seed);
        let listed: BTreeSet<i32> = self.registered.keys().copied().collect();
        assert_eq!(listed, self.brokers(), "seed {}: whoever went is off Kafka's list", self.seed);
        assert!(self.rebalances.is_empty(), "seed {}: nothing is left behind", self.seed);
        for (name, described) in self.listed() {
            let revision =
                |pod: &Pod| pod.metadata.annotations.as_ref().and_then(|all| all.get(annotations::REVISION)).cloned();
            let runs = self.running.get(&name).and_then(revision);
            assert_eq!(runs, revision(&described), "seed {}: {name} is as it should be", self.seed);
        }
    }

    /// Those of these replicas that have all that there is.
    fn in_sync(&self, replicas: &BTreeSet<i32>) -> BTreeSet<i32> {
        let lives = |id: &&i32| self.registered.get(id) == Some(&false) && !self.lagging.contains(id);
        replicas.iter().filter(lives).copied().collect()
    }

    /// What an operator sees: `closer` or not.
    fn seen(&self, closer: bool) -> Seen {
        let sets: Vec<StrimziPodSet> =
            self.live.of_kind("StrimziPodSet").map(|(_, set)| serde_json::from_value(set.clone()).unwrap()).collect();
        let partitions = self.data.iter().map(|(name, replicas)| Partition {
            name: name.clone(),
            replicas: replicas.clone(),
            going: BTreeSet::new(),
            in_sync: self.in_sync(replicas),
            least_in_sync: Some(1),
        });
        let known = Known {
            cluster_id: String::new(),
            registered: self.registered.clone(),
            partitions: Some(partitions.collect()),
            unread: None,
            closely: closer,
            quorum: closer.then(|| Ok(Quorum { leader: None, voters: Vec::new() })),
            metadata_version: None,
        };
        let mut seen = Seen {
            now: self.now,
            read_at: self.now + self.silence,
            kafka: self.kafka.clone(),
            node_pools: self.pools.values().cloned().collect(),
            pod_sets: sets,
            pods: self.running.values().cloned().collect(),
            live: self.live.clone(),
            rebalances: self.rebalances.values().cloned().collect(),
            further_users: FurtherUsers::Unasked,
            metadata: match (self.is_away, self.registered.is_empty()) {
                (true, _) => Metadata::Unreachable("it does not answer".to_owned()),
                (false, true) => Metadata::Nobody,
                (false, false) => Metadata::Known(known),
            },
            engine: EngineSaid::default(),
            empty_since: self.empty_since.clone(),
            missing_since: self.missing_since.clone(),
            quiet_since: None,
            refused: BTreeMap::new(),
            struck_off: self.struck_off.clone(),
        };
        if !closer
            && questioned(&seen).is_empty()
            && let Metadata::Known(known) = &mut seen.metadata
        {
            known.partitions = None;
        }
        seen
    }

    fn put(&mut self, kind: &str, name: &str, value: Value) {
        self.live.objects.insert((kind.to_owned(), name.to_owned()), value);
    }

    fn perform(&mut self, deed: &Deed) {
        match deed {
            Deed::Apply(desired) | Deed::Create(desired) => {
                if desired.resource.kind == "StrimziPodSet" {
                    self.refuse(&serde_json::from_value(desired.value.clone()).unwrap());
                }
                self.put(&desired.resource.kind, &desired.name, desired.value.clone());
            }
            Deed::Delete { resource, name, .. } => {
                self.live.objects.remove(&(resource.kind.clone(), name.clone()));
            }
            Deed::Annotate { resource, name, key, value, .. } if resource.kind == "Pod" => {
                let notes = self.running.get_mut(name).unwrap().metadata.annotations.get_or_insert_default();
                notes.insert((*key).to_owned(), value.unwrap().to_owned());
            }
            Deed::Annotate { resource, name, key, .. } => {
                let set = self.live.objects.get_mut(&(resource.kind.clone(), name.clone())).unwrap();
                set["metadata"]["annotations"].as_object_mut().unwrap().remove(*key);
            }
            Deed::PoolStatus { pool, status } => {
                self.pools.get_mut(pool).unwrap().status = Some(status.as_ref().clone());
            }
            Deed::Restart { pod, .. } => {
                let id: i32 = pod.rsplit_once('-').unwrap().1.parse().unwrap();
                for (name, replicas) in self.data.iter().filter(|(_, replicas)| replicas.len() > 1) {
                    let in_sync = self.in_sync(replicas);
                    let is_missed = in_sync.contains(&id) && in_sync.len() < 2;
                    assert!(!is_missed, "seed {}: nobody but broker {id} has all of {name}", self.seed);
                }
                self.running.remove(pod);
                self.restarts += 1;
            }
            Deed::Unregister(id) => {
                assert_eq!(self.registered.remove(id), Some(true), "seed {}: broker {id} lives", self.seed);
                assert!(!self.data.values().any(|held| held.contains(id)), "seed {}: broker {id} has data", self.seed);
            }
            Deed::Reconfigure(_) => {}
        }
    }

    /// Complains of a pod set that loses a broker with data, gets one that nobody wants, or has an id that another one has.
    fn refuse(&self, new: &StrimziPodSet) {
        let name = new.metadata.name.as_deref().unwrap();
        let after = ids_of_pod_set(new);
        let before: Option<StrimziPodSet> = self.live.read("StrimziPodSet", name);
        let before = before.map(|set| ids_of_pod_set(&set)).unwrap_or_else(|| after.clone());
        let wanted =
            self.pools.iter().find(|(pool, _)| name == format!("w-{pool}")).map(|(_, pool)| pool.spec.replicas);
        let is_wanted = wanted.is_none_or(|wanted| after.len() <= wanted as usize);
        assert!(is_wanted || after.is_subset(&before), "seed {}: {name} gets {after:?} after {before:?}", self.seed);
        for id in before.difference(&after) {
            let held = self.data.iter().find(|(_, replicas)| replicas.contains(id));
            assert_eq!(held, None, "seed {}: broker {id} goes with its data", self.seed);
        }
        for (other, set) in self.live.of_kind("StrimziPodSet").filter(|(other, _)| *other != name) {
            let taken = ids_of_pod_set(&serde_json::from_value(set.clone()).unwrap());
            assert!(taken.is_disjoint(&after), "seed {}: {other} and {name} share an id", self.seed);
        }
    }

    /// The first of two writes: the finalizer goes, or the command comes.
    fn begin_act(&mut self, act: &Act) {
        if let Act::Remove { name, .. } | Act::Withdraw { name, .. } = act
            && let Some(it) = self.rebalances.get_mut(name)
        {
            if matches!(act, Act::Withdraw { .. }) {
                let notes = it.metadata.annotations.get_or_insert_default();
                notes.insert(annotations::REBALANCE.to_owned(), "stop".to_owned());
                notes.insert(annotations::STOPPED_FOR.to_owned(), "cancelled".to_owned());
                return;
            }
            it.metadata.finalizers = None;
            if it.metadata.deletion_timestamp.is_some() {
                self.rebalances.remove(name);
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let annotated = |it: &mut KafkaRebalance, ask: &str| {
            let notes = it.metadata.annotations.get_or_insert_default();
            notes.insert(annotations::REBALANCE.to_owned(), ask.to_owned());
        };
        match act {
            Act::Create(made) => {
                assert!(self.rebalances.is_empty(), "seed {}: never two at once", self.seed);
                let mut made = made.as_ref().clone();
                made.metadata.uid = Some(self.now.to_string());
                self.rebalances.insert(made.metadata.name.clone().unwrap(), made);
            }
            Act::Update { name, brokers, .. } => {
                let it = self.rebalances.get_mut(name).unwrap();
                it.spec.brokers = Some(brokers.iter().copied().collect());
                annotated(it, "refresh");
            }
            Act::Refresh { name, .. } => annotated(self.rebalances.get_mut(name).unwrap(), "refresh"),
            Act::Withdraw { name, .. } => {
                if let Some(it) = self.rebalances.get_mut(name) {
                    it.metadata.deletion_timestamp = Some(Time(self.now));
                }
            }
            Act::Stop { name, .. } => {
                let it = self.rebalances.get_mut(name).unwrap();
                annotated(it, "stop");
                let notes = it.metadata.annotations.get_or_insert_default();
                notes.insert(annotations::STOPPED_FOR.to_owned(), "cancelled".to_owned());
            }
            Act::Remove { name, .. } => drop(self.rebalances.remove(name)),
            Act::NoteViolations(_) | Act::EmptyViolations { .. } | Act::DeleteViolations => {}
        }
    }

    /// What the rebalance controller and the engine would do: one that was stopped stops, all others get their way.
    pub(super) fn rebalances_go_on(&mut self, dice: &mut Dice) {
        let (generated, _) = sort_rebalances(&self.rebalances.values().cloned().collect::<Vec<_>>(), "w");
        for own in generated {
            let it = self.rebalances.get_mut(&own.name).unwrap();
            let ask = it.metadata.annotations.as_mut().and_then(|notes| notes.remove(annotations::REBALANCE));
            let state = if ask.as_deref() == Some("stop") { "Stopped" } else { "Ready" };
            let brokers: BTreeSet<i32> = it.spec.brokers.iter().flatten().copied().collect();
            it.status = serde_json::from_value(json!({"conditions": [{"type": state, "status": "True",
                "lastTransitionTime": self.now.to_string()}], "observedGeneration": it.metadata.generation}))
            .unwrap();
            let alive = self.registered.iter().filter(|(id, fenced)| !**fenced && !brokers.contains(id));
            let alive: Vec<i32> = alive.map(|(id, _)| *id).collect();
            if state == "Ready" && own.mode == AutoRebalanceMode::RemoveBrokers && !alive.is_empty() {
                for replicas in self.data.values_mut().filter(|replicas| !replicas.is_disjoint(&brokers)) {
                    replicas.retain(|id| !brokers.contains(id));
                    replicas.insert(alive[dice.below(alive.len())]);
                }
            }
        }
    }

    /// What kubelets, the Deployment controller and Kafka do: whoever is listed runs, and brokers register.
    pub(super) fn machines(&mut self) {
        let mut listed = self.listed();
        let mut started = BTreeSet::new();
        let engine = ("Deployment".to_owned(), "w-cruise-control".to_owned());
        if let Some(deployment) = self.live.objects.get_mut(&engine) {
            let up = json!({"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
            deployment["status"] = up;
            let mut pod: Pod = serde_json::from_value(deployment["spec"]["template"].clone()).unwrap();
            pod.metadata.name = Some("w-cruise-control-x".to_owned());
            listed.insert("w-cruise-control-x".to_owned(), pod);
        }
        // Whoever is no longer wanted takes its time to end.
        self.running.retain(|_, pod| pod.metadata.deletion_timestamp.is_none());
        for (_, pod) in self.running.iter_mut().filter(|(name, _)| !listed.contains_key(*name)) {
            pod.metadata.deletion_timestamp = Some(Time(self.now));
        }
        for (name, mut pod) in listed {
            if self.running.contains_key(&name) || self.unplaced.contains(&name) {
                continue;
            }
            pod.metadata.uid = Some(format!("{name}-{}", self.now));
            pod.status = serde_json::from_value(json!({"phase": "Running", "conditions": [{"type": "Ready",
                "status": "True", "lastTransitionTime": self.now.to_string()}]}))
            .unwrap();
            if let Some((id, _)) = pool_of_pod(&pod) {
                started.insert(id);
                let same = self.running.values().filter_map(pool_of_pod).any(|(other, _)| other == id);
                assert!(!same, "seed {}: {name} starts while another node {id} runs", self.seed);
            }
            self.running.insert(name, pod);
        }
        let is_broker = |pod: &Pod| {
            pod.metadata.labels.as_ref().and_then(|all| all.get(labels::BROKER_ROLE)).is_some_and(|it| it == "true")
        };
        let ids = self.running.iter().filter(|(_, pod)| is_broker(pod));
        let up: BTreeSet<i32> = ids.map(|(name, _)| name.rsplit_once('-').unwrap().1.parse().unwrap()).collect();
        self.registered.extend(up.iter().map(|id| (*id, false)));
        self.registered.iter_mut().for_each(|(id, fenced)| *fenced = !up.contains(id));
        // Whoever was back before has caught up by now.
        self.lagging = started;
    }

    /// The pods that are listed, as they should be.
    fn listed(&self) -> BTreeMap<String, Pod> {
        let sets = self.live.of_kind("StrimziPodSet");
        let pods = sets.flat_map(|(_, set)| set.pointer("/spec/pods").and_then(Value::as_array).unwrap());
        let pods = pods.map(|pod| serde_json::from_value::<Pod>(pod.clone()).unwrap());
        pods.map(|pod| (pod.metadata.name.clone().unwrap(), pod)).collect()
    }
}
