//! Events in two API groups, kept once.
//!
//! What is stored is the core form; `events.k8s.io` is a view of it under other names. Nothing is lost either way, so a
//! write through the view and a read through the core form show the same event.

use serde_json::{Map, Value};

/// Names of the same fields: core, `events.k8s.io`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The stored form of an `events.k8s.io/v1` event.
pub fn to_core(event: &Value) -> Value {
    renamed(event, "v1", |name| RENAMED.iter().find(|(_, new)| *new == name).map(|(core, _)| *core))
}

/// The `events.k8s.io/v1` view of a stored event.
pub fn to_events_v1(event: &Value) -> Value {
    renamed(event, "events.k8s.io/v1", |name| RENAMED.iter().find(|(core, _)| *core == name).map(|(_, new)| *new))
}

/// The name of a field in the stored form, for selectors on the view: `regarding.name` is `involvedObject.name` there.
pub fn to_core_path(path: &str) -> String {
    let (head, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
    let core = RENAMED.iter().find(|(_, new)| *new == head).map_or(head, |(core, _)| core);
    format!("{core}{rest}")
}

/// What the field selector `source=` compares with: the component that reported the event, under either name.
pub fn source(event: &Value) -> &str {
    let component = event.get("source").and_then(|s| s.get("component")).and_then(Value::as_str).unwrap_or_default();
    if component.is_empty() {
        event.get("reportingComponent").and_then(Value::as_str).unwrap_or_default()
    } else {
        component
    }
}

fn renamed(event: &Value, api_version: &str, name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event.clone() };
    let mut map = Map::new();
    for (field, value) in fields {
        let value = if field == "apiVersion" { Value::String(api_version.into()) } else { value.clone() };
        map.insert(name(field).unwrap_or(field).to_owned(), value);
    }
    // Field ownership speaks of the fields by name, too.
    if let Some(entries) =
        map.get_mut("metadata").and_then(|m| m.get_mut("managedFields")).and_then(Value::as_array_mut)
    {
        entries.iter_mut().for_each(|entry| rename_owned(entry, api_version, &name));
    }
    Value::Object(map)
}

fn rename_owned(entry: &mut Value, api_version: &str, name: &impl Fn(&str) -> Option<&'static str>) {
    if let Some(Value::Object(fields)) = entry.get_mut("fieldsV1") {
        *fields = std::mem::take(fields)
            .into_iter()
            .map(|(key, value)| match key.strip_prefix("f:").and_then(name) {
                Some(other) => (format!("f:{other}"), value),
                None => (key, value),
            })
            .collect();
    }
    if entry.get("apiVersion").is_some() {
        entry["apiVersion"] = api_version.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new_style() -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "web.1", "namespace": "default", "managedFields": [
                {"manager": "m", "apiVersion": "events.k8s.io/v1", "fieldsV1": {"f:note": {}, "f:type": {}}}]},
            "eventTime": "2026-01-01T00:00:00.000000Z", "note": "it started", "reason": "Started", "type": "Normal",
            "action": "Start", "regarding": {"kind": "Pod", "name": "web"},
            "reportingController": "kubelet", "reportingInstance": "node-1",
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
        })
    }

    #[test]
    fn the_core_form_has_the_old_names() {
        let core = to_core(&new_style());
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(core["message"], "it started");
        assert_eq!(core["involvedObject"]["name"], "web");
        assert_eq!(core["reportingComponent"], "kubelet");
        assert_eq!(core["reportingInstance"], "node-1");
        assert_eq!(core["series"]["count"], 2);
        assert_eq!(core["source"], json!({}));
        assert!(core.get("note").is_none() && core.get("deprecatedCount").is_none());
        assert_eq!(core["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:message": {}, "f:type": {}}));
    }

    #[test]
    fn there_and_back_is_the_same_event() {
        let event = new_style();
        assert_eq!(to_events_v1(&to_core(&event)), event);
    }

    #[test]
    fn selectors_on_the_view_find_the_stored_field() {
        assert_eq!(to_core_path("regarding.name"), "involvedObject.name");
        assert_eq!(to_core_path("reportingController"), "reportingComponent");
        assert_eq!(to_core_path("metadata.name"), "metadata.name");
        assert_eq!(to_core_path(".reason"), ".reason");
    }

    #[test]
    fn the_source_is_the_component_under_either_name() {
        assert_eq!(source(&json!({"source": {"component": "a"}, "reportingComponent": "b"})), "a");
        assert_eq!(source(&json!({"source": {}, "reportingComponent": "b"})), "b");
        assert_eq!(source(&json!(7)), "");
    }
}
