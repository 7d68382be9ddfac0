//! Other forms of the same answer: tables, bare metadata, YAML; and dry runs.

use serde_json::json;

use crate::answer::{names, revision, version};
use crate::widgets::{definition, properties};
use crate::world::{MERGE, World, with_query};

promises!(
    a_table_has_a_name_and_an_age,
    a_table_shows_the_columns_of_its_definition,
    a_table_carries_metadata_or_nothing_of_its_objects,
    builtin_kinds_have_tables,
    metadata_comes_without_the_rest,
    yaml_is_spoken_too,
    a_form_that_nobody_knows_is_not_acceptable,
    any_form_is_json,
    a_dry_run_keeps_nothing,
    a_dry_run_is_validated_and_defaulted,
    a_dry_run_must_be_all,
    large_answers_are_compressed_for_who_reads_that,
);

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn a_table_has_a_name_and_an_age(world: World) {
    let widgets = world.install(definition(properties(json!({})))).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let table = world.get_as(TABLE, &widgets.path()).await.code(200).ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].clone(), c["type"].clone(), c["priority"].clone()))
        .collect();
    assert_eq!(columns, [(json!("Name"), json!("string"), json!(0)), (json!("Age"), json!("date"), json!(0))]);
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    let age = table["rows"][0]["cells"][1].as_str().unwrap();
    assert!(
        age.strip_suffix('s').is_some_and(|seconds| seconds.parse::<u32>().is_ok()),
        "an age for people, not {age}"
    );
    assert!(revision(&table) > 0);
    // One object has a table of one row.
    let one = world.get_as(TABLE, &widgets.one("a")).await.code(200).ok();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
}

async fn a_table_shows_the_columns_of_its_definition(world: World) {
    let mut definition = definition(properties(json!({
        "size": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
    })));
    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let mut wide = column("Wide", "string", ".metadata.labels.wide");
    wide["priority"] = json!(1);
    wide["description"] = json!("Only when asked for.");
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        column("Size", "string", ".spec.size"),
        column("Count", "integer", ".spec.count"),
        column("On", "boolean", ".spec.on"),
        column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        column("Born", "date", ".metadata.creationTimestamp"),
        wide,
    ]);
    let widgets = world.install(definition).await;
    let mut widget = widgets.widget("a", json!({"size": "l", "count": 3, "on": true}));
    widget["metadata"]["labels"] = json!({"wide": "w"});
    world.post(&widgets.path(), widget).await.ok();
    world.post(&widgets.path(), widgets.widget("b", json!({}))).await.ok();
    let status =
        json!({"status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}});
    world.patch(MERGE, &format!("{}/status", widgets.one("a")), status).await.ok();
    let table = world.get_as(TABLE, &widgets.path()).await.ok();
    let names: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Name", "Size", "Count", "On", "Ready", "Born", "Wide"], "no Age of its own beside these");
    assert_eq!(
        (&table["columnDefinitions"][6]["priority"], &table["columnDefinitions"][6]["description"]),
        (&json!(1), &json!("Only when asked for."))
    );
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[0], &cells[1], &cells[2], &cells[3], &cells[4], &cells[6]),
        (&json!("a"), &json!("l"), &json!(3), &json!(true), &json!("True"), &json!("w"))
    );
    let empty = &table["rows"][1]["cells"];
    assert_eq!((&empty[1], &empty[2], &empty[4]), (&json!(null), &json!(null), &json!(null)));
}

async fn a_table_carries_metadata_or_nothing_of_its_objects(world: World) {
    let map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    let row = |table: serde_json::Value| table["rows"][0].clone();
    let object = row(world.get_as(TABLE, &one).await.ok())["object"].take();
    assert_eq!((&object["kind"], &object["metadata"]), (&json!("PartialObjectMetadata"), &map["metadata"]));
    let whole = row(world.get_as(TABLE, &with_query(&one, "includeObject=Object")).await.ok())["object"].take();
    assert_eq!(whole["kind"], "ConfigMap");
    assert!(row(world.get_as(TABLE, &with_query(&one, "includeObject=None")).await.ok())["object"].is_null());
    world.get_as(TABLE, &with_query(&one, "includeObject=Some")).await.refused(400, "BadRequest");
}

async fn builtin_kinds_have_tables(world: World) {
    world.post(&world.maps(), json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}})).await.ok();
    let table = world.get_as(TABLE, &format!("{}/a", world.maps())).await.ok();
    let columns = |table: &serde_json::Value| {
        table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(columns(&table), "Name Data Age");
    assert_eq!((&table["rows"][0]["cells"][0], &table["rows"][0]["cells"][1]), (&json!("a"), &json!(2)));
    for (path, expected) in [
        (world.core("pods"), "Name Ready Status Restarts Age IP Node Nominated Node Readiness Gates"),
        (world.core("services"), "Name Type Cluster-IP External-IP Port(s) Age Selector"),
        (world.of_group("apps/v1", "deployments"), "Name Ready Up-to-date Available Age Containers Images Selector"),
        (world.core("secrets"), "Name Type Data Age"),
        ("/api/v1/namespaces".into(), "Name Status Age"),
        (world.of_group("coordination.k8s.io/v1", "leases"), "Name Holder Age"),
        (world.core("events"), "Last Seen Type Reason Object Subobject Source Message First Seen Count Name"),
    ] {
        assert_eq!(columns(&world.get_as(TABLE, &path).await.ok()), expected, "{path}");
    }
}

async fn metadata_comes_without_the_rest(world: World) {
    let map = world.post(&world.maps(), json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.ok();
    let one = world.get_as(METADATA, &format!("{}/a", world.maps())).await.code(200).ok();
    assert_eq!(
        one,
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map["metadata"]})
    );
    let list =
        world.get_as(METADATA_LIST, &with_query(&world.maps(), "fieldSelector=metadata.name=a")).await.code(200).ok();
    assert_eq!((&list["kind"], names(&list)), (&json!("PartialObjectMetadataList"), vec!["a"]));
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("data").is_none() && revision(&list) > 0);
}

async fn yaml_is_spoken_too(world: World) {
    let body = b"metadata:\n  name: a\ndata:\n  k: v\n".to_vec();
    let headers = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    let answer = world.send(http::Method::POST, &world.maps(), &headers, body).await.code(201);
    assert_eq!(answer.header("content-type"), "application/yaml");
    assert!(answer.text.starts_with("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n"), "{}", answer.text);
}

async fn a_form_that_nobody_knows_is_not_acceptable(world: World) {
    let answer = world.get_as("text/html", &world.maps()).await.refused(406, "NotAcceptable");
    // The real server goes on with protobuf, which ours does not write, and says it in other words.
    answer.mentions("application/json, application/yaml");
    world.get_as("text/html, application/json;q=0.5", &world.maps()).await.code(200);
}

async fn any_form_is_json(world: World) {
    for accept in ["*/*", "application/json, */*"] {
        let answer = world.get_as(accept, &world.maps()).await.code(200);
        assert_eq!(answer.header("content-type"), "application/json", "{accept}");
    }
    assert_eq!(world.get(&world.maps()).await.header("content-type"), "application/json");
}

async fn a_dry_run_keeps_nothing(world: World) {
    let path = with_query(&world.maps(), "dryRun=All");
    let made = world.post(&path, json!({"metadata": {"name": "a"}})).await.code(201).ok();
    assert!(made["metadata"]["uid"].is_string());
    assert!(made["metadata"].get("resourceVersion").is_none(), "{made}");
    let one = format!("{}/a", world.maps());
    world.get(&one).await.refused(404, "NotFound");
    let map = world.map("a", json!({})).await;
    let dry = with_query(&one, "dryRun=All");
    let patched = world.patch(MERGE, &dry, json!({"data": {"k": "v"}})).await.code(200).ok();
    assert_eq!((&patched["data"], version(&patched)), (&json!({"k": "v"}), version(&map)));
    world
        .apply(
            "alice",
            &dry,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}),
        )
        .await
        .code(200);
    world.delete(&dry, json!(null)).await.code(200);
    world.delete(&one, json!({"dryRun": ["All"]})).await.code(200);
    world.delete(&with_query(&world.maps(), "dryRun=All"), json!(null)).await.code(200);
    assert_eq!(world.get(&one).await.ok(), map);
}

async fn a_dry_run_is_validated_and_defaulted(world: World) {
    let schema =
        properties(json!({"n": {"type": "integer", "maximum": 5}, "mode": {"type": "string", "default": "full"}}));
    let widgets = world.install(definition(schema)).await;
    let path = with_query(&widgets.path(), "dryRun=All");
    assert_eq!(
        world.post(&path, widgets.widget("a", json!({"n": 1}))).await.ok()["spec"],
        json!({"n": 1, "mode": "full"})
    );
    world.post(&path, widgets.widget("a", json!({"n": 6}))).await.refused(422, "Invalid");
}

async fn a_dry_run_must_be_all(world: World) {
    let answer = world.post(&with_query(&world.maps(), "dryRun=Some"), json!({"metadata": {"name": "a"}})).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueNotSupported", "dryRun")]);
    answer.says(
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
    );
}

async fn large_answers_are_compressed_for_who_reads_that(world: World) {
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(200_000)}});
    world.post(&world.maps(), large).await.code(201);
    world.post(&world.maps(), json!({"metadata": {"name": "small"}})).await.code(201);
    let read = async |path: &str, accepts: &str| {
        world.send(http::Method::GET, path, &[("accept-encoding", accepts)], Vec::new()).await.code(200)
    };
    let (large, small) = (format!("{}/large", world.maps()), format!("{}/small", world.maps()));
    for path in [&large, &world.maps()] {
        let answer = read(path, "deflate, gzip").await;
        assert_eq!((answer.header("content-encoding"), answer.header("vary")), ("gzip", "Accept-Encoding"), "{path}");
        assert!(answer.text.starts_with('\u{1f}') && answer.text.len() < 20_000, "{path}");
    }
    for (path, accepts) in [(&small, "gzip"), (&large, "deflate"), (&large, "identity")] {
        let answer = read(path, accepts).await;
        assert_eq!(answer.header("content-encoding"), "", "{path}");
        assert!(answer.body["metadata"]["name"].is_string(), "{path}");
    }
}
