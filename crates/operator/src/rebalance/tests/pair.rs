//! Two rebalances of one cluster, in every order in which a controller may come to them: one run at a time,
//! both to their end, and nobody's run is stopped by the other.

use std::collections::BTreeSet;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::body::UserTask;
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Other, Sort, tag};
use super::scene::{Engineer, Scene, executing, id, task, trouble};

const UIDS: [&str; 2] = ["aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"];

#[derive(Clone)]
struct Pair {
    scenes: [Scene; 2],
    runs: Option<usize>,
    over: [Option<TaskStatus>; 2],
}

impl Pair {
    fn new() -> Self {
        let scene = |n: usize| {
            let mut scene = Scene::proposal_ready();
            scene.seen.resource.metadata.name = Some(["first", "second"][n].to_owned());
            scene.seen.resource.metadata.uid = Some(UIDS[n].to_owned());
            scene.ask("approve");
            scene
        };
        Self { scenes: [scene(0), scene(1)], runs: None, over: [None, None] }
    }

    fn execution(&self, n: usize) -> Option<UserTask> {
        let status = if self.runs == Some(n) { Some(TaskStatus::InExecution) } else { self.over[n] };
        Some(task(10 + n as u32, status?, &reason(n)))
    }

    /// Reconciles one of them. `sees`: whether it knows yet what the other one does.
    fn reconcile(&mut self, n: usize, sees: bool) {
        let resources: Vec<KafkaRebalance> = self.scenes.iter().map(|scene| scene.seen.resource.clone()).collect();
        let scene = &self.scenes[n];
        let others = if sees { Other::all(&scene.seen.resource, &resources) } else { scene.seen.others.clone() };
        let tasks: Vec<UserTask> = self.execution(n).into_iter().collect();
        let mut engineer = Engineer::with(&tasks);
        engineer.submit = Some(match self.runs {
            Some(_) => trouble(Sort::Busy, "ongoing execution"),
            None => Engineer::ready(10 + n as u32),
        });
        if let Some(running) = self.runs {
            engineer = engineer.running(executing(10 + running as u32, &reason(running)));
        }
        let free = self.runs.is_none();
        let scene = &mut self.scenes[n];
        scene.seen.others = others;
        scene.calls.clear();
        scene.run(&engineer);
        let called = scene.called();
        assert!(!called.contains(&"stop") || self.runs == Some(n), "somebody else's run was stopped");
        if called.contains(&"submit") && free {
            assert_eq!(self.over[n], None, "carried out twice");
            self.runs = Some(n);
        }
    }

    fn key(&self) -> String {
        let status = |scene: &Scene| format!("{:?}{:?}{:?}", scene.status(), scene.asked(), scene.seen.others);
        format!("{}{}{:?}{:?}", status(&self.scenes[0]), status(&self.scenes[1]), self.runs, self.over)
    }
}

fn reason(n: usize) -> String {
    tag::of_execution(UIDS[n], id(1))
}

#[test]
fn in_every_order_both_run_one_after_the_other() {
    let mut seen = BTreeSet::new();
    let mut ends = 0;
    let mut stack = vec![Pair::new()];
    while let Some(pair) = stack.pop() {
        if !seen.insert(pair.key()) {
            continue;
        }
        let states = pair.scenes.each_ref().map(Scene::state);
        let running = states.iter().filter(|state| **state == RebalanceState::Rebalancing).count();
        assert!(running <= 1 || pair.runs.is_none() || pair.over.iter().any(Option::is_some), "two at once");
        if states == [RebalanceState::Ready; 2] {
            ends += 1;
            continue;
        }
        for n in [0, 1] {
            for sees in [true, false] {
                let mut after = pair.clone();
                after.reconcile(n, sees);
                stack.push(after);
            }
        }
        if let Some(n) = pair.runs {
            let mut after = pair.clone();
            (after.runs, after.over[n]) = (None, Some(TaskStatus::Completed));
            stack.push(after);
        }
    }
    assert!(ends > 0, "both come to their end");
}

#[test]
fn stopping_the_one_that_waits_leaves_the_other_alone() {
    let mut pair = Pair::new();
    pair.reconcile(0, true);
    pair.reconcile(1, true);
    assert_eq!(pair.scenes[1].warnings(), ["WaitingForOtherRebalance"]);
    pair.scenes[1].ask("stop");
    pair.reconcile(1, true);
    assert_eq!(pair.scenes[1].state(), RebalanceState::ProposalReady, "the approval is taken back, the proposal stays");
    assert_eq!(pair.scenes[0].state(), RebalanceState::Rebalancing);
}
