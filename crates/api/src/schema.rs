//! Field types and schemas that the derived ones cannot say.
//!
//! A field with such a schema needs `#[serde(default)]`: without it the derive takes any field for
//! required, also an `Option`, because it no longer looks at its type.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// What a user wrote beside the fields that a type knows.
///
/// Flattened into nearly every type under `spec`. Flattening does two things at once: the CRD says
/// `x-kubernetes-preserve-unknown-fields` at that level, and the operator can still name the field
/// in a Warning (see [`unknown_fields`](crate::unknown_fields())).
pub type UnknownFields = BTreeMap<String, Value>;

/// A spec that can be read where it is not there: our definitions require it, Strimzi's do not, and one resource that cannot
/// be read makes every list that it is in unreadable. Serde asks a field that is missing whether it is optional; what it
/// derives, with `remote = "Self"`, is for one that is there.
macro_rules! may_be_left_out {
    ($spec:ident) => {
        impl ::serde::Serialize for $spec {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $spec {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct There($spec);

                impl<'de> ::serde::Deserialize<'de> for There {
                    fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        $spec::deserialize(deserializer).map(There)
                    }
                }

                let there: Option<There> = ::serde::Deserialize::deserialize(deserializer)?;
                Ok(there.map(|There(spec)| spec).unwrap_or_default())
            }
        }
    };
}

pub(crate) use may_be_left_out;

/// An object whose keys are the user's own business: Kafka settings, pod templates.
pub type FreeForm = BTreeMap<String, Value>;

/// An object with any keys. The derived schema would be `additionalProperties: true`, which the API
/// server takes for an object without keys when it prunes.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// A list of objects with any keys.
pub(crate) fn free_form_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

/// Like [`free_form_list`], for a list that must be there.
pub(crate) fn required_free_form_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
