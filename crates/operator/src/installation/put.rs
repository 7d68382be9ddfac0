//! The manifests applied to a cluster.

use evenkeel_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
};

use super::{Done, Error, Manifests, Outcome, definitions::lacks, marks, predecessor::Predecessor, residence};

/// Who writes these objects, in the words of server-side apply.
const MANAGER: &str = "evenkeel-install";

/// Applies the manifests, one after the other. Objects of the same name that carry somebody else's marks stay as they
/// are: CRDs of Strimzi's, above all, whose users rely on them. An operator in another namespace keeps its rights. Where
/// the manifests name no image, no namespaces or no labels to look after, those of the operator that is there stay.
///
/// Nothing is put if the operator would look after clusters that another one runs, or has no image.
pub async fn put(client: &Client, manifests: &Manifests) -> Result<Vec<Done>, Error> {
    residence::look(client, manifests.namespace()).await?;
    let predecessor = Predecessor::look(client, manifests.namespace()).await?;
    let mut objects = manifests.objects()?;
    let mut kept = None;
    if let Some((_, deployment)) = objects.iter_mut().find(|(kind, _)| kind.kind == "Deployment") {
        kept = predecessor.hand_on(manifests, deployment)?;
        predecessor.refuse_to_take_over(client, deployment).await?;
    }
    let mut done = Vec::new();
    for (kind, object) in objects {
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
        let image = kept.take_if(|_| kind.kind == "Deployment");
        done.push(Done { what, outcome: image.map_or(Outcome::Applied, Outcome::Kept) });
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
