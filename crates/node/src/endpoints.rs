//! Endpoint slices: who serves a Service, and at which real port.
//!
//! On a real cluster pods have addresses of their own and share ports, so one slice holds many. Here they share
//! 127.0.0.1 and have ports of their own, and a slice has one list of ports: so every pod has its own slice,
//! `<service>-<pod>`. [`slices`] decides; what it finds also goes into the table that programs look names up in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::addresses::AddressTable;
use crate::nodes::zones;
use crate::patience::{Again, Troubles};
use crate::pods;
use crate::watched::{Key, Watched, key};

/// The label that names a slice's Service.
pub const SERVICE: &str = "kubernetes.io/service-name";

/// The label that says who looks after a slice, and what we say there.
const MANAGED_BY: (&str, &str) = ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.evenkeel.io");

/// The longest name that an object may have.
const LONGEST_NAME: usize = 253;

/// Keeps slices and the table up to date, until dropped.
pub async fn run(client: Client, table: AddressTable) {
    let mut controller = Controller {
        services: Watched::all(&client),
        pods: Watched::all(&client),
        slices: Watched::all(&client),
        nodes: Watched::all(&client),
        told: BTreeSet::new(),
        troubles: Troubles::default(),
        client,
        table,
    };
    let mut again = Again::default();
    loop {
        tokio::select! {
            () = controller.services.news() => (),
            () = controller.pods.news() => (),
            () = controller.slices.news() => (),
            () = controller.nodes.news() => (),
            () = again.due() => (),
        }
        let complete = controller.services.is_complete() && controller.pods.is_complete();
        if complete && controller.slices.is_complete() && controller.nodes.is_complete() {
            controller.round().await;
            again.at(controller.troubles.next());
        }
    }
}

struct Controller {
    client: Client,
    table: AddressTable,
    services: Watched<Service>,
    pods: Watched<Pod>,
    slices: Watched<EndpointSlice>,
    nodes: Watched<Node>,
    /// Services that the table knows.
    told: BTreeSet<Key>,
    troubles: Troubles,
}

impl Controller {
    async fn round(&mut self) {
        let zones = zones(self.nodes.iter().map(AsRef::as_ref));
        let pods = ByLabel::of(self.pods.iter().map(AsRef::as_ref));
        let mut wanted: BTreeMap<Key, EndpointSlice> = BTreeMap::new();
        let mut told = BTreeSet::new();
        for service in self.services.iter() {
            let namespace = service.namespace().unwrap_or_default();
            let slices = slices(service, pods.perhaps_meant_by(service).iter().copied(), &zones);
            self.table.service_is(&namespace, &service.name_any(), Some(addresses(service, &slices)));
            told.insert(key(service.as_ref()));
            wanted.extend(slices.into_iter().map(|slice| (key(&slice), slice)));
        }
        for (namespace, name) in self.told.difference(&told) {
            self.table.service_is(namespace, name, None);
        }
        self.told = told;
        self.write(wanted).await;
    }

    async fn write(&mut self, wanted: BTreeMap<Key, EndpointSlice>) {
        let ours = |slice: &EndpointSlice| slice.labels().get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1);
        let there = self.slices.iter().filter(|slice| ours(slice) && slice.metadata.deletion_timestamp.is_none());
        let surplus: Vec<_> = there.filter(|slice| !wanted.contains_key(&key(slice.as_ref()))).cloned().collect();
        for slice in surplus {
            let of = key(slice.as_ref());
            if !self.troubles.hold(&of) {
                let done = self.delete(&slice).await;
                self.troubles.after("endpoints", &of, done);
            }
        }
        for (of, slice) in wanted {
            if !self.troubles.hold(&of) {
                let done = self.put(slice).await;
                self.troubles.after("endpoints", &of, done);
            }
        }
    }

    async fn delete(&mut self, slice: &EndpointSlice) -> kube::Result<()> {
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), &slice.namespace().unwrap_or_default());
        match api.delete(&slice.name_any(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => (),
            other => drop(other?),
        }
        self.slices.deleted(slice);
        Ok(())
    }

    async fn put(&mut self, slice: EndpointSlice) -> kube::Result<()> {
        let (namespace, name) = key(&slice);
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), &namespace);
        let there = self.slices.get(&namespace, &name).filter(|there| there.metadata.deletion_timestamp.is_none());
        let written = match there {
            Some(there) if says_the_same(there, &slice) => return Ok(()),
            Some(_) => {
                let metadata =
                    json!({"labels": slice.metadata.labels, "ownerReferences": slice.metadata.owner_references});
                let patch = json!({"metadata": metadata, "endpoints": slice.endpoints, "ports": slice.ports});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await
            }
            None => api.create(&PostParams::default(), &slice).await,
        };
        match written {
            Ok(written) => self.slices.wrote(written),
            // The namespace ends, and everything in it.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.code == 403 => (),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Pods by namespace, label and value. Of the many pods of a namespace a Service means few, and all Services are asked after every
/// piece of news.
struct ByLabel<'a>(BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Pod>>);

impl<'a> ByLabel<'a> {
    fn of(pods: impl Iterator<Item = &'a Pod>) -> Self {
        let mut all = BTreeMap::<_, Vec<&Pod>>::new();
        for pod in pods {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            for (label, value) in pod.labels() {
                all.entry((namespace, label.as_str(), value.as_str())).or_default().push(pod);
            }
        }
        Self(all)
    }

    /// All that a Service means, and perhaps others: those with the rarest label of its selector.
    fn perhaps_meant_by<'s>(&'s self, service: &'s Service) -> &'s [&'a Pod] {
        let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
        let selector = service.spec.iter().flat_map(|spec| spec.selector.iter().flatten());
        let with_each = selector.map(|(label, value)| self.0.get(&(namespace, label.as_str(), value.as_str())));
        with_each.map(|found| found.map_or(&[][..], Vec::as_slice)).min_by_key(|found| found.len()).unwrap_or_default()
    }
}

fn says_the_same(there: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let owner = |slice: &EndpointSlice| slice.owner_references().first().map(|owner| owner.uid.clone());
    there.endpoints == wanted.endpoints
        && there.ports == wanted.ports
        && there.labels() == wanted.labels()
        && owner(there) == owner(wanted)
}

/// The slices of a Service: one for each pod that its selector means and that runs something. Nothing for a Service
/// without a selector: somebody else looks after it.
pub fn slices<'a>(
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
    zones: &BTreeMap<String, String>,
) -> Vec<EndpointSlice> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let selector = spec.selector.as_ref().filter(|selector| !selector.is_empty());
    let Some(selector) = selector.filter(|_| service.metadata.deletion_timestamp.is_none()) else { return Vec::new() };
    let selected = pods.filter(|pod| selector.iter().all(|(label, value)| pod.labels().get(label) == Some(value)));
    let slices = selected.filter(|pod| !pods::has_ended(pod)).filter_map(|pod| slice(service, pod, zones));
    slices.collect()
}

fn slice(service: &Service, pod: &Pod, zones: &BTreeMap<String, String>) -> Option<EndpointSlice> {
    let spec = service.spec.as_ref()?;
    let real = pods::ports(pod)?;
    let wanted = spec.ports.as_deref().unwrap_or_default();
    let ports = wanted.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(i32::from(*real.get(&target(port, pod)?)?)),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    let ports: Vec<EndpointPort> = ports.collect();
    if ports.is_empty() && !wanted.is_empty() {
        return None;
    }
    let mut labels: BTreeMap<String, String> = service.labels().clone();
    labels.insert(SERVICE.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    if spec.cluster_ip.as_deref() == Some("None") {
        labels.insert("service.kubernetes.io/headless".to_owned(), String::new());
    }
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Service".into(),
        name: service.name_any(),
        uid: service.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let name = format!("{}-{}", service.name_any(), pod.name_any());
    let short = || format!("{}-{}", service.name_any(), pod.uid().unwrap_or_default());
    let metadata = ObjectMeta {
        name: Some(if name.len() > LONGEST_NAME { short() } else { name }),
        namespace: service.namespace(),
        labels: Some(labels),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let endpoints = vec![endpoint(service, pod, zones)];
    Some(EndpointSlice { metadata, address_type: "IPv4".into(), endpoints, ports: Some(ports) })
}

fn endpoint(service: &Service, pod: &Pod, zones: &BTreeMap<String, String>) -> Endpoint {
    let always = service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or_default();
    let (serving, terminating) = (pods::is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let spec = pod.spec.as_ref();
    let named = spec.and_then(|spec| spec.subdomain.as_deref()) == service.metadata.name.as_deref();
    let node_name = spec.and_then(|spec| spec.node_name.clone());
    let target = ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.namespace(),
        name: pod.metadata.name.clone(),
        uid: pod.uid(),
        ..ObjectReference::default()
    };
    Endpoint {
        addresses: vec![Ipv4Addr::LOCALHOST.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(always || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: spec.and_then(|spec| spec.hostname.clone()).filter(|_| named),
        zone: node_name.as_ref().and_then(|node| zones.get(node)).cloned(),
        node_name,
        target_ref: Some(target),
        ..Endpoint::default()
    }
}

/// The container's port that a port of a Service leads to.
fn target(port: &ServicePort, pod: &Pod) -> Option<u16> {
    let number = |port: i32| u16::try_from(port).ok();
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => number(port.port),
        Some(IntOrString::Int(target)) => number(*target),
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            number(ports.find(|port| port.name.as_ref() == Some(name))?.container_port)
        }
    }
}

/// Where each port of a Service is really served, by those that are ready.
fn addresses(service: &Service, slices: &[EndpointSlice]) -> BTreeMap<u16, Vec<SocketAddr>> {
    let ready = |slice: &&EndpointSlice| {
        let mut conditions = slice.endpoints.iter().filter_map(|endpoint| endpoint.conditions.as_ref());
        conditions.all(|conditions| conditions.ready.unwrap_or_default())
    };
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let found = ports.filter_map(|port| {
        let name = port.name.clone().unwrap_or_default();
        let real = slices.iter().filter(ready).filter_map(|slice| {
            let mut ports = slice.ports.iter().flatten();
            let found = ports.find(|found| found.name.as_ref() == Some(&name))?;
            Some(SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(found.port?).ok()?)))
        });
        Some((u16::try_from(port.port).ok()?, real.collect()))
    });
    found.collect()
}

#[cfg(test)]
#[path = "endpoints_tests.rs"]
mod tests;
