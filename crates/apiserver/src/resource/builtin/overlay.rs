//! What the schemas of k8s-openapi leave out: how lists and maps are merged, and the few defaults that are part of
//! the published API.
//!
//! A row says what its field is *besides* its type. A list without a row is atomic: one value, owned and replaced as a
//! whole. Type names are as in OpenAPI, without the `io.k8s.` in front.

/// One row: what is special about a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Type that has the field.
    pub(crate) ty: &'static str,
    /// The field's JSON name.
    pub(crate) field: &'static str,
    /// Server-side apply: keys of a list of objects. Empty: not such a list.
    pub(crate) keys: &'static [&'static str],
    /// Server-side apply: a list of scalars, each owned by itself.
    pub(crate) set: bool,
    /// Server-side apply: an object or map owned as a whole.
    pub(crate) atomic_map: bool,
    /// Server-side apply: an object of an atomic type whose fields are nevertheless owned one by one here.
    pub(crate) granular: bool,
    /// `x-kubernetes-patch-strategy`, empty if there is none.
    pub(crate) patch: &'static str,
    /// `x-kubernetes-patch-merge-key`, empty if there is none.
    pub(crate) patch_key: &'static str,
    /// Text that is filled in where the field is absent.
    pub(crate) default: Option<&'static str>,
}

const NOTHING: Row = Row {
    ty: "",
    field: "",
    keys: &[],
    set: false,
    atomic_map: false,
    granular: false,
    patch: "",
    patch_key: "",
    default: None,
};

/// Objects told apart by one key, by server-side apply and by strategic merge alike.
const fn by(ty: &'static str, field: &'static str, key: &'static [&'static str; 1]) -> Row {
    Row { ty, field, keys: key, patch: "merge", patch_key: key[0], ..NOTHING }
}

/// Told apart by several keys; strategic merge knows only the first of them.
const fn by_all(ty: &'static str, field: &'static str, keys: &'static [&'static str]) -> Row {
    Row { ty, field, keys, patch: "merge", patch_key: keys[0], ..NOTHING }
}

/// As [`by`], for unions: the keys that a patch does not retain go.
const fn by_retaining(ty: &'static str, field: &'static str, key: &'static [&'static str; 1]) -> Row {
    Row { ty, field, keys: key, patch: "merge,retainKeys", patch_key: key[0], ..NOTHING }
}

/// Told apart by server-side apply only; strategic merge replaces the list.
const fn by_apply_only(ty: &'static str, field: &'static str, keys: &'static [&'static str]) -> Row {
    Row { ty, field, keys, ..NOTHING }
}

const fn set(ty: &'static str, field: &'static str, patch: &'static str) -> Row {
    Row { ty, field, set: true, patch, ..NOTHING }
}

const fn atomic_map(ty: &'static str, field: &'static str) -> Row {
    Row { ty, field, atomic_map: true, ..NOTHING }
}

const fn granular(ty: &'static str, field: &'static str) -> Row {
    Row { ty, field, granular: true, ..NOTHING }
}

const fn patched(ty: &'static str, field: &'static str, patch: &'static str, patch_key: &'static str) -> Row {
    Row { ty, field, patch, patch_key, ..NOTHING }
}

const fn default(ty: &'static str, field: &'static str, text: &'static str) -> Row {
    Row { ty, field, default: Some(text), ..NOTHING }
}

const CRD_STATUS: &str = "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus";
const CRD_SCHEMA: &str = "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    // Every object.
    by(META, "ownerReferences", &["uid"]),
    set(META, "finalizers", "merge"),
    // Workloads.
    patched("api.apps.v1.DeploymentSpec", "strategy", "retainKeys", ""),
    by("api.apps.v1.DeploymentStatus", "conditions", &["type"]),
    by("api.apps.v1.ReplicaSetStatus", "conditions", &["type"]),
    // Containers.
    by("api.core.v1.Container", "env", &["name"]),
    by_all("api.core.v1.Container", "ports", &["containerPort", "protocol"]),
    by("api.core.v1.Container", "volumeDevices", &["devicePath"]),
    by("api.core.v1.Container", "volumeMounts", &["mountPath"]),
    by("api.core.v1.EphemeralContainer", "env", &["name"]),
    by_all("api.core.v1.EphemeralContainer", "ports", &["containerPort", "protocol"]),
    by("api.core.v1.EphemeralContainer", "volumeDevices", &["devicePath"]),
    by("api.core.v1.EphemeralContainer", "volumeMounts", &["mountPath"]),
    default("api.core.v1.ContainerPort", "protocol", "TCP"),
    set("api.core.v1.ContainerRestartRuleOnExitCodes", "values", ""),
    by_apply_only("api.core.v1.ResourceRequirements", "claims", &["name"]),
    // Pods.
    by("api.core.v1.PodSpec", "containers", &["name"]),
    by("api.core.v1.PodSpec", "initContainers", &["name"]),
    by("api.core.v1.PodSpec", "ephemeralContainers", &["name"]),
    by("api.core.v1.PodSpec", "hostAliases", &["ip"]),
    by("api.core.v1.PodSpec", "imagePullSecrets", &["name"]),
    atomic_map("api.core.v1.PodSpec", "nodeSelector"),
    by_retaining("api.core.v1.PodSpec", "resourceClaims", &["name"]),
    by("api.core.v1.PodSpec", "schedulingGates", &["name"]),
    by_all("api.core.v1.PodSpec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    by_retaining("api.core.v1.PodSpec", "volumes", &["name"]),
    by("api.core.v1.PodStatus", "conditions", &["type"]),
    patched("api.core.v1.PodStatus", "hostIPs", "merge", "ip"),
    by("api.core.v1.PodStatus", "podIPs", &["ip"]),
    by_retaining("api.core.v1.PodStatus", "resourceClaimStatuses", &["name"]),
    by("api.core.v1.ContainerStatus", "allocatedResourcesStatus", &["name"]),
    by("api.core.v1.ContainerStatus", "volumeMounts", &["mountPath"]),
    by_apply_only("api.core.v1.ResourceStatus", "resources", &["resourceID"]),
    // Volumes.
    default("api.core.v1.AzureDiskVolumeSource", "cachingMode", "ReadWrite"),
    default("api.core.v1.AzureDiskVolumeSource", "fsType", "ext4"),
    default("api.core.v1.AzureDiskVolumeSource", "kind", "Shared"),
    default("api.core.v1.ISCSIPersistentVolumeSource", "iscsiInterface", "default"),
    default("api.core.v1.ISCSIVolumeSource", "iscsiInterface", "default"),
    default("api.core.v1.RBDPersistentVolumeSource", "keyring", "/etc/ceph/keyring"),
    default("api.core.v1.RBDPersistentVolumeSource", "pool", "rbd"),
    default("api.core.v1.RBDPersistentVolumeSource", "user", "admin"),
    default("api.core.v1.RBDVolumeSource", "keyring", "/etc/ceph/keyring"),
    default("api.core.v1.RBDVolumeSource", "pool", "rbd"),
    default("api.core.v1.RBDVolumeSource", "user", "admin"),
    default("api.core.v1.ScaleIOPersistentVolumeSource", "fsType", "xfs"),
    default("api.core.v1.ScaleIOPersistentVolumeSource", "storageMode", "ThinProvisioned"),
    default("api.core.v1.ScaleIOVolumeSource", "fsType", "xfs"),
    default("api.core.v1.ScaleIOVolumeSource", "storageMode", "ThinProvisioned"),
    by("api.core.v1.PersistentVolumeClaimStatus", "conditions", &["type"]),
    granular("api.core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses"),
    granular("api.core.v1.PersistentVolumeSpec", "claimRef"),
    // Services, nodes, namespaces, accounts.
    by_all("api.core.v1.ServiceSpec", "ports", &["port", "protocol"]),
    atomic_map("api.core.v1.ServiceSpec", "selector"),
    by("api.core.v1.ServiceStatus", "conditions", &["type"]),
    default("api.core.v1.ServicePort", "protocol", "TCP"),
    set("api.core.v1.NodeSpec", "podCIDRs", "merge"),
    by("api.core.v1.NodeStatus", "addresses", &["type"]),
    by("api.core.v1.NodeStatus", "conditions", &["type"]),
    by("api.core.v1.NamespaceStatus", "conditions", &["type"]),
    by("api.core.v1.ServiceAccount", "secrets", &["name"]),
    set("api.discovery.v1.Endpoint", "addresses", ""),
    // Policy: a changed selector is another selector, not a merged one.
    patched("api.policy.v1.PodDisruptionBudgetSpec", "selector", "replace", ""),
    by("api.policy.v1.PodDisruptionBudgetStatus", "conditions", &["type"]),
    // Custom resource definitions.
    by_apply_only(CRD_STATUS, "conditions", &["type"]),
    by(CRD_SCHEMA, "x-kubernetes-validations", &["rule"]),
];

/// Types whose objects server-side apply owns as a whole wherever they stand.
pub(crate) const ATOMIC_TYPES: &[&str] = &[
    "api.core.v1.ConfigMapKeySelector",
    "api.core.v1.FileKeySelector",
    "api.core.v1.LocalObjectReference",
    "api.core.v1.NodeSelector",
    "api.core.v1.NodeSelectorTerm",
    "api.core.v1.ObjectFieldSelector",
    "api.core.v1.ObjectReference",
    "api.core.v1.ResourceFieldSelector",
    "api.core.v1.SecretKeySelector",
    "api.core.v1.SecretReference",
    "api.core.v1.TopologySelectorTerm",
    "api.core.v1.TypedLocalObjectReference",
    "api.discovery.v1.EndpointPort",
    "api.rbac.v1.RoleRef",
    "api.rbac.v1.Subject",
    "apimachinery.pkg.apis.meta.v1.LabelSelector",
    "apimachinery.pkg.apis.meta.v1.OwnerReference",
];

/// The row of a field, by the full name of its type.
pub(crate) fn row(definition: &str, field: &str) -> Option<&'static Row> {
    let ty = definition.strip_prefix("io.k8s.")?;
    ROWS.iter().find(|r| r.ty == ty && r.field == field)
}

/// Whether objects of this type are owned as a whole.
pub(crate) fn is_atomic_type(definition: &str) -> bool {
    definition.strip_prefix("io.k8s.").is_some_and(|ty| ATOMIC_TYPES.contains(&ty))
}
