//! The row of a pod: one word for everything that can be going on in it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::builtin::{list, number, or, since, text};
use crate::object::Object;

const NONE: &str = "<none>";

/// What the statuses of a pod's containers add up to.
#[derive(Default)]
struct Summary<'a> {
    ready: usize,
    reason: String,
    restarts: i64,
    /// When the last restart was, as text; text of this form is ordered as the times are.
    last_restart: &'a str,
}

/// The cells of a pod.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let sidecars: Vec<&str> =
        list(pod, &["spec", "initContainers"]).filter(|c| is_sidecar(c)).map(|c| text(c, &["name"])).collect();
    let total = list(pod, &["spec", "containers"]).count() + sidecars.len();
    let summary = summarise(pod, &sidecars);
    let restarts = match (summary.restarts, summary.last_restart) {
        (0, _) | (_, "") => summary.restarts.to_string(),
        (count, last) => format!("{count} ({} ago)", since(now, last)),
    };
    let ip = list(pod, &["status", "podIPs"]).next().map(|ip| text(ip, &["ip"])).unwrap_or_default();
    vec![
        json!(pod.name()),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        json!(since(now, pod.meta("creationTimestamp"))),
        json!(or(ip, NONE)),
        json!(or(text(pod, &["spec", "nodeName"]), NONE)),
        json!(or(text(pod, &["status", "nominatedNodeName"]), NONE)),
        json!(readiness_gates(pod)),
    ]
}

/// An init container that stays.
fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

fn summarise<'a>(pod: &'a Value, sidecars: &[&str]) -> Summary<'a> {
    let phase = text(pod, &["status", "phase"]);
    let mut summary = Summary { reason: or(text(pod, &["status", "reason"]), phase).to_owned(), ..Summary::default() };
    let gated = |c: &Value| text(c, &["type"]) == "PodScheduled" && text(c, &["reason"]) == "SchedulingGated";
    if list(pod, &["status", "conditions"]).any(gated) {
        summary.reason = "SchedulingGated".to_owned();
    }
    let (initializing, of_sidecars) = init_containers(pod, sidecars, &mut summary);
    if !initializing || has_condition(pod, "Initialized") {
        (summary.restarts, summary.last_restart) = of_sidecars;
        containers(pod, &mut summary);
    }
    if pod.is_terminating() {
        if text(pod, &["status", "reason"]) == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

fn has_condition(pod: &Value, ty: &str) -> bool {
    list(pod, &["status", "conditions"]).any(|c| text(c, &["type"]) == ty && text(c, &["status"]) == "True")
}

fn last_finish(status: &Value) -> &str {
    text(status, &["lastState", "terminated", "finishedAt"])
}

/// Looks at the init containers up to the first that is not through. Answers whether there is one, and the restarts of
/// the sidecars among them, with the time of the last.
fn init_containers<'a>(pod: &'a Value, sidecars: &[&str], summary: &mut Summary<'a>) -> (bool, (i64, &'a str)) {
    let count = list(pod, &["spec", "initContainers"]).count();
    let mut of_sidecars = (0, "");
    for (at, status) in list(pod, &["status", "initContainerStatuses"]).enumerate() {
        let is_sidecar = sidecars.contains(&text(status, &["name"]));
        let restarts = number(status, &["restartCount"]);
        summary.restarts += restarts;
        summary.last_restart = summary.last_restart.max(last_finish(status));
        if is_sidecar {
            of_sidecars = (of_sidecars.0 + restarts, of_sidecars.1.max(last_finish(status)));
        }
        let terminated = status.at(&["state", "terminated"]);
        if terminated.is_some_and(|t| number(t, &["exitCode"]) == 0) {
            continue;
        }
        let is = |field: &str| status.get(field) == Some(&Value::Bool(true));
        if is_sidecar && is("started") {
            summary.ready += usize::from(is("ready"));
            continue;
        }
        let waiting = text(status, &["state", "waiting", "reason"]);
        summary.reason = match terminated {
            Some(terminated) => format!("Init:{}", end(terminated)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{at}/{count}"),
        };
        return (true, of_sidecars);
    }
    (false, of_sidecars)
}

/// How a container ended.
fn end(terminated: &Value) -> String {
    match (text(terminated, &["reason"]), number(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// The containers, last first: what the first of them is up to has the final word.
fn containers<'a>(pod: &'a Value, summary: &mut Summary<'a>) {
    let (mut is_running, mut failure) = (false, String::new());
    for status in list(pod, &["status", "containerStatuses"]).rev() {
        summary.restarts += number(status, &["restartCount"]);
        summary.last_restart = summary.last_restart.max(last_finish(status));
        let waiting = text(status, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if let Some(terminated) = status.at(&["state", "terminated"]) {
            summary.reason = end(terminated);
            if number(terminated, &["exitCode"]) != 0 {
                failure.clone_from(&summary.reason);
            }
        } else if status.get("ready") == Some(&Value::Bool(true)) && status.at(&["state", "running"]).is_some() {
            is_running = true;
            summary.ready += 1;
        }
    }
    // One container that is done does not make a pod that is done.
    if summary.reason == "Completed" {
        if is_running && has_condition(pod, "Ready") {
            summary.reason = "Running".to_owned();
        } else if !failure.is_empty() {
            summary.reason = failure;
        } else if is_running {
            summary.reason = "NotReady".to_owned();
        }
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates: Vec<&str> = list(pod, &["spec", "readinessGates"]).map(|gate| text(gate, &["conditionType"])).collect();
    if gates.is_empty() {
        return NONE.to_owned();
    }
    format!("{}/{}", gates.iter().filter(|gate| has_condition(pod, gate)).count(), gates.len())
}
