//! Watches as cursors: a revision, a selection, and nothing that fills up.

use bytes::Bytes;
use serde_json::{Value, json};

use super::list::parse_revision;
use super::{Api, Query, Target, WatchOptions};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Refusal};
use crate::store::{Change, Forgotten};

/// What happened to an object, as seen through a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// What happened.
    pub kind: EventKind,
    /// The object as JSON text, in the version asked for.
    pub object: Bytes,
}

/// A running watch. Holds a position in the history, no events.
#[derive(Debug, Clone)]
pub struct Watch {
    target: Target,
    query: Query,
    /// Everything up to here has been told.
    seen: u64,
    /// The current state is still to be told as a series of additions.
    initial: Initial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    Told,
    State,
    /// The same, closed by a bookmark that says so.
    StateThenMark,
}

impl Api {
    /// Begins a watch.
    pub fn watch(&self, target: &Target, query: &Query, options: &WatchOptions) -> Result<Watch, Refusal> {
        query.check_fields(target)?;
        check_streaming_list(query, options)?;
        let given = query.resource_version.as_deref().unwrap_or_default();
        // The original fails in its storage layer here, without a reason.
        let asked = parse_revision(given).map_err(|refusal| Refusal::new(500, "", strip_head(&refusal.message)))?;
        let initial = match options.send_initial {
            Some(true) => Initial::StateThenMark,
            Some(false) => Initial::Told,
            None if asked > 0 => Initial::Told,
            // Without a version, a client that takes bookmarks is told where the initial state ends.
            None if given.is_empty() && options.bookmarks => Initial::StateThenMark,
            None => Initial::State,
        };
        let seen = if options.send_initial == Some(false) && asked == 0 { self.revision() } else { asked };
        Ok(Watch { target: target.clone(), query: query.clone(), seen, initial })
    }
}

impl Watch {
    /// What has happened since the last call. An error ends the watch: the client must list again.
    pub fn next(&mut self, api: &Api) -> Result<Vec<WatchEvent>, Refusal> {
        let mut events = Vec::new();
        if self.initial != Initial::Told {
            self.tell_state(api, &mut events);
        }
        let id = self.target.storage_id();
        let changes = api.store.changes_since(&id, self.seen).map_err(|forgotten| self.too_old(forgotten))?;
        events.extend(changes.filter_map(|change| self.seen_as(change)));
        self.seen = self.seen.max(api.revision());
        Ok(events)
    }

    /// Tells the client how far it has seen, so that it can resume there.
    pub fn bookmark(&self) -> WatchEvent {
        self.mark(json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null}))
    }

    /// Whether the watched resource is still served; a watch of one that is not has ended.
    pub fn is_served(&self, api: &Api) -> bool {
        api.registry.get(&self.target.resource.id()).is_some()
    }

    /// What is being watched.
    pub fn target(&self) -> &Target {
        &self.target
    }

    fn tell_state(&mut self, api: &Api, events: &mut Vec<WatchEvent>) {
        let rows = api.store.iter(&self.target.storage_id(), self.target.namespace.as_deref());
        let selected = rows.filter(|(key, stored)| self.query.selects(&self.target, key, stored));
        events.extend(
            selected.map(|(_, stored)| WatchEvent { kind: EventKind::Added, object: self.target.shown_text(stored) }),
        );
        self.seen = api.revision();
        if self.initial == Initial::StateThenMark {
            events.push(self.mark(json!({
                "resourceVersion": self.seen.to_string(), "creationTimestamp": null,
                "annotations": {"k8s.io/initial-events-end": "true"},
            })));
        }
        self.initial = Initial::Told;
    }

    fn mark(&self, metadata: Value) -> WatchEvent {
        let (kind, api_version) = (&self.target.resource.kind, self.target.api_version());
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        WatchEvent { kind: EventKind::Bookmark, object: Bytes::from(object.to_string()) }
    }

    /// A change as this selection sees it: an object may come into view or go out of it by being relabelled.
    fn seen_as(&self, change: &Change) -> Option<WatchEvent> {
        if self.target.namespace.as_deref().is_some_and(|namespace| namespace != change.key.namespace()) {
            return None;
        }
        let selects = |stored| self.query.selects(&self.target, &change.key, stored);
        let was_in = change.before.as_ref().is_some_and(|before| selects(before));
        let is_in = !change.removed && selects(&change.after);
        let (kind, object) = match (was_in, is_in) {
            (false, false) => return None,
            (false, true) => (EventKind::Added, self.target.shown_text(&change.after)),
            (true, true) => (EventKind::Modified, self.target.shown_text(&change.after)),
            (true, false) if change.removed => (EventKind::Deleted, self.target.shown_text(&change.after)),
            (true, false) => (EventKind::Deleted, self.last_seen(change)?),
        };
        Some(WatchEvent { kind, object })
    }

    /// The object as it was when it was last in view, at the revision at which it left.
    fn last_seen(&self, change: &Change) -> Option<Bytes> {
        let mut object = self.target.shown(change.before.as_ref()?);
        object.metadata_mut().insert("resourceVersion".into(), change.revision.to_string().into());
        Some(Bytes::from(object.to_string()))
    }

    fn too_old(&self, forgotten: Forgotten) -> Refusal {
        Refusal::expired(format!("too old resource version: {} ({})", self.seen, forgotten.oldest))
    }
}

/// The list's text carries a prefix that the watch's does not.
fn strip_head(message: &str) -> String {
    message.strip_prefix("invalid resource version: ").unwrap_or(message).to_owned()
}

fn check_streaming_list(query: &Query, options: &WatchOptions) -> Result<(), Refusal> {
    let matching = query.version_match.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    match options.send_initial {
        None if !matching.is_empty() => errors.push(FieldError::new(
            "resourceVersionMatch",
            Fault::Forbidden,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        None => {}
        Some(_) => {
            if matching.is_empty() {
                errors.push(FieldError::new(
                    "resourceVersionMatch",
                    Fault::Forbidden,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            } else if matching != "NotOlderThan" {
                errors.push(FieldError::with_value(
                    "resourceVersionMatch",
                    Fault::NotSupported,
                    &Value::from(matching),
                    "supported values: \"NotOlderThan\"",
                ));
            }
            if options.send_initial == Some(true) && !options.bookmarks {
                errors.push(FieldError::new(
                    "allowWatchBookmarks",
                    Fault::Forbidden,
                    "sendInitialEvents requires allowWatchBookmarks to be set",
                ));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
}
