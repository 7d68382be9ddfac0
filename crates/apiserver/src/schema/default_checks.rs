//! Defaults in a CRD must themselves be what the schema asks for, or every defaulted object would be refused.

use crate::refusal::{Fault, FieldError, Findings, MAX_FOUND};
use crate::schema::path::Path;
use crate::schema::{Schema, embedded, prune, rules, validate};

/// Everything wrong with the defaults in a schema and below it.
pub(crate) fn violations(schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, path, &mut errors);
    errors
}

fn node(schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    if let Some(default) = &schema.default {
        let at = format!("{path}.default");
        let before = errors.len();
        if !prune::prune_part(schema, &mut default.clone()).is_empty() {
            errors.push(FieldError::with_value(&at, Fault::Invalid, default, "must not have unknown fields"));
        }
        let mut found = Findings::default();
        embedded::check(schema, default, &Path::root(&at), &mut found);
        errors.extend(found.into_told());
        if errors.len() == before {
            errors.extend(validate::structure(schema, default, None, &at));
        }
        if errors.len() == before {
            // Both as a value that is new and as one that does not change.
            errors.extend(rules::evaluate(schema, default, Some(default), &at, false));
        }
        if errors.len() == before {
            errors.extend(rules::evaluate(schema, default, None, &at, false));
        }
    }
    // Defaults right under `additionalProperties` are never filled in, so nobody looks at them.
    if let Some(items) = &schema.items {
        node(items, &format!("{path}.items"), errors);
    }
    for (name, property) in &schema.properties {
        node(property, &format!("{path}.properties[{name}]"), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(property: Value, expected: &str) {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let errors = Schema::parse(&schema, "s").expect_err("a bad default");
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [expected]);
    }

    #[test]
    fn defaults_must_be_valid_and_pruned() {
        check(
            json!({"type": "integer", "default": "x"}),
            "s.properties[p].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        );
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            "s.properties[p].default: Invalid value: {\"b\":1}: must not have unknown fields",
        );
        check(
            json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]}),
            "s.properties[p].default: Invalid value: 1: failed rule: self > 1",
        );
    }
}
