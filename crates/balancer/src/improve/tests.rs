//! What every improvement of a goal must leave alone: the goals before it.

use super::*;
use crate::cluster::Load;
use crate::fixture::{Dice, Small, crooked, crooked_on_shared_hosts, planned};
use crate::goal::Goal;
use crate::options::{Request, TopicPattern};
use crate::settings::Settings;

fn misses(search: &Search<'_, '_>) -> Vec<f64> {
    (0..search.aims.goals.len()).map(|goal| search.aims.miss(goal, &search.state, search.rules)).collect()
}

#[track_caller]
fn assert_none_grew(what: &str, goals: &[Goal], before: &[f64], after: &[f64]) {
    for ((goal, before), after) in goals.iter().zip(before).zip(after) {
        assert!(*after <= *before + 1e-6, "{what} made {goal} worse: {before} -> {after} in {goals:?}");
    }
}

/// Goal by goal and pass by pass, in whatever order the goals are.
#[test]
fn no_goal_is_improved_at_the_cost_of_one_before_it() {
    let settings = Settings {
        topics_with_min_leaders_per_broker: Some(TopicPattern::new("t").unwrap()),
        topic_replica_count_balance_threshold: 1.2,
        topic_replica_count_balance_min_gap: 0,
        ..Settings::default()
    };
    let mut taken = 0;
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let cluster = crooked(&mut dice);
        let mut goals = Goal::DEFAULT.to_vec();
        goals.push(Goal::RackAwareDistribution);
        for last in (1..goals.len()).rev() {
            goals.swap(last, dice.below(last as u32 + 1) as usize);
        }
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let state = State::for_goals(&cluster, &goals, &settings);
        let aims = Aims::compile(&state, &goals, &settings, &rules);
        let mut search = Search::new(state, &rules, aims, 1);
        for _ in 0..2 {
            for goal in 0..goals.len() {
                let before = misses(&search);
                search.fences_before = Fences::of(&search.aims, goal, search.seats().len());
                search.improve(goal);
                assert_none_grew(&format!("{}", goals[goal]), &goals[..=goal], &before, &misses(&search));
            }
            let before = misses(&search);
            search.undo_needless();
            assert_none_grew("looking back", &goals, &before, &misses(&search));
        }
        taken += search.steps.len();
    }
    // Else nothing was tried at all.
    assert!(taken > 1_000, "{taken} steps");
}

/// The bands that brokers are kept in one by one: those of goals before `upto` that are about what brokers carry.
fn brokers_in_band(search: &Search<'_, '_>, upto: usize) -> Vec<(usize, Seat)> {
    let mut kept = Vec::new();
    for (goal, aim) in search.aims.aims[..upto].iter().enumerate() {
        if let Aim::Band { gauge, band, .. } = *aim {
            let level = |seat: Seat| search.state.levels(seat)[gauge as usize];
            let is_in = |seat: &Seat| search.aims.miss_of(band, *seat, &level) == 0.0;
            kept.extend(search.seats().filter(is_in).map(|seat| (goal, seat)));
        }
    }
    kept
}

/// Not even if another broker comes back into the band for it: by fences where each broker has a host to itself, and
/// where brokers share one by looking at each of them.
#[test]
fn no_broker_is_pushed_out_of_the_band_of_a_goal_before() {
    let settings = Settings::default();
    let (mut taken, mut kept) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let cluster = if seed % 2 == 0 { crooked_on_shared_hosts(&mut dice) } else { crooked(&mut dice) };
        let mut goals = Goal::DEFAULT.to_vec();
        for last in (1..goals.len()).rev() {
            goals.swap(last, dice.below(last as u32 + 1) as usize);
        }
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let state = State::found(&cluster);
        let aims = Aims::compile(&state, &goals, &settings, &rules);
        let mut search = Search::new(state, &rules, aims, 1);
        for goal in 0..goals.len() {
            let before = brokers_in_band(&search, goal);
            search.fences_before = Fences::of(&search.aims, goal, search.seats().len());
            // What leaders take in is measured by the mean that there is then.
            search.improve(goal);
            let after = brokers_in_band(&search, goal);
            for pair in &before {
                let is_measured_anew = search.aims.goals[pair.0] == Goal::LeaderBytesInDistribution;
                assert!(
                    after.contains(pair) || is_measured_anew,
                    "{} left {} for {}",
                    pair.1,
                    goals[pair.0],
                    goals[goal]
                );
            }
            kept += before.len();
        }
        taken += search.steps.len();
    }
    assert!(taken > 1_000 && kept > 10_000, "{taken} steps, {kept} kept");
}

/// Six brokers in three racks with 60 replicas each, three of each partition, and an empty one in rack a: only the two
/// beside it can give, down to the 46 that each of seven must keep, although all others have more than their share.
#[test]
fn an_empty_broker_gets_what_its_rack_can_give_whatever_goals_come_later() {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let mut small = Small::in_racks("abcabca");
        for number in 0..120 {
            let mut brokers: Vec<i32> = (0..3).map(|rack| rack + 3 * ((number / (1 << rack)) % 2)).collect();
            brokers.rotate_left(dice.below(3) as usize);
            let load = Load {
                cpu: dice.below(5) as f32 / 10.0,
                nw_in: dice.below(5) as f32,
                nw_out: dice.below(5) as f32,
                disk: dice.below(5) as f32,
            };
            small.loaded(&format!("t{}", number % 7), number, &brokers, load);
        }
        let cluster = small.cluster();
        for goals in [&[Goal::RackAware, Goal::ReplicaDistribution][..], &Goal::DEFAULT] {
            let outcome = planned(&cluster, &Request::rebalance(goals), &Settings::default()).unwrap();
            let replicas: Vec<u64> = outcome.after.iter().map(|load| load.replicas).collect();
            assert_eq!([0, 3, 6].map(|seat| replicas[seat]), [46, 46, 28], "seed {seed} with {goals:?}");
            let mut misses = outcome.verdicts.iter().flat_map(|verdict| [verdict.miss.0, verdict.miss.1]);
            assert!(misses.all(f64::is_sign_positive), "{:?}", outcome.verdicts);
        }
    }
}
