//! When what is around a rebalance is not as it should be, and when the engine does not answer as it should.

use evenkeel_api::kafka::TemplateRef;
use evenkeel_api::rebalance::RebalanceState::{
    NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, ReconciliationPaused, Stopped,
};
use evenkeel_api::{KafkaRebalanceSpec, Reason};
use evenkeel_rest::body::state::ExecutorState;
use evenkeel_rest::parameter::TaskStatus;
use serde_json::json;

use super::super::observe::runs_in;
use super::super::{Decision, Finalizer, FoundConfigMap, FoundKafka, Heard, Next, Other, Sort, Template};
use super::scene::{Engineer, Scene, executing, execution, task, trouble};

type Harm = Box<dyn Fn(&mut Scene)>;

/// Everything that can be wrong around a rebalance, with the reason that it is given.
fn broken() -> Vec<(&'static str, Harm)> {
    let kafka = |found: FoundKafka| move |scene: &mut Scene| scene.seen.kafka = found.clone();
    vec![
        ("InvalidResourceException", Box::new(kafka(FoundKafka::Unnamed))),
        ("NoSuchResourceException", Box::new(kafka(FoundKafka::Missing { name: "c".into() }))),
        ("InvalidResourceException", Box::new(|scene| scene.kafka().ready = false)),
        ("InvalidResourceException", Box::new(|scene| scene.kafka().engine = None)),
        (
            "NoSuchResourceException",
            Box::new(|scene| scene.kafka().engine.as_mut().unwrap().missing_secret = Some("s".into())),
        ),
        ("NoSuchResourceException", Box::new(|scene| scene.seen.template = Template::Missing("t".into()))),
        ("InvalidResourceException", Box::new(|scene| scene.seen.template = Template::NotMarked("t".into()))),
    ]
}

#[test]
fn what_cannot_begin_waits_and_begins_by_itself_when_it_can() {
    for (reason, break_it) in broken() {
        let mut scene = Scene::new();
        let whole = scene.seen.clone();
        break_it(&mut scene);
        let last = scene.run(&Engineer::default());
        assert_eq!((scene.state(), scene.reason()), (NotReady, Some(reason)), "{}", scene.message());
        assert!(!scene.has_finalizer() && !scene.message().is_empty() && matches!(last.next, Next::After(_)));
        assert_eq!(scene.run(&Engineer::default()).status, None, "said once");
        scene.seen.kafka = whole.kafka;
        scene.seen.template = whole.template;
        scene.run(&Engineer::proposes(Engineer::ready(1)));
        assert_eq!(scene.state(), ProposalReady, "{reason}");
    }
}

#[test]
fn a_cause_that_is_replaced_by_another_is_told() {
    let mut scene = Scene::new();
    scene.seen.kafka = FoundKafka::Unnamed;
    scene.run(&Engineer::default());
    scene.seen.kafka = FoundKafka::Missing { name: "c".into() };
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("NoSuchResourceException")));
}

#[test]
fn what_rests_is_immune() {
    for state in [Ready, Stopped, NotReady] {
        for (_, break_it) in broken() {
            let mut scene = Scene::resting(state);
            break_it(&mut scene);
            let last = scene.run(&Engineer::default());
            assert_eq!((scene.state(), last.status, last.next), (state, None, Next::Rest));
        }
    }
}

#[test]
fn a_command_to_what_rests_waits_until_it_can_be_followed() {
    for state in [Ready, Stopped, NotReady] {
        let mut scene = Scene::resting(state);
        scene.ask("refresh");
        scene.kafka().ready = false;
        let last = scene.run(&Engineer::default());
        assert_eq!((scene.state(), scene.asked()), (state, Some("refresh")));
        assert!(matches!(last.next, Next::After(_)) && scene.warnings() == ["InvalidResourceException"]);
        scene.kafka().ready = true;
        scene.run(&Engineer::proposes(Engineer::ready(5)));
        assert_eq!((scene.state(), scene.asked()), (ProposalReady, None));
    }
}

#[test]
fn what_goes_on_keeps_its_state_and_its_session() {
    for mut scene in [Scene::pending(), Scene::rebalancing()] {
        let (state, session) = (scene.state(), scene.status().session_id.clone());
        scene.seen.kafka = FoundKafka::Missing { name: "my-cluster".into() };
        scene.run(&Engineer::default());
        assert_eq!((scene.state(), &scene.status().session_id), (state, &session));
        assert_eq!((scene.warnings(), scene.has_finalizer()), (vec!["NoSuchResourceException"], true));
    }
}

#[test]
fn a_kafka_that_is_not_ready_is_no_obstacle_to_following() {
    let mut scene = Scene::rebalancing();
    scene.kafka().ready = false;
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec!["InvalidResourceException"]));
    assert_eq!(scene.data("completedByteMovementPercentage"), Some("50"));
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.warnings().len()), (Ready, 0));
}

#[test]
fn another_operators_kafka_is_left_alone() {
    for mut scene in [Scene::new(), Scene::pending(), Scene::rebalancing()] {
        scene.seen.kafka = FoundKafka::NotSelected;
        assert_eq!(scene.look(), Decision::nothing());
    }
}

#[test]
fn a_template_is_inert_by_either_mark() {
    for (name, value) in [("strimzi.io/rebalance-template", "true"), ("strimzi.io/rebalance", "template")] {
        let mut scene = Scene::new();
        scene.annotate(name, value);
        scene.seen.kafka = FoundKafka::Unnamed;
        assert_eq!(scene.look(), Decision::nothing());
    }
    let mut scene = Scene::rebalancing();
    scene.annotate("strimzi.io/rebalance-template", "true");
    scene.run(&Engineer::default());
    assert!(!scene.has_finalizer(), "one that became a template is let go");
}

#[test]
fn unknown_fields_are_named() {
    let mut scene = Scene::new();
    scene.seen.resource.spec.unknown.insert("colour".into(), json!("red"));
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert_eq!(scene.state(), ProposalReady);
    assert!(scene.warning(Reason::UnknownFields).unwrap().contains("spec.colour"));
    assert_eq!(scene.warnings().len(), 1, "once");
}

#[test]
fn a_spec_that_cannot_be_carried_out_says_what_to_change_and_begins_when_it_is() {
    let mut scene = Scene::new();
    scene.seen.resource.spec.goals = Some(vec!["A".into()]);
    scene.seen.resource.spec.rebalance_disk = Some(true);
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("IllegalArgumentException")));
    assert!(scene.message().contains("remove spec.goals"));
    assert_eq!(scene.run(&Engineer::default()).next, Next::Rest);
    scene.edit(|spec| spec.goals = None);
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert_eq!(scene.state(), ProposalReady);
}

/// Its label names another Kafka by now, whose engine knows nothing of it.
#[test]
fn a_run_is_followed_where_it_is_whatever_the_label_says() {
    let relabelled = || {
        let mut scene = Scene::rebalancing();
        let labels = scene.seen.resource.metadata.labels.as_mut().unwrap();
        labels.insert("strimzi.io/cluster".into(), "other".into());
        scene.seen.recorded_cluster = Some("my-cluster".into());
        scene
    };
    let runs = |scene: &Scene| runs_in(&scene.seen.resource, Some("my-cluster")).is_some();
    assert!(runs(&relabelled()) && !runs(&Scene::rebalancing()) && !runs(&Scene::resting(Ready)));
    let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x"));
    let mut scene = relabelled();
    scene.run(&running);
    let why = scene.warning(Reason::InvalidResourceException).unwrap();
    assert!(why.contains("says other") && why.contains("Kafka my-cluster moves"), "{why}");
    let last = scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.warnings().len(), last.config_map), (Ready, 0, None));
}

#[test]
fn a_run_is_followed_where_it_is_when_its_label_is_gone() {
    let mut scene = Scene::rebalancing();
    scene.seen.resource.metadata.labels = None;
    scene.seen.recorded_cluster = Some("my-cluster".into());
    assert_eq!(runs_in(&scene.seen.resource, Some("my-cluster")), Some("my-cluster"));
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    let why = scene.warning(Reason::InvalidResourceException).unwrap();
    assert!(why.contains("is gone") && why.contains("Kafka my-cluster moves"), "{why}");
    // What is renewed belongs to nobody then: nothing is asked of where it was.
    let mut renewed = scene.clone();
    renewed.ask("refresh");
    renewed.seen.heard.task = Some(Ok(vec![execution(TaskStatus::CompletedWithError)]));
    renewed.seen.heard.in_full = true;
    renewed.seen.heard.executor = Some(Ok(ExecutorState::default()));
    assert_eq!(renewed.look().next, Next::Again);
    let mut done = scene.clone();
    done.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!(done.state(), Ready);
    assert_eq!(runs_in(&done.seen.resource, Some("my-cluster")), None, "from now on the label counts");
}

/// Nobody knows whether it was submitted, and the label says another Kafka by now.
#[test]
fn what_was_perhaps_submitted_is_searched_for_where_it_would_be() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    let labels = scene.seen.resource.metadata.labels.as_mut().unwrap();
    labels.insert("strimzi.io/cluster".into(), "other".into());
    assert_eq!(runs_in(&scene.seen.resource, Some("my-cluster")), None, "nothing was submitted");
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.seen.recorded_cluster = Some("my-cluster".into());
    assert_eq!(runs_in(&scene.seen.resource, Some("my-cluster")), Some("my-cluster"));
    let mut there = scene.clone();
    there.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!((there.state(), there.has_finalizer()), (Rebalancing, true));
    assert!(there.warning(Reason::InvalidResourceException).unwrap().contains("Kafka my-cluster moves"));
    // It is not there: nothing is submitted where the label does not point.
    scene.seen.heard.tasks = Some(Ok(vec![]));
    scene.seen.heard.executor = Some(Ok(ExecutorState::default()));
    let decision = scene.look();
    assert_eq!((decision.next, decision.finalizer), (Next::Again, Finalizer::Remove));
}

/// `spec.cruiseControl` was removed, and the engine stays only until what it carries out has ended.
#[test]
fn an_engine_that_leaves_is_followed_and_begins_nothing() {
    let leaving = |mut scene: Scene| {
        scene.kafka().engine.as_mut().unwrap().is_leaving = true;
        scene
    };
    let mut scene = leaving(Scene::rebalancing());
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!(scene.state(), Ready);
    let mut scene = leaving(Scene::rebalancing());
    scene.ask("refresh");
    scene.run(&Engineer::with(&[execution(TaskStatus::CompletedWithError)]));
    assert_eq!((scene.state(), scene.warnings()), (PendingProposal, vec!["InvalidResourceException"]));
    let mut scene = leaving(Scene::proposal_ready());
    scene.ask("approve");
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.run(&Engineer::with(&[]));
    assert_eq!((scene.state(), scene.has_finalizer(), scene.called()), (ProposalReady, false, vec!["list", "look"]));
    assert!(scene.warning(Reason::InvalidResourceException).unwrap().contains("lacks 'cruiseControl'"));
}

#[test]
fn a_run_that_is_renewed_is_renewed_in_the_kafka_of_its_label() {
    let mut scene = Scene::rebalancing();
    let labels = scene.seen.resource.metadata.labels.as_mut().unwrap();
    labels.insert("strimzi.io/cluster".into(), "other".into());
    scene.ask("refresh");
    scene.seen.heard.task = Some(Ok(vec![execution(TaskStatus::CompletedWithError)]));
    scene.seen.heard.in_full = true;
    scene.seen.heard.executor = Some(Ok(ExecutorState::default()));
    let decision = scene.look();
    assert_eq!(decision.next, Next::Again, "the other one is looked at before it is asked");
    assert!(decision.status.is_some_and(|status| status.conditions[0].type_ == "PendingProposal"));
    // And then the ConfigMap is about that one.
    scene.seen.recorded_cluster = Some("my-cluster".into());
    scene.seen.resource.status.as_mut().unwrap().conditions[0].type_ = "Ready".into();
    scene.seen.heard = Heard::default();
    scene.kafka().name = "other".into();
    scene.seen.resource.metadata.annotations = None;
    let written = scene.look().config_map.expect("a ConfigMap");
    assert_eq!(written.metadata.labels.unwrap()["strimzi.io/cluster"], "other");
}

#[test]
fn what_only_the_template_makes_impossible_begins_once_that_is_mended() {
    let goals =
        |goals: Option<Vec<String>>| Template::Found(Box::new(KafkaRebalanceSpec { goals, ..Default::default() }));
    let bad = || goals(Some(vec!["A".into()]));
    let mut scene = Scene::new();
    scene.seen.resource.spec.rebalance_disk = Some(true);
    scene.seen.template = bad();
    let last = scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("IllegalArgumentException")));
    assert!(matches!(last.next, Next::After(_)) && scene.message().contains("also from the template"));
    let again = scene.run(&Engineer::default());
    assert_eq!((again.status, again.events, again.next), (None, vec![], last.next), "looked at again, and said once");
    scene.seen.template = goals(None);
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert_eq!(scene.state(), ProposalReady);
    // So does one that was approved when the template had become impossible: with a new proposal, and a new approval.
    scene.seen.template = bad();
    scene.ask("approve");
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.asked()), (NotReady, None));
    scene.seen.template = goals(None);
    scene.run(&Engineer::proposes(Engineer::ready(2)));
    assert_eq!((scene.state(), scene.called().contains(&"submit")), (ProposalReady, false));
}

#[test]
fn a_spec_that_is_edited_begins_anew_from_every_state() {
    for mut scene in [
        Scene::pending(),
        Scene::proposal_ready(),
        Scene::resting(Ready),
        Scene::resting(Stopped),
        Scene::resting(NotReady),
    ] {
        scene.edit(|spec| spec.replication_throttle = Some(1));
        scene.run(&Engineer::proposes(Engineer::ready(9)));
        assert_eq!((scene.state(), scene.status().observed_generation), (ProposalReady, Some(2)));
    }
}

#[test]
fn an_edited_spec_is_never_carried_out_unseen() {
    let mut scene = Scene::proposal_ready();
    scene.edit(|spec| spec.replication_throttle = Some(1));
    scene.ask("approve");
    scene.run(&Engineer {
        propose: Some(Engineer::ready(9)),
        submit: Some(Engineer::ready(10)),
        ..Engineer::with(&[])
    });
    assert_eq!((scene.state(), scene.asked(), scene.called()), (ProposalReady, None, vec!["propose"]));
}

#[test]
fn a_wrong_edit_does_not_stop_a_run() {
    let mut scene = Scene::rebalancing();
    scene.edit(|spec| spec.excluded_topics = Some("(".into()));
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec!["IllegalArgumentException"]));
    assert_eq!(scene.called(), ["follow", "look"]);
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert!(scene.events.contains(&"Ready".to_owned()), "it came to its end, and only then the spec counts");
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("IllegalArgumentException")));
}

#[test]
fn an_edit_that_names_no_template_does_not_stop_a_run_either() {
    for (template, reason) in [
        (Template::Missing("t".into()), "NoSuchResourceException"),
        (Template::NotMarked("t".into()), "InvalidResourceException"),
    ] {
        let mut scene = Scene::rebalancing();
        scene.edit(|spec| spec.template = Some(TemplateRef { name: Some("t".into()), ..Default::default() }));
        scene.seen.template = template;
        let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x"));
        scene.run(&running);
        assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec![reason]));
        assert_eq!(scene.called(), ["follow", "look"]);
        // Once it can be carried out it is what the user wants.
        let mut mended = scene.clone();
        mended.seen.template = Template::Found(Box::default());
        mended.run(&running);
        assert_eq!(mended.called().last(), Some(&"stop"));
        scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
        assert_eq!((scene.state(), scene.warnings()), (Ready, vec![reason]), "it came to its end, and then waits");
    }
}

#[test]
fn a_pause_is_lossless() {
    for mut scene in [
        Scene::new(),
        Scene::pending(),
        Scene::proposal_ready(),
        Scene::rebalancing(),
        Scene::resting(Ready),
        Scene::resting(Stopped),
        Scene::resting(NotReady),
    ] {
        let (before, held) = (scene.seen.resource.status.clone(), scene.has_finalizer());
        scene.annotate("strimzi.io/pause-reconciliation", "true");
        let last = scene.run(&Engineer::default());
        assert_eq!((scene.state(), last.next, scene.has_finalizer()), (ReconciliationPaused, Next::Rest, held));
        assert_eq!(scene.run(&Engineer::default()).status, None);
        let trues = scene.status().conditions.iter().filter(|condition| condition.status == "True");
        assert_eq!(trues.count(), 1, "one state at a time");
        scene.annotate("strimzi.io/pause-reconciliation", "false");
        let tasks = [task(1, TaskStatus::Active, "x"), execution(TaskStatus::InExecution)];
        let engineer = Engineer::with(&tasks).running(executing(2, "x"));
        scene.run(&Engineer { propose: Some(Engineer::computing(1)), ..engineer });
        if before.is_some() {
            assert_eq!(scene.seen.resource.status, before);
        } else {
            assert_eq!(scene.state(), PendingProposal);
        }
    }
}

#[test]
fn a_pause_does_not_cost_a_place_in_the_queue() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.others = vec![Other { name: "a".into(), runs: true, waits_since: None }];
    scene.run(&Engineer::default());
    let place = scene.status().conditions[1].clone();
    scene.annotate("strimzi.io/pause-reconciliation", "true");
    scene.run(&Engineer::default());
    scene.annotate("strimzi.io/pause-reconciliation", "false");
    scene.seen.now += jiff::SignedDuration::from_hours(1);
    scene.run(&Engineer::default());
    assert_eq!(scene.status().conditions[1], place);
}

#[test]
fn a_submission_that_nobody_knows_of_does_not_cost_a_place_in_the_queue() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.others = vec![Other { name: "a".into(), runs: true, waits_since: None }];
    scene.run(&Engineer::default());
    let since = scene.seen.now;
    // Its turn has come, with somebody behind it.
    scene.seen.now += jiff::SignedDuration::from_secs(60);
    scene.seen.others = vec![Other { name: "b".into(), runs: false, waits_since: Some(scene.seen.now) }];
    let down = || trouble(Sort::Unreachable, "no answer");
    scene.run(&Engineer { submit: Some(trouble(Sort::Unreachable, "no answer")), ..Engineer::with(&[]) });
    scene.run(&Engineer { tasks: Some(down()), ..Engineer::default() });
    scene.run(&Engineer { executor: Some(trouble(Sort::Unreachable, "no answer")), ..Engineer::with(&[]) });
    let place = scene.status().conditions.iter().find(|it| it.has_reason(Reason::WaitingForOtherRebalance));
    assert_eq!(place.and_then(|it| it.since()), Some(since));
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    assert_eq!(scene.state(), Rebalancing);
}

/// Trouble that passes, whatever it is about.
const PASSING: [Sort; 6] =
    [Sort::Unreachable, Sort::Denied, Sort::TasksExhausted, Sort::Busy, Sort::NotYet, Sort::NotEnoughData];

#[test]
fn an_engine_that_cannot_be_reached_is_asked_again() {
    for sort in PASSING {
        let mut scene = Scene::new();
        let last = scene.run(&Engineer::proposes(trouble(sort, "why")));
        assert_eq!((scene.state(), scene.has_finalizer()), (PendingProposal, true), "{sort:?}");
        assert!(matches!(last.next, Next::After(_)) && scene.warnings().len() == 1);
        scene.run(&Engineer::proposes(Engineer::ready(1)));
        assert_eq!((scene.state(), scene.warnings().len()), (ProposalReady, 0));
    }
}

#[test]
fn pauses_grow_with_the_trouble_but_not_for_ever() {
    let mut scene = Scene::pending();
    let engineer = Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::default() };
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let Next::After(pause) = scene.run(&engineer).next else { panic!() };
        pauses.push(pause.as_secs());
        scene.seen.now += jiff::SignedDuration::from_secs(40);
    }
    assert_eq!(pauses, [5, 20, 40, 60, 60]);
}

#[test]
fn a_run_is_asked_about_as_often_as_ever_however_long_nobody_answers() {
    let tasks = || Engineer::with(&[execution(TaskStatus::InExecution)]);
    let ours = || tasks().running(executing(2, "x"));
    for command in [None, Some("stop")] {
        for engineer in [
            Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::with(&[]) },
            Engineer { executor: Some(trouble(Sort::Unreachable, "down")), ..tasks() },
            Engineer { stop: Some(trouble(Sort::Unreachable, "down")), ..ours() },
        ] {
            let mut scene = Scene::rebalancing();
            if let Some(command) = command {
                scene.ask(command);
            }
            for _ in 0..3 {
                let next = scene.run(&engineer).next;
                assert!(matches!(next, Next::After(pause) if pause.as_secs() <= 5), "{command:?} {next:?}");
                scene.seen.now += jiff::SignedDuration::from_secs(300);
            }
            assert_eq!(scene.state(), Rebalancing);
        }
    }
}

#[test]
fn no_answer_about_a_task_leaves_the_state_alone() {
    for sort in [Sort::Refused, Sort::Garbled, Sort::Unreachable, Sort::TasksExhausted] {
        for mut scene in [Scene::pending(), Scene::rebalancing()] {
            let before = scene.status().clone();
            let last = scene.run(&Engineer { tasks: Some(trouble(sort, "why")), ..Engineer::with(&[]) });
            let last = match last.status.is_some() {
                true => scene.run(&Engineer { tasks: Some(trouble(sort, "why")), ..Engineer::with(&[]) }),
                false => last,
            };
            assert_eq!(
                (scene.status().conditions[0].clone(), &scene.status().session_id),
                (before.conditions[0].clone(), &before.session_id)
            );
            assert_eq!((scene.warnings(), last.status), (vec!["CruiseControlRestException"], None), "said once");
        }
    }
}

#[test]
fn a_state_call_that_fails_is_a_warning_and_everything_else_stays() {
    let mut scene = Scene::rebalancing();
    let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x"));
    scene.run(&running);
    let before = scene.seen.config_map.clone();
    scene.run(&Engineer { executor: Some(trouble(Sort::Refused, "status 500")), ..running.clone() });
    assert_eq!((scene.state(), &scene.seen.config_map), (Rebalancing, &before));
    assert_eq!(scene.warning(Reason::CruiseControlRestException), Some("status 500"));
    assert!(scene.status().progress.is_some());
    scene.run(&running);
    assert_eq!(scene.warnings().len(), 0, "gone with the next good answer");
}

#[test]
fn the_run_of_somebody_else_is_not_reported_as_ours() {
    let mut scene = Scene::rebalancing();
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(77, "by hand")));
    assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
    assert_eq!(scene.data("executorState"), None);
}

#[test]
fn a_failed_proposal_is_asked_for_its_reason() {
    let failed = Engineer::with(&[task(1, TaskStatus::CompletedWithError, "x")]);
    let explained = |answer| {
        let mut scene = Scene::pending();
        scene.run(&Engineer { explain: Some(answer), ..failed.clone() });
        scene
    };
    let scene = explained(trouble(Sort::Refused, "[RackAwareGoal] Insufficient number of racks."));
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("CruiseControlRestException")));
    assert!(scene.message().contains("RackAwareGoal"));
    assert_eq!(scene.called(), ["follow", "explain"]);
    let scene = explained(trouble(Sort::NotEnoughData, "windows"));
    assert_eq!((scene.state(), scene.session(), scene.warnings()), (PendingProposal, None, vec!["NotEnoughData"]));
    let scene = explained(trouble(Sort::Unreachable, "down"));
    assert_eq!((scene.state(), scene.session().is_some()), (PendingProposal, true));
    let scene = explained(Engineer::computing(1));
    assert_eq!(scene.state(), NotReady);
    // Asked with other settings than made it, because they were changed meanwhile: what they lead to is asked for.
    let task = super::scene::id(1);
    let other = || trouble(Sort::Refused, &format!("Unexpected header {task} (value: User-Task-ID) in the request."));
    let mut scene = explained(other());
    assert_eq!((scene.state(), scene.session(), scene.warnings().len()), (PendingProposal, None, 0));
    scene.run(&Engineer::proposes(Engineer::ready(2)));
    assert_eq!(scene.state(), ProposalReady);
    let mut scene = Scene::pending();
    scene.delete();
    scene.run(&Engineer { explain: Some(other()), ..failed });
    assert_eq!((scene.state(), scene.has_finalizer()), (Stopped, false), "but not for what is to go");
}

#[test]
fn a_lost_proposal_is_asked_for_again() {
    let mut scene = Scene::pending();
    scene.run(&Engineer { propose: Some(Engineer::ready(3)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.called()), (ProposalReady, vec!["follow", "propose"]));
    // The brokers to empty are gone by now: no hang, but a reason.
    let mut scene = Scene::pending();
    let gone = trouble(Sort::NoSuchBroker, "Some or all of the brokers in spec.brokers do not exist");
    scene.run(&Engineer { propose: Some(gone), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.has_finalizer(), scene.reason()), (NotReady, false, Some("NoSuchBroker")));
}

/// The engine has forgotten the task, and the brokers that were to be emptied are gone: whatever is asked meanwhile, it ends.
#[test]
fn what_is_lost_with_its_brokers_comes_to_an_end_and_hangs_nowhere() {
    let gone = || trouble(Sort::NoSuchBroker, "Some or all of the brokers in spec.brokers do not exist");
    for make in [Scene::pending, Scene::rebalancing] {
        for (command, has_session) in [(None, true), (None, false), (Some("refresh"), true), (Some("refresh"), false)] {
            let mut scene = make();
            let executes = scene.state() == Rebalancing;
            if !has_session {
                scene.seen.resource.status.as_mut().unwrap().session_id = None;
            }
            if let Some(command) = command {
                scene.ask(command);
            }
            let last = scene.run(&Engineer { propose: Some(gone()), ..Engineer::with(&[]) });
            let outcome = (scene.state(), scene.asked(), scene.has_finalizer(), last.next);
            assert_eq!(outcome, (NotReady, None, false, Next::Rest), "{executes} {command:?} {has_session}");
            // What moved data, and was not asked to begin anew, is not asked for again.
            let reason = match executes && command.is_none() {
                true => "ExecutionOutcomeUnknown",
                false => "NoSuchBroker",
            };
            assert_eq!(scene.reason(), Some(reason), "{executes} {command:?} {has_session}");
        }
    }
}

#[test]
fn a_foreign_config_map_is_refused_and_not_overwritten() {
    let mut scene = Scene::new();
    scene.seen.config_map = FoundConfigMap::Foreign;
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert_eq!((scene.state(), &scene.seen.config_map), (ProposalReady, &FoundConfigMap::Foreign));
    assert!(scene.warning(Reason::InvalidResourceException).unwrap().contains("ConfigMap my-rebalance"));
    assert_eq!(scene.status().progress, None);
    let names_it =
        |scene: &Scene| scene.status().optimization_result.as_ref().unwrap().contains_key("afterBeforeLoadConfigMap");
    assert!(!names_it(&scene));
    // It was renamed: from now on there is one to look at.
    scene.seen.config_map = FoundConfigMap::Absent;
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    assert!(names_it(&scene) && scene.data("brokerLoad.json").is_some());
    let mut scene = Scene::new();
    scene.seen.config_map = FoundConfigMap::Absent.refused("exceeded quota".into());
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert!(!names_it(&scene), "nothing is named that is not there");
}

#[test]
fn a_config_map_that_cannot_be_written_holds_up_nothing() {
    let quota = "configmaps \"my-rebalance\" is forbidden: exceeded quota";
    let refuse =
        |scene: &mut Scene| scene.seen.config_map = std::mem::take(&mut scene.seen.config_map).refused(quota.into());
    let mut scene = Scene::new();
    refuse(&mut scene);
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    let why = scene.warning(Reason::KubernetesClientException).unwrap();
    assert!(why.contains("ConfigMap my-rebalance") && why.contains("exceeded quota"), "{why}");
    assert_eq!((scene.state(), &scene.status().progress), (ProposalReady, &None));
    assert_eq!(scene.run(&Engineer::default()).status, None, "said once");
    for (command, end) in [("stop", Stopped), ("refresh", ProposalReady)] {
        let mut scene = Scene::rebalancing();
        refuse(&mut scene);
        scene.ask(command);
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert_eq!((scene.called().last(), scene.warnings()), (Some(&"stop"), vec!["KubernetesClientException"]));
        let over = Engineer::with(&[execution(TaskStatus::CompletedWithError)]);
        scene.run(&Engineer { propose: Some(Engineer::ready(5)), ..over });
        assert_eq!((scene.state(), scene.has_finalizer()), (end, false), "{command}");
    }
    let mut scene = Scene::rebalancing();
    refuse(&mut scene);
    scene.delete();
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.has_finalizer()), (Ready, false));
}

#[test]
fn a_config_map_is_said_to_be_refused_until_it_is_written() {
    let mut scene = Scene::rebalancing();
    let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x"));
    scene.run(&running);
    let before = scene.seen.config_map.clone();
    scene.seen.config_map = before.clone().refused("it is immutable".into());
    scene.run(&running);
    assert_eq!(scene.warnings(), ["KubernetesClientException"]);
    assert!(scene.status().progress.is_some(), "it is still there");
    // The next look finds it as it was, and nothing new to write.
    scene.seen.config_map = before;
    let last = scene.run(&running);
    assert_eq!((last.config_map, last.status), (None, None), "whether it can be written nobody knows yet");
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.warnings().len()), (Ready, 0), "it was written");
}

#[test]
fn two_at_once_take_turns() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.others = vec![Other { name: "other".into(), runs: true, waits_since: None }];
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (ProposalReady, Some("approve"), false));
    assert!(scene.warning(Reason::WaitingForOtherRebalance).unwrap().contains("other"));
    // Whoever came later waits for us, whoever came before goes first.
    let waits = |name: &str, offset: i64| Other {
        name: name.into(),
        runs: false,
        waits_since: Some(scene.seen.now + jiff::SignedDuration::from_secs(offset)),
    };
    let submit = Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) };
    for (other, goes) in [(waits("z", 1), true), (waits("z", 0), true), (waits("a", 0), false), (waits("z", -1), false)]
    {
        let mut scene = scene.clone();
        scene.seen.others = vec![other.clone()];
        scene.run(&submit);
        assert_eq!(scene.state() == Rebalancing, goes, "{other:?}");
    }
}

#[test]
fn an_executor_that_is_busy_is_waited_for() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer::with(&[]).running(executing(77, "self healing")));
    assert_eq!(
        (scene.state(), scene.asked(), scene.warnings()),
        (ProposalReady, Some("approve"), vec!["WaitingForOtherRebalance"])
    );
    // It looked idle, but was not: external reassignments.
    scene.run(&Engineer { submit: Some(trouble(Sort::Busy, "ongoing")), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (ProposalReady, Some("approve"), true));
    scene.run(&Engineer::with(&[]).running(executing(77, "self healing")));
    assert_eq!((scene.asked(), scene.has_finalizer()), (Some("approve"), false), "it is not busy with ours");
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.asked()), (Rebalancing, None));
}

#[test]
fn a_proposal_above_the_limit_is_not_approved_automatically() {
    let mut scene = Scene::new();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.annotate("evenkeel.io/max-data-mb", "99");
    scene.kafka().engine.as_mut().unwrap().is_ours = false;
    let dry = task(1, TaskStatus::Completed, "x");
    scene.run(&Engineer { propose: Some(Engineer::ready(1)), ..Engineer::with(&[dry]) });
    assert_eq!(
        (scene.state(), scene.has_finalizer(), scene.warnings()),
        (ProposalReady, false, vec!["AutoRebalanceHeld"])
    );
    assert!(scene.warning(Reason::AutoRebalanceHeld).unwrap().contains("100 MB"));
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    assert_eq!(scene.state(), Rebalancing, "by hand it counts");

    let mut scene = Scene::proposal_ready();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.annotate("evenkeel.io/max-data-mb", "5Gi");
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.warnings()), (ProposalReady, vec!["InvalidAnnotation"]));
}

#[test]
fn the_end_of_a_pause_is_told() {
    let mut scene = Scene::rebalancing();
    scene.annotate("strimzi.io/pause-reconciliation", "true");
    scene.run(&Engineer::default());
    scene.events.clear();
    scene.annotate("strimzi.io/pause-reconciliation", "false");
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.events), (Ready, vec!["Ready".to_owned()]));
}
