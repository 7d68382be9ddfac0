//! What is there of one kind, as heard from a watch and as written by ourselves.
//!
//! A controller that decides from what it sees must not forget what it has just done: the watch says so only later, and
//! in between the same thing would be done twice. So every write's answer is put here at once ([`Watched::wrote`],
//! [`Watched::deleted`]), and what the watch tells after that is taken only if it is newer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::patience::patience;

/// Namespace and name; the namespace is empty for what has none.
pub(crate) type Key = (String, String);

/// Objects that a watch can bring.
pub(crate) trait Watchable:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static> Watchable for K {}

/// All objects of a kind.
pub(crate) struct Watched<K> {
    events: BoxStream<'static, Event<K>>,
    cache: Cache<K>,
}

impl<K: Watchable> Watched<K> {
    /// Watches the kind in all namespaces.
    pub(crate) fn all(client: &Client) -> Self {
        let events = watcher(Api::<K>::all(client.clone()), watcher::Config::default()).backoff(patience());
        let events = events.filter_map(|event| async {
            let kind = K::kind(&());
            event.inspect_err(|error| tracing::debug!(%kind, %error, "a watch starts again")).ok()
        });
        Self { events: events.boxed(), cache: Cache::default() }
    }

    /// Waits for news, and takes in all there is. May be dropped while it waits.
    pub(crate) async fn news(&mut self) {
        match self.events.next().await {
            Some(event) => self.cache.take(event),
            // A watch never ends; if it did, there would be no more news.
            None => std::future::pending().await,
        }
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.cache.take(event);
        }
    }

    /// Whether everything that was there at the start has been heard of.
    pub(crate) fn is_complete(&self) -> bool {
        self.cache.complete
    }

    /// One of them.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<K>> {
        self.cache.objects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// All of them, in order of namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.cache.objects.values()
    }

    /// Those in one namespace, in order of their names.
    pub(crate) fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        let from = (namespace.to_owned(), String::new());
        let range = self.cache.objects.range(from..).take_while(move |((found, _), _)| found == namespace);
        range.map(|(_, object)| object)
    }

    /// The server has answered a write of ours with this.
    pub(crate) fn wrote(&mut self, object: K) {
        self.cache.apply(object);
    }

    /// The server has taken our deletion of this.
    pub(crate) fn deleted(&mut self, object: &K) {
        self.cache.deleted(object);
    }
}

struct Cache<K> {
    objects: BTreeMap<Key, Arc<K>>,
    listed: BTreeMap<Key, Arc<K>>,
    /// Uids of what we have had deleted and have not seen go.
    doomed: BTreeSet<String>,
    complete: bool,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: BTreeMap::new(), doomed: BTreeSet::new(), complete: false }
    }
}

impl<K: Watchable> Cache<K> {
    fn take(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => drop(self.listed.insert(key(&object), Arc::new(object))),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.objects.retain(|key, _| listed.contains_key(key));
                for object in listed.into_values() {
                    self.apply(Arc::unwrap_or_clone(object));
                }
                let there: BTreeSet<_> = self.objects.values().filter_map(|object| object.uid()).collect();
                self.doomed.retain(|uid| there.contains(uid));
                self.complete = true;
            }
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) => {
                self.doomed.remove(&object.uid().unwrap_or_default());
                let key = key(&object);
                // The next of the same name may have been written by us already.
                if self.objects.get(&key).is_some_and(|held| held.uid() == object.uid()) {
                    self.objects.remove(&key);
                }
            }
        }
    }

    fn apply(&mut self, mut object: K) {
        let key = key(&object);
        let held = self.objects.get(&key);
        if held.is_some_and(|held| held.uid() == object.uid() && version(held.as_ref()) > version(&object)) {
            return;
        }
        if self.doomed.contains(&object.uid().unwrap_or_default()) {
            doom(&mut object);
        }
        self.objects.insert(key, Arc::new(object));
    }

    fn deleted(&mut self, object: &K) {
        self.doomed.extend(object.uid());
        if let Some(held) = self.objects.get_mut(&key(object)).filter(|held| held.uid() == object.uid()) {
            doom(Arc::make_mut(held));
        }
    }
}

/// It goes, whatever an older word of the watch says.
fn doom<K: Resource>(object: &mut K) {
    object.meta_mut().deletion_timestamp.get_or_insert(Time(Timestamp::UNIX_EPOCH));
}

/// Namespace and name of an object.
pub(crate) fn key(object: &impl ResourceExt) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Versions of one kind are numbers that grow (which Kubernetes promises since 1.35).
pub(crate) fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(name: &str, uid: &str, version: u32) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.metadata.uid = Some(uid.into());
        map.metadata.resource_version = Some(version.to_string());
        map
    }

    fn shown(cache: &Cache<ConfigMap>) -> Vec<String> {
        let shown = cache.objects.values().map(|map| {
            let goes = if map.metadata.deletion_timestamp.is_some() { "-" } else { "" };
            format!("{goes}{}@{}", map.uid().unwrap_or_default(), version(map.as_ref()))
        });
        shown.collect()
    }

    #[test]
    fn what_we_wrote_is_not_undone_by_older_news() {
        let mut cache = Cache::default();
        cache.apply(map("a", "1", 5));
        cache.take(Event::Apply(map("a", "1", 4)));
        assert_eq!(shown(&cache), ["1@5"]);
        cache.take(Event::Apply(map("a", "1", 10)));
        assert_eq!(shown(&cache), ["1@10"], "versions are numbers, not texts");
        // Deleted and made again by us, before the watch speaks of either.
        cache.apply(map("a", "2", 12));
        cache.take(Event::Delete(map("a", "1", 11)));
        assert_eq!(shown(&cache), ["2@12"]);
        cache.take(Event::Delete(map("a", "2", 13)));
        assert!(shown(&cache).is_empty());
    }

    #[test]
    fn what_we_deleted_stays_deleted_until_it_is_seen_to_go() {
        let mut cache = Cache::default();
        cache.apply(map("a", "1", 5));
        cache.deleted(&map("a", "1", 5));
        assert_eq!(shown(&cache), ["-1@5"]);
        cache.take(Event::Apply(map("a", "1", 6)));
        assert_eq!(shown(&cache), ["-1@6"]);
        cache.take(Event::Delete(map("a", "1", 7)));
        assert!(shown(&cache).is_empty() && cache.doomed.is_empty());
    }

    #[test]
    fn a_new_list_drops_what_it_does_not_show() {
        let mut cache = Cache::default();
        cache.apply(map("gone", "1", 5));
        cache.deleted(&map("gone", "1", 5));
        cache.apply(map("kept", "2", 9));
        assert!(!cache.complete);
        cache.take(Event::Init);
        cache.take(Event::InitApply(map("kept", "2", 8)));
        cache.take(Event::InitApply(map("new", "3", 7)));
        assert_eq!(shown(&cache), ["-1@5", "2@9"], "a list counts when it is whole");
        cache.take(Event::InitDone);
        assert_eq!(shown(&cache), ["2@9", "3@7"]);
        assert!(cache.complete && cache.doomed.is_empty());
    }
}
