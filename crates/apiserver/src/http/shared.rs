//! What all requests share: the API behind one lock, the clock, and the bells that wake watchers.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use jiff::Timestamp;
use tokio::sync::watch;

use super::frames::Frames;
use super::logs::LogSource;
use super::moment::{Moments, Real};
use super::openapi::Documents;
use super::version::KubernetesVersion;
use crate::api::{Api, Moment};
use crate::resource::ResourceId;

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

    /// Rings whenever the resource has changed. There are at most as many bells as resources were ever served.
    pub(super) fn bell(&self, id: &ResourceId) -> watch::Receiver<()> {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
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
