//! The optimiser: goals in priority order, each improved as far as the ones before it allow.
//!
//! A goal is improved by trying actions, the ones that promise most for the fewest bytes first. An
//! action happens only if its goal misses by less afterwards and no goal of higher priority misses by
//! more; so whatever the order of attempts, no goal is ever made worse for one below it. Hard goals come
//! first wherever they are listed ([`Request`](crate::options::Request)): a plan that leaves one of them violated
//! would be refused as a whole.
//! Passes over the goals repeat until one changes nothing. What a pass does depends on the placement alone, never
//! on how it came about or on how long it took: planning again on the result finds nothing to do.

mod band;
mod evacuate;
mod fence;
mod greedy;
mod last_resort;
mod leader_in;
mod leadership;
mod racks;
mod strain;
mod survey;
mod swap;
mod topics;
mod undo;

use std::cmp::Ordering;

use crate::aims::{Aim, Aims, NOISE};
use crate::cluster::{Seat, Slot};
use crate::gauges::{Gauge, Levels, negated};
use crate::rules::Rules;
use crate::state::{Action, Effect, State};

use fence::{Fences, Quick};
use strain::Ease;

/// Passes over all goals after which a plan counts as good enough. Reaching a fixpoint takes two or
/// three; the bound is for clusters on which goals of later passes keep finding small change.
const MAX_PASSES: usize = 8;

/// An action that was taken, and what for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) why: Why,
    pub(crate) action: Action,
    pub(crate) from: Seat,
    pub(crate) to: Seat,
    /// What the two brokers carried before it of what its goal compares, if it compares brokers.
    pub(crate) levels: Option<(f64, f64)>,
}

/// What an action was taken for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    /// The goal at this index misses by so much less since.
    Goal { goal: usize, gain: f64 },
    /// The replica cannot stay where it was found.
    MustLeave,
    /// What was done before turned out needless.
    TakenBack,
}

/// Who is asked before an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judges {
    /// Every goal: what harms nobody is tried first.
    All,
    /// Only the goals of higher priority.
    Before,
}

/// Why an action was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The goal itself would not gain.
    NoGain,
    /// One of the judges would lose.
    Veto(usize),
}

/// A plan in the making.
#[derive(Debug)]
pub(crate) struct Search<'c, 'r> {
    pub(crate) state: State<'c>,
    pub(crate) rules: &'r Rules,
    pub(crate) aims: Aims,
    pub(crate) steps: Vec<Step>,
    /// How often each goal was refused something by each goal before it.
    pub(crate) vetoes: Vec<Vec<u64>>,
    pub(crate) threads: usize,
    /// What a move costs apart from its bytes, in MB.
    a_move: f64,
    eases: Vec<Ease>,
    scratch: Vec<(f64, Seat)>,
    fences_of_all: Fences,
    fences_before: Fences,
    /// How often the placement changed.
    age: u64,
    /// Whether every replica and every broker is asked, not only the most promising ones: the last resort before a hard
    /// goal counts as infeasible.
    asks_all: bool,
    /// Whether leaders must not take in less together than they do.
    keeps_leader_in: bool,
}

impl<'c, 'r> Search<'c, 'r> {
    pub(crate) fn new(state: State<'c>, rules: &'r Rules, aims: Aims, threads: usize) -> Self {
        let bytes: f64 = state.all_levels().iter().map(|levels| levels[Gauge::Disk as usize]).sum();
        let a_move = (A_MOVE * bytes / state.cluster.replica_count().max(1) as f64).max(1e-6);
        let (goals, seats) = (aims.goals.len(), state.cluster.brokers().len());
        Search {
            eases: (0..seats as Seat).map(|seat| Ease::of(&aims, &state, seat)).collect(),
            fences_of_all: Fences::of(&aims, goals, seats),
            fences_before: Fences::of(&aims, 0, seats),
            state,
            rules,
            aims,
            steps: Vec::new(),
            vetoes: vec![vec![0; goals]; goals],
            threads,
            a_move,
            scratch: Vec::new(),
            age: 0,
            asks_all: false,
            keeps_leader_in: false,
        }
    }

    /// Improves every goal until a whole pass changes nothing. What is offline leaves first, if it `evacuates`.
    pub(crate) fn run(&mut self, evacuates: bool) {
        if evacuates {
            self.evacuate();
        }
        self.settle();
    }

    /// Passes over the goals until one changes nothing.
    pub(crate) fn settle(&mut self) {
        // The placement's age when each goal last found nothing to do: as long as it has not changed since,
        // looking again would find the same.
        let mut done_at: Vec<Option<u64>> = vec![None; self.aims.goals.len()];
        let mut looked_back_on = 0;
        for _ in 0..MAX_PASSES {
            let before = self.age;
            self.renew();
            for (goal, done_at) in done_at.iter_mut().enumerate() {
                if *done_at != Some(self.age) {
                    self.fences_before = Fences::of(&self.aims, goal, self.seats().len());
                    let found = self.age;
                    self.improve_measured(goal);
                    *done_at = Some(found);
                }
            }
            // What was taken back may make more of it needless: again, until a look back finds nothing.
            if self.steps.len() > looked_back_on {
                looked_back_on = self.steps.len();
                self.look_back();
            }
            if self.age == before {
                break;
            }
        }
    }

    fn improve(&mut self, goal: usize) {
        match self.aims.aims[goal] {
            Aim::Band { gauge: Gauge::LeaderIn, band, .. } => self.improve_leader_in(goal, band),
            Aim::Band { gauge, band, .. } => self.improve_band(goal, gauge, band),
            Aim::Racks | Aim::EvenRacks => self.improve_racks(goal),
            Aim::TopicReplicas => self.improve_topics(goal),
            Aim::TopicLeaders => self.improve_topic_leaders(goal),
            Aim::PreferredLeaders => self.improve_preferred(goal),
        }
    }

    /// Lets `attempt` ask every replica and every broker.
    fn asking_all<T>(&mut self, attempt: impl FnOnce(&mut Self) -> T) -> T {
        self.asks_all = true;
        let outcome = attempt(self);
        self.asks_all = false;
        outcome
    }

    fn is_hard(&self, goal: usize) -> bool {
        self.aims.goals[goal].is_hard()
    }

    fn may_move(&self, slot: Slot, goal: usize) -> bool {
        self.rules.may_move(&self.state, slot, self.is_hard(goal))
    }

    /// Takes the action if its goal gains and none of the judges loses.
    fn attempt(&mut self, goal: usize, judges: Judges, action: Action) -> Result<(), Refusal> {
        let gain = self.judge(goal, judges, action)?;
        self.take(Why::Goal { goal, gain }, action);
        Ok(())
    }

    /// What the goal would gain by the action, if the judges let it happen. Counts who did not.
    fn judge(&mut self, goal: usize, judges: Judges, action: Action) -> Result<f64, Refusal> {
        let judged = self.weigh(goal, judges, action, &self.state.effect(action));
        if let Err(Refusal::Veto(vetoing)) = judged
            && vetoing < goal
        {
            self.vetoes[goal][vetoing] += 1;
        }
        judged
    }

    /// The same, for whoever only compares.
    fn weigh(&self, goal: usize, judges: Judges, action: Action, effect: &Effect) -> Result<f64, Refusal> {
        let gain = -self.aims.change(goal, &self.state, action, effect);
        if gain <= NOISE {
            return Err(Refusal::NoGain);
        }
        if self.starves_leaders(effect) {
            return Err(Refusal::Veto(self.aims.leader_in_goal().unwrap_or_default()));
        }
        let refused = match judges {
            Judges::Before => match self.fences_before.look(&self.state, effect) {
                Quick::Within => self.aims.veto_but_bands(goal, &self.state, action, effect),
                Quick::Leaves(vetoing) => Some(vetoing),
                Quick::Unsure => self.aims.veto(goal, &self.state, action, effect),
            },
            Judges::All => match self.fences_of_all.look(&self.state, effect) {
                Quick::Within => self.aims.veto_but_bands(self.aims.goals.len(), &self.state, action, effect),
                Quick::Leaves(vetoing) => Some(vetoing),
                Quick::Unsure => self.aims.harm(&self.state, action, effect),
            },
        };
        refused.map_or(Ok(gain), |vetoing| Err(Refusal::Veto(vetoing)))
    }

    /// Takes the action without asking, between the two brokers that are returned.
    fn take(&mut self, why: Why, action: Action) -> (Seat, Seat) {
        let effect = self.state.effect(action);
        let levels = self.compared(why, action, &effect);
        self.state.apply(action);
        self.age += 1;
        for seat in [effect.from, effect.to] {
            self.eases[usize::from(seat)] = Ease::of(&self.aims, &self.state, seat);
        }
        let (from, to) = (effect.from, effect.to);
        self.steps.push(Step { why, action, from, to, levels });
        (from, to)
    }

    /// What the two brokers carry of what the goal compares that the action is taken for.
    fn compared(&self, why: Why, action: Action, effect: &Effect) -> Option<(f64, f64)> {
        let Why::Goal { goal, .. } = why else { return None };
        match (self.aims.aims[goal], action) {
            (Aim::Band { gauge, .. }, _) => {
                let level = |seat: Seat| self.state.levels(seat)[gauge as usize];
                Some((level(effect.from), level(effect.to)))
            }
            (Aim::TopicReplicas, Action::Move { slot, .. }) => {
                let topic = self.state.cluster.topic_of(self.state.cluster.part_of(slot));
                let count = |seat: Seat| f64::from(self.state.topics().of(topic, seat));
                Some((count(effect.from), count(effect.to)))
            }
            _ => None,
        }
    }

    /// Moves the replica for `goal` to the broker that it strains least among `seats`.
    fn place(
        &mut self,
        goal: usize,
        judges: Judges,
        slot: Slot,
        seats: impl Iterator<Item = Seat>,
    ) -> Result<(), Refusal> {
        /// Brokers asked before the replica is given up, unless all are: the least strained ones refuse for
        /// reasons that the others mostly share.
        const ASKED: usize = 12;
        let weight = self.state.weight(slot);
        let mut ranked = std::mem::take(&mut self.scratch);
        // No use in asking brokers in a rack that has a replica of the partition, if that is what counts.
        let racks_bar = self.aims.aims[..=goal].contains(&Aim::Racks);
        self.rank_seats(slot, &weight, seats, racks_bar, &mut ranked);
        let mut outcome = Err(Refusal::NoGain);
        let most = if self.asks_all { ranked.len() } else { ASKED.min(ranked.len()) };
        for asked in 0..most {
            // The best of the rest comes next; a full sort would mostly be wasted.
            let mut best = asked;
            for other in asked + 1..ranked.len() {
                // Of equals the lower, as everywhere: two empty brokers are such equals.
                let (one, known) = (ranked[other], ranked[best]);
                if one.0 < known.0 || (one.0 == known.0 && one.1 < known.1) {
                    best = other;
                }
            }
            ranked.swap(asked, best);
            outcome = self.attempt(goal, judges, Action::Move { slot, to: ranked[asked].1 });
            if outcome.is_ok() {
                break;
            }
        }
        self.scratch = ranked;
        outcome
    }

    /// The brokers that may get the replica, with how much it would strain each.
    fn rank_seats(
        &self,
        slot: Slot,
        weight: &Levels,
        seats: impl Iterator<Item = Seat>,
        racks_bar: bool,
        ranked: &mut Vec<(f64, Seat)>,
    ) {
        ranked.clear();
        let part = self.state.cluster.part_of(slot);
        let leads = self.state.leads(slot);
        let topic = self.state.cluster.topic_of(part);
        let (counts, most) = (self.state.topics().row(topic), self.aims.most_of_topic(topic));
        // What the partition's other replicas bar is looked up once, and not for every broker.
        let slots = || self.state.cluster.slots(part);
        let closed: Vec<Seat> = slots().map(|other| self.state.seat(other)).collect();
        let others = slots().filter(|other| racks_bar && *other != slot);
        let closed_racks: Vec<u16> = others.map(|other| self.aims.rack(self.state.seat(other))).collect();
        let receivers = self.rules.receivers(&self.state, slot, leads);
        for seat in seats {
            let is_closed = closed.contains(&seat) || (racks_bar && closed_racks.contains(&self.aims.rack(seat)));
            if is_closed || !receivers.contains(seat) {
                continue;
            }
            let is_promised = self.aims.is_promised(self.aims.rack(seat), &self.state, part);
            let crowd = if counts[usize::from(seat)] >= most || is_promised { CROWDED_TOPIC } else { 0.0 };
            ranked.push((self.strain(seat, weight) + crowd, seat));
        }
    }

    /// Whether one more replica of the slot's topic is too many for the broker.
    fn is_crowded(&self, slot: Slot, seat: Seat) -> bool {
        let topic = self.state.cluster.topic_of(self.state.cluster.part_of(slot));
        self.state.topics().of(topic, seat) >= self.aims.most_of_topic(topic)
    }

    /// All brokers' seats.
    fn seats(&self) -> std::ops::Range<Seat> {
        0..self.state.cluster.brokers().len() as Seat
    }

    /// How much the broker would be relieved by losing `weight`.
    fn relief(&self, seat: Seat, weight: &Levels) -> f64 {
        -self.strain(seat, &negated(*weight))
    }

    /// What moving the replica costs: its bytes, and the move itself. A new replica is copied from the
    /// leader, so where the two are not of one size, both count.
    fn price(&self, slot: Slot) -> f64 {
        self.price_beside(slot, self.state.leader(self.state.cluster.part_of(slot)))
    }

    /// The same for whoever knows the leader.
    fn price_beside(&self, slot: Slot, leader: Slot) -> f64 {
        self.a_move + 0.5 * (self.state.cluster.megabytes(slot) + self.state.cluster.megabytes(leader))
    }

    /// How much good it does, for its price, that the replica's weight leaves `from` and, if that is
    /// known, goes to `to`.
    fn worth(&self, slot: Slot, weight: &Levels, from: Seat, to: Option<Seat>) -> f64 {
        let strain = to.map_or(0.0, |to| self.strain(to, weight));
        (self.relief(from, weight) - strain) / self.price(slot)
    }
}

/// What a move costs apart from its bytes, in replicas of mean size.
const A_MOVE: f64 = 0.3;

/// What one replica too many of a topic is made to look like while a broker is chosen, or one in a rack that a copy is on
/// its way into: worse than any honest strain, yet finite, because it may be the only place.
const CROWDED_TOPIC: f64 = 1e3;

/// By falling worth; equal ones by slot, so that no history shows.
fn best_first(one: &(f64, Slot), other: &(f64, Slot)) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}

fn by_worth(candidates: &mut [(f64, Slot)]) {
    candidates.sort_unstable_by(best_first);
}

/// Leaves the `most` worthiest, in order.
fn keep_best(candidates: &mut Vec<(f64, Slot)>, most: usize) {
    if candidates.len() > most {
        candidates.select_nth_unstable_by(most, best_first);
        candidates.truncate(most);
    }
    by_worth(candidates);
}

#[cfg(test)]
mod tests;
