//! The manifests applied to a cluster.

use evenkeel_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
};

use super::{Done, Error, Manifests, Outcome, definitions::lacks, marks, residence};

/// Who writes these objects, in the words of server-side apply.
const MANAGER: &str = "evenkeel-install";

/// Applies the manifests, one after the other. Objects of the same name that carry somebody else's marks stay as they
/// are: CRDs of Strimzi's, above all, whose users rely on them. An operator in another namespace keeps its rights.
pub async fn put(client: &Client, manifests: &Manifests) -> Result<Vec<Done>, Error> {
    residence::look(client, manifests.namespace()).await?;
    let mut done = Vec::new();
    for (kind, object) in manifests.objects()? {
        let (api, what) = (marks::api(client, &kind, &object), marks::name(&kind, &object));
        let found = api.get_metadata_opt(&object.name_any()).await.map_err(Error::reading(&what))?;
        if found.is_some_and(|found| !marks::is_ours(&found.metadata)) {
            let left = foreign(client, &kind, &object.name_any()).await.map_err(Error::reading(&what))?;
            done.push(Done { what, outcome: Outcome::Left(left) });
            continue;
        }
        // Forced, for whoever applied it before, by kubectl for example, has applied ours.
        let ours = PatchParams::apply(MANAGER).force().validation_strict();
        api.patch(&object.name_any(), &ours, &Patch::Apply(&object)).await.map_err(Error::writing(&what))?;
        done.push(Done { what, outcome: Outcome::Applied });
    }
    Ok(done)
}

/// Why an object of somebody else's is left as it is, and of a definition what it lacks.
async fn foreign(client: &Client, kind: &ApiResource, name: &str) -> Result<String, kube::Error> {
    let mut why = "somebody else has installed it".to_owned();
    if let Some(ours) =
        crds().into_iter().find(|ours| kind.kind == "CustomResourceDefinition" && ours.name_any() == name)
    {
        let found = Api::<CustomResourceDefinition>::all(client.clone()).get_opt(name).await?;
        for lack in lacks(&ours, found.as_ref()) {
            why = format!("{why}; {lack}");
        }
    }
    Ok(why)
}
