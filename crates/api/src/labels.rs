//! Labels: which cluster an object belongs to, and what part of it it is.

/// Name of the Kafka that an object belongs to.
pub const CLUSTER: &str = "strimzi.io/cluster";
/// Kind of the resource that an object was made for, such as `Kafka`.
pub const KIND: &str = "strimzi.io/kind";
/// Name of the component, such as `<cluster>-kafka`, the same for all node pools.
pub const NAME: &str = "strimzi.io/name";
/// Sort of the component, such as `kafka` or `cruise-control`.
pub const COMPONENT_TYPE: &str = "strimzi.io/component-type";
/// Name of the node pool that a pod belongs to.
pub const POOL_NAME: &str = "strimzi.io/pool-name";
/// Name of the pod, for objects and selectors that mean exactly one.
pub const POD_NAME: &str = "strimzi.io/pod-name";
/// What looks after a pod.
pub const CONTROLLER: &str = "strimzi.io/controller";
/// The value of [`CONTROLLER`] on pods of a StrimziPodSet.
pub const CONTROLLER_POD_SET: &str = "strimzipodset";
/// Name of the StrimziPodSet that looks after a pod.
pub const CONTROLLER_NAME: &str = "strimzi.io/controller-name";
/// Whether a pod has the role `broker`: `true` or `false`.
pub const BROKER_ROLE: &str = "strimzi.io/broker-role";
/// Whether a pod has the role `controller`: `true` or `false`.
pub const CONTROLLER_ROLE: &str = "strimzi.io/controller-role";

/// Kubernetes' own label for the name of the application.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// Kubernetes' own label for the instance of the application.
pub const APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// Kubernetes' own label for the whole that the application is part of.
pub const APP_PART_OF: &str = "app.kubernetes.io/part-of";
/// Kubernetes' own label for what manages the object.
pub const APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`APP_MANAGED_BY`] that dashboards and scripts look for.
pub const MANAGED_BY_OPERATOR: &str = "strimzi-cluster-operator";
