//! The status of a pod, from how its containers stand: pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::decide::{Ended, Life, Policy, State};
use super::environment::LOCALHOST;

/// The conditions that are the kubelet's to set.
pub(crate) const OWN_CONDITIONS: [&str; 4] = ["Initialized", "ContainersReady", "Ready", "PodScheduled"];

/// What the status is made from.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) containers: &'a BTreeMap<String, State>,
    /// What containers wait for, if something is missing.
    pub(crate) missing: Option<&'a str>,
    /// When the node took the pod.
    pub(crate) started: &'a Time,
    pub(crate) now: &'a Time,
}

/// The status that the pod should have. What it says besides, and who else said it, stays.
pub(crate) fn status(of: &Standing<'_>) -> PodStatus {
    let before = of.pod.status.clone().unwrap_or_default();
    let spec = of.pod.spec.as_ref();
    let inits = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let mains = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let initialized = inits.iter().all(|container| of.succeeded(container));
    let phase = of.phase(inits, mains, initialized);
    let ended = matches!(phase, "Succeeded" | "Failed");
    let unready: Vec<_> = mains.iter().filter(|container| !of.is_ready(container)).map(name).collect();
    let uninitialized: Vec<_> = inits.iter().filter(|container| !of.succeeded(container)).map(name).collect();
    let containers_ready = unready.is_empty() && !mains.is_empty() && !ended;
    let gates = of.open_gates();

    let mut conditions = before.conditions.clone().unwrap_or_default();
    let listed = |what: &str, names: &[&str]| format!("containers with {what} status: [{}]", names.join(" "));
    let mut say = |kind: &str, holds: bool, why: Option<(&str, String)>| {
        put(&mut conditions, of, kind, holds, why);
    };
    let not_initialized = ("ContainersNotInitialized", listed("incomplete", &uninitialized));
    say("Initialized", initialized, (!initialized).then_some(not_initialized));
    let not_ready = match phase {
        "Succeeded" => ("PodCompleted", String::new()),
        "Failed" => ("PodFailed", String::new()),
        _ => ("ContainersNotReady", listed("unready", &unready)),
    };
    say("ContainersReady", containers_ready, (!containers_ready).then(|| not_ready.clone()));
    let ready = containers_ready && gates.is_empty();
    let why = match containers_ready {
        false => not_ready,
        true => ("ReadinessGatesNotReady", format!("the status of pod readiness gate {:?} is not \"True\"", gates)),
    };
    say("Ready", ready, (!ready).then_some(why));
    say("PodScheduled", true, None);

    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        host_ip: Some(LOCALHOST.into()),
        host_ips: Some(vec![HostIP { ip: LOCALHOST.into() }]),
        pod_ip: Some(LOCALHOST.into()),
        pod_ips: Some(vec![PodIP { ip: LOCALHOST.into() }]),
        start_time: before.start_time.clone().or_else(|| Some(of.started.clone())),
        observed_generation: of.pod.metadata.generation,
        init_container_statuses: (!inits.is_empty()).then(|| of.statuses(inits, !initialized, true)),
        container_statuses: Some(of.statuses(mains, initialized, false)),
        ..before
    }
}

impl Standing<'_> {
    fn state(&self, container: &Container) -> Option<&State> {
        self.containers.get(&container.name)
    }

    fn succeeded(&self, container: &Container) -> bool {
        self.state(container).and_then(State::end).is_some_and(|ended| ended.exit.code == 0)
    }

    fn is_ready(&self, container: &Container) -> bool {
        self.state(container).is_some_and(State::is_ready)
    }

    fn phase(&self, inits: &[Container], mains: &[Container], initialized: bool) -> &'static str {
        let ends = |containers: &[Container]| -> Vec<i32> {
            let ends = containers.iter().filter_map(|container| self.state(container)?.end());
            ends.map(|ended| ended.exit.code).collect()
        };
        // A pod that goes has ended when nothing of it runs any more, even if something holds it in the API.
        if self.pod.metadata.deletion_timestamp.is_some() && !self.containers.values().any(State::is_alive) {
            let code =
                |container| self.state(container).and_then(|it| it.end().or(it.last.as_ref())).map(|it| it.exit.code);
            let well = !mains.is_empty() && mains.iter().all(|container| code(container) == Some(0));
            return if well { "Succeeded" } else { "Failed" };
        }
        let for_good = Policy::of(self.pod, false) != Policy::Always;
        if Policy::of(self.pod, true) == Policy::Never && ends(inits).iter().any(|code| *code != 0) {
            return "Failed";
        }
        let ends = ends(mains);
        if for_good && ends.len() == mains.len() && !mains.is_empty() {
            return if ends.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
        }
        let begun = |container: &Container| {
            self.state(container).is_some_and(|state| {
                matches!(state.life, Life::Running { .. } | Life::Ended(_)) || state.last.is_some()
            })
        };
        if initialized && mains.iter().all(begun) { "Running" } else { "Pending" }
    }

    /// Conditions of others that the pod's readiness waits for.
    fn open_gates(&self) -> Vec<String> {
        let gates = self.pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
        let holds = |kind: &str| crate::pods::condition(self.pod, kind).is_some_and(|found| found.status == "True");
        gates.map(|gate| gate.condition_type.clone()).filter(|kind| !holds(kind)).collect()
    }

    /// `current`: it is the turn of these containers, and not of init containers before them.
    fn statuses(&self, containers: &[Container], current: bool, init: bool) -> Vec<ContainerStatus> {
        containers.iter().map(|container| self.container(container, current, init)).collect()
    }

    fn container(&self, container: &Container, current: bool, init: bool) -> ContainerStatus {
        let waiting = |reason: &str, message: &str| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message: (!message.is_empty()).then(|| message.to_owned()),
            }),
            ..ContainerState::default()
        };
        let state = self.state(container);
        let id = format!("evenkeel://{}/{}", self.pod.uid().unwrap_or_default(), container.name);
        let shown = match state.map(|state| &state.life) {
            Some(Life::Running { since, .. }) => {
                let running = ContainerStateRunning { started_at: Some(since.clone()) };
                ContainerState { running: Some(running), ..ContainerState::default() }
            }
            Some(Life::Ended(ended)) => terminated(ended, &id),
            Some(Life::Starting) => waiting("ContainerCreating", ""),
            // What is missing keeps it from the next start, whatever it waited for before.
            Some(Life::Waiting { reason, message, .. }) => match (self.missing, current) {
                (Some(missing), _) => waiting("CreateContainerConfigError", missing),
                (None, false) => waiting("PodInitializing", ""),
                (None, true) if init && *reason == "ContainerCreating" => waiting("PodInitializing", message),
                (None, true) => waiting(reason, message),
            },
            None => waiting("ContainerCreating", ""),
        };
        let began = state.is_some_and(|state| state.last.is_some() || !matches!(state.life, Life::Waiting { .. }));
        let runs = shown.running.is_some();
        ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            image_id: String::new(),
            container_id: began.then_some(id.clone()),
            ready: if init { self.succeeded(container) } else { self.is_ready(container) },
            started: Some(runs),
            restart_count: state.map_or(0, |state| i32::try_from(state.restarts).unwrap_or(i32::MAX)),
            last_state: Some(match state.and_then(|state| state.last.as_ref()) {
                Some(last) => terminated(last, &id),
                None => ContainerState::default(),
            }),
            state: Some(shown),
            ..ContainerStatus::default()
        }
    }
}

fn name(container: &Container) -> &str {
    &container.name
}

fn terminated(ended: &Ended, id: &str) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code: ended.exit.code,
        reason: Some(if ended.exit.code == 0 { "Completed" } else { "Error" }.to_owned()),
        message: (!ended.exit.message.is_empty()).then(|| ended.exit.message.clone()),
        started_at: ended.since.clone(),
        finished_at: Some(ended.at.clone()),
        container_id: Some(id.to_owned()),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// Sets one condition, and its time if it turned.
fn put(conditions: &mut Vec<PodCondition>, of: &Standing<'_>, kind: &str, holds: bool, why: Option<(&str, String)>) {
    let status = if holds { "True" } else { "False" };
    let at = conditions.iter().position(|old| old.type_ == kind);
    let old = at.map(|at| &conditions[at]);
    let since = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
    let (reason, message) = why.map(|(reason, message)| (reason.to_owned(), message)).unzip();
    let new = PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason,
        message: message.filter(|message| !message.is_empty()),
        last_transition_time: since.or_else(|| Some(of.now.clone())),
        observed_generation: of.pod.metadata.generation,
        last_probe_time: None,
    };
    match at {
        Some(at) => conditions[at] = new,
        None => conditions.push(new),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
