//! From the proposal to the end, command by command and answer by answer.

use std::time::Duration;

use evenkeel_api::Reason;
use evenkeel_api::rebalance::RebalanceState::{NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, Stopped};
use evenkeel_api::rebalance::{BrokerVolumes, RebalanceMode};
use evenkeel_rest::Request;
use evenkeel_rest::body::Summary;
use evenkeel_rest::body::state::{ExecutorState, Leadership, Phase, Stopping};
use evenkeel_rest::parameter::TaskStatus;
use jiff::SignedDuration;

use super::super::{Call, FoundKafka, Next, Plan, Sort, Template, tag};
use super::scene::{Engineer, Scene, UID, executing, execution, id, of_both_engines, plan_of, task, trouble};

fn all_modes() -> [Scene; 4] {
    let mode = |mode: RebalanceMode| {
        let mut scene = Scene::new();
        scene.seen.resource.spec.mode = mode;
        scene
    };
    let mut add = mode(RebalanceMode::AddBrokers);
    add.seen.resource.spec.brokers = Some(vec![3, 4]);
    let mut remove = mode(RebalanceMode::RemoveBrokers);
    remove.seen.resource.spec.brokers = Some(vec![3]);
    let mut disks = mode(RebalanceMode::RemoveDisks);
    let volumes = BrokerVolumes { broker_id: 0, volume_ids: vec![1], ..Default::default() };
    disks.seen.resource.spec.move_replicas_off_volumes = Some(vec![volumes]);
    [mode(RebalanceMode::Full), add, remove, disks]
}

#[test]
fn a_new_one_gets_a_proposal_in_every_mode() {
    for mut scene in all_modes() {
        let mode = scene.seen.resource.spec.mode;
        let last = scene.run(&Engineer::proposes(Engineer::ready(1)));
        assert_eq!((scene.state(), last.next), (ProposalReady, Next::Rest), "{mode}");
        assert_eq!(scene.session(), Some(id(1).to_string().as_str()));
        assert_eq!(scene.status().observed_generation, Some(1));
        let result = scene.status().optimization_result.as_ref().unwrap();
        assert_eq!(result["dataToMoveMB"], 100);
        assert_eq!(result["afterBeforeLoadConfigMap"], "my-rebalance");
        assert_eq!(scene.status().progress.as_ref().unwrap().rebalance_progress_config_map, "my-rebalance");
        assert!(scene.data("brokerLoad.json").unwrap().contains("leaders"));
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
        assert_eq!((scene.called(), scene.has_finalizer()), (vec!["propose"], false));
        assert_eq!(scene.events, ["PendingProposal", "ProposalReady"]);
    }
}

#[test]
fn the_intent_is_on_record_before_the_first_request() {
    let first = Scene::new().look();
    assert_eq!(first.finalizer, super::super::Finalizer::Add);
    assert_eq!(first.status.unwrap().conditions[0].type_, "PendingProposal");
    assert!(matches!(first.next, Next::Call(call) if matches!(*call, Call::Propose(_))));
}

#[test]
fn a_proposal_that_takes_long_is_followed_in_every_mode() {
    for mut scene in all_modes() {
        scene.run(&Engineer::proposes(Engineer::computing(1)));
        assert_eq!((scene.state(), scene.has_finalizer()), (PendingProposal, true));
        assert_eq!((scene.session().is_some(), &scene.status().progress), (true, &None));
        for _ in 0..3 {
            let last = scene.run(&Engineer::with(&[task(1, TaskStatus::Active, "x")]));
            assert_eq!(scene.state(), PendingProposal);
            assert!(matches!(last.next, Next::After(_)) && last.status.is_none(), "no write without a change");
        }
        scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
        assert_eq!((scene.state(), scene.has_finalizer()), (ProposalReady, false));
        assert_eq!(scene.called(), ["propose", "follow", "follow", "follow", "follow"]);
    }
}

#[test]
fn disks_that_were_planned_slowly_come_without_the_load_before() {
    let [_, _, _, mut scene] = all_modes();
    scene.run(&Engineer::proposes(Engineer::computing(1)));
    let mut plan = super::scene::plan();
    plan.load_before_optimization = None;
    let mut done = task(1, TaskStatus::Completed, "x");
    done.original_response = Some(evenkeel_rest::json::to_string(&plan));
    scene.run(&Engineer::with(&[done]));
    assert_eq!(scene.state(), ProposalReady);
    assert!(!scene.data("brokerLoad.json").unwrap().contains("before"));
}

#[test]
fn not_enough_data_is_waited_out() {
    for mut scene in all_modes() {
        scene.run(&Engineer::proposes(trouble(Sort::NotEnoughData, "0 of 1 windows")));
        assert_eq!((scene.state(), scene.session()), (PendingProposal, None));
        assert_eq!(scene.status().optimization_result, None);
        let why = scene.warning(Reason::NotEnoughData).unwrap();
        assert!(why.contains("0 of 1 windows") && why.contains("90 seconds"), "{why}");
        scene.run(&Engineer::proposes(Engineer::ready(1)));
        assert_eq!((scene.state(), scene.warnings().len()), (ProposalReady, 0));
    }
}

#[test]
fn an_engine_that_measures_from_outside_is_not_said_to_take_a_window() {
    let mut scene = Scene::new();
    scene.kafka().engine.as_mut().unwrap().first_window = None;
    scene.run(&Engineer::proposes(trouble(Sort::NotEnoughData, "0 of 1 windows")));
    let why = scene.warning(Reason::NotEnoughData).unwrap();
    assert!(why.contains("less than a minute") && !why.contains("window.ms"), "{why}");
}

#[test]
fn every_mode_can_be_refused_stopped_and_carried_out() {
    for scene in all_modes() {
        let mode = scene.seen.resource.spec.mode;
        let mut refused = scene.clone();
        refused.run(&Engineer::proposes(trouble(Sort::Refused, "no")));
        assert_eq!((refused.state(), refused.has_finalizer()), (NotReady, false), "{mode}");
        let mut stopped = scene.clone();
        stopped.run(&Engineer::proposes(Engineer::computing(1)));
        stopped.ask("stop");
        stopped.run(&Engineer::default());
        assert_eq!((stopped.state(), &stopped.status().optimization_result), (Stopped, &None), "{mode}");
        let mut done = scene;
        done.run(&Engineer::proposes(Engineer::ready(1)));
        done.ask("approve");
        done.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
        assert_eq!(done.state(), Rebalancing, "{mode}");
        done.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
        assert_eq!((done.state(), done.has_finalizer()), (Ready, false), "{mode}");
    }
}

#[test]
fn a_refusal_is_final_and_says_why() {
    let mut scene = Scene::new();
    scene.run(&Engineer::proposes(trouble(Sort::Refused, "Missing hard goals [RackAwareGoal]")));
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("CruiseControlRestException")));
    assert_eq!(
        scene.message(),
        "Missing hard goals [RackAwareGoal]. Edit the spec, or mend what it names and annotate \
         strimzi.io/rebalance=refresh"
    );
    assert!(!scene.has_finalizer());
    let last = scene.run(&Engineer::default());
    assert_eq!((last.status, last.next), (None, Next::Rest));
    scene.edit(|spec| spec.skip_hard_goal_check = Some(true));
    scene.run(&Engineer::proposes(Engineer::ready(1)));
    assert_eq!((scene.state(), scene.status().observed_generation), (ProposalReady, Some(2)));
    match scene.calls.last().cloned() {
        Some(Call::Propose(planning)) => {
            assert!(Request::from(planning).query().encoded().contains("skip_hard_goal_check=true"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pending_proposal_can_be_stopped_and_renewed() {
    let mut scene = Scene::pending();
    scene.ask("stop");
    scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (Stopped, None, false));
    assert_eq!((&scene.status().optimization_result, scene.called().len()), (&None, 0));

    let mut scene = Scene::pending();
    scene.ask("refresh");
    scene.run(&Engineer::proposes(Engineer::computing(5)));
    assert_eq!((scene.state(), scene.asked()), (PendingProposal, None));
    assert_eq!(scene.session(), Some(id(5).to_string().as_str()));
}

#[test]
fn without_a_word_a_proposal_waits() {
    let mut scene = Scene::proposal_ready();
    let last = scene.run(&Engineer::default());
    assert_eq!((scene.state(), last.status, last.config_map, last.next), (ProposalReady, None, None, Next::Rest));
}

#[test]
fn an_approved_proposal_is_carried_out_exactly() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (Rebalancing, None, true));
    assert_eq!(scene.called(), ["look", "submit"]);
    assert_eq!(scene.session(), Some(id(2).to_string().as_str()));
    assert!(scene.status().optimization_result.is_some());
    let Some(Call::Submit(planning)) = scene.calls.pop() else { panic!() };
    let query = Request::from(planning).query().encoded();
    assert!(query.contains("dryrun=false") && query.contains("proposal_id=plan-1"), "{query}");
    assert!(query.contains(&format!("reason={}", tag::of_execution(UID, id(1)))), "{query}");
}

#[test]
fn a_slow_execution_keeps_the_result_that_was_approved() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::computing(2)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.status().optimization_result.is_some()), (Rebalancing, true));
}

/// It plans anew when it is told to carry something out, so that what was approved is not what runs.
#[test]
fn what_an_engine_without_ids_carries_out_is_shown_once_it_says_what() {
    let moving =
        |megabytes| plan_of(Summary { proposal_id: None, data_to_move_mb: megabytes, ..super::scene::summary() });
    let mut scene = Scene::new().of_the_original();
    scene.run(&Engineer::proposes(Ok(Plan { task: Some(id(1)), result: Some(moving(100)) })));
    assert!(scene.data("brokerLoad.json").is_some());
    scene.ask("approve");
    let mut at_once = scene.clone();
    scene.run(&Engineer { submit: Some(Engineer::computing(2)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), &scene.status().optimization_result), (Rebalancing, &None));
    assert_eq!((scene.data("brokerLoad.json"), scene.data("completedByteMovementPercentage")), (None, Some("0")));
    scene.run(&Engineer::with(&[execution(TaskStatus::Active)]));
    assert_eq!(scene.status().optimization_result, None);
    let mut running = execution(TaskStatus::InExecution);
    running.original_response = Some(evenkeel_rest::json::to_string(&moving(70)));
    scene.run(&Engineer::with(&[running]).running(executing(2, "x")));
    assert_eq!(scene.status().optimization_result.as_ref().unwrap()["dataToMoveMB"], 70);
    assert!(scene.data("brokerLoad.json").is_some());
    // One that says it at once is believed at once.
    let submit = Some(Ok(Plan { task: Some(id(2)), result: Some(moving(70)) }));
    at_once.run(&Engineer { submit, ..Engineer::with(&[]) });
    assert_eq!(at_once.status().optimization_result.as_ref().unwrap()["dataToMoveMB"], 70);
}

#[test]
fn an_engine_without_ids_gets_the_plain_request() {
    let mut scene = Scene::new();
    let without = plan_of(Summary { proposal_id: None, ..super::scene::summary() });
    scene.run(&Engineer::proposes(Ok(Plan { task: Some(id(1)), result: Some(without) })));
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    let Some(Call::Submit(planning)) = scene.calls.pop() else { panic!() };
    assert!(!Request::from(planning).query().encoded().contains("proposal_id"));
}

#[test]
fn not_enough_data_for_an_execution_needs_a_new_proposal_and_a_new_approval() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(trouble(Sort::NotEnoughData, "no windows")), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.session(), scene.asked()), (PendingProposal, None, None));
    assert_eq!(scene.warnings(), ["ProposalOutdated", "NotEnoughData"]);
    scene.run(&Engineer::proposes(Engineer::ready(3)));
    assert_eq!(scene.state(), ProposalReady);
}

#[test]
fn an_outdated_proposal_comes_back_as_a_new_one_that_says_why() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    let engineer = Engineer {
        propose: Some(Engineer::ready(3)),
        submit: Some(trouble(Sort::Outdated, "broker 3 is gone")),
        ..Engineer::with(&[])
    };
    let last = scene.run(&engineer);
    assert_eq!((scene.state(), scene.asked(), scene.called()), (PendingProposal, None, vec!["look", "submit"]));
    assert_eq!(last.next, Next::After(Duration::from_secs(2)), "not before all brokers have heard of what has changed");
    let last = scene.run(&engineer);
    assert_eq!((scene.state(), scene.asked(), last.next), (ProposalReady, None, Next::Rest));
    assert!(scene.warning(Reason::ProposalOutdated).unwrap().contains("broker 3 is gone"));
    assert_eq!(scene.session(), Some(id(3).to_string().as_str()));
    assert_eq!(scene.called(), ["look", "submit", "propose"]);
    // The word stays until the next approval.
    assert_eq!(scene.run(&engineer).status, None);
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::ready(4)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.warnings().len()), (Rebalancing, 0));
}

#[test]
fn an_engine_that_finds_everything_outdated_is_not_driven_round_and_round() {
    let mut scene = Scene::new();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    let engineer = Engineer {
        propose: Some(Engineer::ready(1)),
        submit: Some(trouble(Sort::Outdated, "again")),
        ..Engineer::with(&[task(1, TaskStatus::Completed, &tag::of_resource(UID))])
    };
    for pause in [2, 15, 15] {
        let last = scene.run(&engineer);
        assert_eq!((scene.state(), last.next), (PendingProposal, Next::After(Duration::from_secs(pause))));
    }
}

#[test]
fn an_approval_given_beforehand_is_said_to_count_and_not_to_be_wrong() {
    let mut scene = Scene::pending();
    let active = Engineer::with(&[task(1, TaskStatus::Active, "x")]);
    scene.ask("approve");
    scene.run(&active);
    assert_eq!((scene.state(), scene.asked(), scene.warnings()), (PendingProposal, Some("approve"), vec![]));
    assert!(scene.message().contains("carried out as soon as it is ready"), "{}", scene.message());
    // Taken back in time it is nothing.
    scene.seen.resource.metadata.annotations = None;
    scene.run(&active);
    assert_eq!(scene.message(), "Cruise Control is making a proposal");
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    assert_eq!(scene.state(), ProposalReady);
    // What is to go carries nothing out.
    let mut scene = Scene::pending();
    scene.ask("approve");
    scene.delete();
    scene.run(&active);
    assert_eq!(scene.warnings(), ["InvalidAnnotation"]);
    assert!(!scene.message().contains("carried out"), "{}", scene.message());
}

#[test]
fn an_approval_given_beforehand_counts_once() {
    let mut scene = Scene::new();
    scene.ask("approve");
    let engineer = Engineer {
        propose: Some(Engineer::ready(1)),
        submit: Some(Engineer::ready(2)),
        ..Engineer::with(&[task(1, TaskStatus::Completed, &tag::of_resource(UID))])
    };
    scene.run(&engineer);
    assert_eq!((scene.state(), scene.asked()), (Rebalancing, None));
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    scene.ask("refresh");
    scene.run(&engineer);
    assert_eq!(scene.state(), ProposalReady, "one approval, one run");
}

#[test]
fn auto_approval_goes_on_at_once_and_never_lets_go_between() {
    let mut scene = Scene::new();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.run(&Engineer {
        propose: Some(Engineer::ready(1)),
        submit: Some(Engineer::ready(2)),
        ..Engineer::with(&[task(1, TaskStatus::Completed, &tag::of_resource(UID))])
    });
    assert_eq!((scene.state(), scene.has_finalizer()), (Rebalancing, true));
    assert_eq!(scene.called(), ["propose", "list", "look", "submit"]);
}

#[test]
fn a_proposal_can_be_renewed_whatever_the_answer() {
    for (answer, state) in [
        (Engineer::ready(5), ProposalReady),
        (Engineer::computing(5), PendingProposal),
        (trouble(Sort::NotEnoughData, "x"), PendingProposal),
    ] {
        for mut scene in
            [Scene::proposal_ready(), Scene::resting(Stopped), Scene::resting(Ready), Scene::resting(NotReady)]
        {
            scene.ask("refresh");
            scene.run(&Engineer::proposes(answer.clone()));
            assert_eq!((scene.state(), scene.asked()), (state, None));
            assert_eq!(scene.called(), ["propose"]);
        }
    }
}

#[test]
fn a_mistyped_command_is_answered_with_what_is_valid() {
    let mut scene = Scene::proposal_ready();
    scene.ask("aprove");
    let last = scene.run(&Engineer::default());
    assert_eq!((scene.state(), scene.asked(), last.next), (ProposalReady, Some("aprove"), Next::Rest));
    assert!(scene.warning(Reason::InvalidAnnotation).unwrap().ends_with("valid are: approve, refresh"));
    assert_eq!(scene.run(&Engineer::default()).status, None, "said once");
}

#[test]
fn a_command_that_means_nothing_here_changes_nothing() {
    for (mut scene, command) in [
        (Scene::resting(Ready), "approve"),
        (Scene::resting(Ready), "stop"),
        (Scene::resting(Stopped), "approve"),
        (Scene::resting(NotReady), "stop"),
        (Scene::proposal_ready(), "stop"),
    ] {
        let before = scene.state();
        scene.ask(command);
        scene.run(&Engineer::default());
        assert_eq!((scene.state(), scene.asked()), (before, Some(command)));
        assert_eq!(scene.warnings(), ["InvalidAnnotation"]);
    }
    // Nor while it waits for what it lacks, or for its spec to be mended.
    for command in ["stop", "aprove"] {
        for harm in [
            |scene: &mut Scene| scene.seen.kafka = FoundKafka::Unnamed,
            |scene: &mut Scene| scene.kafka().ready = false,
            |scene: &mut Scene| {
                (scene.seen.resource.spec.mode, scene.seen.template) =
                    (RebalanceMode::AddBrokers, Template::Found(Box::default()));
            },
        ] {
            let mut scene = Scene::new();
            harm(&mut scene);
            scene.run(&Engineer::default());
            assert_eq!((scene.state(), scene.warnings().len()), (NotReady, 0), "{}", scene.message());
            scene.ask(command);
            scene.run(&Engineer::default());
            assert_eq!((scene.state(), scene.warnings()), (NotReady, vec!["InvalidAnnotation"]), "{}", scene.message());
            assert_eq!(scene.run(&Engineer::default()).status, None, "said once");
        }
    }
    let mut scene = Scene::rebalancing();
    scene.ask("approve");
    scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]));
    assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec!["InvalidAnnotation"]));
}

#[test]
fn a_run_is_followed_to_its_end_with_progress() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.run(&Engineer::with(&[execution(TaskStatus::Active)]));
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
        let last = scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert_eq!(scene.state(), Rebalancing);
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("50"));
        assert_eq!(scene.data("estimatedTimeToCompletionInMinutes"), Some("1"));
        assert!(scene.data("executorState").unwrap().contains("INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"));
        assert!(matches!(last.next, Next::After(pause) if pause.as_secs() <= 5), "no older than five seconds");
        assert_eq!((last.status, scene.warnings().len()), (None, 0), "progress is no change of the status");
        let last = scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
        assert_eq!((scene.state(), scene.session(), scene.has_finalizer()), (Ready, None, false));
        assert_eq!((scene.data("completedByteMovementPercentage"), scene.data("executorState")), (Some("100"), None));
        assert_eq!(scene.data("estimatedTimeToCompletionInMinutes"), Some("0"));
        assert!(scene.status().optimization_result.is_some() && last.next == Next::Rest);
    }
}

/// Nobody calls out its end, and brokers that it empties wait for it.
#[test]
fn a_run_is_looked_at_more_closely_while_it_is_young_and_when_little_is_left() {
    let pause = |seconds: i64, moved: u64| {
        let mut scene = Scene::rebalancing();
        scene.seen.now += SignedDuration::from_secs(seconds);
        let mut executor = executing(2, "x");
        if let Phase::InterBroker(moves) = &mut executor.phase {
            moves.finished_data_movement = moved;
        }
        let engineer = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executor);
        let next = scene.run(&engineer).next;
        let Next::After(pause) = next else { panic!("{next:?}") };
        pause.as_millis()
    };
    assert_eq!(pause(2, 0), 500, "young");
    assert!((1_000..2_000).contains(&pause(15, 0)), "no longer quite so young");
    assert_eq!((pause(60, 0), pause(60, 500)), (3_000, 3_000), "in the middle of it");
    assert!((500..1_000).contains(&pause(60, 980)), "little is left");
    assert_eq!(pause(60, 1_000), 500, "it may be over any moment");
    assert_eq!(pause(7_200, 1_000), 3_000, "after hours nobody minds");
    let mut scene = Scene::rebalancing();
    scene.seen.now += SignedDuration::from_secs(60);
    let next = scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)])).next;
    assert_eq!(next, Next::After(Duration::from_millis(500)), "the executor has done its part");
}

#[test]
fn a_result_that_is_missing_is_filled_in_from_the_task() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.seen.resource.status.as_mut().unwrap().optimization_result = None;
        scene.run(&Engineer::with(&[execution(TaskStatus::Active)]));
        assert_eq!(scene.status().optimization_result, None);
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert_eq!(scene.status().optimization_result.as_ref().unwrap()["dataToMoveMB"], 100);
    }
}

#[test]
fn leaderships_only_are_no_trouble() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        let executor = ExecutorState { phase: Phase::Leadership(Leadership::default()), ..executing(2, "x") };
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executor));
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
        assert_eq!((scene.warnings().len(), scene.data("estimatedTimeToCompletionInMinutes")), (0, None));
    }
}

/// As the original has it: every run passes the moves between brokers.
#[test]
fn leaderships_only_are_nothing_until_they_are_everything_whatever_they_pass() {
    let mut scene = Scene::rebalancing().of_the_original();
    let inter = ExecutorState { phase: Phase::InterBroker(Default::default()), ..executing(2, "x") };
    let leaders = ExecutorState { phase: Phase::Leadership(Leadership::default()), ..executing(2, "x") };
    for executor in [inter.clone(), leaders, inter] {
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executor));
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
    }
}

#[test]
fn a_plan_without_moves_is_done_at_once() {
    let mut scene = Scene::new();
    let nothing = Plan { task: Some(id(1)), result: Some(plan_of(Summary::default())) };
    scene.run(&Engineer::proposes(Ok(nothing)));
    assert!(scene.message().starts_with("Nothing has to move"));
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
    assert_eq!(scene.state(), Ready);
}

#[test]
fn a_run_that_fails_says_why_and_keeps_what_is_known() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        let mut failed = execution(TaskStatus::CompletedWithError);
        failed.original_response = Some(evenkeel_rest::json::to_string(&super::scene::plan()));
        scene.run(&Engineer::with(&[failed]));
        assert_eq!((scene.state(), scene.reason()), (NotReady, Some("ExecutionFailed")));
        assert!(scene.message().contains("moves failed"), "{}", scene.message());
        assert!(scene.session().is_some() && scene.status().optimization_result.is_some());
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("50"));
        assert_eq!(scene.data("estimatedTimeToCompletionInMinutes"), None);
        assert!(scene.data("executorState").is_some() && !scene.has_finalizer());
    }
}

#[test]
fn a_run_that_is_refused_later_says_why_and_moved_nothing() {
    let refused = |answer| {
        let mut scene = Scene::rebalancing();
        scene.run(&Engineer::refuses(answer));
        scene
    };
    let mut scene = refused(trouble(Sort::Refused, "[RackAwareGoal] Insufficient number of racks."));
    assert_eq!((scene.state(), scene.reason()), (NotReady, Some("CruiseControlRestException")));
    assert!(scene.message().starts_with("Nothing was moved: [RackAwareGoal]"), "{}", scene.message());
    // The very same request, with the task that it made.
    let Some(Call::Explain { request, task }) = scene.calls.pop() else { panic!("{:?}", scene.calls) };
    assert_eq!((task, scene.called()), (id(2), vec!["follow", "follow", "look"]));
    let mut submitted = Scene::proposal_ready();
    submitted.ask("approve");
    submitted.run(&Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) });
    assert_eq!(submitted.calls.pop(), Some(Call::Submit(request)));
    // Whoever no longer says why is not asked for ever, nor is one that means something else.
    let other = format!("Unexpected header {} (value: User-Task-ID) in the request", id(2));
    for mute in [Engineer::computing(2), trouble(Sort::Garbled, "<html>"), trouble(Sort::Refused, &other)] {
        let scene = refused(mute);
        assert_eq!(
            (scene.state(), scene.message().contains("no longer says why")),
            (NotReady, true),
            "{}",
            scene.message()
        );
    }
    for sort in [Sort::Unreachable, Sort::Denied] {
        let scene = refused(trouble(sort, "why"));
        assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec!["CruiseControlRestException"]), "{sort:?}");
    }
}

#[test]
fn a_run_that_is_found_outdated_later_comes_back_as_a_new_proposal_too() {
    for sort in [Sort::Outdated, Sort::Busy, Sort::NotYet, Sort::NotEnoughData, Sort::TasksExhausted] {
        let mut scene = Scene::rebalancing();
        let last = scene.run(&Engineer::refuses(trouble(sort, "broker 3 is gone")));
        assert_eq!((scene.state(), scene.session(), scene.has_finalizer()), (PendingProposal, None, true), "{sort:?}");
        assert!(matches!(last.next, Next::After(_)), "not driven round and round");
        assert!(scene.warning(Reason::ProposalOutdated).unwrap().contains("broker 3 is gone"));
        scene.run(&Engineer::proposes(Engineer::ready(3)));
        assert_eq!((scene.state(), scene.warnings()), (ProposalReady, vec!["ProposalOutdated"]), "{sort:?}");
        assert_eq!(scene.run(&Engineer::default()).next, Next::Rest, "it waits for a new approval");
        // Nothing new is begun for what is to go.
        let mut scene = Scene::rebalancing();
        scene.delete();
        scene.run(&Engineer::refuses(trouble(sort, "broker 3 is gone")));
        assert_eq!((scene.state(), scene.has_finalizer()), (NotReady, false), "{sort:?}");
    }
}

#[test]
fn a_stop_is_over_when_the_executor_is() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.ask("stop");
        let running = Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x"));
        scene.run(&running);
        assert_eq!(
            (scene.state(), scene.asked(), scene.called()),
            (Rebalancing, Some("stop"), vec!["follow", "look", "stop"])
        );
        // One that was lost is sent again; one that is under way is not.
        scene.run(&running);
        assert_eq!(scene.called().iter().filter(|name| **name == "stop").count(), 2);
        let stopping = ExecutorState { phase: Phase::Stopping(Stopping::default()), ..executing(2, "x") };
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(stopping));
        assert_eq!(scene.called().iter().filter(|name| **name == "stop").count(), 2);
        assert_eq!((scene.state(), scene.has_finalizer()), (Rebalancing, true));
        assert!(scene.message().contains("was told to stop"), "{}", scene.message());
        // Nor does anything that happens meanwhile make it news again.
        let away = || Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..running.clone() };
        scene.run(&away());
        scene.run(&Engineer { executor: Some(trouble(Sort::Unreachable, "down")), ..running.clone() });
        scene.run(&running);
        let told = scene.events.iter().filter(|event| *event == "Stopping").count();
        assert_eq!(told, 1, "however often it is sent");
        scene.run(&Engineer::with(&[execution(TaskStatus::CompletedWithError)]));
        assert_eq!((scene.state(), scene.asked(), scene.has_finalizer()), (Stopped, None, false));
        assert!(scene.status().optimization_result.is_some(), "what was planned is kept");
        assert_eq!(scene.data("completedByteMovementPercentage"), Some("50"));
    }
}

#[test]
fn a_run_that_is_still_being_planned_is_stopped_once_it_begins() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.ask("stop");
        scene.run(&Engineer::with(&[execution(TaskStatus::Active)]));
        assert_eq!((scene.state(), scene.called()), (Rebalancing, vec!["follow", "look"]));
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert_eq!(scene.called().last(), Some(&"stop"));
    }
}

#[test]
fn a_stop_that_waits_for_the_planning_says_so() {
    let planning = Engineer::with(&[execution(TaskStatus::Active)]);
    for command in ["stop", "refresh"] {
        let mut scene = Scene::rebalancing();
        scene.events.clear();
        scene.ask(command);
        scene.run(&planning);
        assert!(scene.message().contains("still planning"), "{}", scene.message());
        assert_eq!(scene.run(&planning).status, None);
        assert_eq!((scene.events.clone(), scene.warnings().len()), (vec!["Stopping".to_owned()], 0), "said once");
        scene.seen.now += SignedDuration::from_secs(700);
        scene.run(&planning);
        assert!(scene.warning(Reason::CruiseControlRestException).unwrap().contains("ten minutes"), "{command}");
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert!(scene.message().contains("was told to stop"), "{}", scene.message());
        assert_eq!(scene.events, ["Stopping", "Stopping"], "that it has to wait, and that it does no longer");
    }
}

#[test]
fn an_execution_that_is_refused_says_what_to_do() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    let why = "Missing hard goals [A]. Add skip_hard_goal_check=true parameter to ignore this sanity check.";
    scene.run(&Engineer { submit: Some(trouble(Sort::Refused, why)), ..Engineer::with(&[]) });
    assert_eq!((scene.state(), scene.asked()), (NotReady, None));
    let told = scene.message();
    assert!(told.starts_with("Nothing was moved: Missing hard goals [A]"), "{told}");
    assert!(told.contains("spec.skipHardGoalCheck: true") && told.contains("=refresh"), "{told}");
}

#[test]
fn a_run_that_had_ended_before_the_stop_is_done() {
    for mut scene in of_both_engines(Scene::rebalancing) {
        scene.ask("stop");
        scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]));
        assert_eq!((scene.state(), scene.asked()), (Ready, Some("stop")));
        scene.run(&Engineer::default());
        assert_eq!(scene.warnings(), ["InvalidAnnotation"]);
    }
}

#[test]
fn a_renewed_run_is_stopped_first() {
    let scenes = of_both_engines(Scene::rebalancing);
    for (by_edit, mut scene) in [false, true].into_iter().flat_map(|it| scenes.clone().map(|scene| (it, scene))) {
        match by_edit {
            true => scene.edit(|spec| spec.replication_throttle = Some(5)),
            false => scene.ask("refresh"),
        }
        scene.run(&Engineer::with(&[execution(TaskStatus::InExecution)]).running(executing(2, "x")));
        assert_eq!((scene.state(), scene.called()), (Rebalancing, vec!["follow", "look", "stop"]));
        let ended = Engineer::with(&[execution(TaskStatus::CompletedWithError)]);
        scene.run(&Engineer { propose: Some(Engineer::ready(5)), ..ended });
        assert_eq!((scene.state(), scene.asked()), (ProposalReady, None));
        assert_eq!(scene.status().observed_generation, scene.seen.resource.metadata.generation);
    }
}

#[test]
fn a_whole_cycle_and_another() {
    let mut scene = Scene::resting(Ready);
    scene.ask("refresh");
    scene.run(&Engineer::proposes(Engineer::ready(7)));
    assert_eq!(scene.state(), ProposalReady);
    assert_eq!(scene.data("completedByteMovementPercentage"), Some("0"));
    assert_eq!(scene.data("estimatedTimeToCompletionInMinutes"), None);
    assert_eq!(
        scene.events,
        ["PendingProposal", "ProposalReady", "Rebalancing", "Ready", "PendingProposal", "ProposalReady"]
    );
}

#[test]
fn an_auto_approved_run_that_is_renewed_runs_again_and_ends() {
    let mut scene = Scene::rebalancing();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.ask("refresh");
    let dry = task(5, TaskStatus::Completed, &tag::of_resource(UID));
    scene.run(&Engineer {
        propose: Some(Engineer::ready(5)),
        submit: Some(Engineer::ready(6)),
        ..Engineer::with(&[execution(TaskStatus::CompletedWithError), dry])
    });
    assert_eq!((scene.state(), scene.session()), (Rebalancing, Some(id(6).to_string().as_str())));
    scene.run(&Engineer::with(&[task(6, TaskStatus::Completed, "x")]));
    assert_eq!(scene.state(), Ready);
}
