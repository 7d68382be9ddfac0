//! Reading one object, and showing stored objects in the version that was asked for.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{Api, Part, Target, scale};
use crate::refusal::Refusal;
use crate::resource::Origin;
use crate::resource::builtin::events;
use crate::schema;
use crate::store::Stored;

impl Api {
    /// One object, or one part of it.
    pub fn get(&self, target: &Target, name: &str, part: Part) -> Result<Value, Refusal> {
        let (_, stored) = self.find(target, name)?;
        let object = target.shown(&stored);
        match part {
            Part::Scale => scale::read(target, &object),
            Part::Main | Part::Status | Part::Finalize => Ok(object),
        }
    }
}

impl Target {
    /// A stored object as a tree, in the version of the URL.
    pub(super) fn shown(&self, stored: &Stored) -> Value {
        self.shown_as(stored, stored.parse())
    }

    /// The same for who still has the tree that the stored text was made of.
    pub(super) fn shown_as(&self, stored: &Stored, mut object: Value) -> Value {
        self.to_shown(&mut object);
        self.reread(stored, &mut object);
        object
    }

    /// Reads an object by the schemas of today: that of the storage version prunes and completes it, if it is not the one
    /// that the object was written by; then that of the version asked for prunes it once more.
    fn reread(&self, stored: &Stored, object: &mut Value) {
        if self.resource.origin == Origin::Builtin {
            return;
        }
        let (storage, asked) = (&self.resource.storage().schema, &self.version().schema);
        if !stored.is_by(storage) {
            schema::prune::prune(storage, object);
            schema::defaults::apply(storage, object);
        }
        if !Arc::ptr_eq(storage, asked) {
            schema::prune::prune(asked, object);
        }
    }

    /// Whether the object is shown just as it was written. Equal schemas of one resource are shared, so the pointers tell.
    fn reads_as_written(&self, stored: &Stored) -> bool {
        let (storage, asked) = (&self.resource.storage().schema, &self.version().schema);
        self.resource.origin == Origin::Builtin || (stored.is_by(storage) && Arc::ptr_eq(storage, asked))
    }

    /// A stored object as text, in the version of the URL: the stored text with its kind and version in front.
    pub(super) fn shown_text(&self, stored: &Stored) -> Bytes {
        if self.is_event_view() || !self.reads_as_written(stored) {
            return Bytes::from(self.shown(stored).to_string());
        }
        let head = format!("{{\"kind\":{:?},\"apiVersion\":{:?},", self.resource.kind, self.api_version());
        // Every object has metadata, so the stored text never is `{}`.
        Bytes::from([head.as_bytes(), &stored.text[1..]].concat())
    }

    /// A stored object as an item of a list. Lists of built-in kinds say once what their items are.
    pub(super) fn item_text(&self, stored: &Stored) -> Bytes {
        if self.resource.origin == Origin::Custom {
            return self.shown_text(stored);
        }
        if self.is_event_view() {
            return Bytes::from(events::to_events_v1(&stored.parse()).to_string());
        }
        stored.text.clone()
    }

    /// From the stored form to that of the URL's version. Versions of one kind share their fields (conversion `None`),
    /// so only the name of the version differs; events alone have two shapes.
    pub(super) fn to_shown(&self, object: &mut Value) {
        if self.is_event_view() {
            *object = events::to_events_v1(object);
        }
        if let Value::Object(map) = object {
            map.insert("apiVersion".into(), self.api_version().into());
            map.insert("kind".into(), self.resource.kind.as_str().into());
        }
    }

    /// From the form of the URL's version to the stored one.
    pub(super) fn to_stored(&self, object: &mut Value) {
        if self.is_event_view() {
            *object = events::to_core(object);
        }
        let storage = &self.resource.storage().schema;
        if !Arc::ptr_eq(storage, &self.version().schema) {
            // What only the version of the URL knows does not outlive the request.
            schema::prune::prune(storage, object);
        }
        if let Value::Object(map) = object {
            map.remove("apiVersion");
            map.remove("kind");
        }
    }
}
