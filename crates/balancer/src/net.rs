//! What changes that happen together do to the goals, all in all.
//!
//! Orders and budgets ask whether changes may happen by themselves. What counts is what brokers carry once all of them have
//! happened: not the way there, and not what capacities ask of whoever is to take leadership over, which was the search's
//! business. Both ask here, so that what the one calls safe the other does not refuse.

use crate::aims::{Aim, Aims, NOISE};
use crate::budget::actions;
use crate::cluster::{Part, Seat};
use crate::plan::Change;
use crate::state::{Action, State};

/// What the changes did, which have happened in the state.
pub(crate) struct Net {
    pub(crate) outcome: Difference,
    way_back: Vec<Action>,
}

/// What has come of the goals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Difference {
    /// Whether a broker misses a hard goal by more than before, or a topic lacks more leaders. Racks are no matter of this:
    /// replicas of one partition move together, and others do not concern it.
    pub(crate) breaks: bool,
    /// Whether the first goal that they make any difference to misses by less.
    pub(crate) does_good: bool,
    /// The first goal that misses by more, and by how much.
    pub(crate) harm: Option<(usize, f64)>,
}

impl Net {
    /// Makes the changes happen; `None`, and nothing happens, if the placement is not one that they begin with.
    pub(crate) fn of(state: &mut State<'_>, aims: &Aims, changes: &[Change]) -> Option<Net> {
        let mut account = Account::open(state, aims, changes);
        let mut net = Net { outcome: Difference::default(), way_back: Vec::new() };
        for change in changes {
            let Some(actions) = actions(state, change) else {
                net.take_back(state);
                return None;
            };
            for (action, back) in actions {
                account.happens(state, aims, action);
                net.way_back.push(back);
            }
        }
        net.outcome = account.difference(state, aims);
        Some(net)
    }

    /// Makes the state what it was.
    pub(crate) fn take_back(self, state: &mut State<'_>) {
        self.way_back.into_iter().rev().for_each(|back| state.apply(back));
    }
}

/// How the goals stood before something happened, and what is needed to say how they stand since.
pub(crate) struct Account {
    seats: Vec<Seat>,
    parts: Vec<Part>,
    before: Vec<Vec<f64>>,
    /// By how much more goals miss that count topics or leaders: they are not about single brokers.
    counted: Vec<f64>,
}

impl Account {
    /// Of the brokers and partitions that these changes touch, none of which has happened yet.
    pub(crate) fn open(state: &State<'_>, aims: &Aims, changes: &[Change]) -> Account {
        let cluster = state.cluster;
        let brokers = changes.iter().flat_map(|change| change.old_replicas.iter().chain(&change.new_replicas));
        let mut seats: Vec<Seat> = brokers.filter_map(|id| cluster.seat_of(*id)).collect();
        seats.sort_unstable();
        seats.dedup();
        let parts: Vec<Part> =
            changes.iter().filter_map(|change| cluster.find(&change.topic, change.partition)).collect();
        let before = misses(state, aims, &seats, &parts);
        Account { seats, parts, before, counted: vec![0.0; aims.goals.len()] }
    }

    /// Makes the action happen.
    pub(crate) fn happens(&mut self, state: &mut State<'_>, aims: &Aims, action: Action) {
        let effect = state.effect(action);
        for (index, sum) in self.counted.iter_mut().enumerate() {
            if matches!(aims.aims[index], Aim::TopicReplicas | Aim::TopicLeaders | Aim::PreferredLeaders) {
                *sum += aims.change(index, state, action, &effect);
            }
        }
        state.apply(action);
    }

    /// What has come of it.
    pub(crate) fn difference(&self, state: &State<'_>, aims: &Aims) -> Difference {
        let (before, after) = (&self.before, misses(state, aims, &self.seats, &self.parts));
        let mut difference = Difference::default();
        for (index, _) in aims.goals.iter().enumerate().filter(|(_, goal)| goal.is_hard()) {
            let mut pairs = before[index].iter().zip(&after[index]);
            let is_about_racks = matches!(aims.aims[index], Aim::Racks | Aim::EvenRacks);
            let rises = !is_about_racks && pairs.any(|(before, after)| *after > *before + NOISE);
            difference.breaks |= rises || self.counted[index] > NOISE;
        }
        let sum = |misses: &[f64]| misses.iter().sum::<f64>();
        let changed = |index: usize| sum(&after[index]) - sum(&before[index]) + self.counted[index];
        let mut changes = (0..aims.goals.len()).map(changed).enumerate().filter(|(_, miss)| miss.abs() > NOISE);
        let first = changes.next();
        difference.does_good = first.is_some_and(|(_, miss)| miss < 0.0);
        difference.harm = first.into_iter().chain(changes).find(|(_, miss)| *miss > 0.0);
        difference
    }
}

/// By how much each goal is missed by the brokers that are touched and by their hosts, or by the partitions.
fn misses(state: &State<'_>, aims: &Aims, seats: &[Seat], parts: &[Part]) -> Vec<Vec<f64>> {
    let of = |aim: &Aim| -> Vec<f64> {
        match *aim {
            Aim::Band { gauge, band, .. } => {
                let level = |seat: Seat| state.levels(seat)[gauge as usize];
                aims.with_mates(band, seats).into_iter().map(|seat| aims.miss_of(band, seat, &level)).collect()
            }
            Aim::Racks => parts.iter().map(|part| aims.rack_mates_of(state, *part)).collect(),
            Aim::EvenRacks => parts.iter().map(|part| aims.beyond_rack_quotas(state, *part) as f64).collect(),
            Aim::TopicReplicas | Aim::TopicLeaders | Aim::PreferredLeaders => Vec::new(),
        }
    };
    aims.aims.iter().map(of).collect()
}
