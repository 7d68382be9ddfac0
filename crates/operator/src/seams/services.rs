//! How a service of a cluster is found: by its name, or in the EndpointSlices.
//!
//! In a local run all pods share one address, each with ports of its own, and no DNS knows them. What is dialled is then
//! another than what was asked for; names in certificates and in HTTP stay what they are everywhere.

use std::{fmt, io, sync::Arc};

use evenkeel_kafka::{
    Address,
    connect::{ConnectError, Connector, Opening, Tcp},
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Client, api::ListParams};

use super::BoxFuture;

/// Where a service of the cluster is reached.
pub trait Services: Send + Sync + fmt::Debug {
    /// Addresses behind this port of a service, as this process can dial them. Empty: nobody is there (yet).
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>>;

    /// The same for one pod behind a headless service.
    fn find_pod<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>>;
}

/// Inside a cluster: `<service>.<namespace>.svc` and the port as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dns;

impl Services for Dns {
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        let host = format!("{service}.{namespace}.svc");
        Box::pin(async move { Ok(vec![Address { host, port }]) })
    }

    fn find_pod<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        let host = format!("{pod}.{service}.{namespace}.svc");
        Box::pin(async move { Ok(vec![Address { host, port }]) })
    }
}

/// Where no DNS knows the services: the ready endpoints of their slices. Slices name their ports as the service does.
#[derive(Clone)]
pub struct EndpointSlices(pub Client);

impl fmt::Debug for EndpointSlices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EndpointSlices")
    }
}

impl EndpointSlices {
    async fn look(
        &self,
        namespace: &str,
        service: &str,
        pod: Option<&str>,
        port: u16,
    ) -> Result<Vec<Address>, kube::Error> {
        let services = Api::<Service>::namespaced(self.0.clone(), namespace);
        let Some(found) = services.get_opt(service).await? else { return Ok(Vec::new()) };
        let slices = Api::<EndpointSlice>::namespaced(self.0.clone(), namespace);
        let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        let slices = slices.list(&of_service).await?.items;
        Ok(addresses(&found, &slices, pod, port))
    }
}

impl Services for EndpointSlices {
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        Box::pin(self.look(namespace, service, None, port))
    }

    fn find_pod<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        Box::pin(self.look(namespace, service, Some(pod), port))
    }
}

/// The ready addresses behind a port of `service`, in a fixed order; of one pod, if one is named.
fn addresses(service: &Service, slices: &[EndpointSlice], pod: Option<&str>, port: u16) -> Vec<Address> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let Some(asked) = ports.into_iter().find(|known| known.port == i32::from(port)) else { return Vec::new() };
    // A port without a name is the only one of its service.
    let name = asked.name.as_deref().unwrap_or_default();
    let mut found: Vec<Address> = Vec::new();
    for slice in slices {
        let real = slice.ports.iter().flatten().find(|known| known.name.as_deref().unwrap_or_default() == name);
        let Some(real) = real.and_then(|known| known.port).and_then(|port| u16::try_from(port).ok()) else { continue };
        for endpoint in &slice.endpoints {
            let is_ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
            let is_meant = pod.is_none_or(|pod| {
                endpoint.hostname.as_deref() == Some(pod)
                    || endpoint.target_ref.as_ref().and_then(|target| target.name.as_deref()) == Some(pod)
            });
            if is_ready && is_meant {
                found.extend(endpoint.addresses.first().map(|host| Address { host: host.clone(), port: real }));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// What a name of a service or of a pod behind one says: `[<pod>.]<service>.<namespace>.svc[.cluster.local]`.
fn parts(host: &str) -> Option<(Option<&str>, &str, &str)> {
    let host = host.strip_suffix(".cluster.local").unwrap_or(host).strip_suffix(".svc")?;
    let labels: Vec<&str> = host.split('.').collect();
    match labels[..] {
        [service, namespace] => Some((None, service, namespace)),
        [pod, service, namespace] => Some((Some(pod), service, namespace)),
        _ => None,
    }
}

/// Plain TCP to services and pods, found through [`Services`]; to all other names as they are.
#[derive(Clone, Debug)]
pub struct ServiceConnector {
    services: Arc<dyn Services>,
}

impl ServiceConnector {
    /// Finds its way by these services.
    pub fn new(services: Arc<dyn Services>) -> Self {
        Self { services }
    }

    /// Where to dial for an address, all of it.
    async fn targets(&self, address: &Address) -> io::Result<Vec<Address>> {
        let found = match parts(&address.host) {
            None => return Ok(vec![address.clone()]),
            Some((None, service, namespace)) => self.services.find(namespace, service, address.port).await,
            Some((Some(pod), service, namespace)) => {
                self.services.find_pod(namespace, service, pod, address.port).await
            }
        };
        let found = found.map_err(io::Error::other)?;
        if found.is_empty() {
            let nobody = format!("nobody is ready behind {address}");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, nobody));
        }
        Ok(found)
    }
}

impl Connector for ServiceConnector {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(async move {
            let mut last = None;
            for target in self.targets(address).await.map_err(ConnectError::Unreachable)? {
                match Tcp.open(&target).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or_else(|| ConnectError::Unreachable(io::ErrorKind::AddrNotAvailable.into())))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn endpoints_are_found_by_the_name_of_the_port_and_of_the_pod() {
        let service: Service = serde_json::from_value(json!({"spec": {"ports": [
            {"name": "tcp-replication", "port": 9091}, {"name": "tcp-plain", "port": 9092},
        ]}}))
        .unwrap();
        let slice = |pod: &str, ready: bool, port: i32| -> EndpointSlice {
            serde_json::from_value(json!({
                "addressType": "IPv4", "metadata": {},
                "endpoints": [{"addresses": ["127.0.0.1"], "hostname": pod, "conditions": {"ready": ready}}],
                "ports": [{"name": "tcp-replication", "port": port}],
            }))
            .unwrap()
        };
        let slices = [slice("c-a-1", true, 4001), slice("c-a-0", true, 4000), slice("c-a-2", false, 4002)];
        assert_eq!(addresses(&service, &slices, None, 9091), [at("127.0.0.1", 4000), at("127.0.0.1", 4001)]);
        assert_eq!(addresses(&service, &slices, Some("c-a-1"), 9091), [at("127.0.0.1", 4001)]);
        assert_eq!(addresses(&service, &slices, Some("c-a-2"), 9091), []);
        assert_eq!(addresses(&service, &slices, None, 9092), [], "no slice has this port");
        assert_eq!(addresses(&service, &slices, None, 1), [], "the service has no such port");
    }

    #[test]
    fn names_of_services_and_pods_are_told_from_others() {
        assert_eq!(parts("c-kafka-bootstrap.ns.svc"), Some((None, "c-kafka-bootstrap", "ns")));
        assert_eq!(parts("p.c-kafka-brokers.ns.svc.cluster.local"), Some((Some("p"), "c-kafka-brokers", "ns")));
        for other in ["localhost", "broker.example.com", "svc", "a.svc", "a.b.c.d.svc"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn dns_names_are_dialled_as_they_are() {
        let connector = ServiceConnector::new(Arc::new(Dns));
        for host in ["s.ns.svc", "p.s.ns.svc", "elsewhere"] {
            assert_eq!(connector.targets(&at(host, 1)).await.unwrap(), [at(host, 1)]);
        }
    }
}
