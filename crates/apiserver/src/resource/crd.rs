//! `CustomResourceDefinition`s: what is filled in, what is refused, and the [`Resource`](super::Resource) that comes out.

mod build;
mod examined;
mod names;
mod versions;

pub use build::resource_of;
pub use examined::Examined;
pub use versions::newest_first;

use serde_json::{Value, json};

use crate::object::{Object, child_map};
use crate::refusal::{Fault, FieldError};

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Fills in what a definition may leave out: singular, list kind, conversion, and the first stored version.
pub fn defaulted(crd: &mut Value) {
    let kind = text(crd, &["spec", "names", "kind"]).to_owned();
    let storage = version_list(crd).into_iter().find(|v| flag(v, "storage")).map(|v| name_of(v).to_owned());
    let spec = child_map(crd, "spec");
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let absent = |value: Option<&Value>| value.is_none_or(|v| v.is_null() || v.as_str() == Some(""));
        if absent(names.get("singular")) {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if absent(names.get("listKind")) && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let status = child_map(crd, "status");
    let none_stored = status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if let Some(storage) = storage.filter(|_| none_stored) {
        status.insert("storedVersions".into(), json!([storage]));
    }
}

/// Everything wrong with a definition, after [`defaulted`], whose schemas were examined. With an old one, also what must
/// not have changed.
pub fn admit(crd: &Value, old: Option<&Value>, examined: &Examined) -> Vec<FieldError> {
    if !examined.is_affordable {
        let detail = "the patterns of all schemas together are too large (try fewer, or smaller counts in them)";
        return vec![FieldError::new("spec.versions", Fault::Forbidden, detail)];
    }
    let mut errors = Vec::new();
    identity(crd, &mut errors);
    versions::check(crd, examined, &mut errors);
    names::check(crd.at(&["spec", "names"]), "spec.names", true, &mut errors);
    versions::check_shared(crd, examined, &mut errors);
    conversion(crd, &mut errors);
    if let Some(old) = old {
        unchanged(crd, old, &mut errors);
    }
    errors.extend(admit_status(crd));
    stored_versions(crd, &mut errors);
    approval(crd, old, &mut errors);
    if crd.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::with_value("spec.preserveUnknownFields", Fault::Invalid, &true.into(), detail));
    }
    errors
}

/// Everything wrong with the status of a definition, as far as anybody looks at it who writes nothing else: which versions
/// are stored is what they say, until the definition itself changes.
pub fn admit_status(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // Those that it asks for are told about once.
    let accepted = crd.at(&["status", "acceptedNames"]).filter(|names| crd.at(&["spec", "names"]) != Some(names));
    names::check(accepted, "status.acceptedNames", false, &mut errors);
    errors
}

fn identity(crd: &Value, errors: &mut Vec<FieldError>) {
    let (group, plural) = (text(crd, &["spec", "group"]), text(crd, &["spec", "names", "plural"]));
    let name = crd.name();
    let mut wrong_name = |why: String| {
        errors.push(FieldError::with_value("metadata.name", Fault::Invalid, &name.into(), why));
    };
    names::subdomain(name).into_iter().for_each(&mut wrong_name);
    if name != format!("{plural}.{group}") {
        wrong_name("must be spec.names.plural+\".\"+spec.group".into());
    }
    let why = names::subdomain(group).join(",");
    if group.is_empty() {
        errors.push(FieldError::new("spec.group", Fault::Required, ""));
    } else if !why.is_empty() {
        errors.push(FieldError::with_value("spec.group", Fault::Invalid, &group.into(), why));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::with_value("spec.group", Fault::Invalid, &group.into(), detail));
    }
    one_of("spec.scope", text(crd, &["spec", "scope"]), &["Cluster", "Namespaced"], errors);
}

fn one_of(path: &str, value: &str, allowed: &[&str], errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::new(path, Fault::Required, ""));
    } else if !allowed.contains(&value) {
        let listed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", listed.join(", "));
        errors.push(FieldError::with_value(path, Fault::NotSupported, &value.into(), detail));
    }
}

fn conversion(crd: &Value, errors: &mut Vec<FieldError>) {
    let strategy = text(crd, &["spec", "conversion", "strategy"]);
    if strategy == "Webhook" {
        // This server calls nobody, so that accepting it would only fail later and less clearly.
        let detail = "conversion webhooks are not supported by this server, use None";
        let at = "spec.conversion.strategy";
        errors.push(FieldError::with_value(at, Fault::Invalid, &strategy.into(), detail));
        return;
    }
    one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], errors);
    if crd.at(&["spec", "conversion", "webhook"]).is_some_and(|webhook| !webhook.is_null()) {
        let detail = "should not be set when strategy is not set to Webhook";
        errors.push(FieldError::new("spec.conversion.webhookClientConfig", Fault::Forbidden, detail));
    }
}

/// What objects are stored under cannot change under them.
fn unchanged(crd: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let established = old.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten().any(|c| {
        c.get("type").and_then(Value::as_str) == Some("Established")
            && c.get("status").and_then(Value::as_str) == Some("True")
    });
    let mut fixed: Vec<&[&str]> = Vec::new();
    if established {
        fixed.extend([["spec", "scope"].as_slice(), &["spec", "names", "kind"]]);
    }
    fixed.extend([["spec", "group"].as_slice(), &["spec", "names", "plural"]]);
    for path in fixed {
        let (new, old) = (text(crd, path), text(old, path));
        if new != old {
            let at = path.join(".");
            errors.push(FieldError::with_value(at, Fault::Invalid, &new.into(), "field is immutable"));
        }
    }
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let at = "status.storedVersions";
    let value = crd.at(&["status", "storedVersions"]).cloned().unwrap_or(Value::Null);
    let stored: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        errors.push(FieldError::with_value(at, Fault::Invalid, &value, "must have at least one stored version"));
        return;
    }
    let versions = version_list(crd);
    for version in versions.iter().filter(|v| flag(v, "storage") && !stored.contains(&name_of(v))) {
        let detail = format!("must have the storage version {}", name_of(version));
        errors.push(FieldError::with_value(at, Fault::Invalid, &value, detail));
    }
    for (index, name) in stored.iter().enumerate().filter(|(_, name)| !versions.iter().any(|v| name_of(v) == **name)) {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.push(FieldError::with_value(format!("{at}[{index}]"), Fault::Invalid, &(*name).into(), detail));
    }
}

/// Groups of the Kubernetes project ask for a sign that the project agrees.
fn approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = text(crd, &["spec", "group"]);
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|zone| group.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let annotation = |crd: &Value| text(crd, &["metadata", "annotations", APPROVAL]).to_owned();
    let given = annotation(crd);
    let is_url = given.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if !protected || given.starts_with("unapproved") || is_url || old.is_some_and(|old| annotation(old) == given) {
        return;
    }
    let at = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    errors.push(if given.is_empty() {
        let detail = format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
        FieldError::new(at, Fault::Required, detail)
    } else {
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting \
             with \"unapproved\", {see}"
        );
        FieldError::with_value(at, Fault::Invalid, &given.as_str().into(), detail)
    });
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.at(path).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn version_list(crd: &Value) -> Vec<&Value> {
    crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten().collect()
}

fn name_of(version: &Value) -> &str {
    version.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn schema_of(version: &Value) -> Option<&Value> {
    version.at(&["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null())
}

#[cfg(test)]
mod tests;
