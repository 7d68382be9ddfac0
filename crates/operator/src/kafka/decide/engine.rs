//! The engine: its objects, and how it stands.

use evenkeel_api::{Condition, KafkaRebalance, Reason, conditions, labels, rebalance::RebalanceState};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Resource, ResourceExt, core::ApiResource};

use super::{
    super::{
        desired::Desired,
        engine::{API_USERS, Facts, Wanted, api_secret, capacities, objects, properties, watched},
        model::Model,
        problem::{Problem, Remark, Subject},
        seen::{FurtherUsers, Missing, Seen},
    },
    Deed, Given, automatic,
    certificates::Issued,
    secret,
    status::{NO_ENGINE, TIMEOUT, missing_since, patience},
};
use crate::{
    auto_rebalance::{Engine, Generated},
    pod_set::decide::has_ended,
};

/// What is to be done for the engine.
#[derive(Debug)]
pub(super) struct EnginePart {
    /// How it stands.
    pub(super) state: Engine,
    pub(super) deeds: Vec<Deed>,
    pub(super) remarks: Vec<Remark>,
    /// The goals that it watches. None: there is none that could.
    pub(super) watched: Option<Vec<String>>,
}

/// What is to be done for the engine.
pub(super) fn engine(
    seen: &Seen,
    model: &Model,
    issued: &Issued,
    given: Given<'_>,
) -> Result<EnginePart, Vec<Problem>> {
    match &model.engine {
        Some(wanted) => there(seen, model, wanted, issued, given),
        None => Ok(unwanted(seen, model)),
    }
}

/// An engine that is no longer wanted. It stays until what it carries out has ended: whoever took it away in the midst would
/// leave throttles behind in Kafka, and a plan that the next one would carry on. One that does not serve ends nothing.
fn unwanted(seen: &Seen, model: &Model) -> EnginePart {
    let state = automatic::engine(seen, &model.names.engine(), true);
    let running = running(seen);
    if matches!(state, Engine::Current { .. }) && !running.is_empty() {
        let text = format!("Cruise Control goes when {} has ended, or was told to stop", running.join(", "));
        let remarks = vec![Remark::of_kafka(Reason::AutoRebalanceWaiting, text)];
        return EnginePart { state, deeds: Vec::new(), remarks, watched: None };
    }
    EnginePart { state: Engine::Absent, deeds: gone(seen, model), remarks: Vec::new(), watched: None }
}

/// The KafkaRebalances that move data of the cluster: also while they are paused, and where their label says another by now.
fn running(seen: &Seen) -> Vec<String> {
    let cluster = seen.cluster();
    let runs_here = |it: &&KafkaRebalance| {
        let config_map = seen.live.read::<ConfigMap>("ConfigMap", &it.name_any());
        let runs_in = crate::rebalance::runs_in_kafka(it, config_map.as_ref());
        let is_generated = || Generated::read(it, cluster).is_some();
        runs_in.is_some_and(|found| found.as_deref().map_or_else(is_generated, |found| found == cluster))
    };
    let told = |it: &KafkaRebalance| match it.state() {
        RebalanceState::ReconciliationPaused => format!("KafkaRebalance {} (paused)", it.name_any()),
        _ => format!("KafkaRebalance {}", it.name_any()),
    };
    seen.rebalances.iter().filter(runs_here).map(told).collect()
}

fn there(
    seen: &Seen,
    model: &Model,
    wanted: &Wanted,
    issued: &Issued,
    given: Given<'_>,
) -> Result<EnginePart, Vec<Problem>> {
    let capacities = capacities(model, wanted)?;
    let existing = secret(seen, &model.names.engine_api());
    let api = api_secret(existing.as_ref(), &seen.further_users, given.random)?;
    let mut remarks = capacities.remarks.clone();
    if let FurtherUsers::Missing { secret, key } = &seen.further_users {
        let text = format!(
            "{API_USERS}: there is no Secret {secret} with the key {key}: until there is, nobody becomes a user, and nobody \
             ceases to be one"
        );
        remarks.push(Remark::of_kafka(Reason::InvalidResourceException, text));
    }
    let watched = Some(watched(&properties(model, wanted, &capacities)));
    let facts = Facts {
        capacities,
        api,
        certificate: issued.engine.clone(),
        cluster_ca: (issued.cluster.cert_generation.clone(), issued.cluster.key_generation.clone()),
    };
    let made = objects(model, wanted, &facts);
    let mut all = vec![Desired::new(&made.network_policy), Desired::new(&made.service_account)];
    if let Some((role, binding)) = &made.role {
        all.extend([Desired::new(role), Desired::new(binding)]);
    }
    all.extend(made.violation_map.as_ref().map(Desired::once));
    all.extend([Desired::new(&made.config_map), Desired::new(&made.api_secret), Desired::new(&made.service)]);
    let deployment = Desired::new(&made.deployment);
    let as_wanted = deployment.was_applied(&seen.live);
    all.extend([Desired::new(&made.disruption_budget), deployment]);
    let mut deeds: Vec<Deed> =
        all.into_iter().filter(|desired| desired.is_missing(&seen.live)).map(Deed::applying).collect();
    if made.role.is_none() {
        deeds.extend(absent::<RoleBinding>(seen, &model.names.engine()));
        deeds.extend(absent::<Role>(seen, &model.names.engine()));
    }
    Ok(EnginePart { state: automatic::engine(seen, &model.names.engine(), as_wanted), deeds, remarks, watched })
}

/// What is said when an engine that is wanted has not been up for too long: without it nothing is rebalanced, and nothing else
/// tells of it but its own pod.
pub(super) fn late(seen: &Seen, given: Given<'_>, model: &Model, is_rolling: bool) -> Option<Remark> {
    // While a cluster is being made, its engine has nobody to speak with.
    let was_complete = seen.kafka.status.as_ref()?.operator_last_successful_version.is_some();
    let (name, patience) = (model.names.engine(), patience(given));
    let away = seen.now.duration_since(missing_since(seen, &Missing::Engine));
    (is_rolling && was_complete && away > patience).then(|| {
        let text = format!(
            "{NO_ENGINE} for more than {} minutes: {}. Until it is, nothing is rebalanced. Look at Deployment {name}, and at \
             its pod and its log",
            patience.as_mins(),
            standstill(seen, &name)
        );
        let condition =
            Condition { reason: Some(TIMEOUT.to_owned()), message: Some(text), ..Condition::state(conditions::WARNING) };
        Remark { subject: Subject::Kafka, condition }
    })
}

/// What keeps it, in words that stay the same for as long as it does.
fn standstill(seen: &Seen, name: &str) -> String {
    let is_engine = |pod: &&Pod| pod.labels().get(labels::NAME).is_some_and(|of| of == name) && !has_ended(pod);
    let pods: Vec<&Pod> = seen.pods.iter().filter(is_engine).collect();
    let containers =
        || pods.iter().flat_map(|pod| pod.status.iter()).flat_map(|status| status.container_statuses.iter().flatten());
    let waits = || containers().find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone());
    let is_placed = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    if pods.is_empty() {
        "it has no pod".to_owned()
    } else if containers().any(|container| container.restart_count > 0) {
        "its container does not stay up".to_owned()
    } else if !pods.iter().any(is_placed) {
        "its pod finds no node".to_owned()
    } else {
        waits().map_or_else(|| "its pod is not ready".to_owned(), |why| format!("its container waits ({why})"))
    }
}

/// Everything that was there for an engine which is no longer wanted.
fn gone(seen: &Seen, model: &Model) -> Vec<Deed> {
    let names = &model.names;
    let engine = names.engine();
    [
        absent::<Deployment>(seen, &engine),
        absent::<Service>(seen, &engine),
        absent::<PodDisruptionBudget>(seen, &engine),
        absent::<RoleBinding>(seen, &engine),
        absent::<Role>(seen, &engine),
        absent::<ServiceAccount>(seen, &engine),
        absent::<NetworkPolicy>(seen, &names.engine_network_policy()),
        absent::<ConfigMap>(seen, &names.engine_config()),
        absent::<Secret>(seen, &names.engine_api()),
        absent::<Secret>(seen, &names.engine_certs()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The end of an object, if it is there.
pub(super) fn absent<K: Resource<DynamicType = ()>>(seen: &Seen, name: &str) -> Option<Deed> {
    let resource = ApiResource::erase::<K>(&());
    let there = seen.live.value(&resource.kind, name)?;
    let is_going = there.pointer("/metadata/deletionTimestamp").is_some();
    let uid = there.pointer("/metadata/uid").and_then(|uid| Some(uid.as_str()?.to_owned()));
    (!is_going).then(|| Deed::Delete { resource, name: name.to_owned(), uid })
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{Kafka, KafkaRebalanceStatus};
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::{super::super::seen::Live, *};
    use crate::kafka::seen::Metadata;

    fn rebalance(name: &str, label: Option<&str>, states: &[&str]) -> KafkaRebalance {
        let mut made = KafkaRebalance::new(name, Default::default());
        made.metadata.uid = Some(format!("uid-{name}"));
        made.metadata.labels = label.map(|label| [(labels::CLUSTER.to_owned(), label.to_owned())].into());
        let conditions = states.iter().map(|state| Condition::state(*state)).collect();
        made.status = Some(KafkaRebalanceStatus { conditions, ..Default::default() });
        made
    }

    /// A ConfigMap of a rebalance, which is labelled with the Kafka `c`, and owned by this uid.
    fn config_map(name: &str, owner: &str) -> DynamicObject {
        let owner = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance", "name": name, "uid": owner});
        let metadata = json!({"name": name, "labels": {"strimzi.io/cluster": "c"}, "ownerReferences": [owner]});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
    }

    #[test]
    fn an_engine_stays_for_runs_that_nobody_looks_at_or_that_are_labelled_otherwise() {
        let mut live = Live::default();
        for (name, owner) in [("moved", "uid-moved"), ("bare", "uid-bare"), ("namesake", "uid-of-another")] {
            live.take(config_map(name, owner));
        }
        let mut template = rebalance("template", Some("c"), &["Rebalancing"]);
        template.metadata.annotations = Some([("strimzi.io/rebalance-template".to_owned(), "true".to_owned())].into());
        let seen = Seen {
            now: Default::default(),
            read_at: Default::default(),
            kafka: Kafka::new("c", Default::default()),
            node_pools: vec![],
            pod_sets: vec![],
            pods: vec![],
            live,
            rebalances: vec![
                rebalance("plain", Some("c"), &["Rebalancing"]),
                rebalance("held", Some("c"), &["ReconciliationPaused", "Rebalancing"]),
                rebalance("moved", Some("other"), &["Rebalancing"]),
                rebalance("bare", None, &["Rebalancing"]),
                rebalance("namesake", Some("other"), &["Rebalancing"]),
                rebalance("nobodys", None, &["Rebalancing"]),
                rebalance("done", Some("c"), &["Ready"]),
                template,
            ],
            further_users: Default::default(),
            metadata: Metadata::default(),
            engine: Default::default(),
            empty_since: Default::default(),
            missing_since: Default::default(),
            quiet_since: None,
            refused: Default::default(),
            struck_off: Default::default(),
        };
        let running = running(&seen).join(", ");
        assert_eq!(
            running,
            "KafkaRebalance plain, KafkaRebalance held (paused), KafkaRebalance moved, KafkaRebalance bare"
        );
    }
}
