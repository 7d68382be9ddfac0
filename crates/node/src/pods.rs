//! What several controllers ask of a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

/// The annotation that carries the real ports of a pod's processes on 127.0.0.1: `{"9091":40001}`.
pub const PORTS: &str = "evenkeel.io/ports";

/// It has not ended, and was not told to.
pub(crate) fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !has_ended(pod)
}

/// Its containers have ended for good.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Its phase; empty if it has none.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// One of its conditions.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether it serves.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Uid of the object that manages it.
pub(crate) fn controller(pod: &Pod) -> Option<&str> {
    managing(pod.owner_references()).map(|owner| owner.uid.as_str())
}

/// The owner that manages an object.
pub(crate) fn managing(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    owners.iter().find(|owner| owner.controller.unwrap_or_default())
}

/// The real ports of its processes, by the ports that containers know. Nothing if none was started yet.
pub(crate) fn ports(pod: &Pod) -> Option<BTreeMap<u16, u16>> {
    serde_json::from_str(pod.annotations().get(PORTS)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_read_from_the_annotation() {
        let pod = |ports: &str| -> Pod {
            serde_json::from_value(json!({"metadata": {"annotations": {PORTS: ports}}})).unwrap()
        };
        assert_eq!(ports(&pod(r#"{"9091":40001}"#)), Some([(9091, 40001)].into()));
        assert_eq!(ports(&pod("9091")), None);
        assert_eq!(ports(&Pod::default()), None);
    }
}
