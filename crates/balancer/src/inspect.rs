//! A second pair of eyes on a plan: what must never happen, whoever made the plan and for whatever
//! goal.
//!
//! Shares nothing with the optimiser but the cluster and the request: the eligibility rules are written
//! down here once more, from their definition and about the plan's outcome, not about its steps. It must
//! never use the search, the compiled goals or the compiled rules, or it would repeat their mistakes.
//! It runs in every test and before every execution; a plan with findings is not to be executed.

use std::collections::BTreeSet;
use std::fmt;

use crate::cluster::{Broker, BrokerId, BrokerState, Cluster, DiskState, PartitionView, ReplicaSpec};
use crate::goal::Goal;
use crate::options::{Operation, Request};
use crate::plan::{Change, Plan};

/// Something that must never happen, and yet is in the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The partition's topic and number; none if the plan as a whole is wrong.
    pub partition: Option<(String, i32)>,
    /// What is wrong.
    pub wrong: Wrong,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.partition {
            Some((topic, number)) => write!(f, "{topic}-{number}: {}", self.wrong),
            None => write!(f, "the plan: {}", self.wrong),
        }
    }
}

/// What can be wrong with a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// The cluster has no such partition.
    #[error("there is no such partition")]
    UnknownPartition,
    /// The partition has two changes, of which only one can happen.
    #[error("is listed twice")]
    ListedTwice,
    /// The old list or leader is not what the cluster has.
    #[error("is not as the plan says it was found")]
    NotAsFound,
    /// Nothing changes.
    #[error("changes nothing")]
    NoChange,
    /// The number of replicas changes.
    #[error("{old} replicas become {new}")]
    FactorChanged {
        /// Replicas now.
        old: usize,
        /// Replicas to be.
        new: usize,
    },
    /// A broker holds two replicas.
    #[error("two replicas on broker {0}")]
    TwiceOnBroker(BrokerId),
    /// The cluster has no such broker.
    #[error("there is no broker {0}")]
    UnknownBroker(BrokerId),
    /// The leader is not the first of the list.
    #[error("the leader, broker {0}, is not the first of the list")]
    LeaderNotFirst(BrokerId),
    /// The moves do not lead from the old list to the new one.
    #[error("the moves told are not from the brokers that lose a replica to those that get one")]
    Moves,
    /// A broker gets a replica that it must not get.
    #[error("broker {to} gets a replica, but {why}")]
    Ineligible {
        /// Who gets it.
        to: BrokerId,
        /// Why it must not.
        why: Bar,
    },
    /// A broker gets leadership that it must not get.
    #[error("broker {to} gets leadership, but {why}")]
    MayNotLead {
        /// Who gets it.
        to: BrokerId,
        /// Why it must not.
        why: Bar,
    },
    /// A replica that serves leaves although it must stay.
    #[error("the replica on broker {from} serves and leaves, but {why}")]
    MustStay {
        /// Where it is.
        from: BrokerId,
        /// Why it must stay.
        why: Bar,
    },
    /// A replica leaves of which a copy that makes up for it is on its way to another broker already.
    #[error("the replica on broker {from} leaves for another broker than the one that a copy is on its way to")]
    ReplacedTwice {
        /// Where it is.
        from: BrokerId,
    },
    /// An offline replica is left behind although another broker could take it.
    #[error("the offline replica on broker {on} stays, although broker {free} could take it")]
    LeftOffline {
        /// Where it is.
        on: BrokerId,
        /// Who could take it.
        free: BrokerId,
    },
    /// A disk that is not there, or not what the plan says of it.
    #[error("disk `{disk}` of broker {broker} {problem}")]
    Disk {
        /// Whose.
        broker: BrokerId,
        /// Its name.
        disk: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The bytes are not those of the replicas that move.
    #[error("{told} MB {between} are told, {counted} MB are counted")]
    Bytes {
        /// Between brokers or between disks.
        between: &'static str,
        /// What the plan says.
        told: f64,
        /// What the replicas weigh.
        counted: f64,
    },
    /// More changes than the budget allows.
    #[error("{changes} changes, the budget allows {allowed}")]
    TooManyChanges {
        /// In the plan.
        changes: usize,
        /// In the budget.
        allowed: usize,
    },
    /// More bytes than the budget allows.
    #[error("{megabytes} MB, the budget allows {allowed}")]
    TooManyBytes {
        /// In the plan.
        megabytes: f64,
        /// In the budget.
        allowed: f64,
    },
}

/// What stands against a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bar {
    /// The broker is dead, or to be removed.
    #[error("it is dead")]
    Dead,
    /// Destinations are named, and it is not among them.
    #[error("it is not among the destinations")]
    NotADestination,
    /// It is excluded for replica moves.
    #[error("it is excluded for replica moves")]
    ExcludedForReplicaMoves,
    /// It is excluded for leadership.
    #[error("it is excluded for leadership")]
    ExcludedForLeadership,
    /// It is demoted.
    #[error("it is demoted")]
    Demoted,
    /// There are new brokers, and it is none.
    #[error("only new brokers may")]
    NotNew,
    /// Its replica does not serve.
    #[error("its replica is offline")]
    Offline,
    /// The topic is excluded.
    #[error("the topic is excluded")]
    ExcludedTopic,
    /// A reassignment is under way.
    #[error("the partition is being reassigned already")]
    BeingReassigned,
    /// Only replicas that are out of place may move.
    #[error("only immigrant replicas may move")]
    NotAnImmigrant,
    /// Electing leaders, demoting brokers and tidying disks copies nothing from broker to broker.
    #[error("nothing is to be copied between brokers")]
    NothingIsCopied,
}

/// Looks for what must never happen; a sound plan has no findings.
pub fn inspect(cluster: &Cluster, request: &Request, plan: &Plan) -> Vec<Finding> {
    let mut inspector = Inspector { cluster, request, has_new: false, findings: Vec::new() };
    // Demotion gives nobody anything to hold, so new brokers have no precedence.
    let demotes = matches!(request.operation, Operation::DemoteBrokers(_));
    // One that can hold nothing is no reason to keep others from getting anything.
    let takes_all = |broker: &Broker| inspector.is_new(broker) && !inspector.is_dead(broker);
    inspector.has_new = !demotes && cluster.brokers().iter().any(takes_all);
    let mut seen: BTreeSet<(&str, i32)> = BTreeSet::new();
    for change in &plan.changes {
        let number = cluster.find(&change.topic, change.partition);
        match number.map(|number| cluster.partition(number as usize)) {
            None => inspector.find(change, Wrong::UnknownPartition),
            Some(_) if !seen.insert((&change.topic, change.partition)) => inspector.find(change, Wrong::ListedTwice),
            Some(found) => inspector.change(found, change),
        }
    }
    inspector.budget(plan);
    if request.budget.megabytes.is_none() && request.budget.moves.is_none() {
        inspector.untouched(&seen);
        inspector.removed_disks(plan);
    }
    inspector.findings
}

struct Inspector<'a> {
    cluster: &'a Cluster,
    request: &'a Request,
    has_new: bool,
    findings: Vec<Finding>,
}

impl Inspector<'_> {
    fn find(&mut self, change: &Change, wrong: Wrong) {
        self.findings.push(Finding { partition: Some((change.topic.clone(), change.partition)), wrong });
    }

    fn change(&mut self, found: PartitionView<'_>, change: &Change) {
        let before: Vec<ReplicaSpec> = found.replicas().collect();
        let old: Vec<BrokerId> = before.iter().map(|replica| replica.broker).collect();
        if old != change.old_replicas || old[found.leader()] != change.old_leader {
            // Everything else would only repeat that the plan is about another cluster.
            return self.find(change, Wrong::NotAsFound);
        }
        if change.old_replicas == change.new_replicas
            && change.old_leader == change.new_leader
            && change.disks.is_empty()
        {
            self.find(change, Wrong::NoChange);
        }
        if change.new_replicas.len() != old.len() {
            self.find(change, Wrong::FactorChanged { old: old.len(), new: change.new_replicas.len() });
        }
        for (position, id) in change.new_replicas.iter().enumerate() {
            if change.new_replicas[..position].contains(id) {
                self.find(change, Wrong::TwiceOnBroker(*id));
            }
            if self.cluster.broker(*id).is_none() {
                self.find(change, Wrong::UnknownBroker(*id));
            }
        }
        // A change between disks alone leaves list and leader as they are, whatever they are.
        let same = change.new_replicas == change.old_replicas && change.new_leader == change.old_leader;
        if !same && change.new_replicas.first() != Some(&change.new_leader) {
            self.find(change, Wrong::LeaderNotFirst(change.new_leader));
        }
        self.moves(change);
        self.destinations(change);
        self.leadership(&before, change);
        self.departures(&before, change);
        self.leftovers(found, &change.new_replicas, change.new_leader);
        self.disks(&before, change);
        self.bytes(&before, change);
    }

    /// Every broker that loses a replica is where one move begins, every one that gets one where one ends. Lists that
    /// cannot be matched have been found wrong already.
    fn moves(&mut self, change: &Change) {
        let sorted = |mut ids: Vec<BrokerId>| {
            ids.sort_unstable();
            ids
        };
        let gone = change.old_replicas.iter().copied().filter(|broker| !change.new_replicas.contains(broker));
        let (gone, added) = (sorted(gone.collect()), sorted(change.added().collect()));
        let (from, to): (Vec<BrokerId>, Vec<BrokerId>) = change.moves.iter().copied().unzip();
        if gone.len() == added.len() && (sorted(from) != gone || sorted(to) != added) {
            self.find(change, Wrong::Moves);
        }
    }

    fn destinations(&mut self, change: &Change) {
        for to in change.added() {
            let copies = if self.moves_between_brokers() { None } else { Some(Bar::NothingIsCopied) };
            let why = copies.or_else(|| self.bar_to_replicas(self.cluster.broker(to)?));
            if let Some(why) = why {
                self.find(change, Wrong::Ineligible { to, why });
            }
        }
    }

    /// Why the broker must not get a replica it does not have.
    fn bar_to_replicas(&self, broker: &Broker) -> Option<Bar> {
        if self.is_dead(broker) {
            Some(Bar::Dead)
        } else if !self.request.destinations.is_empty() {
            (!self.request.destinations.contains(&broker.id)).then_some(Bar::NotADestination)
        } else if self.request.excluded_for_replica_moves.contains(&broker.id) {
            Some(Bar::ExcludedForReplicaMoves)
        } else {
            (self.has_new && !self.is_new(broker)).then_some(Bar::NotNew)
        }
    }

    fn leadership(&mut self, before: &[ReplicaSpec], change: &Change) {
        if change.new_leader == change.old_leader {
            return;
        }
        let to = change.new_leader;
        let Some(broker) = self.cluster.broker(to) else { return };
        let old_serves = before.iter().any(|replica| replica.broker == change.old_leader && self.serves(replica));
        let offline = before.iter().any(|replica| replica.broker == to && !self.serves(replica));
        // Whoever is left leads, unless the leader is being replaced already.
        let stays = old_serves || self.is_relieved(&change.topic, change.partition, before);
        // Whoever follows the last leader may have to be an old broker if that one is gone.
        let only_new = self.has_new && self.request.destinations.is_empty() && old_serves;
        let why = self.bar_to_leadership(broker).or_else(|| {
            if offline {
                Some(Bar::Offline)
            } else if only_new && !self.is_new(broker) {
                Some(Bar::NotNew)
            } else if old_serves && self.is_excluded(&change.topic) {
                Some(Bar::ExcludedTopic)
            } else if stays && self.is_moving(change) {
                Some(Bar::BeingReassigned)
            } else {
                // A leader that serves is in its place.
                (old_serves && self.request.only_immigrants).then_some(Bar::NotAnImmigrant)
            }
        });
        if let Some(why) = why {
            self.find(change, Wrong::MayNotLead { to, why });
        }
    }

    /// Why the broker must not lead what it does not lead.
    fn bar_to_leadership(&self, broker: &Broker) -> Option<Bar> {
        if self.is_dead(broker) {
            Some(Bar::Dead)
        } else if self.request.excluded_for_leadership.contains(&broker.id) {
            Some(Bar::ExcludedForLeadership)
        } else {
            self.is_demoted(broker).then_some(Bar::Demoted)
        }
    }

    fn departures(&mut self, before: &[ReplicaSpec], change: &Change) {
        let gone = before.iter().filter(|replica| !change.new_replicas.contains(&replica.broker));
        let (stays, must_leave): (Vec<&ReplicaSpec>, Vec<&ReplicaSpec>) =
            gone.partition(|replica| self.serves(replica));
        if self.is_relieved(&change.topic, change.partition, before) {
            must_leave.iter().for_each(|replica| self.find(change, Wrong::ReplacedTwice { from: replica.broker }));
        }
        for replica in stays {
            let why = if self.is_excluded(&change.topic) {
                Bar::ExcludedTopic
            } else if self.is_moving(change) {
                Bar::BeingReassigned
            } else if self.request.only_immigrants {
                Bar::NotAnImmigrant
            } else {
                continue;
            };
            self.find(change, Wrong::MustStay { from: replica.broker, why });
        }
    }

    /// Offline replicas of partitions that the plan does not mention.
    fn untouched(&mut self, mentioned: &BTreeSet<(&str, i32)>) {
        for found in self.cluster.partitions() {
            if !mentioned.contains(&(found.topic(), found.number())) {
                let list: Vec<BrokerId> = found.replicas().map(|replica| replica.broker).collect();
                let leader = list[found.leader()];
                self.leftovers(found, &list, leader);
            }
        }
    }

    /// Offline replicas that stay where they are. Those whose place is out of the request's reach
    /// stay unreported: nobody could do better.
    fn leftovers(&mut self, found: PartitionView<'_>, list: &[BrokerId], leader: BrokerId) {
        if !self.moves_between_brokers() {
            return;
        }
        for replica in found.replicas() {
            if self.serves(&replica) || !list.contains(&replica.broker) {
                continue;
            }
            let before: Vec<ReplicaSpec> = found.replicas().collect();
            if self.is_relieved(found.topic(), found.number(), &before) {
                return;
            }
            let mut free = self.cluster.brokers().iter().filter(|broker| {
                // Not even the brokers that lose a replica to a failed disk.
                !list.contains(&broker.id)
                    && found.replicas().all(|other| other.broker != broker.id || self.serves(&other))
                    && self.bar_to_replicas(broker).is_none()
                    // Nor those that a copy is on its way to already.
                    && !self.awaits_one(found, broker.id)
                    && (replica.broker != leader || self.bar_to_leadership(broker).is_none())
            });
            if let Some(free) = free.next() {
                let wrong = Wrong::LeftOffline { on: replica.broker, free: free.id };
                let partition = Some((found.topic().to_owned(), found.number()));
                self.findings.push(Finding { partition, wrong });
            }
        }
    }

    /// Replicas in log directories that are to be removed, and that no change takes out of them.
    fn removed_disks(&mut self, plan: &Plan) {
        if !matches!(self.request.operation, Operation::RemoveDisks(_)) {
            return;
        }
        let leave: BTreeSet<(&str, i32, BrokerId)> = plan
            .changes
            .iter()
            .flat_map(|change| change.disks.iter().map(|disk| (change.topic.as_str(), change.partition, disk.broker)))
            .collect();
        for found in self.cluster.partitions() {
            for replica in found.replicas() {
                let broker = self.cluster.broker(replica.broker);
                let disk = broker.and_then(|broker| broker.disks.get(replica.disk?));
                let Some(disk) = disk.filter(|disk| self.is_removed(replica.broker, &disk.name)) else { continue };
                if !leave.contains(&(found.topic(), found.number(), replica.broker)) {
                    let (broker, disk) = (replica.broker, disk.name.clone());
                    let wrong = Wrong::Disk { broker, disk, problem: "is to be removed and keeps the replica" };
                    let partition = Some((found.topic().to_owned(), found.number()));
                    self.findings.push(Finding { partition, wrong });
                }
            }
        }
    }

    fn disks(&mut self, before: &[ReplicaSpec], change: &Change) {
        for (at, disk) in change.disks.iter().enumerate() {
            let again = change.disks[..at].iter().any(|other| other.broker == disk.broker);
            let Some(broker) = self.cluster.broker(disk.broker) else {
                self.find(change, Wrong::UnknownBroker(disk.broker));
                continue;
            };
            let stays = before.iter().find(|replica| replica.broker == disk.broker);
            let now = stays.and_then(|replica| replica.disk).map(|index| &broker.disks[index]);
            let target = broker.disks.iter().find(|candidate| candidate.name == disk.to);
            let dead = |state: DiskState| state != DiskState::Alive || self.is_removed(disk.broker, &disk.to);
            let (name, problem) = match (now, target) {
                _ if again => (&disk.to, "is the second one for the same replica"),
                _ if !change.new_replicas.contains(&disk.broker) => (&disk.to, "gets a replica the broker has not"),
                (_, None) => (&disk.to, "is not listed"),
                (_, Some(target)) if dead(target.state) => (&disk.to, "gets a replica and does not serve"),
                (Some(now), _) if now.name != disk.from => (&disk.from, "does not hold the replica"),
                (None, _) if !disk.from.is_empty() => (&disk.from, "does not hold the replica"),
                (Some(now), Some(target)) if now.name == target.name => (&disk.to, "holds the replica already"),
                _ => continue,
            };
            let (broker, disk) = (disk.broker, name.clone());
            self.find(change, Wrong::Disk { broker, disk, problem });
        }
    }

    fn bytes(&mut self, before: &[ReplicaSpec], change: &Change) {
        let weight = |counts: &dyn Fn(&ReplicaSpec) -> bool| -> f64 {
            let counted = before.iter().filter(|replica| counts(replica));
            counted.fold(0.0, |sum, replica| sum + f64::from(replica.load.disk))
        };
        // Where nobody has the data there is nothing to copy.
        let is_alive = |id: BrokerId| self.cluster.broker(id).is_some_and(Broker::is_alive);
        let is_named =
            |id: BrokerId| matches!(&self.request.operation, Operation::RemoveBrokers(ids) if ids.contains(&id));
        let is_removed = |id: BrokerId| !is_alive(id) && is_named(id);
        let is_lost = before.iter().all(|replica| replica.offline && !is_removed(replica.broker));
        let gone = weight(&|replica| !is_lost && !change.new_replicas.contains(&replica.broker));
        let shifted = weight(&|replica| change.disks.iter().any(|disk| disk.broker == replica.broker));
        for (between, told, counted) in
            [("between brokers", change.megabytes, gone), ("between disks", change.disk_megabytes, shifted)]
        {
            // Sums of the same numbers in another order; what is not a number is never right.
            let right = (told - counted).abs() <= 1e-6 * counted.max(1.0);
            if !right {
                self.find(change, Wrong::Bytes { between, told, counted });
            }
        }
    }

    fn budget(&mut self, plan: &Plan) {
        let budget = self.request.budget;
        if let Some(allowed) = budget.moves.filter(|allowed| plan.changes.len() > *allowed) {
            let wrong = Wrong::TooManyChanges { changes: plan.changes.len(), allowed };
            self.findings.push(Finding { partition: None, wrong });
        }
        let bytes = |change: &Change| change.megabytes + change.disk_megabytes;
        let megabytes = plan.changes.iter().fold(0.0, |sum, change| sum + bytes(change));
        if let Some(allowed) = budget.megabytes.filter(|allowed| megabytes > *allowed * (1.0 + 1e-9)) {
            self.findings.push(Finding { partition: None, wrong: Wrong::TooManyBytes { megabytes, allowed } });
        }
    }

    fn serves(&self, replica: &ReplicaSpec) -> bool {
        !replica.offline && !self.cluster.broker(replica.broker).is_none_or(|broker| self.is_dead(broker))
    }

    fn is_dead(&self, broker: &Broker) -> bool {
        let removed = matches!(&self.request.operation, Operation::RemoveBrokers(ids) if ids.contains(&broker.id));
        // Who has no disk left that serves can hold nothing; inside brokers that is a matter of its own.
        let inside = matches!(self.request.operation, Operation::RebalanceDisks | Operation::RemoveDisks(_));
        let serves = broker.disks.is_empty() || broker.disks.iter().any(|disk| disk.state == DiskState::Alive);
        broker.state == BrokerState::Dead || removed || (!serves && !inside)
    }

    fn is_new(&self, broker: &Broker) -> bool {
        match &self.request.operation {
            Operation::AddBrokers(ids) if ids.contains(&broker.id) => true,
            // What the operation makes of a broker replaces what it was.
            Operation::RemoveBrokers(ids) | Operation::DemoteBrokers(ids) if ids.contains(&broker.id) => false,
            _ => broker.state == BrokerState::New,
        }
    }

    fn is_demoted(&self, broker: &Broker) -> bool {
        match &self.request.operation {
            Operation::DemoteBrokers(ids) if ids.contains(&broker.id) => true,
            Operation::AddBrokers(ids) if ids.contains(&broker.id) => false,
            _ => broker.state == BrokerState::Demoted,
        }
    }

    fn is_removed(&self, broker: BrokerId, disk: &str) -> bool {
        match &self.request.operation {
            Operation::RemoveDisks(disks) => disks.iter().any(|(id, name)| *id == broker && name == disk),
            _ => false,
        }
    }

    /// Whether the request is about brokers at all; leadership and disks leave offline replicas be.
    fn moves_between_brokers(&self) -> bool {
        let moves = |goal: &Goal| goal.moves_replicas() && goal.is_measurable(self.cluster.unknown());
        match self.request.operation {
            Operation::DemoteBrokers(_) | Operation::RemoveDisks(_) | Operation::RebalanceDisks => false,
            Operation::RemoveBrokers(_) | Operation::FixOfflineReplicas => true,
            Operation::Rebalance | Operation::AddBrokers(_) => self.request.goals_in_force().iter().any(moves),
        }
    }

    fn is_excluded(&self, topic: &str) -> bool {
        self.request.excluded_topics.as_ref().is_some_and(|pattern| pattern.matches(topic))
    }

    fn awaits_one(&self, found: PartitionView<'_>, id: BrokerId) -> bool {
        let part = self.cluster.find(found.topic(), found.number());
        let awaited = part.zip(self.cluster.seat_of(id));
        awaited.is_some_and(|awaited| self.cluster.pending().binary_search(&awaited).is_ok())
    }

    /// Whether replicas of the partition must leave, and for each of them a copy is on its way to a broker that lives.
    fn is_relieved(&self, topic: &str, partition: i32, before: &[ReplicaSpec]) -> bool {
        let Some(part) = self.cluster.find(topic, partition) else { return false };
        let brokers = self.cluster.copies(part).map(|seat| &self.cluster.brokers()[usize::from(seat)]);
        let copies = brokers.filter(|broker| !self.is_dead(broker)).count();
        let leaving = before.iter().filter(|replica| !self.serves(replica)).count();
        (1..=copies).contains(&leaving)
    }

    fn is_moving(&self, change: &Change) -> bool {
        let part = self.cluster.find(&change.topic, change.partition);
        part.is_some_and(|part| self.cluster.pending().binary_search_by_key(&part, |(moving, _)| *moving).is_ok())
    }
}
