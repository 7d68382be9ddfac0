//! Failures: what passes by itself, what nobody knows the outcome of, and what is tried again.

use evenkeel_api::annotations::{self, Ask};

use super::*;
use crate::auto_rebalance::StopReason;
use crate::auto_rebalance::executor_matters;

fn failed(mode: AutoRebalanceMode, brokers: &[i32], reason: Reason, since: i64) -> Generated {
    Generated { because: because(reason), since: Some(at(since)), ..own(mode, NotReady, brokers) }
}

fn drain(reason: Reason) -> Observation {
    calm().recorded(ScaleDown, &[]).leaving(&[4]).with(failed(REMOVE, &[4], reason, -5))
}

fn scale_up(reason: Reason) -> Observation {
    calm().recorded(ScaleUp, &[4]).with(failed(ADD, &[4], reason, -5))
}

#[test]
fn what_passes_by_itself_is_waited_out() {
    for reason in [Reason::NoSuchResourceException, Reason::NotEnoughData, Reason::InvalidResourceException] {
        let found = check("drain", &drain(reason), "RebalanceOnScaleDown R[4]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        let found = check("scale-up", &scale_up(reason), "RebalanceOnScaleUp A[4]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        check("more urgent", &scale_up(reason).leaving(&[3]), "RebalanceOnScaleDown R[3] A[4]; remove add");
        let uneven = calm().recorded(Imbalance, &[]).with(failed(IMBALANCE, &[], reason, -5));
        check("imbalance", &uneven, "RebalanceOnImbalance I");
    }
    // Without its label it has the same reason, and nobody puts the label back.
    let unlabelled = |seen: Observation| seen.change(|seen| seen.generated[0].labelled = false);
    let reason = Reason::InvalidResourceException;
    check("drain", &unlabelled(drain(reason)), "Idle R[4]; remove remove");
    check("scale-up", &unlabelled(scale_up(reason)), "Idle; remove add");
    for reason in [Reason::CruiseControlRestException, Reason::IllegalArgumentException] {
        let rolling = |seen: Observation| seen.change(|seen| seen.engine = Engine::Rolling);
        check("the engine is rolling", &rolling(drain(reason)), "RebalanceOnScaleDown R[4]");
        check("the engine is rolling", &rolling(scale_up(reason)), "RebalanceOnScaleUp A[4]");
    }
}

#[test]
fn what_an_earlier_engine_refused_is_asked_again() {
    let later = |seen: Observation| seen.change(|seen| seen.engine = engine("e2"));
    let reason = Reason::CruiseControlRestException;
    check("drain", &later(drain(reason)), "RebalanceOnScaleDown R[4]; refresh remove");
    check("drain", &later(drain(reason)).leaving(&[4, 5]), "RebalanceOnScaleDown R[4, 5]; update remove[4, 5]");
    check("scale-up", &later(scale_up(reason)), "RebalanceOnScaleUp A[4]; refresh add");
    let imbalance = calm().recorded(Imbalance, &[]).with(failed(IMBALANCE, &[], reason, -5));
    check("imbalance", &later(imbalance.clone()), "RebalanceOnImbalance I; refresh imbalance-a1");
    check("the engine has not changed", &imbalance, "Idle; remove imbalance-a1");
    check("the engine has not changed", &scale_up(reason), "Idle; remove add");
    let held = later(scale_up(reason)).change(|seen| seen.brake = Brake::Pulled);
    check("the brake is pulled", &held, "Idle A[4]; remove add");
}

/// A refusal is asked again, a run that began is not: whichever engine ended it.
#[test]
fn what_failed_while_data_moved_is_over_under_every_engine() {
    let reason = Reason::ExecutionFailed;
    for which in ["e1", "e2"] {
        let under = |seen: Observation| seen.change(|seen| seen.engine = engine(which));
        check(which, &under(drain(reason)), "Idle R[4]; remove remove");
        let found = check(which, &under(scale_up(reason)), "Idle; remove add");
        assert_eq!(warned(&found), ["AutoRebalanceFailed"], "{which}");
        let imbalance = calm().recorded(Imbalance, &[]).with(failed(IMBALANCE, &[], reason, -5));
        check(which, &under(imbalance), "Idle; remove imbalance-a1");
    }
}

/// Whatever the clocks say: a kubelet's may be ahead of the operator's, or behind it.
#[test]
fn each_engine_is_asked_once() {
    let reason = Reason::CruiseControlRestException;
    for since in [-5, 60] {
        let refused = |asked_of: Option<&str>| Generated {
            asked_of: asked_of.map(str::to_owned),
            ..failed(ADD, &[4], reason, since)
        };
        let up = |own: Generated| calm().recorded(ScaleUp, &[4]).with(own);
        for unasked in [Some("e0"), None] {
            let found = check("asked of another", &up(refused(unasked)), "RebalanceOnScaleUp A[4]; refresh add");
            let asked = Act::Refresh { name: name_for("c", ADD, ""), engine: Some("e1".to_owned()) };
            assert_eq!(found.acts, [asked], "it is noted in the same step");
        }
        check("asked of this one", &up(refused(Some("e1"))), "Idle; remove add");
    }
    let made = decide(&calm().recorded(Idle, &[4]));
    let Some(Act::Create(made)) = made.acts.first() else { panic!("{made:?}") };
    assert_eq!(made.metadata.annotations.as_ref().unwrap()[annotations::ASKED_OF], "e1");
}

#[test]
fn brokers_that_the_engine_has_not_heard_of_are_asked_for_again() {
    let unheard = |since: i64| calm().recorded(ScaleUp, &[4]).with(failed(ADD, &[4], Reason::NoSuchBroker, since));
    let found = check("just now", &unheard(-4), "RebalanceOnScaleUp A[4]");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
    assert_eq!(found.look_again, Some(at(6)));
    check("a while ago", &unheard(-10), "RebalanceOnScaleUp A[4]; refresh add");
    let away = unheard(-10).change(|seen| seen.brokers.ready = set(&[0, 1, 2, 3, 5]));
    let found = check("it is not there", &away, "RebalanceOnScaleUp A[4]");
    assert_eq!(found.look_again, Some(at(10)), "nothing calls when it is");
    check("more urgent", &unheard(-10).leaving(&[3]), "RebalanceOnScaleDown R[3] A[4]; remove add");
    let held = unheard(-10).change(|seen| seen.brake = Brake::Pulled);
    check("the brake is pulled", &held, "Idle A[4]; remove add");
    let newer = unheard(-4).change(|seen| seen.engine = engine("e2"));
    check("another engine may have heard of it", &newer, "RebalanceOnScaleUp A[4]; refresh add");
    check("one to empty is not new", &drain(Reason::NoSuchBroker), "Idle R[4]; remove remove");
}

/// What counts is the reason, which a program gives. Whatever else the engine says may have the same words in it.
#[test]
fn a_refusal_is_not_known_by_its_words() {
    let reason = Reason::CruiseControlRestException;
    let because = Some((reason.as_str().to_owned(), "Broker [4] does not exist.".to_owned()));
    let refused = calm().recorded(ScaleUp, &[4]).with(Generated { because, ..failed(ADD, &[4], reason, -5) });
    let found = check("refused for good", &refused, "Idle; remove add");
    assert_eq!(warned(&found), ["AutoRebalanceFailed"]);
}

#[test]
fn a_drain_of_which_nobody_can_say_whether_data_is_left_has_not_failed() {
    let ended = |leaving: &[i32]| {
        let seen = calm().recorded(ScaleDown, &[]).emptying(&[3, 4]).leaving(leaving).with(own(REMOVE, Ready, &[3, 4]));
        seen.change(|seen| seen.brokers.check = Check::Unknown)
    };
    let found = check("nobody knows", &ended(&[3, 4]), "Idle R[3, 4]; remove remove");
    assert_eq!((warned(&found), memory(&found, &ended(&[3, 4])).removal.failed), (vec![], 0));
    check("nothing is begun on a guess", &ended(&[4]), "Idle R[4]; remove remove");
}

#[test]
fn a_drain_that_leaves_data_behind_says_which_until_the_brokers_are_gone() {
    let ended = calm().recorded(ScaleDown, &[]).leaving(&[4]).with(own(REMOVE, Ready, &[4]));
    let ended = ended.change(|seen| seen.brokers.left = Some("broker 4 holds data of 1 partition (t-0)".to_owned()));
    let found = check("data is left", &ended, "Idle R[4]; remove remove");
    assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceFailed"]);
    let said = found.warnings[1].message.clone().unwrap();
    assert!(said.ends_with("data is left: broker 4 holds data of 1 partition (t-0)"), "{said}");
    assert!(found.events.iter().any(|event| event.is_warning && event.note == said));
    let after = |leaving: &[i32]| {
        let mut after = calm().leaving(leaving).change(|seen| seen.tracker = Some(memory(&found, seen).written()));
        after.brokers.check = Check::Clear;
        after
    };
    assert_eq!(warned(&check("looked at once more", &after(&[4]), "Idle")), ["AutoRebalanceFailed"]);
    assert_eq!(warned(&check("they are gone", &after(&[]), "Idle")), [""; 0]);
}

#[test]
fn what_failed_under_another_engine_is_tried_at_once() {
    let failed = drain(Reason::IllegalArgumentException);
    let found = check("it fails", &failed, "Idle R[4]; remove remove");
    let later = |which: &str| {
        let seen = calm().leaving(&[4]).change(|seen| seen.tracker = Some(memory(&found, seen).written()));
        seen.change(|seen| {
            seen.now = at(3);
            seen.engine = engine(which);
        })
    };
    check("the same engine", &later("e1"), "Idle R[4]");
    check("another one", &later("e2"), "RebalanceOnScaleDown R[4]; create remove[4]");
}

#[test]
fn an_end_that_is_still_to_come_makes_no_old_news() {
    let seen = calm().manual(Ready).change(|seen| seen.manual[0].since = Some(at(1_000_000)));
    assert_eq!(memory(&decide(&seen), &seen).last_completion, None);
}

#[test]
fn an_unknown_outcome_is_tried_again_three_times_once_the_engine_is_idle() {
    let reason = Reason::ExecutionOutcomeUnknown;
    for executing in [None, Some(true)] {
        let busy = scale_up(reason).change(|seen| seen.engine = Engine::Current { id: "e1".into(), executing });
        let found = check("it may still be at it", &busy, "RebalanceOnScaleUp A[4]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        assert_eq!(found.look_again, Some(at(10)), "nothing calls when the engine is idle again");
        assert!(executor_matters(&busy.generated));
    }
    assert!(!executor_matters(&scale_up(Reason::CruiseControlRestException).generated));
    for unknown in 0..=3 {
        let seen = scale_up(reason).remembering(|tracker| tracker.addition.unknown = unknown);
        if unknown < 3 {
            let found = check("again", &seen, "RebalanceOnScaleUp A[4]; remove add");
            assert_eq!(warned(&found), ["AutoRebalanceFailed"]);
            assert_eq!(memory(&found, &seen).addition.unknown, unknown + 1);
            // The tracker was written and then came a crash.
            let repeated = seen.change(|seen| seen.tracker = Some(memory(&found, seen).written()));
            let found = check("counted already", &repeated, "RebalanceOnScaleUp A[4]; remove add");
            assert_eq!(memory(&found, &repeated).addition.unknown, unknown + 1);
        } else {
            check("enough", &seen, "Idle; remove add");
        }
        let seen = drain(reason).remembering(|tracker| tracker.removal.unknown = unknown);
        let expected =
            if unknown < 3 { "RebalanceOnScaleDown R[4]; remove remove" } else { "Idle R[4]; remove remove" };
        check("a drain goes on, but with pauses", &seen, expected);
    }
}

#[test]
fn a_failed_drain_is_tried_for_ever_with_growing_pauses() {
    let reason = Reason::CruiseControlRestException;
    let mut seen = drain(reason);
    for pause in [30, 60, 120, 240, 480, 600, 600] {
        let failing = decide(&seen);
        assert_eq!(failing.look_again, Some(at(pause)));
        let tracker = Some(memory(&failing, &seen).written());
        let waiting = calm().recorded(Idle, &[]).leaving(&[4]).change(|seen| seen.tracker = tracker.clone());
        let found = check("waiting", &waiting, "Idle R[4]");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceFailed"]);
        let due = waiting.clone().change(|seen| seen.now = at(pause));
        let found = check("due", &due, "RebalanceOnScaleDown R[4]; create remove[4]");
        assert_eq!(warned(&found), ["AutoRebalanceFailed"], "until it has succeeded");
        let edited = waiting.change(|seen| seen.spec_version = "v2".into());
        let found = check("another spec", &edited, "RebalanceOnScaleDown R[4]; create remove[4]");
        assert_eq!(warned(&found), [""; 0]);
        seen = drain(reason).change(|seen| {
            seen.tracker = tracker;
            seen.generated[0].uid = format!("after {pause}");
        });
    }
}

#[test]
fn what_nobody_approves_comes_to_an_end_and_holds_up_nothing() {
    let stuck = |mode, brokers: &[i32]| Generated {
        withheld: Some("too much".to_owned()),
        ..own(mode, ProposalReady, brokers)
    };
    let on_imbalance = |own| calm().recorded(Imbalance, &[4]).with(own);
    let found = check(
        "imbalance",
        &on_imbalance(stuck(IMBALANCE, &[])),
        "RebalanceOnImbalance A[4] I; withdraw imbalance-a1 (withheld)",
    );
    assert_eq!(warned(&found), ["AutoRebalanceFailed"]);
    assert!(found.warnings[0].message.as_deref().unwrap_or_default().contains("too much"));
    // On its way out it is not told twice, and then it is as any other end: a pause, and whatever waited is next.
    let going = Generated { stopped_for: Some(StopReason::Withheld), deleting: true, ..stuck(IMBALANCE, &[]) };
    assert_eq!(decide(&on_imbalance(going.clone())).events, []);
    check("going", &on_imbalance(going.clone()), "RebalanceOnImbalance A[4] I");
    let gone = on_imbalance(Generated { state: Stopped, withheld: None, ..going });
    let found = check("gone", &gone, "RebalanceOnScaleUp A[4]; remove imbalance-a1");
    assert_eq!(memory(&found, &gone).imbalance.ended, Some(at(-5)));
    // A user may still approve it, if that can be read.
    let approved = Generated { ask: Some(Ask::Approve), ..stuck(IMBALANCE, &[]) };
    check("approved", &on_imbalance(approved), "RebalanceOnImbalance A[4] I");
    let misspelt = Generated { ask: Some(Ask::Unknown("aprove".into())), ..stuck(IMBALANCE, &[]) };
    let withdrawn = "RebalanceOnImbalance A[4] I; withdraw imbalance-a1 (withheld)";
    check("misspelt", &on_imbalance(misspelt), withdrawn);

    let drain = calm().recorded(ScaleDown, &[]).leaving(&[4]).with(stuck(REMOVE, &[4]));
    let found = check("drain", &drain, "RebalanceOnScaleDown R[4]; withdraw remove (withheld)");
    assert_eq!(memory(&found, &drain).removal.failed, 1, "it is tried again, with pauses");
    let added = calm().recorded(ScaleUp, &[4, 5]).with(stuck(ADD, &[4]));
    check("scale-up", &added, "RebalanceOnScaleUp A[5]; withdraw add (withheld)");
}

#[test]
fn whoever_takes_the_approval_off_is_told_and_an_imbalance_holds_up_nobody() {
    let lacking = |mode, brokers: &[i32]| Generated { unapproved: true, ..own(mode, ProposalReady, brokers) };
    let drain = calm().recorded(ScaleDown, &[5]).leaving(&[4]).with(lacking(REMOVE, &[4]));
    let up = calm().recorded(ScaleUp, &[4]).with(lacking(ADD, &[4]));
    for (seen, expected) in [(&drain, "RebalanceOnScaleDown R[4] A[5]"), (&up, "RebalanceOnScaleUp A[4]")] {
        let found = check("it waits for approval", seen, expected);
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        let said = found.warnings[0].message.as_deref().unwrap();
        assert!(said.contains("rebalance-auto-approval: \"true\"") && said.contains("approve"), "{said}");
        let approved = seen.clone().change(|seen| seen.generated[0].ask = Some(Ask::Approve));
        assert_eq!(warned(&check("somebody approves", &approved, expected)), [""; 0]);
        for in_vain in [Ask::Stop, Ask::Unknown("aprove".into())] {
            let asked = seen.clone().change(|seen| seen.generated[0].ask = Some(in_vain.clone()));
            assert_eq!(warned(&check("it means nothing", &asked, expected)), ["AutoRebalanceWaiting"], "{in_vain:?}");
        }
    }
    check("it follows the spec", &up.leaving(&[3]), "RebalanceOnScaleUp R[3] A[4]; withdraw add (preempted)");

    let uneven = calm().recorded(Imbalance, &[4]).with(lacking(IMBALANCE, &[]));
    let found = check("imbalance", &uneven, "RebalanceOnImbalance A[4] I; withdraw imbalance-a1 (withheld)");
    assert_eq!(warned(&found), ["AutoRebalanceFailed"]);
    assert!(found.warnings[0].message.as_deref().unwrap().contains("rebalance-auto-approval"));
}

#[test]
fn success_forgets_what_failed_before() {
    let seen = calm().recorded(ScaleDown, &[]).with(own(REMOVE, Ready, &[4])).remembering(|tracker| {
        tracker.removal.count_failure("before", at(-100), None);
        let failure = crate::auto_rebalance::tracker::LastFailure { spec_version: "v1".into(), ..Default::default() };
        tracker.failures.insert(REMOVE, failure);
    });
    let found = check("done", &seen, "Idle; remove remove");
    assert_eq!((warned(&found), memory(&found, &seen).removal.failed), (vec![], 0));
}

#[test]
fn a_failed_scale_up_is_tried_again_only_if_asked() {
    let reason = Reason::CruiseControlRestException;
    let asked = |failed: u32| {
        scale_up(reason)
            .change(|seen| seen.configured.scale_up_retries = 2)
            .remembering(|tracker| tracker.addition.failed = failed)
    };
    for failed in [0, 1] {
        let found = check("again", &asked(failed), "Idle A[4]; remove add");
        assert!(found.look_again.is_some());
        assert_eq!(warned(&found), ["AutoRebalanceWaiting", "AutoRebalanceFailed"]);
    }
    check("enough", &asked(2), "Idle; remove add");
}

#[test]
fn one_more_attempt_at_a_drain_does_not_stop_a_scale_up() {
    let running = calm().recorded(ScaleUp, &[5]).leaving(&[4]).with(own(ADD, Rebalancing, &[5]));
    check("asked for anew", &running, "RebalanceOnScaleUp R[4] A[5]; stop add (preempted)");
    let again = running.remembering(|tracker| tracker.removal.failed = 1);
    check("tried before", &again, "RebalanceOnScaleUp R[4] A[5]");
    let done = again.change(|seen| seen.generated[0].state = Ready);
    check("its turn", &done, "RebalanceOnScaleDown R[4]; remove add");
}

/// It may wait for ever, and nothing runs that would be stopped.
#[test]
fn one_more_attempt_at_a_drain_does_not_wait_for_a_scale_up_that_waits() {
    let unheard = failed(ADD, &[4], Reason::NoSuchBroker, -10);
    let waiting = calm().recorded(ScaleUp, &[4]).leaving(&[3]).with(unheard).change(|seen| {
        seen.brokers.ready.remove(&4);
    });
    let tried = |not_before: i64| {
        waiting.clone().remembering(|tracker| {
            tracker.removal.count_failure("before", at(-100), Some("e1"));
            tracker.removal.not_before = Some(at(not_before));
        })
    };
    check("it is time", &tried(-1), "RebalanceOnScaleDown R[3] A[4]; remove add");
    let found = check("not yet", &tried(7), "RebalanceOnScaleUp R[3] A[4]");
    assert_eq!(found.look_again, Some(at(7)), "nothing calls when it is");
}
