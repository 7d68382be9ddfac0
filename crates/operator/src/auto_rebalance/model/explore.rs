//! Visits every world that can be reached, and sees that each of them can come to rest.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::world::{Look, Rules, Step, World};

/// More steps than any world needs to come to rest if all goes well.
const PATIENCE: usize = 80;

type Visited = BTreeMap<World, Option<(World, Step)>>;

/// Visits all worlds. Tells the story that led to what must not be.
fn explore(rules: &Rules) -> Visited {
    let mut visited = Visited::from([(World::new(), None)]);
    let mut open = VecDeque::from([World::new()]);
    while let Some(world) = open.pop_front() {
        let next = catch_unwind(AssertUnwindSafe(|| {
            world.check();
            world.next(rules)
        }))
        .unwrap_or_else(|_| panic!("after this story:\n{}", story(&visited, &world)));
        for (what, after) in next {
            visited.entry(after).or_insert_with(|| {
                open.push_back(after);
                Some((world, what))
            });
        }
    }
    visited
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
    let mut restful: BTreeSet<World> = BTreeSet::new();
    for start in visited.keys() {
        let mut path = vec![start.left_alone()];
        while let Some(world) = path.last().copied() {
            if restful.contains(&world) || world.is_settled() {
                break;
            }
            assert!(path.len() < PATIENCE, "no rest for {world:?}\nafter this story:\n{}", story(visited, start));
            path.push(world.progress().1.looked(rules, Look::Clear).aged().left_alone());
        }
        restful.extend(path);
    }
}

fn everything_holds(rules: Rules) {
    let visited = explore(&rules);
    assert!(visited.len() > 10_000, "only {} worlds: the model is stuck", visited.len());
    all_come_to_rest(&rules, &visited);
}

const CALM: Rules = Rules { optional: 0b10, imbalance: false, preempt: false, meddling: false, failures: false };

#[test]
fn one_broker_comes_and_goes_while_everything_fails_and_users_meddle() {
    everything_holds(Rules { meddling: true, failures: true, ..CALM });
}

#[test]
fn two_brokers_come_and_go() {
    everything_holds(Rules { optional: 0b110, ..CALM });
}

#[test]
fn load_drifts_while_a_broker_comes_and_goes() {
    everything_holds(Rules { imbalance: true, failures: true, ..CALM });
}

#[test]
fn load_drifts_and_scaling_does_not_wait() {
    everything_holds(Rules { imbalance: true, preempt: true, meddling: true, ..CALM });
}
