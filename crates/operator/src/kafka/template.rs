//! Templates: what users add to the objects that are made for them.
//!
//! A template is read into types that hold what is honoured. What does not come out of them again was not honoured,
//! and is named: so no list of fields can grow old.

use std::collections::BTreeMap;

use evenkeel_api::FreeForm;
use k8s_openapi::{
    api::{
        apps::v1::DeploymentStrategy,
        core::v1::{
            Affinity, EnvVar, HostAlias, LocalObjectReference, PodSecurityContext, PodSpec, SecurityContext,
            Toleration, TopologySpreadConstraint,
        },
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

macro_rules! template {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ })+) => {
        $($(#[$doc])*
        #[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)+ })+
    };
}

template! {
    /// For a cluster's nodes and what belongs to them all.
    KafkaTemplate {
        /// Of pools that have no template of their own.
        #[serde(flatten)]
        pool: PoolTemplate,
        /// The nodes' service account.
        service_account: ObjectTemplate,
        /// The bootstrap service.
        bootstrap_service: ObjectTemplate,
        /// The service that names the pods.
        brokers_service: ObjectTemplate,
        /// How many may be away.
        pod_disruption_budget: BudgetTemplate,
    }
    /// For the nodes of a pool and what belongs to each of them.
    PoolTemplate {
        /// Their pods.
        pod: PodTemplate,
        /// The container of Kafka.
        kafka_container: ContainerTemplate,
        /// The container that finds out the rack.
        init_container: ContainerTemplate,
        /// Claims.
        persistent_volume_claim: ObjectTemplate,
        /// StrimziPodSets.
        pod_set: ObjectTemplate,
    }
    /// For the engine.
    EngineTemplate {
        /// Its deployment.
        deployment: DeploymentTemplate,
        /// Its pod.
        pod: PodTemplate,
        /// Its container.
        cruise_control_container: ContainerTemplate,
        /// Its service.
        api_service: ObjectTemplate,
        /// Its service account.
        service_account: ObjectTemplate,
        /// Whether it may be away.
        pod_disruption_budget: BudgetTemplate,
    }
    /// For any object.
    ObjectTemplate {
        /// Labels and annotations.
        metadata: Marks,
    }
    /// For a disruption budget.
    BudgetTemplate {
        /// Labels and annotations.
        metadata: Marks,
        /// How many may be away at once.
        max_unavailable: Option<i32>,
    }
    /// For a deployment.
    DeploymentTemplate {
        /// Labels and annotations.
        metadata: Marks,
        /// `RollingUpdate` or `Recreate`.
        deployment_strategy: Option<String>,
    }
    /// Labels and annotations.
    Marks {
        /// Labels.
        labels: BTreeMap<String, String>,
        /// Annotations.
        annotations: BTreeMap<String, String>,
    }
    /// For a container.
    ContainerTemplate {
        /// Further variables. Those of ours win.
        env: Vec<EnvVar>,
        /// Who it runs as.
        security_context: Option<SecurityContext>,
    }
    /// For a pod.
    PodTemplate {
        /// Labels and annotations.
        metadata: Marks,
        /// Where it may run.
        affinity: Option<Affinity>,
        /// What it tolerates.
        tolerations: Option<Vec<Toleration>>,
        /// How it is spread.
        topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
        /// Who it runs as.
        security_context: Option<PodSecurityContext>,
        /// How images are fetched.
        image_pull_secrets: Option<Vec<LocalObjectReference>>,
        /// How important it is.
        priority_class_name: Option<String>,
        /// Who finds a place for it.
        scheduler_name: Option<String>,
        /// How long it may take to stop.
        termination_grace_period_seconds: Option<i64>,
        /// Whether services become variables.
        enable_service_links: Option<bool>,
        /// Names for its hosts file.
        host_aliases: Option<Vec<HostAlias>>,
    }
}

/// Reads a template. Also the paths below it that are not honoured.
pub fn read<T>(written: Option<&FreeForm>) -> Result<(T, Vec<String>), String>
where
    T: DeserializeOwned + Serialize + Default,
{
    let Some(written) = written else { return Ok((T::default(), Vec::new())) };
    let written = Value::Object(written.clone().into_iter().collect());
    let template: T = serde_json::from_value(written.clone()).map_err(|error| error.to_string())?;
    let kept = serde_json::to_value(&template).map_err(|error| error.to_string())?;
    let mut lost = Vec::new();
    lost_fields(&written, &kept, "", &mut lost);
    lost.sort();
    Ok((template, lost))
}

fn lost_fields(written: &Value, kept: &Value, path: &str, lost: &mut Vec<String>) {
    match (written, kept) {
        (Value::Object(written), Value::Object(kept)) => {
            for (name, value) in written {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => lost_fields(value, kept, &path, lost),
                    None if value.is_null() => {}
                    None => lost.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(kept)) => {
            for (n, (value, kept)) in written.iter().zip(kept).enumerate() {
                lost_fields(value, kept, &format!("{path}[{n}]"), lost);
            }
        }
        _ => {}
    }
}

impl Marks {
    /// Adds these to an object, whose own win.
    pub fn add_to(&self, metadata: &mut ObjectMeta) {
        add(&self.labels, metadata.labels.get_or_insert_default());
        if !self.annotations.is_empty() {
            add(&self.annotations, metadata.annotations.get_or_insert_default());
        }
    }
}

impl Marks {
    /// Those of them that an object does not have from here, because it has its own.
    pub fn passed_over<'a>(&'a self, made: &'a ObjectMeta) -> impl Iterator<Item = String> + 'a {
        let sides = [("labels", &self.labels, &made.labels), ("annotations", &self.annotations, &made.annotations)];
        sides.into_iter().flat_map(|(side, wished, made)| {
            let other = |(key, value): &(&String, &String)| {
                made.as_ref().and_then(|made| made.get(*key)).is_some_and(|own| own != *value)
            };
            wished.iter().filter(other).map(move |(key, _)| format!("metadata.{side}.{key}"))
        })
    }
}

fn add(from: &BTreeMap<String, String>, to: &mut BTreeMap<String, String>) {
    for (key, value) in from {
        to.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

impl PodTemplate {
    /// Puts into a pod what the user wants of it.
    pub fn apply(&self, pod: &mut PodSpec) {
        let wish = self.clone();
        pod.affinity = wish.affinity.or(pod.affinity.take());
        pod.tolerations = wish.tolerations.or(pod.tolerations.take());
        pod.topology_spread_constraints = wish.topology_spread_constraints.or(pod.topology_spread_constraints.take());
        pod.security_context = wish.security_context.or(pod.security_context.take());
        pod.image_pull_secrets = wish.image_pull_secrets.or(pod.image_pull_secrets.take());
        pod.priority_class_name = wish.priority_class_name.or(pod.priority_class_name.take());
        pod.scheduler_name = wish.scheduler_name.or(pod.scheduler_name.take());
        pod.termination_grace_period_seconds =
            wish.termination_grace_period_seconds.or(pod.termination_grace_period_seconds);
        pod.enable_service_links = wish.enable_service_links.or(pod.enable_service_links);
        pod.host_aliases = wish.host_aliases.or(pod.host_aliases.take());
    }
}

impl ContainerTemplate {
    /// The user's variables after ours; of a name that both have, ours.
    pub fn variables(&self, mut ours: Vec<EnvVar>) -> Vec<EnvVar> {
        for variable in &self.env {
            if ours.iter().all(|own| own.name != variable.name) {
                ours.push(variable.clone());
            }
        }
        ours
    }

    /// Those of the user's variables that a container does not have, because it has others of that name.
    pub fn passed_over<'a>(&'a self, made: &'a [EnvVar]) -> impl Iterator<Item = String> + 'a {
        let other = |wished: &&EnvVar| made.iter().any(|own| own.name == wished.name && own != *wished);
        self.env.iter().filter(other).map(|variable| format!("env.{}", variable.name))
    }
}

impl DeploymentTemplate {
    /// How the deployment is rolled, if the user says.
    pub fn strategy(&self) -> Option<DeploymentStrategy> {
        let type_ = self.deployment_strategy.clone();
        type_.map(|type_| DeploymentStrategy { type_: Some(type_), rolling_update: None })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(value: Value) -> FreeForm {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_not_honoured_is_named_down_to_misspelt_keys() {
        let written = form(json!({
            "pod": {"metadata": {"labels": {"team": "x"}}, "terminationGracePeriodSeconds": 120, "dnsPolicy": "None",
                "tolerations": [{"key": "a", "operatr": "Exists"}]},
            "kafkaContainer": {"env": [{"name": "A", "value": "1"}]},
            "clusterCaCert": {"metadata": {"labels": {"a": "b"}}}}));
        let (template, lost): (KafkaTemplate, _) = read(Some(&written)).unwrap();
        assert_eq!(template.pool.pod.termination_grace_period_seconds, Some(120));
        assert_eq!(lost, ["clusterCaCert", "pod.dnsPolicy", "pod.tolerations[0].operatr"]);
        assert_eq!(read::<KafkaTemplate>(None).unwrap(), (KafkaTemplate::default(), Vec::new()));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let said = read::<EngineTemplate>(Some(&form(json!({"pod": {"tolerations": 3}})))).unwrap_err();
        assert!(said.contains("invalid type"), "{said}");
    }

    #[test]
    fn labels_of_ours_win() {
        let marks =
            Marks { labels: [("a", "x"), ("b", "x")].map(|(k, v)| (k.into(), v.into())).into(), ..Marks::default() };
        let mut metadata = ObjectMeta { labels: Some([("a".into(), "ours".into())].into()), ..ObjectMeta::default() };
        marks.add_to(&mut metadata);
        assert_eq!(metadata.labels.unwrap(), [("a", "ours"), ("b", "x")].map(|(k, v)| (k.into(), v.into())).into());
    }
}
