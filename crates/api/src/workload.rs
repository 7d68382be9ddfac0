//! What a container of ours is given to run with.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FreeForm, UnknownFields, schema};

/// CPU and memory of a container.
///
/// Kubernetes' own `ResourceRequirements` would forget a misspelt key before anyone could point at it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "CPU and memory of a container.")]
pub struct Resources {
    /// What the container is guaranteed, such as `cpu: "2"` and `memory: 8Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<BTreeMap<String, Quantity>>,

    /// What the container may use at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, Quantity>>,

    /// Names of resource claims of the pod that the container uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form_list")]
    pub claims: Option<Vec<FreeForm>>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

impl Resources {
    /// The same in Kubernetes' own type, for a container. A claim that is no claim is left out.
    pub fn to_requirements(&self) -> ResourceRequirements {
        ResourceRequirements {
            requests: self.requests.clone(),
            limits: self.limits.clone(),
            claims: self.claims.as_ref().map(|claims| {
                claims
                    .iter()
                    .filter_map(|claim| serde_json::to_value(claim).and_then(serde_json::from_value).ok())
                    .collect()
            }),
        }
    }
}

/// Options of a Java virtual machine. A program that is not Java ignores them.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct JvmOptions {
    /// Largest heap, such as `4g`.
    #[serde(rename = "-Xmx", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[mMgG]?$"))]
    pub xmx: Option<String>,

    /// Initial heap, such as `4g`.
    #[serde(rename = "-Xms", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[mMgG]?$"))]
    pub xms: Option<String>,

    /// `-XX` options by name, such as `UseG1GC: "true"`.
    #[serde(rename = "-XX", skip_serializing_if = "Option::is_none")]
    pub xx: Option<BTreeMap<String, String>>,

    /// Whether garbage collections are logged. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_logging_enabled: Option<bool>,

    /// System properties passed with `-D`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java_system_properties: Option<Vec<SystemProperty>>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// One Java system property.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct SystemProperty {
    /// Name of the property.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Value of the property.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}
