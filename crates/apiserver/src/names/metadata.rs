//! What `metadata` must satisfy when an object is created or changed, whatever its kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{NameRule, label_value, qualified_name};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Findings};

/// All keys and values of the annotations together, in bytes.
const ANNOTATIONS_SIZE: usize = 256 << 10;

/// The garbage collector's finalizer for owners whose dependants stay.
pub(crate) const ORPHAN: &str = "orphan";
/// The garbage collector's finalizer for owners that go after their dependants.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizers that need no domain: Kubernetes' own.
pub(crate) const STANDARD_FINALIZERS: [&str; 3] = [ORPHAN, FOREGROUND, "kubernetes"];

/// Everything that is wrong with `metadata`. With `old` it is checked as a change of that object, without as a new
/// one, whose name is already generated. Expects it to have been read: fields of the wrong type
/// count as absent.
///
/// As in the original, the name is checked only when the object is new: later it cannot change. A missing
/// `resourceVersion` is the write's own business.
pub fn validate_metadata(object: &Value, namespaced: bool, rule: NameRule, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = match old {
        None => birth(object, namespaced, rule),
        Some(old) => change(object, old),
    };
    errors.extend(labels(object));
    errors.extend(annotations(object));
    errors.extend(owners(object));
    errors.extend(finalizers(object));
    errors
}

/// Built-in kinds want more of a finalizer than custom resources: a domain, or one of the standard names.
pub fn validate_builtin_finalizers(object: &Value) -> Vec<FieldError> {
    let mut errors = Findings::default();
    let named = object.finalizers().into_iter().enumerate();
    for (n, name) in named.filter(|(_, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name)) {
        if errors.is_full() {
            break;
        }
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.tell(|| invalid(format!("metadata.finalizers[{n}]"), name.into(), detail));
    }
    errors.into_told()
}

fn birth(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = object.meta("generateName");
    if !prefix.is_empty() {
        let complaints = rule.prefix_complaints(prefix).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.generateName", prefix.into(), complaint)));
    }
    let name = object.name();
    if name.is_empty() {
        errors.push(FieldError::new("metadata.name", Fault::Required, "name or generateName is required"));
    } else {
        let complaints = rule.complaints(name).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.name", name.into(), complaint)));
    }
    let namespace = object.namespace();
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::new("metadata.namespace", Fault::Required, "")),
        (true, false) => {
            let complaints = NameRule::Label.complaints(namespace).into_iter();
            errors.extend(complaints.map(|complaint| invalid("metadata.namespace", namespace.into(), complaint)));
        }
        (false, true) => {}
        (false, false) => {
            errors.push(FieldError::new("metadata.namespace", Fault::Forbidden, "not allowed on this type"));
        }
    }
    let generation = generation(object);
    if generation < 0 {
        errors.push(invalid("metadata.generation", generation.into(), "must be greater than or equal to 0"));
    }
    errors
}

fn change(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_terminating() {
        let known: BTreeSet<&str> = old.finalizers().into_iter().collect();
        let added: BTreeSet<&str> = object.finalizers().into_iter().filter(|name| !known.contains(name)).collect();
        if !added.is_empty() {
            let listed: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                listed.join(", ")
            );
            errors.push(FieldError::new("metadata.finalizers", Fault::Forbidden, detail));
        }
    }
    if generation(object) < generation(old) {
        errors.push(invalid("metadata.generation", generation(object).into(), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |object: &Value| object.metadata().and_then(|m| m.get(field)).cloned().unwrap_or_default();
        let (before, after) = (value(old), value(object));
        if before != after {
            errors.push(invalid(format!("metadata.{field}"), after, "field is immutable"));
        }
    }
    errors
}

fn labels(object: &Value) -> Vec<FieldError> {
    let mut errors = Findings::default();
    for (key, value) in texts(object, "labels") {
        if errors.is_full() {
            break;
        }
        let complaints = qualified_name(key).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.labels", key.into(), complaint)));
        let complaints = label_value(value).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.labels", value.into(), complaint)));
    }
    errors.into_told()
}

fn annotations(object: &Value) -> Vec<FieldError> {
    let mut errors = Findings::default();
    for (key, _) in texts(object, "annotations") {
        if errors.is_full() {
            break;
        }
        let complaints = qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.annotations", key.into(), complaint)));
    }
    let mut errors = errors.into_told();
    let size: usize = texts(object, "annotations").map(|(key, value)| key.len() + value.len()).sum();
    if size > ANNOTATIONS_SIZE {
        let detail = format!("may not be more than {ANNOTATIONS_SIZE} bytes");
        errors.push(FieldError::new("metadata.annotations", Fault::TooLong, detail));
    }
    errors
}

fn owners(object: &Value) -> Vec<FieldError> {
    let field = "metadata.ownerReferences";
    // A complaint about two controllers shows all owners: of many such complaints few are told.
    let mut errors = Findings::default();
    let mut controller: Option<String> = None;
    let owners: &[Value] =
        object.metadata().and_then(|m| m.get("ownerReferences")).and_then(Value::as_array).map_or(&[], Vec::as_slice);
    for owner in owners {
        if errors.is_full() {
            break;
        }
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let group_version = text("apiVersion");
        let no_version =
            group_version.ends_with('/') || group_version.is_empty() || group_version.matches('/').count() > 1;
        for (key, missing, detail) in [
            ("apiVersion", no_version, "version must not be empty"),
            ("kind", text("kind").is_empty(), "must not be empty"),
            ("name", text("name").is_empty(), "must not be empty"),
            ("uid", text("uid").is_empty(), "must not be empty"),
        ] {
            if missing {
                errors.tell(|| invalid(format!("{field}.{key}"), text(key).into(), detail));
            }
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.tell(|| FieldError { value: shown_owner(owner), ..invalid(field, Value::Null, detail) });
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                errors.tell(|| {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {name}"
                    );
                    let all: Vec<String> = owners.iter().map(shown_owner).collect();
                    FieldError { value: format!("[{}]", all.join(",")), ..invalid(field, Value::Null, detail) }
                });
            } else {
                controller = Some(name);
            }
        }
    }
    errors.into_told()
}

/// An owner as the original's messages show it: its fields in the order of its structure.
fn shown_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let given = fields.iter().filter_map(|key| Some(format!("{key:?}:{}", owner.get(key)?)));
    format!("{{{}}}", given.collect::<Vec<_>>().join(","))
}

fn finalizers(object: &Value) -> Vec<FieldError> {
    let names = object.finalizers();
    let mut errors = Findings::default();
    for name in &names {
        if errors.is_full() {
            break;
        }
        let complaints = qualified_name(name).into_iter();
        errors.extend(complaints.map(|complaint| invalid("metadata.finalizers", (*name).into(), complaint)));
    }
    if names.contains(&ORPHAN) && names.contains(&FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.tell(|| invalid("metadata.finalizers", names.into(), detail));
    }
    errors.into_told()
}

fn invalid(field: impl Into<String>, value: Value, detail: impl Into<String>) -> FieldError {
    FieldError::with_value(field, Fault::Invalid, &value, detail)
}

fn generation(object: &Value) -> i64 {
    object.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
}

/// A map of texts in `metadata`; `null` reads as the empty text, as it does in the original.
fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.metadata().and_then(|m| m.get(field)).and_then(Value::as_object);
    map.into_iter().flat_map(Map::iter).map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::refusal::MAX_FOUND;

    fn complaints(metadata: Value) -> Vec<String> {
        let object = json!({"metadata": metadata});
        validate_metadata(&object, true, NameRule::Subdomain, None).iter().map(ToString::to_string).collect()
    }

    fn changes(new: Value, old: Value) -> Vec<String> {
        let (new, old) = (json!({"metadata": new}), json!({"metadata": old}));
        let errors = validate_metadata(&new, true, NameRule::Subdomain, Some(&old));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_new_object_needs_a_name_and_its_namespace() {
        assert_eq!(complaints(json!({"name": "a", "namespace": "b"})), Vec::<String>::new());
        assert_eq!(
            complaints(json!({})),
            ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"]
        );
        let cluster = json!({"metadata": {"name": "a", "namespace": "b"}});
        let errors = validate_metadata(&cluster, false, NameRule::Label, None);
        assert_eq!(errors[0].to_string(), "metadata.namespace: Forbidden: not allowed on this type");
        assert_eq!(complaints(json!({"name": "A", "generateName": "B-", "namespace": "n"})).len(), 1);
    }

    #[test]
    fn labels_and_annotations_are_qualified_names() {
        let wrong = complaints(json!({"name": "a", "namespace": "b", "labels": {"/x": "c d"}}));
        assert_eq!(wrong[0], "metadata.labels: Invalid value: \"/x\": prefix part must be non-empty");
        assert!(wrong[1].starts_with("metadata.labels: Invalid value: \"c d\": a valid label must be"));
        let fine = json!({"name": "a", "namespace": "b", "annotations": {"UP/x": "any text", "y": null}});
        assert_eq!(complaints(fine), Vec::<String>::new());
        let large = json!({"name": "a", "namespace": "b", "annotations": {"a": "x".repeat(262_144)}});
        assert_eq!(complaints(large), ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
    }

    #[test]
    fn owners_are_complete_and_only_one_controls() {
        let empty = complaints(json!({"name": "a", "namespace": "b", "ownerReferences": [{}]}));
        assert_eq!(empty[0], "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty");
        assert_eq!(empty[3], "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty");
        let owner = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "1", "controller": true});
        let two = json!({"name": "a", "namespace": "b", "ownerReferences": [owner("A", "a"), owner("B", "b")]});
        assert_eq!(
            complaints(two),
            [
                r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"B","name":"b","uid":"1","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/a and B/b"#
            ]
        );
    }

    #[test]
    fn of_many_owners_that_contradict_each_other_not_all_is_told() {
        let owner =
            |n: usize| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": n.to_string(), "controller": true});
        let owners: Vec<Value> = (0..20_000).map(owner).collect();
        let told: usize =
            complaints(json!({"name": "a", "namespace": "b", "ownerReferences": owners})).iter().map(String::len).sum();
        assert!((1..8 << 20).contains(&told), "{told} bytes");
    }

    #[test]
    fn of_much_that_is_wrong_not_all_is_told() {
        let count = 100_000;
        let keys: Map<String, Value> = (0..count).map(|n| (format!("/{n}"), Value::from("a b"))).collect();
        for (field, wrong) in [
            ("finalizers", json!(vec![""; count])),
            ("labels", keys.clone().into()),
            ("annotations", keys.into()),
            ("ownerReferences", json!(vec![json!({"kind": "x".repeat(100), "controller": true}); count])),
        ] {
            let object = json!({"metadata": {"name": "a", "namespace": "b", field: wrong}});
            let mut told = validate_metadata(&object, true, NameRule::Subdomain, None);
            told.extend(validate_builtin_finalizers(&object));
            assert!((1..=2 * MAX_FOUND + 1).contains(&told.len()), "{} of {field}", told.len());
        }
    }

    #[test]
    fn finalizers_are_qualified_and_do_not_contradict() {
        let both =
            complaints(json!({"name": "a", "namespace": "b", "finalizers": ["orphan", "x", "foregroundDeletion"]}));
        assert_eq!(
            both,
            [
                r#"metadata.finalizers: Invalid value: ["orphan","x","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#
            ]
        );
        let object = json!({"metadata": {"finalizers": ["orphan", "a/b", "x"]}});
        assert_eq!(
            validate_builtin_finalizers(&object)[0].to_string(),
            r#"metadata.finalizers[2]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#
        );
    }

    #[test]
    fn identity_and_life_cycle_do_not_change() {
        let old = json!({"name": "a", "uid": "1", "generation": 3});
        assert_eq!(changes(old.clone(), old.clone()), Vec::<String>::new());
        assert_eq!(
            changes(json!({"name": "a", "uid": "2", "generation": 2, "deletionGracePeriodSeconds": 5}), old),
            [
                "metadata.generation: Invalid value: 2: must not be decremented",
                "metadata.uid: Invalid value: \"2\": field is immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
            ]
        );
    }

    #[test]
    fn a_dying_object_gets_no_new_finalizers() {
        let old = json!({"deletionTimestamp": "t", "finalizers": ["a/b"]});
        assert_eq!(
            changes(json!({"deletionTimestamp": "t", "finalizers": ["e/f", "a/b", "c/d"]}), old.clone()),
            [
                r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d", "e/f"}"#
            ]
        );
        assert_eq!(changes(json!({"deletionTimestamp": "t"}), old), Vec::<String>::new());
        assert_eq!(changes(json!({"finalizers": ["a b"]}), json!({})).len(), 1, "names are checked in changes, too");
    }
}
