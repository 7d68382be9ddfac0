//! Resources of our four kinds on a cluster whose definitions may be anybody's.

use evenkeel_api::{Kafka, crds};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::PartialObjectMeta,
};

use super::{Error, definitions::VERSION, marks};

/// A kind that the cluster knows.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    /// Whether its definition is ours.
    pub(super) is_ours: bool,
}

impl Kind {
    /// Those of ours that the cluster knows, in a version that it serves: where it is not the one that we speak,
    /// resources are there all the same.
    pub(super) async fn all(client: &Client) -> Result<Vec<Self>, Error> {
        let api = Api::<CustomResourceDefinition>::all(client.clone());
        let mut known = Vec::new();
        for ours in crds() {
            let what = format!("customresourcedefinition/{}", ours.name_any());
            let found = api.get_opt(&ours.name_any()).await.map_err(Error::reading(&what))?;
            known.extend(found.as_ref().and_then(Self::of));
        }
        Ok(known)
    }

    fn of(definition: &CustomResourceDefinition) -> Option<Self> {
        let spec = &definition.spec;
        let served = || spec.versions.iter().filter(|version| version.served);
        let version = served().find(|version| version.name == VERSION).or_else(|| served().next())?;
        let resource = ApiResource {
            group: spec.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", spec.group, version.name),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
        };
        Some(Self { resource, is_ours: marks::is_ours(&definition.metadata) })
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.resource.kind == kind
    }

    /// A Kafka, of which only the metadata matters.
    pub(super) async fn kafka(&self, client: &Client, namespace: &str, name: &str) -> Result<Option<Kafka>, Error> {
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &self.resource);
        let found = api.get_metadata_opt(name).await;
        let found = found.map_err(Error::reading(&format!("kafka/{name} in {namespace}")))?;
        Ok(found.map(|found| Kafka { metadata: found.metadata, ..Kafka::new(name, Default::default()) }))
    }

    /// The metadata of all of them, in every namespace.
    pub(super) async fn list(&self, client: &Client) -> Result<Vec<PartialObjectMeta<DynamicObject>>, Error> {
        let api = Api::<DynamicObject>::all_with(client.clone(), &self.resource);
        match api.list_metadata(&ListParams::default()).await {
            Ok(found) => Ok(found.items),
            // The definition has gone meanwhile. With the last of its group that is said in plain text, without a reason.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(source) => Err(Error::Read { what: self.resource.plural.clone(), source }),
        }
    }
}
