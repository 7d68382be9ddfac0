//! Definitions that are not quite ours: Strimzi's, or those of another version of ours. The API server cuts out of every
//! object what its definition does not know, in silence, so somebody has to say what that is.
//!
//! Nothing is listed here by hand: our own definitions say what we read and write.

use std::{collections::BTreeSet, fmt};

use evenkeel_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

/// The version that the operator speaks.
pub(super) const VERSION: &str = "v1";

/// What a definition on the cluster lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// All of it: nobody has installed it.
    Definition,
    /// Our version of it: nothing of this kind can be read or written.
    Version,
    /// The status of its own that every resource has.
    Status,
    /// Fields, which are cut out of every object.
    Fields(BTreeSet<String>),
    /// Values of a field, for which an object is refused.
    Values {
        /// The field.
        field: String,
        /// The values.
        values: Vec<String>,
    },
}

impl Lack {
    /// Whether the operator cannot do its work at all.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Definition | Self::Version | Self::Status)
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition => write!(out, "it is not installed: `evenkeel install` has it"),
            Self::Version => write!(out, "it serves no {VERSION}, so nothing of this kind is seen"),
            Self::Status => write!(out, "it has no status, so nothing of this kind is looked after"),
            Self::Fields(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
                write!(out, "the API server drops {}", fields.join(", "))
            }
            Self::Values { field, values } => {
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                write!(out, "the API server refuses {} as `{field}`", values.join(", "))
            }
        }
    }
}

/// What a definition lacks of ours. Pure.
pub fn lacks(ours: &CustomResourceDefinition, found: Option<&CustomResourceDefinition>) -> Vec<Lack> {
    let Some(found) = found else { return vec![Lack::Definition] };
    let (Some(wanted), Some(there)) = (served(ours), served(found)) else { return vec![Lack::Version] };
    let has_status = |version: &CustomResourceDefinitionVersion| {
        version.subresources.as_ref().is_some_and(|sub| sub.status.is_some())
    };
    let mut comparison = Comparison::default();
    let schema = |version: &CustomResourceDefinitionVersion| {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        serde_json::to_value(schema).unwrap_or_default()
    };
    comparison.walk("", &schema(wanted), &schema(there));
    let status = (has_status(wanted) && !has_status(there)).then_some(Lack::Status);
    let fields = (!comparison.fields.is_empty()).then_some(Lack::Fields(comparison.fields));
    status.into_iter().chain(fields).chain(comparison.values).collect()
}

fn served(definition: &CustomResourceDefinition) -> Option<&CustomResourceDefinitionVersion> {
    definition.spec.versions.iter().find(|version| version.name == VERSION && version.served)
}

#[derive(Default)]
struct Comparison {
    fields: BTreeSet<String>,
    values: Vec<Lack>,
}

impl Comparison {
    /// Compares two schemas of the same field. Of a field that is not known, those inside are not named besides.
    fn walk(&mut self, path: &str, ours: &Value, theirs: &Value) {
        if theirs["x-kubernetes-preserve-unknown-fields"] == true && theirs.get("properties").is_none() {
            return;
        }
        self.compare_values(path, &ours["enum"], &theirs["enum"]);
        for (name, field) in ours["properties"].as_object().into_iter().flatten() {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            // Whatever is in a map is known by its values' schema.
            match theirs["properties"].get(name).or(theirs.get("additionalProperties").filter(|it| it.is_object())) {
                Some(known) => self.walk(&inner, field, known),
                None if theirs["x-kubernetes-preserve-unknown-fields"] == true => {}
                None if theirs["additionalProperties"] == true => {}
                None => drop(self.fields.insert(inner)),
            }
        }
        if ours["items"].is_object() && theirs["items"].is_object() {
            self.walk(&format!("{path}[]"), &ours["items"], &theirs["items"]);
        }
    }

    fn compare_values(&mut self, path: &str, ours: &Value, theirs: &Value) {
        let (Some(ours), Some(theirs)) = (ours.as_array(), theirs.as_array()) else { return };
        let missing = ours.iter().filter(|value| !theirs.contains(value));
        let values: Vec<String> = missing.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
        if !values.is_empty() {
            self.values.push(Lack::Values { field: path.to_owned(), values });
        }
    }
}

/// What the definitions of a cluster lack of ours, by their names.
pub async fn look(client: &Client) -> Result<Vec<(String, Lack)>, kube::Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut all = Vec::new();
    for ours in crds() {
        let found = api.get_opt(&ours.name_any()).await?;
        all.extend(lacks(&ours, found.as_ref()).into_iter().map(|lack| (ours.name_any(), lack)));
    }
    Ok(all)
}

/// Says in the log what the definitions lack. It is no reason to wait: whatever they know works.
pub async fn tell(client: &Client) {
    match look(client).await {
        Ok(all) => {
            for (definition, lack) in all {
                if lack.is_fatal() {
                    tracing::error!(definition, "{lack}");
                } else {
                    tracing::warn!(definition, "{lack}");
                }
            }
        }
        Err(error) => tracing::info!(%error, "could not look whether the definitions know every field"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours(kind: &str) -> CustomResourceDefinition {
        crds().into_iter().find(|definition| definition.spec.names.kind == kind).unwrap()
    }

    /// One of ours, changed at one place of each version's schema.
    fn changed(kind: &str, pointer: &str, change: impl Fn(&mut Value)) -> CustomResourceDefinition {
        let mut value = serde_json::to_value(ours(kind)).unwrap();
        for version in value["spec"]["versions"].as_array_mut().unwrap() {
            change(version.pointer_mut(&format!("/schema/openAPIV3Schema/properties{pointer}")).unwrap());
        }
        serde_json::from_value(value).unwrap()
    }

    fn told(kind: &str, found: &CustomResourceDefinition) -> Vec<String> {
        lacks(&ours(kind), Some(found)).iter().map(Lack::to_string).collect()
    }

    #[test]
    fn ours_lack_nothing() {
        for definition in crds() {
            assert_eq!(lacks(&definition, Some(&definition)), []);
        }
    }

    #[test]
    fn fields_that_are_cut_out_are_named_and_not_what_is_in_them() {
        let closed = changed("KafkaRebalance", "/spec", |spec| {
            let spec = spec.as_object_mut().unwrap();
            spec.remove("x-kubernetes-preserve-unknown-fields");
            spec["properties"].as_object_mut().unwrap().remove("template");
            spec["properties"].as_object_mut().unwrap().remove("moveReplicasOffVolumes");
        });
        let expected = ["the API server drops `spec.moveReplicasOffVolumes`, `spec.template`"];
        assert_eq!(told("KafkaRebalance", &closed), expected);
    }

    #[test]
    fn what_is_kept_unknown_is_not_lacking() {
        let open = changed("KafkaRebalance", "/spec", |spec| {
            *spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        });
        assert_eq!(told("KafkaRebalance", &open), [""; 0]);
    }

    #[test]
    fn values_that_are_refused_are_named_inside_of_lists_too() {
        let strict = changed("Kafka", "/spec/properties/cruiseControl/properties/autoRebalance/items", |mode| {
            mode["properties"]["mode"]["enum"] = json!(["add-brokers", "remove-brokers"]);
        });
        let expected = ["the API server refuses `imbalance` as `spec.cruiseControl.autoRebalance[].mode`"];
        assert_eq!(told("Kafka", &strict), expected);
    }

    #[test]
    fn what_makes_the_operator_blind_is_fatal() {
        let mut old = ours("Kafka");
        old.spec.versions.retain(|version| version.name != VERSION);
        let mut silent = ours("Kafka");
        silent.spec.versions.iter_mut().for_each(|version| version.subresources = None);
        for (found, lack) in [(None, Lack::Definition), (Some(old), Lack::Version), (Some(silent), Lack::Status)] {
            let lacking = lacks(&ours("Kafka"), found.as_ref());
            assert!(lack.is_fatal());
            assert_eq!(lacking, [lack]);
        }
    }
}
