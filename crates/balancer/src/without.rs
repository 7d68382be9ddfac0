//! What would be worse if a single change of a plan were left out.
//!
//! Some changes are argued for by nothing that their two brokers carry, neither as found nor when they were chosen: they
//! make room for others, or took a longer way in the search. What they are good for shows in the end, when all of the plan
//! has happened but for them.

use crate::aims::{Aim, Aims, NOISE};
use crate::argument::Measure;
use crate::budget::actions;
use crate::cluster::{BrokerId, Cluster, Part, Seat};
use crate::gauges::{Levels, minus, plus, replica_levels};
use crate::goal::Goal;
use crate::options::Request;
use crate::plan::{Change, Plan};
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;

/// What is missed without a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worse {
    /// The goal that misses by more.
    pub goal: Goal,
    /// The broker on account of which it does.
    pub broker: BrokerId,
    /// What is measured there; none if it is replicas of the partition's topic that are counted.
    pub measure: Option<Measure>,
    /// How much of it there would be.
    pub level: f64,
    /// The most or, if there would be less, the least that there should be.
    pub limit: f64,
}

/// A plan that has happened, from which single changes are thought away.
#[derive(Debug)]
pub struct Without<'c> {
    state: State<'c>,
    aims: Aims,
}

impl<'c> Without<'c> {
    /// After all of `plan`, which was made for that request by these settings. `None` if it cannot have been.
    pub fn new(cluster: &'c Cluster, request: &Request, settings: &Settings, plan: &Plan) -> Option<Without<'c>> {
        let for_people = (!request.triggered_by_violation).then(|| settings.without_detector());
        let settings = for_people.as_ref().unwrap_or(settings);
        let rules = Rules::compile(cluster, request).ok()?;
        let is_measured = |goal: &Goal| !goal.is_intra_broker() && goal.is_measurable(cluster.unknown());
        let goals: Vec<Goal> = request.goals_in_force().into_iter().filter(is_measured).collect();
        let mut state = State::for_goals(cluster, &goals, settings);
        let mut aims = Aims::compile(&state, &goals, settings, &rules);
        for change in &plan.changes {
            actions(&state, change)?.into_iter().for_each(|(action, _)| state.apply(action));
        }
        aims.renew_leader_in(&state);
        Some(Without { state, aims })
    }

    /// What would be worse without the change, as far as it can be told in numbers that differ as they are read: for its own
    /// goal if that would be, else for the most important one.
    pub fn worse(&self, change: &Change, own: Goal) -> Option<Worse> {
        let part = self.state.cluster.find(&change.topic, change.partition)?;
        let differences = self.differences(part);
        let first = self.aims.goals.iter().position(|goal| *goal == own);
        let others = (0..self.aims.goals.len()).filter(|index| Some(*index) != first);
        first.into_iter().chain(others).find_map(|index| match self.aims.aims[index] {
            Aim::Band { gauge, band, .. } => {
                let now = |seat: Seat| self.state.levels(seat)[gauge as usize];
                let then = |seat: Seat| {
                    let difference = differences.iter().find(|(other, _)| *other == seat);
                    now(seat) + difference.map_or(0.0, |(_, levels)| levels[gauge as usize])
                };
                let rise = |seat: Seat| self.aims.miss_of(band, seat, &then) - self.aims.miss_of(band, seat, &now);
                let worst = worst(differences.iter().map(|(seat, _)| (rise(*seat), *seat)))?;
                let (limit, level) = (self.aims.limit(band, worst), then(worst));
                let limit = if level > limit.high { limit.high } else { limit.low };
                self.told(index, worst, (level, limit))
            }
            Aim::TopicReplicas => {
                let topic = self.state.cluster.topic_of(part);
                let now = |seat: Seat| self.state.topics().of(topic, seat);
                let slots = || self.state.cluster.slots(part);
                let then = |seat: Seat| {
                    let (came, left) = (
                        slots().filter(|slot| self.state.home(*slot) == seat).count() as u32,
                        slots().filter(|slot| self.state.seat(*slot) == seat).count() as u32,
                    );
                    (now(seat) + came).saturating_sub(left)
                };
                let miss = |count: u32, seat: Seat| self.aims.topic_miss(topic, count, seat);
                let rise = |seat: Seat| miss(then(seat), seat) - miss(now(seat), seat);
                let worst = worst(differences.iter().map(|(seat, _)| (rise(*seat), *seat)))?;
                let ((low, high), level) = (self.aims.topic_band(topic), then(worst));
                let limit = if level > high { high } else { low };
                self.told(index, worst, (f64::from(level), f64::from(limit)))
            }
            _ => None,
        })
    }

    /// What every broker that the partition changes anything for would carry more of, were it as found.
    fn differences(&self, part: Part) -> Vec<(Seat, Levels)> {
        let (state, cluster) = (&self.state, self.state.cluster);
        let mut differences: Vec<(Seat, Levels)> = Vec::new();
        let mut at = |seat: Seat| -> usize {
            let known = differences.iter().position(|(other, _)| *other == seat);
            known.unwrap_or_else(|| {
                differences.push((seat, [0.0; crate::gauges::GAUGES]));
                differences.len() - 1
            })
        };
        let ends: Vec<_> = cluster.slots(part).map(|slot| (slot, at(state.home(slot)), at(state.seat(slot)))).collect();
        for (slot, home, now) in ends {
            let weight = |leads: bool| replica_levels(cluster.slot_load(slot), cluster.lead_load(part), leads);
            differences[home].1 = plus(differences[home].1, weight(state.first_leader(part) == slot));
            differences[now].1 = minus(differences[now].1, weight(state.leader(part) == slot));
        }
        differences
    }

    /// In the units of whoever reads it, if the two are not the same there.
    fn told(&self, index: usize, seat: Seat, (level, limit): (f64, f64)) -> Option<Worse> {
        let (goal, broker) = (self.aims.goals[index], &self.state.cluster.brokers()[usize::from(seat)]);
        let measure = Measure::of(goal);
        let unit = measure.map_or(1.0, |measure| measure.unit(broker));
        let grain = measure.map_or(1.0, Measure::grain);
        let (level, limit) = if unit > 0.0 { (level / unit, limit / unit) } else { return None };
        let is_seen = (level - limit).abs() >= grain;
        is_seen.then_some(Worse { goal, broker: broker.id, measure, level, limit })
    }
}

/// The broker that misses by most more, if one does.
fn worst(rises: impl Iterator<Item = (f64, Seat)>) -> Option<Seat> {
    let rising = rises.filter(|(rise, _)| *rise > NOISE);
    rising.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1))).map(|(_, seat)| seat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Small, planned};

    fn without(small: Small, goal: Goal, settings: &Settings) -> Vec<Option<Worse>> {
        let (cluster, request) = (small.cluster(), Request::rebalance(&[goal]));
        let plan = planned(&cluster, &request, settings).unwrap().plan;
        let without = Without::new(&cluster, &request, settings, &plan).unwrap();
        plan.changes.iter().map(|change| without.worse(change, goal)).collect()
    }

    #[test]
    fn a_broker_would_carry_more_than_it_should() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0], 500.0);
        small.partition("t", 1, &[0], 400.0);
        let (goal, broker) = (Goal::DiskCapacity, BrokerId(0));
        let worse = Worse { goal, broker, measure: Measure::of(goal), level: 90.0, limit: 80.0 };
        assert_eq!(without(small, goal, &Settings::default()), [Some(worse)]);
    }

    #[test]
    fn replicas_of_a_topic_are_counted() {
        let mut small = Small::in_racks("ab");
        (0..10).for_each(|number| small.partition("t", number, &[0], 1.0));
        // Four to six on each broker.
        let settings = Settings {
            topic_replica_count_balance_threshold: 1.2,
            topic_replica_count_balance_min_gap: 0,
            ..Settings::default()
        };
        let (goal, broker) = (Goal::TopicReplicaDistribution, BrokerId(0));
        let worse = Worse { goal, broker, measure: None, level: 7.0, limit: 6.0 };
        assert_eq!(without(small, goal, &settings), [Some(worse); 4]);
    }

    #[test]
    fn what_nobody_would_miss_says_nothing() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0], 10.0);
        let cluster = small.cluster();
        let (from, to) = (BrokerId(0), BrokerId(1));
        let idle = crate::plan::unmoved(&cluster, 0);
        let idle = Change { new_replicas: vec![to], moves: vec![(from, to)], new_leader: to, ..idle };
        let plan = Plan { changes: vec![idle.clone()], undone: Default::default() };
        let request = Request::rebalance(&[Goal::DiskCapacity]);
        let without = Without::new(&cluster, &request, &Settings::default(), &plan).unwrap();
        assert_eq!(without.worse(&idle, Goal::DiskCapacity), None);
    }
}
