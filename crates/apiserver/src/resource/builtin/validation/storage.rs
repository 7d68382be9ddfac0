//! Volumes, claims and storage classes.

use serde_json::{Value, json};

use super::{Errors, IMMUTABLE, items, names, text};
use crate::object::Object;
use crate::resource::builtin::{quantity, wire};

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const NOT_ZERO: &str = "must be greater than zero";

pub(super) fn claim(errors: &mut Errors, claim: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let spec = claim.get("spec").unwrap_or(&empty);
    if items(spec.get("accessModes")).next().is_none() {
        errors.required("spec.accessModes", "at least 1 access mode is required");
    }
    access_modes(errors, spec);
    match spec.at(&["resources", "requests", "storage"]) {
        None => errors.required("spec.resources[storage]", ""),
        Some(amount) if nanos(amount) <= 0 => errors.invalid("spec.resources[storage]", amount, NOT_ZERO),
        Some(_) => {}
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        for why in names::subdomain(class) {
            errors.invalid("spec.storageClassName", &json!(class), &why);
        }
    }
    errors.one_of(spec, "spec", "volumeMode", VOLUME_MODES);
    if let Some(old) = old {
        claim_update(errors, claim, old);
    }
}

fn access_modes(errors: &mut Errors, spec: &Value) {
    for (_, mode) in items(spec.get("accessModes")) {
        if !mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode)) {
            errors.unsupported("spec.accessModes", mode, ACCESS_MODES);
        }
    }
}

/// A bound claim may ask for more, a claim may be given a volume; nothing else changes.
fn claim_update(errors: &mut Errors, new: &Value, old: &Value) {
    let (Some(new_spec), Some(old_spec)) = (new.get("spec"), old.get("spec")) else { return };
    let is_bound = old.at(&["status", "phase"]).is_some_and(|phase| phase == "Bound");
    let mut expected = old_spec.clone();
    let mut allow = |field: &str| match new_spec.get(field) {
        Some(value) => expected[field] = value.clone(),
        None => drop(expected.as_object_mut().and_then(|map| map.remove(field))),
    };
    if text(old_spec, "volumeName").is_empty() {
        allow("volumeName");
    }
    // A class may be given once, to a claim that was made before there was a default.
    if old_spec.get("storageClassName").is_none() {
        allow("storageClassName");
    }
    if is_bound {
        allow("volumeAttributesClassName");
        if let Some(storage) = new_spec.at(&["resources", "requests", "storage"]) {
            expected["resources"]["requests"]["storage"] = storage.clone();
        }
    }
    if *new_spec != expected {
        errors.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
        return;
    }
    let amount = |object: &Value, path: &[&str]| object.at(path).map_or(0, nanos);
    let asked = amount(new, &["spec", "resources", "requests", "storage"]);
    let before = amount(old, &["spec", "resources", "requests", "storage"]);
    let capacity = amount(old, &["status", "capacity", "storage"]);
    if asked < before && asked < capacity {
        errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
}

pub(super) fn volume(errors: &mut Errors, volume: &Value, old: Option<&Value>) {
    const POLICIES: &[&str] = &["Delete", "Recycle", "Retain"];
    let empty = Value::Null;
    let spec = volume.get("spec").unwrap_or(&empty);
    if items(spec.get("accessModes")).next().is_none() {
        errors.required("spec.accessModes", "");
    }
    access_modes(errors, spec);
    let capacity = spec.get("capacity").unwrap_or(&empty);
    if capacity.is_null() {
        errors.required("spec.capacity", "");
    }
    if !capacity.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("storage")) {
        errors.unsupported("spec.capacity", capacity, &["storage"]);
    }
    if let Some(amount) = capacity.get("storage").filter(|amount| nanos(amount) <= 0) {
        errors.invalid("spec.capacity[storage]", amount, NOT_ZERO);
    }
    let sources: Vec<&str> = source_fields().filter(|field| spec.get(field).is_some()).collect();
    if sources.is_empty() {
        errors.required("spec", "must specify a volume type");
    }
    for source in sources.iter().skip(1) {
        errors.forbidden(&format!("spec.{source}"), "may not specify more than 1 volume type");
    }
    errors.one_of(spec, "spec", "persistentVolumeReclaimPolicy", POLICIES);
    errors.one_of(spec, "spec", "volumeMode", VOLUME_MODES);
    let Some(old) = old.and_then(|old| old.get("spec")) else { return };
    if source_fields().any(|field| spec.get(field) != old.get(field)) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden("spec.persistentvolumesource", why);
    }
    if spec.get("volumeMode") != old.get("volumeMode") {
        errors.invalid("volumeMode", spec.get("volumeMode").unwrap_or(&empty), IMMUTABLE);
    }
}

/// The kinds of volume there are, one field each.
fn source_fields() -> impl Iterator<Item = &'static str> {
    let message = wire::find("core.v1.PersistentVolumeSource");
    message.into_iter().flat_map(|m| m.fields.iter().map(|field| field.name))
}

pub(super) fn class(errors: &mut Errors, class: &Value, old: Option<&Value>) {
    let provisioner = text(class, "provisioner");
    if provisioner.is_empty() {
        errors.required("provisioner", "");
    } else {
        for why in names::qualified(&provisioner.to_lowercase()) {
            errors.invalid("provisioner", &json!(provisioner), &why);
        }
    }
    errors.one_of(class, "", "reclaimPolicy", &["Delete", "Retain"]);
    errors.one_of(class, "", "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    let Some(old) = old else { return };
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if class.get(field) != old.get(field) {
            errors.forbidden(field, &format!("updates to {field} are forbidden."));
        }
    }
    errors.unchanged(class, old, "volumeBindingMode");
}

fn nanos(amount: &Value) -> i128 {
    amount.as_str().and_then(|text| quantity::parse(text).ok()).unwrap_or_default()
}
