//! The pod of a node.

use std::collections::BTreeMap;

use evenkeel_api::{
    annotations, labels,
    workload::{JvmOptions, Resources},
};
use k8s_openapi::{
    api::core::v1::{
        Affinity, ConfigMapProjection, ConfigMapVolumeSource, Container, ContainerPort, DownwardAPIProjection,
        DownwardAPIVolumeFile, EmptyDirVolumeSource, EnvVar, EnvVarSource, KeyToPath, NodeAffinity, NodeSelector,
        NodeSelectorRequirement, NodeSelectorTerm, ObjectFieldSelector, PersistentVolumeClaimVolumeSource, Pod,
        PodAffinityTerm, PodAntiAffinity, PodSpec, Probe, ProjectedVolumeSource, ResourceRequirements,
        SecretVolumeSource, ServiceAccountTokenProjection, TCPSocketAction, Volume, VolumeMount, VolumeProjection,
        WeightedPodAffinityTerm,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{
    Component, Facts, METADATA_VERSION, confined, labels_of,
    policies::matching,
    selector,
    services::{CONTROL_PLANE_PORT, REPLICATION_PORT},
};
use crate::kafka::{
    config::{CONFIG_PATH, RACK, SERVER_CONFIG},
    listeners::{CONTROL_PLANE, REPLICATION},
    model::{Model, Node},
    pools::Pool,
    quantity,
    storage::DiskKind,
    template::PoolTemplate,
};

/// The key of the cluster's id in a node's ConfigMap.
pub const CLUSTER_ID: &str = "cluster.id";
const GRACE_SECONDS: i64 = 30;
/// Largest heap that is chosen without being asked for: beyond it pauses grow and the page cache shrinks.
const LARGEST_HEAP: u128 = 5 << 30;
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn pod(model: &Model, node: &Node, facts: &Facts) -> Pod {
    let (pool, template) = (&model.pools[&node.pool], &model.templates[&node.pool]);
    let volumes = Volumes::of(model, node, pool);
    let mut spec = PodSpec {
        hostname: Some(node.pod.clone()),
        subdomain: Some(model.names.brokers_service()),
        service_account_name: Some(model.names.kafka()),
        automount_service_account_token: Some(false),
        restart_policy: Some("Always".to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: Some(confined::kafka_pod(model.has_official_image())),
        affinity: rack_affinity(model, node),
        init_containers: rack_container(model, node, template).map(|container| vec![container]),
        containers: vec![container(model, node, pool, template, volumes.mounts)],
        volumes: Some(volumes.volumes),
        ..PodSpec::default()
    };
    template.pod.apply(&mut spec);
    Pod { metadata: metadata(model, node, template, facts), spec: Some(spec), status: None }
}

fn metadata(model: &Model, node: &Node, template: &PoolTemplate, facts: &Facts) -> ObjectMeta {
    let own = facts.nodes.get(&node.id).cloned().unwrap_or_default();
    let mut all = labels_of(&model.names, Component::Kafka);
    all.extend(
        [
            (labels::POOL_NAME, node.pool.clone()),
            (labels::POD_NAME, node.pod.clone()),
            (labels::CONTROLLER, labels::CONTROLLER_POD_SET.to_owned()),
            (labels::CONTROLLER_NAME, model.names.pod_set(&node.pool)),
            (labels::BROKER_ROLE, node.roles.broker.to_string()),
            (labels::CONTROLLER_ROLE, node.roles.controller.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let annotations = [
        (annotations::CONFIGURATION_HASH, own.configuration),
        (annotations::SERVER_CERT_HASH, own.certificate),
        (annotations::CLUSTER_CA_CERT_GENERATION, facts.cluster_ca.0.clone()),
        (annotations::CLUSTER_CA_KEY_GENERATION, facts.cluster_ca.1.clone()),
        (annotations::CLIENTS_CA_CERT_GENERATION, facts.clients_ca.clone()),
    ];
    let mut metadata = ObjectMeta {
        name: Some(node.pod.clone()),
        namespace: Some(model.names.namespace.clone()),
        labels: Some(all),
        annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ObjectMeta::default()
    };
    template.pod.metadata.add_to(&mut metadata);
    metadata
}

fn container(
    model: &Model,
    node: &Node,
    pool: &Pool,
    template: &PoolTemplate,
    volume_mounts: Vec<VolumeMount>,
) -> Container {
    let mut ports = Vec::new();
    if node.roles.controller {
        ports.push(container_port(CONTROL_PLANE_PORT, CONTROL_PLANE));
    }
    if node.roles.broker {
        ports.push(container_port(REPLICATION_PORT, REPLICATION));
        ports.extend(model.listeners.iter().map(|listener| container_port(&listener.port_name(), listener.port)));
    }
    let answers = if node.roles.broker { REPLICATION } else { CONTROL_PLANE };
    Container {
        name: "kafka".to_owned(),
        image: Some(model.image.clone()),
        command: Some(vec!["/bin/bash".to_owned(), "-c".to_owned(), script()]),
        env: Some(template.kafka_container.variables(variables(pool))),
        ports: Some(ports),
        resources: pool.resources.as_ref().map(requirements),
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::Int(i32::from(answers)), host: None }),
            initial_delay_seconds: Some(5),
            timeout_seconds: Some(5),
            ..Probe::default()
        }),
        volume_mounts: Some(volume_mounts),
        security_context: Some(template.kafka_container.security_context.clone().unwrap_or_else(confined::container)),
        ..Container::default()
    }
}

/// What a container is given, written as the API server would.
pub(in crate::kafka) fn requirements(resources: &Resources) -> ResourceRequirements {
    let mut all = resources.to_requirements();
    for amount in [&mut all.requests, &mut all.limits].into_iter().flatten().flat_map(BTreeMap::values_mut) {
        amount.0 = quantity::canonical(&amount.0);
    }
    all
}

pub(in crate::kafka) fn container_port(name: &str, port: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// Formats disks that are not yet, then becomes Kafka.
fn script() -> String {
    format!(
        "set -e\n\
         config={CONFIG_PATH}\n\
         release=$(cat \"$config/{METADATA_VERSION}\")\n\
         /opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id \"$(cat \"$config/{CLUSTER_ID}\")\" \
         ${{release:+--release-version \"$release\"}} --config \"$config/{SERVER_CONFIG}\"\n\
         exec /opt/kafka/bin/kafka-server-start.sh \"$config/{SERVER_CONFIG}\"\n"
    )
}

fn variables(pool: &Pool) -> Vec<EnvVar> {
    let options = pool.jvm_options.clone().unwrap_or_default();
    let memory = pool.resources.as_ref().and_then(|resources| {
        let side = |side: &Option<BTreeMap<String, Quantity>>| side.as_ref()?.get("memory").cloned();
        quantity::bytes(&side(&resources.limits).or_else(|| side(&resources.requests))?.0)
    });
    let mut all = vec![
        ("KAFKA_LOG4J_OPTS", format!("-Dlog4j2.configurationFile={CONFIG_PATH}/log4j2.properties")),
        // Kafka's script logs every garbage collection unless it is told otherwise.
        (
            "EXTRA_ARGS",
            match options.gc_logging_enabled {
                Some(true) => "-name kafkaServer -loggc".to_owned(),
                _ => "-name kafkaServer".to_owned(),
            },
        ),
    ];
    if let Some(heap) = container_heap(&options, memory) {
        all.push(("KAFKA_HEAP_OPTS", heap));
    }
    let flags: Vec<String> = options.xx.iter().flatten().map(|(name, value)| xx(name, value)).collect();
    if !flags.is_empty() {
        all.push(("KAFKA_JVM_PERFORMANCE_OPTS", flags.join(" ")));
    }
    let properties = options.java_system_properties.iter().flatten();
    let properties: Vec<String> = properties
        .filter_map(|property| Some(format!("-D{}={}", property.name.as_ref()?, property.value.as_deref()?)))
        .collect();
    if !properties.is_empty() {
        all.push(("KAFKA_OPTS", properties.join(" ")));
    }
    all.into_iter().map(|(name, value)| variable(name, value)).collect()
}

fn xx(name: &str, value: &str) -> String {
    match value {
        "true" => format!("-XX:+{name}"),
        "false" => format!("-XX:-{name}"),
        other => format!("-XX:{name}={other}"),
    }
}

/// The heap: as the user says, else half of the memory, for the other half is Kafka's page cache. None where neither
/// is known.
pub fn container_heap(options: &JvmOptions, memory: Option<u128>) -> Option<String> {
    let own = [
        options.xms.as_ref().map(|size| format!("-Xms{size}")),
        options.xmx.as_ref().map(|size| format!("-Xmx{size}")),
    ];
    let own: Vec<String> = own.into_iter().flatten().collect();
    if !own.is_empty() {
        return Some(own.join(" "));
    }
    let heap = (memory? / 2).min(LARGEST_HEAP);
    Some(format!("-Xms{heap} -Xmx{heap}"))
}

pub(in crate::kafka) fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), value_from: None }
}

/// The container that finds out a node's rack.
pub const RACK_CONTAINER: &str = "rack";

/// Writes the rack into a file before Kafka starts: only there a token is needed, so only there is one.
fn rack_container(model: &Model, node: &Node, template: &PoolTemplate) -> Option<Container> {
    let label = model.rack.as_ref().filter(|_| node.roles.broker)?;
    let (folder, file) = RACK;
    let to = format!("{folder}/{file}");
    let command = ["evenkeel", "rack", "--node", "$(NODE_NAME)", "--label", label, "--to", &to];
    let name = EnvVar {
        name: "NODE_NAME".to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: "spec.nodeName".to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
    };
    Some(Container {
        name: RACK_CONTAINER.to_owned(),
        image: Some(model.settings.own_image.clone()),
        command: Some(command.map(str::to_owned).to_vec()),
        env: Some(template.init_container.variables(vec![name])),
        volume_mounts: Some(vec![mount("rack", folder, false), mount("token", TOKEN_PATH, true)]),
        security_context: Some(
            template.init_container.security_context.clone().unwrap_or_else(confined::own_container),
        ),
        ..Container::default()
    })
}

/// Only machines that say where they stand will do, and the brokers are spread over the places as well as can be. A template
/// that says where pods may run says all of it.
fn rack_affinity(model: &Model, node: &Node) -> Option<Affinity> {
    let label = model.rack.as_ref().filter(|_| node.roles.broker)?;
    let stands_somewhere = NodeSelectorRequirement {
        key: label.clone(),
        operator: "Exists".to_owned(),
        ..NodeSelectorRequirement::default()
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![stands_somewhere]), ..NodeSelectorTerm::default() };
    let apart = PodAffinityTerm {
        topology_key: label.clone(),
        label_selector: Some(matching(selector(&model.names, Component::Kafka))),
        ..PodAffinityTerm::default()
    };
    Some(Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector { node_selector_terms: vec![term] }),
            ..NodeAffinity::default()
        }),
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![WeightedPodAffinityTerm {
                weight: 100,
                pod_affinity_term: apart,
            }]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    })
}

struct Volumes {
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
}

impl Volumes {
    fn of(model: &Model, node: &Node, pool: &Pool) -> Self {
        let mut all = Self { volumes: Vec::new(), mounts: Vec::new() };
        for disk in &pool.disks.disks {
            let volume = Volume { name: pool.disks.volume(disk), ..Volume::default() };
            let volume = match &disk.kind {
                DiskKind::Ephemeral { limit } => Volume { empty_dir: Some(empty_dir(limit.as_ref())), ..volume },
                DiskKind::Claim { .. } => Volume {
                    persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                        claim_name: pool.disks.claim(disk, &node.pod),
                        read_only: None,
                    }),
                    ..volume
                },
            };
            all.add(volume, &pool.disks.mount(disk), false);
        }
        let config = ConfigMapVolumeSource { name: node.pod.clone(), ..ConfigMapVolumeSource::default() };
        all.add(Volume { name: "config".to_owned(), config_map: Some(config), ..Volume::default() }, CONFIG_PATH, true);
        all.add(secret("node-certs", &node.pod), "/opt/kafka/certs/node", true);
        all.add(secret("cluster-ca", &model.names.cluster_ca_cert()), "/opt/kafka/certs/cluster-ca", true);
        all.add(secret("clients-ca", &model.names.clients_ca_cert()), "/opt/kafka/certs/clients-ca", true);
        all.add(
            Volume { name: "tmp".to_owned(), empty_dir: Some(empty_dir(None)), ..Volume::default() },
            "/tmp",
            false,
        );
        if model.rack.is_some() && node.roles.broker {
            let rack = Volume { name: "rack".to_owned(), empty_dir: Some(empty_dir(None)), ..Volume::default() };
            all.add(rack, RACK.0, true);
            all.volumes.push(token());
        }
        all
    }

    fn add(&mut self, volume: Volume, path: &str, read_only: bool) {
        self.mounts.push(mount(&volume.name, path, read_only));
        self.volumes.push(volume);
    }
}

fn empty_dir(limit: Option<&String>) -> EmptyDirVolumeSource {
    EmptyDirVolumeSource { size_limit: limit.map(|limit| Quantity(quantity::canonical(limit))), medium: None }
}

pub(in crate::kafka) fn secret(name: &str, secret: &str) -> Volume {
    let source = SecretVolumeSource { secret_name: Some(secret.to_owned()), ..SecretVolumeSource::default() };
    Volume { name: name.to_owned(), secret: Some(source), ..Volume::default() }
}

pub(in crate::kafka) fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// What Kubernetes would mount by itself, into one container instead of all.
fn token() -> Volume {
    let file = |key: &str, path: &str| KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None };
    let sources = vec![
        VolumeProjection {
            service_account_token: Some(ServiceAccountTokenProjection {
                path: "token".to_owned(),
                expiration_seconds: Some(3_607),
                audience: None,
            }),
            ..VolumeProjection::default()
        },
        VolumeProjection {
            config_map: Some(ConfigMapProjection {
                name: "kube-root-ca.crt".to_owned(),
                items: Some(vec![file("ca.crt", "ca.crt")]),
                optional: None,
            }),
            ..VolumeProjection::default()
        },
        VolumeProjection {
            downward_api: Some(DownwardAPIProjection {
                items: Some(vec![DownwardAPIVolumeFile {
                    path: "namespace".to_owned(),
                    field_ref: Some(ObjectFieldSelector {
                        field_path: "metadata.namespace".to_owned(),
                        api_version: None,
                    }),
                    ..DownwardAPIVolumeFile::default()
                }]),
            }),
            ..VolumeProjection::default()
        },
    ];
    let projected = ProjectedVolumeSource { sources: Some(sources), default_mode: None };
    Volume { name: "token".to_owned(), projected: Some(projected), ..Volume::default() }
}
