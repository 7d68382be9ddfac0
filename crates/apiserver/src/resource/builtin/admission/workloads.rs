//! Defaults of deployments and replica sets.

use serde_json::{Value, json};

use super::{child, fill, pods};

/// Defaults of a deployment.
pub(super) fn deployment_defaults(deployment: &mut Value) {
    let spec = child(deployment, "spec");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    let strategy = child(spec, "strategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", json!("25%"));
        fill(rolling, "maxSurge", json!("25%"));
    }
    template_defaults(spec);
}

/// Defaults of a replica set.
pub(super) fn replica_set_defaults(replica_set: &mut Value) {
    let spec = child(replica_set, "spec");
    fill(spec, "replicas", 1);
    template_defaults(spec);
}

fn template_defaults(spec: &mut Value) {
    pods::defaults(child(child(spec, "template"), "spec"), false);
}
