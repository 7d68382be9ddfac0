//! From a CRD's `openAPIV3Schema` to a [`Schema`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::refusal::FieldError;
use crate::schema::pattern::Pattern;
use crate::schema::raw::{Additional, Raw};
use crate::schema::{
    Checks, Compiled, ListKind, PatchStrategy, Rule, Schema, Type, convention, cost, default_checks, raw, rules,
    structural,
};

impl Schema {
    /// Reads a CRD's schema, with everything wrong about it: bounds, structural rules, Kubernetes conventions, defaults,
    /// and CEL rules that do not compile or could cost too much. `path` is where the schema stands
    /// (`spec.versions[0].schema.openAPIV3Schema`); the errors' paths start with it.
    pub fn parse(value: &Value, path: &str) -> Result<Schema, Vec<FieldError>> {
        let nothing = Map::new();
        let raw = Raw(value.as_object().unwrap_or(&nothing));
        let out_of_bounds = raw::out_of_bounds(raw, path);
        if !out_of_bounds.is_empty() {
            return Err(out_of_bounds);
        }
        let mut errors = structural::violations(raw, path);
        let mut schema = build(raw);
        if errors.is_empty() {
            // Defaults are checked against the rules too, so those are compiled first; whether they compile is told
            // below, with their cost.
            rules::compile(&mut schema, true);
            errors.extend(default_checks::violations(&schema, path));
        }
        let structural = errors.is_empty();
        errors.extend(convention::violations(raw, path));
        if structural && errors.is_empty() {
            errors.extend(cost::violations(&schema, path));
        }
        if errors.is_empty() { Ok(schema) } else { Err(errors) }
    }
}

fn build(raw: Raw<'_>) -> Schema {
    let properties: BTreeMap<String, Arc<Schema>> =
        raw.schemas("properties").map(|(name, node)| (name.to_owned(), Arc::new(build(node)))).collect();
    let (additional, closed) = match raw.additional() {
        Some(Additional::Schema(node)) => (Some(Arc::new(build(node))), false),
        // Beside named fields, `true` says nothing; alone it makes a map of which only the keys are known.
        Some(Additional::Allowed(true)) if properties.is_empty() => (Some(Arc::new(Schema::default())), false),
        Some(Additional::Allowed(allowed)) => (None, !allowed),
        None => (None, false),
    };
    let defaulted = properties.iter().filter(|(_, property)| property.default.is_some());
    let defaulted = defaulted.map(|(name, _)| name.clone()).collect();
    let checks = checks(raw);
    let pattern = checks.pattern.as_deref().and_then(Pattern::new).map(Arc::new);
    Schema {
        ty: type_of(raw),
        nullable: raw.flag("nullable"),
        properties,
        additional,
        items: raw.items().map(|node| Arc::new(build(node))),
        preserve_unknown: raw.flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: raw.flag("x-kubernetes-embedded-resource"),
        default: raw.get("default").cloned(),
        list: list_kind(raw),
        atomic_map: raw.text("x-kubernetes-map-type") == "atomic",
        patch: PatchStrategy::default(),
        checks,
        rules: rules_of(raw),
        closed,
        compiled: Compiled { pattern, defaulted: Some(defaulted), ..Compiled::default() },
    }
}

fn type_of(raw: Raw<'_>) -> Type {
    if raw.flag("x-kubernetes-int-or-string") {
        return Type::IntOrString;
    }
    match raw.text("type") {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_kind(raw: Raw<'_>) -> ListKind {
    match raw.text("x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => ListKind::Map(raw.texts("x-kubernetes-list-map-keys").into_iter().map(str::to_owned).collect()),
        _ => ListKind::Atomic,
    }
}

fn checks(raw: Raw<'_>) -> Checks {
    let number = |key| raw.get(key).and_then(Value::as_f64);
    // A negative bound on a count is the same as none at all for a minimum, and zero for a maximum.
    let count = |key| raw.get(key).and_then(Value::as_i64).map(|count| count.max(0).unsigned_abs());
    let nodes = |key| raw.list(key).map(|(_, node)| Arc::new(build(node))).collect();
    let text = |key| raw.text_option(key).filter(|text| !text.is_empty()).map(str::to_owned);
    Checks {
        required: raw.texts("required").into_iter().map(str::to_owned).collect(),
        format: text("format"),
        one_of_values: raw.get("enum").and_then(Value::as_array).cloned(),
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: raw.flag("exclusiveMinimum"),
        exclusive_maximum: raw.flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text("pattern"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: raw.flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of: nodes("allOf"),
        any_of: nodes("anyOf"),
        exactly_one_of: nodes("oneOf"),
        not: raw.schema("not").map(|node| Arc::new(build(node))),
    }
}

fn rules_of(raw: Raw<'_>) -> Vec<Rule> {
    let rule = |(_, rule): (usize, Raw<'_>)| {
        let text = |key| rule.text_option(key).filter(|text| !text.is_empty()).map(str::to_owned);
        Rule {
            rule: rule.text("rule").to_owned(),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: rule.flag("optionalOldSelf"),
        }
    };
    raw.list("x-kubernetes-validations").map(rule).collect()
}
