//! The manifests applied to a cluster.

use kube::{
    Client, ResourceExt,
    api::{Patch, PatchParams},
};

use super::{Done, Error, Manifests, Outcome, marks};

/// Who writes these objects, in the words of server-side apply.
const MANAGER: &str = "evenkeel-install";

/// Applies the manifests, one after the other. Objects of the same name that carry somebody else's marks stay as they
/// are: CRDs of Strimzi's, above all, whose users rely on them.
pub async fn put(client: &Client, manifests: &Manifests) -> Result<Vec<Done>, Error> {
    let mut done = Vec::new();
    for (kind, object) in manifests.objects()? {
        let (api, what) = (marks::api(client, &kind, &object), marks::name(&kind, &object));
        let found = api.get_metadata_opt(&object.name_any()).await.map_err(Error::reading(&what))?;
        if found.is_some_and(|found| !marks::is_ours(&found.metadata)) {
            done.push(Done { what, outcome: Outcome::Left("somebody else has installed it".to_owned()) });
            continue;
        }
        // Forced, for whoever applied it before, by kubectl for example, has applied ours.
        let ours = PatchParams::apply(MANAGER).force().validation_strict();
        api.patch(&object.name_any(), &ours, &Patch::Apply(&object)).await.map_err(Error::writing(&what))?;
        done.push(Done { what, outcome: Outcome::Applied });
    }
    Ok(done)
}
