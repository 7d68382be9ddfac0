//! What exactly would help: which partition needs a place, in which rack, on how large a broker.
//!
//! Cruise Control says how many brokers to add. Where one of them is of no use unless it is in a certain rack, or large
//! enough for a certain replica, that is what whoever adds it has to know.

use std::collections::BTreeSet;

use super::{Feasibility, capacity, id, name, seats};
use crate::aims::Aim;
use crate::cluster::{Resource, Seat, Slot};
use crate::gauges::Gauge;
use crate::state::State;

impl Feasibility<'_> {
    /// What would help the hard goal at `index`, which is missed, as far as there is more to say than what to add.
    pub(super) fn remedy(&self, state: &State<'_>, index: usize) -> Option<String> {
        match self.aims.aims[index] {
            Aim::Band { gauge, band, .. } => self.room(state, index, gauge, band),
            Aim::Racks | Aim::EvenRacks => self.place_in_rack(state),
            Aim::TopicLeaders => self.leaders(state),
            Aim::TopicReplicas | Aim::PreferredLeaders => None,
        }
    }

    /// Who could take the replica that is offline.
    pub(super) fn place(&self, state: &State<'_>, slot: Slot) -> String {
        format!("A broker{} could take {}.", self.outside(state, slot), self.named(state, slot))
    }

    /// A place for one of the replicas of the first broker, or host, that carries too much: the smallest that would be
    /// enough, else the largest.
    fn room(&self, state: &State<'_>, index: usize, gauge: Gauge, band: usize) -> Option<String> {
        let beyond = |seat: Seat| {
            let (level, limit) = self.aims.standing(band, gauge, state, seat);
            (limit.miss(level) > 0.0 && level > limit.high).then_some(level - limit.high)
        };
        let (first, excess) = seats(state).find_map(|seat| Some((seat, beyond(seat)?)))?;
        let holders = self.aims.with_mates(band, &[first]);
        let held = holders.iter().flat_map(|seat| state.held(*seat)).copied();
        let sized = held
            .filter(|slot| self.rules.may_move(state, *slot, true))
            .map(|slot| (state.weight(slot)[gauge as usize], slot))
            .filter(|(weight, _)| *weight > 0.0);
        // By size, and of equals the first.
        let smaller = |one: &(f64, Slot), other: &(f64, Slot)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1));
        let larger = |one: &(f64, Slot), other: &(f64, Slot)| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1));
        let enough = sized.clone().filter(|(weight, _)| *weight >= excess).min_by(smaller);
        let Some((weight, slot)) = enough.or_else(|| sized.max_by(larger)) else {
            return Some("None of the replicas on it may move.".to_owned());
        };
        let Some(resource) = capacity(self.aims.goals[index]) else { return Some(self.place(state, slot)) };
        let needed = self.needed(resource, weight)?;
        let (outside, named) = (self.outside(state, slot), self.named(state, slot));
        Some(format!("A broker{outside} with {needed} could take {named} ({weight:.2})."))
    }

    /// How large a broker must be that can take the replica that shares its rack.
    fn place_in_rack(&self, state: &State<'_>) -> Option<String> {
        let shares = |slot: &Slot| {
            let slots = state.cluster.slots(state.cluster.part_of(*slot));
            (slots.start..*slot).any(|other| self.rack(state, other) == self.rack(state, *slot))
        };
        let crowded = |part| self.aims.rack_mates_of(state, part) > 0.0;
        let part = self.included(state).find(|part| crowded(*part))?;
        let slot = state.cluster.slots(part).find(shares)?;
        let weight = state.weight(slot);
        let capacities = self.hard().filter_map(|(_, goal)| capacity(goal));
        let loaded = capacities.map(|resource| (resource, weight[Gauge::of(resource) as usize]));
        let needed = loaded.filter(|(_, weight)| *weight > 0.0);
        let needed: Vec<String> = needed.filter_map(|(resource, weight)| self.needed(resource, weight)).collect();
        let named = self.named(state, slot);
        (!needed.is_empty()).then(|| format!("For {named} it needs {}.", needed.join(" and ")))
    }

    fn leaders(&self, state: &State<'_>) -> Option<String> {
        let (topic, seat) = self.first_leaderless(state)?;
        let missing = self.aims.min_leaders(topic) - state.led(topic, seat);
        let (name, id) = (&state.cluster.topics()[topic as usize], id(state, seat));
        Some(format!("Broker {id} would have to be able to lead {missing} more of {name}."))
    }

    /// The capacity of a broker that can carry so much; none if no capacity would do.
    fn needed(&self, resource: Resource, weight: f64) -> Option<String> {
        let threshold = self.settings.capacity_thresholds[resource as usize];
        let name = resource.name();
        (threshold > 0.0).then(|| format!("a {name} capacity of more than {:.2}", weight / threshold))
    }

    /// The racks that are taken by the partition's other replicas, if that counts.
    fn outside(&self, state: &State<'_>, slot: Slot) -> String {
        let counts = self.hard().any(|(index, _)| self.aims.aims[index] == Aim::Racks);
        let others = state.cluster.slots(state.cluster.part_of(slot)).filter(|other| counts && *other != slot);
        let racks: BTreeSet<&str> =
            others.map(|other| state.cluster.racks()[usize::from(self.rack(state, other))].as_str()).collect();
        if racks.is_empty() {
            return String::new();
        }
        format!(" in a rack other than [{}]", racks.into_iter().collect::<Vec<_>>().join(", "))
    }

    fn named(&self, state: &State<'_>, slot: Slot) -> String {
        name(state, state.cluster.part_of(slot))
    }
}
