//! The listeners that clients use: internal ones, plain, TLS and mTLS.
//!
//! A listener of another type is left out and named. Authentication of another kind is refused instead: left out, it
//! would leave the door open.

use std::collections::BTreeSet;

use evenkeel_api::{Reason, kafka::Listener as Written};
use serde_json::Value;

use super::problem::{Problem, Remark};

/// The port of controllers.
pub const CONTROL_PLANE: u16 = 9090;
/// The port on which brokers speak with each other, the operator and the engine.
pub const REPLICATION: u16 = 9091;
/// Ports that images of Kafka use besides: metrics and JMX.
const RESERVED: [u16; 2] = [9404, 9999];

/// One way into the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, in lower case.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Whether it is encrypted.
    pub tls: bool,
    /// Whether clients show a certificate of the clients' authority.
    pub client_certificates: bool,
    /// Peers that may connect, as in a NetworkPolicy. None: everybody.
    pub peers: Option<Vec<Value>>,
}

impl Listener {
    /// Its name in Kafka's settings, such as `TLS-9093`.
    pub fn kafka_name(&self) -> String {
        format!("{}-{}", self.name.to_uppercase(), self.port)
    }

    /// The name of its port in pods and services, such as `tcp-tls`.
    pub fn port_name(&self) -> String {
        format!("tcp-{}", self.name)
    }
}

/// Reads the listeners that can be had.
pub(super) fn read(written: &[Written], problems: &mut Vec<Problem>, remarks: &mut Vec<Remark>) -> Vec<Listener> {
    let (mut names, mut ports) = (BTreeSet::new(), BTreeSet::new());
    let mut listeners = Vec::new();
    for (n, listener) in written.iter().enumerate() {
        let at = |field: &str| format!("spec.kafka.listeners[{n}].{field}");
        let mut wrong = |field: &str, text: String| problems.push(Problem::of_kafka(at(field), text));
        let fits = (1..=11).contains(&listener.name.len())
            && listener.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !fits {
            wrong("name", format!("`{}`: up to 11 lower-case letters and digits", listener.name));
        }
        if !names.insert(&listener.name) {
            wrong("name", format!("`{}` is used twice", listener.name));
        }
        let port = u16::try_from(listener.port).ok().filter(|port| *port >= 9092 && !RESERVED.contains(port));
        if port.is_none() {
            wrong("port", format!("{}: take one from 9092 on, but not 9404 or 9999", listener.port));
        }
        if !ports.insert(listener.port) {
            wrong("port", format!("{} is used twice", listener.port));
        }
        let kind = listener.authentication.as_ref().map(|form| form.get("type").and_then(Value::as_str).unwrap_or(""));
        match kind {
            Some("tls") if !listener.tls => wrong("authentication", "`tls` needs `tls: true` beside it".to_owned()),
            None | Some("tls") => {}
            Some(other) => {
                let text = format!(
                    "`{other}` is not built: only `tls` is. Without it everybody could connect, so the cluster is not made"
                );
                wrong("authentication", text);
            }
        }
        let ignored = listener.authentication.iter().flat_map(|form| form.keys()).filter(|key| *key != "type");
        let ignored = ignored.map(|key| format!("authentication.{key}"));
        let configured = listener.configuration.iter().flat_map(|form| form.keys());
        for field in ignored.chain(configured.map(|key| format!("configuration.{key}"))) {
            remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, format!("{} is not honoured", at(&field))));
        }
        if listener.type_ != "internal" {
            let text = format!("{}: `{}` is not honoured: the listener is left out", at("type"), listener.type_);
            remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
            continue;
        }
        listeners.push(Listener {
            name: listener.name.clone(),
            port: port.unwrap_or_default(),
            tls: listener.tls,
            client_certificates: kind == Some("tls"),
            peers: listener
                .network_policy_peers
                .as_ref()
                .map(|peers| peers.iter().map(|peer| Value::Object(peer.clone().into_iter().collect())).collect()),
        });
    }
    listeners
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(written: Value) -> (Vec<Listener>, Vec<String>, Vec<String>) {
        let (mut problems, mut remarks) = (Vec::new(), Vec::new());
        let written: Vec<Written> = serde_json::from_value(written).unwrap();
        let read = read(&written, &mut problems, &mut remarks);
        let said = remarks.into_iter().filter_map(|remark| remark.condition.message).collect();
        (read, problems.iter().map(ToString::to_string).collect(), said)
    }

    #[test]
    fn plain_tls_and_mtls_are_read() {
        let (read, problems, remarks) = read_all(json!([
            {"name": "plain", "port": 9092, "type": "internal", "tls": false},
            {"name": "tls", "port": 9093, "type": "internal", "tls": true, "authentication": {"type": "tls"}}]));
        assert_eq!((problems, remarks), (Vec::new(), Vec::new()));
        let names: Vec<(String, String)> = read.iter().map(|it| (it.kafka_name(), it.port_name())).collect();
        assert_eq!(names, [("PLAIN-9092", "tcp-plain"), ("TLS-9093", "tcp-tls")].map(|(a, b)| (a.into(), b.into())));
        assert!(!read[0].client_certificates && read[1].client_certificates);
    }

    #[test]
    fn conflicts_and_open_doors_are_refused() {
        let (_, problems, _) = read_all(json!([
            {"name": "plain", "port": 9092, "type": "internal", "tls": false, "authentication": {"type": "tls"}},
            {"name": "plain", "port": 9092, "type": "internal", "tls": false},
            {"name": "UPPER", "port": 9091, "type": "internal", "tls": true, "authentication": {"type": "oauth"}}]));
        let fields: Vec<&str> = problems.iter().filter_map(|text| text.split(": ").next()).collect();
        assert_eq!(
            fields,
            [
                "spec.kafka.listeners[0].authentication",
                "spec.kafka.listeners[1].name",
                "spec.kafka.listeners[1].port",
                "spec.kafka.listeners[2].name",
                "spec.kafka.listeners[2].port",
                "spec.kafka.listeners[2].authentication",
            ]
        );
    }

    #[test]
    fn what_is_not_built_is_left_out_and_named() {
        let (read, problems, remarks) = read_all(json!([
            {"name": "out", "port": 9094, "type": "nodeport", "tls": true, "configuration": {"bootstrap": {}}}]));
        assert_eq!((read.len(), problems.len()), (0, 0));
        assert_eq!(
            remarks,
            [
                "spec.kafka.listeners[0].configuration.bootstrap is not honoured",
                "spec.kafka.listeners[0].type: `nodeport` is not honoured: the listener is left out",
            ]
        );
    }
}
