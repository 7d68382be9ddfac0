//! The operator that is there already, and what it hands on to the next: the image, and the namespaces and labels that it
//! looks after. Whoever installs again without naming them wants neither an image that does not exist nor clusters that
//! were none of its business.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, EnvVar},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, PartialObjectMeta},
};
use serde_json::Value;

use super::{
    Error, Invalid, Manifests,
    kinds::Kind,
    marks,
    scope::{Scope, variables},
};
use crate::{another, seams::NAME};
use evenkeel_api::labels;

/// What says which namespaces are looked after.
const WATCHED: &str = "STRIMZI_NAMESPACE";
/// What says which labels its Kafkas have.
const SELECTED: &str = "STRIMZI_CUSTOM_RESOURCE_SELECTOR";
/// What says which image engines run.
const IMAGE: &str = "EVENKEEL_IMAGE";

/// The Deployment that is there, if any.
#[derive(Debug, Default)]
pub(super) struct Predecessor(Option<Deployment>);

impl Predecessor {
    /// Looks for it.
    pub(super) async fn look(client: &Client, namespace: &str) -> Result<Self, Error> {
        let found = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(NAME).await;
        Ok(Self(found.map_err(Error::reading(&format!("deployment/{NAME}")))?))
    }

    /// Writes into the new Deployment what stays as it was, because the manifests do not name it. Tells the image if it is
    /// among that. Pure.
    pub(super) fn hand_on(&self, manifests: &Manifests, new: &mut DynamicObject) -> Result<Option<String>, Error> {
        let container = self.container();
        let kept = if manifests.image().is_some() {
            None
        } else {
            let image = container.and_then(|container| container.image.clone()).ok_or(Error::NoImage)?;
            Some(image)
        };
        let pointer = "/spec/template/spec/containers/0";
        let unreadable = || Error::Manifests(Invalid::Manifest("the operator has no container".to_owned()));
        let new = new.data.pointer_mut(pointer).ok_or_else(unreadable)?;
        if let Some(image) = &kept {
            new["image"] = image.clone().into();
            // An operator may give another image to what it makes than it runs itself.
            set(new, IMAGE, self.variable(IMAGE).unwrap_or_else(|| plain(IMAGE, image)));
        }
        if let Some(watched) = self.variable(WATCHED).filter(|_| !manifests.names_what_is_watched()) {
            set(new, WATCHED, watched);
        }
        // What an earlier installation has named would go if the next did not name it, too.
        if let Some(selected) = self.variable(SELECTED).filter(|_| !manifests.names_what_is_selected()) {
            set(new, SELECTED, selected);
        }
        Ok(kept)
    }

    /// Refuses an operator that would look after clusters which another one runs. The operator itself leaves them alone, but
    /// who installs it that way does not know that they are there.
    pub(super) async fn refuse_to_take_over(&self, client: &Client, new: &DynamicObject) -> Result<(), Error> {
        // What only the pod can read is not guessed: the operator is careful enough.
        let Ok(scope) = Scope::of(&self.followed_by(new)?) else { return Ok(()) };
        let kinds = Kind::all(client).await?;
        let kind = |name: &str| kinds.iter().find(|kind| kind.is(name));
        let (Some(sets), Some(kafkas)) = (kind("StrimziPodSet"), kind("Kafka")) else { return Ok(()) };
        let mut taken = Vec::new();
        for set in sets.list(client).await?.iter().filter(|set| another::made(&set.metadata)) {
            let Some((namespace, cluster)) = whose(set) else { continue };
            let kafka = kafkas.kafka(client, &namespace, &cluster).await?;
            if kafka.is_some() && scope.is_ours(&namespace, &cluster, kafka.as_ref()) {
                taken.push(format!("{namespace}/{cluster}"));
            }
        }
        taken.sort();
        taken.dedup();
        if taken.is_empty() { Ok(()) } else { Err(Error::Taken(format!("the Kafkas {}", taken.join(", ")))) }
    }

    /// The Deployment as it will be: variables that we do not name stay.
    fn followed_by(&self, new: &DynamicObject) -> Result<Deployment, Error> {
        let invalid = |error: serde_json::Error| Error::Manifests(Invalid::Manifest(error.to_string()));
        let value = serde_json::to_value(new).map_err(invalid)?;
        let mut next: Deployment = serde_json::from_value(value).map_err(invalid)?;
        let named: Vec<String> = variables(&next).map(|variable| variable.name.clone()).collect();
        let others = self.0.iter().flat_map(variables).filter(|variable| !named.contains(&variable.name));
        let others: Vec<EnvVar> = others.cloned().collect();
        let pod = next.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
        if let Some(container) = pod.and_then(|pod| pod.containers.first_mut()) {
            container.env.get_or_insert_default().extend(others);
        }
        Ok(next)
    }

    /// The operator's container, unless somebody else's operator has the name of ours.
    fn container(&self) -> Option<&Container> {
        let ours = self.0.as_ref().filter(|found| marks::is_ours(&found.metadata))?;
        ours.spec.as_ref()?.template.spec.as_ref()?.containers.first()
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let found = self.container()?.env.iter().flatten().find(|variable| variable.name == name)?;
        serde_json::to_value(found).ok()
    }
}

fn plain(name: &str, value: &str) -> Value {
    serde_json::json!({"name": name, "value": value})
}

/// Puts a variable in the place of the one that has its name, or after all others.
fn set(container: &mut Value, name: &str, variable: Value) {
    let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) else { return };
    match variables.iter_mut().find(|found| found["name"] == name) {
        Some(found) => *found = variable,
        None => variables.push(variable),
    }
}

/// The cluster that a pod set is of.
fn whose(set: &PartialObjectMeta<DynamicObject>) -> Option<(String, String)> {
    Some((set.namespace()?, set.labels().get(labels::CLUSTER)?.clone()))
}
