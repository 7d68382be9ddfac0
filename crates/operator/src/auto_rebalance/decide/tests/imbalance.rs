//! Rebalances on imbalance: what sets them off, and what holds them.

use evenkeel_api::annotations;
use evenkeel_rest::body::state::{Anomaly, GoalViolation};

use super::*;
use crate::auto_rebalance::{poll::Polled, tracker::History};

const START: &str = "RebalanceOnImbalance I; create imbalance-a1[]; empty fixable";

fn uneven() -> Observation {
    calm().violated(SOME, "")
}

#[test]
fn guards_hold_it_and_say_until_when() {
    let goals = || ["RackAwareGoal".to_owned()].into();
    let just_ended = History { ended: Some(at(-60)), goals: goals(), repeats: 2, ..History::default() };
    let often = History { starts: vec![at(-3000), at(-2000)], ..History::default() };
    for (history, opens) in [(just_ended, at(1140)), (often, at(600))] {
        let seen = uneven().remembering(|tracker| tracker.imbalance = history);
        let found = check("held", &seen, "Idle");
        assert_eq!((warned(&found), found.look_again), (vec!["AutoRebalanceHeld"], Some(opens)));
        check("open", &seen.change(|seen| seen.now = opens), START);
    }
    let window = uneven().change(|seen| seen.configured.windows = vec!["0 0 0 1 1 ? 2027".into()]);
    assert_eq!(warned(&check("window", &window, "Idle")), ["AutoRebalanceHeld"]);
    let nonsense = uneven().change(|seen| seen.configured.windows = vec!["at night".into()]);
    let found = check("no window at all", &nonsense, "Idle");
    assert_eq!((warned(&found), found.look_again), (vec!["InvalidResourceException", "AutoRebalanceHeld"], None));
    let scaling = window.leaving(&[4]);
    check("scaling knows no windows", &scaling, "RebalanceOnScaleDown R[4]; create remove[4]; empty fixable");
}

#[test]
fn a_crash_between_record_and_deed_does_not_count_twice() {
    let first = check("start", &uneven(), START);
    let crashed = uneven().change(|seen| {
        seen.recorded = first.status.clone();
        seen.tracker = Some(memory(&first, seen).written());
    });
    let again = check("again", &crashed, START);
    assert_eq!(memory(&again, &crashed).imbalance.starts.len(), 1);
    let at_night = crashed.clone().change(|seen| seen.configured.windows = vec!["0 0 0 1 1 ? 2027".into()]);
    assert_eq!(warned(&check("the window has closed", &at_night, "Idle")), ["AutoRebalanceHeld"]);
    let mended = crashed.violated("", "");
    check("it was found to be even in the meantime", &mended, "Idle");
}

#[test]
fn a_conflict_between_memory_and_record_uses_up_no_start() {
    let once_before = uneven().remembering(|tracker| {
        tracker.imbalance.starts = vec![at(-2_000)];
        tracker.imbalance.ended = Some(at(-1_000));
    });
    let first = check("the second within an hour", &once_before, START);
    let refused = once_before.change(|seen| seen.tracker = Some(memory(&first, seen).written()));
    let again = check("the status was not written", &refused, START);
    assert_eq!(memory(&again, &refused).imbalance.starts.len(), 2);
}

/// The API server refused it, and then a user's rebalance made old news of what it was for.
#[test]
fn a_start_that_was_counted_and_never_made_is_followed_by_the_pause_it_would_have_been() {
    let third = uneven().remembering(|tracker| {
        let goals = ["RackAwareGoal".to_owned()].into();
        tracker.imbalance = History { goals, repeats: 2, ended: Some(at(-1_200)), ..History::default() };
    });
    let first = check("the pause is over", &third, START);
    let refused = third.change(|seen| {
        seen.recorded = first.status.clone();
        seen.tracker = Some(memory(&first, seen).written());
    });
    check("it can still be made", &refused, START);
    let forgotten = refused.violated("", "");
    let found = check("it is too late", &forgotten, "Idle");
    let again = forgotten.change(|seen| {
        seen.recorded = found.status.clone();
        seen.tracker = Some(memory(&found, seen).written());
        seen.now = at(60);
    });
    let again = again.violated("- a2: [RackAwareGoal]", "");
    let found = check("the same goals again", &again, "Idle");
    assert_eq!((warned(&found), found.look_again), (vec!["AutoRebalanceHeld"], Some(at(2_400))), "40 minutes");
}

#[test]
fn the_data_cap_is_for_imbalance_only() {
    let capped = |seen: Observation| seen.change(|seen| seen.configured.most_data_mb = Some(700));
    let cap = |seen: Observation| {
        let decision = decide(&capped(seen));
        let Some(Act::Create(made)) = decision.acts.first() else { panic!("nothing was made") };
        made.metadata.annotations.clone().unwrap().remove(annotations::MAX_DATA_MB)
    };
    assert_eq!(cap(uneven()).as_deref(), Some("700"));
    assert_eq!(cap(calm().leaving(&[4])), None);
    assert_eq!(cap(calm().recorded(Idle, &[4])), None);
}

#[test]
fn throttles_are_for_all_that_name_none() {
    let throttle = |seen: Observation| {
        let seen = seen.change(|seen| {
            seen.configured.throttle = Some(5_000);
            seen.configured.modes.insert(IMBALANCE, Some("t".into()));
            seen.templates = template(serde_json::json!({"replicationThrottle": 7}), true);
        });
        match decide(&seen).acts.first() {
            Some(Act::Create(made)) => made.spec.replication_throttle,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(throttle(calm().leaving(&[4])), Some(5_000));
    assert_eq!(throttle(uneven()), Some(7));
}

#[test]
fn goals_of_the_template_have_to_fit() {
    let seen = |goals: &[&str]| {
        uneven().change(|seen| {
            seen.configured.modes.insert(IMBALANCE, Some("t".into()));
            seen.templates = template(serde_json::json!({"goals": goals}), true);
        })
    };
    check("fitting", &seen(&["RackAwareGoal"]), START);
    let found = check("not watched", &seen(&["RackAwareGoal", "CpuCapacityGoal"]), "Idle I");
    assert_eq!(warned(&found), ["InvalidRebalanceTemplateGoals"]);
    let scaling = seen(&["CpuCapacityGoal"]).leaving(&[4]);
    check("scaling goes on", &scaling, "RebalanceOnScaleDown R[4] I; create remove[4]; empty fixable");
    let missing = seen(&["RackAwareGoal"]).change(|seen| seen.templates.clear());
    assert_eq!(warned(&check("no template", &missing, "Idle")), ["InvalidRebalanceTemplate"]);
}

#[test]
fn rebalances_of_users_clear_the_anomalies_too() {
    for state in [New, PendingProposal, Rebalancing] {
        check("asked for", &uneven().manual(state), "Idle; empty fixable");
    }
    check("it only waits for approval", &uneven().manual(ProposalReady), START);
    for state in [Ready, Stopped, NotReady, Paused] {
        check("over", &uneven().manual(state), START);
    }
}

#[test]
fn brokers_that_nobody_empties_hold_up_no_imbalance_and_those_about_to_go_are_named() {
    let stays = |seen: Observation| seen.leaving(&[4]);
    let stuck = stays(uneven()).change(|seen| seen.brokers.check = Check::Stuck);
    check("there is no room for their data", &stuck, START);
    let off = stays(uneven()).change(|seen| drop(seen.configured.modes.remove(&REMOVE)));
    check("nobody empties them", &off, START);
    let missing = stays(uneven()).change(|seen| drop(seen.configured.modes.insert(REMOVE, Some("gone".into()))));
    check("nobody knows how", &missing, START);
    for seen in [off, missing] {
        let emptied = seen.change(|seen| seen.brokers.check = Check::Clear);
        let found = check("somebody has emptied them by hand", &emptied, "Idle");
        assert!(warned(&found).contains(&"AutoRebalanceWaiting"), "{:?}", found.warnings);
    }
    let tried = stays(uneven()).remembering(|tracker| tracker.removal.count_failure("before", at(-1), Some("e1")));
    let found = check("they are emptied later", &tried, "Idle R[4]");
    let said: Vec<_> = found.warnings.iter().filter_map(|it| it.message.as_deref()).collect();
    assert!(said.contains(&"no rebalance on imbalance while brokers [4] are to go"), "{said:?}");
}

#[test]
fn a_user_s_rebalance_that_gets_no_proposal_is_named() {
    for state in [New, PendingProposal] {
        let asked = calm().manual(state);
        let found = check("a moment ago", &asked, "Idle");
        assert_eq!((warned(&found), found.look_again), (vec![], Some(at(55))));
        let found = check("long ago", &asked.change(|seen| seen.now = at(55)), "Idle");
        assert_eq!(warned(&found), ["AutoRebalanceWaiting"]);
        assert!(found.warnings[0].message.as_deref().unwrap().contains("KafkaRebalance mine"));
    }
    let moving = calm().manual(Rebalancing).change(|seen| seen.now = at(600));
    assert_eq!(warned(&check("it moves data", &moving, "Idle")), [""; 0]);
    let off = calm().manual(New).change(|seen| {
        seen.now = at(600);
        seen.configured.modes.remove(&IMBALANCE);
        seen.violations = None;
    });
    assert_eq!(warned(&check("nobody watches", &off, "Idle")), [""; 0]);
}

#[test]
fn a_map_that_nobody_can_read_is_pointed_out_and_sets_nothing_off() {
    for nonsense in ["{", "- 1", "a: b"] {
        let found = check("nonsense", &calm().violated(nonsense, ""), "Idle");
        assert_eq!(warned(&found), ["InvalidResourceException"]);
    }
    check("no map", &calm().change(|seen| seen.violations = None), "Idle");
}

#[test]
fn what_another_engine_has_found_is_written_down_unless_it_is_just_being_mended() {
    let anomaly: Anomaly<GoalViolation> = serde_json::from_value(serde_json::json!({
        "anomalyId": "a1", "detectionMs": at(-20).as_millisecond(), "statusUpdateMs": 0, "status": "IGNORED",
        "fixableViolatedGoals": ["RackAwareGoal"], "unfixableViolatedGoals": [],
    }))
    .unwrap();
    let polling = |seen: Observation| {
        seen.change(|seen| {
            seen.configured.polled_every = Some(jiff::SignedDuration::from_mins(5));
            seen.polled = Some(Polled { at: at(-10), found: Ok(vec![anomaly.clone()]) });
        })
    };
    let found = check("found", &polling(calm()), "Idle; note");
    assert_eq!(found.look_again, Some(at(20)), "nothing calls when it finds something");
    let Some(Act::NoteViolations(data)) = found.acts.first() else { panic!("{found:?}") };
    let noted = polling(calm()).change(|seen| seen.violations = Some(data.clone()));
    check("noted", &noted, START);
    let running = polling(calm()).recorded(Imbalance, &[]).with(own(IMBALANCE, Rebalancing, &[]));
    check("ours is at it", &running, "RebalanceOnImbalance I");
    check("a user's is at it", &polling(calm().manual(PendingProposal)), "Idle");
    check("it was mended since", &polling(calm().manual(Ready)), "Idle");
    let scaling = polling(calm()).leaving(&[4]);
    check("about to be", &scaling, "RebalanceOnScaleDown R[4]; create remove[4]");
    let silent = polling(calm()).change(|seen| seen.polled.as_mut().unwrap().found = Err("no answer".into()));
    assert_eq!(warned(&check("it does not tell", &silent, "Idle")), ["AutoRebalanceWaiting"]);
    let ours = calm().change(|seen| seen.polled = Some(Polled { at: at(-10), found: Ok(vec![anomaly.clone()]) }));
    check("ours writes it down itself", &ours, "Idle");
}

#[test]
fn when_the_mode_is_removed_the_map_goes_after_the_engine_has_rolled() {
    let removed = |engine| {
        uneven().change(|seen| {
            seen.configured.modes.remove(&IMBALANCE);
            seen.engine = engine;
        })
    };
    check("rolling", &removed(Engine::Rolling), "Idle");
    check("rolled", &removed(calm().engine), "Idle; delete map");
    let running = removed(calm().engine).recorded(Imbalance, &[]).with(own(IMBALANCE, Rebalancing, &[]));
    check("one that runs goes on to its end", &running, "RebalanceOnImbalance I; delete map");
}

#[test]
fn ends_of_all_rebalances_are_remembered() {
    let seen = calm().manual(Ready).change(|seen| {
        seen.manual.push(Manual { name: "later".into(), state: Rebalancing, since: Some(at(-1)) });
    });
    let found = decide(&seen);
    assert_eq!(memory(&found, &seen).last_completion, Some(at(-5)));
    let next = seen.change(|seen| seen.tracker = Some(memory(&found, seen).written()));
    assert_eq!(decide(&next).tracker, TrackerWrite::Keep);
}
