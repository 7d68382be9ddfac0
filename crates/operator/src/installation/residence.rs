//! Where the operator lives that has the rights. What gives them is in no namespace and has one name, so there is one
//! operator in a Kubernetes cluster: whoever installed a second one would take the rights from the first, and whoever
//! removed it from the wrong namespace would leave one without rights that still runs.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRoleBinding, Subject},
};
use kube::{Api, Client};

use super::{Error, marks};
use crate::seams::NAME;

/// What a namespace tells of our operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residence {
    /// It lives here, or has lived here: something of it is left.
    Here,
    /// There is no trace of it.
    Unknown,
}

/// Looks whether our operator lives in `namespace`. That it lives in another one is an error.
pub(super) async fn look(client: &Client, namespace: &str) -> Result<Residence, Error> {
    let binding = Api::<ClusterRoleBinding>::all(client.clone()).get_opt(NAME).await;
    let binding = binding.map_err(Error::reading(&format!("clusterrolebinding/{NAME}")))?;
    let binding = binding.filter(|found| marks::is_ours(&found.metadata));
    let subjects = binding.and_then(|found| found.subjects).unwrap_or_default();
    if let Some(home) = home(&subjects) {
        return if home == namespace { Ok(Residence::Here) } else { Err(Error::Elsewhere(home.to_owned())) };
    }
    let account = Api::<ServiceAccount>::namespaced(client.clone(), namespace).get_opt(NAME).await;
    let account = account.map_err(Error::reading(&format!("serviceaccount/{NAME}")))?;
    let is_here = account.is_some_and(|found| marks::is_ours(&found.metadata));
    Ok(if is_here { Residence::Here } else { Residence::Unknown })
}

/// The namespace of the account that has the rights.
fn home(subjects: &[Subject]) -> Option<&str> {
    subjects.iter().find(|subject| subject.name == NAME).and_then(|subject| subject.namespace.as_deref())
}
