//! How clients learn what there is: discovery in both forms, OpenAPI, version and health.

use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::widgets::{Widgets, definition, properties, scalable};
use crate::world::{PATIENCE, World};

promises!(
    the_core_group_is_discovered,
    a_custom_group_is_discovered,
    a_custom_group_is_in_the_aggregated_form,
    the_aggregated_form_comes_in_the_asked_version,
    preferred_versions_come_first,
    a_definition_that_goes_leaves_discovery,
    openapi_describes_custom_kinds,
    openapi_describes_builtin_kinds,
    the_version_is_told,
    health_is_told,
    an_audit_id_comes_back_as_it_was_sent,
);

async fn the_core_group_is_discovered(world: World) {
    let versions = world.get("/api").await.ok();
    assert_eq!((&versions["kind"], &versions["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let resources = world.get("/api/v1").await.ok();
    assert_eq!((&resources["kind"], &resources["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let maps = resource(&resources, "configmaps");
    assert_eq!(
        (&maps["kind"], &maps["namespaced"], &maps["shortNames"]),
        (&json!("ConfigMap"), &json!(true), &json!(["cm"]))
    );
    assert_eq!(maps["singularName"], "configmap");
    for verb in ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] {
        assert!(maps["verbs"].as_array().unwrap().contains(&json!(verb)), "{verb}");
    }
    let pods = resource(&resources, "pods");
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
    assert_eq!(resource(&resources, "pods/status")["verbs"], json!(["get", "patch", "update"]));
    assert_eq!(resource(&resources, "namespaces/finalize")["verbs"], json!(["update"]));
    assert_eq!(resource(&resources, "namespaces")["namespaced"], false);
}

async fn widgets(world: &World) -> Widgets {
    let mut definition = scalable();
    definition["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition["spec"]["names"]["categories"] = json!(["all"]);
    world.install(definition).await
}

async fn a_custom_group_is_discovered(world: World) {
    let widgets = widgets(&world).await;
    let group = &widgets.group;
    let version = json!({"groupVersion": format!("{group}/v1"), "version": "v1"});
    let listed =
        |answer: &Answer| answer.body["groups"].as_array().is_some_and(|all| all.iter().any(|g| g["name"] == *group));
    let groups = world.until("/apis", listed).await.ok();
    let entry = groups["groups"].as_array().unwrap().iter().find(|entry| entry["name"] == *group).unwrap().clone();
    assert_eq!((&entry["versions"], &entry["preferredVersion"]), (&json!([version]), &version));
    let one = world.until(&format!("/apis/{group}"), |answer| answer.code == 200).await.ok();
    assert_eq!((&one["kind"], &one["name"]), (&json!("APIGroup"), &json!(group)));

    let path = format!("/apis/{group}/v1");
    let complete = |answer: &Answer| answer.body["resources"].as_array().is_some_and(|all| all.len() == 3);
    let resources = world.until(&path, complete).await.ok();
    let main = resource(&resources, "widgets");
    assert_eq!(
        (&main["kind"], &main["singularName"], &main["namespaced"]),
        (&json!("Widget"), &json!("widget"), &json!(true))
    );
    assert_eq!((&main["shortNames"], &main["categories"]), (&json!(["wd"]), &json!(["all"])));
    assert_eq!(resource(&resources, "widgets/status")["verbs"], json!(["get", "patch", "update"]));
    let scale = resource(&resources, "widgets/scale");
    assert_eq!(
        (&scale["kind"], &scale["group"], &scale["version"]),
        (&json!("Scale"), &json!("autoscaling"), &json!("v1"))
    );
}

fn aggregated(version: &str) -> String {
    format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json")
}

/// The group's entry in aggregated discovery, as soon as it is there.
async fn entry(world: &World, group: &str, wanted: bool) -> Option<Value> {
    let look = async {
        loop {
            let list = world.get_as(&aggregated("v2"), "/apis").await.ok();
            let found =
                list["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == group).cloned();
            if found.is_some() == wanted {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("aggregated discovery never changed")
}

async fn a_custom_group_is_in_the_aggregated_form(world: World) {
    let widgets = widgets(&world).await;
    let entry = entry(&world, &widgets.group, true).await.unwrap();
    let version = &entry["versions"][0];
    assert_eq!((&version["version"], &version["freshness"]), (&json!("v1"), &json!("Current")));
    let resource = &version["resources"][0];
    assert_eq!((&resource["resource"], &resource["scope"]), (&json!("widgets"), &json!("Namespaced")));
    assert_eq!(resource["responseKind"], json!({"group": widgets.group, "version": "v1", "kind": "Widget"}));
    assert_eq!((&resource["singularResource"], &resource["shortNames"]), (&json!("widget"), &json!(["wd"])));
    let subresources: Vec<_> =
        resource["subresources"].as_array().unwrap().iter().map(|s| s["subresource"].clone()).collect();
    assert_eq!(subresources, [json!("status"), json!("scale")]);
}

async fn the_aggregated_form_comes_in_the_asked_version(world: World) {
    for path in ["/api", "/apis"] {
        let answer = world.get_as(&aggregated("v2"), path).await.code(200);
        assert_eq!(
            answer.header("content-type"),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        );
        assert_eq!(answer.body["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(answer.body["kind"], "APIGroupDiscoveryList");
        // Old clients ask for a form that the original no longer speaks, and get the plain one they also accept.
        let answer = world.get_as(&aggregated("v9"), path).await.code(200);
        assert_eq!(answer.header("content-type"), "application/json");
        assert!(["APIVersions", "APIGroupList"].contains(&answer.body["kind"].as_str().unwrap()), "{}", answer.text);
    }
}

async fn preferred_versions_come_first(world: World) {
    let mut definition = definition(properties(json!({})));
    let first = definition["spec"]["versions"][0].clone();
    for name in ["v1beta2", "v2", "v1alpha1", "v10"] {
        let mut version = first.clone();
        version["name"] = json!(name);
        version["storage"] = json!(false);
        definition["spec"]["versions"].as_array_mut().unwrap().push(version);
    }
    let widgets = world.install(definition).await;
    let path = format!("/apis/{}", widgets.group);
    let complete = |answer: &Answer| answer.body["versions"].as_array().is_some_and(|all| all.len() == 5);
    let group = world.until(&path, complete).await.ok();
    let order: Vec<_> = group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
    assert_eq!(order, ["v10", "v2", "v1", "v1beta2", "v1alpha1"]);
    assert_eq!(group["preferredVersion"]["version"], "v10");
}

async fn a_definition_that_goes_leaves_discovery(world: World) {
    let widgets = widgets(&world).await;
    entry(&world, &widgets.group, true).await;
    world.delete(&widgets.definition, json!(null)).await.ok();
    entry(&world, &widgets.group, false).await;
    world.gone(&format!("/apis/{}", widgets.group)).await;
}

async fn openapi_describes_custom_kinds(world: World) {
    let mut definition = definition(properties(json!({"size": {"type": "string", "description": "How large."}})));
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("A thing.");
    let widgets = world.install(definition).await;
    let key = format!("apis/{}/v1", widgets.group);
    let index = world.until("/openapi/v3", |answer| answer.body["paths"].get(&key).is_some()).await.ok();
    let url = index["paths"][&key]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("/openapi/v3/{key}?hash=")), "{url}");
    let document = world.get(&url).await.code(200).ok();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let is_widget = |schema: &&Value| {
        let gvk = json!([{"group": widgets.group, "kind": "Widget", "version": "v1"}]);
        schema["x-kubernetes-group-version-kind"] == gvk
    };
    let schema = schemas.values().find(is_widget).expect("the schema of widgets");
    assert_eq!(schema["description"], "A thing.");
    assert_eq!(
        schema["properties"]["spec"]["properties"]["size"],
        json!({"type": "string", "description": "How large."})
    );
    let path = format!("/apis/{}/v1/namespaces/{{namespace}}/widgets/{{name}}", widgets.group);
    let patch = &document["paths"][&path]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": widgets.group, "kind": "Widget", "version": "v1"})
    );
    let has_parameter =
        |name: &str| patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == name && p["in"] == "query");
    for name in ["fieldValidation", "dryRun", "fieldManager", "force"] {
        assert!(has_parameter(name), "{name}");
    }
}

async fn openapi_describes_builtin_kinds(world: World) {
    let index = world.get("/openapi/v3").await.ok();
    for (key, schema) in [("api/v1", "io.k8s.api.core.v1.ConfigMap"), ("apis/apps/v1", "io.k8s.api.apps.v1.Deployment")]
    {
        let url = index["paths"][key]["serverRelativeURL"].as_str().unwrap().to_owned();
        let document = world.get(&url).await.code(200).ok();
        let schema = &document["components"]["schemas"][schema];
        assert_eq!(schema["type"], "object");
        assert!(schema["properties"]["metadata"].is_object(), "{key}");
    }
}

async fn the_version_is_told(world: World) {
    let version = world.get("/version").await.ok();
    assert_eq!(version["major"], "1");
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."));
    assert!(version["minor"].as_str().unwrap().parse::<u32>().unwrap() >= 30);
}

async fn health_is_told(world: World) {
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(world.get(path).await.code(200).text, "ok", "{path}");
        assert_eq!(world.get(&format!("{path}/ping")).await.code(200).text, "ok", "{path}");
        world.send(Method::HEAD, path, &[], Vec::new()).await.code(200);
        world.get(&format!("{path}/nonsense")).await.code(404);
    }
}

fn resource<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list["resources"].as_array().unwrap();
    all.iter().find(|resource| resource["name"] == name).unwrap_or_else(|| panic!("{name} in {list}"))
}

async fn an_audit_id_comes_back_as_it_was_sent(world: World) {
    for id in ["mine".to_owned(), "x".repeat(200)] {
        let answer = world.send(Method::GET, "/version", &[("audit-id", &id)], Vec::new()).await.code(200);
        assert_eq!(answer.header("audit-id"), id);
    }
    let [first, second] = [world.get("/version").await, world.get("/version").await];
    assert_eq!(first.header("audit-id").len(), 36);
    assert_ne!(first.header("audit-id"), second.header("audit-id"));
}
