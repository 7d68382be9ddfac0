//! Whether the hard goals can be satisfied at all, and whether they are in the end.
//!
//! Before the search sums are compared: racks with replicas, capacity with load. What sums cannot
//! show (a replica that is too large for any broker, a rule that keeps one where it is) is seen after
//! the search, from what it could not mend. Either way there is no plan, but a reason in words and
//! numbers, what to add, and which of the request's restrictions to relax. Wording is Cruise Control's.

mod remedy;

use std::collections::BTreeSet;

use crate::aims::Aims;
use crate::cluster::{BrokerId, Part, Resource, Seat, Slot};
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::options::Request;
use crate::planner::Infeasible;
use crate::provision::{Advice, Provision, Thing, largest_factor, racks};
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;

/// What is wrong with a goal, and what would help.
type Failure = (String, Option<Advice>);

/// Judges the hard goals of one request on one placement.
pub(crate) struct Feasibility<'a> {
    pub(crate) aims: &'a Aims,
    pub(crate) rules: &'a Rules,
    pub(crate) settings: &'a Settings,
    pub(crate) request: &'a Request,
}

impl Feasibility<'_> {
    /// The first hard goal that no plan can satisfy.
    pub(crate) fn before(&self, state: &State<'_>) -> Result<(), Infeasible> {
        for (_, goal) in self.hard() {
            let failure = match goal {
                Goal::RackAware => self.lack_of_racks(state),
                Goal::MinTopicLeadersPerBroker => self.lack_of_leaders(state),
                Goal::ReplicaCapacity => self.lack_of_places(state),
                _ => capacity(goal).and_then(|resource| self.lack_of_capacity(state, resource)),
            };
            if let Some(failure) = failure {
                return Err(self.infeasible(goal, failure, None));
            }
        }
        Ok(())
    }

    /// The first hard goal that the search could not satisfy, or a replica that it could not save.
    pub(crate) fn after(&self, state: &State<'_>) -> Result<(), Infeasible> {
        for (index, goal) in self.hard() {
            if self.aims.miss(index, state, self.rules) == 0.0 {
                continue;
            }
            let failure = match goal {
                Goal::RackAware => self.crowded_rack(state),
                Goal::RackAwareDistribution => self.uneven_racks(state),
                Goal::MinTopicLeadersPerBroker => self.leaderless(state),
                Goal::ReplicaCapacity => self.overfull(state),
                _ => capacity(goal).and_then(|resource| self.overloaded(state, resource)),
            };
            if let Some(failure) = failure {
                return Err(self.infeasible(goal, failure, self.remedy(state, index)));
            }
        }
        // What moves no data is not to blame for what is offline.
        let moving = self.aims.goals.iter().find(|goal| goal.moves_replicas());
        let stranded = || self.rules.stranded(state).find(|slot| self.rules.must_move(state, *slot));
        if let Some(goal) = moving
            && let Some(slot) = stranded()
        {
            let reason = format!("Cannot remove offline replicas from broker {}.", id(state, state.seat(slot)));
            let advice = Some(Advice::Add(Thing::Brokers(1)));
            return Err(self.infeasible(*goal, (reason, advice), Some(self.place(state, slot))));
        }
        Ok(())
    }

    fn hard(&self) -> impl Iterator<Item = (usize, Goal)> + '_ {
        self.aims.goals.iter().copied().enumerate().filter(|(_, goal)| goal.is_hard())
    }

    fn infeasible(&self, goal: Goal, (what, advice): Failure, remedy: Option<String>) -> Infeasible {
        let advice = advice.map(|advice| if self.rules.only_new() { advice.beside_new_ones() } else { advice });
        let mut reason = format!("[{goal}] {what}");
        if let Some(advice) = &advice {
            reason.push_str(&format!(" {advice}"));
        }
        if let Some(remedy) = remedy {
            reason.push_str(&format!(" {remedy}"));
        }
        let tips = tips(self.request, self.rules);
        Infeasible { goal, reason, tips, provision: Provision::under(goal, advice.as_ref()) }
    }

    fn lack_of_racks(&self, state: &State<'_>) -> Option<Failure> {
        let current = racks(state.cluster, |seat| self.rules.is_alive(seat));
        let needed = largest_factor(state.cluster, |topic| !self.rules.is_excluded(topic));
        let which = if self.rules.excluded_topics() > 0 { "included replicas" } else { "each replica" };
        let message =
            format!("Insufficient number of racks to distribute {which} (Current: {current}, Needed: {needed}).");
        (needed > current).then(|| (message, Some(Advice::Add(Thing::Racks(needed - current)))))
    }

    fn lack_of_leaders(&self, state: &State<'_>) -> Option<Failure> {
        let cluster = state.cluster;
        let wanted: Vec<u32> =
            (0..cluster.topics().len() as u32).filter(|topic| self.aims.min_leaders(*topic) > 0).collect();
        let name = |topic: &u32| cluster.topics()[*topic as usize].clone();
        let excluded: Vec<String> = wanted.iter().filter(|topic| self.rules.is_excluded(**topic)).map(name).collect();
        if !excluded.is_empty() {
            let message = format!(
                "Topics that must have a minimum number of leaders per broker cannot be excluded. This error implies a \
                 config error. Topics should not be excluded=[{}] (see topics.with.min.leaders.per.broker).",
                excluded.join(", ")
            );
            return Some((message, None));
        }
        let brokers = self.leading(state).count();
        wanted.iter().find_map(|topic| {
            let least = self.aims.min_leaders(*topic) as usize;
            let (leaders, needed, name) = (cluster.topic_parts(*topic).len(), brokers * least, name(topic));
            let message = format!(
                "Cannot distribute {leaders} leaders over {brokers} broker(s) with minimum required per broker leader \
                 count {least} for topic {name}."
            );
            (leaders < needed).then_some((message, Some(Advice::Add(Thing::Partitions(needed, name)))))
        })
    }

    /// The brokers that must lead a minimum of certain topics.
    fn leading<'s>(&'s self, state: &State<'_>) -> impl Iterator<Item = Seat> + use<'s> {
        seats(state).filter(|seat| self.rules.counted[usize::from(*seat)] && self.rules.takes_leaders(*seat))
    }

    fn lack_of_places(&self, state: &State<'_>) -> Option<Failure> {
        let (cluster, most) = (state.cluster, self.settings.max_replicas_per_broker);
        if self.rules.excluded_topics() > 0 {
            let fixed = |slot: &&Slot| {
                self.rules.is_excluded(cluster.topic_of(cluster.part_of(**slot)))
                    && !self.rules.must_move(state, **slot)
            };
            let alive = seats(state).filter(|seat| self.rules.is_alive(*seat));
            let mut counts = alive.map(|seat| state.held(seat).iter().filter(fixed).count() as u64);
            if let Some(count) = counts.find(|count| *count > most) {
                let message = format!(
                    "Replicas of excluded topics in broker: {count} exceeds the maximum allowed number of replicas per \
                     broker: {most}."
                );
                return Some((message, None));
            }
        }
        let total = cluster.replica_count() as u64;
        let brokers = self.rules.counted.iter().filter(|counted| **counted).count() as u64;
        let alive = seats(state).filter(|seat| self.rules.is_alive(*seat)).count();
        let room = most.saturating_mul(brokers);
        if total <= room {
            return None;
        }
        let message = format!(
            "Total replicas in cluster: {total} exceeds the maximum allowed replicas in cluster: {room} (Alive brokers: \
             {alive}, Allowed number of replicas per broker: {most})."
        );
        // Where no replica is allowed at all no number of brokers helps.
        let missing = (most > 0).then(|| (total.div_ceil(most) - brokers) as usize);
        Some((message, missing.map(|missing| Advice::Add(Thing::Brokers(missing)))))
    }

    fn lack_of_capacity(&self, state: &State<'_>, resource: Resource) -> Option<Failure> {
        let (gauge, name) = (Gauge::of(resource) as usize, resource.name());
        let threshold = self.settings.capacity_thresholds[resource as usize];
        let load: f64 = state.all_levels().iter().map(|levels| levels[gauge]).sum();
        // What is being replaced is promised to another broker already, and would count twice.
        let load = load - self.rules.relieved(state).map(|slot| state.weight(slot)[gauge]).sum::<f64>();
        let brokers = state.cluster.brokers().iter().zip(&self.rules.counted);
        let allowed: Vec<_> = brokers.filter(|(_, counted)| **counted).map(|(broker, _)| broker).collect();
        let room = allowed.iter().map(|broker| broker.capacity[resource as usize]).sum::<f64>() * threshold;
        if load <= room {
            return None;
        }
        let message = format!(
            "Insufficient capacity for {name} (Utilization {load:.2}, Allowed Capacity {room:.2}, Threshold: \
             {threshold:.2})."
        );
        let advice = allowed.first().and_then(|typical| {
            let capacity = typical.capacity[resource as usize];
            let missing = ((load - room) / (capacity * threshold)).ceil();
            // Where next to nothing of a broker may be used no number of them helps.
            let helps = missing <= f64::from(Seat::MAX);
            helps.then_some(Advice::Add(Thing::BrokersLike(missing as usize, resource, capacity, typical.id)))
        });
        Some((message, advice))
    }

    fn crowded_rack(&self, state: &State<'_>) -> Option<Failure> {
        let (part, taken) = self.included(state).find_map(|part| {
            let racks: BTreeSet<u16> = state.cluster.slots(part).map(|slot| self.rack(state, slot)).collect();
            (racks.len() < state.cluster.slots(part).len()).then_some((part, racks))
        })?;
        let leader = state.leader(part);
        let followers = state.cluster.slots(part).filter(|slot| *slot != leader);
        let followers: Vec<BrokerId> = followers.map(|slot| id(state, state.seat(slot))).collect();
        let message = format!(
            "Partition {} is not rack-aware. Leader ({}) and follower brokers ({}).",
            name(state, part),
            id(state, state.seat(leader)),
            listed(&followers)
        );
        let alive = racks(state.cluster, |seat| self.rules.is_alive(seat));
        let thing = if alive < state.cluster.slots(part).len() {
            Thing::Racks(state.cluster.slots(part).len() - taken.len())
        } else {
            // There are racks enough, but nobody in them who may take a replica.
            let taken = taken.iter().map(|rack| state.cluster.racks()[usize::from(*rack)].clone());
            Thing::BrokersOutside(1, taken.collect())
        };
        Some((message, Some(Advice::Add(thing))))
    }

    fn uneven_racks(&self, state: &State<'_>) -> Option<Failure> {
        let counts_of = |part: Part| {
            let mut counts = std::collections::BTreeMap::<u16, usize>::new();
            for slot in state.cluster.slots(part) {
                *counts.entry(self.rack(state, slot)).or_default() += 1;
            }
            counts
        };
        let part = self.included(state).find(|part| self.aims.beyond_rack_quotas(state, *part) > 0)?;
        let counts = counts_of(part);
        let rack = |rack: &u16| state.cluster.racks()[usize::from(*rack)].clone();
        let brokers: Vec<BrokerId> = state.cluster.slots(part).map(|slot| id(state, state.seat(slot))).collect();
        let per_rack: Vec<String> = counts.iter().map(|(at, count)| format!("{}={count}", rack(at))).collect();
        let message = format!(
            "Partition {} is not rack-aware. Brokers ({}) and replicas per rack ({{{}}}).",
            name(state, part),
            listed(&brokers),
            per_rack.join(", ")
        );
        // A rack without any is better than one with fewer than the most.
        let most = counts.values().copied().max().unwrap_or(0);
        let no_use = |count: usize| counts.len() < self.aims.live_racks() || count == most;
        let full = counts.iter().filter(|(_, count)| no_use(**count)).map(|(at, _)| rack(at)).collect();
        Some((message, Some(Advice::Add(Thing::BrokersOutside(1, full)))))
    }

    /// The first topic and broker such that the broker leads too few of it.
    fn first_leaderless(&self, state: &State<'_>) -> Option<(u32, Seat)> {
        let topics = (0..state.cluster.topics().len() as u32).filter(|topic| self.aims.min_leaders(*topic) > 0);
        let mut pairs = topics.flat_map(|topic| self.leading(state).map(move |seat| (topic, seat)));
        pairs.find(|(topic, seat)| state.led(*topic, *seat) < self.aims.min_leaders(*topic))
    }

    fn leaderless(&self, state: &State<'_>) -> Option<Failure> {
        let (topic, seat) = self.first_leaderless(state)?;
        let message = format!(
            "Broker {} has insufficient per-broker leaders for topic {} (required: {} current: {}).",
            id(state, seat),
            state.cluster.topics()[topic as usize],
            self.aims.min_leaders(topic),
            state.led(topic, seat)
        );
        Some((message, None))
    }

    fn overfull(&self, state: &State<'_>) -> Option<Failure> {
        let most = self.settings.max_replicas_per_broker;
        let count = |seat: Seat| state.levels(seat)[Gauge::Replicas as usize] as u64;
        let seat = seats(state).find(|seat| self.rules.is_alive(*seat) && count(*seat) > most)?;
        let message = format!(
            "Replica count ({}) in broker {} exceeds the maximum allowed number of replicas per broker: {most}.",
            count(seat),
            id(state, seat)
        );
        Some((message, Some(Advice::Add(Thing::Brokers(1)))))
    }

    /// Disk is judged broker by broker, network host by host, CPU both ways.
    fn overloaded(&self, state: &State<'_>, resource: Resource) -> Option<Failure> {
        let (gauge, name) = (Gauge::of(resource) as usize, resource.name());
        let threshold = self.settings.capacity_thresholds[resource as usize];
        let brokers = state.cluster.brokers();
        let sums = |wanted: &dyn Fn(Seat) -> bool| {
            let alive = seats(state).filter(|seat| self.rules.is_alive(*seat) && wanted(*seat));
            alive.fold((0.0, 0.0), |(load, limit), seat| {
                let capacity = brokers[usize::from(seat)].capacity[resource as usize];
                (load + state.levels(seat)[gauge], limit + capacity * threshold)
            })
        };
        // Compared with room for rounding, as the goal itself is.
        let exceeds = |(load, limit): (f64, f64)| load > limit * (1.0 + crate::aims::NOISE);
        let on_host = |host: usize| sums(&|seat| brokers[usize::from(seat)].host == host);
        let on_broker = |at: Seat| sums(&|seat| seat == at);
        let found = seats(state).filter(|seat| self.rules.is_alive(*seat)).find_map(|seat| {
            let host = brokers[usize::from(seat)].host;
            if resource.is_shared_by_host() && exceeds(on_host(host)) {
                return Some((format!("host {}", state.cluster.hosts()[host]), on_host(host)));
            }
            let by_broker = matches!(resource, Resource::Disk | Resource::Cpu) && exceeds(on_broker(seat));
            by_broker.then(|| (format!("broker {}", id(state, seat)), on_broker(seat)))
        });
        let (who, (load, limit)) = found?;
        let message =
            format!("Utilization ({load:.2}) of {who} violated capacity limit ({limit:.2}) for resource {name}.");
        Some((message, Some(Advice::Add(Thing::BrokersFor(1, resource)))))
    }

    /// The partitions that rack goals are about.
    fn included<'s>(&'s self, state: &'s State<'_>) -> impl Iterator<Item = Part> + 's {
        let parts = 0..state.cluster.partition_count() as Part;
        parts.filter(|part| !self.rules.is_fixed(state, *part))
    }

    fn rack(&self, state: &State<'_>, slot: Slot) -> u16 {
        self.aims.rack(state.seat(slot))
    }
}

/// The resource a capacity goal is about.
fn capacity(goal: Goal) -> Option<Resource> {
    match goal {
        Goal::DiskCapacity | Goal::NetworkInboundCapacity | Goal::NetworkOutboundCapacity | Goal::CpuCapacity => {
            goal.resource()
        }
        _ => None,
    }
}

/// What of the request may stand in the way.
fn tips(request: &Request, rules: &Rules) -> Vec<String> {
    let ids = |ids: &BTreeSet<BrokerId>| listed(&ids.iter().copied().collect::<Vec<_>>());
    let mut tips: Vec<String> = Vec::new();
    if request.only_immigrants {
        tips.push(
            "The optimization is limited to replicas to be added to/removed from brokers. Potential mitigation: First, \
             rebalance the cluster using REBALANCE endpoint with a superset of hard-goals defined via hard.goals config."
                .to_owned(),
        );
    }
    if !request.destinations.is_empty() {
        tips.push(format!(
            "The destination brokers are limited to {}. Potential mitigation: Relax the constraint on destination \
             brokers using destination_broker_ids parameter.",
            ids(&request.destinations)
        ));
    }
    if rules.only_new() {
        tips.push(
            "While there are new brokers, replicas move to these only. Potential mitigation: Rebalance the cluster once \
             they count as alive, or name the brokers to move to using destination_broker_ids parameter."
                .to_owned(),
        );
    }
    if !request.excluded_for_replica_moves.is_empty() {
        tips.push(format!(
            "The following brokers are excluded from replica moves {}. Potential mitigation: Drop excluded brokers \
             using ADMIN endpoint.",
            ids(&request.excluded_for_replica_moves)
        ));
    }
    if !request.excluded_for_leadership.is_empty() {
        tips.push(format!(
            "The following brokers are excluded from leadership moves {}. Potential mitigation: Drop brokers from \
             exclusion for leadership move using ADMIN endpoint.",
            ids(&request.excluded_for_leadership)
        ));
    }
    let excluded_topics = rules.excluded_topics();
    if excluded_topics > 0 {
        tips.push(format!(
            "There are {excluded_topics} topics excluded from replica move. Potential mitigation: Remove selected \
             topics from exclusion using excluded_topics parameter."
        ));
    }
    tips
}

fn seats(state: &State<'_>) -> std::ops::Range<Seat> {
    0..state.cluster.brokers().len() as Seat
}

fn id(state: &State<'_>, seat: Seat) -> BrokerId {
    state.cluster.brokers()[usize::from(seat)].id
}

fn name(state: &State<'_>, part: Part) -> String {
    let cluster = state.cluster;
    format!("{}-{}", cluster.topics()[cluster.topic_of(part) as usize], cluster.number_of(part))
}

fn listed(ids: &[BrokerId]) -> String {
    let ids: Vec<String> = ids.iter().map(BrokerId::to_string).collect();
    format!("[{}]", ids.join(", "))
}

#[cfg(test)]
mod tests;
