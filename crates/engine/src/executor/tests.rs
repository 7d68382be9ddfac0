//! Executions against the simulated cluster's heart: no clock but its own, no wire, every crash.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, ErrorCode, TopicPartition};
use evenkeel_sim::cluster::{Alteration, BrokerSpec, ElectionKind, Fault, NewTopic, Operation, Reassignment, Resource};

use super::*;

mod care;
mod crash;
mod disks;
mod moves;
mod stop;
mod throttle;

const MB: u64 = 1_000_000;
const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";

/// A cluster, an execution on it, and what it left on record.
struct Play {
    cluster: evenkeel_sim::Cluster,
    execution: Execution,
    /// What a next life would find.
    stages: BTreeMap<usize, Stage>,
    throttling: Throttling,
    rates: Rates,
    /// How often data began to move, by partition.
    begun: BTreeMap<TopicPartition, usize>,
    /// The most that was under way at once: in the cluster, and on one broker.
    most: (usize, usize),
    steps: i32,
    /// Whether the cluster takes throttles.
    refuses_throttles: bool,
}

impl Play {
    /// Four brokers with two directories each, and a topic `t` with these replicas of 20 MB.
    fn new(lists: &[&[i32]], moves: &[(i32, &[i32])]) -> Play {
        Play::on(evenkeel_sim::Options::default(), lists, moves)
    }

    fn on(options: evenkeel_sim::Options, lists: &[&[i32]], moves: &[(i32, &[i32])]) -> Play {
        let brokers = (0..4).map(|id| BrokerSpec::new(id).with_dirs(["/d0", "/d1"]));
        let options = evenkeel_sim::Options { session_timeout: 2_000, ..options };
        let mut cluster = evenkeel_sim::Cluster::new(options, brokers);
        cluster.create_topic(&NewTopic::manual("t", lists), false).unwrap();
        for partition in 0..lists.len() as i32 {
            cluster.fill(&evenkeel_sim::TopicPartition::new("t", partition), 20 * MB);
        }
        cluster.tick(1_000);
        let order = order(moves.iter().map(|(partition, new)| {
            let old: Vec<BrokerId> = lists[*partition as usize].iter().copied().map(BrokerId).collect();
            Move {
                partition: TopicPartition::new("t", *partition),
                old_leader: old[0],
                old,
                new: new.iter().copied().map(BrokerId).collect(),
                dirs: Vec::new(),
                bytes: 20 * MB,
            }
        }));
        Play::of(cluster, order)
    }

    fn of(cluster: evenkeel_sim::Cluster, order: Order) -> Play {
        let execution = Execution::new(order);
        let throttling = execution.throttling();
        let stages = BTreeMap::new();
        Play {
            cluster,
            execution,
            stages,
            throttling,
            rates: Rates::default(),
            begun: BTreeMap::new(),
            most: (0, 0),
            steps: 0,
            refuses_throttles: false,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Order)) -> Play {
        let mut order = self.execution.order().clone();
        change(&mut order);
        self.execution = Execution::new(order);
        self.throttling = self.execution.throttling();
        self
    }

    /// What the cluster shows; metadata comes from one broker after the other, each trailing as it does.
    fn look(&self) -> Sight {
        let up: BTreeSet<BrokerId> =
            self.cluster.broker_ids().into_iter().filter(|id| self.cluster.is_reachable(*id)).map(ours).collect();
        let asked: Vec<BrokerId> = up.iter().copied().collect();
        let asked = evenkeel_sim::BrokerId(asked[self.steps as usize % asked.len()].0);
        let listed = self.cluster.describe_brokers(asked, true);
        let fenced: BTreeSet<BrokerId> = listed.iter().filter(|it| it.fenced).map(|it| ours(it.id)).collect();
        let mut sight = Sight {
            now: self.cluster.now(),
            up: listed.iter().map(|it| ours(it.id)).filter(|id| !fenced.contains(id)).collect(),
            registered: listed.iter().map(|it| ours(it.id)).collect(),
            names_all: true,
            ..Sight::default()
        };
        for topic in self.cluster.describe_topics(asked) {
            for partition in topic.partitions {
                let tp = TopicPartition::new(&*topic.name, partition.partition);
                let record = partition.registration;
                let in_sync: Vec<BrokerId> = record.isr.iter().copied().map(ours).collect();
                if in_sync.is_empty() {
                    sight.short.insert(tp.clone());
                }
                sight.partitions.insert(
                    tp,
                    PartitionSight {
                        replicas: record.replicas.iter().copied().map(ours).collect(),
                        in_sync,
                        offline: partition.offline.iter().copied().map(ours).collect(),
                        leader: record.leader.map(ours),
                        min_in_sync: 1,
                    },
                );
            }
        }
        let wanted = self.execution.order().moves.iter().map(|mv| &mv.partition);
        sight.unknown = wanted.filter(|partition| !sight.partitions.contains_key(partition)).cloned().collect();
        for listed in self.cluster.list_reassignments(None) {
            sight.under_way.insert(name(&listed.partition), listed.replicas.into_iter().map(ours).collect());
        }
        for broker in &up {
            for dir in self.cluster.describe_log_dirs(evenkeel_sim::BrokerId(broker.0), None) {
                for replica in dir.replicas {
                    let seen = sight.dirs.entry((*broker, name(&replica.partition))).or_default();
                    if replica.is_future {
                        seen.future = Some((dir.path.clone(), replica.size));
                    } else {
                        (seen.dir, seen.bytes) = (dir.path.clone(), replica.size);
                    }
                }
            }
        }
        sight
    }

    /// One step, recorded and then carried out, except that the process dies before deed number
    /// `dies_at` of it. A later call goes on from the record.
    fn step(&mut self, dies_at: Option<usize>) -> Step {
        self.steps += 1;
        let sight = self.look();
        let step = self.execution.step(&sight);
        if dies_at != Some(0) {
            self.record(&step);
        }
        for (number, action) in step.actions.iter().enumerate() {
            if dies_at.is_some_and(|deed| deed <= number + 1) {
                break;
            }
            self.perform(action);
        }
        if dies_at.is_some() {
            self.execution = self.resumed();
        }
        let moving = sight.under_way.len();
        let busiest = sight
            .registered
            .iter()
            .map(|id| sight.under_way.values().filter(|replicas| replicas[..2].contains(id)).count());
        self.most = (self.most.0.max(moving), self.most.1.max(busiest.max().unwrap_or(0)));
        step
    }

    fn resumed(&self) -> Execution {
        let order = self.execution.order().clone();
        let stopping = self.execution.is_stopping();
        Execution::resume(order, self.stages.clone(), self.throttling, self.rates.clone(), stopping, None)
    }

    fn record(&mut self, step: &Step) {
        for index in &step.changed {
            self.stages.insert(*index, self.execution.tasks()[*index].stage);
        }
        self.throttling = self.execution.throttling();
        self.rates = self.execution.rates();
    }

    fn perform(&mut self, action: &Action) {
        match action {
            Action::LookForRates(brokers) => {
                let rated = |broker: &BrokerId| {
                    let resource = Resource::Broker(evenkeel_sim::BrokerId(broker.0));
                    let settings = self.cluster.describe_configs(evenkeel_sim::BrokerId(broker.0), &resource).unwrap();
                    settings.iter().any(|it| it.name == LEADER_RATE || it.name == FOLLOWER_RATE)
                };
                let found: BTreeSet<BrokerId> = brokers.iter().copied().filter(rated).collect();
                self.execution.rates_were_found(brokers, &found);
            }
            Action::Throttle(_) if self.refuses_throttles => self.execution.throttle_refused("no".to_owned()),
            Action::Throttle(throttle) => {
                self.throttle(throttle, Operation::Set);
                self.execution.throttle_is_set();
            }
            Action::Relist(lists) => self.relist(lists),
            Action::Unthrottle(throttle) => {
                let is_down = |broker: &BrokerId| !self.cluster.is_reachable(evenkeel_sim::BrokerId(broker.0));
                let (down, up) = throttle.brokers.iter().copied().partition(is_down);
                self.throttle(&Throttle { brokers: up, ..throttle.clone() }, Operation::Delete);
                if down.is_empty() {
                    self.execution.throttle_is_lifted();
                } else {
                    self.execution.throttle_remains(&down, &BTreeSet::new());
                }
            }
            Action::Cancel(partitions) => {
                for partition in partitions {
                    self.reassign(partition, None);
                }
            }
            Action::Reassign(targets) => {
                for (partition, target) in targets {
                    self.reassign(partition, Some(target));
                }
            }
            Action::PreferDirs(dirs) | Action::MoveDirs(dirs) => {
                for (broker, partitions) in dirs {
                    for (partition, path) in partitions {
                        let tp = theirs(partition);
                        let answer = self.cluster.alter_replica_log_dir(evenkeel_sim::BrokerId(broker.0), &tp, path);
                        if let (Err(refusal), Action::MoveDirs(_)) = (answer, action) {
                            let code = ErrorCode(refusal.code.number());
                            self.execution.dir_move_refused(*broker, partition, code);
                        }
                    }
                }
            }
            Action::Elect(partitions) => {
                let partitions: Vec<_> = partitions.iter().map(theirs).collect();
                self.cluster.elect_leaders(ElectionKind::Preferred, Some(&partitions));
            }
        }
    }

    fn reassign(&mut self, partition: &TopicPartition, target: Option<&Vec<BrokerId>>) {
        let before = self.cluster.registration(&partition.topic, partition.partition).cloned();
        let is_cancel = target.is_none();
        let target = target.map(|ids| ids.iter().map(|id| evenkeel_sim::BrokerId(id.0)).collect());
        let line = Reassignment { partition: theirs(partition), target };
        let answer = self.cluster.alter_reassignments(&[line], true).remove(0);
        let after = self.cluster.registration(&partition.topic, partition.partition).cloned();
        match answer {
            Err(refusal) if is_cancel => {
                self.execution.cancel_refused(partition, ErrorCode(refusal.code.number()));
            }
            Err(refusal) => {
                self.execution.reassignment_refused(partition, ErrorCode(refusal.code.number()));
            }
            Ok(()) => {
                let adding =
                    |it: &Option<evenkeel_sim::cluster::Registration>| it.as_ref().map_or(0, |it| it.adding.len());
                if adding(&after) > adding(&before) {
                    *self.begun.entry(partition.clone()).or_default() += 1;
                }
            }
        }
    }

    fn relist(&mut self, lists: &Relisting) {
        for topic in lists.topics() {
            let resource = Resource::Topic(topic.clone());
            for list in List::BOTH {
                let Some(value) = lists.applied_to(topic, list, self.listed(topic, list).as_deref()) else { continue };
                let value = Some(value).filter(|value| !value.is_empty());
                let operation = if value.is_some() { Operation::Set } else { Operation::Delete };
                let change = Alteration { name: list.setting().to_owned(), operation, value };
                let _ = self.cluster.incremental_alter_configs(&resource, &[change], false);
            }
        }
    }

    /// What a list of a topic says.
    fn listed(&self, topic: &str, list: List) -> Option<String> {
        let asked = self.cluster.broker_ids()[0];
        let settings = self.cluster.describe_configs(asked, &Resource::Topic(topic.to_owned())).ok()?;
        settings.into_iter().find(|it| it.name == list.setting()).and_then(|it| it.value)
    }

    fn throttle(&mut self, throttle: &Throttle, operation: Operation) {
        let alter = |name: &str, value: String| Alteration {
            name: name.to_owned(),
            operation,
            value: (operation == Operation::Set).then_some(value),
        };
        for broker in &throttle.brokers {
            let rates = [LEADER_RATE, FOLLOWER_RATE].map(|name| alter(name, throttle.rate.to_string()));
            let resource = Resource::Broker(evenkeel_sim::BrokerId(broker.0));
            self.cluster.incremental_alter_configs(&resource, &rates, false).unwrap();
        }
        for (topic, listing) in &throttle.topics {
            let lists = List::BOTH.map(|list| alter(list.setting(), listing.to_string()));
            // A topic that is gone has taken its lists with it.
            let _ = self.cluster.incremental_alter_configs(&Resource::Topic(topic.clone()), &lists, false);
        }
    }

    /// Steps four times a second until it is over.
    fn run(&mut self) -> Ending {
        for _ in 0..4 * 3_600 {
            if let Some(ending) = self.step(None).ending {
                return ending;
            }
            self.cluster.tick(250);
        }
        panic!("not over after an hour: {:?}", self.execution.tasks());
    }

    /// Steps for so long, or until it is over.
    fn run_for(&mut self, millis: i64) {
        for _ in 0..millis / 250 {
            self.step(None);
            self.cluster.tick(250);
        }
    }

    fn replicas(&self, partition: i32) -> Vec<i32> {
        let record = self.cluster.registration("t", partition).unwrap();
        record.replicas.iter().map(|id| id.0).collect()
    }

    fn leader(&self, partition: i32) -> Option<i32> {
        self.cluster.registration("t", partition).unwrap().leader.map(|id| id.0)
    }

    fn ends(&self) -> Vec<Stage> {
        self.execution.tasks().iter().map(|task| task.stage).collect()
    }

    /// No broker and no topic is held back any longer, and nothing moves.
    fn assert_at_rest(&self) {
        assert_eq!(self.cluster.list_reassignments(None), []);
        self.assert_not_held_back();
    }

    fn assert_not_held_back(&self) {
        let ids = self.cluster.broker_ids();
        let topic = self.cluster.topic_id("t").map(|_| (ids[0], Resource::Topic("t".to_owned())));
        for (asked, resource) in ids.into_iter().map(|id| (id, Resource::Broker(id))).chain(topic) {
            let settings = self.cluster.describe_configs(asked, &resource).unwrap();
            let throttled: Vec<_> = settings
                .into_iter()
                .filter(|it| it.name.contains("throttled") && it.value.as_deref().is_some_and(|text| !text.is_empty()))
                .collect();
            assert_eq!(throttled, [], "{resource:?}");
        }
    }
}

fn order(moves: impl IntoIterator<Item = Move>) -> Order {
    Order {
        limits: Limits { per_broker: 2, in_cluster: 3, ..Limits::default() },
        ..Order::of(moves.into_iter().collect(), (0..4).map(BrokerId).collect())
    }
}

fn ours(id: evenkeel_sim::BrokerId) -> BrokerId {
    BrokerId(id.0)
}

fn name(tp: &evenkeel_sim::TopicPartition) -> TopicPartition {
    TopicPartition::new(&*tp.topic, tp.partition)
}

fn theirs(tp: &TopicPartition) -> evenkeel_sim::TopicPartition {
    evenkeel_sim::TopicPartition::new(tp.topic.as_str(), tp.partition)
}
