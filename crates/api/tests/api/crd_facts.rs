//! What tools and users rely on in the CRDs.

use evenkeel_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::support;

fn crd(plural: &str) -> CustomResourceDefinition {
    crds().into_iter().find(|crd| crd.spec.names.plural == plural).unwrap()
}

#[test]
fn names_are_strimzis() {
    for (name, kind, short) in [
        ("kafkas.kafka.strimzi.io", "Kafka", "k"),
        ("kafkanodepools.kafka.strimzi.io", "KafkaNodePool", "knp"),
        ("kafkarebalances.kafka.strimzi.io", "KafkaRebalance", "kr"),
        ("strimzipodsets.core.strimzi.io", "StrimziPodSet", "sps"),
    ] {
        let (plural, group) = name.split_once('.').unwrap();
        let crd = crd(plural);
        assert_eq!(crd.metadata.name.as_deref(), Some(name));
        assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), (group, "Namespaced"));
        assert_eq!(crd.spec.names.kind, kind);
        assert_eq!(crd.spec.names.list_kind, Some(format!("{kind}List")));
        assert_eq!(crd.spec.names.singular, Some(kind.to_lowercase()));
        assert_eq!(crd.spec.names.short_names, Some(vec![short.into()]));
        assert_eq!(crd.spec.names.categories, Some(vec!["strimzi".into()]));
        assert!(crd.spec.conversion.is_none(), "the versions mean the same: nothing to convert");
    }
    assert_eq!(crds().len(), 4);
}

#[test]
fn both_versions_are_served_with_one_meaning_and_v1_is_stored() {
    for crd in crds() {
        let [new, old] = crd.spec.versions.as_slice() else { panic!("two versions") };
        assert_eq!((new.name.as_str(), new.served, new.storage), ("v1", true, true));
        assert_eq!((old.name.as_str(), old.served, old.storage), ("v1beta2", true, false));
        assert_eq!(new.schema, old.schema);
        assert_eq!(new.subresources, old.subresources);
        assert_eq!(new.additional_printer_columns, old.additional_printer_columns);
    }
}

#[test]
fn all_have_a_status_and_pools_can_be_scaled() {
    for crd in crds() {
        for version in &crd.spec.versions {
            let subresources = version.subresources.as_ref().unwrap();
            assert!(subresources.status.is_some());
            let scale = serde_json::to_value(&subresources.scale).unwrap();
            let paths = json!({
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.labelSelector",
            });
            assert_eq!(scale, if crd.spec.names.plural == "kafkanodepools" { paths } else { Value::Null });
        }
    }
}

#[test]
fn columns_show_what_is_asked_first() {
    let columns = |plural: &str| -> Vec<(String, String, String)> {
        let columns = crd(plural).spec.versions[0].additional_printer_columns.clone().unwrap();
        columns.into_iter().map(|column| (column.name, column.type_, column.json_path)).collect()
    };
    let expected = |columns: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
        columns.iter().map(|(name, type_, path)| (name.to_string(), type_.to_string(), path.to_string())).collect()
    };
    assert_eq!(
        columns("kafkas"),
        expected(&[
            ("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            ("Warnings", "string", r#".status.conditions[?(@.type=="Warning")].status"#),
            ("Kafka Version", "string", ".status.kafkaVersion"),
            ("Metadata Version", "string", ".status.kafkaMetadataVersion"),
        ])
    );
    assert_eq!(
        columns("kafkanodepools"),
        expected(&[
            ("Desired replicas", "integer", ".spec.replicas"),
            ("Roles", "string", ".status.roles"),
            ("NodeIds", "string", ".status.nodeIds"),
        ])
    );
    assert_eq!(
        columns("kafkarebalances"),
        expected(&[
            ("Cluster", "string", r".metadata.labels.strimzi\.io/cluster"),
            ("Template", "string", r".metadata.annotations.strimzi\.io/rebalance-template"),
            ("Status", "string", ".status.conditions[*].type"),
        ])
    );
    assert_eq!(
        columns("strimzipodsets"),
        expected(&[
            ("Pods", "integer", ".status.pods"),
            ("Ready Pods", "integer", ".status.readyPods"),
            ("Current Pods", "integer", ".status.currentPods"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ])
    );
}

/// Calls `look` for a schema and everything in it.
fn walk(schema: &Value, path: &str, look: &mut impl FnMut(&Value, &str)) {
    look(schema, path);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), look);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            walk(&schema[inner], &format!("{path}[]"), look);
        }
    }
}

#[test]
fn unknown_fields_are_preserved_at_every_level_of_the_users_specs() {
    for kind in ["Kafka", "KafkaNodePool", "KafkaRebalance"] {
        let mut levels = 0;
        walk(&support::schema(kind, "v1")["properties"]["spec"], "spec", &mut |schema, path| {
            // A map takes any key anyway.
            if schema["type"] == "object" && schema["additionalProperties"].is_null() {
                levels += 1;
                assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], true, "{kind}: {path}");
            }
        });
        assert!(levels > 2, "{kind}: looked in the wrong place");
    }
}

#[test]
fn conditions_are_one_atomic_list() {
    for crd in crds() {
        let schema = support::schema(&crd.spec.names.kind, "v1");
        assert_eq!(schema["properties"]["status"]["properties"]["conditions"]["x-kubernetes-list-type"], "atomic");
    }
}

#[test]
fn the_result_of_a_proposal_is_free_form() {
    let schema = support::schema("KafkaRebalance", "v1");
    let result = &schema["properties"]["status"]["properties"]["optimizationResult"];
    assert_eq!((&result["x-kubernetes-preserve-unknown-fields"], &result["properties"]), (&json!(true), &Value::Null));
}

#[test]
fn only_what_nothing_works_without_is_required() {
    let mut required = Vec::new();
    for crd in crds() {
        let kind = crd.spec.names.kind;
        walk(&support::schema(&kind, "v1"), &kind, &mut |schema, path| {
            for name in schema["required"].as_array().into_iter().flatten() {
                required.push(format!("{path}.{}", name.as_str().unwrap()));
            }
        });
    }
    required.retain(|path| !path.contains(".status.conditions[]."));
    assert_eq!(
        required,
        [
            "Kafka.spec",
            "Kafka.spec.cruiseControl.autoRebalance[].mode",
            "Kafka.spec.kafka.listeners[].name",
            "Kafka.spec.kafka.listeners[].port",
            "Kafka.spec.kafka.listeners[].tls",
            "Kafka.spec.kafka.listeners[].type",
            "Kafka.spec.kafka.storage.type",
            "Kafka.spec.kafka.storage.volumes[].type",
            "Kafka.status.autoRebalance.modes[].mode",
            "Kafka.status.kafkaNodePools[].name",
            "KafkaNodePool.spec",
            "KafkaNodePool.spec.replicas",
            "KafkaNodePool.spec.roles",
            "KafkaNodePool.spec.storage",
            "KafkaNodePool.spec.storage.type",
            "KafkaNodePool.spec.storage.volumes[].type",
            "KafkaRebalance.spec",
            "KafkaRebalance.spec.moveReplicasOffVolumes[].brokerId",
            "KafkaRebalance.spec.moveReplicasOffVolumes[].volumeIds",
            "KafkaRebalance.status.progress.rebalanceProgressConfigMap",
            "StrimziPodSet.spec",
            "StrimziPodSet.spec.pods",
            "StrimziPodSet.spec.selector",
            "StrimziPodSet.spec.selector.matchExpressions[].key",
            "StrimziPodSet.spec.selector.matchExpressions[].operator",
        ]
    );
}

#[test]
fn the_api_server_fills_in_the_mode_and_nothing_else_of_a_spec() {
    // A default for an option would hide that the user left it to the template.
    let mut defaults = Vec::new();
    for crd in crds() {
        let kind = crd.spec.names.kind;
        walk(&support::schema(&kind, "v1")["properties"]["spec"], &format!("{kind}.spec"), &mut |schema, path| {
            if !schema["default"].is_null() {
                defaults.push(format!("{path}={}", schema["default"]));
            }
        });
    }
    assert_eq!(defaults, [r#"KafkaRebalance.spec.mode="full""#]);
}

#[test]
fn everything_is_explained_in_whole_sentences() {
    for crd in crds() {
        let kind = crd.spec.names.kind;
        // The selector is Kubernetes' own type and has its own words.
        walk(&support::schema(&kind, "v1"), &kind, &mut |schema, path| {
            if path.ends_with("[]") || path.contains(".selector.") {
                return;
            }
            let text = schema["description"].as_str().unwrap_or_else(|| panic!("{path} is not explained"));
            assert!(text.ends_with('.'), "{path}: {text}");
            assert!(!text.contains('\n'), "{path}: kubectl explain would break the line within a sentence");
        });
    }
}

#[test]
fn every_number_is_bounded_by_what_reads_it() {
    let mut numbers = 0;
    for crd in crds() {
        let kind = crd.spec.names.kind;
        walk(&support::schema(&kind, "v1"), &kind, &mut |schema, path| {
            if schema["type"] != "integer" || schema["format"] == "int64" {
                return;
            }
            numbers += 1;
            // The API server passes over the format.
            assert_eq!(schema["maximum"], json!(2_147_483_647.0), "{path}");
            assert!(schema["minimum"].as_f64() >= Some(-2_147_483_648.0), "{path}");
        });
    }
    assert!(numbers > 15, "looked in the wrong place");
}

#[test]
fn every_list_with_a_search_for_duplicates_is_bounded() {
    for crd in crds() {
        let kind = crd.spec.names.kind;
        walk(&support::schema(&kind, "v1"), &kind, &mut |schema, path| {
            if !schema["x-kubernetes-validations"].is_null() {
                assert!(schema["maxItems"].is_u64(), "{path}: the API server would find its rules too costly");
            }
        });
    }
}
