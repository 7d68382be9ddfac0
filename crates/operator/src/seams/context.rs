//! What every controller is given.

use std::{borrow::Cow, sync::Arc};

use evenkeel_kafka::connect::Connector;
use evenkeel_rest::client::Room;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::{Clock, Dns, Engines, HttpsEngines, Kafkas, Services, TlsKafkas, sparing::sparing};
use crate::{figures::Figures, settings::Settings};

/// The name under which the operator writes fields and reports Events.
pub const NAME: &str = "evenkeel-operator";

/// The longest note that an Event may have, in bytes.
const LONGEST_NOTE: usize = 1024;

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
    /// Where large answers of engines are read, one at a time, whoever they come from.
    pub room: Room,
    /// What time it is.
    pub clock: Clock,
    /// How the operator was started.
    pub settings: Arc<Settings>,
    /// What is counted.
    pub figures: Arc<Figures>,
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
        let services: Arc<dyn Services> = Arc::new(Dns);
        Self {
            kafkas: Arc::new(TlsKafkas::new(Arc::clone(&services))),
            engines: Arc::new(HttpsEngines::new(Arc::clone(&services))),
            services,
            client,
            room: Room::default(),
            clock: Clock::Machine,
            figures: Arc::new(Figures::new(settings.selector.as_deref())),
            settings: Arc::new(settings),
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

    /// The same, with names of services and pods dialled in another way, such as over pipes in memory.
    #[must_use]
    pub fn dialling(self, way: &Arc<dyn Connector>) -> Self {
        Self {
            kafkas: Arc::new(TlsKafkas::over(Arc::clone(way))),
            engines: Arc::new(HttpsEngines::over(Arc::clone(way))),
            ..self
        }
    }

    /// The same for controllers that take turns among themselves, but not with others, when they use the Kubernetes API.
    #[must_use]
    pub fn taking_turns(self) -> Self {
        Self { client: sparing(self.client), ..self }
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
            reason: happened.reason.to_string(),
            note: Some(shortened(&happened.note)),
            action: happened.reason.to_string(),
            secondary: None,
        };
        // A recorder folds what has the same reason into one Event, with the words of the first. These tell of different
        // brokers, proposals and failures, so each has a recorder of its own.
        let reporter = Reporter { controller: NAME.to_owned(), instance: Some(self.settings.identity.clone()) };
        if let Err(error) = Recorder::new(self.client.clone(), reporter).publish(&event, &about.object_ref(&())).await {
            tracing::warn!(%error, reason = %happened.reason, note = happened.note, "an Event could not be written");
        }
    }
}

/// As much of a note as an Event takes.
fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    const MARK: &str = "…";
    let end = note.floor_char_boundary(LONGEST_NOTE - MARK.len());
    format!("{}{MARK}", &note[..end])
}

/// What an Event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Whether a person should look.
    pub is_warning: bool,
    /// What happened, in one word.
    pub reason: Cow<'static, str>,
    /// What happened, in a sentence.
    pub note: String,
}

impl Happening {
    /// Something as it should be.
    pub fn normal(reason: impl Into<Cow<'static, str>>, note: impl Into<String>) -> Self {
        Self { is_warning: false, reason: reason.into(), note: note.into() }
    }

    /// Something that a person should look at.
    pub fn warning(reason: impl Into<Cow<'static, str>>, note: impl Into<String>) -> Self {
        Self { is_warning: true, reason: reason.into(), note: note.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_to_what_an_event_takes() {
        assert_eq!(shortened("short"), "short");
        let cut = shortened(&"ä".repeat(LONGEST_NOTE));
        assert!(cut.len() <= LONGEST_NOTE && cut.ends_with("ä…"), "{} bytes", cut.len());
    }
}
