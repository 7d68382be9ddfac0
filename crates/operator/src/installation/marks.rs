//! Which objects are ours, and what they are called.

use evenkeel_api::labels;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
};

/// What the label [`labels::APP_PART_OF`] says on what we install.
const EVENKEEL: &str = evenkeel_api::crd::PART_OF;

/// Whether an object carries our mark.
pub(super) fn is_ours(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().and_then(|labels| labels.get(labels::APP_PART_OF)).is_some_and(|part| part == EVENKEEL)
}

/// Where objects of a kind that we install are found.
pub(super) fn resource(kind: &str) -> Option<ApiResource> {
    Some(match kind {
        "Namespace" => ApiResource::erase::<Namespace>(&()),
        "CustomResourceDefinition" => ApiResource::erase::<CustomResourceDefinition>(&()),
        "ServiceAccount" => ApiResource::erase::<ServiceAccount>(&()),
        "ClusterRole" => ApiResource::erase::<ClusterRole>(&()),
        "ClusterRoleBinding" => ApiResource::erase::<ClusterRoleBinding>(&()),
        "Role" => ApiResource::erase::<Role>(&()),
        "RoleBinding" => ApiResource::erase::<RoleBinding>(&()),
        "Deployment" => ApiResource::erase::<Deployment>(&()),
        _ => return None,
    })
}

/// The objects of a kind, where this one is or will be.
pub(super) fn api(client: &Client, kind: &ApiResource, object: &DynamicObject) -> Api<DynamicObject> {
    match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, kind),
        None => Api::all_with(client.clone(), kind),
    }
}

/// An object by kind and name, as kubectl says it.
pub(super) fn name(kind: &ApiResource, object: &DynamicObject) -> String {
    format!("{}/{}", kind.kind.to_ascii_lowercase(), object.name_any())
}
