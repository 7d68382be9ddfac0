//! What every improvement of a goal must leave alone: the goals before it.

use super::*;
use crate::fixture::{Dice, crooked};
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
        let state = State::found(&cluster);
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
