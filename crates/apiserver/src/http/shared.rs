//! What all requests share: the API behind one lock, the clock, and the bells that wake watchers.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::frames::Frames;
use super::logs::LogSource;
use super::moment::{Moments, Real};
use super::openapi::Documents;
use super::version::KubernetesVersion;
use crate::api::{Api, Moment, Target, is_crd};
use crate::refusal::Refusal;
use crate::resource::ResourceId;
use crate::resource::crd::Examined;

/// How many definitions are examined at a time. Each may take half a second and tens of megabytes.
const EXAMINERS: usize = 2;

/// How often a write of a definition is attempted that others keep changing, as often as the original does.
const ATTEMPTS: usize = 5;

/// How the server presents itself and where its time comes from.
#[derive(Debug)]
pub struct Options {
    /// What `/version` says.
    pub version: KubernetesVersion,
    /// Source of time and chance.
    pub moments: Box<dyn Moments>,
    /// Source of what containers print; nothing if no containers run.
    pub logs: Option<Arc<dyn LogSource>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { version: KubernetesVersion::default(), moments: Box::new(Real), logs: None }
    }
}

/// The state of a running server.
///
/// The lock around the API is never held across an `await`, and a panic under it does not poison it: the request that
/// panicked is answered with 500, the others go on.
#[derive(Debug)]
pub struct Shared {
    api: RwLock<Api>,
    options: Options,
    bells: Mutex<HashMap<ResourceId, watch::Sender<()>>>,
    stopping: watch::Sender<bool>,
    first_request: u128,
    requests: AtomicU64,
    watches: AtomicUsize,
    examiners: Arc<Semaphore>,
    pub(super) frames: Frames,
    pub(super) documents: Documents,
}

impl Shared {
    /// A fresh, empty API.
    pub fn new(options: Options) -> Arc<Self> {
        let api = Api::new(options.moments.moment());
        let first_request = options.moments.entropy();
        Arc::new(Self {
            api: RwLock::new(api),
            options,
            bells: Mutex::default(),
            stopping: watch::Sender::new(false),
            first_request,
            requests: AtomicU64::new(0),
            watches: AtomicUsize::new(0),
            examiners: Arc::new(Semaphore::new(EXAMINERS)),
            frames: Frames::default(),
            documents: Documents::default(),
        })
    }

    /// Looks at the API. `look` must be quick: writers wait.
    pub fn read<T>(&self, look: impl FnOnce(&Api) -> T) -> T {
        look(&self.api.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the API, and wakes who watches what changed.
    pub fn write<T>(&self, change: impl FnOnce(&mut Api, Moment) -> T) -> T {
        let mut api = self.api.write().unwrap_or_else(PoisonError::into_inner);
        // The moment is taken under the lock, so that timestamps grow with revisions.
        let outcome = change(&mut api, self.options.moments.moment());
        let touched = api.take_touched();
        drop(api);
        self.ring(&touched);
        outcome
    }

    /// Writes an object. What is costly about definitions is done with nothing locked: a slow one holds up nobody, but
    /// for other definitions.
    pub(super) async fn write_object<B: Clone, T>(
        &self,
        target: &Target,
        body: B,
        write: impl Fn(&mut Api, B, Moment) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if !is_crd(&target.resource) {
            return self.write(|api, moment| write(api, body, moment));
        }
        let mut examined = None;
        for _ in 0..ATTEMPTS {
            let known = examined.take();
            let outcome = self.write(|api, moment| api.attempt(known, |api| write(api, body.clone(), moment)));
            match outcome {
                Ok(outcome) => return outcome,
                Err(definition) => examined = Some(self.examine(definition).await),
            }
        }
        Err(Refusal::new(409, "Conflict", "the definition is being changed by others; please try again"))
    }

    async fn examine(&self, definition: Value) -> Examined {
        let turn = Arc::clone(&self.examiners).acquire_owned().await.expect("examiners are never sent away");
        let examined = tokio::task::spawn_blocking(move || {
            // The work goes on though the request is gone, and so must its turn.
            let _turn = turn;
            Examined::of(&definition)
        });
        let examined = examined.await;
        // A panic in there is this request's own.
        examined.unwrap_or_else(|failure| std::panic::resume_unwind(failure.into_panic()))
    }

    fn ring(&self, touched: &BTreeSet<ResourceId>) {
        if touched.is_empty() {
            return;
        }
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        // A changed definition may end watches of its resource, whose bell nobody rings any more.
        if touched.iter().any(|id| &*id.plural == "customresourcedefinitions") {
            bells.values().for_each(|bell| bell.send_replace(()));
            return;
        }
        for bell in touched.iter().filter_map(|id| bells.get(id)) {
            bell.send_replace(());
        }
    }

    /// Rings whenever the resource has changed. There are at most as many bells as resources that somebody watches, and
    /// the one that was asked for last.
    pub(super) fn bell(&self, id: &ResourceId) -> watch::Receiver<()> {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|known, bell| known == id || !bell.is_closed());
        bells.entry(id.clone()).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// The time, for what is not a write.
    pub(super) fn now(&self) -> Timestamp {
        self.options.moments.now()
    }

    /// A number for each request, starting anywhere.
    pub(super) fn request_number(&self) -> u128 {
        let count = self.requests.fetch_add(1, Ordering::Relaxed);
        self.first_request.wrapping_add(u128::from(count))
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    pub(super) fn watch_begins(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn watch_ends(&self) {
        self.watches.fetch_sub(1, Ordering::Relaxed);
    }

    /// Where logs come from.
    pub(super) fn logs(&self) -> Option<&dyn LogSource> {
        self.options.logs.as_deref()
    }

    /// What `/version` says.
    pub(super) fn version(&self) -> &KubernetesVersion {
        &self.options.version
    }

    /// Ends all watches, now and from now on, so that connections can drain.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::CONTENT_TYPE;
    use serde_json::json;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::http::tests::{create, get, send, server};

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    fn definition(property: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.t.io"},
            "spec": {"group": "t.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {property: {"type": "string"}}}}}]},
        })
    }

    /// Sends a request and lets it go as far as it gets without an examiner.
    async fn begun(shared: &Arc<Shared>, request: http::request::Builder, body: Value) -> JoinHandle<u16> {
        let shared = Arc::clone(shared);
        let sent = tokio::spawn(async move { send(&shared, request, body.to_string()).await.status().as_u16() });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!sent.is_finished(), "it waits for an examiner");
        sent
    }

    #[tokio::test]
    async fn a_definition_that_takes_long_holds_up_nobody() {
        let shared = server();
        let busy = shared.examiners.acquire_many(EXAMINERS as u32).await.expect("examiners");
        let waiting = begun(&shared, Request::post(DEFINITIONS), definition("a")).await;
        create(&shared, "meanwhile").await;
        assert_eq!(get(&shared, &format!("{DEFINITIONS}/widgets.t.io")).await.0, 404, "nothing was written");
        drop(busy);
        assert_eq!(waiting.await.expect("an answer"), 201);
        assert_eq!(get(&shared, "/apis/t.io/v1/namespaces/default/widgets").await.0, 200);
    }

    #[test]
    fn nobody_keeps_a_bell_that_nobody_hears() {
        let shared = server();
        let heard = shared.bell(&ResourceId::new("kept.io", "widgets"));
        for n in 0..100 {
            shared.bell(&ResourceId::new(&format!("g{n}.io"), "widgets"));
        }
        assert_eq!(shared.bells.lock().expect("the bells").len(), 2);
        shared.ring(&BTreeSet::from([ResourceId::new("kept.io", "widgets")]));
        assert!(heard.has_changed().expect("a bell"));
    }

    #[test]
    fn a_request_that_is_gone_keeps_its_turn_while_its_definition_is_examined() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let shared = server();
            let (go_on, gate) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || gate.recv());
            let gone = begun(&shared, Request::post(DEFINITIONS), definition("a")).await;
            gone.abort();
            assert!(gone.await.is_err(), "nobody waits for an answer");
            assert_eq!(shared.examiners.available_permits(), EXAMINERS - 1);
            go_on.send(()).expect("somebody waits");
            busy.await.expect("an end").expect("a word");
            let all = shared.examiners.acquire_many(EXAMINERS as u32).await;
            assert!(all.is_ok(), "it came back");
        });
    }

    #[tokio::test]
    async fn what_others_change_while_a_definition_is_examined_stays_changed() {
        let shared = server();
        assert_eq!(send(&shared, Request::post(DEFINITIONS), definition("a").to_string()).await.status(), 201);
        let one = format!("{DEFINITIONS}/widgets.t.io");
        let patch = || Request::patch(&one).header(CONTENT_TYPE, "application/merge-patch+json");
        let busy = shared.examiners.acquire_many(EXAMINERS as u32).await.expect("examiners");
        let waiting = begun(&shared, patch(), json!({"spec": definition("b")["spec"]})).await;
        // Its schemas are known already, so this one waits for nobody.
        let labels = json!({"metadata": {"labels": {"by": "another"}}});
        assert_eq!(send(&shared, patch(), labels.to_string()).await.status(), 200);
        drop(busy);
        assert_eq!(waiting.await.expect("an answer"), 200);
        let stored = get(&shared, &one).await.1;
        assert_eq!(stored["metadata"]["labels"], json!({"by": "another"}));
        let schema = &stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(schema["properties"]["b"].is_object(), "{schema}");
    }
}
