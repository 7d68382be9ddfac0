//! The nodes of a laptop: one for each zone, so that racks mean something.
//!
//! They are registered at the start and again should somebody delete them, and those that we made are removed at the
//! end. There is no heartbeat: nobody here would evict pods from a node that fell silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::patience::Again;
use crate::watched::Watched;

/// The label that says in which zone a node is.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Marks the nodes that we made.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "evenkeel-node");

/// The nodes' names and zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes(BTreeMap<String, String>);

impl Nodes {
    /// One node for each of these zones: `evenkeel-0` in the first, and so on.
    pub fn in_zones<Z: Into<String>>(zones: impl IntoIterator<Item = Z>) -> Self {
        let zones = zones.into_iter().enumerate();
        Self(zones.map(|(number, zone)| (format!("evenkeel-{number}"), zone.into())).collect())
    }

    /// Whether a node of that name is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether every one of them is registered and takes pods.
    pub(crate) fn are_ready<'a>(&self, known: impl Fn(&str) -> Option<&'a Arc<Node>>) -> bool {
        self.0.keys().all(|name| known(name).is_some_and(|node| is_ready(node)))
    }

    /// A new node as it is registered.
    fn registration(name: &str, zone: &str) -> Value {
        let labels = json!({
            "kubernetes.io/hostname": name, "kubernetes.io/os": std::env::consts::OS, ZONE: zone,
            MANAGED_BY.0: MANAGED_BY.1,
        });
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    }
}

impl Default for Nodes {
    /// Three zones, as three replicas want them.
    fn default() -> Self {
        Self::in_zones(["zone-0", "zone-1", "zone-2"])
    }
}

/// Keeps the nodes registered and ready, until dropped.
pub async fn run(client: Client, nodes: Nodes, clock: Clock) {
    let mut seen = Watched::<Node>::all(&client);
    let api = Api::<Node>::all(client);
    let mut again = Again::default();
    loop {
        tokio::select! {
            () = seen.news() => (),
            () = again.due() => (),
        }
        if seen.is_complete() {
            let round = register(&api, &mut seen, &nodes, &clock).await;
            again.after("nodes", round.map(|()| None));
        }
    }
}

async fn register(api: &Api<Node>, seen: &mut Watched<Node>, nodes: &Nodes, clock: &Clock) -> kube::Result<()> {
    for (name, zone) in &nodes.0 {
        if seen.get("", name).is_none() {
            let node = serde_json::from_value(Nodes::registration(name, zone)).map_err(kube::Error::SerdeError)?;
            match api.create(&PostParams::default(), &node).await {
                Ok(made) => seen.wrote(made),
                Err(kube::Error::Api(status)) if status.is_already_exists() => seen.wrote(api.get(name).await?),
                Err(error) => return Err(error),
            }
        }
        let node = seen.get("", name);
        if node.is_some_and(|node| !is_ready(node) && node.metadata.deletion_timestamp.is_none()) {
            let status = Patch::Merge(json!({"status": status(name, &clock.stamp())}));
            seen.wrote(api.patch_status(name, &PatchParams::default(), &status).await?);
        }
    }
    Ok(())
}

/// Removes the nodes that we made. Those that were there before stay.
pub async fn remove(client: Client, nodes: &Nodes) -> kube::Result<()> {
    let api = Api::<Node>::all(client);
    for name in nodes.0.keys() {
        let found = api.get_opt(name).await?;
        if found.is_some_and(|node| node.labels().get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1)) {
            match api.delete(name, &Default::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => (),
                other => drop(other?),
            }
        }
    }
    Ok(())
}

/// Whether a node takes pods.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status: &NodeStatus| status.conditions.as_deref());
    let conditions = conditions.unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn status(name: &str, now: &Time) -> Value {
    // Nobody here counts what pods ask for, so there is enough of everything.
    let plenty = json!({"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"});
    json!({
        "capacity": plenty, "allocatable": plenty,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the local node runs pods",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
        "nodeInfo": {
            "architecture": std::env::consts::ARCH, "operatingSystem": std::env::consts::OS,
            "kubeletVersion": concat!("evenkeel-", env!("CARGO_PKG_VERSION")), "kubeProxyVersion": "",
            "containerRuntimeVersion": "evenkeel", "osImage": "", "kernelVersion": "", "machineID": "",
            "systemUUID": "", "bootID": "",
        },
    })
}

/// Names of the zones of nodes that are ready, by the nodes' names.
pub(crate) fn zones<'a>(nodes: impl Iterator<Item = &'a Node>) -> BTreeMap<String, String> {
    nodes.filter_map(|node| Some((node.name_any(), node.labels().get(ZONE)?.clone()))).collect()
}
