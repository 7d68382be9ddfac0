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
    /// Whether a broker misses a hard goal by more than before, or a topic lacks more leaders. Racks are no matter of this:
    /// replicas of one partition move together, and others do not concern it.
    pub(crate) breaks: bool,
    /// Whether the first goal that they make any difference to misses by less.
    pub(crate) does_good: bool,
    way_back: Vec<Action>,
}

impl Net {
    /// Makes the changes happen; `None`, and nothing happens, if the placement is not one that they begin with.
    pub(crate) fn of(state: &mut State<'_>, aims: &Aims, changes: &[Change]) -> Option<Net> {
        let cluster = state.cluster;
        let brokers = changes.iter().flat_map(|change| change.old_replicas.iter().chain(&change.new_replicas));
        let seats: Vec<Seat> = brokers.filter_map(|id| cluster.seat_of(*id)).collect();
        let parts: Vec<Part> =
            changes.iter().filter_map(|change| cluster.find(&change.topic, change.partition)).collect();
        let before = misses(state, aims, &seats, &parts);
        // By how much more goals miss that count topics or leaders: they are not about single brokers.
        let mut counted = vec![0.0; aims.goals.len()];
        let mut net = Net { breaks: false, does_good: false, way_back: Vec::new() };
        for change in changes {
            let Some(actions) = actions(state, change) else {
                net.take_back(state);
                return None;
            };
            for (action, back) in actions {
                let effect = state.effect(action);
                for (index, sum) in counted.iter_mut().enumerate() {
                    if matches!(aims.aims[index], Aim::TopicReplicas | Aim::TopicLeaders | Aim::PreferredLeaders) {
                        *sum += aims.change(index, state, action, &effect);
                    }
                }
                state.apply(action);
                net.way_back.push(back);
            }
        }
        let after = misses(state, aims, &seats, &parts);
        for (index, _) in aims.goals.iter().enumerate().filter(|(_, goal)| goal.is_hard()) {
            let pairs = || before[index].iter().zip(&after[index]);
            let is_about_racks = matches!(aims.aims[index], Aim::Racks | Aim::EvenRacks);
            let rises = !is_about_racks && pairs().any(|(before, after)| *after > *before + NOISE);
            net.breaks |= rises || counted[index] > NOISE;
        }
        let sum = |misses: &[f64]| misses.iter().sum::<f64>();
        let mut differences = before
            .iter()
            .zip(&after)
            .zip(&counted)
            .map(|((before, after), counted)| sum(after) - sum(before) + counted);
        net.does_good = differences.find(|miss| miss.abs() > NOISE).is_some_and(|miss| miss < 0.0);
        Some(net)
    }

    /// Makes the state what it was.
    pub(crate) fn take_back(self, state: &mut State<'_>) {
        self.way_back.into_iter().rev().for_each(|back| state.apply(back));
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
