//! All that the objects of a cluster depend on, checked.

mod refusals;

use std::collections::BTreeMap;

use evenkeel_api::{
    Kafka, KafkaNodePool, Reason,
    kafka::{CertificateAuthority, KafkaClusterSpec},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{
    config::{Owner, UserConfig},
    engine::Wanted,
    honoured,
    listeners::{self, Listener},
    metadata_versions::are_same,
    names::Names,
    nodes::Assignment,
    objects::passed_over,
    pools::{Pool, Pools, Roles, Voters, owner},
    problem::{Problem, Remark},
    properties::Properties,
    settings::{Settings, at_least},
    template::{self, KafkaTemplate, PoolTemplate},
};

pub(super) use refusals::of_name;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: i32,
    /// Its pool.
    pub pool: String,
    /// Its pod, ConfigMap and Secret.
    pub pod: String,
    /// What it does.
    pub roles: Roles,
}

/// A cluster as it ought to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// What its objects are called.
    pub names: Names,
    /// What they go with.
    pub owner: OwnerReference,
    /// Its pools by name.
    pub pools: BTreeMap<String, Pool>,
    /// The pools' templates by name.
    pub templates: BTreeMap<String, PoolTemplate>,
    /// The template of what belongs to no pool.
    pub template: KafkaTemplate,
    /// Its nodes by id.
    pub nodes: BTreeMap<i32, Node>,
    /// Who votes: its controllers, also those whose pool is away.
    pub voters: Voters,
    /// Where clients reach it.
    pub listeners: Vec<Listener>,
    /// The user's settings, without those that are the operator's.
    pub user_config: Properties,
    /// Label of Kubernetes nodes whose value is the rack.
    pub rack: Option<String>,
    /// Version of Kafka.
    pub version: String,
    /// Metadata version to format with, if it was named.
    pub metadata_version: Option<String>,
    /// Image of the nodes.
    pub image: String,
    /// The engine, if one is wanted.
    pub engine: Option<Wanted>,
    /// How the cluster's authority is kept.
    pub cluster_ca: CertificateAuthority,
    /// How the clients' authority is kept.
    pub clients_ca: CertificateAuthority,
    /// What the operator was told.
    pub settings: Settings,
    /// What is worth saying: about pools too.
    pub remarks: Vec<Remark>,
}

impl Model {
    /// The cluster with these nodes; all that is wrong with it, if anything is.
    ///
    /// Build it from what the spec asks for first, and only then from what may be done of it: brokers too few for the
    /// replication factor are to be refused before anything is emptied for them.
    pub fn build(
        kafka: &Kafka,
        node_pools: &[KafkaNodePool],
        pools: &Pools,
        assignment: &Assignment,
        settings: &Settings,
    ) -> Result<Self, Vec<Problem>> {
        let names = Names::of(kafka);
        let spec = kafka.spec.kafka.clone().unwrap_or_default();
        let (mut problems, mut remarks) = (Vec::new(), pools.remarks.clone());
        remarks.extend(honoured::remarks(kafka, node_pools, pools, &mut problems));

        let user_config = UserConfig::read(spec.config.as_ref(), Owner::Kafka);
        remarks.extend(user_config.remarks);
        let listeners = listeners::read(spec.listeners.as_deref().unwrap_or_default(), &mut problems, &mut remarks);
        let templates = pools.all.values().map(|pool| {
            let read = template::read(pool.template.as_ref());
            let template = read.map_err(|text| problems.push(pool.problem("template", text)));
            (pool.name.clone(), template.unwrap_or_default().0)
        });
        let templates = templates.collect();
        let template = template::read(spec.template.as_ref()).map(|(template, _)| template).unwrap_or_default();
        for pool in pools.all.values() {
            let wrong = refusals::of_amounts(pool.resources.as_ref());
            problems.extend(wrong.into_iter().map(|(field, text)| pool.problem(&field, text)));
        }
        let of_engine = kafka.spec.cruise_control.as_ref().and_then(|engine| engine.resources.as_ref());
        let at_engine = |(field, text)| Problem::of_kafka(format!("spec.cruiseControl.{field}"), text);
        problems.extend(refusals::of_amounts(of_engine).into_iter().map(at_engine));
        let brokers = assignment.desired_brokers().len() + pools.unlabelled.len();
        let engine = Wanted::read(kafka, settings, &mut problems, &mut remarks);
        problems.extend(refusals::of_copies(&user_config.entries, engine.as_ref(), brokers));

        let version = spec.version.clone().unwrap_or_else(|| settings.kafka_version.clone());
        if !at_least(&version, 4, 0) {
            let text = format!("`{version}` is not supported: take 4.0.0 or a later one");
            problems.push(Problem::of_kafka("spec.kafka.version", text));
        }
        let metadata_version = metadata_version(kafka, spec.metadata_version.clone(), &mut remarks);
        problems.extend(metadata_version.as_ref().and_then(|metadata| refusals::of_version(kafka, &version, metadata)));
        if let Some(rack) = &spec.rack {
            match &rack.topology_key {
                Some(key) => problems.extend(refusals::of_rack(key)),
                None => {
                    let text = "spec.kafka.rack is not honoured: it names no topologyKey, the label of Kubernetes nodes with \
                                their rack";
                    remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
                }
            }
        }
        problems.extend(refusals::of_images(kafka));
        let nodes = assignment.pools.iter().flat_map(|(pool, nodes)| {
            let node = |id: &i32| Node { id: *id, pool: pool.clone(), pod: names.pod(pool, *id), roles: nodes.roles };
            nodes.desired.iter().map(node).map(|node| (node.id, node)).collect::<Vec<_>>()
        });
        let nodes: BTreeMap<i32, Node> = nodes.collect();
        problems.extend(refusals::of_names(&names, pools, &nodes));
        let controllers = nodes.values().filter(|node| node.roles.controller);
        let voters = pools.voters.clone().and(controllers.map(|node| (node.id, node.pool.clone())));
        let mut model = Self {
            nodes,
            voters,
            owner: owner(kafka),
            pools: pools.all.clone(),
            templates,
            template,
            listeners,
            user_config: user_config.entries,
            rack: rack(&spec),
            image: spec.image.clone().unwrap_or_else(|| settings.kafka_image(&version)),
            version,
            metadata_version,
            engine,
            cluster_ca: kafka.spec.cluster_ca.clone().unwrap_or_default(),
            clients_ca: kafka.spec.clients_ca.clone().unwrap_or_default(),
            settings: settings.clone(),
            names,
            remarks,
        };
        model.remarks.extend(passed_over(&model, node_pools));
        problems.sort();
        problems.dedup();
        if problems.is_empty() { Ok(model) } else { Err(problems) }
    }

    /// Whether brokers run Apache's own image.
    pub fn has_official_image(&self) -> bool {
        self.image == Settings::official_image(&self.version)
    }

    /// The brokers.
    pub fn brokers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(|node| node.roles.broker)
    }

    /// The nodes of a pool.
    pub fn nodes_of<'a>(&'a self, pool: &'a str) -> impl Iterator<Item = &'a Node> {
        self.nodes.values().filter(move |node| node.pool == pool)
    }
}

/// The metadata version to format with. A cluster that is made keeps the one that it was made with: nodes that join it later
/// must not be formatted with another, and nobody raises it.
fn metadata_version(kafka: &Kafka, wanted: Option<String>, remarks: &mut Vec<Remark>) -> Option<String> {
    let Some(made) = kafka.status.as_ref().filter(|status| status.cluster_id.is_some()) else { return wanted };
    let kept = made.kafka_metadata_version.clone();
    if let Some(wanted) = wanted.filter(|wanted| !kept.as_ref().is_some_and(|kept| are_same(kept, wanted))) {
        let with = kept.as_deref().unwrap_or("the one of its version of Kafka");
        let text = format!("spec.kafka.metadataVersion {wanted} is not honoured: the cluster was made with {with}");
        remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
    }
    kept
}

fn rack(spec: &KafkaClusterSpec) -> Option<String> {
    spec.rack.as_ref()?.topology_key.clone().filter(|key| !key.is_empty())
}
