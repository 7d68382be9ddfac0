//! The last resort before a hard goal counts as infeasible: the brokers that have too much and a few others are packed
//! anew, all of their replicas at once.
//!
//! A single move or exchange that helps would have been found by then. What is left needs several at once, of which none
//! does any good by itself. Either all hard goals are satisfied in the end, or nothing of it happened.

use super::Search;
use crate::aims::{Aim, NOISE};
use crate::cluster::{Part, Seat, Slot};
use crate::gauges::{GAUGES, Gauge, Levels, minus};
use crate::repack::{Bin, Item, MOST_BINS, Packing, Prefer};
use crate::state::Action;

/// Bins tried for items, all in all.
const STEPS: u32 = 2_000_000;
/// The same for one group of brokers, by how many they are.
const STEPS_OF_A_GROUP: [u32; MOST_BINS + 1] = [0, 0, 4_000, 8_000, 20_000, 40_000, 40_000, 60_000, 60_000];
/// Times that a broker is relieved of something.
const ROUNDS: usize = 64;
/// Brokers that are asked to make room, each by itself.
const PARTNERS: usize = 16;
/// Of these, so many in pairs.
const PAIRED: usize = 6;
/// Brokers with too much that are tried before the goal is given up: those of one host stand for each other.
const TRIED: usize = 4;
/// Replicas in one packing: with more, there are so many ways to place them that one is found among fewer.
const ITEMS: usize = 48;

/// What a broker carries too much of, and for which goal.
#[derive(Debug, Clone, Copy)]
struct Excess {
    goal: usize,
    gauge: Gauge,
    band: usize,
}

/// A group of brokers to be packed anew; the first has too much.
struct Group {
    packing: Packing,
    seats: Vec<Seat>,
    slots: Vec<Slot>,
}

impl Search<'_, '_> {
    /// Packs brokers anew until none has too much for a hard goal. Says whether that did it; else all is as it was.
    pub(crate) fn repack(&mut self) -> bool {
        if self.excess().is_none() || self.lacks_what_packing_cannot_give() {
            return false;
        }
        let before = self.moment(0);
        let mut steps = STEPS;
        for _ in 0..ROUNDS {
            let Some((excess, over)) = self.excess() else { break };
            if !over.into_iter().take(TRIED).any(|seat| self.relieve(excess, seat, &mut steps)) {
                break;
            }
        }
        let is_mended = self.excess().is_none();
        if !is_mended {
            self.return_to(before);
        }
        is_mended
    }

    /// The first hard goal for which brokers have too much, and those brokers, the worst first.
    fn excess(&self) -> Option<(Excess, Vec<Seat>)> {
        self.hard_bands().find_map(|excess| {
            let over = self.outside(excess.gauge, excess.band).over;
            (!over.is_empty()).then_some((excess, over))
        })
    }

    fn hard_bands(&self) -> impl Iterator<Item = Excess> + '_ {
        let hard = self.aims.aims.iter().enumerate().filter(|(goal, _)| self.is_hard(*goal));
        hard.filter_map(|(goal, aim)| match *aim {
            Aim::Band { gauge, band, .. } => Some(Excess { goal, gauge, band }),
            _ => None,
        })
    }

    /// Whether a hard goal is missed that is not about how much brokers carry: then there is no plan anyway.
    fn lacks_what_packing_cannot_give(&self) -> bool {
        let misses = |goal: usize| self.aims.miss(goal, &self.state, self.rules) > 0.0;
        let other = |goal: &usize| self.is_hard(*goal) && !matches!(self.aims.aims[*goal], Aim::Band { .. });
        (0..self.aims.goals.len()).filter(other).any(misses)
    }

    /// Takes from the broker what is too much, or else as much of it as one other can take.
    fn relieve(&mut self, excess: Excess, seat: Seat, steps: &mut u32) -> bool {
        let partners = self.partners_of(excess, seat);
        for others in groups(&partners) {
            for prefer in [Prefer::Here, Prefer::Tight] {
                if self.pack(excess, seat, &others, (true, prefer), steps) {
                    return true;
                }
            }
        }
        partners.iter().take(PARTNERS).any(|other| self.pack(excess, seat, &[*other], (false, Prefer::Here), steps))
    }

    /// The brokers that could make room, those first that may get something of this one, and of these the emptiest.
    fn partners_of(&self, excess: Excess, seat: Seat) -> Vec<Seat> {
        let others: Vec<Seat> = self.seats().filter(|other| *other != seat && self.rules.is_alive(*other)).collect();
        let mine: Vec<Slot> = self.movable(excess, seat);
        let room = |other: Seat| {
            let (level, limit) = self.aims.standing(excess.band, excess.gauge, &self.state, other);
            if limit.high > 0.0 { level / limit.high } else { f64::INFINITY }
        };
        let mut ranked: Vec<(bool, f64, Seat)> = Vec::with_capacity(others.len());
        for other in others {
            let takes = mine.iter().take(ITEMS).any(|slot| self.may_go(*slot, other, &[]));
            ranked.push((!takes, room(other), other));
        }
        ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2)));
        ranked.into_iter().map(|(.., other)| other).collect()
    }

    /// Packs the brokers anew if that relieves the first of what is too much, of `all` of it or of some, and does no hard
    /// goal any harm.
    fn pack(
        &mut self,
        excess: Excess,
        seat: Seat,
        others: &[Seat],
        (all, prefer): (bool, Prefer),
        steps: &mut u32,
    ) -> bool {
        let seats: Vec<Seat> = std::iter::once(seat).chain(others.iter().copied()).collect();
        // To look for what may go where costs as well.
        let looks = seats.iter().map(|seat| self.state.held(*seat).len()).sum::<usize>() * others.len();
        *steps = steps.saturating_sub(u32::try_from(looks).unwrap_or(u32::MAX));
        let given = STEPS_OF_A_GROUP[seats.len().min(MOST_BINS)].min(*steps);
        if given == 0 {
            return false;
        }
        let group = self.group(excess, seats, all);
        let mut left = given;
        let found = group.packing.solve(prefer, &mut left);
        *steps -= given - left;
        found.is_some_and(|found| self.rearrange(excess, &group, &found))
    }

    /// Moves what lies elsewhere in the arrangement, unless some hard goal would miss by more for it.
    fn rearrange(&mut self, excess: Excess, group: &Group, found: &[usize]) -> bool {
        let items = group.packing.items.iter().zip(&group.slots).zip(found);
        let moves: Vec<(Slot, Seat)> = items
            .filter(|((item, _), at)| item.here != **at)
            .map(|((_, slot), at)| (*slot, group.seats[*at]))
            .collect();
        let parts: Vec<Part> = moves.iter().map(|(slot, _)| self.state.cluster.part_of(*slot)).collect();
        let before = self.hard_misses(&group.seats, &parts);
        let back: Vec<(Slot, Seat)> = moves.iter().map(|(slot, _)| (*slot, self.state.seat(*slot))).collect();
        moves.iter().for_each(|(slot, to)| self.state.apply(Action::Move { slot: *slot, to: *to }));
        let after = self.hard_misses(&group.seats, &parts);
        back.iter().rev().for_each(|(slot, to)| self.state.apply(Action::Move { slot: *slot, to: *to }));
        let gain = before.iter().sum::<f64>() - after.iter().sum::<f64>();
        if gain <= NOISE || before.iter().zip(&after).any(|(before, after)| *after > *before + NOISE) {
            return false;
        }
        let why = super::Why::Goal { goal: excess.goal, gain: gain / moves.len() as f64 };
        for (slot, to) in moves {
            self.take(why, Action::Move { slot, to });
        }
        true
    }

    /// By how much each hard goal is missed, by brokers and hosts one by one and by partitions.
    fn hard_misses(&self, seats: &[Seat], parts: &[Part]) -> Vec<f64> {
        let level = |gauge: Gauge| move |seat: Seat| self.state.levels(seat)[gauge as usize];
        let mut misses: Vec<f64> = Vec::new();
        for Excess { gauge, band, .. } in self.hard_bands() {
            let seats = self.aims.with_mates(band, seats);
            misses.extend(seats.into_iter().map(|seat| self.aims.miss_of(band, seat, &level(gauge))));
        }
        for (goal, aim) in self.aims.aims.iter().enumerate().filter(|(goal, _)| self.is_hard(*goal)) {
            match aim {
                Aim::Racks => misses.extend(parts.iter().map(|part| self.aims.rack_mates_of(&self.state, *part))),
                Aim::EvenRacks => {
                    misses.extend(parts.iter().map(|part| self.aims.beyond_rack_quotas(&self.state, *part) as f64));
                }
                Aim::TopicLeaders => misses.push(self.aims.miss(goal, &self.state, self.rules)),
                _ => {}
            }
        }
        misses
    }

    /// The brokers with what of theirs may lie elsewhere.
    fn group(&self, excess: Excess, seats: Vec<Seat>, all: bool) -> Group {
        let most_of_each = ITEMS / seats.len();
        let mut slots: Vec<Slot> = Vec::new();
        for seat in &seats {
            let could_go = |slot: &Slot| seats.iter().any(|to| to != seat && self.may_go(*slot, *to, &seats));
            let movable: Vec<Slot> = self.movable(excess, *seat).into_iter().filter(could_go).collect();
            slots.extend(spread(&movable, most_of_each));
        }
        let place = |seat: Seat| seats.iter().position(|other| *other == seat).unwrap_or(0);
        let items: Vec<Item> =
            slots.iter().map(|slot| self.item(*slot, &seats, &slots, place(self.state.seat(*slot)))).collect();
        let mut bins: Vec<Bin> = seats.iter().map(|seat| self.bin(*seat)).collect();
        for item in &items {
            bins[item.here].base = minus(bins[item.here].base, item.weight);
        }
        let focus = excess.gauge as usize;
        let (level, limit) = self.aims.standing(excess.band, excess.gauge, &self.state, seats[0]);
        let target = self.state.levels(seats[0])[focus] + (limit.ceiling - level);
        if all {
            bins[0].most[focus] = target;
        }
        let gauges = self.hard_bands().map(|band| band.gauge as usize).collect();
        let racks_apart = self.aims.aims.iter().enumerate().any(|(goal, aim)| *aim == Aim::Racks && self.is_hard(goal));
        Group { packing: Packing { gauges, focus, target, bins, items, racks_apart }, seats, slots }
    }

    /// The broker with all that it carries. It may keep what it has, and get more up to the limits of hard goals.
    fn bin(&self, seat: Seat) -> Bin {
        let base: Levels = *self.state.levels(seat);
        let mut most = [f64::INFINITY; GAUGES];
        for Excess { gauge, band, .. } in self.hard_bands() {
            let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
            let gauge = gauge as usize;
            let room = limit.ceiling - level;
            // Sums that are added up in another order may differ a little.
            let kept = base[gauge] * (1.0 + 1e-12);
            most[gauge] = most[gauge].min(if room > 0.0 { base[gauge] + room } else { kept });
        }
        Bin { base, most, rack: self.aims.rack(seat) }
    }

    fn item(&self, slot: Slot, seats: &[Seat], items: &[Slot], here: usize) -> Item {
        // Those that are items themselves may move out of the way.
        let movable = |mate: Slot| items.contains(&mate);
        let mut may = 1 << here;
        for (place, seat) in seats.iter().enumerate().filter(|(place, _)| *place != here) {
            if self.may_go_beside(slot, *seat, movable) {
                may |= 1 << place;
            }
        }
        let part = self.state.cluster.part_of(slot);
        Item { weight: self.state.weight(slot), part, here, may }
    }

    /// The broker's replicas that may move, those first that carry most of what is too much.
    fn movable(&self, excess: Excess, seat: Seat) -> Vec<Slot> {
        let gauge = excess.gauge as usize;
        let topic = |slot: Slot| self.state.cluster.topic_of(self.state.cluster.part_of(slot));
        // Who must lead so many of a topic keeps them.
        let is_wanted = |slot: Slot| self.state.leads(slot) && self.aims.min_leaders(topic(slot)) > 0;
        let held = self.state.held(seat).iter().copied();
        let movable = held.filter(|slot| self.may_move(*slot, excess.goal) && !is_wanted(*slot));
        let mut sized: Vec<(f64, Slot)> = movable.map(|slot| (self.state.weight(slot)[gauge], slot)).collect();
        super::by_worth(&mut sized);
        sized.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Whether the replica may go to the broker, if those of its partition on `movable` brokers make room.
    fn may_go(&self, slot: Slot, to: Seat, movable: &[Seat]) -> bool {
        self.may_go_beside(slot, to, |mate| movable.contains(&self.state.seat(mate)))
    }

    fn may_go_beside(&self, slot: Slot, to: Seat, is_movable: impl Fn(Slot) -> bool) -> bool {
        let (state, aims) = (&self.state, &self.aims);
        let rack_of = |slot: Slot| aims.rack(state.seat(slot));
        let slots = || state.cluster.slots(state.cluster.part_of(slot));
        let hard = |aim: Aim| aims.aims.iter().enumerate().any(|(goal, one)| *one == aim && self.is_hard(goal));
        let racks_apart = hard(Aim::Racks);
        let meets = |mate: Slot| state.seat(mate) == to || (racks_apart && rack_of(mate) == aims.rack(to));
        let in_rack = |rack: u16| slots().filter(|other| rack_of(*other) == rack).count();
        let evens = || aims.rack(to) == rack_of(slot) || in_rack(aims.rack(to)) < in_rack(rack_of(slot));
        self.rules.may_receive(state, slot, state.leads(slot), to)
            && !slots().any(|mate| mate != slot && !is_movable(mate) && meets(mate))
            && (!hard(Aim::EvenRacks) || evens())
    }
}

/// The groups of others to be packed with a broker, small ones first.
fn groups(partners: &[Seat]) -> Vec<Vec<Seat>> {
    let mut groups: Vec<Vec<Seat>> = partners.iter().take(PARTNERS).map(|seat| vec![*seat]).collect();
    let paired = &partners[..partners.len().min(PAIRED)];
    for (at, one) in paired.iter().enumerate() {
        groups.extend(paired[at + 1..].iter().map(|other| vec![*one, *other]));
    }
    groups.extend((3..MOST_BINS).filter(|many| *many <= partners.len()).map(|many| partners[..many].to_vec()));
    groups
}

/// At most so many of them, from the first to the last at equal distances.
fn spread(slots: &[Slot], most: usize) -> Vec<Slot> {
    if slots.len() <= most {
        return slots.to_vec();
    }
    (0..most).map(|at| slots[at * slots.len() / most]).collect()
}
