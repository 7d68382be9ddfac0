//! Addresses and ports that services have, kept beside the store so that handing out another reads no service.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::object::Object;
use crate::refusal::{Fault, FieldError};
use crate::resource::Resource;
use crate::resource::builtin::admission::NODE_PORTS;
use crate::resource::builtin::validation::listed_addresses;
use crate::store::Key;

/// What all services have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    by_service: BTreeMap<Key, Claim>,
    pub(super) cluster_ips: BTreeSet<Ipv4Addr>,
    pub(super) node_ports: BTreeSet<u16>,
}

/// What one service has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Claim {
    cluster_ip: Option<Ipv4Addr>,
    node_ports: BTreeSet<u16>,
}

impl Claim {
    fn of(service: &Value) -> Self {
        let ip = service.at(&["spec", "clusterIP"]).and_then(Value::as_str);
        let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
        let node_ports = ports.filter_map(|port| u16::try_from(port.get("nodePort")?.as_u64()?).ok());
        Self { cluster_ip: ip.and_then(|ip| ip.parse().ok()), node_ports: node_ports.collect() }
    }
}

impl Claims {
    /// After a service was written.
    pub(super) fn hold(&mut self, key: &Key, service: &Value) {
        let claim = Claim::of(service);
        if self.by_service.get(key) == Some(&claim) {
            return;
        }
        self.release(key);
        self.cluster_ips.extend(claim.cluster_ip);
        self.node_ports.extend(&claim.node_ports);
        self.by_service.insert(key.clone(), claim);
    }

    /// After a service has gone. Two may have asked for one port (of two protocols, say): then the other keeps it.
    pub(super) fn release(&mut self, key: &Key) {
        let Some(gone) = self.by_service.remove(key) else { return };
        let left = &self.by_service;
        self.cluster_ips.retain(|ip| gone.cluster_ip != Some(*ip) || left.values().any(|c| c.cluster_ip == Some(*ip)));
        let kept = |port: &u16| left.values().any(|claim| claim.node_ports.contains(port));
        self.node_ports.retain(|port| !gone.node_ports.contains(port) || kept(port));
    }

    /// A service may ask for an address and for ports of nodes, but not for those that another service has.
    pub(super) fn clashes(&self, resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if !is_service(resource) {
            return Vec::new();
        }
        let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
        let listed = listed_addresses(&spec(object), old.map(spec).as_ref());
        listed.into_iter().chain(self.address_clash(object, old)).chain(self.port_clash(object, old)).collect()
    }

    fn address_clash(&self, object: &Value, old: Option<&Value>) -> Option<FieldError> {
        let address = |object: &Value| object.at(&["spec", "clusterIP"]).and_then(Value::as_str).map(str::to_owned);
        let wanted = address(object).filter(|wanted| Some(wanted) != old.and_then(address).as_ref())?;
        if !wanted.parse().is_ok_and(|ip: Ipv4Addr| self.cluster_ips.contains(&ip)) {
            return None;
        }
        let detail = format!("failed to allocate IP {wanted}: provided IP is already allocated");
        Some(FieldError::with_value("spec.clusterIPs", Fault::Invalid, &json!([wanted]), detail))
    }

    /// The first port that cannot be had. Services of other types have none to ask for.
    fn port_clash(&self, object: &Value, old: Option<&Value>) -> Option<FieldError> {
        let ty = object.at(&["spec", "type"]).and_then(Value::as_str);
        if !matches!(ty, Some("NodePort" | "LoadBalancer")) {
            return None;
        }
        let had = old.map(Claim::of).unwrap_or_default().node_ports;
        let ports = object.at(&["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
        ports.enumerate().find_map(|(n, port)| {
            let wanted = port.get("nodePort")?.as_i64().filter(|number| *number != 0)?;
            let number = u16::try_from(wanted).ok().filter(|number| NODE_PORTS.contains(number));
            let detail = match number {
                Some(number) if had.contains(&number) || !self.node_ports.contains(&number) => return None,
                Some(_) => "provided port is already allocated".to_owned(),
                None => {
                    let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
                    format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
                }
            };
            let at = format!("spec.ports[{n}].nodePort");
            Some(FieldError::with_value(at, Fault::Invalid, &json!(wanted), detail))
        })
    }
}

pub(super) fn is_service(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "services"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn service(ip: Option<u8>, ports: &[u16]) -> Value {
        let ip = ip.map_or_else(|| "None".to_owned(), |last| format!("10.0.1.{last}"));
        let ports: Vec<Value> = ports.iter().map(|port| json!({"port": 80, "nodePort": port})).collect();
        json!({"spec": {"clusterIP": ip, "ports": ports}})
    }

    proptest! {
        /// Whatever came and went: the claims are those of the services that are there.
        #[test]
        fn claims_are_what_a_fresh_look_would_find(
            steps in prop::collection::vec(
                (0u8..4, prop::option::of((prop::option::of(0u8..4), prop::collection::vec(30_000u16..30_004, 0..3)))),
                0..30,
            ),
        ) {
            let (mut claims, mut services) = (Claims::default(), BTreeMap::new());
            for (name, step) in steps {
                let key = Key::new(Some("default"), &format!("s{name}"));
                match step {
                    Some((ip, ports)) => {
                        let service = service(ip, &ports);
                        claims.hold(&key, &service);
                        services.insert(key, service);
                    }
                    None => {
                        claims.release(&key);
                        services.remove(&key);
                    }
                }
                let mut fresh = Claims::default();
                services.iter().for_each(|(key, service)| fresh.hold(key, service));
                prop_assert_eq!(&claims, &fresh);
            }
        }
    }
}
