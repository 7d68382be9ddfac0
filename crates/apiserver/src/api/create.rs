//! POST.

use serde_json::Value;

use super::admit::{Incoming, doubled, is_crd};
use super::envelope::Source;
use super::{Api, Body, Moment, Part, Target, WriteOptions, Written};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::resource::builtin;
use crate::store::Key;

impl Api {
    /// Creates an object.
    pub fn create(
        &mut self,
        target: &Target,
        body: Body,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let mut incoming = Incoming::new(target, body.value, Source::Body)?;
        incoming.drop_unknown(doubled(&body.duplicates), options)?;
        let said = incoming.warnings.clone();
        self.create_checked(incoming, options, moment).map_err(|refusal| refusal.beside(said))
    }

    /// An update may end here too: some kinds are created by it.
    pub(super) fn create_checked(
        &mut self,
        incoming: Incoming<'_>,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let target = incoming.target;
        if target.resource.namespaced && target.namespace.is_none() {
            return Err(Refusal::bad_request("an empty namespace may not be set during creation"));
        }
        self.namespace_accepts(target, incoming.object.name())?;
        self.definition_accepts(target, incoming.object.name())?;
        // The original only minds when it comes to storing the object.
        if !incoming.object.meta("resourceVersion").is_empty() && !options.dry_run {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.add_new(incoming, Ownership::Update, options, moment)
    }

    /// Everything after the checks that only a POST needs: apply ends here too when there is nothing to apply to.
    pub(super) fn add_new(
        &mut self,
        mut incoming: Incoming<'_>,
        ownership: Ownership,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let target = incoming.target;
        if builtin::is_question(&target.resource) {
            incoming.fill_in(None, self, moment);
            let errors = builtin::validation::validate(&target.resource, &incoming.object, None);
            if !errors.is_empty() {
                // A question has no name, and the original forgets what kind it is of.
                return Err(Refusal::invalid(&target.resource.group, "", "", &errors));
            }
            return Ok(Written { object: incoming.object, created: true, warnings: incoming.warnings });
        }
        let key_of = |name: &str| Key::new(target.namespace.as_deref(), name);
        incoming.be_born(moment, |name| self.store.get(&target.storage_id(), &key_of(name)).is_some());
        incoming.fill_in(None, self, moment);
        incoming.validate(None, Part::Main, self).map_err(|refusal| refusal.beside(incoming.warnings.clone()))?;
        incoming.remark(None);
        let key = key_of(incoming.object.name());
        if let Some(there) = self.store.get(&target.storage_id(), &key) {
            return Err(taken(&incoming, &there.parse()).beside(incoming.warnings));
        }
        if ownership == Ownership::Update {
            incoming.track(None, Part::Main, options, moment);
        }
        let Incoming { mut object, warnings, .. } = incoming;
        if !options.dry_run {
            object = self.keep_new(target, key, object, moment)?;
        }
        Ok(Written { object, created: true, warnings })
    }

    fn keep_new(&mut self, target: &Target, key: Key, mut object: Value, moment: Moment) -> Result<Value, Refusal> {
        target.to_stored(&mut object);
        let stored = self.put(target, key, &mut object)?;
        if is_crd(&target.resource) {
            self.serve_definition(&object, moment);
        }
        Ok(target.shown_as(&stored, object))
    }
}

/// There is an object of that name.
fn taken(incoming: &Incoming<'_>, there: &Value) -> Refusal {
    let resource = &incoming.target.resource;
    let mut refusal = Refusal::already_exists(&resource.group, &resource.plural, there.name());
    if !incoming.object.meta("generateName").is_empty() {
        // Said also of a name that was given beside it.
        refusal.message.push_str(", the server was not able to generate a unique name for the object");
        refusal.details.get_or_insert_default().retry_after_seconds = 1;
    }
    if there.is_terminating() {
        refusal.message = format!("object is being deleted: {}", refusal.message);
    }
    refusal
}

/// Whether the fields' owners are still to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// By comparing old and new.
    Update,
    /// Server-side apply has done it already.
    Applied,
}
