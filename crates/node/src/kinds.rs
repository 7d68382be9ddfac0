//! Which kinds there are, followed as definitions come and go.
//!
//! Built-in kinds are discovered once. Custom kinds come from watching their definitions rather than from discovery,
//! which trails behind by seconds on a real server.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::discovery::{ApiCapabilities, Scope, verbs};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Discovery, ResourceExt, core::ApiResource};
use tokio::sync::watch;

use crate::patience::patience;

/// One kind whose objects can be listed, watched and deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// How to address it, in the version the server prefers.
    pub resource: ApiResource,
    /// Its objects live in namespaces.
    pub namespaced: bool,
}

/// Group and plural: what makes a kind the same over versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId {
    /// API group; empty for the core group.
    pub group: String,
    /// Lower-case plural.
    pub plural: String,
}

impl Kind {
    /// What identifies it.
    pub fn id(&self) -> KindId {
        KindId { group: self.resource.group.clone(), plural: self.resource.plural.clone() }
    }
}

/// All kinds at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kinds(BTreeMap<KindId, Kind>);

impl Kinds {
    /// In order of group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.values()
    }

    /// Whether there is such a kind.
    pub fn contains(&self, id: &KindId) -> bool {
        self.0.contains_key(id)
    }

    /// All but events.
    pub fn without_events(&self) -> Self {
        let event = |kind: &Kind| {
            kind.resource.kind == "Event" && ["", "events.k8s.io"].contains(&kind.resource.group.as_str())
        };
        Self(self.0.iter().filter(|(_, kind)| !event(kind)).map(|(id, kind)| (id.clone(), kind.clone())).collect())
    }

    /// The kind that a reference names by group and kind.
    pub fn find(&self, group: &str, kind: &str) -> Option<&Kind> {
        self.0.values().find(|known| known.resource.group == group && known.resource.kind == kind)
    }
}

/// What is known: nothing until the server has been asked once.
pub type Known = watch::Receiver<Option<Arc<Kinds>>>;

/// A future that follows the kinds for as long as it is polled, and where it writes them.
pub fn follow(client: Client) -> (impl Future<Output = ()>, Known) {
    let (write, read) = watch::channel(None);
    (track(client, write), read)
}

async fn track(client: Client, write: watch::Sender<Option<Arc<Kinds>>>) {
    let builtin = discover(&client).await;
    let mut custom: BTreeMap<KindId, Kind> = BTreeMap::new();
    let mut listed = BTreeMap::new();
    let definitions = Api::<CustomResourceDefinition>::all(client);
    let mut events = watcher(definitions, watcher::Config::default()).backoff(patience()).boxed();
    while let Some(event) = events.next().await {
        match event {
            // Mid-list nothing is known yet: whoever took the kinds at the start for all of them would miss some.
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(definition)) => {
                listed.extend(kind_of(&definition).map(|kind| (kind.id(), kind)));
                continue;
            }
            Ok(Event::InitDone) => custom = std::mem::take(&mut listed),
            Ok(Event::Apply(definition)) => match kind_of(&definition) {
                Some(kind) => drop(custom.insert(kind.id(), kind)),
                None => drop(custom.remove(&id_of(&definition))),
            },
            Ok(Event::Delete(definition)) => drop(custom.remove(&id_of(&definition))),
            Err(error) => {
                tracing::debug!(%error, "the watch of definitions starts again");
                continue;
            }
        }
        publish(&write, &builtin, &custom);
    }
}

fn publish(write: &watch::Sender<Option<Arc<Kinds>>>, builtin: &Kinds, custom: &BTreeMap<KindId, Kind>) {
    let mut kinds = builtin.clone();
    kinds.0.extend(custom.clone());
    write.send_if_modified(|known| {
        let changed = known.as_deref() != Some(&kinds);
        if changed {
            *known = Some(Arc::new(kinds));
        }
        changed
    });
}

/// The built-in kinds: everything served that no definition made.
async fn discover(client: &Client) -> Kinds {
    let mut waits = patience();
    loop {
        match discover_once(client).await {
            Ok(kinds) => return kinds,
            Err(error) => tracing::warn!(%error, "could not discover the kinds of the server; trying again"),
        }
        tokio::time::sleep(waits.next().unwrap_or_default()).await;
    }
}

async fn discover_once(client: &Client) -> kube::Result<Kinds> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone()).list(&Default::default()).await?;
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        Err(_) => Discovery::new(client.clone()).run().await?,
    };
    let resources = discovery.groups().flat_map(|group| group.recommended_resources());
    let resources = resources.filter(|(_, can)| usable(can));
    let kinds = resources.map(|(resource, can)| Kind { resource, namespaced: can.scope == Scope::Namespaced });
    let mut kinds: BTreeMap<_, _> = kinds.map(|kind| (kind.id(), kind)).collect();
    for definition in definitions {
        kinds.remove(&id_of(&definition));
    }
    Ok(Kinds(kinds))
}

/// The kinds that definitions serve right now, for whom what was followed so far is not recent enough.
pub(crate) async fn defined(client: &Client) -> kube::Result<Vec<Kind>> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone()).list(&Default::default()).await?;
    Ok(definitions.iter().filter_map(kind_of).collect())
}

fn usable(can: &ApiCapabilities) -> bool {
    [verbs::LIST, verbs::WATCH, verbs::DELETE].iter().all(|verb| can.supports_operation(verb))
}

fn id_of(definition: &CustomResourceDefinition) -> KindId {
    KindId { group: definition.spec.group.clone(), plural: definition.spec.names.plural.clone() }
}

/// The kind that a definition serves, once it does.
fn kind_of(definition: &CustomResourceDefinition) -> Option<Kind> {
    let status = definition.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if !conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
        tracing::debug!(definition = definition.name_any(), "not established yet");
        return None;
    }
    let spec = &definition.spec;
    let served = || spec.versions.iter().filter(|version| version.served);
    let version = served().find(|version| version.storage).or_else(|| served().next())?;
    let resource = ApiResource {
        group: spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", spec.group, version.name),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    };
    Some(Kind { resource, namespaced: spec.scope == "Namespaced" })
}
