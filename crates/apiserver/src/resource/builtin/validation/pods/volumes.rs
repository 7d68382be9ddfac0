//! Volumes of a pod, and where its containers mount them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{Errors, below, items, names, text};
use super::environment::{check_field, check_resource_field};
use crate::resource::builtin::{quantity, wire};

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
/// What of a pod its own files may tell.
const IN_FILES: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The volumes by name, for the mounts to refer to: those that nothing is wrong with.
pub(super) fn check_volumes<'a>(errors: &mut Errors, spec: &'a Value, path: &str) -> BTreeMap<&'a str, &'a Value> {
    let mut known = BTreeMap::new();
    for (at, volume) in items(spec.get("volumes")) {
        let path = format!("{path}.volumes[{at}]");
        let before = errors.0.len();
        check_source(errors, volume, &path);
        let (name, field) = (text(volume, "name"), below(&path, "name"));
        if name.is_empty() {
            errors.required(&field, "");
        } else {
            errors.named(&field, name, names::label(name));
        }
        if known.contains_key(name) {
            errors.duplicate(&field, &json!(name));
        }
        if errors.0.len() == before {
            known.insert(name, volume);
        }
    }
    known
}

fn check_source(errors: &mut Errors, volume: &Value, path: &str) {
    let mut sources = source_fields().filter(|field| volume.get(field).is_some());
    if let Some(kind) = sources.next() {
        check_one(errors, kind, &volume[kind], &below(path, kind));
    }
    for other in sources {
        errors.forbidden(&below(path, other), "may not specify more than 1 volume type");
    }
}

/// The kinds of volume there are, one field each.
fn source_fields() -> impl Iterator<Item = &'static str> {
    // The original looks at the directory on the node last, or so its messages say.
    let message = wire::find("core.v1.VolumeSource");
    let fields = message.into_iter().flat_map(|m| m.fields.iter().map(|field| field.name));
    ["emptyDir", "hostPath"].into_iter().chain(fields.filter(|field| !matches!(*field, "emptyDir" | "hostPath")))
}

fn check_one(errors: &mut Errors, kind: &str, source: &Value, path: &str) {
    let mut required = |field: &str| {
        let missing = text(source, field).is_empty();
        if missing {
            errors.required(&below(path, field), "");
        }
        !missing
    };
    match kind {
        "emptyDir" => {
            let limit = source.get("sizeLimit").and_then(Value::as_str).and_then(|text| quantity::parse(text).ok());
            if limit.is_some_and(|limit| limit < 0) {
                errors.forbidden(&below(path, "sizeLimit"), "SizeLimit field must be a valid resource quantity");
            }
        }
        "hostPath" => {
            let has_path = required("path");
            if has_path {
                no_backsteps(errors, text(source, "path"), &below(path, "path"));
                errors.one_of(source, path, "type", HOST_PATH_TYPES);
            }
        }
        "configMap" | "secret" => {
            required(if kind == "secret" { "secretName" } else { "name" });
            check_mode(errors, source, path, "defaultMode");
            check_keys(errors, source, path);
        }
        "persistentVolumeClaim" => _ = required("claimName"),
        "csi" => _ = required("driver"),
        "nfs" => {
            required("server");
            required("path");
            if !text(source, "path").starts_with('/') {
                errors.invalid(&below(path, "path"), &json!(text(source, "path")), "must be an absolute path");
            }
        }
        "downwardAPI" => {
            check_mode(errors, source, path, "defaultMode");
            items(source.get("items")).for_each(|(_, file)| check_downward_file(errors, file, path));
        }
        "projected" => check_projected(errors, source, path),
        "ephemeral" if source.get("volumeClaimTemplate").is_none() => {
            errors.required(&below(path, "volumeClaimTemplate"), "");
        }
        _ => {}
    }
}

fn check_mode(errors: &mut Errors, parent: &Value, path: &str, field: &str) {
    if let Some(mode) = parent.get(field).filter(|mode| !mode.as_i64().is_some_and(|m| (0..=0o777).contains(&m))) {
        errors.invalid(&below(path, field), mode, FILE_MODE);
    }
}

/// Which keys of a config map or secret become which files.
fn check_keys(errors: &mut Errors, source: &Value, path: &str) {
    for (at, item) in items(source.get("items")) {
        let path = format!("{path}.items[{at}]");
        for field in ["key", "path"] {
            if text(item, field).is_empty() {
                errors.required(&below(&path, field), "");
            }
        }
        own_path(errors, text(item, "path"), &below(&path, "path"));
        check_mode(errors, item, &path, "mode");
    }
}

fn check_downward_file(errors: &mut Errors, file: &Value, path: &str) {
    if text(file, "path").is_empty() {
        errors.required(&below(path, "path"), "");
    }
    own_path(errors, text(file, "path"), &below(path, "path"));
    match (file.get("fieldRef"), file.get("resourceFieldRef")) {
        (Some(field), resource) => {
            check_field(errors, field, &below(path, "fieldRef"), IN_FILES);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(path, &json!("resource"), why);
            }
        }
        (None, Some(resource)) => check_resource_field(errors, resource, &below(path, "resourceFieldRef"), true),
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    check_mode(errors, file, path, "mode");
}

fn check_projected(errors: &mut Errors, projected: &Value, path: &str) {
    const KINDS: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
    check_mode(errors, projected, path, "defaultMode");
    let mut paths = BTreeSet::new();
    for (at, source) in items(projected.get("sources")) {
        let here = format!("{path}.sources[{at}]");
        for kind in KINDS {
            let Some(part) = source.get(kind) else { continue };
            let at = below(&here, kind);
            match kind {
                "downwardAPI" => {
                    items(part.get("items")).for_each(|(_, file)| check_downward_file(errors, file, &at));
                }
                "serviceAccountToken" => check_token(errors, part, path, &at),
                _ => {
                    if text(part, "name").is_empty() {
                        errors.required(&below(&at, "name"), "");
                    }
                    check_keys(errors, part, &at);
                }
            }
            for (_, item) in items(part.get("items")) {
                let file = text(item, "path");
                if !file.is_empty() && !paths.insert(file) {
                    let shown = if kind == "downwardAPI" { file } else { text(part, "name") };
                    errors.invalid(path, &json!(shown), "conflicting duplicate paths");
                }
            }
        }
        if source.as_object().is_some_and(|kinds| kinds.len() > 1) {
            errors.forbidden(&here, "may not specify more than 1 volume type per source");
        }
    }
}

fn check_token(errors: &mut Errors, token: &Value, volume: &str, path: &str) {
    if let Some(seconds) = token.get("expirationSeconds") {
        let why = match seconds.as_i64().unwrap_or_default() {
            ..600 => Some("may not specify a duration less than 10 minutes"),
            4_294_967_297.. => Some("may not specify a duration larger than 2^32 seconds"),
            _ => None,
        };
        if let Some(why) = why {
            errors.invalid(&below(path, "expirationSeconds"), seconds, why);
        }
    }
    // The original tells of its path at the volume.
    match text(token, "path") {
        "" => errors.required(&below(volume, "path"), ""),
        file => own_path(errors, file, &below(volume, "path")),
    }
}

/// A path that must stay below where it starts.
pub(super) fn descending(errors: &mut Errors, target: &str, path: &str) {
    if target.starts_with('/') {
        errors.invalid(path, &json!(target), "must be a relative path");
    }
    no_backsteps(errors, target, path);
}

fn no_backsteps(errors: &mut Errors, target: &str, path: &str) {
    if target.split('/').any(|step| step == "..") {
        errors.invalid(path, &json!(target), "must not contain '..'");
    }
}

/// One that the kubelet may write to beside its own files, which begin with two dots.
fn own_path(errors: &mut Errors, target: &str, path: &str) {
    descending(errors, target, path);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.invalid(path, &json!(target), "must not start with '..'");
    }
}

/// What the items of a container's list have in a field.
fn all<'a>(container: &'a Value, list: &str, field: &str) -> BTreeSet<&'a str> {
    items(container.get(list)).map(|(_, item)| text(item, field)).collect()
}

/// Mounts, and devices that are handed through as they are. Neither may have what the other has.
pub(super) fn check_mounts(errors: &mut Errors, container: &Value, path: &str, volumes: &BTreeMap<&str, &Value>) {
    const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
    let (devices, device_paths) =
        (all(container, "volumeDevices", "name"), all(container, "volumeDevices", "devicePath"));
    let list = below(path, "volumeMounts");
    let mut seen = BTreeSet::new();
    for (at, mount) in items(container.get("volumeMounts")) {
        let path = format!("{list}[{at}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(&below(&path, "name"), "");
        }
        if !volumes.contains_key(name) {
            errors.not_found(&below(&path, "name"), &json!(name));
        }
        if place.is_empty() {
            errors.required(&below(&path, "mountPath"), "");
        }
        if !seen.insert(place) {
            errors.invalid(&below(&path, "mountPath"), &json!(place), "must be unique");
        }
        if devices.contains(name) {
            errors.invalid(&below(&path, "name"), &json!(name), "must not already exist in volumeDevices");
        }
        if device_paths.contains(place) {
            let why = "must not already exist as a path in volumeDevices";
            errors.invalid(&below(&path, "mountPath"), &json!(place), why);
        }
        // The original tells of these at the list, not at its item.
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        descending(errors, sub, &below(&list, "subPath"));
        if !sub.is_empty() && !expression.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&below(&path, "subPathExpr"), &json!(expression), why);
        }
        descending(errors, expression, &below(&list, "subPathExpr"));
        errors.one_of(mount, &list, "mountPropagation", PROPAGATIONS);
        let privileged = container.get("securityContext").and_then(|c| c.get("privileged")) == Some(&json!(true));
        if text(mount, "mountPropagation") == "Bidirectional" && !privileged {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&below(&list, "mountPropagation"), why);
        }
    }
}

/// Block devices come from claims, and are no directories.
pub(super) fn check_devices(errors: &mut Errors, container: &Value, path: &str, volumes: &BTreeMap<&str, &Value>) {
    let (mounts, mount_paths) = (all(container, "volumeMounts", "name"), all(container, "volumeMounts", "mountPath"));
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for (at, device) in items(container.get("volumeDevices")) {
        let path = format!("{path}.volumeDevices[{at}]");
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        let (name_at, place_at) = (below(&path, "name"), below(&path, "devicePath"));
        if name.is_empty() {
            errors.required(&name_at, "");
        } else if !names.insert(name) {
            errors.invalid(&name_at, &json!(name), "must be unique");
        }
        match volumes.get(name) {
            None => errors.not_found(&name_at, &json!(name)),
            Some(volume) if volume.get("persistentVolumeClaim").or(volume.get("ephemeral")).is_none() => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&name_at, &json!(name), why);
            }
            Some(_) => {}
        }
        if place.is_empty() {
            errors.required(&place_at, "");
        }
        if places.contains(place) {
            errors.invalid(&place_at, &json!(place), "must be unique");
        }
        if place.split('/').any(|step| step == "..") {
            errors.invalid(&place_at, &json!(place), "can not contain backsteps ('..')");
        } else {
            places.insert(place);
        }
        if mounts.contains(name) {
            errors.invalid(&name_at, &json!(name), "must not already exist in volumeMounts");
        }
        if mount_paths.contains(place) {
            errors.invalid(&place_at, &json!(place), "must not already exist as a path in volumeMounts");
        }
    }
}
