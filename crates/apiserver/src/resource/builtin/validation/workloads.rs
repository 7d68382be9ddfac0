//! Deployments, replica sets and disruption budgets.

use serde_json::{Value, json};

use super::{Errors, IMMUTABLE, NOT_NEGATIVE, entries, items, names, pods, text};
use crate::object::Object;
use crate::refusal::{Fault, FieldError};

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

pub(super) fn deployment(errors: &mut Errors, deployment: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let spec = deployment.get("spec").unwrap_or(&empty);
    errors.not_negative(spec, "spec", "replicas");
    selector_and_template(errors, spec);
    strategy(errors, spec.get("strategy").unwrap_or(&empty));
    errors.not_negative(spec, "spec", "minReadySeconds");
    errors.not_negative(spec, "spec", "revisionHistoryLimit");
    errors.not_negative(spec, "spec", "progressDeadlineSeconds");
    let number = |field: &str| spec.get(field).and_then(Value::as_i64).unwrap_or_default();
    if let Some(deadline) = spec.get("progressDeadlineSeconds").filter(|_| number("progressDeadlineSeconds") >= 0)
        && number("progressDeadlineSeconds") <= number("minReadySeconds")
    {
        errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
    selector_unchanged(errors, spec, old);
}

pub(super) fn replica_set(errors: &mut Errors, replica_set: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let spec = replica_set.get("spec").unwrap_or(&empty);
    errors.not_negative(spec, "spec", "replicas");
    errors.not_negative(spec, "spec", "minReadySeconds");
    selector_and_template(errors, spec);
    selector_unchanged(errors, spec, old);
}

/// Whoever changes the selector of a workload loses sight of its pods.
fn selector_unchanged(errors: &mut Errors, spec: &Value, old: Option<&Value>) {
    if let (Some(new), Some(old)) = (spec.get("selector"), old.and_then(|old| old.at(&["spec", "selector"])))
        && new != old
    {
        errors.invalid("spec.selector", new, IMMUTABLE);
    }
}

fn selector_and_template(errors: &mut Errors, spec: &Value) {
    let empty = Value::Null;
    let selector = spec.get("selector").unwrap_or(&empty);
    let labels = spec.at(&["template", "metadata", "labels"]).unwrap_or(&empty);
    let found = errors.0.len();
    if selector.is_null() {
        errors.required("spec.selector", "");
    } else {
        label_selector(errors, selector, "spec.selector");
        if errors.0.len() > found {
            errors.invalid("spec.selector", selector, "invalid label selector");
        } else if entries(Some(selector)).next().is_none() {
            // The original says "deployment" for replica sets as well.
            errors.invalid("spec.selector", selector, "empty selector is invalid for deployment");
        }
    }
    let understood = selector.is_null() || errors.0.len() == found;
    if understood && !matches(selector, labels) {
        errors.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`");
    }
    pods::template(errors, spec.get("template").unwrap_or(&empty), "spec.template");
    let pod = spec.at(&["template", "spec"]).unwrap_or(&empty);
    if !matches!(text(pod, "restartPolicy"), "Always" | "") {
        errors.unsupported("spec.template.spec.restartPolicy", &pod["restartPolicy"], &["Always"]);
    }
}

/// What is wrong with a label selector itself.
pub(super) fn label_selector(errors: &mut Errors, selector: &Value, path: &str) {
    errors.labels(&format!("{path}.matchLabels"), selector.get("matchLabels"));
    for (at, expression) in items(selector.get("matchExpressions")) {
        let path = format!("{path}.matchExpressions[{at}]");
        let has_values = items(expression.get("values")).next().is_some();
        match text(expression, "operator") {
            "In" | "NotIn" if !has_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&format!("{path}.values"), why);
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&format!("{path}.values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&format!("{path}.operator"), &json!(other), "not a valid selector operator"),
        }
        let key = text(expression, "key");
        errors.named(&format!("{path}.key"), key, names::qualified(key));
        for (at, value) in items(expression.get("values")) {
            let value = value.as_str().unwrap_or_default();
            errors.named(&format!("{path}.values[{at}]"), value, names::label_value(value));
        }
    }
}

/// Whether a selector that is in order selects these labels. No selector selects nothing.
fn matches(selector: &Value, labels: &Value) -> bool {
    let has = |key: &str| labels.get(key);
    !selector.is_null()
        && entries(selector.get("matchLabels")).all(|(key, value)| has(key) == Some(value))
        && items(selector.get("matchExpressions")).all(|(_, expression)| {
            let value = has(text(expression, "key"));
            let listed = value.is_some_and(|value| items(expression.get("values")).any(|(_, v)| v == value));
            match text(expression, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

fn strategy(errors: &mut Errors, strategy: &Value) {
    let ty = text(strategy, "type");
    let rolling = strategy.get("rollingUpdate");
    match (ty, rolling) {
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.forbidden("spec.strategy.rollingUpdate", why);
        }
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => rolling_update(errors, rolling),
        ("RollingUpdate", None) => {
            errors.required("spec.strategy.rollingUpdate", "this should be defaulted and never be nil")
        }
        _ => {
            let value = format!("{{\"Type\":{ty:?},\"RollingUpdate\":null}}");
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"".to_owned();
            errors.0.push(FieldError { field: "spec.strategy".into(), fault: Fault::NotSupported, value, detail });
        }
    }
}

fn rolling_update(errors: &mut Errors, rolling: &Value) {
    let path = "spec.strategy.rollingUpdate";
    let before = errors.0.len();
    for field in ["maxUnavailable", "maxSurge"] {
        amount_or_percent(errors, rolling, path, field);
    }
    let is_zero = |field: &str| rolling.get(field).is_none_or(|v| v == 0 || v == "0%");
    if errors.0.len() == before && is_zero("maxUnavailable") && is_zero("maxSurge") {
        let value = rolling.get("maxUnavailable").cloned().unwrap_or(json!(0));
        errors.invalid(&format!("{path}.maxUnavailable"), &value, "may not be 0 when `maxSurge` is 0");
    }
    if percent(rolling.get("maxUnavailable")).is_some_and(|percent| percent > 100) {
        errors.invalid(&format!("{path}.maxUnavailable"), &rolling["maxUnavailable"], "must not be greater than 100%");
    }
}

fn amount_or_percent(errors: &mut Errors, parent: &Value, path: &str, field: &str) {
    let Some(value) = parent.get(field) else { return };
    let why = match value {
        Value::String(_) if percent(Some(value)).is_none() => PERCENT,
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => NOT_NEGATIVE,
        _ => return,
    };
    errors.invalid(&format!("{path}.{field}"), value, why);
}

fn percent(value: Option<&Value>) -> Option<u64> {
    let digits = value?.as_str()?.strip_suffix('%')?;
    // More digits than fit are still a percentage, of everything.
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().unwrap_or(u64::MAX))
}

pub(super) fn disruption_budget(errors: &mut Errors, budget: &Value) {
    let empty = Value::Null;
    let spec = budget.get("spec").unwrap_or(&empty);
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if let (Some(min), Some(max)) = (min, max) {
        let selector = spec.get("selector").unwrap_or(&empty);
        let policy = spec.get("unhealthyPodEvictionPolicy").unwrap_or(&empty);
        let value = format!(
            "{{\"MinAvailable\":{min},\"Selector\":{selector},\"MaxUnavailable\":{max},\"UnhealthyPodEvictionPolicy\":{policy}}}"
        );
        let detail = "minAvailable and maxUnavailable cannot be both set".to_owned();
        errors.0.push(FieldError { field: "spec".into(), fault: Fault::Invalid, value, detail });
    }
    for field in ["minAvailable", "maxUnavailable"] {
        amount_or_percent(errors, spec, "spec", field);
        if percent(spec.get(field)).is_some_and(|percent| percent > 100) {
            errors.invalid(&format!("spec.{field}"), &spec[field], "must not be greater than 100%");
        }
    }
    if let Some(selector) = spec.get("selector") {
        label_selector(errors, selector, "spec.selector");
    }
}
