//! Names to real addresses: what DNS and kube-proxy would do for pods that all share 127.0.0.1.
//!
//! The kubelet says which real ports a pod's processes have; the endpoints controller says which pods serve a Service.
//! Programs look names up here and dial what they find. The name itself stays what it was, for TLS and HTTP.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Name and port to real addresses. Clones are the same table.
#[derive(Debug, Clone)]
pub struct AddressTable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    known: watch::Sender<Known>,
    reserved: Mutex<BTreeMap<(PodName, u16), u16>>,
}

/// A pod or a Service by namespace and name.
type Named = (String, String);

/// Namespace and host name of a pod.
type PodName = Named;

#[derive(Debug, Default, PartialEq)]
struct Known {
    pods: BTreeMap<PodName, PodPorts>,
    /// Service to service port to whoever serves it.
    services: BTreeMap<Named, BTreeMap<u16, Vec<SocketAddr>>>,
}

#[derive(Debug, PartialEq)]
struct PodPorts {
    subdomain: Option<String>,
    real: BTreeMap<u16, u16>,
}

/// What a name in the cluster stands for.
#[derive(Debug, PartialEq, Eq)]
enum Host<'a> {
    Service { namespace: &'a str, name: &'a str },
    Pod { namespace: &'a str, subdomain: &'a str, hostname: &'a str },
    Address(Ipv4Addr),
    Unknown,
}

impl Default for AddressTable {
    fn default() -> Self {
        Self(Arc::new(Inner { known: watch::Sender::new(Known::default()), reserved: Mutex::default() }))
    }
}

impl AddressTable {
    /// Who serves `host:port` now: nobody, one, or (behind a Service) several, in a fixed order.
    ///
    /// Names are `<service>.<namespace>[.svc[.cluster.local]]` and `<hostname>.<subdomain>.<namespace>[.svc…]`; an IPv4
    /// address and `localhost` stand for themselves.
    pub fn find(&self, host: &str, port: u16) -> Vec<SocketAddr> {
        self.0.known.borrow().find(host, port)
    }

    /// Waits until somebody serves `host:port`; the first of them.
    pub async fn wait_for(&self, host: &str, port: u16) -> SocketAddr {
        let mut known = self.0.known.subscribe();
        loop {
            if let Some(first) = known.borrow_and_update().find(host, port).first() {
                return *first;
            }
            // The sender lives as long as `self`.
            if known.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// A free port of 127.0.0.1 for a pod's port, the same whenever it is asked for: also before the pod runs, which
    /// programs need that must name their peers in their configuration. It is not held: somebody else may take it.
    pub fn reserve(&self, namespace: &str, hostname: &str, port: u16) -> io::Result<u16> {
        let mut reserved = self.0.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let key = ((namespace.to_owned(), hostname.to_owned()), port);
        if let Some(real) = reserved.get(&key) {
            return Ok(*real);
        }
        // Ports just freed may be offered again: those promised to others are passed over.
        let mut tried = Vec::new();
        loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let real = listener.local_addr()?.port();
            tried.push(listener);
            if reserved.values().all(|other| *other != real) {
                reserved.insert(key, real);
                return Ok(real);
            }
        }
    }

    /// Whose `<hostname>.<subdomain>.<namespace>.svc` this is: namespace and host name.
    pub fn pod_of(host: &str) -> Option<(String, String)> {
        match Host::parse(host) {
            Host::Pod { namespace, hostname, .. } => Some((namespace.to_owned(), hostname.to_owned())),
            _ => None,
        }
    }

    /// A pod's processes have these real ports by now.
    pub fn pod_runs(&self, namespace: &str, hostname: &str, subdomain: Option<&str>, real: BTreeMap<u16, u16>) {
        let ports = PodPorts { subdomain: subdomain.map(ToOwned::to_owned), real };
        self.change(|known| drop(known.pods.insert((namespace.to_owned(), hostname.to_owned()), ports)));
    }

    /// A pod has ended.
    pub fn pod_ended(&self, namespace: &str, hostname: &str) {
        self.change(|known| drop(known.pods.remove(&(namespace.to_owned(), hostname.to_owned()))));
    }

    /// A Service is served by these; nothing at all if it is gone.
    pub fn service_is(&self, namespace: &str, name: &str, ports: Option<BTreeMap<u16, Vec<SocketAddr>>>) {
        let key = (namespace.to_owned(), name.to_owned());
        self.change(|known| match ports {
            Some(ports) => drop(known.services.insert(key, ports)),
            None => drop(known.services.remove(&key)),
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        self.0.known.send_modify(change);
    }
}

impl Known {
    fn find(&self, host: &str, port: u16) -> Vec<SocketAddr> {
        let local = |real: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, real));
        match Host::parse(host) {
            Host::Address(address) => vec![SocketAddr::from((address, port))],
            Host::Service { namespace, name } => {
                let service = self.services.get(&(namespace.to_owned(), name.to_owned()));
                service.and_then(|ports| ports.get(&port)).cloned().unwrap_or_default()
            }
            Host::Pod { namespace, subdomain, hostname } => {
                let pod = self.pods.get(&(namespace.to_owned(), hostname.to_owned()));
                let pod = pod.filter(|pod| pod.subdomain.as_deref() == Some(subdomain));
                pod.and_then(|pod| pod.real.get(&port)).map(|real| local(*real)).into_iter().collect()
            }
            Host::Unknown => Vec::new(),
        }
    }
}

impl<'a> Host<'a> {
    fn parse(host: &'a str) -> Self {
        if host == "localhost" {
            return Self::Address(Ipv4Addr::LOCALHOST);
        }
        if let Ok(address) = host.parse() {
            return Self::Address(address);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = host.strip_suffix(".cluster.local").unwrap_or(host);
        let host = host.strip_suffix(".svc").unwrap_or(host);
        match *host.split('.').collect::<Vec<_>>().as_slice() {
            [name, namespace] => Self::Service { namespace, name },
            [hostname, subdomain, namespace] => Self::Pod { namespace, subdomain, hostname },
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn pods_and_services_are_found_by_their_names_in_every_length() {
        let table = AddressTable::default();
        table.pod_runs("ns", "c-brokers-0", Some("c-kafka-brokers"), [(9091, 40001)].into());
        table.service_is("ns", "c-kafka-bootstrap", Some([(9092, vec![local(1), local(2)])].into()));
        for end in ["", ".svc", ".svc.cluster.local", ".svc.cluster.local."] {
            assert_eq!(table.find(&format!("c-brokers-0.c-kafka-brokers.ns{end}"), 9091), [local(40001)], "{end}");
            assert_eq!(table.find(&format!("c-kafka-bootstrap.ns{end}"), 9092), [local(1), local(2)], "{end}");
        }
        for (host, port) in [
            ("c-brokers-0.c-kafka-brokers.ns.svc", 9092),
            ("c-brokers-0.other.ns.svc", 9091),
            ("c-brokers-0.c-kafka-brokers.other.svc", 9091),
            ("c-kafka-bootstrap.ns.svc", 9091),
            ("example.com.of.somebody", 9092),
            ("bare", 9092),
        ] {
            assert_eq!(table.find(host, port), [], "{host}:{port}");
        }
        assert_eq!(table.find("127.0.0.1", 7), [local(7)]);
        assert_eq!(table.find("localhost", 7), [local(7)]);
        table.pod_ended("ns", "c-brokers-0");
        table.service_is("ns", "c-kafka-bootstrap", None);
        assert_eq!(table.find("c-brokers-0.c-kafka-brokers.ns.svc", 9091), []);
        assert_eq!(table.find("c-kafka-bootstrap.ns.svc", 9092), []);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_a_name_is_told_when_it_is_there() {
        let table = AddressTable::default();
        let waiting = tokio::spawn({
            let table = table.clone();
            async move { table.wait_for("engine.ns.svc", 9090).await }
        });
        tokio::task::yield_now().await;
        table.service_is("ns", "engine", Some(BTreeMap::new()));
        tokio::task::yield_now().await;
        table.service_is("ns", "engine", Some([(9090, vec![local(5)])].into()));
        assert_eq!(waiting.await.unwrap(), local(5));
    }

    #[test]
    fn a_reserved_port_stays_the_same_and_is_nobody_elses() {
        let table = AddressTable::default();
        let mine = table.reserve("ns", "pod-0", 9090).unwrap();
        assert_eq!(table.reserve("ns", "pod-0", 9090).unwrap(), mine);
        assert_ne!(table.reserve("ns", "pod-1", 9090).unwrap(), mine);
        assert_ne!(table.reserve("ns", "pod-0", 9091).unwrap(), mine);
        let named = AddressTable::pod_of("pod-0.brokers.ns.svc");
        assert_eq!(named, Some(("ns".into(), "pod-0".into())));
        assert_eq!(AddressTable::pod_of("service.ns.svc"), None);
    }
}
