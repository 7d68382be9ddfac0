//! Values of the wrong JSON type in built-in kinds: a 400 there, before anything else is looked at.
//!
//! The original reads a body into its own structures, and what does not fit is no object at all. Its texts name the
//! structure and the path, so the table of messages is walked here and not the schema.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::{quantity, time, wire};
use crate::decode::json_type;
use crate::object::Object;
use wire::{Kind, Message, Presence, Shape};

/// The structure that the metadata of all objects have.
pub(super) const METADATA: &str = "meta.v1.ObjectMeta";

/// Says what of an object does not fit its kind's structure.
/// Objects of unknown kinds pass: they have no structure here.
pub fn decode_check(object: &Value) -> Result<(), String> {
    wire::of_kind(object.api_version(), object.kind()).map_or(Ok(()), |message| fits(message, object))
}

/// The same for the options of a delete, which every group has and which need not say what they are.
pub fn check_delete_options(options: &Value) -> Result<(), String> {
    wire::find("meta.v1.DeleteOptions").map_or(Ok(()), |message| fits(message, options))
}

/// The same for the metadata of a custom object, which the original reads by itself: paths begin inside of it.
pub fn check_metadata(metadata: &Value) -> Result<(), String> {
    match metadata {
        Value::Object(_) => wire::find(METADATA).map_or(Ok(()), |message| fits(message, metadata)),
        Value::Null => Ok(()),
        other => Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", json_type(other))),
    }
}

fn fits(message: &Message, object: &Value) -> Result<(), String> {
    let Value::Object(map) = object else { return Ok(()) };
    let mut place = Place { structure: "", path: Vec::new() };
    place.message(message, map, true)
}

/// Where the walk is, as the original's errors tell it.
struct Place {
    /// Innermost structure.
    structure: &'static str,
    path: Vec<&'static str>,
}

impl Place {
    /// `outermost`: whether the message's own name counts as the structure; fields of an embedded message are told
    /// as fields of the structure around it.
    fn message(&mut self, message: &Message, map: &Map<String, Value>, outermost: bool) -> Result<(), String> {
        let around = self.structure;
        if outermost {
            self.structure = last(message.name);
        }
        for field in &message.fields {
            if field.presence == Presence::Embedded {
                if let Shape::One(Kind::Message(name)) = field.shape
                    && let Some(embedded) = wire::find(name)
                {
                    self.path.push(last(name));
                    self.message(embedded, map, false)?;
                    self.path.pop();
                }
                continue;
            }
            if let Some(value) = map.get(field.name) {
                self.path.push(field.name);
                self.value(field.shape, value)?;
                self.path.pop();
            }
        }
        self.structure = around;
        Ok(())
    }

    fn value(&mut self, shape: Shape, value: &Value) -> Result<(), String> {
        match (shape, value) {
            (_, Value::Null) => Ok(()),
            (Shape::One(kind), value) => self.one(kind, value),
            (Shape::List(kind), Value::Array(items)) => items.iter().try_for_each(|item| self.one(kind, item)),
            (Shape::Map(kind), Value::Object(map)) => map.values().try_for_each(|item| self.one(kind, item)),
            (Shape::List(kind), other) => Err(self.misfit(other, &format!("[]{}", type_name(kind)))),
            (Shape::Map(kind), other) => Err(self.misfit(other, &format!("map[string]{}", type_name(kind)))),
        }
    }

    fn one(&mut self, kind: Kind, value: &Value) -> Result<(), String> {
        match (kind, value) {
            (_, Value::Null)
            | (Kind::String(_), Value::String(_))
            | (Kind::Bool, Value::Bool(_))
            | (Kind::IntOrString, Value::String(_))
            | (Kind::Raw, _) => Ok(()),
            (Kind::Int32 | Kind::IntOrString, Value::Number(number)) => match number.as_i64() {
                Some(n) if i32::try_from(n).is_ok() => Ok(()),
                _ => Err(self.misfit_of(&format!("number {number}"), "int32")),
            },
            (Kind::Int64, Value::Number(number)) => match number.as_i64() {
                Some(_) => Ok(()),
                None => Err(self.misfit_of(&format!("number {number}"), "int64")),
            },
            (Kind::Float, Value::Number(_)) => Ok(()),
            (Kind::Bytes, Value::String(text)) => bytes(text).map(drop),
            (Kind::Time, Value::String(text)) => time::check(text, time::SECONDS),
            (Kind::MicroTime, Value::String(text)) => time::check(text, time::MICROSECONDS),
            (Kind::Quantity, Value::String(text)) => quantity::parse(text).map(drop).map_err(str::to_owned),
            (Kind::Quantity, Value::Number(number)) => {
                quantity::parse(&number.to_string()).map(drop).map_err(str::to_owned)
            }
            (Kind::Quantity, _) => Err(quantity::WRONG_FORMAT.to_owned()),
            (Kind::Message(name), Value::Object(map)) => match wire::find(name) {
                Some(message) => self.message(message, map, true),
                None => Ok(()),
            },
            (Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings, Value::Object(_)) => {
                self.one(Kind::Message(wire::SCHEMA), value)
            }
            (Kind::SchemaOrList, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.one(Kind::Message(wire::SCHEMA), item))
            }
            (Kind::SchemaOrStrings, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.one(Kind::String("string"), item))
            }
            // The original reads anything else as nothing.
            (Kind::SchemaOrList | Kind::SchemaOrStrings, _) | (Kind::SchemaOrBool, Value::Bool(_)) => Ok(()),
            (Kind::SchemaOrBool, _) => Err("boolean or JSON schema expected".to_owned()),
            (Kind::Time | Kind::MicroTime, other) => Err(self.misfit(other, "string")),
            (Kind::IntOrString, other) => Err(self.misfit(other, "int32")),
            (kind, other) => Err(self.misfit(other, &type_name(kind))),
        }
    }

    fn misfit(&self, value: &Value, wanted: &str) -> String {
        self.misfit_of(json_type(value), wanted)
    }

    fn misfit_of(&self, given: &str, wanted: &str) -> String {
        let (structure, path) = (self.structure, self.path.join("."));
        format!("json: cannot unmarshal {given} into Go struct field {structure}.{path} of type {wanted}")
    }
}

fn last(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

fn type_name(kind: Kind) -> String {
    match kind {
        Kind::String(name) => name.to_owned(),
        Kind::Bool => "bool".into(),
        Kind::Int32 => "int32".into(),
        Kind::Int64 => "int64".into(),
        Kind::Float => "float64".into(),
        Kind::Bytes => "[]uint8".into(),
        Kind::Time => "v1.Time".into(),
        Kind::MicroTime => "v1.MicroTime".into(),
        Kind::Quantity => "resource.Quantity".into(),
        Kind::IntOrString => "intstr.IntOrString".into(),
        Kind::Raw => "runtime.RawExtension".into(),
        Kind::SchemaOrList => "v1.JSONSchemaPropsOrArray".into(),
        Kind::SchemaOrBool => "v1.JSONSchemaPropsOrBool".into(),
        Kind::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".into(),
        Kind::Message(name) => name.split_once('.').map_or(name, |(_, rest)| rest).to_owned(),
    }
}

/// Base64 as the original reads it: the bits that the last letter has too many may be anything.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Bytes of a text in base64, which may have line breaks in it.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let broken = text.contains(['\r', '\n']);
    let read = if broken { LENIENT.decode(text.replace(['\r', '\n'], "")) } else { LENIENT.decode(text) };
    read.map_err(|error| format!("illegal base64 data at input byte {}", bad_byte(&error, text.len())))
}

fn bad_byte(error: &base64::DecodeError, length: usize) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        // The group of four that is not complete.
        _ => length / 4 * 4,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(object: &Value) -> String {
        decode_check(object).expect_err("does not fit")
    }

    fn pod(spec: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
    }

    #[test]
    fn the_words_are_the_originals() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}});
        assert_eq!(
            decode_check(&deployment).unwrap_err(),
            "json: cannot unmarshal string into Go \
             struct field DeploymentSpec.spec.replicas of type int32"
        );
    }

    #[test]
    fn the_path_goes_through_lists_maps_and_embedded_structures() {
        let field = "json: cannot unmarshal number into Go struct field";
        for (spec, wanted) in [
            (json!({"containers": [{"name": 5}]}), "Container.spec.containers.name of type string"),
            (json!({"restartPolicy": 5}), "PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
            (json!({"containers": 5}), "PodSpec.spec.containers of type []v1.Container"),
            (json!({"nodeSelector": {"a": 5}}), "PodSpec.spec.nodeSelector of type string"),
            (
                json!({"volumes": [{"configMap": {"name": 5}}]}),
                "ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.LocalObjectReference.name of type string",
            ),
            (
                json!({"volumes": [{"configMap": 5}]}),
                "Volume.spec.volumes.VolumeSource.configMap of type v1.ConfigMapVolumeSource",
            ),
        ] {
            assert_eq!(complaint(&pod(spec)), format!("{field} {wanted}"));
        }
    }

    #[test]
    fn metadata_is_read_like_everything_else_and_alone_where_a_kind_is_not_ours() {
        for (metadata, why) in [
            (json!({"uid": {}}), "object into Go struct field ObjectMeta.metadata.uid of type types.UID"),
            (json!({"labels": {"a": 1}}), "number into Go struct field ObjectMeta.metadata.labels of type string"),
            (
                json!({"labels": ["a"]}),
                "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (json!({"finalizers": [1]}), "number into Go struct field ObjectMeta.metadata.finalizers of type string"),
            (
                json!({"generation": 1.5}),
                "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
            ),
            (
                json!({"ownerReferences": [{"kind": 1}]}),
                "number into Go struct field OwnerReference.metadata.ownerReferences.kind of type string",
            ),
            (
                json!({"managedFields": [{"time": 5}]}),
                "number into Go struct field ManagedFieldsEntry.metadata.managedFields.time of type string",
            ),
        ] {
            let why = format!("json: cannot unmarshal {why}");
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            assert_eq!(complaint(&map), why);
            assert_eq!(check_metadata(&metadata), Err(why.replace(".metadata.", ".")));
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"});
        let wanted = "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta";
        assert_eq!(complaint(&map), wanted);
        let wanted = "json: cannot unmarshal string into Go value of type v1.ObjectMeta";
        assert_eq!(check_metadata(&json!("x")), Err(wanted.to_owned()));
        let nulls = json!({"name": null, "labels": {"a": null}, "ownerReferences": [null], "other": 1});
        assert_eq!((check_metadata(&nulls), check_metadata(&Value::Null)), (Ok(()), Ok(())));
    }

    #[test]
    fn the_schema_of_a_definition_is_read_to_its_last_level() {
        let definition = |schema: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"spec": schema}}}}]}})
        };
        let at = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties";
        for (schema, why) in [
            (json!(5), format!("number into Go struct field {at} of type v1.JSONSchemaProps")),
            (json!({"type": 5}), format!("number into Go struct field {at}.type of type string")),
            (json!({"maximum": "5"}), format!("string into Go struct field {at}.maximum of type float64")),
            (
                json!({"items": {"minItems": 1.5}}),
                format!("number 1.5 into Go struct field {at}.items.minItems of type int64"),
            ),
            (
                json!({"allOf": [{"not": 1}]}),
                format!("number into Go struct field {at}.allOf.not of type v1.JSONSchemaProps"),
            ),
        ] {
            assert_eq!(complaint(&definition(schema)), format!("json: cannot unmarshal {why}"));
        }
        assert_eq!(complaint(&definition(json!({"additionalProperties": 5}))), "boolean or JSON schema expected");
        let fine = json!({"items": 5, "additionalProperties": false, "default": {"a": [1]}, "enum": [1, null], "other": 5,
            "dependencies": {"a": ["b"], "c": {"type": "string"}}, "properties": {"a": null}});
        assert_eq!(decode_check(&definition(fine)), Ok(()));
    }

    #[test]
    fn numbers_that_do_not_fit_are_shown() {
        for (number, shown) in [(json!(5_000_000_000_i64), "5000000000"), (json!(1.5), "1.5")] {
            let why = complaint(&pod(json!({"priority": number})));
            let wanted = format!("number {shown} into Go struct field PodSpec.spec.priority of type int32");
            assert_eq!(why, format!("json: cannot unmarshal {wanted}"));
        }
    }

    #[test]
    fn times_bytes_and_quantities_are_read() {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": "x"}});
        let wanted = "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as \"2006\"";
        assert_eq!(complaint(&lease), wanted);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "%%%"}});
        assert_eq!(complaint(&secret), "illegal base64 data at input byte 0");
        assert_eq!(
            (bytes("YQ"), bytes("YWFh\nYQ==")),
            (Err("illegal base64 data at input byte 0".into()), Ok(b"aaaa".to_vec()))
        );
        assert_eq!(bytes("YR=="), Ok(b"a".to_vec()));
        let limits = pod(json!({"containers": [{"resources": {"limits": {"cpu": "1 core"}}}]}));
        assert_eq!(complaint(&limits), quantity::WRONG_FORMAT);
    }

    #[test]
    fn what_fits_passes_and_unknown_kinds_do_too() {
        assert_eq!(decode_check(&pod(json!({"containers": [{"name": "a", "unknown": 1}], "volumes": null}))), Ok(()));
        assert_eq!(decode_check(&json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": 5})), Ok(()));
        assert_eq!(decode_check(&json!([])), Ok(()));
    }
}
