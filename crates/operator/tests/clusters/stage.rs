//! A Kubernetes without machines.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use evenkeel_api::crds;
use evenkeel_apiserver::http::moment::Simulated;
use evenkeel_apiserver::http::{Options, Shared, router};
use evenkeel_operator::seams::{Clock, Context};
use evenkeel_operator::settings::Settings;
use http::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::{ServiceExt, service_fn};

use crate::rights::Call;

pub(crate) const NAMESPACE: &str = "kafka";
pub(crate) const CLUSTER: &str = "my-cluster";
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Stage {
    /// A client that is not the operator's.
    pub(crate) client: Client,
    pub(crate) context: Context,
    server: Router,
    writes: Arc<Mutex<Vec<String>>>,
    calls: Arc<Mutex<BTreeSet<Call>>>,
    looks: Arc<AtomicUsize>,
}

/// When an operator dies: before this write, counted from 0, which is after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death(pub(crate) usize);

/// On which side of a write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moment {
    Before,
    After,
}

impl Stage {
    /// An API server with our kinds, a namespace, and the controllers that every cluster has.
    pub(crate) async fn new() -> Self {
        let stage = Self::deserted().await;
        stage.settle();
        stage
    }

    /// The same before anybody collects garbage and empties namespaces.
    pub(crate) async fn deserted() -> Self {
        Self::defined(crds()).await
    }

    /// The same with these definitions.
    pub(crate) async fn defined(definitions: Vec<CustomResourceDefinition>) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let server = router(Shared::new(Options { moments: Box::new(Simulated::new(start, 7)), ..Options::default() }));
        let client = Client::new(server.clone(), "default");
        let writes = Arc::new(Mutex::new(Vec::new()));
        let calls = Arc::new(Mutex::new(BTreeSet::new()));
        let looks = Arc::new(AtomicUsize::new(0));
        let (seen, asked, looked) = (Arc::clone(&writes), Arc::clone(&calls), Arc::clone(&looks));
        let behind = server.clone();
        let operators = service_fn(move |request: Request<kube::client::Body>| {
            let uri = request.uri();
            let asks = Call::all(request.method().as_str(), uri.path(), uri.query().unwrap_or_default());
            asked.lock().unwrap().extend(asks);
            // Only whoever looks at everything of a cluster asks for these, and watches, which are begun anew now and then.
            let watches = uri.query().is_some_and(|query| query.contains("watch=true"));
            if uri.path().ends_with("/serviceaccounts") && request.method() == Method::GET && !watches {
                looked.fetch_add(1, Ordering::SeqCst);
            }
            if request.method() != Method::GET {
                seen.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
            }
            behind.clone().oneshot(request)
        });
        let mut context = Context::new(Client::new(operators, "default"), Settings::default());
        context.clock = Clock::simulated(start);
        let stage = Self { client, context, server, writes, calls, looks };
        for crd in definitions {
            let api = Api::<CustomResourceDefinition>::all(stage.client.clone());
            api.create(&PostParams::default(), &crd).await.unwrap();
        }
        create(&Api::<Namespace>::all(stage.client.clone()), json!({"metadata": {"name": NAMESPACE}})).await;
        stage
    }

    /// Now they do.
    pub(crate) fn settle(&self) {
        tokio::spawn(evenkeel_node::run(self.client.clone(), pending()));
    }

    pub(crate) fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The API server itself.
    pub(crate) fn server(&self) -> Router {
        self.server.clone()
    }

    /// A client for an operator that dies; the other tells when it has.
    pub(crate) fn mortal(&self, death: Death) -> (Client, Arc<Notify>) {
        let writes = AtomicUsize::new(0);
        self.dying(move |_, _| (writes.fetch_add(1, Ordering::SeqCst) == death.0).then_some(Moment::Before))
    }

    /// One for an operator that dies at a write with this method, to a path that ends so.
    pub(crate) fn mortal_at(&self, moment: Moment, method: Method, path: &'static str) -> (Client, Arc<Notify>) {
        self.dying(move |by, to| (*by == method && to.ends_with(path)).then_some(moment))
    }

    /// `last` says of each write whether it is to be the last one.
    fn dying(&self, last: impl Fn(&Method, &str) -> Option<Moment> + Send + Sync + 'static) -> (Client, Arc<Notify>) {
        let (server, died, last) = (self.server.clone(), Arc::new(Notify::new()), Arc::new(last));
        let (dead, told) = (Arc::new(AtomicBool::new(false)), Arc::clone(&died));
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (server, last, dead, died) = (server.clone(), Arc::clone(&last), Arc::clone(&dead), Arc::clone(&died));
            async move {
                let is_write = request.method() != Method::GET;
                let moment = if is_write { last(request.method(), request.uri().path()) } else { None };
                let die = async || {
                    dead.store(true, Ordering::SeqCst);
                    died.notify_one();
                    pending::<()>().await;
                };
                if dead.load(Ordering::SeqCst) || moment == Some(Moment::Before) {
                    die().await;
                }
                let answer = server.oneshot(request).await;
                if dead.load(Ordering::SeqCst) || moment == Some(Moment::After) {
                    die().await;
                }
                answer
            }
        });
        (Client::new(service, "default"), told)
    }

    /// What the operator has written since this was last asked.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }

    /// How often the operator has looked at everything of a cluster.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    /// All that the operator has asked for.
    pub(crate) fn calls(&self) -> BTreeSet<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Says of a pod what a kubelet would.
    pub(crate) async fn tell_of(&self, pod: &str, phase: &str, ready: bool) {
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        self.api::<Pod>().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub(crate) async fn pods(&self) -> Vec<String> {
        let found = self.api::<Pod>().list(&Default::default()).await.unwrap().items;
        found.into_iter().filter_map(|pod| pod.metadata.name).collect()
    }
}

pub(crate) async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Resource<DynamicType: Default> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await.unwrap()
}

pub(crate) async fn patch<K>(api: &Api<K>, name: &str, value: Value)
where
    K: Resource<DynamicType: Default> + DeserializeOwned + Clone + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(value)).await.unwrap();
}

/// Waits, in simulated time, until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Long enough for everything that was going to happen.
pub(crate) async fn a_while() {
    sleep(Duration::from_secs(5)).await;
}
