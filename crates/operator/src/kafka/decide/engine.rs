//! The engine: its objects, and how it stands.

use evenkeel_api::{Reason, rebalance::RebalanceState};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Resource, core::ApiResource};

use super::{
    super::{
        desired::Desired,
        engine::{API_USERS, Facts, Wanted, api_secret, capacities, objects, properties, watched},
        model::Model,
        problem::{Problem, Remark},
        seen::{FurtherUsers, Seen},
    },
    Deed, Given, automatic,
    certificates::Issued,
    secret,
};
use crate::auto_rebalance::{Engine, sort_rebalances};

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

/// The KafkaRebalances of the cluster that move data.
fn running(seen: &Seen) -> Vec<String> {
    let (generated, manual) = sort_rebalances(&seen.rebalances, seen.cluster());
    let generated = generated.into_iter().map(|it| (it.name, it.state));
    let all = generated.chain(manual.into_iter().map(|it| (it.name, it.state)));
    all.filter(|(_, state)| *state == RebalanceState::Rebalancing)
        .map(|(name, _)| format!("KafkaRebalance {name}"))
        .collect()
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
