//! Custom kinds of a test's own: a group that nobody else uses, and a small schema.

use serde_json::{Value, json};

use crate::world::{World, unique};

/// An installed custom kind.
pub(crate) struct Widgets {
    pub(crate) group: String,
    namespace: String,
    /// Path of its definition.
    pub(crate) definition: String,
}

impl Widgets {
    /// Path of the widgets in the test's namespace, in version `v1`.
    pub(crate) fn path(&self) -> String {
        self.path_in("v1")
    }

    /// The same in another version.
    pub(crate) fn path_in(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/widgets", self.group, self.namespace)
    }

    /// Path of one widget.
    pub(crate) fn one(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// `widgets.<group>`, as messages name the resource.
    pub(crate) fn resource(&self) -> String {
        format!("widgets.{}", self.group)
    }

    /// A widget to send.
    pub(crate) fn widget(&self, name: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.group), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
    }
}

/// A definition to install, changed by the test as it needs: `spec` has the given schema, `status` is open.
pub(crate) fn definition(spec: Value) -> Value {
    let group = format!("{}.example.com", unique("promise"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// A schema for `spec` from its properties.
pub(crate) fn properties(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A schema for `spec` in which anything goes.
pub(crate) fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A definition whose `spec` has `replicas` and is scalable by it.
pub(crate) fn scalable() -> Value {
    let mut definition = definition(properties(json!({"replicas": {"type": "integer"}, "size": {"type": "string"}})));
    definition["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    definition
}

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl World {
    /// Installs a definition and waits until its widgets are served.
    pub(crate) async fn install(&self, definition: Value) -> Widgets {
        let created = self.post(DEFINITIONS, definition).await.ok();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let widgets = Widgets {
            group: text(&created["spec"]["group"]),
            namespace: self.namespace.clone(),
            definition: format!("{DEFINITIONS}/{}", text(&created["metadata"]["name"])),
        };
        let versions = created["spec"]["versions"].as_array().cloned().unwrap_or_default();
        for version in versions.iter().filter(|version| version["served"] == true) {
            // Served a little after `Established`, so ask for the widgets themselves.
            let path = match created["spec"]["scope"].as_str() {
                Some("Cluster") => format!("/apis/{}/{}/widgets", widgets.group, text(&version["name"])),
                _ => widgets.path_in(&text(&version["name"])),
            };
            self.until(&path, |answer| answer.code == 200).await;
        }
        widgets
    }
}
