//! What holds for every plan on every cluster.

use evenkeel_balancer::cluster::{BrokerState, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Budget, Operation, Request};
use evenkeel_balancer::planner::{BrokerLoad, Outcome, Refused, Status, Verdict, plan};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::check::{carried_out, changes, inspected, stays};
use crate::picture::{Name, Picture};
use crate::random::{Case, any_case, cases, mend_disks, plain_case, plain_case_with};

/// Misses are sums of many small terms: below this they are equal.
pub(crate) const ROUNDING: f64 = 1e-6;

fn planned(case: &Case) -> Result<Outcome, Refused> {
    inspected(&case.picture, &case.request, &case.settings)
}

/// The same case with every broker alive and every replica serving, so that nothing is forced.
pub(crate) fn unforced(mut case: Case) -> Case {
    for broker in case.picture.brokers.values_mut().filter(|broker| broker.state == BrokerState::Dead) {
        broker.state = BrokerState::Alive;
    }
    for partition in case.picture.partitions.values_mut() {
        partition.offline.clear();
    }
    mend_disks(&mut case.picture);
    if matches!(case.request.operation, Operation::RemoveBrokers(_) | Operation::FixOfflineReplicas) {
        case.request.operation = Operation::Rebalance;
    }
    case
}

/// No goal misses by more than before, unless one of higher priority misses by less. Says whether one misses by less.
///
/// What leaders take in is measured by a mean that changes with whoever leads, where replicas differ: here what was found is
/// measured by the mean of what came of it.
pub(crate) fn assert_nothing_is_worse(case: &Case, outcome: &Outcome) -> bool {
    assert_none_is_worse(outcome, |verdict| {
        if verdict.goal != Goal::LeaderBytesInDistribution {
            return verdict.miss.0;
        }
        let (after, counted) = (verdict.miss.1, leader_in_miss(case, outcome, &outcome.after));
        assert!((counted - after).abs() <= ROUNDING * after.max(1.0), "{after} is told, {counted} is counted");
        leader_in_miss(case, outcome, &outcome.before)
    })
}

/// The same as it is told, before and after each by its own mean. A part of a plan may look worse so: what would have made up
/// for it is left out.
pub(crate) fn assert_nothing_looks_worse(outcome: &Outcome) {
    assert_none_is_worse(outcome, |verdict| verdict.miss.0);
}

fn assert_none_is_worse(outcome: &Outcome, before: impl Fn(&Verdict) -> f64) -> bool {
    let mut gained = false;
    // As they are served: hard ones first, wherever they are told.
    let (hard, soft): (Vec<&Verdict>, Vec<&Verdict>) =
        outcome.verdicts.iter().partition(|verdict| verdict.goal.is_hard());
    for verdict in hard.into_iter().chain(soft) {
        let (before, after) = (before(verdict), verdict.miss.1);
        let worse = after > before + ROUNDING;
        assert!(gained || !worse, "{} got worse, {before} -> {after}, and none before it better", verdict.goal);
        gained |= after < before - ROUNDING;
    }
    gained
}

/// By how much brokers with these loads miss the goal about leaders' traffic, by its definition, if the mean is that of the
/// outcome.
fn leader_in_miss(case: &Case, outcome: &Outcome, loads: &[BrokerLoad]) -> f64 {
    let (cluster, settings, request) = (case.picture.build(), &case.settings, &case.request);
    let is_excluded = |load: &&BrokerLoad| request.excluded_for_replica_moves.contains(&load.broker);
    let capacity = |load: &BrokerLoad| {
        let broker = cluster.broker(load.broker).filter(|broker| stays(broker, request))?;
        Some(broker.capacity[Resource::NwIn as usize])
    };
    let counted = loads.iter().filter(|load| capacity(load).is_some() && !is_excluded(load)).count();
    let mean = outcome.after.iter().map(|load| load.leader_in).sum::<f64>() / counted as f64;
    let high = mean * settings.balance_thresholds[Resource::NwIn as usize];
    let idle = settings.low_utilization_thresholds[Resource::NwIn as usize];
    let unit = if mean > 0.0 { 1.0 / mean } else { 1.0 };
    let miss = |load: &BrokerLoad| Some((load.leader_in - high.max(idle * capacity(load)?)).max(0.0) * unit);
    loads.iter().filter_map(miss).sum()
}

fn assert_same_loads(one: &[BrokerLoad], other: &[BrokerLoad]) {
    for (one, other) in one.iter().zip(other) {
        let close = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(1.0);
        let same = (one.broker, one.replicas, one.leaders) == (other.broker, other.replicas, other.leaders)
            && one.resources.iter().zip(&other.resources).all(|(a, b)| close(*a, *b))
            && close(one.potential_out, other.potential_out)
            && close(one.leader_in, other.leader_in);
        assert!(same, "{one:?} is told, {other:?} is counted");
    }
}

proptest! {
    #![proptest_config(cases(512))]

    /// Nothing is lost, doubled or put where it must not be: the independent checker finds nothing.
    #[test]
    fn every_plan_is_sound(case in any_case()) {
        let _ = planned(&case);
    }

    #[test]
    fn no_goal_gets_worse_but_for_one_of_higher_priority(case in any_case().prop_map(unforced)) {
        if let Ok(outcome) = planned(&case) {
            assert_nothing_is_worse(&case, &outcome);
            assert_nothing_looks_worse(&outcome);
        }
    }

    /// Wherever soft goals come in the list. A plan that breaks a hard goal is refused, so where all of them hold there must
    /// be one.
    #[test]
    fn no_hard_goal_breaks_that_held_before(case in any_case().prop_map(unforced)) {
        let all = if case.request.goals.is_empty() { Goal::DEFAULT.to_vec() } else { case.request.goals.clone() };
        let goals = all.into_iter().filter(|goal| goal.is_hard()).collect();
        let hard_alone = Case { request: Request { goals, ..case.request.clone() }, ..case.clone() };
        let holds = |outcome: Outcome| outcome.verdicts.iter().all(|verdict| verdict.miss.0 == 0.0);
        if !hard_alone.request.goals.is_empty() && planned(&hard_alone).is_ok_and(holds) {
            let refused = |why| TestCaseError::fail(format!("all hard goals hold, and yet: {why}"));
            let outcome = planned(&case).map_err(refused)?;
            for verdict in outcome.verdicts.iter().filter(|verdict| verdict.goal.is_hard()) {
                prop_assert_eq!(verdict.miss, (0.0, 0.0), "{} held", verdict.goal);
            }
        }
    }

    /// What can be planned with hard goals in their usual order can be with them in any.
    #[test]
    fn the_order_of_hard_goals_refuses_no_plan(case in any_case()) {
        let all = if case.request.goals.is_empty() { Goal::DEFAULT.to_vec() } else { case.request.goals.clone() };
        let (mut hard, soft): (Vec<Goal>, Vec<Goal>) = all.into_iter().partition(|goal| goal.is_hard());
        let with = |hard: &[Goal]| {
            let request = Request { goals: [hard, &soft].concat(), ..case.request.clone() };
            planned(&Case { request, ..case.clone() })
        };
        let listed = with(&hard);
        hard.sort_unstable();
        prop_assert!(listed.is_ok() || with(&hard).is_err(), "{:?}", listed);
        hard.reverse();
        let backwards = with(&hard);
        hard.sort_unstable();
        prop_assert!(backwards.is_ok() || with(&hard).is_err(), "{:?}", backwards);
    }

    /// Neither refuses a plan nor makes it another one where hard goals are listed among soft ones.
    #[test]
    fn hard_goals_come_first_wherever_they_are_listed(case in any_case()) {
        let all = if case.request.goals.is_empty() { Goal::DEFAULT.to_vec() } else { case.request.goals.clone() };
        let (hard, soft): (Vec<Goal>, Vec<Goal>) = all.into_iter().partition(|goal| goal.is_hard());
        // In what order they are told and weighed is the caller's to say.
        let with = |goals: Vec<Goal>| {
            let outcome = planned(&Case { request: Request { goals, ..case.request.clone() }, ..case.clone() });
            outcome.map(|mut outcome| {
                outcome.verdicts.sort_by_key(|verdict| verdict.goal);
                Outcome { score: (0.0, 0.0), ..outcome }
            })
        };
        let last = with([soft.clone(), hard.clone()].concat());
        prop_assert_eq!(last, with([hard, soft].concat()));
    }

    /// "Nothing to do" and "not done" without a reason are bugs.
    #[test]
    fn whatever_is_left_violated_has_a_reason(case in any_case(), moves in 0..12usize) {
        // From ten on there is no budget.
        let budget = Budget { moves: (moves < 10).then_some(moves), megabytes: None };
        let case = Case { request: Request { budget, ..case.request.clone() }, ..case };
        if let Ok(outcome) = planned(&case) {
            for verdict in &outcome.verdicts {
                let is_told = !verdict.refused_by.is_empty() || !verdict.held_back_by.is_empty();
                prop_assert_eq!(is_told, verdict.status == Status::Violated, "{:?}", verdict);
            }
        }
    }

    /// Whoever reads the loads after the plan reads what the cluster will really carry.
    #[test]
    fn the_loads_told_are_those_of_the_plan_carried_out(case in any_case()) {
        if let Ok(outcome) = planned(&case) {
            let after = carried_out(&case.picture.build(), &outcome.plan);
            for load in &outcome.after {
                let least = load.resources.into_iter().chain([load.potential_out, load.leader_in]).fold(0.0, f64::min);
                prop_assert_eq!(least, 0.0, "less than nothing on {:?}", load);
            }
            if let Ok(again) = plan(&after, &case.request, &case.settings) {
                assert_same_loads(&outcome.after, &again.before);
            }
        }
    }

    /// An unrestricted removal empties its brokers: every factor fits on the brokers that stay.
    #[test]
    fn removed_brokers_are_emptied(case in plain_case_with(Operation::RemoveBrokers)) {
        let Operation::RemoveBrokers(removed) = &case.request.operation else { unreachable!() };
        let staying = case.picture.brokers.len() - removed.len();
        if let Ok(outcome) = planned(&case) {
            let after = carried_out(&case.picture.build(), &outcome.plan);
            for partition in after.partitions().filter(|partition| partition.replicas().count() <= staying) {
                prop_assert!(!partition.replicas().any(|replica| removed.contains(&replica.broker)));
            }
        }
    }

    /// Whatever is not offline stays where it is, if only soft goals ask.
    #[test]
    fn soft_goals_move_only_offline_replicas_while_brokers_are_removed(
        case in plain_case_with(Operation::RemoveBrokers)
    ) {
        let soft: Vec<Goal> = Goal::DEFAULT.into_iter().filter(|goal| !goal.is_hard()).collect();
        let case = Case { request: Request { goals: soft, ..case.request }, ..case };
        let Operation::RemoveBrokers(removed) = &case.request.operation else { unreachable!() };
        if let Ok(outcome) = planned(&case) {
            for change in &outcome.plan.changes {
                let mut gone = change.old_replicas.iter().filter(|broker| !change.new_replicas.contains(broker));
                prop_assert!(gone.all(|broker| removed.contains(broker)), "{}", changes(&outcome.plan));
            }
        }
    }

    #[test]
    fn old_brokers_get_nothing_while_brokers_are_added(case in plain_case_with(Operation::AddBrokers)) {
        let Operation::AddBrokers(added) = &case.request.operation else { unreachable!() };
        if let Ok(outcome) = planned(&case) {
            for change in &outcome.plan.changes {
                prop_assert!(change.added().all(|broker| added.contains(&broker)));
                prop_assert!(change.new_leader == change.old_leader || added.contains(&change.new_leader));
            }
        }
    }

    #[test]
    fn any_number_of_threads_makes_the_same_plan(case in any_case()) {
        let with = |threads| {
            let request = Request { threads, ..case.request.clone() };
            plan(&case.picture.build(), &request, &case.settings)
        };
        let one = with(1);
        prop_assert_eq!(&with(2), &one);
        prop_assert_eq!(&with(5), &one);
    }

    #[test]
    fn the_order_of_the_records_does_not_matter(case in any_case(), keys in prop::collection::vec(any::<u8>(), 20)) {
        let mut order: Vec<(u8, &Name)> = keys.into_iter().zip(case.picture.partitions.keys()).collect();
        order.sort();
        let order: Vec<&Name> = order.into_iter().map(|(_, name)| name).collect();
        let shuffled = case.picture.build_in_order(order);
        prop_assert_eq!(&shuffled, &case.picture.build());
        let one = plan(&shuffled, &case.request, &case.settings);
        prop_assert_eq!(one, plan(&case.picture.build(), &case.request, &case.settings));
    }

    /// Which moves are told, their order and the name of the plan included.
    #[test]
    fn a_budget_that_affords_everything_changes_nothing(case in any_case(), moves in any::<bool>()) {
        let budget = Budget { moves: moves.then_some(1_000), megabytes: (!moves).then_some(1e12) };
        let budgeted = Request { budget, ..case.request.clone() };
        let cluster = case.picture.build();
        let (one, other) = (plan(&cluster, &case.request, &case.settings), plan(&cluster, &budgeted, &case.settings));
        prop_assert_eq!(one, other);
    }

    /// The checker looks at both limits; what is left out is accounted for, and no hard goal pays for it.
    #[test]
    fn budgets_are_kept(case in any_case(), moves in 0..6usize, megabytes in 0..400u16) {
        for budget in [
            Budget { moves: Some(moves), megabytes: None },
            Budget { moves: None, megabytes: Some(megabytes.into()) },
        ] {
            let whole = planned(&case);
            let budgeted = Case { request: Request { budget, ..case.request.clone() }, ..case.clone() };
            if let (Ok(whole), Ok(part)) = (whole, planned(&budgeted)) {
                let undone = part.plan.undone;
                prop_assert_eq!(part.plan.changes.len() + undone.changes, whole.plan.changes.len());
                let sum = part.plan.megabytes() + undone.megabytes;
                prop_assert!((sum - whole.plan.megabytes()).abs() < ROUNDING * sum.max(1.0));
                for verdict in part.verdicts.iter().filter(|verdict| verdict.goal.is_hard()) {
                    let (before, after) = verdict.miss;
                    let holds = if before > 0.0 { after <= before + ROUNDING } else { after == 0.0 };
                    prop_assert!(holds, "{} misses by {after}, not {before}", verdict.goal);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    /// Whatever a budget leaves of a plan does good: what made room for the rest may be missing.
    #[test]
    fn a_part_of_a_plan_makes_no_goal_worse_but_for_one_of_higher_priority(
        case in any_case().prop_map(unforced), moves in 0..6usize, megabytes in 0..400u16
    ) {
        for budget in [
            Budget { moves: Some(moves), megabytes: None },
            Budget { moves: None, megabytes: Some(megabytes.into()) },
        ] {
            let request = Request { budget, ..case.request.clone() };
            let case = Case { request, ..case.clone() };
            if let Ok(outcome) = planned(&case) {
                assert_nothing_is_worse(&case, &outcome);
            }
        }
    }
}

/// The properties above say nothing of requests that are refused or need no change: enough must lead to one.
#[test]
fn enough_requests_lead_to_changes() {
    fn granted(cases: impl Strategy<Value = Case>) -> usize {
        let mut runner = TestRunner::deterministic();
        let plans = (0..400).map(|_| planned(&cases.new_tree(&mut runner).unwrap().current()));
        plans.filter(|plan| plan.as_ref().is_ok_and(|outcome| !outcome.plan.changes.is_empty())).count()
    }
    let shares = [
        granted(any_case()),
        granted(plain_case()),
        granted(plain_case_with(Operation::RemoveBrokers)),
        granted(plain_case_with(Operation::AddBrokers)),
    ];
    let least = [60, 90, 50, 30];
    assert!(shares.iter().zip(least).all(|(share, least)| *share >= least), "{shares:?} of 400 each lead to changes");
}

/// Large enough that the work is dealt out in several pieces.
#[test]
fn any_number_of_threads_makes_the_same_plan_of_a_large_cluster() {
    let mut text = String::new();
    for broker in 0..12 {
        text += &format!("rack {}: b{broker}[]\n", ["a", "b", "c"][broker % 3]);
    }
    let mut picture = Picture::parse(&text);
    let mut seed = 7u32;
    let mut draw = |below: u32| {
        // Knuth's generator; any will do.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    for number in 0..33_000 {
        // Squares crowd the lower brokers.
        let first = (draw(12) * draw(12) / 12) as i32;
        let other = (first + 1 + draw(11) as i32) % 12;
        let load = evenkeel_balancer::cluster::Load {
            cpu: draw(8) as f32 / 1_000.0,
            nw_in: 1.0 + draw(20) as f32,
            nw_out: draw(20) as f32,
            disk: draw(20) as f32,
        };
        let partition = crate::picture::Partition {
            brokers: vec![first, other],
            leader: first,
            load: Some(load),
            ..Default::default()
        };
        picture.partitions.insert((format!("t{}", number % 3_000), number), partition);
    }
    let cluster = picture.build();
    let with = |threads| plan(&cluster, &Request { threads, ..Request::default() }, &Default::default()).unwrap();
    let one = with(1);
    assert!(!one.plan.changes.is_empty());
    assert_eq!(with(2), one);
    assert_eq!(with(5), one);
}
