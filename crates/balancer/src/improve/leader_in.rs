//! The goal whose measure changes with every leader: the mean of what leaders take in.
//!
//! Where the replicas of a partition differ, whoever changes its leader changes that mean, and with it how far every broker
//! is from the goal; but judging each action by all brokers would cost too much. So actions are judged by the mean as it
//! was, and what came of them together by the mean as it is then: if the goal is worse off by that, they are taken back.
//! So no goal that comes later, and no look back, undoes what was gained here, and the search does not go round in circles.

use super::strain::Ease;
use super::{Fences, Search};
use crate::aims::NOISE;
use crate::gauges::Gauge;
use crate::state::Effect;

/// How often in a pass leaders' traffic is measured by a new mean.
const RENEWALS: usize = 4;

/// A moment to which the search can return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    steps: usize,
    age: u64,
    /// By how much the goal missed that is asked about, mostly that about leaders' traffic.
    miss: f64,
}

impl Search<'_, '_> {
    /// Improves the goal. One that comes after that about leaders' traffic leaves it as it is, by whatever mean.
    pub(super) fn improve_measured(&mut self, goal: usize) {
        match self.aims.leader_in_goal() {
            Some(measured) if measured < goal => self.keep_leader_in(measured, |search| search.improve(goal)),
            _ => self.improve(goal),
        }
    }

    /// Takes back what is needless, as far as that leaves leaders' traffic as it is.
    pub(super) fn look_back(&mut self) {
        match self.aims.leader_in_goal() {
            Some(measured) => self.keep_leader_in(measured, Self::undo_needless),
            None => self.undo_needless(),
        }
    }

    /// What is done for this goal changes the mean that it measures by: again, until that stays as it is, or nothing is
    /// gained by what is done.
    pub(super) fn improve_leader_in(&mut self, goal: usize, band: usize) {
        for _ in 0..RENEWALS {
            self.renew();
            let before = self.moment(goal);
            self.improve_band(goal, Gauge::LeaderIn, band);
            if self.age == before.age {
                break;
            }
            if self.renew() && self.miss(goal) > before.miss - NOISE {
                self.return_to(before);
                break;
            }
        }
    }

    /// Does the work. If that takes leaders' traffic further from its goal, by the mean that it leads to, it is done again
    /// without what makes leaders take in less in all: the mean does not fall then, so that every broker may take in as much
    /// as before, and nothing is worse than by the mean as it was.
    fn keep_leader_in(&mut self, measured: usize, work: impl Fn(&mut Self)) {
        let before = self.moment(measured);
        work(self);
        if self.renew() && self.miss(measured) > before.miss + NOISE {
            self.return_to(before);
            self.keeps_leader_in = true;
            work(self);
            self.keeps_leader_in = false;
            self.renew();
        }
    }

    /// Whether leaders would take in less in all after an action that changes so much, where they must not.
    pub(super) fn starves_leaders(&self, effect: &Effect) -> bool {
        let gauge = Gauge::LeaderIn as usize;
        self.keeps_leader_in && effect.on_from[gauge] + effect.on_to[gauge] < 0.0
    }

    /// Measures what leaders take in by the mean of the placement as it is by now. Says whether that is another one.
    pub(super) fn renew(&mut self) -> bool {
        let renewed = self.aims.renew_leader_in(&self.state);
        if renewed {
            let (goals, seats) = (self.aims.goals.len(), self.seats());
            self.fences_of_all = Fences::of(&self.aims, goals, seats.len());
            self.eases = seats.map(|seat| Ease::of(&self.aims, &self.state, seat)).collect();
        }
        renewed
    }

    fn miss(&self, goal: usize) -> f64 {
        self.aims.miss(goal, &self.state, self.rules)
    }

    pub(super) fn moment(&self, goal: usize) -> Moment {
        Moment { steps: self.steps.len(), age: self.age, miss: self.miss(goal) }
    }

    /// Takes back all that was done since. Everything is counted anew, so that not even rounding is left of it.
    pub(super) fn return_to(&mut self, moment: Moment) {
        self.steps.truncate(moment.steps);
        self.age = moment.age;
        self.state = self.state.as_found();
        self.steps.iter().for_each(|step| self.state.apply(step.action));
        self.eases = self.seats().map(|seat| Ease::of(&self.aims, &self.state, seat)).collect();
        self.renew();
    }
}
