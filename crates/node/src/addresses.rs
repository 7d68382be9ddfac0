//! Names to real addresses: what DNS and kube-proxy would do for pods that all share 127.0.0.1.
//!
//! The kubelet says which real ports a pod's processes have; the endpoints controller says which pods serve a Service.
//! Programs look names up here and dial what they find. The name itself stays what it was, for TLS and HTTP.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpSocket;
use tokio::sync::watch;

/// Name and port to real addresses. Clones are the same table.
#[derive(Debug, Clone)]
pub struct AddressTable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    known: watch::Sender<Known>,
    reserved: Mutex<BTreeMap<(PodName, u16), Promised>>,
}

/// A port that was promised to a program of another process, and the socket that keeps others from it.
#[derive(Debug)]
struct Promised {
    real: u16,
    /// Bound and never listening: the system gives its port to no connection and to nobody who asks for any port, while
    /// whoever asks for this very port, and may share it (`SO_REUSEADDR`, as servers do), can listen there.
    _held: TcpSocket,
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

    /// A port of 127.0.0.1 for a pod's port, the same whenever it is asked for: also before the pod runs, which programs
    /// need that must name their peers in their configuration. It is held for them as long as this table lives: a broker
    /// that restarts would not come back if a connection of somebody else had begun at its port meanwhile.
    pub fn reserve(&self, namespace: &str, hostname: &str, port: u16) -> io::Result<u16> {
        let mut reserved = self.0.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let key = ((namespace.to_owned(), hostname.to_owned()), port);
        if let Some(promised) = reserved.get(&key) {
            return Ok(promised.real);
        }
        let promised = Promised::any()?;
        let real = promised.real;
        reserved.insert(key, promised);
        Ok(real)
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

impl Promised {
    fn any() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { real: socket.local_addr()?.port(), _held: socket })
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
    use std::net::{TcpListener, TcpStream};

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

    /// As a JVM does it: `std` listens with `SO_REUSEADDR`, and so does Java.
    #[test]
    fn a_reserved_port_can_be_listened_at_again_and_again_and_nobody_gets_it_by_chance() {
        let table = AddressTable::default();
        let mine = table.reserve("ns", "pod-0", 9090).unwrap();
        for _ in 0..2 {
            assert!(TcpStream::connect(local(mine)).is_err(), "nobody listens there");
            let server = TcpListener::bind(local(mine)).unwrap();
            let _connected = TcpStream::connect(local(mine)).unwrap();
            drop(server);
        }
        let somebody = TcpSocket::new_v4().unwrap();
        let taken = somebody.bind(local(mine)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse, "whoever does not share it does not get it");
    }
}
