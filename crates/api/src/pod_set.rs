//! `StrimziPodSet`: a set of pods that need not be alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, FreeForm, numbers, schema};

/// Which pods there should be.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "core.strimzi.io",
    version = "v1",
    kind = "StrimziPodSet",
    plural = "strimzipodsets",
    singular = "strimzipodset",
    shortname = "sps",
    category = "strimzi",
    namespaced,
    status = "StrimziPodSetStatus",
    derive = "PartialEq",
    doc = "A set of pods that need not be alike. The operator makes it: edit the KafkaNodePool instead.",
    printcolumn(name = "Pods", type_ = "integer", description = "Pods of the set", json_path = ".status.pods"),
    printcolumn(
        name = "Ready Pods",
        type_ = "integer",
        description = "Pods that are ready",
        json_path = ".status.readyPods"
    ),
    printcolumn(
        name = "Current Pods",
        type_ = "integer",
        description = "Pods that are as the set describes them",
        json_path = ".status.currentPods"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        description = "Age of the set",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct StrimziPodSetSpec {
    /// Which pods belong to the set. Only `matchLabels` counts.
    pub selector: LabelSelector,

    /// The pods, each a complete Pod.
    #[schemars(schema_with = "schema::required_free_form_list")]
    pub pods: Vec<FreeForm>,
}

/// Which pods there are.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StrimziPodSetStatus {
    /// Errors of this set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Condition>,

    /// The generation of the resource that the rest of the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Pods of the set, with those that are going.
    #[serde(default, deserialize_with = "numbers::nearest")]
    pub pods: i32,

    /// Pods that are ready.
    #[serde(default, deserialize_with = "numbers::nearest")]
    pub ready_pods: i32,

    /// Pods that are as the set describes them.
    #[serde(default, deserialize_with = "numbers::nearest")]
    pub current_pods: i32,
}
