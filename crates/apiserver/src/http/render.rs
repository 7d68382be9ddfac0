//! Objects and lists as the client wants to see them: whole, as a table, or only their metadata.

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::negotiate::{Accepted, Encoding, Form, MetaVersion};
use super::table::builtin::{builtin_cells, builtin_columns};
use super::table::custom::CustomColumns;
use crate::api::{Listed, Target};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::{Column, Origin};

/// The original's words for `metadata.name`, as it stands in tables.
const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although \
    some resources may allow a client to request the generation of an appropriate name automatically. Name is \
    primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Which part of the object goes along with a table row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowObject {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Whole,
}

impl RowObject {
    /// Reads `includeObject=`.
    pub(super) fn parse(given: Option<&str>) -> Result<Self, Refusal> {
        match given.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Whole),
            "None" => Ok(Self::None),
            other => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::with_value("includeObject", Fault::Invalid, &json!(other), why);
                Err(Refusal::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// Turns objects of one resource into the form asked for. Made once per request: printer columns are compiled here.
#[derive(Debug)]
pub(super) struct Renderer {
    form: Form,
    row_object: RowObject,
    printer: Option<Printer>,
    go_list_type: String,
    kind: String,
    list_kind: String,
    api_version: String,
    /// Lists of custom objects always say where they go on, if only that they do not.
    tells_the_end: bool,
}

/// Where columns and cells come from.
#[derive(Debug)]
enum Printer {
    /// Compiled in, `Name` among them.
    Builtin { kind: String, columns: Vec<Column> },
    /// From the definition; `Name` comes before them.
    Custom(CustomColumns),
}

impl Printer {
    fn definitions(&self) -> Vec<Value> {
        let columns = match self {
            Self::Builtin { columns, .. } => return columns.iter().map(definition).collect(),
            Self::Custom(columns) => columns,
        };
        let name = json!({
            "name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0,
        });
        let described = columns.columns().map(|column| {
            let mut shown = definition(column);
            if column.description.is_empty() {
                let path = &column.json_path;
                shown["description"] = json!(format!("Custom resource definition column (in JSONPath format): {path}"));
            }
            shown
        });
        std::iter::once(name).chain(described).collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::Builtin { kind, .. } => builtin_cells(kind, object, now),
            Self::Custom(columns) => std::iter::once(json!(object.name())).chain(columns.cells(object, now)).collect(),
        }
    }
}

impl Renderer {
    /// For objects of `target`.
    pub(super) fn new(target: &Target, form: Form, row_object: RowObject) -> Self {
        let (resource, version) = (&target.resource, target.version());
        let printer = matches!(form, Form::Table(_)).then(|| {
            let own = match resource.origin {
                Origin::Builtin => builtin_columns(&resource.group, &resource.kind),
                Origin::Custom => None,
            };
            match own {
                Some(columns) => Printer::Builtin { kind: resource.kind.clone(), columns },
                None => Printer::Custom(CustomColumns::new(&version.columns)),
            }
        });
        let package =
            if resource.group.is_empty() { "core" } else { resource.group.split('.').next().unwrap_or_default() };
        Self {
            form,
            row_object,
            printer,
            // The original names its Go types in one refusal.
            go_list_type: match resource.origin {
                Origin::Builtin => format!("*{package}.{}", resource.list_kind),
                Origin::Custom => "*unstructured.UnstructuredList".to_owned(),
            },
            kind: resource.kind.clone(),
            list_kind: resource.list_kind.clone(),
            api_version: resource.api_version(&version.name),
            tells_the_end: resource.origin == Origin::Custom,
        }
    }

    /// One object.
    pub(super) fn object(&self, object: Value, now: Timestamp) -> Result<Value, Refusal> {
        match self.form {
            Form::Whole => Ok(object),
            Form::Partial(version) => Ok(partial(object.get("metadata").cloned().unwrap_or_default(), version)),
            Form::PartialList(_) => Err(Refusal::new(
                406,
                "NotAcceptable",
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                    self.go_list_type.trim_end_matches("List")
                ),
            )),
            Form::Table(version) => {
                let metadata = json!({"resourceVersion": object.meta("resourceVersion")});
                Ok(self.table(version, metadata, vec![self.row(version, object, now)], true))
            }
        }
    }

    /// A page of objects, as JSON text. Whole objects are copied as they are kept, not parsed.
    pub(super) fn list(&self, listed: &Listed, now: Timestamp) -> Result<Bytes, Refusal> {
        let mut metadata = list_metadata(listed);
        if self.tells_the_end && self.form == Form::Whole && listed.next.is_none() {
            metadata["continue"] = "".into();
        }
        match self.form {
            Form::Whole => Ok(joined(&self.list_kind, &self.api_version, &metadata, &listed.items)),
            Form::Partial(_) => Err(Refusal::new(
                406,
                "NotAcceptable",
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({})",
                    self.go_list_type
                ),
            )),
            Form::PartialList(version) => {
                let items: Result<Vec<Bytes>, Refusal> =
                    listed.items.iter().map(|item| Ok(text(&partial(metadata_of(item)?, version)))).collect();
                Ok(joined("PartialObjectMetadataList", version.api_version(), &metadata, &items?))
            }
            Form::Table(version) => {
                let rows: Result<Vec<Value>, Refusal> =
                    listed.items.iter().map(|item| Ok(self.row(version, parsed(item)?, now))).collect();
                Ok(text(&self.table(version, metadata, rows?, true)))
            }
        }
    }

    /// The object of a watch event. Only the first table of a stream carries the column definitions.
    pub(super) fn event(&self, object: &Bytes, now: Timestamp, with_columns: bool) -> Result<Bytes, Refusal> {
        match self.form {
            Form::Whole => Ok(object.clone()),
            Form::Partial(version) | Form::PartialList(version) => Ok(text(&partial(metadata_of(object)?, version))),
            Form::Table(version) => {
                let object = parsed(object)?;
                let metadata = json!({"resourceVersion": object.meta("resourceVersion")});
                Ok(text(&self.table(version, metadata, vec![self.row(version, object, now)], with_columns)))
            }
        }
    }

    fn table(&self, version: MetaVersion, metadata: Value, rows: Vec<Value>, with_columns: bool) -> Value {
        let printer = self.printer.as_ref().filter(|_| with_columns);
        // A watch describes its columns with the first row, and says `null` from then on.
        let definitions = printer.map(Printer::definitions);
        json!({
            "kind": "Table", "apiVersion": version.api_version(), "metadata": metadata,
            "columnDefinitions": definitions, "rows": rows,
        })
    }

    fn row(&self, version: MetaVersion, object: Value, now: Timestamp) -> Value {
        let cells = self.printer.as_ref().map(|printer| printer.cells(&object, now)).unwrap_or_default();
        match self.row_object {
            RowObject::None => json!({"cells": cells, "object": null}),
            RowObject::Whole => json!({"cells": cells, "object": self.named(object)}),
            RowObject::Metadata => {
                let metadata = object.get("metadata").cloned().unwrap_or_default();
                json!({"cells": cells, "object": partial(metadata, version)})
            }
        }
    }

    /// An object with its kind. In a list those of built-in kinds go without; in a row each stands for itself, and kubectl
    /// sorts no others.
    fn named(&self, mut object: Value) -> Value {
        if let Value::Object(fields) = &mut object {
            fields.entry("kind").or_insert_with(|| json!(self.kind));
            fields.entry("apiVersion").or_insert_with(|| json!(self.api_version));
        }
        object
    }
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.ty, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn partial(metadata: Value, version: MetaVersion) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata})
}

fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), Value::String(listed.revision.to_string()));
    if let Some(next) = &listed.next {
        metadata.insert("continue".into(), Value::String(next.clone()));
    }
    if let Some(remaining) = listed.remaining.filter(|_| listed.next.is_some()) {
        metadata.insert("remainingItemCount".into(), remaining.into());
    }
    Value::Object(metadata)
}

fn joined(kind: &str, api_version: &str, metadata: &Value, items: &[Bytes]) -> Bytes {
    let length: usize = items.iter().map(|item| item.len() + 1).sum();
    let mut list = BytesMut::with_capacity(length + 200);
    let head =
        format!("{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[", json!(kind), json!(api_version));
    list.put_slice(head.as_bytes());
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            list.put_u8(b',');
        }
        list.put_slice(item);
    }
    list.put_slice(b"]}");
    list.freeze()
}

/// Only the metadata of an object's text; the rest is skipped, not built.
fn metadata_of(object: &[u8]) -> Result<Value, Refusal> {
    #[derive(Deserialize)]
    struct WithMetadata {
        #[serde(default)]
        metadata: Value,
    }
    serde_json::from_slice::<WithMetadata>(object).map(|o| o.metadata).map_err(Refusal::internal)
}

fn parsed(object: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(object).map_err(Refusal::internal)
}

fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// A value as the body of an answer.
pub(super) fn encoded(value: &Value, accepted: Accepted) -> Result<Bytes, Refusal> {
    match accepted.encoding {
        Encoding::Json if accepted.pretty => {
            let mut body = serde_json::to_vec_pretty(value).map_err(Refusal::internal)?;
            body.push(b'\n');
            Ok(body.into())
        }
        Encoding::Json => Ok(text(value)),
        Encoding::Yaml => serde_saphyr::to_string(value).map(Bytes::from).map_err(Refusal::internal),
    }
}

/// JSON text as the body of an answer; parsed only where another form is wanted.
pub(super) fn recoded(json: Bytes, accepted: Accepted) -> Result<Bytes, Refusal> {
    match accepted {
        Accepted { encoding: Encoding::Json, pretty: false, .. } => Ok(json),
        _ => encoded(&parsed(&json)?, accepted),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::http::fixture::thing;

    fn target() -> Target {
        Target { resource: Arc::new(thing()), version: 0, namespace: Some("a".into()) }
    }

    fn listed() -> Listed {
        let item = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}, "spec": {"mode": "full"}});
        Listed { items: vec![text(&item)], revision: 7, next: Some("t".into()), remaining: Some(4) }
    }

    fn list_in(form: Form, row_object: RowObject) -> Result<Value, Refusal> {
        let body = Renderer::new(&target(), form, row_object).list(&listed(), Timestamp::UNIX_EPOCH)?;
        parsed(&body)
    }

    #[test]
    fn a_list_carries_revision_and_page() {
        let list = list_in(Form::Whole, RowObject::Metadata).expect("a list");
        assert_eq!(list["kind"], "ThingList");
        assert_eq!(list["apiVersion"], "example.io/v1");
        assert_eq!(list["metadata"], json!({"resourceVersion": "7", "continue": "t", "remainingItemCount": 4}));
        assert_eq!(list["items"][0]["spec"]["mode"], "full");
    }

    #[test]
    fn a_table_has_columns_cells_and_as_much_of_the_object_as_asked_for() {
        let form = Form::Table(MetaVersion::V1);
        let table = list_in(form, RowObject::Metadata).expect("a table");
        assert_eq!(table["columnDefinitions"][0]["name"], "Name");
        assert_eq!(
            table["columnDefinitions"][1]["description"],
            "Custom resource definition column (in JSONPath format): .spec.mode"
        );
        assert_eq!(table["rows"][0]["cells"], json!(["x", "full"]));
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(list_in(form, RowObject::None).expect("a table")["rows"][0]["object"], Value::Null);
        assert_eq!(list_in(form, RowObject::Whole).expect("a table")["rows"][0]["object"]["spec"]["mode"], "full");
        assert!(RowObject::parse(Some("Half")).is_err());
    }

    #[test]
    fn metadata_lists_hold_metadata_only_and_the_single_form_does_not_fit_a_list() {
        let list = list_in(Form::PartialList(MetaVersion::V1), RowObject::Metadata).expect("a list");
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["items"][0]["metadata"]["uid"], "u");
        assert_eq!(list["items"][0].get("spec"), None);
        assert_eq!(list_in(Form::Partial(MetaVersion::V1), RowObject::Metadata).expect_err("no list").code, 406);
    }

    #[test]
    fn only_the_first_table_of_a_stream_has_columns() {
        let renderer = Renderer::new(&target(), Form::Table(MetaVersion::V1), RowObject::Metadata);
        let event = |first| renderer.event(&listed().items[0], Timestamp::UNIX_EPOCH, first).expect("a table");
        assert_eq!(parsed(&event(true)).expect("JSON")["columnDefinitions"].as_array().map(Vec::len), Some(2));
        assert_eq!(parsed(&event(false)).expect("JSON")["columnDefinitions"], json!(null));
    }
}
