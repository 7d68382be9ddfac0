//! Every reason is true: it names what asked for the change, and brokers between which something goes.

use evenkeel_balancer::argument::{Argument, Measure};
use evenkeel_balancer::cluster::BrokerId;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Budget, Operation, Request};
use evenkeel_balancer::plan::{Cause, Change};
use evenkeel_balancer::planner::plan;
use evenkeel_balancer::settings::Settings;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::check::inspected;
use crate::picture::Picture;
use crate::random::{Case, any_case, cases};

/// The causes of each change of T-0's first replica, most important first.
fn causes(picture: &str, operation: Operation) -> Vec<Cause> {
    let cluster = Picture::parse(picture).build();
    let request = Request { operation, goals: vec![Goal::RackAware, Goal::ReplicaDistribution], ..Request::default() };
    let outcome = plan(&cluster, &request, &Settings::default()).unwrap();
    let change = outcome.plan.changes.iter().find(|change| change.topic == "t").expect("t0 has to move");
    assert_eq!(change.reasons[0].from, BrokerId(0));
    change.reasons.iter().map(|reason| reason.cause).collect()
}

#[test]
fn what_must_leave_says_so_and_serves_no_goal() {
    let dead = "
        rack a: b0[t0* ] dead
        rack b: b1[]
    ";
    assert_eq!(causes(dead, Operation::Rebalance), [Cause::Offline]);
    let failed_disk = "
        rack a: b0[t0! u0*] bad
        rack b: b1[t0*]
        rack c: b2[]
    ";
    assert_eq!(causes(failed_disk, Operation::FixOfflineReplicas), [Cause::Offline]);
    let alive = "
        rack a: b0[t0*]
        rack b: b1[]
    ";
    assert_eq!(causes(alive, Operation::RemoveBrokers([BrokerId(0)].into())), [Cause::Removed]);
}

/// From where to where something of the partition goes: a replica, or leadership.
fn ways(change: &Change) -> Vec<(BrokerId, BrokerId)> {
    let leads = (change.old_leader, change.new_leader);
    // Where nothing moves and the same leads, the list alone changes, for its sake.
    let is_led = leads.0 != leads.1 || change.moves.is_empty();
    change.moves.iter().copied().chain(is_led.then_some(leads)).collect()
}

/// How many reasons of the plan are exchanges, each of them with one that is one.
fn exchanges(case: &Case, moves: Option<usize>) -> usize {
    let request = Request { budget: Budget { moves, megabytes: None }, ..case.request.clone() };
    let Ok(outcome) = inspected(&case.picture, &request, &case.settings) else { return 0 };
    let cluster = case.picture.build();
    let reasons = outcome.plan.changes.iter().flat_map(|change| &change.reasons);
    let told = reasons.filter_map(|reason| Some((reason, cluster.partition(reason.exchange? as usize))));
    let mut count = 0;
    for (reason, partner) in told {
        let named = |change: &&Change| (change.topic.as_str(), change.partition) == (partner.topic(), partner.number());
        let change = outcome.plan.changes.iter().find(named);
        let back = |change: &Change| ways(change).contains(&(reason.to, reason.from));
        assert!(change.is_some_and(back), "{reason:?} with {}-{}: {change:?}", partner.topic(), partner.number());
        count += 1;
    }
    count
}

/// The law below says little if nothing is ever exchanged.
#[test]
fn enough_is_exchanged() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..1_000).map(|_| any_case().new_tree(&mut runner).unwrap().current());
    let count: usize = cases.map(|case| exchanges(&case, None)).sum();
    assert!(count >= 10, "{count} exchanges");
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_change_has_a_reason_and_every_reason_is_true(case in any_case()) {
        let Ok(outcome) = inspected(&case.picture, &case.request, &case.settings) else { return Ok(()) };
        for change in &outcome.plan.changes {
            prop_assert!(!change.reasons.is_empty(), "{change:?}");
            if matches!(case.request.operation, Operation::DemoteBrokers(_)) {
                continue;
            }
            for reason in &change.reasons {
                prop_assert!(ways(change).contains(&(reason.from, reason.to)), "{reason:?} of {change:?}");
            }
        }
    }

    /// Also where a budget leaves something out: then it is in exchange with nobody.
    #[test]
    fn whoever_is_named_in_exchange_is_in_the_plan_and_goes_the_other_way(case in any_case(), moves in 1..12usize) {
        exchanges(&case, (moves < 10).then_some(moves));
    }

    /// Whoever reads the numbers of a reason sees why this broker gives and that one takes.
    #[test]
    fn the_numbers_that_are_told_argue_for_the_move(case in any_case()) {
        let Ok(outcome) = inspected(&case.picture, &case.request, &case.settings) else { return Ok(()) };
        let cluster = case.picture.build();
        for reason in outcome.plan.changes.iter().flat_map(|change| &change.reasons).filter(|reason| reason.exchange.is_none()) {
            if let Some(told) = Argument::of(&cluster, &outcome.before, reason) {
                prop_assert!(told.from - told.to >= told.measure.grain(), "{told:?} for {reason:?}");
            }
        }
    }
}

/// The law above says little if numbers are hardly ever told.
#[test]
fn numbers_are_told_of_most_reasons() {
    let mut runner = TestRunner::deterministic();
    let (mut told, mut chosen, mut untold) = (0, 0, 0);
    for _ in 0..1_000 {
        let case = any_case().new_tree(&mut runner).unwrap().current();
        let Ok(outcome) = inspected(&case.picture, &case.request, &case.settings) else { continue };
        let cluster = case.picture.build();
        for reason in
            outcome.plan.changes.iter().flat_map(|change| &change.reasons).filter(|reason| reason.exchange.is_none())
        {
            if reason.goal().and_then(Measure::of).is_none() {
                continue;
            }
            match Argument::of(&cluster, &outcome.before, reason) {
                Some(argument) if argument.as_found => told += 1,
                Some(_) => chosen += 1,
                None => untold += 1,
            }
        }
    }
    let counts = format!("{told} as found, {chosen} as chosen, {untold} without numbers");
    assert!(chosen > 0 && untold * 10 <= told + chosen, "{counts}");
}
