//! The built-in kinds as a table: names, scope, subresources and what can be selected by.
//!
//! The table is data only. What the fields of a kind are comes from `schemas`, what happens to its objects on a write
//! from `admission`.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as EventsV1Event;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::SchemaGenerator;

/// One built-in kind. All of them are served as `v1` only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// Name in URLs.
    pub(crate) plural: &'static str,
    /// Kind of one object.
    pub(crate) kind: &'static str,
    /// Name of the definition in OpenAPI.
    pub(crate) definition: &'static str,
    /// Short names, for `kubectl`.
    pub(crate) short: &'static [&'static str],
    /// Categories, for `kubectl`.
    pub(crate) categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Has `/status`.
    pub(crate) status: bool,
    /// Has `/scale`.
    pub(crate) scale: bool,
    /// Fields allowed in field selectors, besides name and namespace.
    pub(crate) selectable: &'static [&'static str],
    /// Verbs of the resource itself.
    pub(crate) verbs: &'static [&'static str],
    /// Adds the kind's schema, and everything it refers to, to the generator.
    pub(crate) describe: fn(&mut SchemaGenerator),
}

/// What a resource usually supports.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Deleting every namespace at once is not on offer.
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// Reviews are questions: nothing is kept, so nothing can be read back.
const REVIEW_VERBS: &[&str] = &["create"];

/// What most kinds are: core group, namespaced, no subresources, all verbs.
const PLAIN: Kind = Kind {
    group: "",
    plural: "",
    kind: "",
    definition: "",
    short: &[],
    categories: &[],
    namespaced: true,
    status: false,
    scale: false,
    selectable: &[],
    verbs: ALL_VERBS,
    describe: |_| {},
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// What `/scale` speaks.
pub(crate) const SCALE: Kind = Kind {
    group: "autoscaling",
    plural: "scales",
    kind: "Scale",
    definition: "io.k8s.api.autoscaling.v1.Scale",
    verbs: &[],
    describe: |g| drop(g.subschema_for::<Scale>()),
    ..PLAIN
};

/// All built-in kinds.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        plural: "namespaces",
        kind: "Namespace",
        definition: "io.k8s.api.core.v1.Namespace",
        short: &["ns"],
        namespaced: false,
        status: true,
        selectable: &[".status.phase"],
        verbs: NAMESPACE_VERBS,
        describe: |g| drop(g.subschema_for::<Namespace>()),
        ..PLAIN
    },
    Kind {
        plural: "nodes",
        kind: "Node",
        definition: "io.k8s.api.core.v1.Node",
        short: &["no"],
        namespaced: false,
        status: true,
        selectable: &[".spec.unschedulable"],
        describe: |g| drop(g.subschema_for::<Node>()),
        ..PLAIN
    },
    Kind {
        plural: "pods",
        kind: "Pod",
        definition: "io.k8s.api.core.v1.Pod",
        short: &["po"],
        categories: &["all"],
        status: true,
        selectable: &[
            ".spec.nodeName",
            ".spec.restartPolicy",
            ".spec.schedulerName",
            ".spec.serviceAccountName",
            ".spec.hostNetwork",
            ".status.phase",
            ".status.podIP",
            ".status.nominatedNodeName",
        ],
        describe: |g| drop(g.subschema_for::<Pod>()),
        ..PLAIN
    },
    Kind {
        plural: "services",
        kind: "Service",
        definition: "io.k8s.api.core.v1.Service",
        short: &["svc"],
        categories: &["all"],
        status: true,
        selectable: &[".spec.clusterIP", ".spec.type"],
        describe: |g| drop(g.subschema_for::<Service>()),
        ..PLAIN
    },
    Kind {
        plural: "configmaps",
        kind: "ConfigMap",
        definition: "io.k8s.api.core.v1.ConfigMap",
        short: &["cm"],
        describe: |g| drop(g.subschema_for::<ConfigMap>()),
        ..PLAIN
    },
    Kind {
        plural: "secrets",
        kind: "Secret",
        definition: "io.k8s.api.core.v1.Secret",
        selectable: &[".type"],
        describe: |g| drop(g.subschema_for::<Secret>()),
        ..PLAIN
    },
    Kind {
        plural: "serviceaccounts",
        kind: "ServiceAccount",
        definition: "io.k8s.api.core.v1.ServiceAccount",
        short: &["sa"],
        describe: |g| drop(g.subschema_for::<ServiceAccount>()),
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumes",
        kind: "PersistentVolume",
        definition: "io.k8s.api.core.v1.PersistentVolume",
        short: &["pv"],
        namespaced: false,
        status: true,
        describe: |g| drop(g.subschema_for::<PersistentVolume>()),
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumeclaims",
        kind: "PersistentVolumeClaim",
        definition: "io.k8s.api.core.v1.PersistentVolumeClaim",
        short: &["pvc"],
        status: true,
        describe: |g| drop(g.subschema_for::<PersistentVolumeClaim>()),
        ..PLAIN
    },
    Kind {
        plural: "events",
        kind: "Event",
        definition: "io.k8s.api.core.v1.Event",
        short: &["ev"],
        selectable: &[
            ".involvedObject.kind",
            ".involvedObject.namespace",
            ".involvedObject.name",
            ".involvedObject.uid",
            ".involvedObject.apiVersion",
            ".involvedObject.resourceVersion",
            ".involvedObject.fieldPath",
            ".reason",
            ".reportingComponent",
            ".source",
            ".type",
        ],
        describe: |g| drop(g.subschema_for::<Event>()),
        ..PLAIN
    },
    Kind {
        group: "events.k8s.io",
        plural: "events",
        kind: "Event",
        definition: "io.k8s.api.events.v1.Event",
        short: &["ev"],
        selectable: &[
            ".regarding.kind",
            ".regarding.namespace",
            ".regarding.name",
            ".regarding.uid",
            ".regarding.apiVersion",
            ".regarding.resourceVersion",
            ".regarding.fieldPath",
            ".reason",
            ".reportingController",
            ".type",
        ],
        describe: |g| drop(g.subschema_for::<EventsV1Event>()),
        ..PLAIN
    },
    Kind {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        kind: "EndpointSlice",
        definition: "io.k8s.api.discovery.v1.EndpointSlice",
        describe: |g| drop(g.subschema_for::<EndpointSlice>()),
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "storageclasses",
        kind: "StorageClass",
        definition: "io.k8s.api.storage.v1.StorageClass",
        short: &["sc"],
        namespaced: false,
        describe: |g| drop(g.subschema_for::<StorageClass>()),
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "deployments",
        kind: "Deployment",
        definition: "io.k8s.api.apps.v1.Deployment",
        short: &["deploy"],
        categories: &["all"],
        status: true,
        scale: true,
        describe: |g| drop(g.subschema_for::<Deployment>()),
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "replicasets",
        kind: "ReplicaSet",
        definition: "io.k8s.api.apps.v1.ReplicaSet",
        short: &["rs"],
        categories: &["all"],
        status: true,
        scale: true,
        selectable: &[".status.replicas"],
        describe: |g| drop(g.subschema_for::<ReplicaSet>()),
        ..PLAIN
    },
    Kind {
        group: RBAC,
        plural: "roles",
        kind: "Role",
        definition: "io.k8s.api.rbac.v1.Role",
        describe: |g| drop(g.subschema_for::<Role>()),
        ..PLAIN
    },
    Kind {
        group: RBAC,
        plural: "rolebindings",
        kind: "RoleBinding",
        definition: "io.k8s.api.rbac.v1.RoleBinding",
        describe: |g| drop(g.subschema_for::<RoleBinding>()),
        ..PLAIN
    },
    Kind {
        group: RBAC,
        plural: "clusterroles",
        kind: "ClusterRole",
        definition: "io.k8s.api.rbac.v1.ClusterRole",
        namespaced: false,
        describe: |g| drop(g.subschema_for::<ClusterRole>()),
        ..PLAIN
    },
    Kind {
        group: RBAC,
        plural: "clusterrolebindings",
        kind: "ClusterRoleBinding",
        definition: "io.k8s.api.rbac.v1.ClusterRoleBinding",
        namespaced: false,
        describe: |g| drop(g.subschema_for::<ClusterRoleBinding>()),
        ..PLAIN
    },
    Kind {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        kind: "NetworkPolicy",
        definition: "io.k8s.api.networking.v1.NetworkPolicy",
        short: &["netpol"],
        describe: |g| drop(g.subschema_for::<NetworkPolicy>()),
        ..PLAIN
    },
    Kind {
        group: "policy",
        plural: "poddisruptionbudgets",
        kind: "PodDisruptionBudget",
        definition: "io.k8s.api.policy.v1.PodDisruptionBudget",
        short: &["pdb"],
        status: true,
        describe: |g| drop(g.subschema_for::<PodDisruptionBudget>()),
        ..PLAIN
    },
    Kind {
        group: "coordination.k8s.io",
        plural: "leases",
        kind: "Lease",
        definition: "io.k8s.api.coordination.v1.Lease",
        describe: |g| drop(g.subschema_for::<Lease>()),
        ..PLAIN
    },
    Kind {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        kind: "CustomResourceDefinition",
        definition: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        describe: |g| drop(g.subschema_for::<CustomResourceDefinition>()),
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        kind: "SelfSubjectAccessReview",
        definition: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        namespaced: false,
        verbs: REVIEW_VERBS,
        describe: |g| drop(g.subschema_for::<SelfSubjectAccessReview>()),
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "selfsubjectrulesreviews",
        kind: "SelfSubjectRulesReview",
        definition: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        namespaced: false,
        verbs: REVIEW_VERBS,
        describe: |g| drop(g.subschema_for::<SelfSubjectRulesReview>()),
        ..PLAIN
    },
];

/// The kind of that group and plural.
pub(crate) fn find(group: &str, plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.group == group && k.plural == plural)
}
