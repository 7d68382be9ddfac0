//! Every row of the machine's two tables, by its number.

use super::*;

/// The states in which a rebalance is underway.
const RUNNING: [RebalanceState; 4] = [New, PendingProposal, ProposalReady, Rebalancing];

#[test]
fn from_idle_brokers_to_remove_come_first() {
    check("1", &calm().leaving(&[4]), "RebalanceOnScaleDown R[4]; create remove[4]");
    let both = calm().recorded(Idle, &[5]).leaving(&[3, 4]);
    check("1", &both, "RebalanceOnScaleDown R[3, 4] A[5]; create remove[3, 4]");
    check("2", &calm().recorded(Idle, &[4, 5]), "RebalanceOnScaleUp A[4, 5]; create add[4, 5]");
    let fresh = calm().change(|seen| seen.brokers.added = set(&[5]));
    check("2", &fresh, "RebalanceOnScaleUp A[5]; create add[5]");
}

#[test]
fn from_idle_without_work_only_leftovers_go() {
    let nothing = check("3", &calm(), "Idle");
    assert_eq!((nothing.tracker.clone(), nothing.warnings.len(), nothing.look_again), (TrackerWrite::Keep, 0, None));
    for end in [Ready, NotReady, Stopped] {
        let leftover = calm().recorded(Idle, &[]).with(own(ADD, end, &[4]));
        check("3", &leftover, "Idle; remove add");
    }
}

#[test]
fn from_idle_a_missing_template_makes_as_if_the_mode_were_off() {
    for templates in [BTreeMap::new(), template(serde_json::json!({}), false)] {
        let seen = calm().change(|seen| {
            seen.configured.modes = [(ADD, Some("t".to_owned())), (REMOVE, Some("t".to_owned()))].into();
            seen.violations = None;
            seen.templates = templates.clone();
        });
        let found = check("4", &seen.clone().leaving(&[4]), "Idle");
        assert_eq!(warned(&found), ["InvalidRebalanceTemplate"; 2]);
        check("4", &seen.clone().recorded(Idle, &[5]), "Idle");
        let waiting = seen.recorded(Idle, &[5]).change(|seen| seen.brokers.ready.retain(|id| *id != 5));
        check("4: there is time until the broker is ready", &waiting, "Idle A[5]");
    }
}

#[test]
fn a_drain_that_is_done_gives_way_to_what_is_queued() {
    let done = |leaving: &[i32], additions: &[i32]| {
        calm().recorded(ScaleDown, additions).leaving(leaving).with(own(REMOVE, Ready, &[3, 4]))
    };
    check("5", &done(&[4, 5], &[]), "RebalanceOnScaleDown R[4, 5]; update remove[4, 5]");
    check("6", &done(&[], &[5]), "RebalanceOnScaleUp A[5]; remove remove");
    check("7", &done(&[], &[]), "Idle; remove remove");
    // What was drained still holds data: not again at once, but it is not forgotten either.
    let again = check("7", &done(&[3, 4], &[]), "Idle R[3, 4]; remove remove");
    assert_eq!(again.look_again, Some(at(30)));
    check("6", &done(&[3, 4], &[5]), "RebalanceOnScaleUp R[3, 4] A[5]; remove remove");
}

#[test]
fn the_next_one_is_made_when_the_one_before_is_gone() {
    let turn = calm().recorded(ScaleUp, &[5]);
    let leaving = turn.clone().change(|seen| seen.generated.push(own(REMOVE, Ready, &[3])));
    check("6, the old one lingers", &leaving, "RebalanceOnScaleUp A[5]; remove remove");
    check("6, the old one is gone", &turn, "RebalanceOnScaleUp A[5]; create add[5]");
}

#[test]
fn a_drain_underway_follows_the_spec() {
    for state in RUNNING {
        let drain = calm().recorded(ScaleDown, &[]).with(own(REMOVE, state, &[3, 4]));
        check("8", &drain.clone().leaving(&[4]), "RebalanceOnScaleDown R[4]; update remove[4]");
        check("8", &drain.clone().leaving(&[3, 4, 5]), "RebalanceOnScaleDown R[3, 4, 5]; update remove[3, 4, 5]");
        check("9", &drain.clone().leaving(&[3, 4]), "RebalanceOnScaleDown R[3, 4]");
        let added = drain.leaving(&[3, 4]).change(|seen| seen.brokers.added = set(&[5]));
        check("9, D4", &added, "RebalanceOnScaleDown R[3, 4] A[5]");
    }
}

#[test]
fn a_drain_that_failed_or_vanished_begins_again_later() {
    let failed = calm().recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, NotReady, &[4]));
    let found = check("10", &failed, "Idle R[4]; remove remove");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceFailed"]);
    assert_eq!(found.look_again, Some(at(30)));

    let vanished = failed.clone().change(|seen| seen.generated.clear());
    let found = check("10", &vanished, "Idle R[4]");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceFailed"]);
    check("10", &vanished.change(|seen| seen.brokers.leaving.clear()), "Idle");

    let queued = failed.change(|seen| *seen = seen.clone().recorded(ScaleDown, &[5]));
    check("10, D12", &queued, "RebalanceOnScaleUp R[4] A[5]; remove remove");
}

#[test]
fn a_scale_up_that_is_done_gives_way_to_what_is_queued() {
    let done = |leaving: &[i32], additions: &[i32]| {
        calm().recorded(ScaleUp, additions).leaving(leaving).with(own(ADD, Ready, &[4]))
    };
    check("11, D11", &done(&[3], &[4]), "RebalanceOnScaleDown R[3]; remove add");
    check("11, D11", &done(&[3], &[4, 5]), "RebalanceOnScaleDown R[3] A[5]; remove add");
    check("12", &done(&[], &[4, 5]), "RebalanceOnScaleUp A[5]; update add[5]");
    check("13", &done(&[], &[4]), "Idle; remove add");
}

#[test]
fn a_scale_up_underway_is_stopped_for_brokers_to_remove() {
    for (state, expected) in
        [(New, "withdraw"), (PendingProposal, "stop"), (ProposalReady, "withdraw"), (Rebalancing, "stop")]
    {
        let running = calm().recorded(ScaleUp, &[4, 5]).leaving(&[3]).with(own(ADD, state, &[4, 5]));
        check("14", &running, &format!("RebalanceOnScaleUp R[3] A[4, 5]; {expected} add (preempted)"));
        let same = running.leaving(&[5]);
        check("14, D10", &same, &format!("RebalanceOnScaleUp R[5] A[4]; {expected} add (preempted)"));
    }
    let stopped = |state| {
        let own = Generated { stopped_for: Some(super::super::StopReason::Preempted), ..own(ADD, state, &[4, 5]) };
        calm().recorded(ScaleUp, &[4, 5]).leaving(&[3]).with(own)
    };
    check("14, D9: it is asked once", &stopped(Rebalancing), "RebalanceOnScaleUp R[3] A[4, 5]");
    for end in [Stopped, NotReady] {
        check("14, D9", &stopped(end), "RebalanceOnScaleDown R[3] A[4, 5]; remove add");
    }
    check("14, D9: it was quicker", &stopped(Ready), "RebalanceOnScaleDown R[3]; remove add");
    let cancelled = stopped(Stopped).leaving(&[]);
    check("14, D9: nobody wants them removed any more", &cancelled, "RebalanceOnScaleUp A[4, 5]; remove add");
}

#[test]
fn a_scale_up_underway_takes_in_what_comes_later() {
    for state in RUNNING {
        let running = calm().recorded(ScaleUp, &[4, 5]).with(own(ADD, state, &[4]));
        check("15", &running, "RebalanceOnScaleUp A[4, 5]; update add[4, 5]");
        let late = running.change(|seen| seen.brokers.ready.retain(|id| *id != 5));
        check("15, not ready yet", &late, "RebalanceOnScaleUp A[4, 5]");
        let same = calm().recorded(ScaleUp, &[4]).with(own(ADD, state, &[4]));
        let found = check("16", &same, "RebalanceOnScaleUp A[4]");
        assert_eq!((found.tracker, found.warnings), (TrackerWrite::Keep, vec![]));
    }
}

#[test]
fn a_scale_up_that_failed_or_vanished_is_given_up() {
    let failed = calm().recorded(ScaleUp, &[4]).with(own(ADD, NotReady, &[4]));
    let found = check("17", &failed, "Idle; remove add");
    assert_eq!(warned(&found), ["AutoRebalanceFailed"]);
    let vanished = failed.change(|seen| seen.generated.clear());
    assert_eq!(warned(&check("17", &vanished, "Idle")), ["AutoRebalanceFailed"]);
    let later = calm().recorded(ScaleUp, &[4, 5]).with(own(ADD, NotReady, &[4]));
    check("17, another one came later", &later, "RebalanceOnScaleUp A[5]; remove add");
    let vanished = later.change(|seen| seen.generated.clear());
    let found = check("17, another one came later", &vanished, "RebalanceOnScaleUp A[5]");
    let torn = |seen: Observation| seen.change(|seen| seen.tracker = Some(memory(&found, seen).written()));
    let again = torn(vanished.clone());
    check("17, the status was not written: it is still missed", &again, "RebalanceOnScaleUp A[5]");
    let next = torn(calm().recorded(ScaleUp, &[5]));
    check("17, it was, and the other one's turn comes", &next, "RebalanceOnScaleUp A[5]; create add[5]");
}

#[test]
fn what_was_stopped_ends_and_what_is_paused_waits() {
    let drain = |state| calm().recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, state, &[4]));
    let found = check("18, D7", &drain(Stopped), "Idle R[4]; remove remove");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceStopped"]);
    let found = check("18, D8", &drain(Paused), "RebalanceOnScaleDown R[4]");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);

    let up = |state| calm().recorded(ScaleUp, &[4]).with(own(ADD, state, &[4]));
    assert_eq!(warned(&check("18, D7", &up(Stopped), "Idle; remove add")), ["AutoRebalanceStopped"]);
    check("18, D8", &up(Paused), "RebalanceOnScaleUp A[4]");
    check("18, D8", &up(Paused).leaving(&[3]), "RebalanceOnScaleUp R[3] A[4]");
}

#[test]
fn from_idle_an_imbalance_comes_last() {
    let uneven = calm().violated(SOME, "");
    check("20", &uneven.clone().leaving(&[4]), "RebalanceOnScaleDown R[4]; create remove[4]; empty fixable");
    let added = uneven.clone().recorded(Idle, &[4]);
    check("20", &added, "RebalanceOnScaleUp A[4]; create add[4]; empty fixable");
    let found = check("21", &uneven, "RebalanceOnImbalance I; create imbalance-a1[]; empty fixable");
    assert_eq!(memory(&found, &uneven).imbalance.starts, [at(0)]);
    for recorded in [ScaleDown, ScaleUp] {
        check("21, from Idle only", &uneven.clone().recorded(recorded, &[]), "Idle");
    }
    for fixable in ["", SOME] {
        let found = check("22", &calm().violated(fixable, "- a2:\n    - DiskCapacityGoal\n"), "Idle I");
        assert_eq!(warned(&found), ["UnfixableViolatedGoal"]);
        let text = "The detected a2 has unfixable `DiskCapacityGoal` goal.";
        assert_eq!(found.warnings[0].message.as_deref(), Some(text));
    }
}

#[test]
fn while_brokers_come_or_go_an_imbalance_is_dropped() {
    for state in RUNNING {
        let drain = calm().violated(SOME, "").recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, state, &[4]));
        check("23", &drain, "RebalanceOnScaleDown R[4]; empty fixable");
        let up = calm().violated(SOME, "").recorded(ScaleUp, &[4]).with(own(ADD, state, &[4]));
        check("23", &up, "RebalanceOnScaleUp A[4]; empty fixable");
    }
    let ended = calm().violated(SOME, "").recorded(ScaleUp, &[4]).with(own(ADD, Ready, &[4]));
    check("23, D16", &ended, "Idle; remove add");
}

#[test]
fn a_rebalance_on_imbalance_that_is_done_gives_way() {
    let done = calm().recorded(Imbalance, &[]).with(own(IMBALANCE, Ready, &[]));
    check("24", &done.clone().leaving(&[4]), "RebalanceOnScaleDown R[4]; remove imbalance-a1");
    let added = done.clone().change(|seen| seen.brokers.added = set(&[5]));
    check("25", &added, "RebalanceOnScaleUp A[5]; remove imbalance-a1");
    let found = check("26", &done, "Idle; remove imbalance-a1");
    assert_eq!(memory(&found, &done).imbalance.ended, Some(at(-5)));
    let again = check("26, D16", &done.violated(SOME, ""), "Idle; empty all; remove imbalance-a1");
    assert_eq!(again.warnings, []);
}

#[test]
fn a_rebalance_on_imbalance_underway_is_waited_for_or_stopped() {
    for state in RUNNING {
        let running = calm().recorded(Imbalance, &[]).with(own(IMBALANCE, state, &[]));
        let found = check("27", &running.clone().leaving(&[4]), "RebalanceOnImbalance R[4] I");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        let word = if matches!(state, New | ProposalReady) { "withdraw" } else { "stop" };
        let preempting = running.clone().leaving(&[4]).change(|seen| seen.configured.preempt = true);
        check("27, D15", &preempting, &format!("RebalanceOnImbalance R[4] I; {word} imbalance-a1 (preempted)"));
        check("28", &running.clone().violated(SOME, ""), "RebalanceOnImbalance I; empty fixable");
        check("28", &running, "RebalanceOnImbalance I");
    }
}

#[test]
fn a_rebalance_on_imbalance_that_failed_was_stopped_or_vanished_ends() {
    let ended = |state| calm().recorded(Imbalance, &[]).with(own(IMBALANCE, state, &[])).violated(SOME, "- a2: [A]");
    let found = check("29", &ended(NotReady), "Idle I; empty all; remove imbalance-a1");
    assert_eq!(warned(&found), ["UnfixableViolatedGoal", "AutoRebalanceFailed"]);
    assert_eq!(memory(&found, &ended(NotReady)).imbalance.ended, Some(at(-5)));
    let found = check("30", &ended(Stopped), "Idle I; remove imbalance-a1");
    assert_eq!(warned(&found), ["UnfixableViolatedGoal", "AutoRebalanceStopped"]);
    let vanished = ended(Rebalancing).change(|seen| seen.generated.clear());
    let found = check("31", &vanished, "Idle I; empty all");
    assert_eq!(warned(&found), ["UnfixableViolatedGoal", "AutoRebalanceFailed"]);
    assert_eq!(memory(&found, &vanished).imbalance.ended, Some(at(0)));
    let again = vanished.change(|seen| seen.tracker = Some(memory(&found, seen).written()));
    check("31, the status was not written: it is still missed", &again, "Idle I; empty all");
    let idle = again.change(|seen| seen.recorded = found.status.clone());
    assert_eq!(memory(&check("31, it was", &idle, "Idle I"), &idle).in_sight, None);
}
