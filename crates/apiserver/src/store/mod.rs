//! What the server remembers: objects, one global revision, and a bounded history of changes.
//!
//! Objects are kept as JSON text rather than as trees: a text is a tenth of the tree's memory, and lists and watches
//! hand it out without serialising anything. [`Store::put`] and [`Store::remove`] are the only ways in, so a durable
//! log has one place to stand.
//!
//! Watches hold no queue. They hold a revision, and pull what came after it from the history; who reads too slowly
//! finds its revision forgotten and has to list again, and costs nobody any memory meanwhile.

mod history;
mod past;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::Value;

use self::history::History;
pub use self::history::{Change, Forgotten};
use crate::object::Object;
use crate::resource::ResourceId;
use crate::schema::Schema;

/// The largest object that is kept: what etcd takes in one request, so nothing grows here that could not live there.
const MAX_OBJECT_BYTES: usize = 3 << 19;

/// How many resources that are gone are remembered, with the last of their history.
const MAX_ENDED: usize = 16;

/// An object was larger than the store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// One object at one revision.
#[derive(Debug)]
pub struct Stored {
    /// The object as JSON, without `apiVersion` and `kind`: those depend on who asks.
    pub text: Bytes,
    /// The revision that wrote it; also its `metadata.resourceVersion`.
    pub revision: u64,
    /// Its labels, because selectors are asked far more often than objects are parsed.
    pub labels: BTreeMap<String, String>,
    /// The schema it was pruned and completed by when it was written. Who reads it by another one has to do that again:
    /// definitions change, and versions differ. It is only compared by where it is, so nothing of it is kept alive: a
    /// definition that changes often would otherwise leave all that it ever was with its objects and their history.
    pub schema: Weak<Schema>,
}

impl Stored {
    /// The object as a tree.
    pub fn parse(&self) -> Value {
        serde_json::from_slice(&self.text).expect("the store holds only what it serialised itself")
    }

    /// Whether it was written by that very schema. Equal ones of one resource are shared, so the place tells; and while
    /// somebody remembers it, nothing else is put there.
    pub fn is_by(&self, schema: &Arc<Schema>) -> bool {
        std::ptr::eq(self.schema.as_ptr(), Arc::as_ptr(schema))
    }
}

/// Where an object stands within its resource: `namespace/name`, or just the name in cluster scope. The plain text
/// order of these keys is the order of lists, as in the original (so `a-b/x` comes before `a/x`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) => Self(format!("{namespace}/{name}").into()),
            None => Self(name.into()),
        }
    }

    /// From its text form, as a continue token carries it.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace part, empty in cluster scope.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name part.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    fn is_in(&self, namespace: Option<&str>) -> bool {
        namespace.is_none_or(|namespace| self.namespace() == namespace)
    }
}

/// All objects of all resources.
#[derive(Debug)]
pub struct Store {
    revision: u64,
    tables: BTreeMap<ResourceId, Table>,
    /// Resources that are gone and whose tables are still there, the oldest first.
    ended: VecDeque<ResourceId>,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    history: History,
}

impl Default for Store {
    fn default() -> Self {
        // Revision 0 means "any" to clients, so no object may carry it.
        Self { revision: 1, tables: BTreeMap::new(), ended: VecDeque::new() }
    }
}

impl Store {
    /// The revision of the latest write to anything.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// One object as it is now.
    pub fn get(&self, id: &ResourceId, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(id)?.objects.get(key)
    }

    /// Number of objects of a resource.
    pub fn count(&self, id: &ResourceId) -> usize {
        self.tables.get(id).map_or(0, |table| table.objects.len())
    }

    /// All objects of a resource, or of one namespace of it, in the order of their keys.
    pub fn iter<'a, 'n>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&'n str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> + use<'a, 'n> {
        let from = namespace.map_or(Bound::Unbounded, |namespace| Bound::Included(Key::new(Some(namespace), "")));
        let rows = self.tables.get(id).into_iter().flat_map(move |t| t.objects.range((from.clone(), Bound::Unbounded)));
        rows.take_while(move |(key, _)| key.is_in(namespace))
    }

    /// What happened to a resource after a revision, oldest first.
    pub fn changes_since(
        &self,
        id: &ResourceId,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Change> + use<'_>, Forgotten> {
        let history = self.tables.get(id).map(|table| &table.history);
        let changes = history.map(|history| history.since(revision)).transpose()?;
        Ok(changes.into_iter().flatten())
    }

    /// Writes an object: stamps it with the next revision and keeps it. The stored form is returned; its text is that of
    /// the stamped object.
    pub fn put(
        &mut self,
        id: &ResourceId,
        key: Key,
        object: &mut Value,
        schema: &Arc<Schema>,
    ) -> Result<Arc<Stored>, TooLarge> {
        let stored = self.stamp(object, schema);
        if stored.text.len() > MAX_OBJECT_BYTES {
            return Err(TooLarge);
        }
        let table = self.tables.entry(id.clone()).or_default();
        let before = table.objects.insert(key.clone(), stored.clone());
        table.history.push(Change { revision: stored.revision, key, before, after: stored.clone(), removed: false });
        Ok(stored)
    }

    /// Removes an object. `last` is how it looked in the end; watchers see it stamped with the revision of the removal.
    pub fn remove(&mut self, id: &ResourceId, key: &Key, mut last: Value, schema: &Arc<Schema>) -> Arc<Stored> {
        let stored = self.stamp(&mut last, schema);
        let table = self.tables.entry(id.clone()).or_default();
        let before = table.objects.remove(key);
        let change =
            Change { revision: stored.revision, key: key.clone(), before, after: stored.clone(), removed: true };
        table.history.push(change);
        stored
    }

    /// Begins the history of a resource: what happened before it existed cannot be asked for.
    pub fn begin(&mut self, id: &ResourceId) {
        let revision = self.revision;
        self.ended.retain(|ended| ended != id);
        self.tables
            .entry(id.clone())
            .or_insert_with(|| Table { history: History::beginning(revision), ..Table::default() });
    }

    /// After a resource is gone for good: lets go of most of its history. What is left lets those who still watch see
    /// its end; of the resources that went before many others nothing is left.
    pub fn end(&mut self, id: &ResourceId) {
        let Some(table) = self.tables.get_mut(id) else { return };
        table.history.shorten();
        self.ended.retain(|ended| ended != id);
        self.ended.push_back(id.clone());
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.tables.remove(&oldest);
        }
    }

    fn stamp(&mut self, object: &mut Value, schema: &Arc<Schema>) -> Arc<Stored> {
        self.revision += 1;
        object.metadata_mut().insert("resourceVersion".into(), self.revision.to_string().into());
        let (text, labels) = (text_of(object), object.labels());
        Arc::new(Stored { text, revision: self.revision, labels, schema: Arc::downgrade(schema) })
    }
}

fn text_of(object: &Value) -> Bytes {
    let text = serde_json::to_vec(object).expect("a JSON tree always serialises");
    // Lists and histories keep texts for long: the spare capacity of the buffer must not stay with them.
    Bytes::from(text.into_boxed_slice())
}
