//! Reads everything that a decision may depend on: the resource itself anew, what is around it as far as it matters.

use std::collections::BTreeMap;

use evenkeel_api::{Kafka, KafkaRebalance, conditions, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::runtime::reflector::Store;
use serde::de::DeserializeOwned;

use super::access::{self, Access};
use super::error::Error;
use crate::rebalance::{Cluster, FoundConfigMap, FoundKafka, Heard, Observation, Other, Template};
use crate::seams::{ClusterRef, Context};

/// What was seen, and what is needed to act on it.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub seen: Observation,
    /// How the engine is reached. None: it cannot be, and `seen` says why.
    pub access: Option<(ClusterRef, Access)>,
    pub versions: Versions,
}

/// What tells one sight from another without comparing all of it. Two that are equal lead to the same decision, but
/// for the time and for what the engine says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub resource: Option<String>,
    pub config_map: Option<String>,
    template: Option<String>,
    secrets: [Option<String>; 2],
    kafka: Option<FoundKafka>,
    others: Vec<Other>,
    namespace_terminating: bool,
}

/// Looks at a KafkaRebalance. None: it is gone.
pub(super) async fn observe(
    context: &Context,
    rebalances: &Store<KafkaRebalance>,
    namespace: &str,
    name: &str,
) -> Result<Option<Sight>, Error> {
    let api = Api::<KafkaRebalance>::namespaced(context.client.clone(), namespace);
    // Never from a cache: what was written a moment ago decides about what is sent next.
    let Some(resource) = api.get_opt(name).await.map_err(Error::reading("the KafkaRebalance"))? else {
        return Ok(None);
    };
    let template_name = Template::name(&resource.spec);
    let (around, config_map, template, namespace_terminating) = futures::try_join!(
        surroundings(context, namespace, &resource),
        get::<ConfigMap>(context, namespace, Some(name), "the ConfigMap"),
        get::<KafkaRebalance>(context, namespace, template_name, "the template"),
        terminating(context, namespace, &resource),
    )?;
    let Surroundings { kafka, access, secrets } = around;
    // These may be a moment old. Whoever is not seen yet is met at the engine, which runs one at a time.
    let others = rebalances.state();
    let others = Other::all(&resource, others.iter().map(AsRef::as_ref));
    let versions = Versions {
        resource: resource.metadata.resource_version.clone(),
        config_map: config_map.as_ref().and_then(|it| it.metadata.resource_version.clone()),
        template: template.as_ref().and_then(|it| it.metadata.resource_version.clone()),
        secrets,
        kafka: Some(kafka.clone()),
        others: others.clone(),
        namespace_terminating,
    };
    let seen = Observation {
        template: Template::of(&resource.spec, template.as_ref()),
        config_map: FoundConfigMap::of(&resource, config_map.as_ref()),
        resource,
        namespace_terminating,
        kafka,
        others,
        heard: Heard::default(),
        now: context.clock.now(),
    };
    Ok(Some(Sight { seen, access, versions }))
}

async fn get<K>(context: &Context, namespace: &str, name: Option<&str>, what: &'static str) -> Result<Option<K>, Error>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let Some(name) = name else { return Ok(None) };
    let api = Api::<K>::namespaced(context.client.clone(), namespace);
    api.get_opt(name).await.map_err(Error::reading(what))
}

/// Whether the namespace is being deleted: asked only where it matters, on the way out. An operator that may not read
/// namespaces takes them for lasting.
async fn terminating(context: &Context, namespace: &str, resource: &KafkaRebalance) -> Result<bool, Error> {
    if resource.metadata.deletion_timestamp.is_none() {
        return Ok(false);
    }
    match Api::<Namespace>::all(context.client.clone()).get_opt(namespace).await {
        Ok(found) => Ok(found.is_none_or(|it| it.metadata.deletion_timestamp.is_some())),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(false),
        Err(source) => Err(Error::Read { what: "the namespace", source }),
    }
}

struct Surroundings {
    kafka: FoundKafka,
    access: Option<(ClusterRef, Access)>,
    secrets: [Option<String>; 2],
}

async fn surroundings(context: &Context, namespace: &str, resource: &KafkaRebalance) -> Result<Surroundings, Error> {
    let alone = |kafka| Surroundings { kafka, access: None, secrets: [None, None] };
    let name = resource.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER));
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(alone(FoundKafka::Unnamed)) };
    let Some(kafka) = get::<Kafka>(context, namespace, Some(name), "the Kafka").await? else {
        return Ok(alone(FoundKafka::Missing { name: name.clone() }));
    };
    if !is_selected(context.settings.selector.as_deref(), kafka.metadata.labels.as_ref()) {
        return Ok(alone(FoundKafka::NotSelected));
    }
    let cluster = |engine| Cluster { name: name.clone(), ready: is_ready(&kafka), engine };
    let Some(spec) = &kafka.spec.cruise_control else { return Ok(alone(FoundKafka::There(cluster(None)))) };
    let (api_name, ca_name) = (access::api_secret(name), access::ca_secret(name));
    let (api, ca) = futures::try_join!(
        get::<Secret>(context, namespace, Some(&api_name), "the Secret with the engine's passwords"),
        get::<Secret>(context, namespace, Some(&ca_name), "the Secret with the cluster's authority"),
    )?;
    let (engine, access) = access::read(name, spec, api.as_ref(), ca.as_ref());
    let version = |secret: Option<Secret>| secret.and_then(|it| it.metadata.resource_version);
    Ok(Surroundings {
        kafka: FoundKafka::There(cluster(Some(engine))),
        access: access.map(|access| (ClusterRef::new(namespace, name), access)),
        secrets: [version(api), version(ca)],
    })
}

/// Whether the first condition, which is the state, says so.
fn is_ready(kafka: &Kafka) -> bool {
    let first = kafka.status.as_ref().and_then(|status| status.conditions.first());
    first.is_some_and(|condition| condition.type_ == conditions::READY && condition.status == "True")
}

/// Whether a Kafka with these labels is this operator's, as `STRIMZI_CUSTOM_RESOURCE_SELECTOR` says: pairs of name and
/// value, all of which it must have.
fn is_selected(selector: Option<&str>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let pairs = selector.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs.into_iter().all(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.trim_start_matches('=').trim();
        labels.and_then(|labels| labels.get(name.trim())).is_some_and(|found| found == value)
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_api::kafka::KafkaStatus;
    use evenkeel_api::{Condition, Reason};

    use super::*;

    #[test]
    fn a_kafka_is_ready_if_its_state_says_so() {
        let mut kafka = Kafka::new("c", Default::default());
        assert!(!is_ready(&kafka));
        let warning = || Condition::warning(Reason::UnknownFields, "x");
        for (conditions, ready) in [
            (vec![Condition::state("Ready"), warning()], true),
            (vec![Condition { status: "False".into(), ..Condition::state("Ready") }], false),
            (vec![Condition::state("NotReady"), Condition::state("Ready")], false),
            (vec![], false),
        ] {
            kafka.status = Some(KafkaStatus { conditions, ..Default::default() });
            assert_eq!(is_ready(&kafka), ready, "{kafka:?}");
        }
    }

    #[test]
    fn a_selector_wants_all_of_its_labels() {
        let labels: BTreeMap<String, String> =
            [("team", "a"), ("tier", "1")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (selector, selected) in [
            (None, true),
            (Some(""), true),
            (Some("team=a"), true),
            (Some("team==a, tier=1"), true),
            (Some("team=b"), false),
            (Some("team=a,missing=x"), false),
        ] {
            assert_eq!(is_selected(selector, Some(&labels)), selected, "{selector:?}");
        }
        assert!(is_selected(None, None) && !is_selected(Some("team=a"), None));
    }
}
