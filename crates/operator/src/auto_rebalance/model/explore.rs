//! Visits every world that can be reached, and sees that each of them can come to rest.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
};

use evenkeel_testkit::story::Chance;

use super::{
    others::{Rules, Step},
    picture::{self, Arrows},
    world::{Look, World},
};

/// More steps than any world needs to come to rest if all goes well.
const PATIENCE: usize = 80;

/// Every world that was seen, with the one before it and what happened in between.
type Visited = HashMap<World, Option<(World, Step)>>;

/// Visits all worlds, by these arrows of the machine. Tells the story that led to what must not be.
fn explore(rules: &Rules) -> (Visited, Arrows) {
    let first = World::new(rules);
    let mut visited = Visited::from([(first, None)]);
    let mut open = VecDeque::from([first]);
    let mut taken = Arrows::new();
    while let Some(world) = open.pop_front() {
        for (what, after) in steps(rules, &visited, &world) {
            taken.extend(picture::arrow(&world, &after));
            visited.entry(after).or_insert_with(|| {
                open.push_back(after);
                Some((world, what))
            });
        }
    }
    (visited, taken)
}

/// All that can happen next, after a look at what must never be.
fn steps(rules: &Rules, visited: &Visited, world: &World) -> Vec<(Step, World)> {
    catch_unwind(AssertUnwindSafe(|| {
        world.check();
        world.next(rules)
    }))
    .unwrap_or_else(|_| panic!("after this story:\n{}", story(visited, world)))
}

fn story(visited: &Visited, end: &World) -> String {
    let mut lines = vec![format!("{end:#?}")];
    let mut world = *end;
    while let Some(Some((before, what))) = visited.get(&world) {
        lines.push(format!("{}\n    {what:?}", before.sketch()));
        world = *before;
    }
    lines.reverse();
    lines.join("\n")
}

/// From every world, once it is left alone and the engine does its work, everything comes to rest: the
/// brokers are those that were asked for, nothing is queued, and no generated resource is left.
fn all_come_to_rest(rules: &Rules, visited: &Visited) {
    let mut restful = HashSet::new();
    for start in visited.keys() {
        let mut path = vec![start.left_alone(rules)];
        while let Some(world) = path.last().copied() {
            if restful.contains(&world) || world.is_settled() {
                break;
            }
            assert!(path.len() < PATIENCE, "no rest for {world:?}\nafter this story:\n{}", story(visited, start));
            let next = world.progress().1.without_manual().looked(rules, Look::Clear);
            path.push(next.aged(true).left_alone(rules));
        }
        restful.extend(path);
    }
}

/// From every world, if load is uneven and stays so until somebody evens it out, somebody does, once the world is left alone.
fn load_is_evened_out(rules: &Rules, visited: &Visited) {
    let mut hopeful = HashSet::new();
    for start in visited.keys() {
        let mut path = vec![start.left_alone(rules).drifted()];
        while let Some(world) = path.last().copied() {
            if hopeful.contains(&world) || world.is_mended() {
                break;
            }
            assert!(path.len() < PATIENCE, "never even: {world:?}\nafter this story:\n{}", story(visited, start));
            let next = world.progress().1.without_manual();
            path.push(next.looked(rules, Look::Clear).aged(true).left_alone(rules).drifted());
        }
        hopeful.extend(path);
    }
}

/// The arrows of the machine that were taken.
fn everything_holds(rules: Rules) -> Arrows {
    let (visited, taken) = explore(&rules);
    assert!(visited.len() > 1_000, "only {} worlds: the model is stuck", visited.len());
    all_come_to_rest(&rules, &visited);
    if rules.imbalance {
        load_is_evened_out(&rules, &visited);
    }
    picture::shows(&taken);
    taken
}

/// One broker comes and goes, and all goes well.
fn calm() -> Rules {
    Rules { optional: 0b10, ..Rules::default() }
}

/// Between them they take every arrow that is drawn.
#[test]
fn two_brokers_come_and_go_or_load_drifts_and_scaling_does_not_wait() {
    let scaling = everything_holds(Rules { optional: 0b110, steady: true, ..calm() });
    let drifting = everything_holds(Rules { imbalance: true, preempt: true, meddling: true, steady: true, ..calm() });
    picture::invents_nothing(&(&scaling | &drifting));
}

/// Additions are lost where both lists are written, and somebody dies in between.
#[test]
fn two_brokers_come_and_go_though_the_operator_dies_between_any_two_writes() {
    everything_holds(Rules { optional: 0b110, ..calm() });
}

#[test]
fn everything_fails_and_users_meddle() {
    everything_holds(Rules { meddling: true, failures: true, ..calm() });
}

#[test]
fn nobody_knows_how_rebalances_end() {
    everything_holds(Rules { lost: true, meddling: true, ..calm() });
}

#[test]
fn engines_are_replaced_and_refuse_what_passes() {
    everything_holds(Rules { engines: true, failures: true, meddling: true, ..calm() });
}

#[test]
fn load_drifts_while_everything_fails() {
    everything_holds(Rules { imbalance: true, failures: true, ..calm() });
}

#[test]
fn load_drifts_and_guards_hold_it() {
    everything_holds(Rules { imbalance: true, guards: true, ..Rules::default() });
}

#[test]
fn users_edit_rebalances_and_ask_for_them_anew() {
    everything_holds(Rules { edits: true, ..calm() });
}

#[test]
fn users_put_finalizers_on_rebalances() {
    everything_holds(Rules { keeps: true, imbalance: true, ..calm() });
}

#[test]
fn users_have_rebalances_of_their_own() {
    everything_holds(Rules { manual: true, names: true, imbalance: true, ..calm() });
}

#[test]
fn templates_come_and_go() {
    everything_holds(Rules { templates: true, failures: true, ..calm() });
}

#[test]
fn modes_are_switched_off_and_on_while_rebalances_are_paused() {
    everything_holds(Rules { switching: true, pauses: true, ..calm() });
}

#[test]
fn modes_are_switched_off_and_on_while_load_drifts() {
    everything_holds(Rules { switching: true, imbalance: true, steady: true, ..calm() });
}

/// Everything together is more than can be visited: walks through it, of which a seed chooses every step. More of them by
/// `EVENKEEL_SEEDS`, which a soak sets.
#[test]
fn all_kinds_of_trouble_in_orders_that_seeds_choose() {
    const STEPS: usize = 150;
    let seeds = std::env::var("EVENKEEL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    for seed in 0..seeds {
        let rules = Rules {
            optional: 0b110,
            steady: false,
            imbalance: true,
            preempt: seed % 2 == 1,
            meddling: true,
            failures: true,
            lost: true,
            engines: true,
            pauses: true,
            edits: true,
            keeps: true,
            manual: true,
            names: true,
            templates: true,
            switching: true,
            guards: true,
        };
        let mut chance = Chance::new(seed);
        let mut world = World::new(&rules);
        let mut visited = Visited::from([(world, None)]);
        for _ in 0..STEPS {
            let mut next = steps(&rules, &visited, &world);
            // The operator comes by, and the rebalance goes on, as often as everything else together happens.
            let looks = next.iter().filter(|(what, _)| !matches!(what, Step::Happens(_))).count();
            let chosen = match chance.below(4) {
                0 => chance.below(next.len() as u64) as usize,
                1 => looks - 1,
                _ => chance.below(looks as u64) as usize,
            };
            let (what, after) = match chance.once_in(4) {
                true => (Step::Happens("the rebalance goes on"), world.progress().1),
                false => next.swap_remove(chosen),
            };
            visited.entry(after).or_insert(Some((world, what)));
            world = after;
        }
        all_come_to_rest(&rules, &visited);
        load_is_evened_out(&rules, &visited);
    }
}
