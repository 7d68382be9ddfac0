//! Namespaces on their way out. Nothing can be made in them any more, and all that is there goes by itself: whoever goes on
//! as usual only writes what is refused.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use crate::{error::Error, seams::Context};

/// Whether a namespace is being deleted, or is gone. An operator that may not read namespaces takes them for lasting.
pub(crate) async fn is_terminating(context: &Context, namespace: &str) -> Result<bool, Error> {
    match Api::<Namespace>::all(context.client.clone()).get_opt(namespace).await {
        Ok(found) => Ok(found.is_none_or(|it| it.metadata.deletion_timestamp.is_some())),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(false),
        Err(source) => Err(Error::reading(format!("namespace {namespace}"))(source)),
    }
}
