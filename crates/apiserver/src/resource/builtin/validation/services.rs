//! Services and endpoint slices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, PORT_RANGE, entries, items, names, text};
use crate::object::Object;
use crate::refusal::{Fault, FieldError};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn service(errors: &mut Errors, service: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let spec = service.get("spec").unwrap_or(&empty);
    if old.is_none() && !service.name().is_empty() {
        for why in names::label_1035(service.name()) {
            errors.invalid("metadata.name", &json!(service.name()), &why);
        }
    }
    let ty = text(spec, "type");
    let ip = text(spec, "clusterIP");
    if items(spec.get("ports")).next().is_none() && ip != "None" && ty != "ExternalName" {
        errors.required("spec.ports", "");
    }
    check_type(errors, spec);
    check_ports(errors, spec);
    for (key, value) in entries(spec.get("selector")) {
        let value = value.as_str().unwrap_or_default();
        for (text, reasons) in [(key.as_str(), names::qualified(key)), (value, names::label_value(value))] {
            for why in reasons {
                errors.invalid("spec.selector", &json!(text), &why);
            }
        }
    }
    errors.one_of(spec, "spec", "sessionAffinity", &["ClientIP", "None"]);
    check_address(errors, spec, old);
}

fn check_type(errors: &mut Errors, spec: &Value) {
    errors.one_of(spec, "spec", "type", TYPES);
    if text(spec, "type") != "ExternalName" {
        return;
    }
    let name = text(spec, "externalName");
    if name.is_empty() {
        errors.required("spec.externalName", "");
        return;
    }
    // A trailing dot marks a name as complete.
    for why in names::subdomain(name.strip_suffix('.').unwrap_or(name)) {
        errors.invalid("spec.externalName", &json!(name), &why);
    }
}

fn check_ports(errors: &mut Errors, spec: &Value) {
    let several = items(spec.get("ports")).count() > 1;
    let is_internal = matches!(text(spec, "type"), "ClusterIP" | "ExternalName" | "");
    let (mut seen_names, mut seen_ports) = (BTreeSet::new(), BTreeSet::new());
    for (at, port) in items(spec.get("ports")) {
        let path = format!("spec.ports[{at}]");
        let name = text(port, "name");
        if name.is_empty() {
            if several {
                errors.required(&format!("{path}.name"), "");
            }
        } else {
            for why in names::label(name) {
                errors.invalid(&format!("{path}.name"), &json!(name), &why);
            }
            if !seen_names.insert(name) {
                errors.duplicate(&format!("{path}.name"), &json!(name));
            }
        }
        check_number(errors, port, &path, "port");
        errors.one_of(port, &path, "protocol", PROTOCOLS);
        match port.get("targetPort") {
            Some(Value::String(target)) => {
                for why in names::port(target) {
                    errors.invalid(&format!("{path}.targetPort"), &json!(target), &why);
                }
            }
            _ => check_number(errors, port, &path, "targetPort"),
        }
        if is_internal && port.get("nodePort").is_some() {
            let ty = text(spec, "type");
            errors.forbidden(&format!("{path}.nodePort"), &format!("may not be used when `type` is '{ty}'"));
        }
        let (number, protocol) = (port.get("port").and_then(Value::as_i64).unwrap_or_default(), text(port, "protocol"));
        if !seen_ports.insert((number, protocol)) {
            // Shown as the original's structure shows, with only the compared fields filled in.
            let value = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.0.push(FieldError { field: path, fault: Fault::Duplicate, value, detail: String::new() });
        }
    }
}

fn check_number(errors: &mut Errors, port: &Value, path: &str, field: &str) {
    let number = port.get(field).and_then(Value::as_i64).unwrap_or_default();
    if !(1..=65_535).contains(&number) {
        errors.invalid(&format!("{path}.{field}"), &json!(number), PORT_RANGE);
    }
}

fn check_address(errors: &mut Errors, spec: &Value, old: Option<&Value>) {
    let (ip, ty) = (text(spec, "clusterIP"), text(spec, "type"));
    if ip == "None" {
        if matches!(ty, "NodePort" | "LoadBalancer") {
            let why = format!("may not be set to 'None' for {ty} services");
            errors.invalid("spec.clusterIPs[0]", &json!(ip), &why);
        }
    } else if !ip.is_empty()
        && let Some(why) = names::ip(ip)
    {
        errors.invalid("spec.clusterIPs[0]", &json!(ip), why);
    }
    let before = old.and_then(|old| old.at(&["spec", "clusterIP"])).and_then(Value::as_str).unwrap_or_default();
    if !before.is_empty() && ty != "ExternalName" && ip != before {
        errors.invalid("spec.clusterIPs[0]", &json!([ip]), "may not change once set");
    }
}

/// What is wrong with the list of addresses that a service asks for beside its one address: the list begins with that
/// one, and there is no list without it. On an update, what is left out is what was there.
pub(crate) fn listed_addresses(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if text(spec, "type") == "ExternalName" {
        return Vec::new();
    }
    let nothing = Value::Null;
    let before = old.filter(|old| text(old, "type") != "ExternalName").unwrap_or(&nothing);
    let listed = |spec: &Value| -> Vec<String> {
        items(spec.get("clusterIPs")).map(|(_, ip)| ip.as_str().unwrap_or_default().to_owned()).collect()
    };
    let (ip, list) = (text(spec, "clusterIP"), listed(spec));
    let first = if ip.is_empty() { text(before, "clusterIP") } else { ip };
    // A list that only repeats the old one follows the address, and is no word of its own.
    if list.is_empty() || list == listed(before) {
        return Vec::new();
    }
    let mut errors = Errors::default();
    let field = "spec.clusterIPs";
    if first.is_empty() {
        errors.invalid(field, &json!(list), "must be empty when `clusterIP` is not specified");
    } else if list[0] != first {
        errors.invalid(field, &json!(list), "first value must match `clusterIP`");
    }
    if list[0] == "None" && list.len() > 1 {
        errors.invalid(field, &json!(list), "'None' must be the first and only value");
        return errors.0;
    }
    for (at, address) in list.iter().enumerate().skip(1).take(1) {
        if let Some(why) = names::ip(address) {
            errors.invalid(&format!("{field}[{at}]"), &json!(address), why);
        }
    }
    if list.len() > 2 {
        errors.invalid(field, &json!(list), "may only hold up to 2 values");
    }
    if let [first, others @ ..] = list.as_slice()
        && !others.is_empty()
    {
        match others.iter().find(|other| other.contains(':') != first.contains(':')) {
            None => errors.invalid(field, &json!(list), "may specify no more than one IP for each IP family"),
            Some(_) => errors.invalid(&format!("{field}[1]"), &json!(list), "IPv6 is not configured on this cluster"),
        }
    }
    errors.0
}

pub(super) fn endpoint_slice(errors: &mut Errors, slice: &Value, old: Option<&Value>) {
    if text(slice, "addressType").is_empty() {
        errors.required("addressType", "");
    }
    errors.one_of(slice, "", "addressType", &["FQDN", "IPv4", "IPv6"]);
    for (at, endpoint) in items(slice.get("endpoints")) {
        let path = format!("endpoints[{at}].addresses");
        if items(endpoint.get("addresses")).next().is_none() {
            errors.required(&path, "must contain at least 1 address");
        }
        for (at, address) in items(endpoint.get("addresses")) {
            let is_ip = text(slice, "addressType") != "FQDN";
            if is_ip && let Some(why) = names::ip(address.as_str().unwrap_or_default()) {
                errors.invalid(&format!("{path}[{at}]"), address, why);
            }
        }
    }
    if let Some(old) = old {
        errors.unchanged(slice, old, "addressType");
    }
}
