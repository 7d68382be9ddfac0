//! Whether an applied configuration can be read through the schema at all. The words are the original's, down to the
//! Go syntax in which it shows values, because people search for them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fields::MAX_DEPTH;
use super::path::PathElement;
use super::shape::{self, common, declared, item_name};
use crate::object::Object;
use crate::patch::as_go_prints;
use crate::refusal::Findings;
use crate::schema::{ListKind, Schema, Type};

const UNDECLARED: &str = "field not declared in schema";

/// Everything wrong with an applied configuration, as one message.
pub(super) fn check(config: &Value, schema: &Schema) -> Result<(), String> {
    let mut faults = Faults::default();
    faults.visit(config, schema, false);
    untyped(config, faults.found.told(), faults.found.has_more())
}

/// Fields of a configuration that are known to nobody, by their paths.
pub(super) fn undeclared(config: &Value, paths: &[String]) -> Result<(), String> {
    let faults: Vec<String> = paths.iter().map(|path| format!(".{path}: {UNDECLARED}")).collect();
    untyped(config, &faults, false)
}

fn untyped(config: &Value, faults: &[String], has_more: bool) -> Result<(), String> {
    let more = if has_more { "\n  and more" } else { "" };
    let found = match faults {
        [] => return Ok(()),
        [one] if more.is_empty() => one.clone(),
        many => format!("errors:\n  {}{more}", many.join("\n  ")),
    };
    Err(format!("failed to create typed patch object ({}): {found}", identity(config)))
}

/// `namespace/name; group/version, Kind=Kind`.
pub(super) fn identity(object: &Value) -> String {
    let api_version = object.api_version();
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{}/{}; {slash}{api_version}, Kind={}", object.namespace(), object.name(), object.kind())
}

#[derive(Default)]
struct Faults {
    path: Vec<PathElement>,
    found: Findings<String>,
}

impl Faults {
    fn visit(&mut self, value: &Value, schema: &Schema, free: bool) {
        if self.path.len() > MAX_DEPTH || value.is_null() {
            return;
        }
        // Whoever preserves unknown fields does so for everything below, too.
        let free = free || schema.preserve_unknown;
        let ty = match (schema.ty, value) {
            (Type::Any, Value::Object(_)) => Type::Object,
            (Type::Any, Value::Array(_)) => Type::Array,
            (ty, _) => ty,
        };
        match (ty, value) {
            (Type::Object, Value::Object(map)) => {
                for (name, value) in map {
                    self.path.push(PathElement::field(name));
                    let depth = self.path.len() - 1;
                    // The fields that every object has are known, whatever is preserved beside them.
                    let free = free && common(schema, name, depth).is_none();
                    match declared(schema, name, depth) {
                        Some(child) => self.visit(value, child.schema, free),
                        None if free => {}
                        None => self.fault(|| UNDECLARED.to_owned()),
                    }
                    self.path.pop();
                }
            }
            (Type::Array, Value::Array(list)) => self.visit_items(list, schema, free),
            (Type::Object, other) => self.fault(|| format!("expected map, got &{{{}}}", as_go_prints(other))),
            (Type::Array, other) => self.fault(|| format!("expected list, got &{{{}}}", as_go_prints(other))),
            (Type::Integer | Type::Number, other) if !other.is_number() => {
                self.fault(|| format!("expected numeric (int or float), got {}", go_type(other)));
            }
            // Text with a format is not looked at here; validation does that.
            (Type::String, other) if !other.is_string() && schema.checks.format.is_none() => {
                self.fault(|| {
                    format!("expected string, got &value.valueUnstructured{{Value:{}}}", as_go_prints(other))
                });
            }
            (Type::Boolean, other) if !other.is_boolean() => {
                self.fault(|| format!("expected boolean, got &{{{}}}", as_go_prints(other)));
            }
            (Type::String | Type::IntOrString, other @ (Value::Object(_) | Value::Array(_))) => {
                self.fault(|| format!("expected any scalar, got &{{{}}}", as_go_prints(other)));
            }
            _ => {}
        }
    }

    fn visit_items(&mut self, list: &[Value], schema: &Schema, free: bool) {
        let mut seen = BTreeSet::new();
        for (n, item) in list.iter().enumerate() {
            let name = match &schema.list {
                ListKind::Atomic => PathElement::Index(i64::try_from(n).unwrap_or(i64::MAX)),
                _ => match item_name(schema, item) {
                    Ok(name) if seen.contains(&name) => {
                        self.fault(|| format!("duplicate entries for key {name}"));
                        name
                    }
                    Ok(name) => name,
                    // An item without a name ends the look at the list.
                    Err(why) => return self.fault(|| format!("element {n}: {why}")),
                },
            };
            self.path.push(name.clone());
            self.visit(item, shape::items(schema), free);
            self.path.pop();
            seen.insert(name);
        }
    }

    fn fault(&mut self, what: impl FnOnce() -> String) {
        let path = &self.path;
        self.found.tell(|| match super::path::show(path) {
            path if path.is_empty() => what(),
            path => format!("{path}: {}", what()),
        });
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(_) | Value::Null => "<nil>",
    }
}
