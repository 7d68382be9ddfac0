//! What a cluster cannot be. Kubernetes or Kafka would refuse most of it, too, but one by one and half-way through: with the
//! first pod that is restarted for it.

use std::collections::BTreeMap;

use evenkeel_api::{Kafka, workload::Resources};

use super::Node;
use crate::kafka::{
    engine::Wanted,
    metadata_versions::release,
    names::Names,
    pools::{Origin, Pool, Pools},
    problem::Problem,
    properties::Properties,
    quantity,
};

/// The longest name of a host within its domain.
const LONGEST_HOST: usize = 63;

/// Settings that say how many copies there are: with fewer brokers Kafka could not make the topics.
const COPIES: [&str; 4] = [
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
];

/// What Kafka would not start with: metadata of a version that is none, or newer than itself.
pub(super) fn of_version(kafka: &Kafka, version: &str, metadata: &str) -> Option<Problem> {
    let is_newer = |than: &str| release(metadata) > release(than);
    let status = kafka.status.as_ref();
    if status.is_none_or(|status| status.cluster_id.is_none()) {
        let text = match release(metadata) {
            None => format!("`{metadata}` is no metadata version: write one such as `4.1` or `4.1-IV1`"),
            Some(_) if is_newer(version) => format!("`{metadata}` is newer than Kafka {version}: take an older one"),
            Some(_) => return None,
        };
        return Some(Problem::of_kafka("spec.kafka.metadataVersion", text));
    }
    // What runs tells which version its metadata has, and starts with that, whatever we think of it.
    let before = status.and_then(|status| status.kafka_version.as_deref())?;
    (release(version) < release(before) && is_newer(version)).then(|| {
        let text = format!(
            "`{version}` is older than {before}, and than the metadata version {metadata} of the cluster: its nodes would not \
             start"
        );
        Problem::of_kafka("spec.kafka.version", text)
    })
}

/// A label of Kubernetes nodes: a name, perhaps after a domain.
pub(super) fn of_rack(key: &str) -> Option<Problem> {
    let is_word = |word: &str, longest: usize, between: &[char]| {
        let fits = |character: char| character.is_ascii_alphanumeric() || between.contains(&character);
        (1..=longest).contains(&word.len())
            && word.chars().all(fits)
            && !word.starts_with(between)
            && !word.ends_with(between)
    };
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_label = is_word(name, 63, &['-', '_', '.']) && domain.is_none_or(|it| is_word(it, 253, &['-', '.']));
    (!is_label).then(|| {
        let text = format!("`{key}` is no label of Kubernetes nodes: write one such as `topology.kubernetes.io/zone`");
        Problem::of_kafka("spec.kafka.rack.topologyKey", text)
    })
}

/// What in resources is no amount, or more than its limit: the field, and what to say about it.
pub(super) fn of_amounts(resources: Option<&Resources>) -> Vec<(String, String)> {
    let sides = resources.into_iter().flat_map(|all| [("requests", &all.requests), ("limits", &all.limits)]);
    let amounts = sides.flat_map(|(side, amounts)| amounts.iter().flatten().map(move |(name, it)| (side, name, &it.0)));
    let limit = |name: &String| resources?.limits.as_ref()?.get(name);
    let wrong = amounts.filter_map(|(side, name, text)| {
        let at = format!("resources.{side}.{name}");
        let Some(amount) = quantity::milli(text) else {
            return Some((at, format!("`{text}` is no amount: write one such as `500m` or `8Gi`")));
        };
        let limit = limit(name).filter(|limit| quantity::milli(&limit.0).is_some_and(|most| amount > most))?;
        Some((at, format!("`{text}` is more than the limit, which is `{}`", limit.0)))
    });
    wrong.collect()
}

/// What a cluster cannot be called. Names become host names, and Kubernetes has rules for those: what breaks them would be
/// refused one by one, half-way through.
pub(in crate::kafka) fn of_name(names: &Names) -> Option<Problem> {
    let text = if !names.cluster.starts_with(|first: char| first.is_ascii_lowercase()) || names.cluster.contains('.') {
        format!("`{}` must begin with a letter and have no dots: services are named after it", names.cluster)
    } else {
        let services = [names.bootstrap_service(), names.engine()];
        too_long(services.into_iter())?
    };
    Some(Problem::of_kafka("metadata.name", text))
}

fn too_long(hosts: impl Iterator<Item = String>) -> Option<String> {
    let longest = hosts.max_by_key(String::len).filter(|host| host.len() > LONGEST_HOST)?;
    Some(format!("is too long: `{longest}` would have more than {LONGEST_HOST} letters"))
}

/// What pools cannot be called, and the cluster.
pub(super) fn of_names(names: &Names, pools: &Pools, nodes: &BTreeMap<i32, Node>) -> Vec<Problem> {
    if let Some(wrong) = of_name(names) {
        // With such a name those of its pods are wrong, too.
        return vec![wrong];
    }
    let mut problems = Vec::new();
    for Pool { name, .. } in pools.all.values().filter(|pool| pool.origin == Origin::NodePool) {
        let mut wrong = |text: String| problems.push(Problem::of_pool(name, "metadata.name", text));
        if name.contains('.') {
            wrong(format!("`{name}` must have no dots: hosts are named after it"));
        }
        let pods = nodes.values().filter(|node| node.pool == *name).map(|node| node.pod.clone());
        if let Some(text) = too_long(pods.chain([names.pod_set(name)])) {
            wrong(format!("{text}: take a shorter name for the pool, or for the Kafka"));
        }
    }
    problems
}

/// Copies of which there would be more than brokers.
pub(super) fn of_copies(config: &Properties, engine: Option<&Wanted>, brokers: usize) -> Vec<Problem> {
    let metrics = "cruise.control.metrics.topic.replication.factor";
    let reporter = engine.is_some_and(|engine| engine.reporter).then_some(metrics);
    let wrong = COPIES.into_iter().chain(reporter).filter_map(|key| {
        let copies = config.get(key)?.trim().parse::<usize>().ok().filter(|copies| *copies > brokers)?;
        let text =
            format!("{key} is {copies}, and there would be {brokers} brokers: lower it, or ask for more brokers");
        Some(Problem::of_kafka("spec.kafka.config", text))
    });
    wrong.collect()
}

/// Images without a name.
pub(super) fn of_images(kafka: &Kafka) -> Vec<Problem> {
    let of_nodes = kafka.spec.kafka.as_ref().and_then(|nodes| nodes.image.as_ref());
    let of_engine = kafka.spec.cruise_control.as_ref().and_then(|engine| engine.image.as_ref());
    let all = [("spec.kafka.image", of_nodes), ("spec.cruiseControl.image", of_engine)];
    let empty = all.into_iter().filter(|(_, image)| image.is_some_and(|image| image.trim().is_empty()));
    empty.map(|(field, _)| Problem::of_kafka(field, "is empty: name an image, or leave it out")).collect()
}
