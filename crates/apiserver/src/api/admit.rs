//! What happens to an object on its way in, whichever verb brings it: does it say what it is, what of it is unknown,
//! what is filled in, and is it valid.

use serde_json::{Map, Value, json};

use super::claims::Claims;
use super::{Api, FieldValidation, Moment, Part, Target, WriteOptions, crds, scale};
use crate::apply;
use crate::names::{self, NameRule};
use crate::object::Object;
use crate::refusal::{Cause, Fault, FieldError, Refusal};
use crate::resource::builtin::admission::Context;
use crate::resource::{Origin, Resource, builtin, crd};
use crate::schema;
use crate::store::Key;

/// Fields that the server sets. What a client sends there for a new object does not count.
const SERVER_FIELDS: [&str; 6] =
    ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Of those, the ones that a client cannot even try to change later.
const SILENTLY_KEPT: [&str; 3] = ["creationTimestamp", "generation", "selfLink"];

/// Of those, the ones that a client may leave out but not change.
const KEPT_IF_ABSENT: [&str; 3] = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Metadata that is not there when it is empty.
const NOTHING_IF_EMPTY: [&str; 5] = ["labels", "annotations", "finalizers", "ownerReferences", "generateName"];

/// An object on its way in, and what is said about it beside the answer.
pub(super) struct Incoming<'a> {
    pub(super) target: &'a Target,
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
    /// A new object before the server decided anything about it, if it decides something.
    asked: Option<Value>,
    /// What it asks for and somebody else has.
    clashes: Vec<FieldError>,
    /// Where it comes from decides how it is said that it cannot be read.
    source: Source,
}

/// How an object came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It was sent.
    Body,
    /// It is what a patch made of the stored one.
    Patch,
}

impl<'a> Incoming<'a> {
    /// Reads the envelope: the object must be what the URL says it is.
    pub(super) fn new(target: &'a Target, mut object: Value, source: Source) -> Result<Self, Refusal> {
        check_envelope(target, &mut object)?;
        let types = match target.resource.origin {
            Origin::Builtin => names::metadata_types(&object),
            Origin::Custom => names::custom_metadata_types(&object),
        };
        types.map_err(|why| unreadable(target, source, &object, &why))?;
        let sent = object.namespace().to_owned();
        match &target.namespace {
            Some(namespace) if !sent.is_empty() && sent != *namespace => {
                return Err(Refusal::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            Some(_) => {}
            None => {
                object.metadata_mut().remove("namespace");
            }
        }
        let warnings = target.version().deprecation.clone().into_iter().collect();
        Ok(Self { target, object, warnings, asked: None, clashes: Vec::new(), source })
    }

    /// An object that this server put together itself.
    pub(super) fn trusted(target: &'a Target, object: Value) -> Self {
        Self { target, object, warnings: Vec::new(), asked: None, clashes: Vec::new(), source: Source::Patch }
    }

    fn unreadable(&self, why: &str) -> Refusal {
        unreadable(self.target, self.source, &self.object, why)
    }

    /// Puts it where the URL says, if it does not say so itself.
    fn settle_namespace(&mut self) {
        if let Some(namespace) = &self.target.namespace {
            self.object.metadata_mut().insert("namespace".into(), namespace.as_str().into());
        }
    }

    /// Drops unknown fields and duplicates, and says so as loudly as the client asked for.
    pub(super) fn drop_unknown(&mut self, duplicates: &[String], options: &WriteOptions) -> Result<(), Refusal> {
        let schema = &self.target.version().schema;
        if self.target.resource.origin == Origin::Builtin {
            builtin::decode::decode_check(&self.object).map_err(|why| self.unreadable(&why))?;
        }
        let mut pruned = self.object.clone();
        let unknown = schema::prune::prune(schema, &mut pruned);
        self.complain(duplicates, &unknown, options)?;
        self.object = pruned;
        Ok(())
    }

    /// Only says which fields stood twice. Server-side apply refuses unknown fields by itself.
    pub(super) fn report_duplicates(&mut self, duplicates: &[String], options: &WriteOptions) -> Result<(), Refusal> {
        self.complain(duplicates, &[], options)
    }

    fn complain(&mut self, duplicates: &[String], unknown: &[String], options: &WriteOptions) -> Result<(), Refusal> {
        let duplicate = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
        let complaints: Vec<String> =
            duplicate.chain(unknown.iter().map(|path| format!("unknown field {path:?}"))).collect();
        if complaints.is_empty() {
            return Ok(());
        }
        match options.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(complaints),
            FieldValidation::Strict => {
                let why = format!("strict decoding error: {}", complaints.join(", "));
                return Err(self.unreadable(&why));
            }
        }
        Ok(())
    }

    /// Fills in what the schema and the kind itself prescribe.
    pub(super) fn fill_in(&mut self, old: Option<&Value>, api: &Api, moment: Moment) {
        self.settle_namespace();
        let resource = &self.target.resource;
        self.object
            .metadata_mut()
            .retain(|field, value| !(NOTHING_IF_EMPTY.contains(&field.as_str()) && is_empty(value)));
        schema::defaults::apply(&self.target.version().schema, &mut self.object);
        if is_crd(resource) {
            crd::defaulted(&mut self.object);
            crds::settle(&mut self.object, &api.registry, &whole_seconds(moment));
        }
        let Claims { cluster_ips, node_ports, .. } = &api.claims;
        self.clashes = api.claims.clashes(resource, &self.object, old);
        let ctx = Context { now: moment.now, cluster_ips, node_ports };
        match old {
            None => {
                builtin::admission::complete(resource, &mut self.object);
                self.asked = builtin::admission::decides(resource).then(|| self.object.clone());
                builtin::admission::decide(resource, &mut self.object, &ctx);
            }
            Some(old) => builtin::admission::prepare_update(resource, &mut self.object, old, &ctx),
        }
    }

    /// Everything that is wrong with it.
    pub(super) fn validate(&self, old: Option<&Value>, part: Part, api: &mut Api) -> Result<(), Refusal> {
        let resource = &self.target.resource;
        let mut errors = names::validate_metadata(&self.object, resource.namespaced, name_rule(resource), old);
        match resource.origin {
            Origin::Custom => {
                errors.extend(schema::validate::validate(&self.target.version().schema, &self.object, old));
                errors.extend(scale::check(self.target, &self.object, part));
            }
            Origin::Builtin if is_crd(resource) => {
                let examined = api.examinations.of(&self.object)?;
                errors.extend(crd::admit(&self.object, old, &examined));
            }
            Origin::Builtin => errors.extend(builtin::validation::validate(resource, &self.object, old)),
        }
        if resource.origin == Origin::Builtin && !is_crd(resource) {
            errors.extend(names::validate_builtin_finalizers(&self.object));
        }
        errors.extend(self.clashes.iter().cloned());
        if errors.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(&resource.group, &resource.kind, self.object.name(), &errors))
    }

    /// Records who owns the fields that this write changed. Of a new object that is what was asked for, not what the
    /// server made of it.
    pub(super) fn track(&mut self, old: Option<&Value>, part: Part, options: &WriteOptions, moment: Moment) {
        let writer = Writer::new(self.target, part);
        let write = writer.write(&options.manager, moment);
        let schema = &self.target.version().schema;
        match self.asked.take() {
            Some(mut asked) => {
                apply::track_update(old, &mut asked, schema, &write);
                let record = asked.metadata_mut().remove("managedFields");
                replace(Some(self.object.metadata_mut()), "managedFields", record);
            }
            None => apply::track_update(old, &mut self.object, schema, &write),
        }
    }

    /// Takes over from the old object what no client may change, and the part that this request does not address.
    pub(super) fn carry_over(&mut self, old: &Value, part: Part) {
        if part == Part::Status {
            let status = self.object.get("status").cloned();
            let managed = self.object.metadata().and_then(|m| m.get("managedFields")).cloned();
            let version = self.object.metadata().and_then(|m| m.get("resourceVersion")).cloned();
            self.object = old.clone();
            replace(self.object.as_object_mut(), "status", status);
            replace(Some(self.object.metadata_mut()), "managedFields", managed);
            replace(Some(self.object.metadata_mut()), "resourceVersion", version);
        } else if self.target.version().status {
            replace(self.object.as_object_mut(), "status", old.get("status").cloned());
        }
        let before = |field: &str| old.metadata().and_then(|m| m.get(field)).cloned();
        let metadata = self.object.metadata_mut();
        for field in SILENTLY_KEPT {
            replace(Some(metadata), field, before(field));
        }
        for field in KEPT_IF_ABSENT {
            if metadata.get(field).is_none_or(|value| value.is_null() || value == "") {
                replace(Some(metadata), field, before(field));
            }
        }
        // Whoever sends back a marked object may have read it before the mark moved.
        if old.is_terminating() {
            replace(Some(metadata), "deletionTimestamp", before("deletionTimestamp"));
        }
    }

    /// Makes it a new object: a name, an identity, a birthday.
    pub(super) fn be_born(&mut self, moment: Moment, is_taken: impl Fn(&str) -> bool) {
        if self.target.version().status {
            replace(self.object.as_object_mut(), "status", None);
        }
        let tracks = tracks_generation(&self.target.resource);
        let metadata = self.object.metadata_mut();
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
        metadata.remove("resourceVersion");
        let base = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
        if !named && !base.is_empty() {
            metadata.insert("name".into(), names::free_name(&base, moment.entropy, is_taken).into());
        }
        metadata.insert("uid".into(), names::uid(moment.entropy).into());
        metadata.insert("creationTimestamp".into(), whole_seconds(moment).into());
        if tracks {
            metadata.insert("generation".into(), 1.into());
        }
    }
}

/// What a write looks like to the record of field owners, apart from who writes and when.
pub(super) struct Writer {
    api_version: String,
    subresource: &'static str,
    reset: apply::FieldSet,
    blank: Option<Value>,
}

impl Writer {
    pub(super) fn new(target: &Target, part: Part) -> Self {
        let api_version = target.api_version();
        // Where `status` is an ordinary field, whoever writes the object owns it.
        let reset = if target.version().status { apply::reset_fields(part) } else { apply::FieldSet::default() };
        let blank = (target.resource.origin == Origin::Builtin).then(|| {
            let mut blank = json!({"apiVersion": api_version, "kind": target.resource.kind});
            builtin::shape(&mut blank);
            blank
        });
        Self { api_version, subresource: part.subresource(), reset, blank }
    }

    pub(super) fn write<'a>(&'a self, manager: &'a str, moment: Moment) -> apply::Write<'a> {
        apply::Write {
            manager,
            api_version: &self.api_version,
            subresource: self.subresource,
            now: moment.now,
            reset: &self.reset,
            blank: self.blank.as_ref(),
        }
    }
}

impl Part {
    pub(super) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
        }
    }
}

/// Kubernetes writes times of day without fractions.
pub(super) fn whole_seconds(moment: Moment) -> String {
    moment.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn replace(map: Option<&mut Map<String, Value>>, key: &str, value: Option<Value>) {
    let Some(map) = map else { return };
    match value {
        Some(value) => drop(map.insert(key.into(), value)),
        None => drop(map.remove(key)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(crate) fn is_crd(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

pub(super) fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

/// Whether `metadata.generation` counts changes of this kind. The original leaves it out for kinds without a spec.
pub(super) fn tracks_generation(resource: &Resource) -> bool {
    const BUILTIN: [&str; 7] = [
        "deployments",
        "replicasets",
        "poddisruptionbudgets",
        "networkpolicies",
        "customresourcedefinitions",
        "endpointslices",
        "pods",
    ];
    resource.origin == Origin::Custom || BUILTIN.contains(&resource.plural.as_str())
}

fn name_rule(resource: &Resource) -> NameRule {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => NameRule::Label,
        ("", "services") => NameRule::Label1035,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

fn unreadable(target: &Target, source: Source, object: &Value, why: &str) -> Refusal {
    let kind = &target.resource.kind;
    if source == Source::Patch {
        let mut shown = object.clone();
        shown.metadata_mut().remove("managedFields");
        let shown = Value::String(shown.to_string());
        return Refusal::invalid("", "", "", &[FieldError::with_value("patch", Fault::Invalid, &shown, why)]);
    }
    Refusal::bad_request(format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", target.version().name))
}

/// The object must be of the kind and version that the URL names. Built-in kinds may leave both out.
fn check_envelope(target: &Target, object: &mut Value) -> Result<(), Refusal> {
    let resource = &target.resource;
    let expected = target.api_version();
    let text = || object.to_string();
    let missing = |what: &str| {
        let text = text();
        let why = format!("Object '{what}' is missing in '{text}' ({text})");
        let message = format!("the object provided is unrecognized (must be of type {}): {why}", resource.kind);
        Refusal::bad_request(message)
    };
    if !object.is_object() {
        return Err(missing("Kind"));
    }
    let (kind, api_version) = (object.kind().to_owned(), object.api_version().to_owned());
    if resource.origin == Origin::Custom {
        if kind.is_empty() {
            return Err(missing("Kind"));
        }
        if api_version.is_empty() {
            return Err(missing("apiVersion"));
        }
    }
    if !kind.is_empty() && kind != resource.kind {
        return Err(match resource.origin {
            Origin::Custom => {
                let detail = format!("must be {}", resource.kind);
                let error = FieldError::with_value("kind", Fault::Invalid, &kind.as_str().into(), detail);
                Refusal::invalid(&resource.group, &kind, object.name(), &[error])
            }
            Origin::Builtin => Refusal::bad_request(format!(
                "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is accepted here",
                target.version().name,
                resource.kind
            )),
        });
    }
    if !api_version.is_empty() && api_version != expected {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if let Value::Object(map) = object {
        map.insert("apiVersion".into(), expected.into());
        map.insert("kind".into(), resource.kind.as_str().into());
    }
    Ok(())
}

impl Api {
    /// New content needs a namespace that exists and is not going away.
    pub(super) fn namespace_accepts(&self, target: &Target, name: &str) -> Result<(), Refusal> {
        let Some(namespace) = &target.namespace else { return Ok(()) };
        let namespaces = crate::resource::ResourceId::new("", "namespaces");
        let Some(stored) = self.store.get(&namespaces, &Key::new(None, namespace)) else {
            return Err(Refusal::not_found("", "namespaces", namespace));
        };
        if !stored.parse().is_terminating() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        };
        let resource = &target.resource;
        Err(Refusal::forbidden(&resource.group, &resource.plural, name, why).because(vec![cause]))
    }
}
