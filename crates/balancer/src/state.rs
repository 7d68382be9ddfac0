//! Where everything is right now, while a plan is being made, and what an action would change.
//!
//! Every action touches exactly two brokers, so judging one costs a look at two rows of gauges,
//! however large the cluster is.

use crate::cluster::{Cluster, Part, Seat, Slot};
use crate::gauges::{GAUGES, Levels, leadership_levels, minus, negated, plus, replica_levels};
use crate::goal::Goal;
use crate::settings::Settings;

/// One step of a plan in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The replica goes to another broker, and takes its leadership along.
    Move { slot: Slot, to: Seat },
    /// The partition is led by another of its replicas.
    Lead { part: Part, slot: Slot },
    /// Two replicas of different partitions change places.
    Swap { one: Slot, other: Slot },
    /// Two partitions hand leadership over in opposite directions between the same two brokers.
    LeadSwap { one: Slot, other: Slot },
    /// Two partitions are led by the brokers of `one` and `two`, which is the same broker, and for them a
    /// third comes `back` to the broker that led them.
    LeadTrade { one: Slot, two: Slot, back: Slot },
}

/// What an action changes: two brokers' gauges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    pub(crate) from: Seat,
    pub(crate) to: Seat,
    pub(crate) on_from: Levels,
    pub(crate) on_to: Levels,
}

/// Replicas, or leaders, per topic and broker.
#[derive(Debug, Clone)]
pub(crate) struct TopicCounts {
    seats: usize,
    counts: Vec<u32>,
}

impl TopicCounts {
    fn none(cluster: &Cluster) -> TopicCounts {
        let seats = cluster.brokers().len();
        TopicCounts { seats, counts: vec![0; seats * cluster.topics().len()] }
    }

    pub(crate) fn of(&self, topic: u32, seat: Seat) -> u32 {
        self.counts[topic as usize * self.seats + usize::from(seat)]
    }

    pub(crate) fn row(&self, topic: u32) -> &[u32] {
        &self.counts[topic as usize * self.seats..][..self.seats]
    }

    fn entry(&mut self, topic: u32, seat: Seat) -> &mut u32 {
        &mut self.counts[topic as usize * self.seats + usize::from(seat)]
    }
}

/// The placement in the making, with everything that is counted on it.
#[derive(Debug, Clone)]
pub(crate) struct State<'c> {
    pub(crate) cluster: &'c Cluster,
    seats: Vec<Seat>,
    leaders: Vec<u8>,
    /// Each broker's slots, in no order that means anything; `places` is the way back.
    held: Vec<Vec<Slot>>,
    places: Vec<u32>,
    levels: Vec<Levels>,
    topics: TopicCounts,
    /// Leaders per topic and broker, where somebody asks: it is as large as the one above.
    led: Option<TopicCounts>,
}

impl<'c> State<'c> {
    /// The state the cluster is found in; copies under way count as load already promised.
    pub(crate) fn found(cluster: &'c Cluster) -> Self {
        let seats = cluster.brokers().len();
        let mut sizes = vec![0usize; seats];
        for seat in cluster.seats() {
            sizes[usize::from(*seat)] += 1;
        }
        let mut state = State {
            cluster,
            seats: cluster.seats().to_vec(),
            leaders: cluster.leaders().to_vec(),
            held: sizes.into_iter().map(Vec::with_capacity).collect(),
            places: vec![0; cluster.replica_count()],
            levels: vec![[0.0; GAUGES]; seats],
            topics: TopicCounts::none(cluster),
            led: None,
        };
        for part in 0..cluster.partition_count() as Part {
            let topic = cluster.topic_of(part);
            let lead = cluster.lead_load(part);
            let leader = state.leader(part);
            for slot in cluster.slots(part) {
                let seat = state.seats[slot as usize];
                let row = &mut state.levels[usize::from(seat)];
                *row = plus(*row, replica_levels(cluster.slot_load(slot), lead, slot == leader));
                *state.topics.entry(topic, seat) += 1;
                state.places[slot as usize] = state.held[usize::from(seat)].len() as u32;
                state.held[usize::from(seat)].push(slot);
            }
        }
        for &(part, seat) in cluster.pending() {
            let promised = replica_levels(cluster.slot_load(state.leader(part)), cluster.lead_load(part), false);
            let row = &mut state.levels[usize::from(seat)];
            *row = plus(*row, promised);
            *state.topics.entry(cluster.topic_of(part), seat) += 1;
        }
        state
    }

    /// The same with all counted that these goals ask for.
    pub(crate) fn for_goals(cluster: &'c Cluster, goals: &[Goal], settings: &Settings) -> Self {
        let state = State::found(cluster);
        let asks = goals.contains(&Goal::MinTopicLeadersPerBroker);
        let watched = settings.topics_with_min_leaders_per_broker.is_some();
        if asks && watched { state.counting_leaders() } else { state }
    }

    /// The placement as found, with the same counted as here.
    pub(crate) fn as_found(&self) -> State<'c> {
        let state = State::found(self.cluster);
        if self.led.is_some() { state.counting_leaders() } else { state }
    }

    fn counting_leaders(mut self) -> Self {
        let mut led = TopicCounts::none(self.cluster);
        for part in 0..self.cluster.partition_count() as Part {
            *led.entry(self.cluster.topic_of(part), self.seat(self.leader(part))) += 1;
        }
        self.led = Some(led);
        self
    }

    pub(crate) fn seat(&self, slot: Slot) -> Seat {
        self.seats[slot as usize]
    }

    /// Where the replica was found.
    pub(crate) fn home(&self, slot: Slot) -> Seat {
        self.cluster.seats()[slot as usize]
    }

    /// The slot that leads the partition.
    pub(crate) fn leader(&self, part: Part) -> Slot {
        self.cluster.slots(part).start + Slot::from(self.leaders[part as usize])
    }

    /// The slot that was found leading the partition.
    pub(crate) fn first_leader(&self, part: Part) -> Slot {
        self.cluster.slots(part).start + Slot::from(self.cluster.leaders()[part as usize])
    }

    pub(crate) fn leads(&self, slot: Slot) -> bool {
        self.leader(self.cluster.part_of(slot)) == slot
    }

    pub(crate) fn held(&self, seat: Seat) -> &[Slot] {
        &self.held[usize::from(seat)]
    }

    pub(crate) fn levels(&self, seat: Seat) -> &Levels {
        &self.levels[usize::from(seat)]
    }

    pub(crate) fn all_levels(&self) -> &[Levels] {
        &self.levels
    }

    pub(crate) fn topics(&self) -> &TopicCounts {
        &self.topics
    }

    /// How many partitions of the topic the broker leads; 0 if nobody asked to count.
    pub(crate) fn led(&self, topic: u32, seat: Seat) -> u32 {
        self.led.as_ref().map_or(0, |led| led.of(topic, seat))
    }

    /// Whether the broker holds a replica of the partition.
    pub(crate) fn holds(&self, seat: Seat, part: Part) -> bool {
        self.cluster.slots(part).any(|slot| self.seats[slot as usize] == seat)
    }

    /// What the replica adds to its broker, in the role it has.
    pub(crate) fn weight(&self, slot: Slot) -> Levels {
        let part = self.cluster.part_of(slot);
        replica_levels(self.cluster.slot_load(slot), self.cluster.lead_load(part), self.leader(part) == slot)
    }

    /// What the replica would add to its broker if it followed.
    pub(crate) fn following(&self, slot: Slot) -> Levels {
        let lead = self.cluster.lead_load(self.cluster.part_of(slot));
        replica_levels(self.cluster.slot_load(slot), lead, false)
    }

    /// How much leadership of the replica's partition adds to its broker.
    pub(crate) fn leadership(&self, slot: Slot) -> Levels {
        leadership_levels(self.cluster.slot_load(slot), self.cluster.lead_load(self.cluster.part_of(slot)))
    }

    /// What `action` would change.
    pub(crate) fn effect(&self, action: Action) -> Effect {
        match action {
            Action::Move { slot, to } => {
                let weight = self.weight(slot);
                Effect { from: self.seat(slot), to, on_from: negated(weight), on_to: weight }
            }
            Action::Lead { part, slot } => {
                let leader = self.leader(part);
                Effect {
                    from: self.seat(leader),
                    to: self.seat(slot),
                    on_from: negated(self.leadership(leader)),
                    on_to: self.leadership(slot),
                }
            }
            Action::Swap { one, other } => {
                let gain = minus(self.weight(other), self.weight(one));
                Effect { from: self.seat(one), to: self.seat(other), on_from: gain, on_to: negated(gain) }
            }
            Action::LeadSwap { one, other } => {
                let leaves = |slot| self.leadership(self.leader(self.cluster.part_of(slot)));
                Effect {
                    from: self.seat(other),
                    to: self.seat(one),
                    on_from: minus(self.leadership(other), leaves(one)),
                    on_to: minus(self.leadership(one), leaves(other)),
                }
            }
            Action::LeadTrade { one, two, back } => {
                let leaves = |slot| self.leadership(self.leader(self.cluster.part_of(slot)));
                Effect {
                    from: self.seat(back),
                    to: self.seat(one),
                    on_from: minus(self.leadership(back), plus(leaves(one), leaves(two))),
                    on_to: minus(plus(self.leadership(one), self.leadership(two)), leaves(back)),
                }
            }
        }
    }

    /// Makes `action` happen.
    pub(crate) fn apply(&mut self, action: Action) {
        let effect = self.effect(action);
        for (seat, change) in [(effect.from, effect.on_from), (effect.to, effect.on_to)] {
            let row = &mut self.levels[usize::from(seat)];
            *row = plus(*row, change);
        }
        match action {
            Action::Move { slot, to } => self.carry(slot, to),
            Action::Lead { slot, .. } => self.crown(slot),
            Action::Swap { one, other } => {
                let (here, there) = (self.seat(one), self.seat(other));
                self.carry(one, there);
                self.carry(other, here);
            }
            Action::LeadSwap { one, other } => {
                self.crown(one);
                self.crown(other);
            }
            Action::LeadTrade { one, two, back } => [one, two, back].into_iter().for_each(|slot| self.crown(slot)),
        }
    }

    fn crown(&mut self, slot: Slot) {
        let part = self.cluster.part_of(slot);
        self.pass_on(part, self.seat(self.leader(part)), self.seat(slot));
        self.leaders[part as usize] = (slot - self.cluster.slots(part).start) as u8;
    }

    /// Counts the partition's leadership on another broker.
    fn pass_on(&mut self, part: Part, from: Seat, to: Seat) {
        let topic = self.cluster.topic_of(part);
        if let Some(led) = &mut self.led {
            *led.entry(topic, from) -= 1;
            *led.entry(topic, to) += 1;
        }
    }

    fn carry(&mut self, slot: Slot, to: Seat) {
        let from = self.seat(slot);
        let place = self.places[slot as usize];
        let left = &mut self.held[usize::from(from)];
        left.swap_remove(place as usize);
        if let Some(moved_up) = left.get(place as usize) {
            self.places[*moved_up as usize] = place;
        }
        self.places[slot as usize] = self.held[usize::from(to)].len() as u32;
        self.held[usize::from(to)].push(slot);
        self.seats[slot as usize] = to;
        let part = self.cluster.part_of(slot);
        if self.leader(part) == slot {
            self.pass_on(part, from, to);
        }
        let topic = self.cluster.topic_of(part);
        *self.topics.entry(topic, from) -= 1;
        *self.topics.entry(topic, to) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Small;

    /// A table of all topics and brokers is no small thing: nobody pays for one that nobody reads.
    #[test]
    fn leaders_are_counted_only_where_a_minimum_is_asked_for() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0, 1], 1.0);
        let cluster = small.cluster();
        let pattern = crate::options::TopicPattern::new("t").unwrap();
        let asking = Settings { topics_with_min_leaders_per_broker: Some(pattern), ..Settings::default() };
        let counts = |goals: &[Goal], settings: &Settings| State::for_goals(&cluster, goals, settings).led.is_some();
        assert!(counts(&Goal::DEFAULT, &asking));
        assert!(!counts(&Goal::DEFAULT, &Settings::default()));
        assert!(!counts(&[Goal::RackAware], &asking));
    }

    /// What is counted as actions happen is what counting anew would find.
    #[test]
    fn counts_follow_every_kind_of_action() {
        let mut small = Small::in_racks("abc");
        for (number, brokers) in (0..).zip([[0, 1], [0, 1], [1, 0], [0, 1]]) {
            small.partition("t", number, &brokers, 1.0);
        }
        small.partition("u", 0, &[1, 2], 1.0);
        let cluster = small.cluster();
        let mut state = State::found(&cluster).counting_leaders();
        let slot = |part: Part, place: Slot| cluster.slots(part).start + place;
        let actions = [
            Action::Move { slot: slot(0, 0), to: 2 },
            Action::Swap { one: slot(0, 0), other: slot(1, 0) },
            Action::Move { slot: slot(3, 1), to: 2 },
            Action::Lead { part: 3, slot: slot(3, 1) },
            Action::LeadSwap { one: slot(1, 1), other: slot(2, 1) },
            Action::LeadTrade { one: slot(1, 0), two: slot(2, 0), back: slot(0, 1) },
        ];
        for action in actions {
            state.apply(action);
            for (topic, seat) in (0..2).flat_map(|topic| (0..3).map(move |seat| (topic, seat))) {
                let parts = || cluster.topic_parts(topic);
                let led = parts().filter(|part| state.seat(state.leader(*part)) == seat).count();
                let held = parts().filter(|part| state.holds(seat, *part)).count();
                let counted = (state.led(topic, seat) as usize, state.topics().of(topic, seat) as usize);
                assert_eq!(counted, (led, held), "topic {topic} on broker {seat} after {action:?}");
            }
        }
    }
}
