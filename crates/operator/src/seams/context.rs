//! What every controller is given.

use std::sync::Arc;

use k8s_openapi::{NamespaceResourceScope, api::core::v1::ObjectReference};
use kube::{
    Api, Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::{Clock, Dns, Engines, HttpsEngines, Kafkas, Services, TlsKafkas};
use crate::settings::Settings;

/// The name under which the operator writes fields and reports Events.
pub const NAME: &str = "evenkeel-operator";

/// What every controller is given. Nothing about one resource is kept here but connections.
#[derive(Clone)]
pub struct Context {
    /// The Kubernetes API.
    pub client: Client,
    /// How services are found.
    pub services: Arc<dyn Services>,
    /// How Kafka is spoken with.
    pub kafkas: Arc<dyn Kafkas>,
    /// How engines are spoken with.
    pub engines: Arc<dyn Engines>,
    /// What time it is.
    pub clock: Clock,
    /// How the operator was started.
    pub settings: Arc<Settings>,
    recorder: Recorder,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Context")
            .field("clock", &self.clock)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// As in production: services by DNS, Kafka and engines over TLS. A local run replaces [`Context::services`] by
    /// [`Context::finding`], tests replace more.
    pub fn new(client: Client, settings: Settings) -> Self {
        let reporter = Reporter { controller: NAME.to_owned(), instance: Some(settings.identity.clone()) };
        let recorder = Recorder::new(client.clone(), reporter);
        let services: Arc<dyn Services> = Arc::new(Dns);
        Self {
            kafkas: Arc::new(TlsKafkas::new(Arc::clone(&services))),
            engines: Arc::new(HttpsEngines::new(Arc::clone(&services))),
            services,
            client,
            clock: Clock::Machine,
            settings: Arc::new(settings),
            recorder,
        }
    }

    /// The same, with services found in another way.
    #[must_use]
    pub fn finding(self, services: Arc<dyn Services>) -> Self {
        Self {
            kafkas: Arc::new(TlsKafkas::new(Arc::clone(&services))),
            engines: Arc::new(HttpsEngines::new(Arc::clone(&services))),
            services,
            ..self
        }
    }

    /// What to watch: each of the operator's namespaces, or all at once (None).
    pub fn scopes(&self) -> Vec<Option<String>> {
        match self.settings.namespaces.as_slice() {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        }
    }

    /// The resources of one of [`Context::scopes`].
    pub fn api<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Tells a person that something happened to `about`. An Event that cannot be written is logged and forgotten: what
    /// it tells of has happened all the same.
    pub async fn tell<K: Resource<DynamicType = ()>>(&self, about: &K, happened: &Happening) {
        let event = Event {
            type_: if happened.is_warning { EventType::Warning } else { EventType::Normal },
            reason: happened.reason.to_owned(),
            note: Some(happened.note.clone()),
            action: happened.reason.to_owned(),
            // Events that differ in nothing but their note are counted as one.
            secondary: happened.pod.as_ref().map(|pod| ObjectReference {
                kind: Some("Pod".to_owned()),
                namespace: about.meta().namespace.clone(),
                name: Some(pod.clone()),
                ..ObjectReference::default()
            }),
        };
        if let Err(error) = self.recorder.publish(&event, &about.object_ref(&())).await {
            tracing::warn!(%error, reason = happened.reason, note = happened.note, "an Event could not be written");
        }
    }
}

/// What an Event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Whether a person should look.
    pub is_warning: bool,
    /// What happened, in one word.
    pub reason: &'static str,
    /// What happened, in a sentence.
    pub note: String,
    /// The pod that it happened to, if it is about one.
    pub pod: Option<String>,
}

impl Happening {
    /// Something as it should be.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { is_warning: false, reason, note: note.into(), pod: None }
    }

    /// Something that a person should look at.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { is_warning: true, reason, note: note.into(), pod: None }
    }

    /// The same, about this pod.
    #[must_use]
    pub fn of_pod(self, pod: &str) -> Self {
        Self { pod: Some(pod.to_owned()), ..self }
    }
}
