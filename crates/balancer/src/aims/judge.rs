//! Judging by the compiled goals: by how much one misses, what an action changes about that, and
//! which goal forbids the action.

use std::ops::Range;

use super::touch::{crowned, each_move, hand_overs, keeps_brokers};
use super::{Aim, Aims, NOISE, Rise, Role};
use crate::cluster::{Part, Seat, Slot};
use crate::gauges::Gauge;
use crate::rules::Rules;
use crate::state::{Action, Effect, State};

impl Aims {
    /// How much more goal `index` misses after the action; negative if it gets better.
    pub(crate) fn change(&self, index: usize, state: &State<'_>, action: Action, effect: &Effect) -> f64 {
        match self.aims[index] {
            Aim::Band { gauge, band, rise } => {
                let asked = asked(gauge, rise, state, action, effect);
                if self.is_shared(band, effect.from) || self.is_shared(band, effect.to) {
                    return self.change_on_hosts((gauge, band, rise), state, effect, asked);
                }
                let gauge = gauge as usize;
                let on_from = effect.on_from[gauge];
                let mut sum = 0.0;
                for (seat, change, asked) in [(effect.from, on_from, on_from), (effect.to, effect.on_to[gauge], asked)]
                {
                    let (limit, before) = (self.limit(band, seat), state.levels(seat)[gauge]);
                    if rise != Rise::Traded && asked > 0.0 && before + asked > limit.ceiling {
                        return f64::INFINITY;
                    }
                    sum += limit.miss(before + change) - limit.miss(before);
                }
                sum
            }
            Aim::Racks => self.rack_change(state, action),
            Aim::EvenRacks => self.even_rack_change(state, action),
            Aim::TopicReplicas => self.topic_change(state, action),
            Aim::TopicLeaders => self.topic_leader_change(state, action),
            Aim::PreferredLeaders => self.preferred_change(state, action),
        }
    }

    /// How far the goal is from being satisfied; 0 if it is.
    pub(crate) fn miss(&self, index: usize, state: &State<'_>, rules: &Rules) -> f64 {
        let seats = 0..state.cluster.brokers().len() as Seat;
        let parts = 0..state.cluster.partition_count() as Part;
        let topics = 0..state.cluster.topics().len() as u32;
        let miss: f64 = match self.aims[index] {
            Aim::Band { gauge, band, .. } => {
                seats.map(|seat| self.miss_of(band, seat, &|seat| state.levels(seat)[gauge as usize])).sum()
            }
            Aim::Racks => parts.map(|part| self.rack_mates(state, rules, part)).sum(),
            Aim::EvenRacks => parts.map(|part| self.rack_unevenness(state, rules, part)).sum(),
            Aim::TopicReplicas => topics
                .map(|topic| {
                    let row = state.topics().row(topic).iter().zip(seats.clone());
                    row.map(|(count, seat)| self.topic_miss(topic, *count, seat)).sum::<f64>()
                })
                .sum(),
            Aim::TopicLeaders => topics
                .filter(|topic| self.min_leaders(*topic) > 0)
                .map(|topic| {
                    seats
                        .clone()
                        .filter(|seat| self.must_lead(*seat))
                        .map(|seat| f64::from(self.min_leaders(topic).saturating_sub(state.led(topic, seat))))
                        .sum::<f64>()
                })
                .sum(),
            Aim::PreferredLeaders => parts.filter(|part| self.is_passed_over(state, *part)).count() as f64,
        };
        // Nothing at all adds up to minus zero, and would be printed so.
        miss + 0.0
    }

    /// Whether somebody comes before the leader in the partition's list who should lead in its place. In the list of a
    /// partition that the plan changes, the leader comes first.
    pub(crate) fn is_passed_over(&self, state: &State<'_>, part: Part) -> bool {
        self.heir(part).is_some() && !self.is_led_by_heir(state, part) && is_led_as_found(state, part)
    }

    /// Whether nothing but the order of the partition's list is to change: who should lead took the leadership over, and
    /// then the place of who led.
    pub(crate) fn is_reordered(&self, state: &State<'_>, part: Part) -> bool {
        self.is_led_by_heir(state, part) && is_led_as_found(state, part)
    }

    fn is_led_by_heir(&self, state: &State<'_>, part: Part) -> bool {
        self.heir(part) == Some(state.leader(part))
    }

    /// Who comes before the leader in the partition's list as found and should lead in its place, if somebody does.
    pub(crate) fn heir(&self, part: Part) -> Option<Slot> {
        let found = self.passed_over.binary_search_by_key(&part, |(part, _)| *part);
        found.ok().map(|at| self.passed_over[at].1)
    }

    /// By how much a broker with so many replicas of the topic misses: no broker that is dead, and none by too few that
    /// gets no replicas.
    pub(crate) fn topic_miss(&self, topic: u32, count: u32, seat: Seat) -> f64 {
        let (low, high) = self.topic_band(topic);
        match self.roles[usize::from(seat)] {
            Role::Emptied => 0.0,
            Role::Keeper => f64::from(count.saturating_sub(high)),
            Role::Taker { .. } => f64::from(count.saturating_sub(high) + low.saturating_sub(count)),
        }
    }

    /// Replicas of the partition beyond the first in each rack; 0 if nobody may move them.
    fn rack_mates(&self, state: &State<'_>, rules: &Rules, part: Part) -> f64 {
        if rules.is_fixed(state, part) { 0.0 } else { self.rack_mates_of(state, part) }
    }

    /// Replicas of the partition beyond the first in each rack.
    pub(crate) fn rack_mates_of(&self, state: &State<'_>, part: Part) -> f64 {
        let slots = state.cluster.slots(part);
        let rack = |slot: Slot| self.rack(state.seat(slot));
        slots.clone().filter(|slot| (slots.start..*slot).any(|other| rack(other) == rack(*slot))).count() as f64
    }

    /// Replicas of the partition that must change racks to be spread evenly; 0 if nobody may move them.
    fn rack_unevenness(&self, state: &State<'_>, rules: &Rules, part: Part) -> f64 {
        if rules.is_fixed(state, part) { 0.0 } else { self.beyond_rack_quotas(state, part) as f64 }
    }

    /// Replicas of the partition beyond what its racks should hold: an equal share each, and one more in so many racks
    /// as equal shares leave replicas over.
    pub(crate) fn beyond_rack_quotas(&self, state: &State<'_>, part: Part) -> usize {
        self.beyond_quotas(&state.cluster.slots(part), |slot| self.rack(state.seat(slot)))
    }

    fn beyond_quotas(&self, slots: &Range<Slot>, rack: impl Fn(Slot) -> u16) -> usize {
        // Somebody lives, or the request would have been refused.
        let racks = self.live_racks.max(1);
        let (share, left_over) = (slots.len() / racks, slots.len() % racks);
        let (mut beyond, mut fuller) = (0, 0);
        for slot in slots.clone() {
            let here = rack(slot);
            // Each rack once.
            if (slots.start..slot).any(|other| rack(other) == here) {
                continue;
            }
            let count = slots.clone().filter(|other| rack(*other) == here).count();
            beyond += count.saturating_sub(share);
            fuller += usize::from(count > share);
        }
        beyond - fuller.min(left_over)
    }

    /// The first goal before `upto` that the action would make worse. Fences see to it that nobody leaves a band for the
    /// good of others, but know nothing of hosts: brokers that share one are looked at here.
    pub(crate) fn veto(&self, upto: usize, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        (0..upto).find(|index| match self.aims[*index] {
            Aim::Band { gauge, band, rise: Rise::Traded }
                if self.is_shared(band, effect.from) || self.is_shared(band, effect.to) =>
            {
                self.harms(gauge, band, state, effect)
            }
            _ => self.change(*index, state, action, effect) > NOISE,
        })
    }

    /// The first hard goal, wherever it is in the list, that the action would make worse.
    pub(crate) fn hard_veto(&self, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        let hard = (0..self.goals.len()).filter(|index| self.goals[*index].is_hard());
        hard.into_iter().find(|index| self.change(*index, state, action, effect) > NOISE)
    }

    /// The first goal before `upto` that an action makes worse that is known to take no broker out of a band.
    pub(crate) fn veto_but_bands(
        &self,
        upto: usize,
        state: &State<'_>,
        action: Action,
        effect: &Effect,
    ) -> Option<usize> {
        // Capacities ask for more of those who take leadership over than what it brings.
        let leads = matches!(action, Action::Lead { .. });
        let asks = |aim: Aim| match aim {
            Aim::Band { rise, .. } => leads && rise == Rise::BarredToLeaders,
            _ => true,
        };
        (0..upto).find(|index| asks(self.aims[*index]) && self.change(*index, state, action, effect) > NOISE)
    }

    /// The first goal of all that the action would make worse on either broker it touches, even if the
    /// other gains as much.
    pub(crate) fn harm(&self, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        (0..self.aims.len()).find(|index| match self.aims[*index] {
            Aim::Band { gauge, band, rise: Rise::Traded } => self.harms(gauge, band, state, effect),
            _ => self.change(*index, state, action, effect) > NOISE,
        })
    }

    /// Whether the band is missed by more, or some broker leaves it, even if others gain as much.
    fn harms(&self, gauge: Gauge, band: usize, state: &State<'_>, effect: &Effect) -> bool {
        let mut sum = 0.0;
        let mut leaves = false;
        let mut count = |(before, after): (f64, f64)| {
            sum += after - before;
            leaves |= before == 0.0 && after > 0.0;
        };
        if self.is_shared(band, effect.from) || self.is_shared(band, effect.to) {
            self.misses_on_hosts(band, gauge, state, effect).for_each(count);
        } else {
            let gauge = gauge as usize;
            for (seat, change) in [(effect.from, effect.on_from[gauge]), (effect.to, effect.on_to[gauge])] {
                let (limit, level) = (self.limit(band, seat), state.levels(seat)[gauge]);
                count((limit.miss(level), limit.miss(level + change)));
            }
        }
        leaves || sum > NOISE
    }

    fn rack_change(&self, state: &State<'_>, action: Action) -> f64 {
        let moved = |slot: Slot, to: Seat| {
            let (rack, part) = (self.rack(to), state.cluster.part_of(slot));
            let taken = |rack: u16| {
                state.cluster.slots(part).any(|other| other != slot && self.rack(state.seat(other)) == rack)
            };
            if taken(rack) {
                f64::INFINITY
            } else if taken(self.rack(state.seat(slot))) {
                -1.0
            } else {
                0.0
            }
        };
        each_move(state, action).map(|(slot, to)| moved(slot, to)).sum()
    }

    fn even_rack_change(&self, state: &State<'_>, action: Action) -> f64 {
        each_move(state, action)
            .map(|(slot, to)| {
                let slots = state.cluster.slots(state.cluster.part_of(slot));
                let rack_of = |other: Slot| self.rack(state.seat(other));
                let count = |rack: u16| slots.clone().filter(|other| rack_of(*other) == rack).count();
                let (from, to) = (rack_of(slot), self.rack(to));
                if from == to {
                    return 0.0;
                }
                if count(to) >= count(from) {
                    return f64::INFINITY;
                }
                let after = self.beyond_quotas(&slots, |other| if other == slot { to } else { rack_of(other) });
                after as f64 - self.beyond_quotas(&slots, rack_of) as f64
            })
            .sum()
    }

    /// Whether a copy of the partition is on its way into the rack. That does not bar others, as nobody knows which of them
    /// it will replace, but it makes any other rack the better place.
    pub(crate) fn is_promised(&self, rack: u16, state: &State<'_>, part: Part) -> bool {
        state.cluster.copies(part).any(|seat| self.rack(seat) == rack)
    }

    fn topic_change(&self, state: &State<'_>, action: Action) -> f64 {
        // Two replicas of one topic that change places change no count.
        if let Action::Swap { one, other } = action {
            let topic = |slot| state.cluster.topic_of(state.cluster.part_of(slot));
            if topic(one) == topic(other) {
                return 0.0;
            }
        }
        let change = |topic: u32, seat: Seat, before: u32, after: u32| {
            self.topic_miss(topic, after, seat) - self.topic_miss(topic, before, seat)
        };
        each_move(state, action)
            .map(|(slot, to)| (state.cluster.topic_of(state.cluster.part_of(slot)), state.seat(slot), to))
            .filter(|(topic, ..)| !self.topic_is_free(*topic))
            .map(|(topic, from, to)| {
                let (here, there) = (state.topics().of(topic, from), state.topics().of(topic, to));
                change(topic, from, here, here - 1) + change(topic, to, there, there + 1)
            })
            .sum()
    }

    fn topic_is_free(&self, topic: u32) -> bool {
        self.topic_bands[topic as usize].1 == u32::MAX
    }

    /// Hand-overs of one topic are counted together: two that a broker could afford one by one may be one too many.
    pub(crate) fn topic_leader_change(&self, state: &State<'_>, action: Action) -> f64 {
        let watched = |topic: u32| self.min_leaders(topic) > 0;
        let handed = || hand_overs(state, action).filter(move |(topic, from, to)| watched(*topic) && from != to);
        let change = |topic: u32, seat: Seat| {
            if !self.must_lead(seat) {
                return 0.0;
            }
            let (mut lost, mut won) = (0, 0);
            for (_, from, to) in handed().filter(|(other, ..)| *other == topic) {
                lost += u32::from(from == seat);
                won += u32::from(to == seat);
            }
            let short = |leaders: u32| f64::from(self.min_leaders(topic).saturating_sub(leaders));
            let leads = state.led(topic, seat);
            short(leads + won - lost) - short(leads)
        };
        // All of them pass between the same two brokers, so each topic is looked at where it comes first.
        let mut sum = 0.0;
        for (index, (topic, from, to)) in handed().enumerate() {
            if !handed().take(index).any(|(other, ..)| other == topic) {
                sum += change(topic, from) + change(topic, to);
            }
        }
        sum
    }

    /// Whether the broker must lead its part of topics that ask for a minimum.
    fn must_lead(&self, seat: Seat) -> bool {
        matches!(self.roles[usize::from(seat)], Role::Taker { leads: true })
    }

    /// Hand-overs count by the list as found, although the plan writes the lists of partitions that it changes anew, the
    /// leader first, so that nobody is passed over in those. Else goals of lower priority could do in the next plan what
    /// this one refuses them: hand back what was handed over here.
    ///
    /// A replica that moves takes its leadership along, and is as much preferred wherever it comes.
    ///
    /// That one partition is led as it should is no excuse for another that no longer is.
    fn preferred_change(&self, state: &State<'_>, action: Action) -> f64 {
        let (mut worse, mut better) = (0.0, 0.0);
        for leader in crowned(action).iter() {
            let part = state.cluster.part_of(leader);
            let before = self.is_led_otherwise(state, part, state.leader(part));
            let after = self.is_led_otherwise(state, part, leader);
            worse += f64::from(u8::from(after && !before));
            better += f64::from(u8::from(before && !after));
        }
        if worse > 0.0 { worse } else { -better }
    }

    /// Whether, by its list as found, another should lead the partition than `leader`. Where the same brokers hold it as
    /// before, whichever of the replicas came to the broker that should lead will do.
    fn is_led_otherwise(&self, state: &State<'_>, part: Part, leader: Slot) -> bool {
        let preferred = self.heir(part).unwrap_or(state.first_leader(part));
        let stands_in = || state.seat(leader) == state.home(preferred) && keeps_brokers(state, part);
        leader != preferred && !stands_in()
    }
}

/// Whether the same brokers hold the partition as before, led by the same.
fn is_led_as_found(state: &State<'_>, part: Part) -> bool {
    state.seat(state.leader(part)) == state.home(state.first_leader(part)) && keeps_brokers(state, part)
}

/// How much more the action asks the broker it goes to for: all that the leader carries where leadership
/// is judged so, else what it brings.
fn asked(gauge: Gauge, rise: Rise, state: &State<'_>, action: Action, effect: &Effect) -> f64 {
    match (rise, action) {
        (Rise::BarredToLeaders, Action::Lead { part, .. }) => state.weight(state.leader(part))[gauge as usize],
        _ => effect.on_to[gauge as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerId, Cluster};
    use crate::fixture::Small;
    use crate::goal::Goal;
    use crate::options::{Request, TopicPattern};
    use crate::settings::Settings;

    fn change(cluster: &Cluster, goal: Goal, request: &Request, settings: &Settings, action: Action) -> f64 {
        let rules = Rules::compile(cluster, request).unwrap();
        let state = State::for_goals(cluster, &[goal], settings);
        let aims = Aims::compile(&state, &[goal], settings, &rules);
        aims.change(0, &state, action, &state.effect(action))
    }

    /// The place in the partition's list, the leader's being 0.
    fn slot(cluster: &Cluster, (topic, number): (&str, i32), place: Slot) -> Slot {
        cluster.slots(cluster.find(topic, number).unwrap()).start + place
    }

    #[test]
    fn leaders_of_one_topic_that_pass_together_are_counted_together() {
        let mut small = Small::in_racks("ab");
        for (number, brokers) in (0..).zip([[0, 1], [0, 1], [0, 1], [1, 0], [1, 0]]) {
            small.partition("t", number, &brokers, 1.0);
        }
        small.partition("u", 0, &[1, 0], 1.0);
        let cluster = small.cluster();
        let judged = |least: u32, action: Action| {
            let settings = Settings {
                topics_with_min_leaders_per_broker: Some(TopicPattern::new("t").unwrap()),
                min_topic_leaders_per_broker: least,
                ..Settings::default()
            };
            change(&cluster, Goal::MinTopicLeadersPerBroker, &Request::default(), &settings, action)
        };
        let follower = |topic, number| slot(&cluster, (topic, number), 1);
        // Broker 0 leads three: of two it could spare one, but not two.
        let (one, two) = (follower("t", 0), follower("t", 1));
        let trade = Action::LeadTrade { one, two, back: follower("u", 0) };
        assert_eq!((judged(1, trade), judged(2, trade)), (0.0, 1.0));
        // With one that comes back it gives away but one.
        assert_eq!(judged(2, Action::LeadTrade { one, two, back: follower("t", 3) }), 0.0);
        // Exchanges change no count.
        assert_eq!(judged(2, Action::LeadSwap { one, other: follower("t", 3) }), 0.0);
        let leaders = (slot(&cluster, ("t", 0), 0), slot(&cluster, ("t", 3), 0));
        assert_eq!(judged(3, Action::Swap { one: leaders.0, other: leaders.1 }), 0.0);
    }

    #[test]
    fn a_broker_that_gets_no_replicas_may_have_too_few_of_a_topic() {
        let mut small = Small::in_racks("abc");
        for number in 0..6 {
            small.partition("t", number, &[number % 3], 1.0);
        }
        let cluster = small.cluster();
        // Two to four on each of the two brokers that count.
        let settings = Settings {
            topic_replica_count_balance_threshold: 1.2,
            topic_replica_count_balance_min_gap: 0,
            ..Settings::default()
        };
        let judged = |request: &Request, from: i32| {
            let action = Action::Move { slot: slot(&cluster, ("t", from), 0), to: 0 };
            change(&cluster, Goal::TopicReplicaDistribution, request, &settings, action)
        };
        let excluded = Request { excluded_for_replica_moves: [BrokerId(2)].into(), ..Request::default() };
        assert_eq!((judged(&excluded, 1), judged(&excluded, 2)), (1.0, 0.0));
        let operation = crate::options::Operation::RemoveBrokers([BrokerId(2)].into());
        assert_eq!(judged(&Request { operation, ..Request::default() }, 2), 0.0);
    }
}
