//! What the ConfigMap says of a proposal: that of this one, or nothing.

use evenkeel_api::rebalance::RebalanceState::{ProposalReady, Ready, Rebalancing, Stopped};
use evenkeel_rest::body::{OptimizationResult, UserTask};
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Call, FoundConfigMap, Other, Plan, Sort};
use super::scene::{Engineer, Scene, executing, execution, id, task, trouble};

/// A proposal that differs from that of the scene, as the task that made it.
fn another_proposal(n: u32) -> (OptimizationResult, UserTask) {
    let mut plan = super::scene::plan();
    plan.load_after_optimization.brokers[0].leaders = 40;
    let answer = Some(evenkeel_rest::json::to_string(&plan));
    (plan, UserTask { original_response: answer, ..task(n, TaskStatus::Completed, "x") })
}

/// The API server said no, once: a webhook that was just being rolled, for example.
#[test]
fn a_load_that_could_not_be_written_is_written_later_and_never_taken_for_that_of_another() {
    let refused = || {
        let mut scene = Scene::resting(Ready);
        let before = scene.seen.config_map.clone();
        scene.seen.config_map = before.clone().refused("a webhook was away".into());
        scene.ask("refresh");
        let (plan, _) = another_proposal(5);
        scene.run(&Engineer::proposes(Ok(Plan { task: Some(id(5)), result: Some(plan) })));
        assert_eq!((scene.state(), scene.warnings()), (ProposalReady, vec!["KubernetesClientException"]));
        scene.seen.config_map = before;
        scene.calls.clear();
        scene
    };
    let told = |scene: &Scene| scene.data("brokerLoad.json").is_some_and(|text| text.contains("40"));
    let knows = || Engineer::with(&[another_proposal(5).1]);
    let mut scene = refused();
    assert!(!told(&scene));
    scene.run(&knows());
    assert_eq!((told(&scene), scene.warnings().len(), scene.called()), (true, 0, vec!["follow"]));
    assert_eq!(scene.run(&Engineer::default()).status, None, "and nobody asks for it again");
    // As long as nobody can be asked it is said, though the rest can be written.
    let mut scene = refused();
    let away = || Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::default() };
    scene.run(&away());
    assert_eq!(
        (scene.data("completedByteMovementPercentage"), scene.warnings()),
        (Some("0"), vec!["KubernetesClientException"])
    );
    scene.run(&knows());
    assert_eq!((told(&scene), scene.warnings().len()), (true, 0));
    // What is carried out has it before.
    let mut scene = refused();
    scene.ask("approve");
    scene.run(&Engineer { submit: Some(Engineer::computing(2)), ..knows() });
    assert_eq!((scene.state(), told(&scene)), (Rebalancing, true));
    assert_eq!(scene.called(), ["follow", "look", "submit"]);
    // What ends without ever having been told says nothing rather than something else.
    let mut scene = refused();
    scene.annotate("strimzi.io/rebalance-auto-approval", "true");
    scene.ask("stop");
    scene.run(&away());
    assert_eq!((scene.state(), scene.data("brokerLoad.json")), (Stopped, None));
}

#[test]
fn a_load_that_is_lost_comes_back_wherever_it_was_lost() {
    let knows = || Engineer::with(&[task(1, TaskStatus::Completed, "x"), execution(TaskStatus::InExecution)]);
    let told = |scene: &Scene| scene.data("brokerLoad.json").is_some();
    // Approved, and waiting for its turn.
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.seen.others = vec![Other { name: "other".into(), runs: true, waits_since: None }];
    scene.seen.config_map = FoundConfigMap::Absent;
    let mut cut_off = scene.clone();
    scene.run(&knows());
    assert_eq!((scene.warnings(), told(&scene)), (vec!["WaitingForOtherRebalance"], true));
    // The same while nobody answers: it is made without, and filled in later.
    cut_off.run(&Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::default() });
    assert_eq!((cut_off.seen.config_map.data().is_some(), told(&cut_off)), (true, false));
    cut_off.run(&knows());
    assert!(told(&cut_off));
    // While data moves.
    let mut scene = Scene::rebalancing();
    scene.seen.config_map = FoundConfigMap::Absent;
    let down = Engineer { tasks: Some(trouble(Sort::Unreachable, "down")), ..Engineer::with(&[]) };
    scene.run(&Engineer { executor: Some(trouble(Sort::Unreachable, "down")), ..down });
    assert_eq!((scene.seen.config_map.data().is_some(), told(&scene)), (true, false));
    scene.run(&knows().running(executing(2, "x")));
    assert!(told(&scene));
    let asks_in_full = |call: &Call| matches!(call, Call::Follow { in_full: true, .. });
    scene.calls.clear();
    scene.run(&knows().running(executing(2, "x")));
    assert!(!scene.calls.iter().any(asks_in_full), "what is there is not asked for");
}
