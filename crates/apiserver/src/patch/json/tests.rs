use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decode::tests::arbitrary_json;

fn patched(target: Value, operations: Value) -> Value {
    json_patch(&target, &operations).unwrap()
}

fn refused(target: Value, operations: Value) -> Refusal {
    json_patch(&target, &operations).unwrap_err()
}

#[test]
fn every_operation_does_its_work() {
    let target = json!({"a": [1, 2], "b": {"c/d": 1, "e~f": 2}});
    for (operation, expected) in [
        (json!({"op": "add", "path": "/a/-", "value": 3}), json!({"a": [1, 2, 3], "b": {"c/d": 1, "e~f": 2}})),
        (json!({"op": "add", "path": "/a/0", "value": 3}), json!({"a": [3, 1, 2], "b": {"c/d": 1, "e~f": 2}})),
        (json!({"op": "add", "path": "/a/-1", "value": 3}), json!({"a": [1, 2, 3], "b": {"c/d": 1, "e~f": 2}})),
        (json!({"op": "add", "path": "/x"}), json!({"a": [1, 2], "b": {"c/d": 1, "e~f": 2}, "x": null})),
        (json!({"op": "remove", "path": "/b/c~1d"}), json!({"a": [1, 2], "b": {"e~f": 2}})),
        (json!({"op": "remove", "path": "/a/-2"}), json!({"a": [2], "b": {"c/d": 1, "e~f": 2}})),
        (json!({"op": "replace", "path": "/b/e~0f", "value": []}), json!({"a": [1, 2], "b": {"c/d": 1, "e~f": []}})),
        (
            json!({"op": "replace", "path": "/new", "value": 1}),
            json!({"a": [1, 2], "b": {"c/d": 1, "e~f": 2}, "new": 1}),
        ),
        (json!({"op": "replace", "path": "", "value": {}}), json!({})),
        (json!({"op": "move", "from": "/a/0", "path": "/b"}), json!({"a": [2], "b": 1})),
        (json!({"op": "copy", "from": "/a", "path": "/b"}), json!({"a": [1, 2], "b": [1, 2]})),
        (json!({"op": "copy", "from": "/none", "path": "/b"}), json!({"a": [1, 2], "b": null})),
    ] {
        assert_eq!(patched(target.clone(), json!([operation])), expected, "{operation}");
    }
    assert_eq!(patched(target.clone(), Value::Null), target);
}

#[test]
fn the_finalizer_dance_of_controllers_works() {
    let bare = json!({"metadata": {"name": "a"}});
    let operations = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x/y"]},
    ]);
    let marked = patched(bare, operations.clone());
    assert_eq!(marked, json!({"metadata": {"name": "a", "finalizers": ["x/y"]}}));
    assert_eq!(refused(marked, operations), not_applicable());
}

#[test]
fn what_does_not_apply_is_refused_without_a_reason() {
    let target = json!({"a": [1], "b": {"c": null}, "d": 1});
    for operation in [
        json!({"op": "test", "path": "/a", "value": [2]}),
        json!({"op": "test", "path": "/none/x", "value": null}),
        json!({"op": "test", "path": "/a/1", "value": null}),
        json!({"op": "test", "path": "", "value": {}}),
        json!({"op": "remove", "path": "/none"}),
        json!({"op": "remove", "path": "/a/1"}),
        json!({"op": "remove", "path": "/a/-"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "add", "path": "/none/x", "value": 1}),
        json!({"op": "add", "path": "/b/c/x", "value": 1}),
        json!({"op": "add", "path": "/d/x", "value": 1}),
        json!({"op": "add", "path": "/a/3", "value": 1}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "value": 1}),
        json!({"op": "replace", "path": "/a/1", "value": 1}),
        json!({"op": "replace", "path": "", "value": 5}),
        json!({"op": "move", "from": "/none", "path": "/a"}),
        json!({"op": "move", "from": "/b", "path": "/b/x"}),
        json!({"op": "copy", "path": "/a"}),
        json!({"op": "bogus", "path": "/a"}),
        json!({"path": "/a"}),
        Value::Null,
    ] {
        assert_eq!(refused(target.clone(), json!([operation])), not_applicable(), "{operation}");
    }
    assert_eq!(not_applicable().to_status()["details"], json!({}));
}

#[test]
fn what_is_no_patch_is_a_bad_request() {
    for (patch, expected) in [
        (json!({"op": "add"}), "object into Go value of type []handlers.jsonPatchOp"),
        (json!([1]), "number into Go value of type handlers.jsonPatchOp"),
        (json!([{"op": "add", "path": 5}]), "number into Go struct field jsonPatchOp.path of type string"),
    ] {
        let message = format!("error decoding patch: json: cannot unmarshal {expected}");
        assert_eq!(refused(json!({}), patch), Refusal::bad_request(message));
    }
}

#[test]
fn the_number_of_operations_is_bounded() {
    let test = json!({"op": "test", "path": "/none", "value": null});
    assert_eq!(patched(json!({}), Value::Array(vec![test.clone(); 10_000])), json!({}));
    let refusal = refused(json!({}), Value::Array(vec![test; 10_001]));
    assert_eq!((refusal.code, refusal.reason), (413, "RequestEntityTooLarge"));
    assert_eq!(
        refusal.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_cannot_blow_an_object_up() {
    let double = json!([{"op": "copy", "from": "/a", "path": "/a/-"}, {"op": "copy", "from": "/a", "path": "/b/-"}]);
    let operations: Vec<Value> = std::iter::repeat_n(double.as_array().unwrap().clone(), 500).flatten().collect();
    assert_eq!(refused(json!({"a": ["x".repeat(100)], "b": []}), operations.into()), not_applicable());
}

#[test]
fn a_long_list_cannot_be_shifted_without_end() {
    let heads = |count| Value::Array(vec![json!({"op": "remove", "path": "/a/0"}); count]);
    let ends = |count| Value::Array(vec![json!({"op": "remove", "path": "/a/-1"}); count]);
    let list = |length| json!({"a": vec![0; length]});
    assert_eq!(patched(list(10_000), heads(10_000)), list(0));
    assert_eq!(patched(list(200_000), ends(10_000)), list(190_000));
    assert_eq!(refused(list(200_000), heads(10_000)), not_applicable());
    let adds = vec![json!({"op": "add", "path": "/a/0", "value": 0}); 10_000];
    assert_eq!(refused(list(200_000), adds.into()), not_applicable());
}

#[test]
fn nothing_sinks_below_the_deepest_level() {
    let copies = json!({"op": "copy", "from": "/a", "path": "/a/a"});
    assert_eq!(refused(json!({"a": {}}), Value::Array(vec![copies; MAX_DEPTH])), not_applicable());
    let target: Value = (0..200).map(|n| (format!("m{n}"), json!({}))).collect();
    let moves = (1..200).map(|n| json!({"op": "move", "from": format!("/m{}", n - 1), "path": format!("/m{n}/x")}));
    assert_eq!(refused(target, moves.collect()), not_applicable());
    let chain = (1..=MAX_DEPTH + 1).map(|n| json!({"op": "add", "path": "/x".repeat(n), "value": {}}));
    assert_eq!(refused(json!({}), chain.collect()), not_applicable());
    let chain = (1..MAX_DEPTH).map(|n| json!({"op": "add", "path": "/x".repeat(n), "value": {}}));
    assert_eq!(depth(&patched(json!({}), chain.collect())).0, MAX_DEPTH);
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c/~]{1,2}", arbitrary_json(), 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn removing_undoes_adding(target in object(), value in arbitrary_json()) {
        let operations = json!([
            {"op": "add", "path": "/new", "value": value},
            {"op": "test", "path": "/new", "value": value},
            {"op": "remove", "path": "/new"},
        ]);
        prop_assert_eq!(patched(target.clone(), operations), target);
    }

    #[test]
    fn adding_undoes_removing(target in object()) {
        for (key, value) in target.as_object().unwrap() {
            let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            let operations = json!([{"op": "remove", "path": path}, {"op": "add", "path": path, "value": value}]);
            prop_assert_eq!(patched(target.clone(), operations), target.clone());
        }
    }

    #[test]
    fn moving_is_copying_and_removing(target in object(), value in arbitrary_json()) {
        let target = patched(target, json!([{"op": "add", "path": "/old", "value": value}]));
        let moved = patched(target.clone(), json!([{"op": "move", "from": "/old", "path": "/new"}]));
        let copied = json!([{"op": "copy", "from": "/old", "path": "/new"}, {"op": "remove", "path": "/old"}]);
        prop_assert_eq!(moved, patched(target, copied));
    }

    #[test]
    fn no_patch_makes_it_panic(
        target in arbitrary_json(),
        operations in prop::collection::vec((prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]), "(/[a0~-]{0,2}){0,3}", "(/[a0~-]{0,2}){0,3}", arbitrary_json()), 0..6),
        junk in arbitrary_json(),
    ) {
        let operations = operations.into_iter().map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
        let _ = json_patch(&target, &operations.collect());
        let _ = json_patch(&target, &junk);
    }
}
