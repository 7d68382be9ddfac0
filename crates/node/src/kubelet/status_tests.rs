//! Statuses as `kubectl` would show them.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::program::Exit;
use super::*;

fn time(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(second).unwrap())
}

fn ended(code: i32) -> Ended {
    Ended { exit: Exit { code, message: "why".into() }, since: Some(time(1)), at: time(2) }
}

/// A container by a letter: waiting, starting, running, serving, done, failed, crashed before and running again.
fn state(letter: char) -> State {
    let life = match letter {
        'w' => return State::new(0, Instant::now()),
        's' => Life::Starting,
        'r' | 'c' => Life::Running { since: time(1), ready: false },
        'R' => Life::Running { since: time(1), ready: true },
        'e' => Life::Ended(ended(0)),
        _ => Life::Ended(ended(1)),
    };
    let last = (letter == 'c').then(|| ended(1));
    State::standing(life, u32::from(letter == 'c'), last)
}

fn of(pod: &Pod, letters: &str, missing: Option<&str>, now: &Time) -> PodStatus {
    let containers = ["init", "a", "b"].into_iter().zip(letters.chars());
    let containers = containers.map(|(name, letter)| (name.to_owned(), state(letter))).collect();
    status(&Standing { pod, containers: &containers, missing, started: &time(0), now })
}

fn pod(spec: Value) -> Pod {
    let mut all = json!({"initContainers": [{"name": "init"}], "containers": [{"name": "a"}, {"name": "b"}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u", "generation": 1}, "spec": all})).unwrap()
}

/// Phase, conditions that hold, and what each container does.
fn shown(status: &PodStatus) -> String {
    let holding = status.conditions.iter().flatten().filter(|it| it.status == "True" && it.type_ != "PodScheduled");
    let mut words = vec![status.phase.clone().unwrap_or_default()];
    words.extend(holding.map(|it| it.type_.clone()));
    let inits = status.init_container_statuses.iter().flatten();
    for container in inits.chain(status.container_statuses.iter().flatten()) {
        let state = container.state.clone().unwrap();
        words.extend(state.waiting.map(|it| it.reason.unwrap()));
        words.extend(state.running.map(|_| "running".to_owned()));
        words.extend(state.terminated.map(|it| it.reason.unwrap()));
    }
    words.join(" ")
}

#[test]
fn a_pod_becomes_ready_step_by_step() {
    let pod = pod(json!({}));
    for (letters, expected) in [
        ("www", "Pending PodInitializing PodInitializing PodInitializing"),
        ("sww", "Pending ContainerCreating PodInitializing PodInitializing"),
        ("rww", "Pending running PodInitializing PodInitializing"),
        ("eww", "Pending Initialized Completed ContainerCreating ContainerCreating"),
        ("esw", "Pending Initialized Completed ContainerCreating ContainerCreating"),
        ("erw", "Pending Initialized Completed running ContainerCreating"),
        ("erR", "Running Initialized Completed running running"),
        ("eRR", "Running Initialized ContainersReady Ready Completed running running"),
        ("eRc", "Running Initialized Completed running running"),
        ("eRf", "Running Initialized Completed running Error"),
    ] {
        assert_eq!(shown(&of(&pod, letters, None, &time(5))), expected, "{letters}");
    }
}

#[test]
fn what_is_missing_is_what_containers_wait_for() {
    let status = of(&pod(json!({})), "ewR", Some("configmap \"x\" not found"), &time(5));
    assert_eq!(shown(&status), "Pending Initialized Completed CreateContainerConfigError running");
    let waiting = status.container_statuses.unwrap().remove(0).state.unwrap().waiting.unwrap();
    assert_eq!(waiting.message.as_deref(), Some("configmap \"x\" not found"));
}

#[test]
fn pods_that_are_not_restarted_end_well_or_badly() {
    for policy in ["Never", "OnFailure"] {
        let pod = pod(json!({"restartPolicy": policy}));
        assert_eq!(shown(&of(&pod, "eee", None, &time(5))), "Succeeded Initialized Completed Completed Completed");
        assert_eq!(shown(&of(&pod, "eef", None, &time(5))), "Failed Initialized Completed Completed Error");
        assert_eq!(of(&pod, "eer", None, &time(5)).phase.as_deref(), Some("Running"));
    }
    let pod = pod(json!({"restartPolicy": "Never"}));
    assert_eq!(of(&pod, "fww", None, &time(5)).phase.as_deref(), Some("Failed"));
}

#[test]
fn conditions_keep_the_time_at_which_they_turned_and_what_others_said() {
    let mut pod = pod(json!({}));
    pod.status = serde_json::from_value(json!({"qosClass": "BestEffort",
        "conditions": [{"type": "Other", "status": "True"}]}))
    .unwrap();
    pod.status = Some(of(&pod, "eRr", None, &time(5)));
    let later = of(&pod, "eRR", None, &time(9));
    let turned = |kind: &str| {
        let found = later.conditions.iter().flatten().find(|it| it.type_ == kind).unwrap();
        found.last_transition_time.clone()
    };
    assert_eq!((turned("Initialized"), turned("Ready")), (Some(time(5)), Some(time(9))));
    assert_eq!(turned("Other"), None);
    assert_eq!(later.qos_class.as_deref(), Some("BestEffort"));
    pod.status = Some(later.clone());
    assert_eq!(of(&pod, "eRR", None, &time(20)), later, "what has not changed is not said anew");
}

#[test]
fn readiness_waits_for_the_gates_of_others() {
    let mut pod = pod(json!({"readinessGates": [{"conditionType": "Warm"}]}));
    let before = of(&pod, "eRR", None, &time(5));
    assert_eq!(shown(&before), "Running Initialized ContainersReady Completed running running");
    pod.status = serde_json::from_value(json!({"conditions": [{"type": "Warm", "status": "True"}]})).unwrap();
    assert!(shown(&of(&pod, "eRR", None, &time(5))).contains(" Ready "));
}

#[test]
fn restarts_and_the_run_before_are_shown() {
    let status = of(&pod(json!({})), "eRc", None, &time(5));
    let container = &status.container_statuses.as_ref().unwrap()[1];
    assert_eq!((container.restart_count, container.ready), (1, false));
    let last = container.last_state.clone().unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.message.as_deref(), last.reason.as_deref()), (1, Some("why"), Some("Error")));
}
