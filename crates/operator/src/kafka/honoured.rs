//! Fields that are not honoured: none of them is ignored in silence.

use std::collections::BTreeMap;

use evenkeel_api::{FreeForm, Kafka, KafkaNodePool, Reason, kafka::CertificateAuthority, unknown_fields};
use kube::ResourceExt;

use super::{
    pools::{Origin, Pools},
    problem::{Problem, Remark, Subject},
    template::{self, EngineTemplate, KafkaTemplate, PoolTemplate},
};

/// Fields without which the cluster would be open to everybody. They are refused.
const DOORS: [&str; 1] = ["spec.kafka.authorization"];

/// One warning for each resource that has such fields.
pub(super) fn remarks(
    kafka: &Kafka,
    node_pools: &[KafkaNodePool],
    pools: &Pools,
    problems: &mut Vec<Problem>,
) -> Vec<Remark> {
    let mut fields: BTreeMap<Subject, Vec<String>> = BTreeMap::new();
    let of_kafka = fields.entry(Subject::Kafka).or_default();
    for field in unknown_fields(kafka) {
        if DOORS.contains(&field.as_str()) {
            let text = "is not built: without it everybody could do everything, so the cluster is not made";
            problems.push(Problem::of_kafka(field, text));
        } else {
            of_kafka.push(field);
        }
    }
    of_kafka.extend(known(kafka, pools));
    for pool in node_pools.iter().filter(|pool| pools.all.contains_key(&pool.name_any())) {
        let mut all = unknown_fields(pool);
        all.extend(lost::<PoolTemplate>("spec.template", pool.spec.template.as_ref()));
        fields.insert(Subject::Pool(pool.name_any()), all);
    }
    let said = fields.into_iter().filter(|(_, fields)| !fields.is_empty()).map(|(subject, mut fields)| {
        fields.sort();
        fields.dedup();
        let are = if fields.len() == 1 { "is" } else { "are" };
        let text = format!("{} {are} not honoured", fields.join(", "));
        match &subject {
            Subject::Kafka => Remark::of_kafka(Reason::FieldNotHonoured, text),
            Subject::Pool(name) => Remark::of_pool(name, Reason::FieldNotHonoured, text),
        }
    });
    said.collect()
}

/// Fields that the types know and nothing acts on.
fn known(kafka: &Kafka, pools: &Pools) -> Vec<String> {
    let mut fields = Vec::new();
    let mut when = |set: bool, path: &str| {
        if set {
            fields.push(path.to_owned());
        }
    };
    let spec = &kafka.spec;
    if let Some(cluster) = &spec.kafka {
        let with_pools = pools.all.values().any(|pool| pool.origin == Origin::NodePool);
        when(with_pools && cluster.replicas.is_some(), "spec.kafka.replicas");
        when(with_pools && cluster.storage.is_some(), "spec.kafka.storage");
    }
    let renewal = |authority: &Option<CertificateAuthority>| {
        let authority = authority.clone().unwrap_or_default();
        (authority.renewal_days.is_some(), authority.certificate_expiration_policy.is_some())
    };
    for (name, (days, policy)) in [("clusterCa", renewal(&spec.cluster_ca)), ("clientsCa", renewal(&spec.clients_ca))] {
        when(days, &format!("spec.{name}.renewalDays"));
        when(policy, &format!("spec.{name}.certificateExpirationPolicy"));
    }
    let template = spec.kafka.as_ref().and_then(|cluster| cluster.template.as_ref());
    fields.extend(lost::<KafkaTemplate>("spec.kafka.template", template));
    let template = spec.cruise_control.as_ref().and_then(|engine| engine.template.as_ref());
    fields.extend(lost::<EngineTemplate>("spec.cruiseControl.template", template));
    fields
}

/// What of a template is not honoured. One that cannot be read at all is a problem, which others tell.
fn lost<T>(path: &str, written: Option<&FreeForm>) -> Vec<String>
where
    T: serde::de::DeserializeOwned + serde::Serialize + Default,
{
    let read = template::read::<T>(written).map(|(_, lost)| lost).unwrap_or_default();
    read.into_iter().map(|field| format!("{path}.{field}")).collect()
}
