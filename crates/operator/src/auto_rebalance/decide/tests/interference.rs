//! Whoever else has a hand in it: the brake, users, crashes, and the end of it all.

use evenkeel_api::annotations::{self, Ask};

use super::*;
use crate::auto_rebalance::generated::StopReason;

#[test]
fn the_brake_stops_what_runs_and_holds_what_is_queued() {
    let braked = |seen: Observation| seen.change(|seen| seen.brake = Brake::Pulled);
    let found = check("queued", &braked(calm().recorded(Idle, &[5]).leaving(&[4])), "Idle R[4] A[5]");
    assert_eq!(warned(&found), ["AutoRebalanceHeld"]);
    assert_eq!(warned(&check("imbalance", &braked(calm().violated(SOME, "")), "Idle")), ["AutoRebalanceHeld"]);
    assert_eq!(warned(&check("nothing to hold", &braked(calm()), "Idle")), [""; 0]);

    let up = calm().recorded(ScaleUp, &[4]).with(own(ADD, Rebalancing, &[4]));
    let found = check("running", &braked(up), "RebalanceOnScaleUp A[4]; stop add (braked)");
    assert_eq!(warned(&found), ["AutoRebalanceHeld"]);
    let stopped = Generated { stopped_for: Some(StopReason::Braked), ..own(ADD, Stopped, &[4]) };
    let stopped = calm().recorded(ScaleUp, &[4]).with(stopped);
    check("stopped", &braked(stopped.clone()), "Idle A[4]; remove add");
    check("released meanwhile", &stopped, "RebalanceOnScaleUp A[4]; remove add");
    let drain = calm().recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, PendingProposal, &[4]));
    check("drain", &braked(drain), "RebalanceOnScaleDown R[4]; stop remove (braked)");
}

#[test]
fn a_brake_that_cannot_be_read_begins_nothing_and_stops_nothing() {
    let notes = [(annotations::AUTO_REBALANCE.to_owned(), "of".to_owned())].into();
    let seen = |seen: Observation| seen.change(|seen| seen.brake = Brake::read(&notes));
    let found = check("queued", &seen(calm().leaving(&[4])), "Idle R[4]");
    assert_eq!(warned(&found), ["InvalidAnnotation", "AutoRebalanceHeld"]);
    let running = calm().recorded(ScaleUp, &[4]).with(own(ADD, Rebalancing, &[4]));
    assert_eq!(warned(&check("running", &seen(running), "RebalanceOnScaleUp A[4]")), ["InvalidAnnotation"]);
}

#[test]
fn nothing_begins_while_a_users_rebalance_moves_data_or_the_engine_is_not_ready() {
    for (seen, what) in
        [(calm().manual(Rebalancing), "manual"), (calm().change(|seen| seen.engine = Engine::Rolling), "engine")]
    {
        let found = check(what, &seen.clone().leaving(&[4]), "Idle R[4]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"], "{what}");
        assert_eq!(warned(&check(what, &seen.recorded(Idle, &[5]), "Idle A[5]")), ["AutoRebalanceWaiting"]);
    }
    for state in [New, PendingProposal, ProposalReady, Ready, NotReady, Stopped] {
        check("harmless", &calm().manual(state).leaving(&[4]), "RebalanceOnScaleDown R[4]; create remove[4]");
    }
}

#[test]
fn a_check_that_failed_begins_nothing() {
    let unknown = calm().leaving(&[4]).change(|seen| seen.brokers.check = Check::Unknown);
    check("never known", &unknown, "Idle");
    let drain = unknown.recorded(ScaleDown, &[]).with(own(REMOVE, Rebalancing, &[4]));
    check("while it is drained", &drain, "RebalanceOnScaleDown R[4]");
}

#[test]
fn while_it_is_settled_whether_brokers_go_nothing_is_put_on_them() {
    for unsettled in [Check::Clear, Check::Unknown] {
        let seen = calm().leaving(&[4]).change(|seen| seen.brokers.check = unsettled);
        let found = check("an imbalance waits", &seen.clone().violated(SOME, ""), "Idle");
        assert_eq!(found.cordoned, set(&[4]), "{unsettled:?}");
        let found = check("what was added waits", &seen.clone().recorded(Idle, &[5]), "Idle A[5]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"], "{unsettled:?}");
        let done = seen.recorded(ScaleDown, &[5]).emptying(&[4]).with(own(REMOVE, Ready, &[4]));
        let queued = if unsettled == Check::Unknown { "Idle R[4] A[5]" } else { "Idle A[5]" };
        let found = check("a drain has just ended", &done, &format!("{queued}; remove remove"));
        assert_eq!(found.cordoned, set(&[4]), "{unsettled:?}");
        assert!(!warned(&found).contains(&"AutoRebalanceFailed"), "{:?}", found.warnings);
    }
    let stuck = calm().leaving(&[4]).change(|seen| seen.brokers.check = Check::Stuck);
    assert_eq!(check("there is no room for their data", &stuck, "Idle").cordoned, Brokers::new());
    for (known, cordoned) in [(Check::HasData, &[][..]), (Check::Unknown, &[]), (Check::Clear, &[4])] {
        let seen = calm().leaving(&[4]).change(|seen| {
            seen.brokers.check = known;
            seen.configured.modes.insert(REMOVE, Some("gone".to_owned()));
        });
        assert_eq!(check("without its template", &seen, "Idle").cordoned, set(cordoned), "{known:?}");
    }
    let held = calm().recorded(Idle, &[5]).leaving(&[4]).change(|seen| drop(seen.configured.modes.remove(&REMOVE)));
    let found = check("nobody empties them for us", &held, "RebalanceOnScaleUp A[5]; create add[5]");
    assert_eq!(found.cordoned, Brokers::new(), "nobody asked for it");
}

#[test]
fn a_cancelled_scale_down_stops_its_drain() {
    let drain = |state, stopped_for| {
        calm().recorded(ScaleDown, &[5]).with(Generated { stopped_for, ..own(REMOVE, state, &[4]) })
    };
    let found = check("D5", &drain(Rebalancing, None), "RebalanceOnScaleDown A[5]; stop remove (cancelled)");
    assert_eq!(found.cordoned, Brokers::new(), "they take data again");
    let cancelled = Some(StopReason::Cancelled);
    check("D5", &drain(Rebalancing, cancelled), "RebalanceOnScaleDown A[5]");
    check("D5", &drain(Stopped, cancelled), "RebalanceOnScaleUp A[5]; remove remove");
    let wanted_again = drain(Rebalancing, cancelled).leaving(&[4]);
    check("wanted again", &wanted_again, "RebalanceOnScaleDown R[4] A[5]");
    let wanted_again = drain(Stopped, cancelled).leaving(&[4]);
    let found = check("wanted again", &wanted_again, "RebalanceOnScaleDown R[4] A[5]; remove remove");
    assert_eq!((warned(&found), found.cordoned.len()), (vec![], 1));
}

#[test]
fn one_that_runs_unrecorded_is_taken_over() {
    let seen = |own: Generated| calm().recorded(Idle, &[]).change(|seen| seen.generated = vec![own]);
    check("D14", &seen(own(ADD, Rebalancing, &[4])), "RebalanceOnScaleUp A[4]");
    check("D14", &seen(own(REMOVE, New, &[4])).leaving(&[4]), "RebalanceOnScaleDown R[4]");
    check("D14", &seen(own(IMBALANCE, ProposalReady, &[])), "RebalanceOnImbalance I");
    let off = seen(own(ADD, Rebalancing, &[4])).change(|seen| drop(seen.configured.modes.remove(&ADD)));
    check("its mode is off", &off, "Idle; stop add (cancelled)");
    let two = seen(own(ADD, Rebalancing, &[5])).leaving(&[4]);
    let two = two.change(|seen| seen.generated.push(own(REMOVE, Rebalancing, &[4])));
    check("two at once", &two, "RebalanceOnScaleDown R[4]; stop add (cancelled)");
}

/// Broker 4 went and came again, and what was made for the first of that name is still there. Its end says nothing about
/// the second.
#[test]
fn one_that_may_be_for_an_earlier_broker_is_not_taken_over() {
    let seen = |own: Generated| calm().recorded(Idle, &[4]).change(|seen| seen.generated = vec![own]);
    let paused = check("paused, so perhaps done", &seen(own(ADD, Paused, &[4])), "Idle A[4]");
    assert_eq!(warned(&paused), ["AutoRebalanceWaiting"]);
    let renewed = Generated { ask: Some(Ask::Refresh), ..own(ADD, Ready, &[4]) };
    check("done, and asked for anew", &seen(renewed), "Idle A[4]; withdraw add (cancelled)");
    let stopped = Generated { stopped_for: Some(StopReason::Cancelled), ..own(ADD, Rebalancing, &[4]) };
    check("stopped", &seen(Generated { ask: Some(Ask::Stop), ..stopped }), "Idle A[4]");
    check("it is done", &seen(own(ADD, Ready, &[4])), "Idle A[4]; remove add");
}

#[test]
fn an_end_is_no_end_while_a_refresh_is_pending() {
    for pending in [
        Generated { edited: true, ..own(ADD, Ready, &[4, 5]) },
        Generated { ask: Some(Ask::Refresh), ..own(ADD, Ready, &[4, 5]) },
    ] {
        let seen = calm().recorded(ScaleUp, &[4, 5]).with(pending.clone());
        check("just updated", &seen, "RebalanceOnScaleUp A[4, 5]");
        let braked = seen.change(|seen| seen.brake = Brake::Pulled);
        check("braked", &braked, "RebalanceOnScaleUp A[4, 5]; withdraw add (braked)");
    }
    let withdrawn =
        Generated { edited: true, deleting: true, stopped_for: Some(StopReason::Braked), ..own(ADD, Ready, &[4, 5]) };
    let seen = calm().recorded(ScaleUp, &[4, 5]).with(withdrawn);
    check("never begun", &seen, "RebalanceOnScaleUp A[4, 5]; remove add");
}

#[test]
fn one_that_a_user_deletes_is_followed_to_its_end() {
    let deleted = |state| Generated { deleting: true, ..own(ADD, state, &[4]) };
    let seen = |state| calm().recorded(ScaleUp, &[4]).with(deleted(state));
    check("it moves data", &seen(Rebalancing), "RebalanceOnScaleUp A[4]");
    check(
        "it takes nothing new",
        &calm().recorded(ScaleUp, &[4, 5]).with(deleted(Rebalancing)),
        "RebalanceOnScaleUp A[4, 5]",
    );
    check("done", &seen(Ready), "Idle; remove add");
    assert_eq!(warned(&check("not begun", &seen(Stopped), "Idle; remove add")), ["AutoRebalanceStopped"]);
    let rest = calm().recorded(ScaleUp, &[4, 5]).with(deleted(Ready));
    check("the rest gets one of its own", &rest, "RebalanceOnScaleUp A[5]; remove add");
}

#[test]
fn a_users_stop_is_neither_overwritten_nor_taken_for_ours() {
    let stopped = |mode, state, brokers: &[i32]| Generated { ask: Some(Ask::Stop), ..own(mode, state, brokers) };
    for state in [New, PendingProposal, ProposalReady, Rebalancing] {
        let up = calm().recorded(ScaleUp, &[4, 5]).with(stopped(ADD, state, &[4]));
        let found = check("another broker came", &up, "RebalanceOnScaleUp A[4, 5]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        check("brokers are to go", &up.clone().leaving(&[3]), "RebalanceOnScaleUp R[3] A[4, 5]");
        let braked = up.clone().change(|seen| seen.brake = Brake::Pulled);
        assert_eq!(warned(&check("the brake", &braked, "RebalanceOnScaleUp A[4, 5]")), ["AutoRebalanceHeld"]);
        assert_eq!(super::super::while_refused(&braked.generated, &braked.brake, &braked.configured), []);
        let off = up.clone().change(|seen| seen.configured.modes.clear());
        check("switched off", &off, "off; delete map");

        let drain = calm().recorded(ScaleDown, &[]).leaving(&[3, 4]).with(stopped(REMOVE, state, &[4]));
        check("another one is to go", &drain, "RebalanceOnScaleDown R[3, 4]");
        let uneven = calm().recorded(Imbalance, &[]).leaving(&[4]).with(stopped(IMBALANCE, state, &[]));
        let preempting = uneven.change(|seen| seen.configured.preempt = true);
        check("brokers are to go", &preempting, "RebalanceOnImbalance R[4] I");
    }
    let ended = calm().recorded(ScaleUp, &[4, 5]).leaving(&[3]).with(own(ADD, Stopped, &[4]));
    let found = check("it is what the user wanted", &ended, "RebalanceOnScaleDown R[3] A[5]; remove add");
    assert_eq!(warned(&found), ["AutoRebalanceStopped"]);
}

/// A tool of the user's has put a finalizer on it, and does not take it off.
#[test]
fn one_that_others_keep_is_named_and_holds_up_none_but_its_own_name() {
    let kept = |mode, brokers: &[i32]| Generated {
        deleting: true,
        released: true,
        kept_by: vec!["example.com/keep".into()],
        ..own(mode, Ready, brokers)
    };
    let with = |seen: Observation, own: Generated| seen.change(|seen| seen.generated.push(own));
    let added = || kept(ADD, &[4]);
    let found = check("nothing to do", &with(calm(), added()), "Idle");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
    let said = found.warnings[0].message.as_deref().unwrap();
    assert!(said.contains("c-auto-rebalancing-add-brokers") && said.contains("example.com/keep"), "{said}");
    let drained = "RebalanceOnScaleDown R[4]; create remove[4]";
    check("brokers are to go", &with(calm().leaving(&[4]), added()), drained);
    check("another one came", &with(calm().recorded(ScaleUp, &[5]), added()), "Idle A[5]");
    let uneven = calm().violated(SOME, "");
    let mended = "RebalanceOnImbalance I; create imbalance-a1[]; empty fixable";
    check("load has drifted", &with(uneven.clone(), added()), mended);
    check("it was for this one", &with(uneven, kept(IMBALANCE, &[])), "Idle");
    let filling =
        with(calm().recorded(ScaleUp, &[5]).leaving(&[4]), kept(REMOVE, &[3])).with(own(ADD, Rebalancing, &[5]));
    check("nothing is stopped for what cannot begin", &filling, "RebalanceOnScaleUp R[4] A[5]");
    let off = with(calm(), added()).remembering(|_| {}).change(|seen| seen.configured.modes.clear());
    assert_eq!(check("switched off", &off, "off; delete map").tracker, TrackerWrite::Delete);
    let at_work = Generated { state: Rebalancing, ..added() };
    check("it still runs", &with(calm().leaving(&[4]), at_work), "Idle R[4]; stop add (cancelled)");
}

#[test]
fn brokers_that_a_user_edits_are_written_back() {
    let drain = calm().recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, Rebalancing, &[0, 1, 2]));
    check("edited", &drain, "RebalanceOnScaleDown R[4]; update remove[4]");
}

#[test]
fn a_mode_that_is_removed_ends_what_runs_and_drops_what_is_queued() {
    let without = |seen: Observation, mode| seen.change(|seen| drop(seen.configured.modes.remove(&mode)));
    check("queued", &without(calm().recorded(Idle, &[5]), ADD), "Idle");
    check("queued", &without(calm().leaving(&[4]), REMOVE), "Idle");
    let up = calm().recorded(ScaleUp, &[4, 5]).with(own(ADD, Rebalancing, &[4]));
    check("running", &without(up, ADD), "RebalanceOnScaleUp A[4]");
    let drain = calm().recorded(ScaleDown, &[]).leaving(&[4, 5]).with(own(REMOVE, Rebalancing, &[4]));
    check("running", &without(drain, REMOVE), "RebalanceOnScaleDown R[4]");
}

#[test]
fn nothing_is_left_behind_when_the_feature_is_switched_off() {
    let off = |seen: Observation| seen.change(|seen| seen.configured.modes.clear());
    let running = calm().recorded(ScaleUp, &[4]).with(own(ADD, Rebalancing, &[4]));
    let found = check("running", &off(running.clone()), "off; stop add (switched-off); delete map");
    assert_eq!(found.tracker, TrackerWrite::Keep);
    let stopped = running.clone().change(|seen| seen.generated[0].state = Stopped);
    check("stopped", &off(stopped.clone()), "off; remove add; delete map");
    let gone = off(stopped).change(|seen| {
        seen.generated.clear();
        seen.violations = None;
    });
    assert_eq!(check("gone", &gone, "off").tracker, TrackerWrite::Delete);
    let removed = off(running.clone()).change(|seen| seen.engine = Engine::Absent);
    check("without Cruise Control there is nobody to stop it", &removed, "off; remove add; delete map");
    let rolling = off(running).change(|seen| seen.engine = Engine::Rolling);
    check("the map goes last", &rolling, "off; stop add (switched-off)");
}

#[test]
fn a_damaged_memory_is_written_anew() {
    let seen =
        calm().violated(SOME, "").change(|seen| seen.tracker = Some([("memory.json".into(), "{".into())].into()));
    let found = check("damaged", &seen, "Idle");
    assert_eq!(warned(&found), ["InvalidResourceException", "AutoRebalanceHeld", "AutoRebalanceHeld"]);
    let next = seen.change(|seen| seen.tracker = Some(memory(&found, seen).written()));
    let found = check("mended", &next, "Idle");
    assert_eq!(warned(&found), ["AutoRebalanceHeld"; 2], "by the rate, and by the pause");
}

#[test]
fn what_others_put_into_the_memory_is_not_ours() {
    let seen = calm().recorded(ScaleUp, &[4]).with(own(ADD, Rebalancing, &[4]));
    let seen = seen.change(|seen| drop(seen.tracker.as_mut().unwrap().insert("note".into(), "hi".into())));
    assert_eq!(decide(&seen).tracker, TrackerWrite::Keep);
}

#[test]
fn a_quiet_look_writes_nothing_new() {
    for seen in [
        calm(),
        calm().recorded(ScaleUp, &[4]).with(own(ADD, Rebalancing, &[4])),
        calm().recorded(Idle, &[5]).change(|seen| seen.engine = Engine::Rolling),
    ] {
        let first = decide(&seen);
        let next = seen.change(|seen| {
            seen.recorded = first.status.clone();
            seen.tracker = match &first.tracker {
                TrackerWrite::Write(data) => Some(data.clone()),
                _ => seen.tracker.clone(),
            };
            seen.now = at(500);
        });
        let second = decide(&next);
        assert_eq!((&second.status, &second.tracker), (&first.status, &TrackerWrite::Keep));
        assert_eq!((second.acts.len(), second.events.len()), (0, 0));
        assert_eq!(second.warnings, first.warnings);
    }
}

#[test]
fn transitions_are_told() {
    let found = decide(&calm().leaving(&[4]));
    assert_eq!(found.events.len(), 1);
    assert_eq!(found.events[0].note, "from Idle to RebalanceOnScaleDown of brokers [4]");
    let failed = calm().recorded(ScaleUp, &[4]).with(own(ADD, NotReady, &[4]));
    let reasons: Vec<_> = decide(&failed).events.iter().map(|event| (event.is_warning, event.reason)).collect();
    assert_eq!(reasons, [(true, "AutoRebalanceFailed"), (false, "AutoRebalance")]);
}

#[test]
fn a_name_that_somebody_else_has_is_said_and_not_taken() {
    let strange = |seen: Observation, mode| seen.change(|seen| seen.strangers = [name_for("c", mode, "a1")].into());
    for (seen, mode, expected) in [
        (calm().recorded(Idle, &[4]), ADD, "Idle A[4]"),
        (calm().recorded(ScaleUp, &[4]), ADD, "Idle A[4]"),
        (calm().leaving(&[4]), REMOVE, "Idle R[4]"),
        (calm().violated(SOME, ""), IMBALANCE, "Idle"),
    ] {
        let found = check("its name is taken", &strange(seen, mode), expected);
        assert!(warned(&found).contains(&"InvalidResourceException"), "{:?}", found.warnings);
    }
    let both = strange(calm().recorded(Idle, &[5]).leaving(&[4]), REMOVE);
    check("others are not held up", &both, "RebalanceOnScaleUp R[4] A[5]; create add[5]");
    let filling = strange(calm().recorded(ScaleUp, &[5]).leaving(&[4]).with(own(ADD, Rebalancing, &[5])), REMOVE);
    check("nor stopped for it", &filling, "RebalanceOnScaleUp R[4] A[5]");
}

#[test]
fn a_mark_on_what_runs_is_said_and_ignored() {
    let marked = Generated { marked: true, ..own(REMOVE, Rebalancing, &[4]) };
    let found =
        check("it runs on", &calm().recorded(ScaleDown, &[]).leaving(&[4]).with(marked), "RebalanceOnScaleDown R[4]");
    assert_eq!(warned(&found), ["InvalidAnnotation"]);
}

#[test]
fn what_can_never_be_emptied_holds_up_nobody() {
    let stuck = |seen: Observation| seen.change(|seen| seen.brokers.check = Check::Stuck);
    check("nothing is emptied", &stuck(calm().leaving(&[4])), "Idle");
    check(
        "whoever came gets its data",
        &stuck(calm().recorded(Idle, &[5]).leaving(&[4])),
        "RebalanceOnScaleUp A[5]; create add[5]",
    );
}

/// A broker that goes may be replaced by one that comes at the same time: only together they are what was asked for.
#[test]
fn a_drain_waits_for_brokers_that_are_on_their_way() {
    let coming = |until: i64| {
        calm().recorded(Idle, &[5]).leaving(&[2]).change(|seen| {
            seen.brokers.ready.remove(&5);
            seen.brokers.starting = [(5, at(until))].into();
        })
    };
    let found = check("5 starts", &coming(30), "Idle R[2] A[5]");
    assert_eq!(found.look_again, Some(at(30)), "nothing calls when it takes too long");
    let told: Vec<_> = found.warnings.iter().filter_map(|note| note.message.as_deref()).collect();
    assert!(
        told.iter().any(|text| text.contains("emptying brokers [2] waits until brokers [5] are ready")),
        "{told:?}"
    );
    check("5 is there", &calm().recorded(Idle, &[5]).leaving(&[2]), "RebalanceOnScaleDown R[2] A[5]; create remove[2]");
    let late = coming(30).change(|seen| seen.brokers.starting.clear());
    check("5 takes too long", &late, "RebalanceOnScaleDown R[2] A[5]; create remove[2]");
    let itself = calm().leaving(&[2]).change(|seen| seen.brokers.starting = [(2, at(30))].into());
    check("who goes is not waited for", &itself, "RebalanceOnScaleDown R[2]; create remove[2]");
    let other = coming(30).change(|seen| {
        seen.recorded = Recorded { additions: set(&[4]), ..Recorded::default() }.written(None, at(-1)).into()
    });
    check("nothing else begins in its place", &other, "Idle R[2] A[4]");
}
