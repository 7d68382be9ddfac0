//! `application/merge-patch+json` (RFC 7386).

use serde_json::{Map, Value};

use crate::decode::json_type;
use crate::refusal::Refusal;

/// `target` with `patch` merged into it.
pub fn merge_patch(target: &Value, patch: &Value) -> Result<Value, Refusal> {
    match patch {
        Value::Object(fields) => {
            let mut merged = target.clone();
            match &mut merged {
                Value::Object(map) => merge_fields(map, fields),
                other => *other = without_nulls(patch.clone()),
            }
            Ok(merged)
        }
        Value::Null => Err(Refusal::bad_request("Invalid JSON Patch")),
        other => Err(Refusal::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

fn merge_fields(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        match (target.get_mut(key), change) {
            (_, Value::Null) => {
                target.remove(key);
            }
            (Some(Value::Object(current)), Value::Object(fields)) => merge_fields(current, fields),
            // The original strips nulls inside a list only where no object stood before.
            (Some(current @ Value::Object(_)), list_or_scalar) => *current = list_or_scalar.clone(),
            _ => {
                target.insert(key.clone(), without_nulls(change.clone()));
            }
        }
    }
}

/// A value that is new to the target: its nulls have nothing to delete. Beyond the RFC, the original looks for them
/// in the objects of lists, too; the items of lists stay.
fn without_nulls(mut value: Value) -> Value {
    strip_nulls(&mut value);
    value
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, field| !field.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::decode::tests::arbitrary_json;

    fn merged(target: Value, patch: Value) -> Value {
        merge_patch(&target, &patch).unwrap()
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]})),
        ] {
            assert_eq!(merged(target, patch), expected);
        }
    }

    #[test]
    fn a_patch_is_an_object() {
        let refused = |patch| merge_patch(&json!({}), &patch).unwrap_err();
        assert_eq!(refused(Value::Null), Refusal::bad_request("Invalid JSON Patch"));
        let text = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
        assert_eq!(refused(json!([])), Refusal::bad_request(text));
    }

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", arbitrary_json(), 0..4).prop_map(|map| map.into_iter().collect())
    }

    /// Lists without nulls in their objects: whether those stay depends on what stood there before.
    fn settle_lists(value: &mut Value) {
        match value {
            Value::Object(map) => map.values_mut().for_each(settle_lists),
            Value::Array(_) => strip_nulls(value),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn a_patch_applied_twice_is_a_patch_applied_once(target in object(), patch in object()) {
            let mut patch = patch;
            settle_lists(&mut patch);
            let once = merged(target, patch.clone());
            prop_assert_eq!(merged(once.clone(), patch), once);
        }

        #[test]
        fn the_empty_patch_changes_nothing(target in object()) {
            prop_assert_eq!(merged(target.clone(), json!({})), target);
        }

        #[test]
        fn fields_that_are_not_mentioned_stay_and_nulls_go(target in object(), patch in object()) {
            let result = merged(target.clone(), patch.clone());
            for (key, value) in target.as_object().unwrap() {
                match patch.get(key) {
                    None => prop_assert_eq!(result.get(key), Some(value)),
                    Some(Value::Null) => prop_assert_eq!(result.get(key), None),
                    Some(_) => prop_assert!(result.get(key).is_some()),
                }
            }
        }
    }
}
