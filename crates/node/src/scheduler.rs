//! Which node a pod goes to.
//!
//! [`choose`] decides. Kafka's pods go round the nodes by their number, so that the same cluster has the same racks
//! whenever it is started; other pods go where the fewest of their owner are, then the fewest at all. A selector or a
//! required affinity is kept to. Nobody counts cores or bytes: it is one laptop.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodCondition};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::nodes::{Nodes, is_ready};
use crate::patience::{Again, Troubles};
use crate::pods;
use crate::watched::{Watched, key};

/// The label that carries the name, and so the number, of a Kafka pod.
const POD_NAME: &str = "strimzi.io/pod-name";

/// The scheduler that pods ask for who do not say.
const OURS: &str = "default-scheduler";

/// Binds pods that have no node, until dropped. Nothing is bound while one of `ours` is not registered yet: a Kafka pod
/// that came between the first node and the last would have another rack than at the next start.
pub async fn run(client: Client, ours: Nodes, clock: Clock) {
    let (mut pods, mut nodes) = (Watched::<Pod>::all(&client), Watched::<Node>::all(&client));
    let (mut again, mut troubles) = (Again::default(), Troubles::default());
    loop {
        tokio::select! {
            () = pods.news() => (),
            () = nodes.news() => (),
            () = again.due() => (),
        }
        if pods.is_complete() && nodes.is_complete() && ours.are_ready(|name| nodes.get("", name)) {
            let known: Vec<_> = nodes.iter().cloned().collect();
            let nodes: Vec<&Node> = known.iter().map(AsRef::as_ref).collect();
            let waiting: Vec<_> = pods.iter().filter(|pod| waits_for_us(pod)).cloned().collect();
            for pod in waiting {
                let of = key(pod.as_ref());
                if !troubles.hold(&of) {
                    let done = schedule(&client, &pod, &mut pods, &nodes, &clock).await;
                    troubles.after("scheduler", &of, done);
                }
            }
            again.at(troubles.next());
        }
    }
}

/// Finds a node for one pod, or says in its status that there is none.
async fn schedule(
    client: &Client,
    pod: &Pod,
    pods: &mut Watched<Pod>,
    nodes: &[&Node],
    clock: &Clock,
) -> kube::Result<()> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let api = Api::<Pod>::namespaced(client.clone(), &namespace);
    let outcome = match choose(pod, nodes, pods.iter().map(AsRef::as_ref)) {
        Ok(node) => {
            bind(client, &namespace, &name, &pod.uid().unwrap_or_default(), &node).await?;
            api.get_opt(&name).await
        }
        Err(why) => match unschedulable(pod, &why, clock) {
            Some(status) => {
                let patch = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": status}));
                api.patch_status(&name, &PatchParams::default(), &patch).await.map(Some)
            }
            None => Ok(None),
        },
    };
    match outcome {
        Ok(written) => written.into_iter().for_each(|pod| pods.wrote(pod)),
        Err(kube::Error::Api(status)) if status.is_not_found() => (),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn waits_for_us(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let bound = spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    let ours = spec.and_then(|spec| spec.scheduler_name.as_deref()).is_none_or(|scheduler| scheduler == OURS);
    // Whoever put a gate there takes it away when the pod may go.
    let gated = spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    ours && !bound && !gated && pods::is_active(pod)
}

/// A pod is bound by a request of its own: its node cannot be written otherwise.
async fn bind(client: &Client, namespace: &str, pod: &str, uid: &str, node: &str) -> kube::Result<()> {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding");
    let request = http::Request::post(path).header("content-type", "application/json").body(binding.to_string().into());
    match client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
        // It is gone, or somebody else has bound it.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}

/// The status of a pod that no node fits, unless it says so already.
fn unschedulable(pod: &Pod, why: &str, clock: &Clock) -> Option<Value> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let said = |condition: &PodCondition| {
        condition.type_ == "PodScheduled" && condition.status == "False" && condition.message.as_deref() == Some(why)
    };
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastTransitionTime": clock.stamp(),
    });
    (!conditions.iter().any(said)).then(|| json!({"conditions": [condition]}))
}

/// The node for a pod, or why there is none, in the original's words.
pub fn choose<'a>(pod: &Pod, nodes: &[&Node], others: impl Iterator<Item = &'a Pod>) -> Result<String, String> {
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for node in nodes {
        match refusal(pod, node) {
            Some(why) => *refusals.entry(why).or_default() += 1,
            None => fitting.push(node.name_any()),
        }
    }
    fitting.sort();
    if fitting.is_empty() {
        let reasons: Vec<_> = refusals.iter().map(|(why, count)| format!("{count} node(s) {why}")).collect();
        let reasons = if nodes.is_empty() { "no nodes available to schedule pods".into() } else { reasons.join(", ") };
        return Err(format!("0/{} nodes are available: {reasons}.", nodes.len()));
    }
    if let Some(number) = number(pod) {
        let turn = usize::try_from(number % fitting.len() as u64).unwrap_or_default();
        return Ok(fitting.swap_remove(turn));
    }
    let owner = pods::controller(pod);
    let mut load: BTreeMap<&str, (usize, usize)> = fitting.iter().map(|node| (node.as_str(), (0, 0))).collect();
    for other in others.filter(|other| pods::is_active(other)) {
        let node = other.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        if let Some((of_owner, all)) = load.get_mut(node) {
            *all += 1;
            *of_owner += usize::from(owner.is_some() && pods::controller(other) == owner);
        }
    }
    let least = load.into_iter().min_by_key(|(node, load)| (*load, *node)).map(|(node, _)| node.to_owned());
    least.ok_or_else(|| "no nodes available to schedule pods".to_owned())
}

/// The number at the end of a Kafka pod's name.
fn number(pod: &Pod) -> Option<u64> {
    let name = pod.labels().get(POD_NAME)?;
    name.rsplit_once('-')?.1.parse().ok()
}

fn refusal(pod: &Pod, node: &Node) -> Option<&'static str> {
    if !is_ready(node) || node.metadata.deletion_timestamp.is_some() {
        return Some("were not ready");
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default() {
        return Some("were unschedulable");
    }
    let spec = pod.spec.as_ref()?;
    let selected = spec.node_selector.iter().flatten().all(|(label, value)| node.labels().get(label) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let fits = selected && required.is_none_or(|required| selects(required, node));
    (!fits).then_some("didn't match Pod's node affinity/selector")
}

/// Any term will do; a term without a word selects nothing.
fn selects(selector: &NodeSelector, node: &Node) -> bool {
    let holds = |term: &NodeSelectorTerm| {
        let labels = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let by_label = |wanted: &NodeSelectorRequirement| holds(wanted, node.labels().get(&wanted.key));
        let by_field = |wanted: &NodeSelectorRequirement| {
            wanted.key == "metadata.name" && holds(wanted, node.metadata.name.as_ref())
        };
        (labels.len() + fields.len() > 0) && labels.iter().all(by_label) && fields.iter().all(by_field)
    };
    selector.node_selector_terms.iter().any(holds)
}

fn holds(wanted: &NodeSelectorRequirement, found: Option<&String>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = found.is_some_and(|found| values.contains(found));
    let compare = |fits: fn(i64, i64) -> bool| {
        let number = |text: &String| text.parse::<i64>().ok();
        found.and_then(number).zip(values.first().and_then(number)).is_some_and(|(found, limit)| fits(found, limit))
    };
    match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compare(|found, limit| found > limit),
        "Lt" => compare(|found, limit| found < limit),
        _ => false,
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
