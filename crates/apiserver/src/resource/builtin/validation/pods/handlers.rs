//! Probes, and what is done when a container begins and ends.

use serde_json::{Value, json};

use super::super::{Errors, PORT_RANGE, below, items, names, text};

const HTTP_HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// Everything that is done to a container from outside. `grace`: how long its pod has to end.
pub(super) fn check_handlers(errors: &mut Errors, container: &Value, path: &str, grace: i64) {
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = container.get("lifecycle").and_then(|lifecycle| lifecycle.get(hook)) {
            check_handler(errors, handler, &format!("{path}.lifecycle.{hook}"), grace);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(value) = container.get(probe) {
            check_probe(errors, value, &below(path, probe), probe == "readinessProbe", grace);
        }
    }
}

fn check_probe(errors: &mut Errors, probe: &Value, path: &str, is_readiness: bool, grace: i64) {
    check_handler(errors, probe, path, grace);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        errors.not_negative(probe, path, field);
    }
    if let Some(seconds) = probe.get("terminationGracePeriodSeconds") {
        let field = below(path, "terminationGracePeriodSeconds");
        if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
            errors.invalid(&field, seconds, "must be greater than 0");
        }
        if is_readiness {
            errors.invalid(&field, seconds, "must not be set for readinessProbes");
        }
    }
    // One success must be enough where the probe decides about life and death.
    if let Some(count) = probe.get("successThreshold").filter(|count| !is_readiness && **count != json!(1)) {
        errors.invalid(&below(path, "successThreshold"), count, "must be 1");
    }
}

fn check_handler(errors: &mut Errors, handler: &Value, path: &str, grace: i64) {
    let mut kinds =
        ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|kind| handler.get(kind).is_some());
    match kinds.next() {
        None => errors.required(path, "must specify a handler type"),
        Some(kind) => check_action(errors, kind, &handler[kind], &below(path, kind), grace),
    }
    for other in kinds {
        errors.forbidden(&below(path, other), "may not specify more than 1 handler type");
    }
}

fn check_action(errors: &mut Errors, kind: &str, action: &Value, path: &str, grace: i64) {
    match kind {
        "exec" => {
            if items(action.get("command")).next().is_none() {
                errors.required(&below(path, "command"), "");
            }
        }
        "sleep" => {
            let seconds = action.get("seconds").and_then(Value::as_i64).unwrap_or_default();
            if !(0..=grace).contains(&seconds) {
                let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.invalid(path, &json!(seconds), &why);
            }
        }
        _ => {
            check_port(errors, action.get("port"), &below(path, "port"));
            if kind == "httpGet" {
                errors.one_of(action, path, "scheme", &["HTTP", "HTTPS"]);
                for (_, header) in items(action.get("httpHeaders")) {
                    let name = text(header, "name");
                    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                        errors.invalid(&below(path, "httpHeaders"), &json!(name), HTTP_HEADER);
                    }
                }
            }
        }
    }
}

/// A number, or the name of one of the container's ports.
fn check_port(errors: &mut Errors, port: Option<&Value>, path: &str) {
    match port {
        Some(Value::String(name)) => errors.named(path, name, names::port(name)),
        port => {
            let number = port.and_then(Value::as_i64).unwrap_or_default();
            if !(1..=65_535).contains(&number) {
                errors.invalid(path, &json!(number), PORT_RANGE);
            }
        }
    }
}
