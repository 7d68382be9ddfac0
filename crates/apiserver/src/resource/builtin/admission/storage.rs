//! Defaults of volumes and claims.

use serde_json::Value;

use super::fill;

/// Defaults of a claim's spec.
pub(super) fn claim_defaults(spec: &mut Value) {
    fill(spec, "volumeMode", "Filesystem");
}

/// Defaults of a volume's spec.
pub(super) fn volume_defaults(spec: &mut Value) {
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    if let Some(host_path) = spec.get_mut("hostPath") {
        fill(host_path, "type", "");
    }
}
