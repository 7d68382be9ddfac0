//! Whether an object satisfies its schema, in the original's words.

mod junctors;
mod outcome;

use serde_json::Value;

use self::junctors::check_junctors;
use self::outcome::{Failed, Outcome, Spent};
use crate::refusal::{Fault, FieldError, Findings};
use crate::schema::path::Path;
use crate::schema::{Checks, Schema, Type, correlate, embedded, formats, gotext, lists, pattern, rules};

/// Beyond this, a float no longer tells one whole number from the next, and is not taken for one.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;

/// Everything wrong with an object: types and bounds, embedded resources, duplicate list items, and the CEL rules.
/// With an old object, faults of unchanged values are forgiven, and transition rules are evaluated.
pub fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let path = Path::root("");
    let mut errors = Findings::default();
    errors.extend(structure(schema, object, old, ""));
    embedded::check(schema, object, &path, &mut errors);
    // Duplicates in the old object are forgiven altogether.
    let mut old_duplicates = Findings::default();
    if let Some(old) = old {
        lists::check(schema, old, &path, &mut old_duplicates);
    }
    if old_duplicates.is_empty() {
        lists::check(schema, object, &path, &mut errors);
    }
    if schema.compiled.rules_within {
        if errors.told().iter().any(|error| blocks_rules(error.fault)) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.tell(|| FieldError::with_value("", Fault::Invalid, &Value::Null, detail));
        } else {
            errors.extend(rules::evaluate(schema, object, old, "", true));
        }
    }
    errors.into_told()
}

/// Rules may rely on the types and bounds that the schema promises; on a value without them they would only mislead.
fn blocks_rules(fault: Fault) -> bool {
    matches!(fault, Fault::NotSupported | Fault::Required | Fault::TooLong | Fault::TooMany | Fault::TypeInvalid)
}

/// Types and bounds only, of a value that stands at `prefix`.
pub(crate) fn structure(schema: &Schema, value: &Value, old: Option<&Value>, prefix: &str) -> Vec<FieldError> {
    let spent = Spent::default();
    let outcome = check(schema, Given { value, old, path: &Path::root(prefix), spent: &spent });
    let mut errors: Vec<FieldError> = outcome.faults.into_told().into_iter().map(|fault| fault.error).collect();
    if spent.is_exhausted() {
        let detail = "checking it against its schema takes too many steps, not all of it was checked";
        // First, or it might not be among those that are told.
        errors.insert(0, FieldError::new(prefix, Fault::Invalid, detail));
    } else if outcome.failed && errors.is_empty() {
        // All the text went into faults that were forgiven.
        errors.push(FieldError::new(prefix, Fault::Invalid, "too much is wrong to say what"));
    }
    errors
}

/// A value that is to be checked.
#[derive(Clone, Copy)]
struct Given<'a, 't> {
    value: &'a Value,
    /// What it was, if it was anything.
    old: Option<&'a Value>,
    path: &'a Path<'a>,
    /// How much has been said and done already.
    spent: &'t Spent,
}

/// Checks a value, and forgives everything if it is what it was.
fn check<'t>(schema: &Schema, given: Given<'_, 't>) -> Outcome<'t> {
    let outcome = check_all(schema, given);
    if outcome.failed && given.old.is_some_and(|old| correlate::unchanged(schema, given.value, old)) {
        return Outcome { applied: outcome.applied, ..Outcome::new(given.spent) };
    }
    outcome
}

fn check_all<'t>(schema: &Schema, given: Given<'_, 't>) -> Outcome<'t> {
    let Given { value, old, path, spent } = given;
    let mut outcome = Outcome::new(spent);
    if !spent.takes(1) {
        return outcome;
    }
    let checks = &schema.checks;
    let format = checks.format.as_deref().filter(|format| formats::is_known(format));
    if schema.ty != Type::Any || format.is_some() {
        check_type(schema, format, value, path, &mut outcome);
    }
    if !value.is_null() {
        check_junctors(checks, given, &mut outcome);
    }
    match value {
        Value::Null => {}
        Value::String(text) => {
            check_text(schema, text, path, &mut outcome);
            if let Some(format) = format.filter(|format| formats::accepts(format, text) == Some(false)) {
                let says = format!("must be of type {format}: {}", gotext::quoted(text));
                outcome.fail(path, Fault::TypeInvalid, text.as_str(), says);
            }
        }
        Value::Number(number) => check_number(checks, number, path, &mut outcome),
        Value::Array(items) => check_items(schema, items, old, path, &mut outcome),
        Value::Bool(_) => {}
        Value::Object(map) => check_fields(schema, map, old, path, &mut outcome),
    }
    if let Some(allowed) = checks.one_of_values.as_ref().filter(|allowed| !allowed.is_empty()) {
        check_enum(allowed, value, path, &mut outcome);
    }
    outcome.applied += 1;
    outcome
}

/// The name of a value's JSON type, and the format the original infers for it.
fn inferred(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// What a type is called; some values may be of several.
pub(crate) fn type_names(ty: Type) -> &'static str {
    match ty {
        Type::Any => "",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::IntOrString => "integer,string",
    }
}

fn check_type(schema: &Schema, format: Option<&str>, value: &Value, path: &Path<'_>, outcome: &mut Outcome<'_>) {
    let names = type_names(schema.ty);
    let (name, its_format) = inferred(value);
    if value.is_null() {
        if schema.ty == Type::Any || schema.nullable {
            outcome.applied += 1;
        } else {
            outcome.fail(path, Fault::TypeInvalid, "null", format!("must be of type {names}: \"null\""));
        }
        return;
    }
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= MAX_WHOLE);
    let fits = names.split(',').any(|ty| ty == name)
        || (name == "number" && whole && matches!(schema.ty, Type::Integer | Type::IntOrString))
        || (name == "integer" && schema.ty == Type::Number);
    let numeric = matches!(schema.ty, Type::Integer | Type::Number | Type::IntOrString);
    // With a format, a text or list passes here whatever the type, and any other misfit names the formats.
    if let Some(format) = format {
        let textual = value.is_string() || value.is_array();
        if !textual && !fits && format != its_format {
            outcome.fail(path, Fault::TypeInvalid, its_format, format!("must be of type {format}: \"{its_format}\""));
            return;
        }
        if textual && !numeric {
            outcome.applied += 1;
            return;
        }
    }
    if fits {
        outcome.applied += 1;
    } else {
        outcome.fail(path, Fault::TypeInvalid, name, format!("must be of type {names}: \"{name}\""));
    }
}

fn check_enum(allowed: &[Value], value: &Value, path: &Path<'_>, outcome: &mut Outcome<'_>) {
    let same = |a: &Value| a == value || a.as_f64().zip(value.as_f64()).is_some_and(|(a, b)| a == b);
    let parts = match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    if !outcome.spent.takes(allowed.len().saturating_mul(parts + 1) as u64) || allowed.iter().any(same) {
        return;
    }
    outcome.push(|| {
        let texts: Vec<String> =
            allowed.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
        let detail = gotext::supported(texts.iter().map(String::as_str));
        let error = FieldError::with_value(path.dotted(), Fault::NotSupported, value, detail);
        Failed { text: format!("{} in body should be one of {texts:?}", path.within()), error }
    });
}

fn check_text(schema: &Schema, text: &str, path: &Path<'_>, outcome: &mut Outcome<'_>) {
    let checks = &schema.checks;
    if checks.max_length.is_some() || checks.min_length.is_some() {
        let length = text.chars().count() as u64;
        if let Some(max) = checks.max_length.filter(|max| length > *max) {
            let unit = if max == 1 { "byte" } else { "bytes" };
            outcome.push(|| {
                let detail = format!("may not be more than {max} {unit}");
                let error = FieldError::new(path.dotted(), Fault::TooLong, detail);
                Failed { text: format!("{} in body should be at most {max}", path.within()), error }
            });
            return;
        }
        if let Some(min) = checks.min_length.filter(|min| length < *min) {
            outcome.fail(path, Fault::Invalid, text, format!("should be at least {min} chars long"));
            return;
        }
    }
    let Some(source) = checks.pattern.as_deref().filter(|source| !source.is_empty()) else { return };
    let matches = match &schema.compiled.pattern {
        Some(pattern) => !outcome.spent.takes(pattern.steps(text)) || pattern.is_match(text),
        // Schemas that were not parsed from a CRD come without compiled parts.
        None => pattern::compile(source).is_ok_and(|pattern| pattern.is_match(text)),
    };
    if !matches {
        outcome.fail(path, Fault::Invalid, text, format_args!("should match '{source}'"));
    }
}

fn check_number(checks: &Checks, number: &serde_json::Number, path: &Path<'_>, outcome: &mut Outcome<'_>) {
    outcome.applied += 1;
    // Whole numbers are compared as such, with the bounds cut to whole numbers.
    let (whole, float) = (number.as_i64(), number.as_f64().unwrap_or_default());
    let shown = |bound: f64| whole.map_or_else(|| gotext::float(bound), |_| (bound as i64).to_string());
    let value = whole.map_or_else(|| gotext::float(float), |whole| whole.to_string());
    if let Some(factor) = checks.multiple_of {
        check_multiple(factor, whole, float, &value, path, outcome);
    }
    let mut fail = |says: String| {
        outcome.push(|| {
            let text = format!("{} in body {says}", path.within());
            let mut error = FieldError::new(path.dotted(), Fault::Invalid, text.clone());
            error.value.clone_from(&value);
            Failed { text, error }
        });
    };
    if let Some(min) = checks.minimum {
        let below = whole.map_or(float < min, |value| value < min as i64);
        let at = whole.map_or(float == min, |value| value == min as i64);
        if below || (at && checks.exclusive_minimum) {
            let words = if checks.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            fail(format!("should be {words} {}", shown(min)));
        }
    }
    if let Some(max) = checks.maximum {
        let above = whole.map_or(float > max, |value| value > max as i64);
        let at = whole.map_or(float == max, |value| value == max as i64);
        if above || (at && checks.exclusive_maximum) {
            let words = if checks.exclusive_maximum { "less than" } else { "less than or equal to" };
            fail(format!("should be {words} {}", shown(max)));
        }
    }
}

fn check_multiple(
    factor: f64,
    whole: Option<i64>,
    float: f64,
    value: &str,
    path: &Path<'_>,
    outcome: &mut Outcome<'_>,
) {
    let (multiple, positive, shown) = match whole {
        // The factor is cut to a whole number first; what is left of a fraction divides nothing.
        Some(whole) => {
            let factor = factor as i64;
            (factor > 0 && whole % factor == 0, factor > 0, factor.to_string())
        }
        None => (factor > 0.0 && (float / factor).fract() == 0.0, factor > 0.0, gotext::float(factor)),
    };
    if positive && multiple {
        return;
    }
    outcome.push(|| {
        let within = path.within();
        let (text, value) = if positive {
            (format!("{within} in body should be a multiple of {shown}"), value)
        } else {
            (format!("factor MultipleOf declared for {within} must be positive: {shown}"), shown.as_str())
        };
        let mut error = FieldError::new(path.dotted(), Fault::Invalid, text.clone());
        error.value = value.to_owned();
        Failed { text, error }
    });
}

fn check_items(schema: &Schema, items: &[Value], old: Option<&Value>, path: &Path<'_>, outcome: &mut Outcome<'_>) {
    if let Some(item_schema) = &schema.items {
        // The old items are looked through for each schema that knows something about items.
        if !outcome.spent.takes(old.and_then(Value::as_array).map_or(0, Vec::len) as u64) {
            return;
        }
        let old_items = correlate::OldItems::new(schema, old);
        for (index, item) in items.iter().enumerate() {
            let (old, path) = (old_items.get(item), &path.index(index));
            outcome.merge(check(item_schema, Given { value: item, old, path, spent: outcome.spent }));
        }
    }
    let checks = &schema.checks;
    if let Some(min) = checks.min_items.filter(|min| (items.len() as u64) < *min) {
        outcome.fail(path, Fault::Invalid, items.len(), format!("should have at least {min} items"));
    }
    if let Some(max) = checks.max_items.filter(|max| items.len() as u64 > *max) {
        outcome.too_many(path, "items", items.len(), max);
    }
    outcome.applied += 1;
}

fn check_fields(
    schema: &Schema,
    map: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    outcome: &mut Outcome<'_>,
) {
    let checks = &schema.checks;
    if let Some(min) = checks.min_properties.filter(|min| (map.len() as u64) < *min) {
        outcome.fail(path, Fault::Invalid, map.len(), format!("should have at least {min} properties"));
    }
    if let Some(max) = checks.max_properties.filter(|max| map.len() as u64 > *max) {
        outcome.too_many(path, "properties", map.len(), max);
    }
    for (name, value) in map {
        let old = correlate::field(old, name);
        if let Some(property) = schema.properties.get(name) {
            // Both old and new were converted to one version, so that a change of it cannot be seen.
            let old = old.filter(|_| !(path.is_root() && matches!(name.as_str(), "apiVersion" | "kind")));
            outcome.merge(check(property, Given { value, old, path: &path.field(name), spent: outcome.spent }));
        } else if let Some(additional) = &schema.additional {
            outcome.merge(check(additional, Given { value, old, path: &path.key(name), spent: outcome.spent }));
        } else if schema.closed {
            outcome.push(|| {
                let text = format!("{}.{name} in body is a forbidden property", path.within());
                let error = FieldError::with_value(path.dotted(), Fault::Invalid, &name.as_str().into(), text.clone());
                Failed { text, error }
            });
        }
    }
    if !outcome.spent.takes(checks.required.len() as u64) {
        return;
    }
    for name in checks.required.iter().filter(|name| !map.contains_key(*name)) {
        let path = path.field(name);
        outcome.push(|| {
            let error = FieldError::new(path.dotted(), Fault::Required, "");
            Failed { text: format!("{} in body is required", path.within()), error }
        });
    }
}
