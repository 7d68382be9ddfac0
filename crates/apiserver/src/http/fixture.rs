//! A small custom resource that tests of this module share.

use std::sync::Arc;

use serde_json::json;

use crate::resource::{Column, Origin, Resource, ScalePaths, Version};
use crate::schema::Schema;

/// `things.example.io`, one version, with everything on.
pub(super) fn thing() -> Resource {
    let column = Column {
        name: "Mode".into(),
        ty: "string".into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: ".spec.mode".into(),
    };
    let scale = ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: None,
    };
    let openapi = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"mode": {"type": "string"}}}},
    });
    Resource {
        group: "example.io".into(),
        plural: "things".into(),
        singular: "thing".into(),
        kind: "Thing".into(),
        list_kind: "ThingList".into(),
        short_names: vec!["th".into()],
        categories: vec!["all".into()],
        namespaced: true,
        versions: vec![Version {
            name: "v1".into(),
            served: true,
            storage: true,
            deprecation: None,
            schema: Arc::new(Schema::default()),
            openapi: Arc::new(openapi),
            columns: vec![column],
            selectable: Vec::new(),
            status: true,
            scale: Some(scale),
        }],
        origin: Origin::Custom,
    }
}
