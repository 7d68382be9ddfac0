//! Watches as cursors: a position in the state or in the history, a selection, and nothing that fills up.
//!
//! A watch is told in batches of about the size that its reader has room for, and between two of them it holds no more
//! than where it is. First comes, if it was asked for, the state at one revision; then the changes after that revision.
//! The state stays the same while it is told: what has changed meanwhile is undone by the history, and told after it.
//! So every object is added once, and every change is seen once and in its order. Who takes so long that the history
//! has forgotten the position is told so, and lists again.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::list::not_a_version;
use super::{Api, Query, Target, WatchOptions, revision};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Refusal};
use crate::store::{Change, Forgotten, Key, Stored};

/// What happened to an object, as seen through a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It came into view.
    Added,
    /// It changed.
    Modified,
    /// It went out of view.
    Deleted,
    /// Nothing; only the revision is told.
    Bookmark,
}

impl EventKind {
    /// The `type` of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

/// One event of a watch. It shares the object with the store; its text is made when somebody asks for it, so that
/// nothing is copied under the lock, and not at all for those who know the text from another watcher.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// What happened.
    pub kind: EventKind,
    target: Arc<Target>,
    shows: Shows,
}

#[derive(Debug, Clone)]
enum Shows {
    /// An object.
    Object(Arc<Stored>),
    /// An object as it was when it was last in view, at the revision at which it left.
    Left(Arc<Stored>, u64),
    /// No object, only its `metadata`.
    Mark(Value),
}

/// What tells apart the texts of events: which object at which revision, seen as what. Made of addresses, so it means
/// something only as long as an event that it was taken from is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    kind: EventKind,
    resource: usize,
    version: usize,
    stored: usize,
    left_at: u64,
}

impl WatchEvent {
    /// The object as JSON text, in the version asked for.
    pub fn object(&self) -> Bytes {
        match &self.shows {
            Shows::Object(stored) => self.target.shown_text(stored),
            Shows::Left(stored, revision) => {
                let mut object = self.target.shown(stored);
                object.metadata_mut().insert("resourceVersion".into(), revision.to_string().into());
                Bytes::from(object.to_string())
            }
            Shows::Mark(metadata) => {
                let (kind, api_version) = (&self.target.resource.kind, self.target.api_version());
                Bytes::from(json!({"kind": kind, "apiVersion": api_version, "metadata": metadata}).to_string())
            }
        }
    }

    /// Two events with the same identity have the same text. Bookmarks are each watcher's own and have none.
    pub fn identity(&self) -> Option<Identity> {
        let (stored, left_at) = match &self.shows {
            Shows::Object(stored) => (stored, 0),
            Shows::Left(stored, revision) => (stored, *revision),
            Shows::Mark(_) => return None,
        };
        let (resource, version) = (Arc::as_ptr(&self.target.resource).addr(), self.target.version);
        Some(Identity { kind: self.kind, resource, version, stored: Arc::as_ptr(stored).addr(), left_at })
    }

    /// About how many bytes it keeps alive, and makes.
    pub fn weight(&self) -> usize {
        match &self.shows {
            Shows::Object(stored) | Shows::Left(stored, _) => stored.text.len(),
            Shows::Mark(_) => 0,
        }
    }
}

/// A running watch. Holds a position, no events.
#[derive(Debug, Clone)]
pub struct Watch {
    target: Arc<Target>,
    query: Query,
    /// Everything up to here has been told, except for what `state` says.
    seen: u64,
    /// What is still to be told of the state, as a series of additions.
    state: Option<State>,
}

/// What became of a watched resource since its watch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Same,
    /// Its definition says something else now: other schemas, other versions. The watch shows objects as they no longer
    /// are, so it ends at once; the client goes on from where it is with a new one.
    Changed,
    /// It is not served any more. The watch ends when everything has been told.
    Gone,
}

#[derive(Debug, Clone)]
struct State {
    /// The last object told. Nothing: the revision of the state is not even chosen.
    last: Option<Key>,
    /// It is closed by a bookmark that says so.
    marked: bool,
}

/// Events, until there are enough of them.
struct Batch {
    events: Vec<WatchEvent>,
    weight: usize,
    budget: usize,
}

impl Batch {
    fn push(&mut self, event: WatchEvent) {
        self.weight += event.weight();
        self.events.push(event);
    }

    fn is_full(&self) -> bool {
        self.weight >= self.budget
    }
}

impl Api {
    /// Begins a watch.
    pub fn watch(&self, target: &Target, query: &Query, options: &WatchOptions) -> Result<Watch, Refusal> {
        query.check_fields(target)?;
        check_streaming_list(query, options)?;
        let given = query.resource_version.as_deref().unwrap_or_default();
        // The original fails in its storage layer here, without a reason.
        let asked =
            revision::parse(given).map_err(|why| Refusal::new(500, "", not_a_version(given, why).to_string()))?;
        let marked = match options.send_initial {
            // Who takes no bookmarks gets the state, and is not told where it ends.
            Some(true) => Some(options.bookmarks),
            Some(false) => None,
            None if asked > 0 => None,
            // Without a version, a client that takes bookmarks is told where the initial state ends.
            None => Some(given.is_empty() && options.bookmarks),
        };
        let state = marked.map(|marked| State { last: None, marked });
        let seen = if options.send_initial == Some(false) && asked == 0 { self.revision() } else { asked };
        Ok(Watch { target: Arc::new(target.clone()), query: query.clone(), seen, state })
    }
}

impl Watch {
    /// What comes next: about `budget` bytes of objects, at least one event if there is any, and none when everything
    /// up to now has been told. An error ends the watch: the client must list again.
    pub fn next(&mut self, api: &Api, budget: usize) -> Result<Vec<WatchEvent>, Refusal> {
        let mut batch = Batch { events: Vec::new(), weight: 0, budget: budget.max(1) };
        if let Some(state) = self.state.take() {
            self.state = self.tell_state(api, state, &mut batch)?;
        }
        if self.state.is_none() {
            self.tell_changes(api, &mut batch)?;
        }
        Ok(batch.events)
    }

    /// Tells the client how far it has seen, so that it can resume there. In the middle of the state there is no such
    /// place: who resumed there would never hear of the rest.
    pub fn bookmark(&self) -> Option<WatchEvent> {
        let metadata = json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null});
        self.state.is_none().then(|| self.event(EventKind::Bookmark, Shows::Mark(metadata)))
    }

    /// What became of the watched resource.
    pub fn standing(&self, api: &Api) -> Standing {
        match api.registry.get(&self.target.resource.id()) {
            None => Standing::Gone,
            Some(resource) if Arc::ptr_eq(resource, &self.target.resource) => Standing::Same,
            Some(_) => Standing::Changed,
        }
    }

    /// Tells more of the state, and returns what is left of it.
    fn tell_state(&mut self, api: &Api, mut state: State, batch: &mut Batch) -> Result<Option<State>, Refusal> {
        if state.last.is_none() {
            self.seen = api.revision();
        }
        let (id, namespace) = (self.target.storage_id(), self.target.namespace.as_deref());
        let rows = api.store.after(&id, namespace, state.last.as_ref(), self.seen);
        for (key, stored) in rows.map_err(|forgotten| self.too_old(forgotten))? {
            if !self.query.selects(&self.target, key, stored) {
                continue;
            }
            if batch.is_full() {
                return Ok(Some(state));
            }
            batch.push(self.event(EventKind::Added, Shows::Object(stored.clone())));
            state.last = Some(key.clone());
        }
        if state.marked {
            let metadata = json!({
                "resourceVersion": self.seen.to_string(), "creationTimestamp": null,
                "annotations": {"k8s.io/initial-events-end": "true"},
            });
            batch.push(self.event(EventKind::Bookmark, Shows::Mark(metadata)));
        }
        Ok(None)
    }

    fn tell_changes(&mut self, api: &Api, batch: &mut Batch) -> Result<(), Refusal> {
        let id = self.target.storage_id();
        let changes = api.store.changes_since(&id, self.seen).map_err(|forgotten| self.too_old(forgotten))?;
        for change in changes {
            if batch.is_full() {
                return Ok(());
            }
            if let Some(event) = self.seen_as(change) {
                batch.push(event);
            }
            self.seen = change.revision;
        }
        self.seen = self.seen.max(api.revision());
        Ok(())
    }

    fn event(&self, kind: EventKind, shows: Shows) -> WatchEvent {
        WatchEvent { kind, target: self.target.clone(), shows }
    }

    /// A change as this selection sees it: an object may come into view or go out of it by being relabelled.
    fn seen_as(&self, change: &Change) -> Option<WatchEvent> {
        if self.target.namespace.as_deref().is_some_and(|namespace| namespace != change.key.namespace()) {
            return None;
        }
        let selects = |stored| self.query.selects(&self.target, &change.key, stored);
        let was_in = change.before.as_ref().filter(|before| selects(before));
        let is_in = !change.removed && selects(&change.after);
        let after = || Shows::Object(change.after.clone());
        let (kind, shows) = match (was_in, is_in) {
            (None, false) => return None,
            (None, true) => (EventKind::Added, after()),
            (Some(_), true) => (EventKind::Modified, after()),
            (Some(_), false) if change.removed => (EventKind::Deleted, after()),
            (Some(before), false) => (EventKind::Deleted, Shows::Left(before.clone(), change.revision)),
        };
        Some(self.event(kind, shows))
    }

    fn too_old(&self, forgotten: Forgotten) -> Refusal {
        Refusal::expired(format!("too old resource version: {} ({})", self.seen, forgotten.oldest))
    }
}

fn check_streaming_list(query: &Query, options: &WatchOptions) -> Result<(), Refusal> {
    const NEWER: &str = "NotOlderThan";
    let matching = query.version_match.as_deref().unwrap_or_default();
    let forbidden = |why: &str| FieldError::new("resourceVersionMatch", Fault::Forbidden, why);
    let mut errors = Vec::new();
    match options.send_initial {
        Some(_) if matching != NEWER => {
            errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        None if !matching.is_empty() => {
            errors.push(forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
        }
        _ => {}
    }
    if !matching.is_empty() && matching != NEWER {
        let supported = format!("supported values: {NEWER:?}");
        errors.push(FieldError::with_value(
            "resourceVersionMatch",
            Fault::NotSupported,
            &Value::from(matching),
            supported,
        ));
    }
    // Who names no version is read as if initial events had been asked for, which sets what is to match.
    let from_the_beginning = matches!(query.resource_version.as_deref(), None | Some("" | "0"));
    let matches = !matching.is_empty() || (options.send_initial.is_none() && from_the_beginning);
    if matches && query.page.is_some() {
        errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
}

#[cfg(test)]
mod tests;
