//! Reads everything that a decision may depend on: the resource itself anew, what is around it as far as it matters.

use evenkeel_api::kafka::CruiseControlSpec;
use evenkeel_api::{Kafka, KafkaRebalance, conditions};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::runtime::reflector::Store;
use serde::de::DeserializeOwned;

use crate::access::{self, Access};
use crate::another;
use crate::error::Error;
use crate::kafka::names::Names;
use crate::kept;
use crate::namespaces::is_terminating;
use crate::rebalance::observe::{label, perhaps_runs, runs_in};
use crate::rebalance::result;
use crate::rebalance::{Cluster, Engine, FoundConfigMap, FoundKafka, Heard, Observation, Other, Template};
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
#[derive(Clone, Debug, Default, Hash)]
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
    let template_name = Template::to_look_up(&resource.spec);
    let (config_map, template, namespace_terminating) = futures::try_join!(
        get::<ConfigMap>(context, namespace, Some(name), "the ConfigMap"),
        get::<KafkaRebalance>(context, namespace, template_name, "the template"),
        terminating(context, namespace, &resource),
    )?;
    let recorded_cluster = FoundConfigMap::cluster(&resource, config_map.as_ref());
    let Surroundings { kafka, access, secrets } =
        surroundings(context, namespace, &resource, recorded_cluster.as_deref()).await?;
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
        recorded_cluster,
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

/// Whether the namespace is being deleted: asked only where it matters, on the way out.
async fn terminating(context: &Context, namespace: &str, resource: &KafkaRebalance) -> Result<bool, Error> {
    Ok(resource.metadata.deletion_timestamp.is_some() && is_terminating(context, namespace).await?)
}

struct Surroundings {
    kafka: FoundKafka,
    access: Option<(ClusterRef, Access)>,
    secrets: [Option<String>; 2],
}

async fn surroundings(
    context: &Context,
    namespace: &str,
    resource: &KafkaRebalance,
    recorded_cluster: Option<&str>,
) -> Result<Surroundings, Error> {
    let alone = |kafka| Surroundings { kafka, access: None, secrets: [None, None] };
    // A Kafka that is gone has taken its run along.
    let elsewhere =
        get::<Kafka>(context, namespace, runs_in(resource, recorded_cluster), "the Kafka of its run").await?;
    let label = label(resource);
    let kafka = match elsewhere {
        Some(kafka) => Some(kafka),
        None => get::<Kafka>(context, namespace, label, "the Kafka").await?,
    };
    let Some(kafka) = kafka else {
        let missing = |name: &str| FoundKafka::Missing { name: name.to_owned() };
        return Ok(alone(label.map_or(FoundKafka::Unnamed, missing)));
    };
    let names = Names::of(&kafka);
    if !context.settings.selects(&kafka) || another::look(context, namespace, &names.cluster).await?.is_some() {
        return Ok(alone(FoundKafka::NotSelected));
    }
    let cluster = |engine| Cluster { name: names.cluster.clone(), ready: is_ready(&kafka), engine };
    // One that is no longer wanted stays until what it carries out has ended, and is followed until then.
    let leaving = perhaps_runs(resource).then(CruiseControlSpec::default);
    let Some(spec) = kafka.spec.cruise_control.as_ref().or(leaving.as_ref()) else {
        return Ok(alone(FoundKafka::There(cluster(None))));
    };
    let (api_name, ca_name) = (names.engine_api(), names.cluster_ca_cert());
    let (api, ca) = futures::try_join!(
        get::<Secret>(context, namespace, Some(&api_name), "the Secret with the engine's passwords"),
        get::<Secret>(context, namespace, Some(&ca_name), "the Secret with the cluster's authority"),
    )?;
    if kafka.spec.cruise_control.is_none() && api.is_none() {
        return Ok(alone(FoundKafka::There(cluster(None))));
    }
    let access = access::read(&names, spec, api.as_ref(), ca.as_ref());
    let engine = Engine {
        is_ours: kafka.spec.cruise_control.as_ref().map_or_else(|| named_its_proposal(resource), access::is_ours),
        missing_secret: access.as_ref().err().cloned(),
        first_window: access::first_window(spec),
        is_leaving: kafka.spec.cruise_control.is_none(),
    };
    let version = |secret: Option<Secret>| secret.and_then(|it| it.metadata.resource_version);
    Ok(Surroundings {
        kafka: FoundKafka::There(cluster(Some(engine))),
        access: access.ok().map(|access| (ClusterRef::new(namespace, &names.cluster), access)),
        secrets: [version(api), version(ca)],
    })
}

/// Whether the engine that made its proposal is ours, by what it left behind: no other names its proposals. Where nobody says
/// any more whose image it is, that is all there is to know; and who is not ours refuses what it does not know.
fn named_its_proposal(resource: &KafkaRebalance) -> bool {
    let status = resource.status.as_ref();
    result::proposal_id(status.and_then(|status| status.optimization_result.as_ref())).is_some()
}

/// What any rebalance ever uses of its Kafka, in short. Its status is written often, and mostly says nothing that matters here.
pub(super) fn used_of(kafka: &Kafka) -> u64 {
    // A spec always serialises.
    let engine = kafka.spec.cruise_control.as_ref().map(|spec| serde_json::to_string(spec).unwrap_or_default());
    kept::hash(&(&kafka.metadata.labels, is_ready(kafka), engine))
}

/// Whether the first condition, which is the state, says so.
fn is_ready(kafka: &Kafka) -> bool {
    let first = kafka.status.as_ref().and_then(|status| status.conditions.first());
    first.is_some_and(|condition| condition.type_ == conditions::READY && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use evenkeel_api::kafka::KafkaStatus;
    use evenkeel_api::{Condition, Reason};

    use super::*;

    #[test]
    fn of_a_kafka_its_labels_its_engine_and_whether_it_is_ready_are_used() {
        let mut kafka = Kafka::new("c", Default::default());
        let before = used_of(&kafka);
        kafka.status = Some(KafkaStatus { cluster_id: Some("x".into()), ..Default::default() });
        kafka.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
        kafka.metadata.resource_version = Some("2".into());
        assert_eq!(used_of(&kafka), before);
        let mut differs = |change: fn(&mut Kafka)| {
            let before = used_of(&kafka);
            change(&mut kafka);
            assert_ne!(used_of(&kafka), before, "{kafka:?}");
        };
        differs(|kafka| kafka.status.as_mut().unwrap().conditions = vec![Condition::state("Ready")]);
        differs(|kafka| kafka.spec.cruise_control = Some(CruiseControlSpec::default()));
        differs(|kafka| kafka.spec.cruise_control.as_mut().unwrap().image = Some("x".into()));
        differs(|kafka| kafka.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into()));
    }

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
}
