//! Structural schemas: what the fields of a kind are, and what may stand in them.
//!
//! One type serves built-in kinds and custom resources. Pruning, defaulting, validation, strategic merge and
//! server-side apply all walk it; none of them looks at raw OpenAPI again.
//!
//! | Step of a request | Here |
//! |---|---|
//! | a CRD is admitted | [`Schema::parse`]: structural rules, Kubernetes conventions, defaults, CEL and its cost |
//! | an object is decoded | [`prune::prune`], then [`defaults::apply`] |
//! | an object is written | [`validate::validate`]: types and bounds, list keys, then the CEL rules |
//!
//! Everything here is a pure function, and bounded: schemas and rules are of limited depth, what a rule may cost on a
//! given object is known before it runs, and so are the steps that all of a schema takes on it.

mod cel;
mod convention;
mod correlate;
mod cost;
mod default_checks;
pub mod defaults;
mod embedded;
mod fieldpath;
mod formats;
pub(crate) mod gotext;
mod lists;
mod parse;
pub(crate) mod path;
mod pattern;
pub mod prune;
mod raw;
mod rules;
mod structural;
pub mod validate;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded;

pub use fieldpath::{FieldPathError, resolve_path};
pub(crate) use pattern::are_affordable as patterns_are_affordable;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The schema of one value. Children are shared, so a version's schema is one tree built once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// What kind of value this is.
    pub ty: Type,
    /// `null` is a value of its own here, not the absence of one.
    pub nullable: bool,
    /// Named fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Values of an object used as a map (`additionalProperties`).
    pub additional: Option<Arc<Schema>>,
    /// Items of an array.
    pub items: Option<Arc<Schema>>,
    /// Fields that are not listed stay (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// The object carries its own `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    /// Filled in where the field is absent.
    pub default: Option<Value>,
    /// How two lists are merged by server-side apply.
    pub list: ListKind,
    /// The object is merged as a whole (`x-kubernetes-map-type: atomic`, struct-type atomic).
    pub atomic_map: bool,
    /// How strategic merge patch treats this list or object. Built-in kinds only.
    pub patch: PatchStrategy,
    /// What a value must satisfy beyond its type.
    pub checks: Checks,
    /// CEL rules of this node, as written.
    pub rules: Vec<Rule>,
    /// No field at all beside the named ones (`additionalProperties: false`).
    pub closed: bool,
    /// What is derived from the fields above once, so that no request pays for it. Filled by [`Schema::parse`].
    pub(crate) compiled: Compiled,
}

/// Derived parts of a schema node.
#[derive(Clone, Default)]
pub(crate) struct Compiled {
    /// `checks.pattern`, ready to match.
    pub(crate) pattern: Option<Arc<pattern::Pattern>>,
    /// Those of `properties` that have a default.
    pub(crate) defaulted: Option<Vec<String>>,
    /// The rules of this node, ready to run.
    pub(crate) rules: Option<Arc<rules::NodeRules>>,
    /// Whether this node or one below it has rules; where not, evaluation does not even look.
    pub(crate) rules_within: bool,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compiled")
    }
}

/// Derived from the other fields, so it says nothing new about equality.
impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The JSON type that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Anything at all (`x-kubernetes-preserve-unknown-fields` without a type).
    #[default]
    Any,
    /// `{}`: struct or map.
    Object,
    /// `[]`.
    Array,
    /// Text.
    String,
    /// Whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Whole number or text (`x-kubernetes-int-or-string`), e.g. ports and quantities.
    IntOrString,
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListKind {
    /// One value, owned as a whole.
    #[default]
    Atomic,
    /// Scalars, each owned by itself.
    Set,
    /// Objects told apart by these keys, each field owned by itself.
    Map(Vec<String>),
}

/// How strategic merge patch treats a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    /// Lists are merged instead of replaced; objects in them are matched by `key` (none: a list of scalars).
    pub merge: bool,
    /// The key that tells the objects of a merged list apart.
    pub key: Option<String>,
    /// `$retainKeys` is honoured: keys not listed go.
    pub retain_keys: bool,
}

/// Value validations, in OpenAPI's words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checks {
    /// Fields that must be there.
    pub required: Vec<String>,
    /// `format`, e.g. `int32`, `date-time`.
    pub format: Option<String>,
    /// Allowed values.
    pub one_of_values: Option<Vec<Value>>,
    /// Bounds of a number.
    pub minimum: Option<f64>,
    /// Bounds of a number.
    pub maximum: Option<f64>,
    /// The minimum itself is not allowed.
    pub exclusive_minimum: bool,
    /// The maximum itself is not allowed.
    pub exclusive_maximum: bool,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Length of text, in characters.
    pub min_length: Option<u64>,
    /// Length of text, in characters.
    pub max_length: Option<u64>,
    /// Regular expression that text must match somewhere.
    pub pattern: Option<String>,
    /// Number of items.
    pub min_items: Option<u64>,
    /// Number of items.
    pub max_items: Option<u64>,
    /// No two items alike.
    pub unique_items: bool,
    /// Number of fields.
    pub min_properties: Option<u64>,
    /// Number of fields.
    pub max_properties: Option<u64>,
    /// All of these hold (value validations only; junctors never add fields).
    pub all_of: Vec<Arc<Schema>>,
    /// At least one of these holds.
    pub any_of: Vec<Arc<Schema>>,
    /// Exactly one of these holds.
    pub exactly_one_of: Vec<Arc<Schema>>,
    /// This does not hold.
    pub not: Option<Arc<Schema>>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// Fixed message.
    pub message: Option<String>,
    /// CEL expression that yields the message.
    pub message_expression: Option<String>,
    /// `FieldValueInvalid` and friends.
    pub reason: Option<String>,
    /// Path, relative to this node, that the error points at.
    pub field_path: Option<String>,
    /// A transition rule that is also evaluated when there is no old value.
    pub optional_old_self: bool,
}
