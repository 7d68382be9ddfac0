//! Looks at every world that can be reached, rather than at chosen paths.
//!
//! What may happen: the user says something, the engine goes on, forgets or is silent, the controller dies
//! between two writes. What must hold, whatever happens, is asserted on the way: in [`super::world`] when a
//! call arrives, here when a reconciliation has ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use evenkeel_api::annotations;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_testkit::story::Chance;

use super::super::{Call, Decision, Finalizer, FoundKafka, Next};
use super::world::{End, Executor, Kind, Status, World};

/// Explores, and says how often each state was seen. `undisturbed`: the user says nothing in the midst of a reconciliation.
fn explore(kind: Kind, auto: bool, words: u32, faults: u32, undisturbed: bool) -> BTreeMap<&'static str, usize> {
    explore_from(World::new(kind, auto, words, faults), undisturbed)
}

fn explore_from(world: World, undisturbed: bool) -> BTreeMap<&'static str, usize> {
    let mut seen = BTreeSet::new();
    let mut rested = BTreeSet::new();
    let mut states = BTreeMap::new();
    let mut queue = VecDeque::from([world]);
    while let Some(world) = queue.pop_front() {
        if !seen.insert(world.key()) {
            continue;
        }
        let state = if world.gone { "gone" } else { world.state().as_str() };
        *states.entry(state).or_default() += 1;
        if world.gone {
            continue;
        }
        comes_to_rest(&world, &mut rested);
        for (after, end, next) in world.reconcile(undisturbed) {
            check(&world, &after, end, &next);
            queue.push_back(after);
        }
        queue.extend(user(&world));
        queue.extend(engine(&world));
        queue.extend(surroundings(&world));
    }
    states
}

/// What must hold after a reconciliation, whatever was before.
fn check(before: &World, after: &World, end: End, next: &Next) {
    let (was, is) = (before.state(), after.state());
    let context = || format!("{was} -> {is}, {end:?}: {:?}", after.engine);
    let rests = |state| matches!(state, RebalanceState::Stopped | RebalanceState::NotReady | RebalanceState::Ready);
    let resource = &before.scene.seen.resource;
    let asked = before.scene.asked();

    // What rests begins anew only when it is asked to, edited, or had never begun.
    if rests(was) && is != was {
        let edited = before.scene.status().observed_generation != resource.metadata.generation;
        let never_began = was == RebalanceState::NotReady
            && matches!(before.scene.reason(), Some("InvalidResourceException" | "NoSuchResourceException"));
        let paused = is == RebalanceState::ReconciliationPaused;
        assert!(asked == Some("refresh") || edited || never_began || paused, "restarted: {}", context());
    }
    if end == End::Crashed || after.gone {
        return;
    }

    // The finalizer is there while an operation runs, and only then.
    let held = after.scene.has_finalizer();
    match is {
        RebalanceState::PendingProposal | RebalanceState::Rebalancing => assert!(held, "{}", context()),
        RebalanceState::ProposalReady if held => {
            // Whoever is told that the engine is busy may be told of its own run, and searches next time.
            let in_doubt = end == End::Troubled || after.scene.warnings().contains(&"WaitingForOtherRebalance");
            assert!(
                matches!(next, Next::After(_)) && in_doubt || blocked(after),
                "in doubt for no reason: {}",
                context()
            );
        }
        RebalanceState::ReconciliationPaused => {}
        _ => assert!(!held, "{}", context()),
    }

    // No run is out of sight, and none is declared over that is not.
    if end == End::Clean
        && after.engine.is_busy_with_ours()
        && !blocked(after)
        && is != RebalanceState::ReconciliationPaused
    {
        let followed = is == RebalanceState::Rebalancing;
        let forgotten = is == RebalanceState::NotReady && after.scene.reason() == Some("ExecutionOutcomeUnknown");
        assert!(followed && !forgotten, "a run is out of sight: {}", context());
    }

    // What is under way is looked at again by itself.
    if matches!(is, RebalanceState::PendingProposal | RebalanceState::Rebalancing) {
        assert!(matches!(next, Next::After(_)), "nobody comes back: {}", context());
    }
}

/// Whether the engine cannot be asked.
fn blocked(world: &World) -> bool {
    match &world.scene.seen.kafka {
        FoundKafka::There(cluster) => cluster.engine.is_none(),
        _ => true,
    }
}

/// From every world, with an engine that answers, a stable one is reached, and stays. `rested`: those of which this is
/// known already, so that no way is walked twice.
fn comes_to_rest(from: &World, rested: &mut BTreeSet<u64>) {
    let mut world = from.clone();
    (world.words, world.faults) = (0, 0);
    let mut way = Vec::new();
    world.scene.seen.kafka = World::new(world.engine.kind, world.auto, 0, 0).scene.seen.kafka;
    for _ in 0..30 {
        let key = world.key();
        if rested.contains(&key) {
            rested.extend(way);
            return;
        }
        way.push(key);
        let Some((after, _, next)) = best(world.reconcile(true)) else { panic!("no way on") };
        world = after;
        if world.gone {
            rested.extend(way);
            return;
        }
        let quiet = !finish(&mut world);
        if next == Next::Rest && quiet {
            let again = super::super::decide(&world.scene.seen);
            // Whoever looks may ask for loads that were lost, though nobody knows them any more.
            let asks = matches!(&again.next, Next::Call(call) if matches!(**call, Call::Follow { .. }));
            let again = if asks { Decision { next: Next::Rest, ..again } } else { again };
            assert_eq!(again, Decision { next: Next::Rest, finalizer: Finalizer::Leave, ..Decision::nothing() });
            rested.extend(way);
            return;
        }
    }
    panic!("no rest in sight: {} {:?} {:?}", world.state(), world.scene.status(), world.engine);
}

/// Of all answers the first of each: the one that goes on.
fn best(ends: Vec<(World, End, Next)>) -> Option<(World, End, Next)> {
    // The stack gives the first answer last.
    ends.into_iter().next_back()
}

/// The engine brings everything to its end. Whether there was anything.
fn finish(world: &mut World) -> bool {
    let busy = world.engine.jobs.iter().find(|job| matches!(job.status, Status::Active | Status::InExecution)).cloned();
    match world.engine.executor {
        Executor::Foreign => world.engine.executor = Executor::Idle,
        Executor::Runs { n, stopping } => {
            world.engine.executor = Executor::Idle;
            world.engine.set(n, if stopping { Status::Broken } else { Status::Completed });
        }
        Executor::Idle => match &busy {
            Some(job) if job.executes => {
                world.engine.set(job.n, Status::InExecution);
                world.engine.executor = Executor::Runs { n: job.n, stopping: false };
            }
            Some(job) => {
                world.engine.set(job.n, Status::Completed);
                world.proposed(job.n);
            }
            None => return false,
        },
    }
    true
}

/// What the user may do.
pub(super) fn user(world: &World) -> Vec<World> {
    if world.words == 0 {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut say = |change: &dyn Fn(&mut World)| {
        let mut after = world.clone();
        after.words -= 1;
        change(&mut after);
        all.push(after);
    };
    for command in ["approve", "stop", "refresh", "aprove"] {
        if world.scene.asked() != Some(command) {
            say(&|after| {
                // An approval that another word takes the place of was never in force, unless it is on its way already.
                let is_unspent = after.approvals > after.accepted && after.engine.unread.is_none();
                if after.scene.asked() == Some("approve") && !after.auto && is_unspent {
                    after.approvals -= 1;
                }
                after.scene.ask(command);
                after.approvals += u32::from(command == "approve" && !after.auto);
            });
        }
    }
    if !world.deleting() {
        say(&|after| after.scene.edit(|_| {}));
        say(&|after| {
            after.scene.delete();
            let finalizers = after.scene.seen.resource.metadata.finalizers.as_deref().unwrap_or_default();
            after.gone = finalizers.is_empty();
        });
    }
    let notes = world.scene.seen.resource.metadata.annotations.clone().unwrap_or_default();
    let other = if annotations::is_paused(&notes) { "false" } else { "true" };
    say(&|after| after.scene.annotate("strimzi.io/pause-reconciliation", other));
    all
}

/// How the engine may go on.
fn engine(world: &World) -> Vec<World> {
    let mut all = Vec::new();
    let mut go = |change: &dyn Fn(&mut World)| {
        let mut after = world.clone();
        change(&mut after);
        all.push(after);
    };
    for job in &world.engine.jobs {
        let n = job.n;
        match (job.status, job.executes) {
            (Status::Active, false) => {
                go(&|after| {
                    after.engine.set(n, Status::Completed);
                    after.proposed(n);
                });
                go(&|after| after.engine.set(n, Status::Refused));
            }
            (Status::Active, true) => {
                go(&|after| {
                    after.engine.set(n, Status::InExecution);
                    after.engine.executor = Executor::Runs { n, stopping: false };
                });
                // It could not be planned, so nothing moves: the approval is not used up by it.
                go(&|after| {
                    after.engine.set(n, Status::Refused);
                    after.accepted -= 1;
                });
            }
            _ => {}
        }
    }
    match world.engine.executor {
        Executor::Runs { n, stopping } => {
            let mut end = |status| {
                go(&|after| {
                    after.engine.set(n, status);
                    after.engine.executor = Executor::Idle;
                });
            };
            end(Status::Broken);
            if !stopping {
                end(Status::Completed);
            }
        }
        Executor::Foreign => go(&|after| after.engine.executor = Executor::Idle),
        Executor::Idle => {}
    }
    if world.faults > 0 {
        let mut fail = |change: &dyn Fn(&mut World)| {
            go(&|after| {
                after.faults -= 1;
                change(after);
            });
        };
        match world.engine.kind {
            // It restarts: executions are remembered, proposals are not, nor what it had not read.
            Kind::Ours => fail(&|after| {
                after.engine.unread = None;
                after.engine.jobs.retain(|job| job.executes);
                after.engine.known_proposal = None;
            }),
            // It restarts, and nothing is remembered.
            Kind::Original => fail(&|after| {
                after.engine.unread = None;
                after.engine.jobs.clear();
                after.engine.executor = Executor::Idle;
            }),
        }
        if world.engine.executor == Executor::Idle && !world.engine.is_busy_with_ours() {
            fail(&|after| after.engine.executor = Executor::Foreign);
        }
    }
    all
}

/// What may happen around it.
fn surroundings(world: &World) -> Vec<World> {
    let FoundKafka::There(cluster) = &world.scene.seen.kafka else { return Vec::new() };
    let mut all = Vec::new();
    if !cluster.ready || cluster.engine.is_none() {
        let mut healed = world.clone();
        healed.scene.seen.kafka = World::new(world.engine.kind, world.auto, 0, 0).scene.seen.kafka;
        all.push(healed);
    } else if world.faults > 0 {
        let mut not_ready = world.clone();
        not_ready.faults -= 1;
        not_ready.scene.kafka().ready = false;
        let mut undeclared = world.clone();
        undeclared.faults -= 1;
        undeclared.scene.kafka().engine = None;
        all.extend([not_ready, undeclared]);
    }
    all
}

fn all_states_are_seen(states: &BTreeMap<&'static str, usize>) {
    for state in ["PendingProposal", "ProposalReady", "Rebalancing", "Stopped", "NotReady", "Ready", "gone"] {
        assert!(states.contains_key(state), "{state} must be reachable: {states:?}");
    }
}

#[test]
fn two_words_and_no_fault() {
    all_states_are_seen(&explore(Kind::Ours, false, 2, 0, true));
}

#[test]
fn one_word_and_a_fault() {
    for kind in [Kind::Ours, Kind::Original] {
        explore(kind, false, 1, 1, true);
    }
}

#[test]
fn auto_approval_a_word_and_a_fault() {
    for kind in [Kind::Ours, Kind::Original] {
        explore(kind, true, 1, 1, true);
    }
}

/// What automatic rebalancing has made. Its maker's finalizer is never taken off here, so it is never gone.
#[test]
fn one_that_was_generated_and_two_words() {
    let mut world = World::new(Kind::Ours, true, 2, 0);
    world.scene.set_finalizer(annotations::AUTO_REBALANCING_FINALIZER, true);
    let states = explore_from(world, true);
    for state in ["ProposalReady", "Rebalancing", "Stopped", "NotReady", "Ready"] {
        assert!(states.contains_key(state), "{state} must be reachable: {states:?}");
    }
    assert!(!states.contains_key("gone"), "{states:?}");
}

/// What was approved, by hand or beforehand, is stopped, renewed, edited, paused or deleted while the engine is being asked.
#[test]
fn a_word_in_the_midst_of_a_reconciliation() {
    for (kind, auto) in [(Kind::Ours, false), (Kind::Ours, true), (Kind::Original, false), (Kind::Original, true)] {
        explore(kind, auto, 1, 0, false);
    }
}

/// Where all worlds are too many: walks through a larger one, of which the seed chooses every step.
fn walk(kind: Kind, auto: bool, seed: u64, rested: &mut BTreeSet<u64>) {
    const STEPS: usize = 60;
    let mut chance = Chance::new(seed);
    let mut world = World::new(kind, auto, 6, 4);
    for _ in 0..STEPS {
        if world.gone {
            return;
        }
        comes_to_rest(&world, rested);
        // The controller comes by as often as everything else together happens.
        let elsewhere: Vec<World> =
            user(&world).into_iter().chain(engine(&world)).chain(surroundings(&world)).collect();
        if !elsewhere.is_empty() && chance.once_in(2) {
            let chosen = chance.below(elsewhere.len() as u64) as usize;
            world = elsewhere.into_iter().nth(chosen).expect("one of them");
            continue;
        }
        // In the midst of it only when nothing can fail any more: there would be too many ends.
        let ends = world.reconcile(world.faults > 0 || !chance.once_in(4));
        let chosen = chance.below(ends.len() as u64) as usize;
        let (after, end, next) = ends.into_iter().nth(chosen).expect("one of them");
        check(&world, &after, end, &next);
        world = after;
    }
}

/// More words and faults than can be tried in every order. More orders by `EVENKEEL_SEEDS`, which a soak sets.
#[test]
fn many_words_and_faults_in_orders_that_seeds_choose() {
    let seeds = std::env::var("EVENKEEL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(100);
    for kind in [Kind::Ours, Kind::Original] {
        for auto in [false, true] {
            let mut rested = BTreeSet::new();
            for seed in 0..seeds {
                walk(kind, auto, seed, &mut rested);
            }
        }
    }
}
