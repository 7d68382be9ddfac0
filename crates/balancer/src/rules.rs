//! Who may go where: the eligibility rules, compiled for one request on one cluster.

use std::collections::BTreeSet;

use crate::cluster::{BrokerId, BrokerState, Cluster, Part, Seat, Slot};
use crate::held::Rule;
use crate::options::{Operation, Request};
use crate::state::State;

/// Why a request cannot be carried out at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// A broker nobody knows.
    #[error("broker {0} is not part of the cluster")]
    UnknownBroker(BrokerId),
    /// A broker that cannot do what is asked because it is dead.
    #[error("broker {0} is dead")]
    DeadBroker(BrokerId),
    /// A broker of which two things are asked that exclude each other.
    #[error("broker {0} is to be {1}, and yet {2}")]
    Contradiction(BrokerId, &'static str, &'static str),
    /// Nowhere to move anything.
    #[error("All alive brokers are excluded from replica moves.")]
    NoDestination,
    /// `fix_offline_replicas` without any.
    #[error("there is no offline replica to fix")]
    NothingOffline,
    /// Only goals that need what nobody measured.
    #[error("no goal is left: {0} not measured")]
    NothingMeasured(String),
    /// Goals inside brokers, where log directories are not told apart.
    #[error("the log directories of the brokers are not known one by one")]
    NoDisks,
    /// A log directory nobody knows, or one that failed.
    #[error("Invalid log dirs provided for broker {0}.")]
    InvalidLogDirs(BrokerId),
    /// A log directory is to be emptied, and nobody knows whether it holds so many of the broker's replicas.
    #[error(
        "broker {0}: nobody knows in which log directory {1} of its replicas lie, and one that is to be removed may hold \
         them"
    )]
    UnknownLogDirs(BrokerId, usize),
    /// All log directories are to be removed.
    #[error("No log dir remaining to move replicas to for broker {0}.")]
    NoLogDirLeft(BrokerId),
    /// The log directories that remain are too small.
    #[error("Not enough remaining capacity to move replicas to for broker {0}.")]
    NotEnoughCapacity(BrokerId),
    /// A pattern of topics that cannot be matched with one of them.
    #[error(
        "the pattern of topics takes too many steps on topic {0}: repeat nothing that repeats, and do not refer back"
    )]
    Pattern(String),
    /// A goal that has no place in the operation.
    #[error("{0}")]
    Misplaced(String),
}

/// The brokers that may get a certain replica.
pub(crate) struct Receivers<'r> {
    rules: &'r Rules,
    leads: bool,
    /// Not though they might get others.
    barred: Vec<Seat>,
    /// Where it was found, if it may return there.
    home: Option<Seat>,
}

impl Receivers<'_> {
    pub(crate) fn contains(&self, seat: Seat) -> bool {
        self.home == Some(seat) || (self.rules.is_open(seat, self.leads) && !self.barred.contains(&seat))
    }
}

/// The eligibility rules of one request.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Brokers' states with the operation taken into account.
    pub(crate) states: Vec<BrokerState>,
    /// Whether brokers are being removed or replicas are offline: then soft goals move only replicas that
    /// had to move anyway.
    pub(crate) healing: bool,
    has_new: bool,
    /// Destinations asked for by name override exclusions and the rule of new brokers.
    named_destinations: bool,
    takes_replicas: Vec<bool>,
    takes_leaders: Vec<bool>,
    /// Brokers whose share of the whole counts in means.
    pub(crate) counted: Vec<bool>,
    topic_excluded: Vec<bool>,
    offline: Vec<bool>,
    frozen: Vec<Part>,
    /// Those of which as many copies are on their way to brokers that live as replicas must leave, ascending.
    relieved: Vec<Part>,
    only_immigrants: bool,
}

impl Rules {
    pub(crate) fn compile(cluster: &Cluster, request: &Request) -> Result<Rules, BadRequest> {
        let mut states: Vec<BrokerState> = cluster.brokers().iter().map(|broker| broker.state).collect();
        let (marked, mark) = match &request.operation {
            Operation::AddBrokers(ids) => (Some(ids), BrokerState::New),
            Operation::RemoveBrokers(ids) => (Some(ids), BrokerState::Dead),
            Operation::DemoteBrokers(ids) => (Some(ids), BrokerState::Demoted),
            _ => (None, BrokerState::Alive),
        };
        // A broker that has lost all its disks can hold nothing, as if it were gone. What happens inside brokers is another
        // matter: that is refused there, with a reason of its own.
        if !matches!(request.operation, Operation::RebalanceDisks | Operation::RemoveDisks(_)) {
            let lost = cluster.brokers().iter().zip(&mut states).filter(|(broker, _)| broker.has_lost_all_disks());
            lost.for_each(|(_, state)| *state = BrokerState::Dead);
        }
        for id in marked.into_iter().flatten() {
            let seat = usize::from(cluster.seat_of(*id).ok_or(BadRequest::UnknownBroker(*id))?);
            if states[seat] == BrokerState::Dead && mark != BrokerState::Dead {
                return Err(BadRequest::DeadBroker(*id));
            }
            states[seat] = mark;
        }
        for id in &request.destinations {
            cluster.seat_of(*id).ok_or(BadRequest::UnknownBroker(*id))?;
        }
        let contradicts =
            |ids: &BTreeSet<BrokerId>, others: &BTreeSet<BrokerId>| ids.intersection(others).next().copied();
        let contradiction = match &request.operation {
            Operation::RemoveBrokers(ids) => {
                contradicts(ids, &request.destinations).map(|id| (id, "removed", "a destination"))
            }
            // Destinations override exclusions.
            Operation::AddBrokers(ids) if request.destinations.is_empty() => {
                let excluded = &request.excluded_for_replica_moves;
                contradicts(ids, excluded).map(|id| (id, "added", "excluded from replica moves"))
            }
            _ => None,
        };
        if let Some((id, one, other)) = contradiction {
            return Err(BadRequest::Contradiction(id, one, other));
        }
        let lives: Vec<bool> = states.iter().map(|state| *state != BrokerState::Dead).collect();
        let named = !request.destinations.is_empty();
        let each = |rule: &dyn Fn(usize, BrokerId) -> bool| -> Vec<bool> {
            cluster.brokers().iter().enumerate().map(|(seat, broker)| rule(seat, broker.id)).collect()
        };
        let counted = each(&|seat, id| lives[seat] && !request.excluded_for_replica_moves.contains(&id));
        if !counted.contains(&true) {
            return Err(BadRequest::NoDestination);
        }
        let takes_replicas =
            if named { each(&|seat, id| lives[seat] && request.destinations.contains(&id)) } else { counted.clone() };
        let takes_leaders = each(&|seat, id| {
            lives[seat] && states[seat] != BrokerState::Demoted && !request.excluded_for_leadership.contains(&id)
        });
        let offline: Vec<bool> = (0..cluster.replica_count() as Slot)
            .map(|slot| !lives[usize::from(cluster.seats()[slot as usize])] || cluster.is_offline(slot))
            .collect();
        let any_offline = offline.contains(&true);
        if request.operation == Operation::FixOfflineReplicas && !any_offline {
            return Err(BadRequest::NothingOffline);
        }
        let topics = cluster.topics().iter().map(String::as_str);
        if let Some(topic) = request.excluded_topics.as_ref().and_then(|pattern| pattern.undecided(topics)) {
            return Err(BadRequest::Pattern(topic.to_owned()));
        }
        let excluded = |name: &String| request.excluded_topics.as_ref().is_some_and(|pattern| pattern.matches(name));
        let mut frozen: Vec<Part> = cluster.pending().iter().map(|(part, _)| *part).collect();
        frozen.dedup();
        let is_relieved = |part: &Part| {
            let copies = cluster.copies(*part).filter(|to| lives[usize::from(*to)]).count();
            let leaving = cluster.slots(*part).filter(|slot| offline[*slot as usize]).count();
            (1..=copies).contains(&leaving)
        };
        let relieved = if any_offline { frozen.iter().copied().filter(is_relieved).collect() } else { Vec::new() };
        Ok(Rules {
            // A broker that died empty leaves nothing to heal; one that is removed stays so once it is empty.
            healing: any_offline || matches!(request.operation, Operation::RemoveBrokers(_)),
            // Demotion gives nobody anything to hold, so whoever follows may lead.
            has_new: states.contains(&BrokerState::New) && !matches!(request.operation, Operation::DemoteBrokers(_)),
            named_destinations: named,
            takes_replicas,
            takes_leaders,
            counted,
            topic_excluded: cluster.topics().iter().map(excluded).collect(),
            offline,
            frozen,
            relieved,
            only_immigrants: request.only_immigrants,
            states,
        })
    }

    pub(crate) fn is_alive(&self, seat: Seat) -> bool {
        self.states[usize::from(seat)] != BrokerState::Dead
    }

    pub(crate) fn is_excluded(&self, topic: u32) -> bool {
        self.topic_excluded[topic as usize]
    }

    /// Whether no goal may move the partition's replicas: its topic is excluded, or it is being reassigned already. Goals
    /// about single partitions do not count it then: the copy under way may be the very cure.
    pub(crate) fn is_fixed(&self, state: &State<'_>, part: Part) -> bool {
        self.is_excluded(state.cluster.topic_of(part)) || self.is_moving(part)
    }

    /// Whether a reassignment of the partition is under way.
    fn is_moving(&self, part: Part) -> bool {
        self.frozen.binary_search(&part).is_ok()
    }

    /// Whether the copies of the partition that are on their way make up for every replica that must leave it. Which of its
    /// replicas a copy replaces is not known; but to copy once more would throw away what is copied already, and most often
    /// it is this very removal or repair that is under way. So the partition is left alone until the copies are there.
    fn is_relieved(&self, part: Part) -> bool {
        self.relieved.binary_search(&part).is_ok()
    }

    /// The replicas that must leave and are being replaced already.
    pub(crate) fn relieved(&self, state: &State<'_>) -> impl Iterator<Item = Slot> {
        let slots: Vec<Slot> = self.relieved.iter().flat_map(|part| state.cluster.slots(*part)).collect();
        slots.into_iter().filter(|slot| self.is_offline(*slot))
    }

    /// The replicas that must leave and that nobody is replacing, ascending.
    pub(crate) fn stranded(&self, state: &State<'_>) -> impl Iterator<Item = Slot> {
        self.offline().filter(|slot| !self.is_relieved(state.cluster.part_of(*slot)))
    }

    /// How many topics are left alone.
    pub(crate) fn excluded_topics(&self) -> usize {
        self.topic_excluded.iter().filter(|excluded| **excluded).count()
    }

    /// Whether the replica cannot stay where it is now.
    pub(crate) fn must_move(&self, state: &State<'_>, slot: Slot) -> bool {
        self.offline[slot as usize] && state.seat(slot) == state.home(slot)
    }

    /// Whether the replica could not stay where it was found.
    pub(crate) fn is_offline(&self, slot: Slot) -> bool {
        self.offline[slot as usize]
    }

    /// The offline slots, ascending.
    pub(crate) fn offline(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.offline.len() as Slot).filter(|slot| self.offline[*slot as usize])
    }

    /// Whether a goal may move the replica; soft ones may do less while the cluster is being healed.
    pub(crate) fn may_move(&self, state: &State<'_>, slot: Slot, hard: bool) -> bool {
        let part = state.cluster.part_of(slot);
        if self.offline[slot as usize] {
            return !self.is_relieved(part);
        }
        if self.is_fixed(state, part) {
            return false;
        }
        let immigrant = state.seat(slot) != state.home(slot);
        immigrant || !(self.only_immigrants || (self.healing && !hard))
    }

    /// Whether the broker may get the replica, the partition's other replicas aside.
    pub(crate) fn may_receive(&self, state: &State<'_>, slot: Slot, leads: bool, to: Seat) -> bool {
        if to == state.home(slot) {
            return self.may_return(state, slot, leads);
        }
        if !self.is_open(to, leads) {
            return false;
        }
        // A broker that had a replica of the partition gets no other in its place that weighs differently: nobody could tell the two apart in the replica lists, so the plan would promise what does not
        // come true. It gets none at all if its disk has failed under it: in the lists that would look as if nothing
        // had to move.
        let (part, load) = (state.cluster.part_of(slot), state.cluster.slot_load(slot));
        let bars =
            |other: Slot| state.home(other) == to && (self.is_offline(other) || state.cluster.slot_load(other) != load);
        // Nor one that a copy is on its way to already.
        let awaits_one = || !self.frozen.is_empty() && state.cluster.pending().binary_search(&(part, to)).is_ok();
        !state.cluster.slots(part).any(bars) && !awaits_one()
    }

    /// The brokers that may get the replica once the plan is carried out, but not in the plan itself: another one of the
    /// partition left them that weighs differently.
    pub(crate) fn closed_until_then<'s>(&'s self, state: &'s State<'s>, slot: Slot) -> impl Iterator<Item = Seat> + 's {
        let (cluster, part, leads) = (state.cluster, state.cluster.part_of(slot), state.leads(slot));
        let load = cluster.slot_load(slot);
        // While a cluster is healed, or only immigrants move, it would have to stay then.
        let may_go = !self.healing && !self.only_immigrants && !self.is_fixed(state, part);
        let others = cluster.slots(part).filter(move |other| may_go && cluster.slot_load(*other) != load);
        let left = others.map(|other| state.home(other));
        left.filter(move |seat| !state.holds(*seat, part) && self.is_open(*seat, leads))
    }

    /// Whether the broker may get replicas that were not on it, leading or not, whatever they are.
    fn is_open(&self, seat: Seat, leads: bool) -> bool {
        let at = usize::from(seat);
        self.takes_replicas[at] && (!leads || self.takes_leaders[at]) && (!self.only_new() || self.is_new(seat))
    }

    /// All brokers that [`Rules::may_receive`] the replica, for whoever asks about many of them.
    pub(crate) fn receivers(&self, state: &State<'_>, slot: Slot, leads: bool) -> Receivers<'_> {
        let part = state.cluster.part_of(slot);
        let asked = |seat: Seat| !self.may_receive(state, slot, leads, seat);
        let homes = state.cluster.slots(part).map(|other| state.home(other));
        let barred = homes.chain(state.cluster.copies(part)).filter(|seat| asked(*seat)).collect();
        let home = Some(state.home(slot)).filter(|home| !asked(*home));
        Receivers { rules: self, leads, barred, home }
    }

    /// Whether the replica may go back to where it was found: it then has not moved at all, so that no rule about who gets
    /// replicas is asked. Leadership that it won elsewhere it may bring along only where leadership may go.
    fn may_return(&self, state: &State<'_>, slot: Slot, leads: bool) -> bool {
        let led = state.first_leader(state.cluster.part_of(slot)) == slot;
        !self.is_offline(slot) && (!leads || led || self.may_lead_more(state.home(slot)))
    }

    /// Whether the partition may be led by `slot` instead of its leader.
    pub(crate) fn may_lead(&self, state: &State<'_>, slot: Slot) -> bool {
        let part = state.cluster.part_of(slot);
        let leader = state.leader(part);
        let seat = state.seat(slot);
        if slot == leader || self.must_move(state, slot) || !self.takes_leaders[usize::from(seat)] {
            return false;
        }
        // Whoever is left must lead, whatever else is under way, unless that is what takes the leader away.
        if self.must_move(state, leader) {
            return !self.is_relieved(part);
        }
        let immigrant = self.is_offline(leader) || state.seat(leader) != state.home(leader);
        !self.is_fixed(state, part)
            // While a cluster is healed leadership may still move: that costs no bytes.
            && (immigrant || !self.only_immigrants)
            && (self.may_lead_more(seat) || seat == state.home(leader))
    }

    /// Whether leadership may go back to the replica that was found leading. That is no change, so nobody is asked.
    pub(crate) fn may_lead_again(&self, state: &State<'_>, slot: Slot) -> bool {
        let is_first = state.first_leader(state.cluster.part_of(slot)) == slot;
        is_first && state.seat(slot) == state.home(slot) && !self.is_offline(slot)
    }

    /// Whether the broker may get replicas that were never on it.
    pub(crate) fn may_gain(&self, seat: Seat) -> bool {
        self.takes_replicas[usize::from(seat)] && (!self.only_new() || self.is_new(seat))
    }

    /// The rule that keeps goals from moving the replica, if one does.
    pub(crate) fn bar_to_move(&self, state: &State<'_>, slot: Slot, hard: bool) -> Option<Rule> {
        let bar = || self.bar_to_change(state, state.cluster.part_of(slot)).unwrap_or(Rule::Healing);
        (!self.may_move(state, slot, hard)).then(bar)
    }

    /// The rule by which neither replicas nor the leader of the partition may change, if there is one.
    fn bar_to_change(&self, state: &State<'_>, part: Part) -> Option<Rule> {
        if self.is_excluded(state.cluster.topic_of(part)) {
            Some(Rule::ExcludedTopics)
        } else if self.is_moving(part) {
            Some(Rule::Moving)
        } else {
            self.only_immigrants.then_some(Rule::OnlyImmigrants)
        }
    }

    /// The rule that keeps a broker that is alive from getting replicas that were never on it, if one does.
    pub(crate) fn bar_to_gain(&self, seat: Seat) -> Option<Rule> {
        (!self.may_gain(seat)).then(|| {
            if self.named_destinations {
                Rule::Destinations
            } else if self.only_new() && self.takes_replicas[usize::from(seat)] {
                Rule::OnlyNewBrokers
            } else {
                Rule::ExcludedForReplicaMoves
            }
        })
    }

    /// The rule that keeps a replica that serves from leading its partition, if one does.
    pub(crate) fn bar_to_lead(&self, state: &State<'_>, slot: Slot) -> Option<Rule> {
        let part = state.cluster.part_of(slot);
        let could = slot != state.leader(part) && !self.must_move(state, slot);
        (could && !self.may_lead(state, slot)).then(|| {
            if self.takes_leaders(state.seat(slot)) {
                self.bar_to_change(state, part).unwrap_or(Rule::OnlyNewBrokers)
            } else {
                Rule::ExcludedForLeadership
            }
        })
    }

    pub(crate) fn is_new(&self, seat: Seat) -> bool {
        self.states[usize::from(seat)] == BrokerState::New
    }

    /// Whether brokers are new and nothing overrides that old ones gain nothing then.
    pub(crate) fn only_new(&self) -> bool {
        self.has_new && !self.named_destinations
    }

    /// Whether the broker may take leadership over from any other.
    pub(crate) fn may_lead_more(&self, seat: Seat) -> bool {
        self.takes_leaders(seat) && (!self.only_new() || self.is_new(seat))
    }

    /// Whether the broker may lead more than it does.
    pub(crate) fn takes_leaders(&self, seat: Seat) -> bool {
        self.takes_leaders[usize::from(seat)]
    }
}
