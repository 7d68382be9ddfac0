//! What happens to an object on its way in, whichever verb brings it: does it say what it is, what of it is unknown,
//! what is filled in, and is it valid.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::claims::Claims;
use super::envelope::{Source, check_envelope, unreadable};
use super::{Api, FieldValidation, Moment, Part, Target, WriteOptions, crds, scale};
use crate::apply;
use crate::names::{self, NameRule};
use crate::object::Object;
use crate::refusal::{Cause, FieldError, MAX_FOUND, Refusal};
use crate::resource::builtin::admission::Context;
use crate::resource::builtin::habits;
use crate::resource::{Origin, Resource, builtin, coerce, crd};
use crate::schema;
use crate::store::Key;

/// Fields that the server sets. What a client sends there for a new object does not count.
const SERVER_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Fields that a client cannot even try to change later.
const SILENTLY_KEPT: [&str; 3] = ["creationTimestamp", "generation", "selfLink"];

/// Fields of the server that a client may leave out but not change.
const KEPT_IF_ABSENT: [&str; 3] = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];

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

impl<'a> Incoming<'a> {
    /// Reads the envelope: the object must be what the URL says it is.
    pub(super) fn new(target: &'a Target, mut object: Value, source: Source) -> Result<Self, Refusal> {
        check_envelope(target, source, &mut object)?;
        if source != Source::Apply {
            let read = match target.resource.origin {
                Origin::Builtin => builtin::decode::decode_check(&object),
                Origin::Custom => coerce::check(&target.version().schema, &object),
            };
            read.map_err(|why| unreadable(target, source, &object, &why))?;
        }
        let sent = object.namespace().to_owned();
        match &target.namespace {
            Some(namespace) if !sent.is_empty() && sent != *namespace => {
                return Err(Refusal::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            None if object.metadata().is_some() => {
                object.metadata_mut().remove("namespace");
            }
            _ => {}
        }
        Ok(Self { target, object, warnings: Vec::new(), asked: None, clashes: Vec::new(), source })
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

    /// Drops unknown fields, and says so as loudly as the client asked for; with it what was noticed already.
    pub(super) fn drop_unknown(&mut self, noticed: Vec<String>, options: &WriteOptions) -> Result<(), Refusal> {
        let resource = &self.target.resource;
        let mut pruned = self.object.clone();
        let mut unknown = schema::prune::prune(&self.target.version().schema, &mut pruned);
        if is_crd(resource) {
            unknown.extend(builtin::drop_unknown_of_definitions(&mut pruned));
        }
        let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
        self.complain(noticed.into_iter().chain(unknown).collect(), options)?;
        self.object = pruned;
        Ok(())
    }

    /// Says what was noticed as loudly as the client asked for.
    pub(super) fn complain(&mut self, complaints: Vec<String>, options: &WriteOptions) -> Result<(), Refusal> {
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
        let (resource, schema) = (&self.target.resource, &self.target.version().schema);
        match resource.origin {
            Origin::Custom => coerce::canonical(schema, &mut self.object),
            // Before the defaults, which take `null` for absent: as an item or an entry of a map it is an empty one.
            Origin::Builtin => builtin::shape(&mut self.object),
        }
        schema::defaults::apply(schema, &mut self.object);
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
        self.drop_doubled_owners();
    }

    /// An owner that is listed twice is an owner, and the client is told to mend its ways.
    fn drop_doubled_owners(&mut self) {
        let owners = self.object.metadata_mut().get_mut("ownerReferences").and_then(Value::as_array_mut);
        let (mut seen, mut doubled) = (BTreeSet::new(), Vec::new());
        if let Some(owners) = owners {
            owners.retain(|owner| {
                let is_new = seen.insert(owner.to_string());
                if !is_new {
                    doubled.push(owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
                }
                is_new
            });
        }
        if doubled.is_empty() {
            return;
        }
        let found = if self.source == Source::Body { "" } else { " after mutating admission happens" };
        self.warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries{found}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            doubled.join(", ")
        ));
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
            Origin::Builtin if is_crd(resource) && part == Part::Status => {
                errors.extend(crd::admit_status(&self.object));
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

    /// What is said of a custom object that is valid: its new finalizers may clash with somebody else's.
    pub(super) fn remark(&mut self, old: Option<&Value>) {
        if self.target.resource.origin == Origin::Builtin {
            return;
        }
        let before: BTreeSet<&str> = old.map(Object::finalizers).unwrap_or_default().into_iter().collect();
        let added: BTreeSet<&str> = self.object.finalizers().into_iter().filter(|f| !before.contains(f)).collect();
        let remarks = added.into_iter().flat_map(|finalizer| {
            let plain = !finalizer.contains('/') && !names::STANDARD_FINALIZERS.contains(&finalizer);
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            let preferred = format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            );
            let complaints = names::qualified_name(finalizer).into_iter().chain(plain.then_some(preferred));
            complaints.map(move |what| format!("metadata.finalizers: {finalizer:?}: {what}"))
        });
        let remarks: Vec<String> = remarks.take(MAX_FOUND).collect();
        self.warnings.extend(remarks);
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
            let mut metadata = self.object.metadata().cloned().unwrap_or_default();
            if !habits::status_writes_metadata(&self.target.resource) {
                let [managed, version] = ["managedFields", "resourceVersion"].map(|field| metadata.remove(field));
                metadata = old.metadata().cloned().unwrap_or_default();
                replace(Some(&mut metadata), "managedFields", managed);
                replace(Some(&mut metadata), "resourceVersion", version);
            }
            for field in habits::kept_by_status_writes(&self.target.resource) {
                replace(Some(&mut metadata), field, old.metadata().and_then(|m| m.get(*field)).cloned());
            }
            self.object = old.clone();
            replace(self.object.as_object_mut(), "metadata", Some(metadata.into()));
            replace(self.object.as_object_mut(), "status", status);
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
        if self.target.version().status && !habits::is_born_with_status(&self.target.resource) {
            replace(self.object.as_object_mut(), "status", None);
        }
        let tracks = tracks_generation(&self.target.resource);
        let metadata = self.object.metadata_mut();
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
        // Where nobody counts, it stays what the client made of it.
        if tracks {
            metadata.insert("generation".into(), 1.into());
        }
        metadata.remove("resourceVersion");
        let base = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
        if !named && !base.is_empty() {
            metadata.insert("name".into(), names::free_name(&base, moment.entropy, is_taken).into());
        }
        metadata.insert("uid".into(), names::uid(moment.entropy).into());
        metadata.insert("creationTimestamp".into(), whole_seconds(moment).into());
    }
}

/// Fields that stood twice in a body, as they are complained of.
pub(super) fn doubled(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("duplicate field {path:?}")).collect()
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
        let mut reset = if target.version().status { apply::reset_fields(part) } else { apply::FieldSet::default() };
        if part == Part::Status {
            habits::kept_by_status_writes(&target.resource).iter().for_each(|field| reset.add(&["metadata", field]));
        }
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
        ("rbac.authorization.k8s.io", _) | ("" | "events.k8s.io", "events") | ("policy", "poddisruptionbudgets") => {
            NameRule::PathSegment
        }
        _ => NameRule::Subdomain,
    }
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
