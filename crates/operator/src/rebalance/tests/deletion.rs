//! Deletion at every state: it waits for what runs, begins nothing, and never hangs.

use evenkeel_api::Reason;
use evenkeel_api::annotations::AUTO_REBALANCING_FINALIZER;
use evenkeel_api::rebalance::RebalanceState::{NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, Stopped};
use evenkeel_rest::parameter::TaskStatus;

use super::super::{FoundKafka, Next, Sort, tag};
use super::scene::{Engineer, Scene, UID, executing, execution, task, trouble};

#[test]
fn a_deletion_waits_for_the_proposal_and_keeps_reporting() {
    let mut scene = Scene::pending();
    scene.delete();
    scene.run(&Engineer::with(&[task(1, TaskStatus::Active, "x")]));
    assert_eq!((scene.state(), scene.has_finalizer()), (PendingProposal, true));
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, false));
}

/// A dry run has nothing to wait for, so nobody waits for an engine that is not there.
#[test]
fn a_deletion_does_not_wait_for_a_proposal_of_whoever_does_not_answer() {
    let failed = || Engineer::with(&[task(1, TaskStatus::CompletedWithError, "x")]);
    for engineer in [
        Engineer { tasks: Some(trouble(Sort::Unreachable, "image cannot be pulled")), ..Engineer::default() },
        Engineer { tasks: Some(trouble(Sort::Denied, "status 401")), ..Engineer::default() },
        Engineer { tasks: Some(trouble(Sort::Garbled, "<html>")), ..Engineer::default() },
        Engineer { explain: Some(trouble(Sort::Unreachable, "down")), ..failed() },
        Engineer { explain: Some(trouble(Sort::Garbled, "<html>")), ..failed() },
    ] {
        let mut scene = Scene::pending();
        scene.delete();
        scene.run(&engineer);
        assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false), "{}", scene.message());
    }
    let mut scene = Scene::pending();
    scene.kafka().engine.as_mut().unwrap().missing_secret = Some("s".into());
    scene.delete();
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false));
    // Nor for one that never finishes.
    let mut scene = Scene::pending();
    scene.delete();
    scene.seen.now += jiff::SignedDuration::from_secs(601);
    scene.run(&Engineer::with(&[task(1, TaskStatus::Active, "x")]));
    assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false));
}

#[test]
fn whoever_waits_for_a_run_that_nobody_can_ask_about_is_told_the_way_out() {
    for command in [None, Some("stop")] {
        let mut scene = Scene::rebalancing();
        let down = Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::with(&[]) };
        scene.run(&down);
        assert!(!scene.warning(Reason::CruiseControlRestException).unwrap().contains("by hand"));
        scene.delete();
        if let Some(command) = command {
            scene.ask(command);
        }
        scene.run(&down);
        let why = scene.warning(Reason::CruiseControlRestException).unwrap();
        assert!(why.starts_with("down. ") && why.contains("finalizer strimzi.io/rebalance by hand"), "{why}");
        assert_eq!((scene.state(), scene.has_finalizer()), (Rebalancing, true), "it may come back");
    }
}

/// Also where it is not even known whether there is a run, and where nobody can be asked at all.
#[test]
fn whoever_waits_is_told_the_way_out_wherever_it_waits() {
    let perhaps_submitted = || {
        let mut scene = Scene::proposal_ready();
        scene.set_finalizer("strimzi.io/rebalance", true);
        scene
    };
    let locked_out = |mut scene: Scene| {
        scene.kafka().engine.as_mut().unwrap().missing_secret = Some("s".into());
        scene
    };
    for (mut scene, engineer) in [
        (perhaps_submitted(), Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::default() }),
        (perhaps_submitted(), Engineer { executor: Some(trouble(Sort::Denied, "401")), ..Engineer::with(&[]) }),
        (locked_out(perhaps_submitted()), Engineer::default()),
        (locked_out(Scene::rebalancing()), Engineer::default()),
    ] {
        scene.delete();
        scene.run(&engineer);
        assert!(scene.has_finalizer(), "{}", scene.message());
        let warnings = scene.status().conditions.iter().filter(|it| it.is_warning());
        let told: Vec<&str> = warnings.filter_map(|it| it.message.as_deref()).collect();
        assert!(told.iter().any(|it| it.contains("finalizer strimzi.io/rebalance by hand")), "{told:?}");
    }
}

#[test]
fn a_deletion_waits_for_the_run_and_keeps_reporting() {
    let mut scene = Scene::rebalancing();
    scene.delete();
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!((scene.state(), scene.has_finalizer()), (Rebalancing, true));
    assert_eq!(scene.data("completedByteMovementPercentage"), Some("50"));
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.has_finalizer()), (Ready, false));
}

#[test]
fn what_is_being_deleted_can_still_be_stopped_but_not_renewed() {
    let mut scene = Scene::rebalancing();
    scene.delete();
    scene.ask("refresh");
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!((scene.called(), scene.warnings()), (vec!["follow", "look"], vec!["InvalidAnnotation"]));
    scene.ask("stop");
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    scene.run(&Engineer::with(&[execution(TaskStatus::CompletedWithError)]));
    assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false));
}

#[test]
fn nothing_new_begins_once_deletion_was_asked_for() {
    // A proposal that is lost, one that was never asked for, and one that needs more data.
    let mut lost = Scene::pending();
    lost.delete();
    lost.run(&Engineer::with(&[]));
    let mut unsent = Scene::new();
    unsent.run(&Engineer::proposes(trouble(Sort::Unreachable, "down")));
    unsent.delete();
    unsent.run(&Engineer::default());
    for scene in [lost, unsent] {
        assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false));
    }
    // One that would approve itself.
    let mut scene = Scene::pending();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.delete();
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, false));
    // Commands to what rests.
    for state in [Ready, NotReady, Stopped] {
        let mut scene = Scene::resting(state);
        scene.set_finalizer(AUTO_REBALANCING_FINALIZER, true);
        scene.delete();
        scene.ask("refresh");
        assert_eq!(scene.run(&Engineer::default()).next, Next::Rest);
        assert_eq!(scene.state(), state);
    }
}

#[test]
fn a_generated_one_that_did_not_execute_is_stopped() {
    for mut scene in [Scene::new(), Scene::pending(), Scene::proposal_ready()] {
        scene.set_finalizer(AUTO_REBALANCING_FINALIZER, true);
        scene.annotate("strimzi.io/rebalance-auto-approval", "true");
        scene.delete();
        scene.run(&Engineer::default());
        assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false));
        let finalizers = scene.seen.resource.metadata.finalizers.as_ref().unwrap();
        assert_eq!(finalizers, &[AUTO_REBALANCING_FINALIZER], "not ours to remove");
    }
    let mut scene = Scene::rebalancing();
    scene.set_finalizer(AUTO_REBALANCING_FINALIZER, true);
    scene.delete();
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!(scene.state(), Rebalancing, "one that executes is followed to its end");
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!(scene.state(), Ready);
}

#[test]
fn nothing_hangs_when_nothing_is_left() {
    let gone: [fn(&mut Scene); 4] = [
        |scene| scene.seen.kafka = FoundKafka::Missing { name: "my-cluster".into() },
        |scene| scene.seen.kafka = FoundKafka::Unnamed,
        |scene| scene.kafka().engine = None,
        |scene| scene.seen.namespace_terminating = true,
    ];
    for vanish in gone {
        for mut scene in [Scene::pending(), Scene::rebalancing()] {
            scene.delete();
            vanish(&mut scene);
            scene.run(&Engineer::default());
            assert!(!scene.has_finalizer());
        }
    }
    // Whoever else it may belong to: there everything goes.
    let mut scene = Scene::rebalancing();
    scene.delete();
    scene.seen.kafka = FoundKafka::NotSelected;
    scene.run(&Engineer::default());
    assert!(scene.has_finalizer(), "its own operator may be at work");
    scene.seen.namespace_terminating = true;
    scene.run(&Engineer::default());
    assert!(!scene.has_finalizer());
}

#[test]
fn a_deletion_is_followed_even_if_it_is_paused() {
    let mut scene = Scene::rebalancing();
    scene.annotate("strimzi.io/pause-reconciliation", "true");
    scene.run(&Engineer::default());
    scene.delete();
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.has_finalizer()), (Ready, false));
}

#[test]
fn deleted_while_it_was_being_submitted() {
    // The finalizer says: perhaps submitted. It was.
    let mut scene = Scene::proposal_ready();
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.delete();
    let run = execution(TaskStatus::InExecution);
    scene.run(&Engineer::with(&[run]).running(executing(2, &tag::of_execution(UID, super::scene::id(1)))));
    assert_eq!((scene.state(), scene.has_finalizer()), (Rebalancing, true));
    // It was not.
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.delete();
    scene.run(&Engineer::with(&[]));
    assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, false));
    assert_eq!(scene.called(), ["list", "look"]);
}
