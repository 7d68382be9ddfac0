//! What a kubelet and the Deployment controller would do, as far as the operator can tell; brokers are simulated, and
//! live and die with their pods.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_kafka as kafka;
use evenkeel_kafka::connect::{Connector, Memory};
use evenkeel_operator::seams::{BoxFuture, ClusterRef, Kafkas, Trust, Unreachable};
use evenkeel_sim::cluster::BrokerSpec;
use evenkeel_sim::serve::{Pipes, World};
use evenkeel_sim::{BrokerId, Cluster, Options};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
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
        let news = (News::of::<Pod>(&client, namespace), News::of::<Deployment>(&client, namespace));
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        let deployments = Api::<Deployment>::namespaced(client, namespace);
        loop {
            // Both are asked.
            if news.0.is_any() | news.1.is_any() {
                self.tend_deployments(&deployments, &pods).await;
                self.tend_pods(&pods, now()).await;
            }
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

    /// The process of a broker is started again, if its pod is there.
    pub(crate) fn revive(&self, id: BrokerId) {
        let runs = self.running.lock().unwrap().values().any(|(_, broker)| *broker == Some(id.0));
        if runs {
            self.world.with(|cluster| cluster.start_broker(id));
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
                metadata.owner_references = Some(vec![Resource::controller_owner_ref(&deployment, &()).unwrap()]);
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

/// Whether something has happened to objects of a kind: whoever looks at all of them four times a second although nothing has
/// makes a test slow.
pub(crate) struct News(Arc<AtomicBool>);

impl News {
    pub(crate) fn of<K>(client: &Client, namespace: &str) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + Send + 'static,
    {
        let all = Api::<PartialObjectMeta<K>>::namespaced(client.clone(), namespace);
        let news = Arc::new(AtomicBool::new(true));
        let (heard, mut all) = (Arc::clone(&news), watcher(all, watcher::Config::default()).boxed());
        tokio::spawn(async move {
            while all.next().await.is_some() {
                heard.store(true, Ordering::SeqCst);
            }
        });
        Self(news)
    }

    /// Whether there was anything since this was last asked.
    pub(crate) fn is_any(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

impl Machines {
    /// What dials brokers.
    pub(crate) fn connector(&self) -> Memory {
        self.pipes.connector()
    }

    /// A client that dials with this; none if nobody is up.
    pub(crate) fn client_over(&self, connector: Arc<dyn Connector>) -> Option<kafka::Client> {
        let ids = self.world.look(|cluster| cluster.broker_ids());
        let alive = ids.into_iter().filter(|id| self.world.look(|cluster| cluster.is_reachable(*id)));
        let bootstrap: Vec<_> = alive.map(|id| self.pipes.address(id)).collect();
        let mut settings = kafka::Settings::new(bootstrap);
        settings.patience = Duration::from_secs(10);
        (!settings.bootstrap.is_empty()).then(|| kafka::Client::new(connector, settings))
    }
}

impl Kafkas for Machines {
    fn client<'a>(&'a self, of: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        let client = self.client_over(Arc::new(self.connector()));
        Box::pin(async move { client.ok_or_else(|| Unreachable::NoWay(of.clone())) })
    }

    fn forget(&self, _: &ClusterRef) {}
}
