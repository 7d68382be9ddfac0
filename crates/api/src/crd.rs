//! The CustomResourceDefinitions of all kinds.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, labels};

/// The version that is served beside `v1`, for manifests from before `v1` existed.
const OLD_VERSION: &str = "v1beta2";

/// What the label [`labels::APP_PART_OF`] says on CRDs of ours: whoever has installed others,
/// such as Strimzi's, keeps them.
pub const PART_OF: &str = "evenkeel";

static CRDS: LazyLock<[CustomResourceDefinition; 4]> = LazyLock::new(|| {
    [Kafka::crd(), KafkaNodePool::crd(), KafkaRebalance::crd(), StrimziPodSet::crd()].map(serve_both_versions)
});

/// The CRDs of all kinds.
pub fn crds() -> Vec<CustomResourceDefinition> {
    CRDS.to_vec()
}

/// The same without a copy.
pub(crate) fn definitions() -> &'static [CustomResourceDefinition] {
    CRDS.as_slice()
}

/// The CRDs of all kinds as YAML documents, ready for `kubectl apply`.
pub fn crds_yaml() -> Result<String, serde_saphyr::SerializeError> {
    let documents: Result<Vec<String>, _> = definitions().iter().map(crd_yaml).collect();
    Ok(documents?.join("---\n"))
}

/// One CRD as a YAML document.
pub fn crd_yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(crd)
}

/// The derived definition knows one version. Both versions mean the same, so the schema is derived
/// once, and nothing needs to be converted.
fn serve_both_versions(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.metadata.labels = Some([(labels::APP_PART_OF.to_owned(), PART_OF.to_owned())].into());
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    for schema in crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()) {
        if let Some(schema) = &mut schema.open_api_v3_schema {
            finish(schema);
        }
    }
    let old: Vec<_> = crd
        .spec
        .versions
        .iter()
        .map(|current| CustomResourceDefinitionVersion { name: OLD_VERSION.into(), storage: false, ..current.clone() })
        .collect();
    crd.spec.versions.extend(old);
    crd
}

/// What the derived schema lacks, here and in everything within.
fn finish(schema: &mut JSONSchemaProps) {
    unwrap_description(schema);
    bound(schema);
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(finish);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        finish(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        finish(values);
    }
}

/// Doc comments are wrapped for whoever reads the source. `kubectl explain` wraps for the terminal,
/// and would keep our line ends in the middle of sentences.
fn unwrap_description(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<String> = description.split("\n\n").map(|text| text.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}

/// The API server does not know the format `int32`, and would admit whatever fits into 64 bits.
fn bound(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref() == Some("int32") {
        schema.minimum.get_or_insert(f64::from(i32::MIN));
        schema.maximum.get_or_insert(f64::from(i32::MAX));
    }
}
