use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decode::tests::arbitrary_json;
use crate::schema::{PatchStrategy, Type};

fn list(key: Option<&str>, items: Schema) -> Schema {
    let patch = PatchStrategy { merge: true, key: key.map(str::to_owned), retain_keys: false };
    Schema { ty: Type::Array, items: Some(Arc::new(items)), patch, ..Schema::default() }
}

fn object(fields: Vec<(&str, Schema)>) -> Schema {
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), Arc::new(schema))).collect();
    Schema { ty: Type::Object, properties, ..Schema::default() }
}

/// A small deployment: containers and environments are maps, finalizers a set, commands atomic.
fn schema() -> Schema {
    let text = || Schema { ty: Type::String, ..Schema::default() };
    let atomic = || Schema { ty: Type::Array, items: Some(Arc::new(text())), ..Schema::default() };
    let env = object(vec![("name", text()), ("value", text())]);
    let container =
        object(vec![("name", text()), ("image", text()), ("env", list(Some("name"), env)), ("command", atomic())]);
    let labels = Schema { ty: Type::Object, additional: Some(Arc::new(text())), ..Schema::default() };
    object(vec![
        ("containers", list(Some("name"), container)),
        ("finalizers", list(None, text())),
        ("volumes", list(Some("name"), object(vec![]))),
        ("labels", labels),
        ("strategy", object(vec![])),
    ])
}

fn target() -> Value {
    json!({
        "containers": [
            {"name": "one", "image": "i1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "command": ["x"]},
            {"name": "two", "image": "i2"},
            {"name": "three", "image": "i3"},
        ],
        "finalizers": ["a/a", "b/b"],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    })
}

fn patched(patch: Value) -> Value {
    strategic_merge_patch(&target(), &patch, &schema()).unwrap()
}

fn refused(patch: Value) -> (u16, String) {
    let refusal = strategic_merge_patch(&target(), &patch, &schema()).unwrap_err();
    (refusal.code, refusal.message)
}

/// `name:image` of every container.
fn containers(patch: Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let result = patched(patch);
    let containers = result["containers"].as_array().unwrap().iter();
    containers.map(|c| format!("{}:{}", text(&c["name"]), text(&c["image"]))).collect()
}

#[test]
fn items_are_merged_by_their_key() {
    assert_eq!(containers(json!({"containers": [{"name": "two", "image": "new"}]})), ["one:i1", "two:new", "three:i3"]);
    let new = json!({"containers": [{"name": "four", "image": "i4", "command": null}]});
    assert_eq!(containers(new.clone()), ["four:i4", "one:i1", "two:i2", "three:i3"]);
    assert_eq!(patched(new)["containers"][0], json!({"name": "four", "image": "i4"}));
    let nested =
        json!({"containers": [{"name": "one", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]});
    assert_eq!(
        patched(nested)["containers"][0]["env"],
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}])
    );
    assert_eq!(patched(json!({"containers": [{"name": "one", "env": []}]})), target());
    let atomic = json!({"containers": [{"name": "one", "command": ["y", "z"]}]});
    assert_eq!(patched(atomic)["containers"][0]["command"], json!(["y", "z"]));
}

#[test]
fn directives_delete_and_replace() {
    assert_eq!(containers(json!({"containers": [{"name": "one", "$patch": "delete"}]})), ["two:i2", "three:i3"]);
    let replaced = json!({"containers": [{"name": "x", "image": "y"}, {"$patch": "replace"}]});
    assert_eq!(containers(replaced), ["x:y"]);
    assert_eq!(patched(json!({"strategy": {"$patch": "replace", "type": "R"}}))["strategy"], json!({"type": "R"}));
    assert_eq!(patched(json!({"strategy": {"$patch": "delete"}}))["strategy"], json!({}));
    assert_eq!(patched(json!({"labels": {"$patch": "replace", "a": "b"}})).get("labels"), None);
    assert_eq!(patched(json!({"$patch": "delete"})), json!({}));
    assert_eq!(patched(json!({"strategy": null})).get("strategy"), None);
    assert_eq!(patched(json!({"labels": {"a": "b", "n": null}}))["labels"], json!({"a": "b"}));
    assert_eq!(patched(Value::Null), target());
}

#[test]
fn order_is_what_the_patch_asks_for() {
    let names = |list: &[&str]| json!(list.iter().map(|name| json!({"name": name})).collect::<Vec<_>>());
    let order = |list: &[&str]| json!({"$setElementOrder/containers": names(list)});
    assert_eq!(containers(order(&["three", "one", "two"])), ["three:i3", "one:i1", "two:i2"]);
    assert_eq!(containers(order(&["three", "one"])), ["two:i2", "three:i3", "one:i1"]);
    let with_new = json!({
        "$setElementOrder/containers": names(&["three", "five", "one"]),
        "containers": [{"name": "five", "image": "i5"}],
    });
    assert_eq!(containers(with_new), ["two:i2", "three:i3", "five:i5", "one:i1"]);
}

#[test]
fn lists_of_scalars_are_sets() {
    let finalizers = |patch| patched(patch)["finalizers"].clone();
    assert_eq!(finalizers(json!({"finalizers": ["c/c", "a/a"]})), json!(["c/c", "a/a", "b/b"]));
    assert_eq!(finalizers(json!({"$deleteFromPrimitiveList/finalizers": ["a/a"]})), json!(["b/b"]));
    assert_eq!(finalizers(json!({"$deleteFromPrimitiveList/finalizers": "a/a"})), json!(["a/a", "b/b"]));
    let order = json!({"$setElementOrder/finalizers": ["c/c", "b/b", "a/a"], "finalizers": ["c/c"]});
    assert_eq!(finalizers(order), json!(["c/c", "b/b", "a/a"]));
    let all = json!({
        "$deleteFromPrimitiveList/finalizers": ["a/a"],
        "$setElementOrder/finalizers": ["b/b", "c/c"],
        "finalizers": ["c/c"],
    });
    assert_eq!(finalizers(all), json!(["b/b", "c/c"]));
}

#[test]
fn retained_keys_are_all_that_stay() {
    let volume = json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]});
    assert_eq!(patched(volume)["volumes"], json!([{"name": "v", "configMap": {"name": "c"}}]));
    let strategy = json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}});
    assert_eq!(patched(strategy)["strategy"], json!({"type": "Recreate"}));
    let new = json!({"volumes": [{"name": "w", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]});
    assert_eq!(patched(new)["volumes"], json!([{"name": "w", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]));
}

#[test]
fn patches_that_make_no_sense_get_the_originals_answers() {
    for (patch, code, message) in [
        (
            json!({"containers": [{"image": "new"}]}),
            500,
            "map: map[image:new] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "one", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"name": "one", "$patch": "bogus"}]}),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:one]",
        ),
        (json!({"strategy": {"$patch": "bogus"}}), 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (json!({"finalizers": [1]}), 500, "list element types are not identical: [[a/a b/b] [1]]"),
        (json!({"finalizers": [null]}), 500, "list element types are not identical: [[a/a b/b] [<nil>]]"),
        (
            json!({"$setElementOrder/containers": [{"name": "three"}, {"name": "one"}], "containers": [{"name": "five", "image": "i5"}]}),
            500,
            "The order in patch list:\n[map[image:i5 name:five]]\n doesn't match $setElementOrder list:\n[map[name:three] map[name:one]]\n",
        ),
        (json!({"$setElementOrder/containers": "x"}), 500, "expected a []interface {}, but received a string"),
        (json!({"$setElementOrder/containers": ["x"]}), 500, "value for key 0 is not a map"),
        (
            json!({"$setElementOrder/containers": [{"nam": "x"}]}),
            500,
            "map: map[nam:x] does not contain declared merge key: name",
        ),
        (json!({"$setElementOrder": [{"name": "x"}]}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveList": ["x"]}), 400, "invalid patch format of primitive list"),
        (
            json!({"volumes": [{"name": "v", "$retainKeys": ["name"], "configMap": {}}]}),
            400,
            "invalid patch format of retainKeys",
        ),
        (json!({"volumes": [{"name": "v", "$retainKeys": "x"}]}), 400, "invalid patch format of retainKeys"),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        assert_eq!(refused(patch), (code, message.to_owned()));
    }
    let lists = strategic_merge_patch(&json!({"finalizers": [["a"]]}), &json!({"finalizers": [["b"]]}), &schema());
    assert_eq!(lists.unwrap_err(), not_applicable());
}

fn items() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_map("[a-e]", "[x-z]", 0..5)
        .prop_map(|map| map.into_iter().map(|(name, image)| json!({"name": name, "image": image})).collect::<Vec<_>>())
        .prop_shuffle()
}

proptest! {
    /// The oracle: merged lists of objects are maps, so merge them as maps.
    #[test]
    fn merging_lists_is_merging_maps(old in items(), new in items(), gone in prop::collection::btree_set("[a-e]", 0..3)) {
        let as_map = |items: &[Value]| -> BTreeMap<String, Value> {
            items.iter().map(|item| (item["name"].to_string(), item["image"].clone())).collect()
        };
        let new: Vec<Value> = new.into_iter().filter(|item| !gone.contains(item["name"].as_str().unwrap())).collect();
        let mut expected = as_map(&old);
        expected.extend(as_map(&new));
        expected.retain(|name, _| !gone.contains(name.trim_matches('"')));
        let deletions = gone.iter().map(|name| json!({"name": name, "$patch": "delete"}));
        let patch = json!({"containers": new.iter().cloned().chain(deletions).collect::<Vec<_>>()});
        let merged = strategic_merge_patch(&json!({"containers": old}), &patch, &schema()).unwrap();
        let merged = merged["containers"].as_array().unwrap();
        prop_assert_eq!(as_map(merged), expected);
        // What the patch mentions stands in the order of the patch, the rest in its old order.
        let order = |of: &[Value], keep: &dyn Fn(&Value) -> bool| -> Vec<String> {
            of.iter().filter(|item| keep(item)).map(|item| item["name"].to_string()).collect()
        };
        let in_patch = |item: &Value| as_map(&new).contains_key(&item["name"].to_string());
        let only_old = |item: &Value| !in_patch(item) && !gone.contains(item["name"].as_str().unwrap());
        prop_assert_eq!(order(merged, &in_patch), order(&new, &|_| true));
        prop_assert_eq!(order(merged, &only_old), order(&old, &only_old));
    }

    #[test]
    fn a_patch_applied_twice_is_a_patch_applied_once(old in items(), new in items(), set in prop::collection::btree_set("[a-e]", 0..4)) {
        let patch = json!({"containers": new, "finalizers": set});
        let once = strategic_merge_patch(&json!({"containers": old, "finalizers": ["c", "x"]}), &patch, &schema()).unwrap();
        prop_assert_eq!(strategic_merge_patch(&once, &patch, &schema()).unwrap(), once);
    }

    #[test]
    fn no_patch_makes_it_panic(
        target in prop::collection::btree_map("containers|finalizers|labels", arbitrary_json(), 0..3),
        patch in prop::collection::btree_map(
            "(\\$setElementOrder/|\\$deleteFromPrimitiveList/)?(containers|finalizers|labels)|\\$retainKeys|\\$patch",
            arbitrary_json(),
            0..4,
        ),
    ) {
        let _ = strategic_merge_patch(&json!(target), &json!(patch), &schema());
    }
}
