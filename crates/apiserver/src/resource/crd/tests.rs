use serde_json::{Value, json};

use super::*;
use crate::object::Object;

fn widget() -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.t.example.com"},
        "spec": {
            "group": "t.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "mode": {"type": "string"}, "port": {"x-kubernetes-int-or-string": true}}}}}}}],
        },
    });
    defaulted(&mut crd);
    crd
}

/// Everything wrong with a definition.
fn faults(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    admit(crd, old, &Examined::of(crd))
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let mut crd = widget();
    change(&mut crd);
    let found: Vec<String> = faults(&crd, None).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn defaults_are_filled_in_once() {
    let mut crd = widget();
    assert_eq!(crd.at(&["spec", "names", "singular"]), Some(&json!("widget")));
    assert_eq!(crd.at(&["spec", "names", "listKind"]), Some(&json!("WidgetList")));
    assert_eq!(crd.at(&["spec", "conversion"]), Some(&json!({"strategy": "None"})));
    assert_eq!(crd.at(&["status", "storedVersions"]), Some(&json!(["v1"])));
    let before = crd.clone();
    defaulted(&mut crd);
    assert_eq!(crd, before);
    assert_eq!(faults(&crd, None), []);
}

#[test]
fn names_must_fit_together() {
    check(
        |crd| crd["metadata"]["name"] = "wrong.name".into(),
        &["metadata.name: Invalid value: \"wrong.name\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        |crd| crd["spec"]["scope"] = "Nowhere".into(),
        &["spec.scope: Unsupported value: \"Nowhere\": supported values: \"Cluster\", \"Namespaced\""],
    );
    check(
        |crd| crd["spec"]["names"]["listKind"] = "Widget".into(),
        &["spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"],
    );
}

#[test]
fn exactly_one_version_is_stored() {
    check(
        |crd| crd["spec"]["versions"][0]["storage"] = false.into(),
        &["spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}]: must have exactly one version marked as storage version"],
    );
    check(
        |crd| crd["spec"]["versions"][0]["schema"] = Value::Null,
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
}

#[test]
fn parts_that_all_versions_share_are_told_at_the_spec() {
    check(
        |crd| {
            crd["spec"]["versions"][0]["subresources"] =
                json!({"scale": {"specReplicasPath": ".x.y", "statusReplicasPath": "status"}});
            crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "", "type": "foo"}]);
            crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.zz"}, {"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.mode"}, {"jsonPath": ".spec"}]);
        },
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \".x.y\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \"status\": must be a simple json path \
             starting with .",
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of \
             boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Required value",
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec.zz\": is an invalid path: does not refer to a \
             valid field",
            "spec.selectableFields[2].jsonPath: Duplicate value: \".spec.mode\"",
            "spec.selectableFields[3].jsonPath: Invalid value: \".spec\": must point to a field of type string, \
             boolean or integer. Enum string fields and strings with formats are allowed.",
        ],
    );
    check(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"a": {}}})
        },
        &["spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified \
             object fields"],
    );
}

#[test]
fn versions_with_schemas_of_their_own_are_told_one_by_one() {
    let wrong = |index: usize| {
        let at = format!("spec.versions[{index}].schema.openAPIV3Schema.properties[a].type");
        format!("{at}: Required value: must not be empty for specified object fields")
    };
    let mut crd = widget();
    let version = |name: &str, is_sound: bool| {
        let a = if is_sound { json!({"type": "string"}) } else { json!({}) };
        json!({"name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": a}}}})
    };
    let versions = [version("v1", false), version("v2", true), version("v3", true), version("v4", false)];
    crd["spec"]["versions"] = versions.to_vec().into();
    let found: Vec<String> = faults(&crd, None).iter().map(ToString::to_string).collect();
    assert_eq!(found, [wrong(0), wrong(3)]);
    let examined = Examined::of(&crd);
    let (Some(second), Some(third)) = (examined.schema(1), examined.schema(2)) else { panic!("they are sound") };
    assert!(std::sync::Arc::ptr_eq(second, third), "one schema is read once");
}

#[test]
fn stored_versions_stay() {
    let old = widget();
    let mut crd = widget();
    crd["spec"]["versions"][0]["name"] = "v2".into();
    let found: Vec<String> = faults(&crd, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2");
    assert!(
        found[1].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was")
    );
}

#[test]
fn scope_is_fixed_once_established() {
    let mut old = widget();
    let mut crd = widget();
    crd["spec"]["scope"] = "Cluster".into();
    assert_eq!(faults(&crd, Some(&old)), []);
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let found: Vec<String> = faults(&crd, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["spec.scope: Invalid value: \"Cluster\": field is immutable"]);
}

#[test]
fn a_definition_becomes_a_resource() {
    let mut crd = widget();
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    second["deprecated"] = true.into();
    second["subresources"] = json!({"status": {}});
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.push(second);
    }
    assert_eq!(faults(&crd, None), []);
    let resource = resource_of(&crd, &Examined::of(&crd)).expect("an admitted definition");
    assert_eq!(resource.versions.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["v2", "v1"]);
    assert_eq!(resource.storage().name, "v1");
    let newest = &resource.versions[0];
    assert_eq!(newest.deprecation.as_deref(), Some("t.example.com/v2 Widget is deprecated"));
    assert!(newest.status);
    assert_eq!(newest.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["Age"]);
    assert_eq!(
        newest.openapi.at(&["properties", "spec", "properties", "port", "anyOf"]),
        Some(&json!([{"type": "integer"}, {"type": "string"}]))
    );
    assert_eq!(
        newest.openapi["x-kubernetes-group-version-kind"],
        json!([{"group": "t.example.com", "kind": "Widget", "version": "v2"}])
    );
}

#[test]
fn versions_are_ordered_as_kubernetes_orders_them() {
    let mut names = ["foo10", "v1alpha1", "v10", "v1", "v2beta1", "v11beta2", "v3", "foo1", "v10beta3", "v11alpha2"];
    names.sort_by(|a, b| newest_first(a, b));
    assert_eq!(names, ["v10", "v3", "v1", "v11beta2", "v10beta3", "v2beta1", "v11alpha2", "v1alpha1", "foo1", "foo10"]);
}
