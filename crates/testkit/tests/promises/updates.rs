//! PUT, kind by kind: whether it makes what is missing, and whether it insists on a version. Both are properties of a
//! kind that only its history explains, and both are noticed: by `kubectl replace`, and by leader election.

use serde_json::{Value, json};

use crate::widgets::{DEFINITIONS, anything, definition};
use crate::world::{World, unique, with_query};

promises!(
    an_update_makes_what_is_missing_for_some_kinds,
    an_update_without_a_version_is_refused_by_some_kinds,
    an_update_that_creates_may_be_a_dry_run,
    an_update_never_makes_up_for_a_missing_namespace,
    an_update_with_the_uid_of_another_creates_nothing,
);

/// What PUT of a kind does.
struct Kind {
    /// Path of the kind and an object of it.
    path: String,
    object: Value,
    creates: bool,
    needs_version: bool,
}

impl Kind {
    fn creating(mut self) -> Self {
        self.creates = true;
        self
    }

    fn needing_a_version(mut self) -> Self {
        self.needs_version = true;
        self
    }

    /// Under another name: events of both groups are the same objects.
    fn named(mut self, name: &str) -> Self {
        self.object["metadata"]["name"] = json!(name);
        self
    }

    fn one(&self) -> String {
        format!("{}/{}", self.path, self.object["metadata"]["name"].as_str().unwrap())
    }
}

/// A kind; `fields` beside `metadata`, whose name is the same everywhere.
fn kind(path: String, name: &str, fields: Value) -> Kind {
    let mut object = fields;
    object["metadata"] = json!({"name": name});
    Kind { path, object, creates: false, needs_version: false }
}

/// Every built-in kind that PUT works on, and one custom kind.
async fn kinds(world: &World) -> Vec<Kind> {
    let name = &unique("update");
    let core = |resource: &str, fields: Value| kind(world.core(resource), name, fields);
    let of = |group: &str, resource: &str, fields: Value| kind(world.of_group(group, resource), name, fields);
    let wide = |path: &str, fields: Value| kind(path.to_owned(), name, fields);
    let rbac = "rbac.authorization.k8s.io";
    let group = &format!("{rbac}/v1");
    let about = json!({"kind": "Pod", "namespace": world.namespace, "name": "p"});
    let selector = json!({"matchLabels": {"app": "a"}});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pods = json!({"spec": {"selector": selector, "template": template}});
    let role = |kind: &str| json!({"roleRef": {"apiGroup": rbac, "kind": kind, "name": "x"}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let volume = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}});
    let new_event = json!({"regarding": about, "reason": "r", "type": "Normal", "action": "a",
        "eventTime": "2024-01-02T03:04:05.678901Z", "reportingController": "example.com/c", "reportingInstance": "i"});
    let widgets = world.install(definition(anything())).await;
    let mut another = definition(anything());
    let defined = another["metadata"]["name"].take();
    another.as_object_mut().unwrap().remove("metadata");

    vec![
        wide("/api/v1/namespaces", json!({})),
        wide("/api/v1/nodes", json!({})),
        wide("/api/v1/persistentvolumes", json!({"spec": volume})),
        core("configmaps", json!({})),
        core("secrets", json!({})),
        core("serviceaccounts", json!({})),
        core("persistentvolumeclaims", json!({"spec": claim})),
        core("services", json!({"spec": {"ports": [{"port": 80}]}})).creating(),
        core("events", json!({"involvedObject": about, "reason": "r", "message": "m", "type": "Normal"})).creating(),
        of("events.k8s.io/v1", "events", new_event).named("newer").creating(),
        of("discovery.k8s.io/v1", "endpointslices", json!({"addressType": "IPv4", "endpoints": []})),
        wide("/apis/storage.k8s.io/v1/storageclasses", json!({"provisioner": "example.com/p"})),
        of("apps/v1", "deployments", pods.clone()),
        of("apps/v1", "replicasets", pods),
        of(group, "roles", json!({"rules": []})).creating(),
        of(group, "rolebindings", role("Role")).creating(),
        wide(&format!("/apis/{group}/clusterroles"), json!({"rules": []})).creating(),
        wide(&format!("/apis/{group}/clusterrolebindings"), role("ClusterRole")).creating(),
        of("networking.k8s.io/v1", "networkpolicies", json!({"spec": {"podSelector": {}}})),
        of("policy/v1", "poddisruptionbudgets", json!({"spec": {"maxUnavailable": 1, "selector": selector}}))
            .needing_a_version(),
        of("coordination.k8s.io/v1", "leases", json!({"spec": {"holderIdentity": "h"}})).creating().needing_a_version(),
        kind(DEFINITIONS.to_owned(), defined.as_str().unwrap(), another).needing_a_version(),
        kind(widgets.path(), name, widgets.widget("", json!({}))).needing_a_version(),
    ]
}

async fn an_update_makes_what_is_missing_for_some_kinds(world: World) {
    for kind in kinds(&world).await {
        if kind.creates {
            let made = world.put(&kind.one(), &kind.object).await.code(201).ok();
            assert!(made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string());
            world.get(&kind.one()).await.code(200);
        } else {
            let answer = world.put(&kind.one(), &kind.object).await.refused(404, "NotFound");
            answer.mentions("not found");
            let mut versioned = kind.object.clone();
            versioned["metadata"]["resourceVersion"] = json!("5");
            world.put(&kind.one(), &versioned).await.refused(404, "NotFound");
        }
    }
}

async fn an_update_without_a_version_is_refused_by_some_kinds(world: World) {
    for kind in kinds(&world).await {
        let made = world.post(&kind.path, kind.object.clone()).await.code(201).ok();
        for version in [Value::Null, json!(""), json!("0")] {
            let mut object = kind.object.clone();
            object["metadata"]["resourceVersion"] = version;
            let answer = world.put(&kind.one(), &object).await;
            if kind.needs_version {
                let answer = answer.refused(422, "Invalid");
                let answer = answer.causes(&[("FieldValueInvalid", "metadata.resourceVersion")]);
                answer.mentions("metadata.resourceVersion: Invalid value: 0: must be specified for an update");
            } else {
                answer.code(200);
            }
        }
        let mut stale = kind.object.clone();
        stale["metadata"]["resourceVersion"] = json!("1");
        world.put(&kind.one(), &stale).await.refused(409, "Conflict").mentions("the object has been modified");
        let seen = world.get(&kind.one()).await.code(200).ok();
        assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
    }
}

async fn an_update_that_creates_may_be_a_dry_run(world: World) {
    let one = format!("{}/a", world.of_group("coordination.k8s.io/v1", "leases"));
    world.put(&with_query(&one, "dryRun=All"), &json!({"metadata": {"name": "a"}})).await.code(201);
    world.get(&one).await.refused(404, "NotFound");
}

async fn an_update_never_makes_up_for_a_missing_namespace(world: World) {
    let nowhere = unique("nowhere");
    let one = format!("/apis/coordination.k8s.io/v1/namespaces/{nowhere}/leases/a");
    let answer = world.put(&one, &json!({"metadata": {"name": "a"}})).await.refused(404, "NotFound");
    answer.says(&format!("namespaces \"{nowhere}\" not found"));
}

async fn an_update_with_the_uid_of_another_creates_nothing(world: World) {
    let body = json!({"metadata": {"name": "a", "uid": "6b1b9a5c-0000-4000-8000-000000000001"}});
    let one = format!("{}/a", world.of_group("coordination.k8s.io/v1", "leases"));
    let answer = world.put(&one, &body).await.refused(409, "Conflict");
    answer.mentions(
        "Precondition failed: UID in precondition: 6b1b9a5c-0000-4000-8000-000000000001, UID in object meta:",
    );
    world.get(&one).await.refused(404, "NotFound");
    world.put(&format!("{}/a", world.maps()), &body).await.refused(404, "NotFound");
    // A version is no such claim.
    world.put(&one, &json!({"metadata": {"name": "a", "resourceVersion": "5"}})).await.code(201);
}
