//! What other controllers of this resource got wrong, one test for each.

use evenkeel_api::annotations::Ask;
use evenkeel_api::rebalance::RebalanceState::{NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, Stopped};
use evenkeel_api::{KafkaRebalanceSpec, Reason};
use evenkeel_rest::Request;
use evenkeel_rest::body::state::ExecutorState;
use evenkeel_rest::body::{Summary, UserTask};
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Call, Finalizer, Heard, Next, Order, Plan, Sort, Template, tag};
use super::scene::{Engineer, Scene, UID, executing, execution, id, plan_of, steps, summary, task, trouble};

fn execution_tag() -> String {
    tag::of_execution(UID, id(1))
}

/// A proposal of an engine that does not name them.
fn proposal_without_id() -> Scene {
    let mut scene = Scene::new();
    let result = plan_of(Summary { proposal_id: None, ..summary() });
    scene.run(&Engineer::proposes(Ok(Plan { task: Some(id(1)), result: Some(result) })));
    scene.calls.clear();
    scene
}

#[test]
fn a_blip_does_not_restart_what_rests_even_with_auto_approval() {
    for state in [Ready, Stopped, NotReady] {
        let mut scene = Scene::resting(state);
        scene.annotate("strimzi.io/rebalance-auto-approval", "true");
        let engine = scene.kafka().engine.take();
        scene.run(&Engineer::default());
        scene.kafka().engine = engine;
        let last = scene.run(&Engineer::default());
        assert_eq!((scene.state(), last.next), (state, Next::Rest));
    }
}

#[test]
fn a_blip_loses_neither_a_proposal_nor_a_run() {
    for mut scene in [Scene::pending(), Scene::proposal_ready(), Scene::rebalancing()] {
        let before = scene.status().clone();
        scene.kafka().ready = false;
        let down = Engineer {
            tasks: Some(trouble(Sort::Unreachable, "refused")),
            executor: Some(trouble(Sort::Unreachable, "refused")),
            ..Engineer::default()
        };
        scene.run(&down);
        scene.kafka().ready = true;
        let tasks = [task(1, TaskStatus::Active, "x"), execution(TaskStatus::InExecution)];
        scene.run(&Engineer::with(&tasks));
        assert_eq!(scene.status(), &before);
    }
}

#[test]
fn a_connection_error_while_polling_heals() {
    let mut scene = Scene::pending();
    scene.run(&Engineer { tasks: Some(trouble(Sort::Unreachable, "refused")), ..Engineer::default() });
    assert_eq!((scene.state(), scene.warnings()), (PendingProposal, vec!["CruiseControlRestException"]));
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    assert_eq!((scene.state(), scene.warnings().len()), (ProposalReady, 0));
}

#[test]
fn a_lost_run_that_still_runs_is_followed() {
    let mut scene = Scene::rebalancing();
    scene.run(&Engineer::with(&[]).running(executing(9, &execution_tag())));
    assert_eq!((scene.state(), scene.data("completedByteMovementPercentage")), (Rebalancing, Some("50")));
}

#[test]
fn a_lost_run_is_reported_and_never_repeated() {
    for auto in [false, true] {
        let mut scene = Scene::rebalancing();
        if auto {
            scene.annotate("strimzi.io/rebalance-auto-approval", "true");
        }
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        scene.run(&Engineer::with(&[]));
        assert_eq!((scene.state(), scene.reason()), (NotReady, Some("ExecutionOutcomeUnknown")));
        assert!(scene.message().contains("50 %"), "{}", scene.message());
        assert_eq!(scene.run(&Engineer::default()).next, Next::Rest);
        assert!(!scene.has_finalizer() && scene.status().optimization_result.is_some());
    }
    // Somebody else's run is not ours.
    let mut scene = Scene::rebalancing();
    scene.run(&Engineer::with(&[]).running(executing(77, "by hand")));
    assert_eq!(scene.reason(), Some("ExecutionOutcomeUnknown"));
}

#[test]
fn the_intent_is_on_record_before_an_execution_is_submitted() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.heard.executor = Some(Ok(ExecutorState::default()));
    let decision = scene.look();
    assert_eq!((decision.finalizer, decision.forget), (Finalizer::Add, None));
    assert!(matches!(decision.next, Next::Call(call) if super::scene::name_of(&call) == "submit"));
}

#[test]
fn a_crash_after_the_submission_finds_the_run_again() {
    for (status, state) in
        [(TaskStatus::Active, Rebalancing), (TaskStatus::InExecution, Rebalancing), (TaskStatus::Completed, Ready)]
    {
        for still_approved in [true, false] {
            let mut scene = Scene::proposal_ready();
            scene.set_finalizer("strimzi.io/rebalance", true);
            if still_approved {
                scene.ask("approve");
            }
            let mut engineer = Engineer::with(&[task(1, TaskStatus::Completed, "x"), execution(status)]);
            if status == TaskStatus::InExecution {
                engineer = engineer.running(executing(2, &execution_tag()));
            }
            scene.run(&engineer);
            assert_eq!((scene.state(), scene.asked()), (state, None));
            assert!(!scene.called().contains(&"submit"));
        }
    }
}

#[test]
fn a_crash_before_the_submission_submits_it_once() {
    for mut scene in [Scene::proposal_ready(), proposal_without_id()] {
        scene.set_finalizer("strimzi.io/rebalance", true);
        scene.ask("approve");
        let dry_run = task(1, TaskStatus::Completed, &tag::of_resource(UID));
        scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[dry_run]) });
        assert_eq!((scene.state(), scene.called()), (Rebalancing, vec!["list", "look", "submit"]));
    }
}

#[test]
fn an_engine_that_forgot_everything_is_not_trusted_with_a_second_submission() {
    let mut scene = proposal_without_id();
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.ask("approve");
    scene.run(&Engineer::with(&[]));
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("ExecutionOutcomeUnknown")));
    assert_eq!((scene.asked(), scene.called()), (None, vec!["list", "look"]));
    // Unless its run is there for all to see.
    let mut scene = proposal_without_id();
    scene.set_finalizer("strimzi.io/rebalance", true);
    let running = Engineer::with(&[]).running(executing(2, &execution_tag()));
    scene.run(&running);
    assert_eq!(scene.state(), Rebalancing);
}

#[test]
fn a_refused_submission_is_not_taken_for_a_run() {
    let mut scene = Scene::proposal_ready();
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.ask("approve");
    let refused = execution(TaskStatus::CompletedWithError);
    scene.run(&Engineer { submit: Some(Engineer::ready(3)), ..Engineer::with(&[refused]) });
    assert_eq!((scene.state(), scene.called()), (Rebalancing, vec!["list", "follow", "look", "submit"]));
    // One that had begun to move data is.
    let mut scene = Scene::proposal_ready();
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.ask("approve");
    let mut failed = execution(TaskStatus::CompletedWithError);
    failed.original_response = Some(evenkeel_rest::json::to_string(&super::scene::plan()));
    scene.run(&Engineer::with(&[failed]));
    assert_eq!((scene.state(), scene.called().contains(&"submit")), (NotReady, false));
}

#[test]
fn a_submission_without_an_answer_is_searched_for() {
    for sort in [Sort::Unreachable, Sort::Garbled] {
        let mut scene = Scene::proposal_ready();
        scene.ask("approve");
        scene.run(&Engineer { submit: Some(trouble(sort, "timed out")), ..Engineer::with(&[]) });
        assert_eq!((scene.state(), scene.has_finalizer(), scene.asked()), (ProposalReady, true, Some("approve")));
        scene.calls.clear();
        let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, &execution_tag()));
        scene.run(&running);
        assert_eq!((scene.state(), scene.asked(), scene.called()[0]), (Rebalancing, None, "list"));
    }
}

/// The engine was frozen with the submission in its mail, and read it after it had said that it knows of none.
#[test]
fn a_submission_that_arrives_late_is_found_whatever_is_asked_meanwhile() {
    let ours = || executing(2, &execution_tag());
    for meanwhile in [Some("approve"), Some("refresh"), Some("aprove"), None] {
        let mut scene = Scene::proposal_ready();
        scene.ask("approve");
        scene.run(&Engineer { submit: Some(trouble(Sort::Unreachable, "timed out")), ..Engineer::with(&[]) });
        match meanwhile {
            Some(command) => scene.ask(command),
            None => scene.delete(),
        }
        scene.calls.clear();
        // First the list, in which it is not.
        scene.seen.heard = Heard { tasks: Some(Ok(vec![])), executor: Some(Ok(ours())), ..Heard::default() };
        let decision = scene.look();
        assert!(decision.status.is_some_and(|status| status.conditions[0].type_ == "Rebalancing"), "{meanwhile:?}");
    }
    // It came later still: what is submitted again is refused because of it, and found then.
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(trouble(Sort::Unreachable, "timed out")), ..Engineer::with(&[]) });
    scene.run(&Engineer { submit: Some(trouble(Sort::Busy, "ongoing")), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (ProposalReady, Some("approve"), true));
    let (runs, again) = (execution(TaskStatus::InExecution), task(3, TaskStatus::CompletedWithError, &execution_tag()));
    let mut found = scene.clone();
    found.run(&Engineer::with(&[runs, again]).running(ours()));
    assert_eq!((found.state(), found.asked(), found.has_finalizer()), (Rebalancing, None, true));
    // Or the operator had let go of it already, and sees it before it submits again.
    scene.set_finalizer("strimzi.io/rebalance", false);
    scene.calls.clear();
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(ours()));
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (Rebalancing, None, true));
    assert!(!scene.called().contains(&"submit"));
}

#[test]
fn a_submission_that_cannot_be_searched_for_stays_in_doubt() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.set_finalizer("strimzi.io/rebalance", true);
    scene.run(&Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::default() });
    assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, true));
    scene.kafka().engine.as_mut().unwrap().missing_secret = Some("s".into());
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, true));
}

#[test]
fn commands_are_removed_after_the_status_and_approvals_before_it() {
    let mut scene = Scene::pending();
    scene.ask("refresh");
    let forget = scene.look().forget.unwrap();
    assert_eq!((forget.ask, forget.order), (Ask::Refresh, Order::AfterStatus));
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.heard.submission = Some(Engineer::ready(2));
    let forget = scene.look().forget.unwrap();
    assert_eq!((forget.ask, forget.order), (Ask::Approve, Order::BeforeStatus));
    // A stop that outlived its status is done, not invalid.
    let mut scene = Scene::resting(Stopped);
    scene.ask("stop");
    scene.run(&Engineer::default());
    assert_eq!((scene.asked(), scene.warnings().len()), (None, 0));
}

#[test]
fn a_death_amid_a_refusal_neither_hides_it_nor_approves_what_nobody_has_seen() {
    for (sort, state, warnings) in [
        (Sort::Outdated, PendingProposal, vec!["ProposalOutdated"]),
        (Sort::Refused, NotReady, vec![]),
        (Sort::NoSuchBroker, NotReady, vec![]),
    ] {
        let mut scene = Scene::proposal_ready();
        scene.set_finalizer("strimzi.io/rebalance", true);
        scene.ask("approve");
        scene.seen.heard.submission = Some(trouble(sort, "no"));
        let decision = scene.look();
        assert_eq!(decision.forget.map(|forget| forget.order), Some(Order::AfterStatus), "{sort:?}");
        // It dies when the status is written.
        scene.seen.heard.submission = None;
        scene.seen.resource.status = decision.status;
        assert_eq!((scene.state(), scene.warnings()), (state, warnings), "{sort:?}");
    }
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    let outdated = Engineer {
        propose: Some(Engineer::computing(4)),
        submit: Some(trouble(Sort::Outdated, "no")),
        ..Engineer::with(&[])
    };
    for called in [vec!["look", "submit"], vec!["look", "submit", "propose"]] {
        scene.run(&outdated);
        assert_eq!((scene.state(), scene.warnings()), (PendingProposal, vec!["ProposalOutdated"]));
        assert_eq!(scene.called(), called);
    }
    scene.ask("approve");
    scene.calls.clear();
    scene.run(&Engineer::with(&[task(4, TaskStatus::Completed, "x")]));
    assert_eq!((scene.state(), scene.asked()), (ProposalReady, None));
    assert_eq!((scene.warnings(), scene.called()), (vec!["ProposalOutdated"], vec!["follow"]));
}

/// It is begun anew by itself once its template is mended: with an approval that outlived the death, unseen.
#[test]
fn a_death_amid_what_a_template_makes_impossible_approves_nothing_that_nobody_has_seen() {
    let goals =
        |goals: Option<Vec<String>>| Template::Found(Box::new(KafkaRebalanceSpec { goals, ..Default::default() }));
    let mut approved = Scene::new();
    approved.seen.resource.spec.rebalance_disk = Some(true);
    approved.seen.template = goals(None);
    approved.run(&Engineer::proposes(Engineer::ready(1)));
    approved.ask("approve");
    approved.seen.template = goals(Some(vec!["A".into()]));
    let decision = approved.look();
    let most = steps(&decision).len();
    assert!(most > 1, "{decision:?}");
    for taken in 1..=most {
        let mut scene = approved.clone();
        for step in steps(&decision).iter().take(taken) {
            step(&mut scene.seen);
        }
        scene.run(&Engineer::with(&[]));
        scene.seen.template = goals(None);
        scene.run(&Engineer { propose: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
        assert_eq!((scene.state(), scene.called().contains(&"submit")), (ProposalReady, false), "{taken} of {most}");
    }
}

/// What nobody can warn of any more: whoever looked again would find the Warning, and not the word.
#[test]
fn a_word_that_is_taken_away_is_not_warned_of() {
    let mut scene = Scene::resting(NotReady);
    scene.ask("approve");
    scene.run(&Engineer::default());
    assert_eq!(scene.warnings(), ["InvalidAnnotation"]);
    scene.edit(|spec| spec.excluded_topics = Some("(".to_owned()));
    scene.run(&Engineer::default());
    assert_eq!((scene.reason(), scene.asked()), (Some("IllegalArgumentException"), None));
    assert_eq!(scene.warnings(), [""; 0]);
}

#[test]
fn a_stop_never_hits_somebody_elses_run() {
    for command in ["stop", "refresh"] {
        let mut scene = Scene::rebalancing();
        scene.ask(command);
        let engineer = Engineer { propose: Some(Engineer::ready(5)), ..Engineer::with(&[]) };
        scene.run(&engineer.running(executing(77, "by hand")));
        assert!(!scene.called().contains(&"stop"));
    }
    // Nor when nobody can say whose it is.
    let mut scene = Scene::rebalancing();
    scene.ask("stop");
    let engineer = Engineer::with(&[execution(TaskStatus::InExecution)]);
    scene.run(&Engineer { executor: Some(trouble(Sort::Unreachable, "down")), ..engineer });
    assert_eq!((scene.state(), scene.called().contains(&"stop")), (Rebalancing, false));
}

#[test]
fn completed_is_believed_only_when_the_executor_is_done_too() {
    let mut scene = Scene::rebalancing();
    let task = [execution(TaskStatus::Completed)];
    scene.run(&Engineer::with(&task).running(executing(2, "x")));
    assert_eq!(scene.state(), Rebalancing);
    scene.run(&Engineer { executor: Some(trouble(Sort::Unreachable, "down")), ..Engineer::with(&task) });
    assert_eq!(scene.state(), Rebalancing);
    scene.run(&Engineer::with(&task));
    assert_eq!(scene.state(), Ready);
}

#[test]
fn passing_trouble_is_never_terminal() {
    for sort in [Sort::TasksExhausted, Sort::Busy, Sort::NotYet, Sort::Unreachable, Sort::Denied] {
        let mut scene = Scene::proposal_ready();
        scene.ask("approve");
        let last = scene.run(&Engineer { submit: Some(trouble(sort, "x")), ..Engineer::with(&[]) });
        assert_eq!((scene.state(), scene.asked()), (ProposalReady, Some("approve")), "{sort:?}");
        assert!(matches!(last.next, Next::After(_)));
    }
}

#[test]
fn the_result_survives_a_stop_and_a_failure() {
    for state in [Stopped, NotReady] {
        let scene = Scene::resting(state);
        assert!(scene.status().optimization_result.is_some());
        assert_eq!(
            scene.session(),
            Some(id(2).to_string().as_str()),
            "{state}: who looks for it in the engine finds it"
        );
    }
}

#[test]
fn the_task_is_named_whatever_it_ended_with_until_something_new_is_asked_for() {
    let proposal = id(1).to_string();
    let mut stopped = Scene::pending();
    stopped.ask("stop");
    stopped.run(&Engineer::default());
    assert_eq!((stopped.state(), stopped.session()), (Stopped, Some(proposal.as_str())));
    let failed = Engineer::with(&[task(1, TaskStatus::CompletedWithError, "x")]);
    let unreadable = UserTask { original_response: Some("?".into()), ..task(1, TaskStatus::Completed, "x") };
    for engineer in [
        Engineer { explain: Some(trouble(Sort::Refused, "no racks")), ..failed.clone() },
        Engineer { explain: Some(Engineer::computing(1)), ..failed },
        Engineer::with(&[unreadable]),
    ] {
        let mut scene = Scene::pending();
        scene.run(&engineer);
        assert_eq!((scene.state(), scene.session()), (NotReady, Some(proposal.as_str())), "{}", scene.message());
    }
    let mut lost = Scene::rebalancing();
    lost.run(&Engineer::with(&[]));
    assert_eq!((lost.reason(), lost.session()), (Some("ExecutionOutcomeUnknown"), Some(id(2).to_string().as_str())));
    lost.ask("refresh");
    lost.run(&Engineer::proposes(Engineer::computing(7)));
    assert_eq!(lost.session(), Some(id(7).to_string().as_str()));
}

#[test]
fn a_new_proposal_replaces_the_load_of_the_one_before() {
    let mut scene = Scene::resting(Ready);
    let before = scene.data("brokerLoad.json").unwrap().to_owned();
    let mut plan = super::scene::plan();
    plan.load_after_optimization.brokers[0].leaders = 40;
    scene.ask("refresh");
    scene.run(&Engineer::proposes(Ok(Plan { task: Some(id(5)), result: Some(plan) })));
    assert_ne!(scene.data("brokerLoad.json").unwrap(), before);
    scene.ask("refresh");
    scene.run(&Engineer::proposes(Engineer::computing(6)));
    assert_eq!(
        (scene.state(), scene.data("brokerLoad.json"), scene.data("biggestMoves.json")),
        (PendingProposal, None, None)
    );
}

#[test]
fn a_transition_is_told_once() {
    let mut scene = Scene::rebalancing();
    scene.events.clear();
    for _ in 0..3 {
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
    }
    assert_eq!(scene.events, Vec::<String>::new());
    scene.run(&Engineer::with(&[]));
    assert_eq!(scene.events, ["NotReady"]);
    assert!(scene.condition().has_reason(Reason::ExecutionOutcomeUnknown));
}

#[test]
fn a_run_of_which_only_the_tag_is_known_is_adopted() {
    let mut scene = Scene::rebalancing();
    scene.seen.resource.status.as_mut().unwrap().session_id = None;
    let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, &execution_tag()));
    scene.run(&running);
    assert_eq!((scene.state(), scene.session()), (Rebalancing, Some(id(2).to_string().as_str())));
    assert_eq!(scene.called(), ["list", "look"]);
}

/// It ended before anybody had looked a second time.
#[test]
fn a_run_of_which_only_the_tag_is_known_may_be_over() {
    let without_session = || {
        let mut scene = Scene::rebalancing();
        scene.seen.resource.status.as_mut().unwrap().session_id = None;
        scene
    };
    let mut scene = without_session();
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!((scene.state(), scene.called()), (Ready, vec!["list", "look"]));
    let mut scene = without_session();
    let mut failed = execution(TaskStatus::CompletedWithError);
    failed.original_response = Some(evenkeel_rest::json::to_string(&super::scene::plan()));
    scene.run(&Engineer::with(&[failed]));
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("ExecutionFailed")));
    assert!(scene.message().contains("moves failed"), "{}", scene.message());
    let mut scene = without_session();
    scene.run(&Engineer::refuses(trouble(Sort::Refused, "no racks")));
    assert!(scene.message().starts_with("Nothing was moved: no racks"), "{}", scene.message());
    // One that is over since long before is another one.
    let mut scene = without_session();
    let mut earlier = execution(TaskStatus::Completed);
    earlier.start_ms -= 60_000;
    scene.run(&Engineer::with(&[earlier]));
    assert_eq!(scene.reason(), Some("ExecutionOutcomeUnknown"));
}

/// The engine gives proposals no ids of tasks, so that nothing but the time tells one from another.
#[test]
fn the_run_before_is_not_taken_for_the_next_where_tasks_have_no_ids() {
    let nameless = || Ok(Plan { task: None, result: Some(super::scene::plan()) });
    let mut scene = Scene::new();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    let mut done = Vec::new();
    for n in [2, 3] {
        let engineer =
            Engineer { propose: Some(nameless()), submit: Some(Engineer::ready(n)), ..Engineer::with(&done) };
        scene.run(&engineer);
        assert_eq!((scene.state(), scene.session()), (Rebalancing, Some(id(n).to_string().as_str())));
        let Some(Call::Submit(planning)) = scene.calls.last().cloned() else { panic!("{:?}", scene.called()) };
        let reason = Request::from(planning).run().unwrap().reason.clone().unwrap();
        done.push(task(n, TaskStatus::Completed, &reason));
        scene.run(&Engineer::with(&done));
        assert_eq!(scene.state(), Ready);
        scene.seen.now += jiff::SignedDuration::from_secs(1);
        scene.ask("refresh");
    }
    assert_eq!(scene.called().iter().filter(|call| **call == "submit").count(), 2);
}
