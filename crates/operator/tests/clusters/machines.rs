//! What a kubelet and the Deployment controller would do, as far as the operator can tell; brokers are simulated, and
//! live and die with their pods.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_kafka as kafka;
use evenkeel_operator::seams::{BoxFuture, ClusterRef, Kafkas, Trust, Unreachable};
use evenkeel_sim::cluster::BrokerSpec;
use evenkeel_sim::serve::{Pipes, World};
use evenkeel_sim::{BrokerId, Cluster, Options};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::sleep;

/// Pods by name: their uid, and their broker if they are one.
type Running = BTreeMap<String, (String, Option<i32>)>;

/// Brokers of one cluster.
#[derive(Clone)]
pub(crate) struct Machines {
    pub(crate) world: World,
    pipes: Pipes,
    running: Arc<Mutex<Running>>,
    /// Pods that do not become ready.
    pub(crate) stuck: Arc<Mutex<Vec<String>>>,
}

impl fmt::Debug for Machines {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Machines")
    }
}

impl Machines {
    pub(crate) fn new() -> Self {
        let world = World::new(Cluster::new(Options { session_timeout: 2_000, ..Options::default() }, []));
        let pipes = Pipes::new(world.clone());
        Self { world, pipes, running: Arc::default(), stuck: Arc::default() }
    }

    /// Runs the pods of a namespace, until dropped.
    pub(crate) async fn run(self, client: Client, namespace: &str, now: impl Fn() -> Timestamp) {
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let deployments = Api::<Deployment>::namespaced(client, namespace);
        loop {
            self.tend_deployments(&deployments, &pods).await;
            self.tend_pods(&pods, now()).await;
            sleep(Duration::from_millis(250)).await;
        }
    }

    async fn tend_pods(&self, pods: &Api<Pod>, now: Timestamp) {
        let there = pods.list(&Default::default()).await.unwrap().items;
        let gone: Vec<_> = {
            let mut running = self.running.lock().unwrap();
            let lives = |name: &String, uid: &String| {
                there.iter().any(|pod| pod.name_any() == *name && pod.uid().as_ref() == Some(uid) && !is_going(pod))
            };
            let gone: Vec<_> =
                running.iter().filter(|(name, (uid, _))| !lives(name, uid)).map(|(n, r)| (n.clone(), r.1)).collect();
            gone.iter().for_each(|(name, _)| drop(running.remove(name)));
            gone
        };
        for (_, broker) in gone {
            if let Some(id) = broker {
                self.world.with(|cluster| cluster.stop_broker(BrokerId(id)));
            }
        }
        for pod in there {
            let name = pod.name_any();
            if is_going(&pod) {
                let _ = pods.delete(&name, &DeleteParams::default().grace_period(0)).await;
                continue;
            }
            let is_stuck = self.stuck.lock().unwrap().contains(&name);
            if is_stuck || self.running.lock().unwrap().contains_key(&name) {
                continue;
            }
            let is_broker = pod.labels().get("strimzi.io/broker-role").is_some_and(|role| role == "true");
            let id = is_broker.then(|| name.rsplit('-').next().unwrap().parse().unwrap());
            if let Some(id) = id {
                self.start(id);
            }
            self.running.lock().unwrap().insert(name.clone(), (pod.uid().unwrap(), id));
            let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": now.to_string()});
            let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
            let _ = pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        }
    }

    fn start(&self, id: i32) {
        let id = BrokerId(id);
        let is_known = self.world.with(|cluster| {
            let is_known = cluster.broker_ids().contains(&id);
            if is_known {
                cluster.start_broker(id)
            } else {
                cluster.add_broker(BrokerSpec::new(id.0))
            }
            is_known
        });
        if !is_known {
            self.pipes.open(id);
        }
    }

    async fn tend_deployments(&self, deployments: &Api<Deployment>, pods: &Api<Pod>) {
        for deployment in deployments.list(&Default::default()).await.unwrap().items {
            let spec = deployment.spec.clone().unwrap();
            let generation = deployment.metadata.generation.unwrap();
            let name = format!("{}-{generation}", deployment.name_any());
            let own = pods.list(&Default::default()).await.unwrap().items.into_iter().filter(|pod| {
                pod.metadata
                    .owner_references
                    .iter()
                    .flatten()
                    .any(|owner| Some(&owner.uid) == deployment.uid().as_ref())
            });
            let (current, old): (Vec<_>, Vec<_>) = own.partition(|pod| pod.name_any() == name);
            for pod in &old {
                let _ = pods.delete(&pod.name_any(), &DeleteParams::default()).await;
            }
            if old.is_empty() && current.is_empty() {
                let mut metadata = spec.template.metadata.unwrap_or_default();
                metadata.name = Some(name);
                metadata.owner_references = Some(vec![kube::Resource::controller_owner_ref(&deployment, &()).unwrap()]);
                let pod = Pod { metadata, spec: spec.template.spec, status: None };
                // Its namespace may be going.
                let _ = pods.create(&PostParams::default(), &pod).await;
            }
            let up = i32::from(current.iter().any(|pod| pod.status.as_ref().is_some_and(|it| it.conditions.is_some())));
            let status = json!({"observedGeneration": generation, "replicas": 1, "updatedReplicas": up,
                "availableReplicas": up, "readyReplicas": up});
            if serde_json::to_value(&deployment.status).unwrap() != status {
                let patch = Patch::Merge(json!({"status": status}));
                let _ = deployments.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await;
            }
        }
    }
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

impl Kafkas for Machines {
    fn client<'a>(&'a self, of: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        Box::pin(async move {
            let ids = self.world.look(|cluster| cluster.broker_ids());
            let alive = ids.into_iter().filter(|id| self.world.look(|cluster| cluster.is_reachable(*id)));
            let bootstrap: Vec<_> = alive.map(|id| self.pipes.address(id)).collect();
            if bootstrap.is_empty() {
                return Err(Unreachable::NoWay(of.clone()));
            }
            let mut settings = kafka::Settings::new(bootstrap);
            settings.patience = Duration::from_secs(10);
            Ok(kafka::Client::new(Arc::new(self.pipes.connector()), settings))
        })
    }

    fn forget(&self, _: &ClusterRef) {}
}
