//! Reading one object, and showing stored objects in the version that was asked for.

use bytes::Bytes;
use serde_json::Value;

use super::{Api, Part, Target, scale};
use crate::refusal::Refusal;
use crate::resource::builtin::events;
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
        let mut object = stored.parse();
        self.to_shown(&mut object);
        object
    }

    /// A stored object as text, in the version of the URL. Costs nothing when that is the storage version.
    pub(super) fn shown_text(&self, stored: &Stored) -> Bytes {
        if self.version().storage && !self.is_event_view() {
            return stored.text.clone();
        }
        let text = serde_json::to_vec(&self.shown(stored)).expect("a JSON tree always serialises");
        Bytes::from(text)
    }

    /// From the stored version to that of the URL. Versions of one kind share their fields (conversion `None`), so
    /// only the name of the version changes; events alone have two shapes.
    pub(super) fn to_shown(&self, object: &mut Value) {
        if self.is_event_view() {
            *object = events::to_events_v1(object);
        }
        self.name_version(object, &self.api_version());
    }

    /// From the version of the URL to the stored one.
    pub(super) fn to_stored(&self, object: &mut Value) {
        if self.is_event_view() {
            *object = events::to_core(object);
            return;
        }
        self.name_version(object, &self.resource.api_version(&self.resource.storage().name));
    }

    fn name_version(&self, object: &mut Value, api_version: &str) {
        if let Value::Object(map) = object {
            map.insert("apiVersion".into(), api_version.into());
            map.insert("kind".into(), self.resource.kind.as_str().into());
        }
    }
}
