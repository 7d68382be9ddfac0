//! `application/json-patch+json` (RFC 6902), with the liberties that the original takes and clients have come to
//! rely on: a missing field reads as null, `replace` adds, and list indices may count from the end.

use serde_json::Value;

use super::not_applicable;
use crate::decode::{MAX_DEPTH, depth};
use crate::names::json_type;
use crate::refusal::Refusal;

/// How many operations one patch may have.
const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON the `copy` operations of one patch may add: a few of them can double an object many times.
const MAX_COPIED_BYTES: usize = 3 << 20;
/// How many values `move` operations may carry around. Each must be measured before it may sink deeper, which the
/// number of operations alone does not bound well enough.
const MAX_MOVED_VALUES: usize = 20_000_000;

/// `target` after all `operations`, or a refusal if one of them does not apply.
pub fn json_patch(target: &Value, operations: &Value) -> Result<Value, Refusal> {
    let operations = read(operations)?;
    if operations.len() > MAX_OPERATIONS {
        let given = operations.len();
        return Err(Refusal::too_large(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {given}"
        )));
    }
    let mut run = Run { document: target.clone(), copied: 0, moved: 0 };
    for operation in operations {
        // Why it does not apply is known here and lost in the answer, as in the original.
        run.perform(&operation).ok_or_else(not_applicable)?;
    }
    Ok(run.document)
}

/// One operation. Texts that are absent are only missed when they are needed.
struct Operation<'a> {
    op: Option<&'a str>,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: Option<&'a Value>,
}

fn read(operations: &Value) -> Result<Vec<Operation<'_>>, Refusal> {
    let wrong = |value: &Value, wanted: &str| {
        let found = json_type(value);
        Refusal::bad_request(format!("error decoding patch: json: cannot unmarshal {found} into Go {wanted}"))
    };
    let list = match operations {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        other => return Err(wrong(other, "value of type []handlers.jsonPatchOp")),
    };
    let read_one = |item| {
        let text = |field: &str| match Value::get(item, field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(wrong(other, &format!("struct field jsonPatchOp.{field} of type string"))),
        };
        match item {
            Value::Object(_) | Value::Null => {}
            other => return Err(wrong(other, "value of type handlers.jsonPatchOp")),
        }
        Ok(Operation { op: text("op")?, path: text("path")?, from: text("from")?, value: item.get("value") })
    };
    list.iter().map(read_one).collect()
}

/// A patch under way. `None` from its methods means that the operation does not apply.
struct Run {
    document: Value,
    copied: usize,
    moved: usize,
}

impl Run {
    fn perform(&mut self, operation: &Operation<'_>) -> Option<()> {
        let path = operation.path?;
        match operation.op? {
            "add" => self.add(path, operation.value.cloned().unwrap_or_default()),
            "remove" => self.remove(path).map(drop),
            "replace" => self.replace(path, operation.value.cloned().unwrap_or_default()),
            "move" => {
                let value = self.remove(operation.from?)?;
                let (depth, size) = depth(&value);
                self.moved += size;
                (self.moved <= MAX_MOVED_VALUES).then_some(())?;
                self.insert(path, value, depth)
            }
            "copy" => {
                let value = self.get(operation.from?)?.clone();
                // A missing field is copied as null, which weighs nothing.
                self.copied += if value.is_null() { 0 } else { value.to_string().len() };
                (self.copied <= MAX_COPIED_BYTES).then_some(())?;
                self.add(path, value)
            }
            "test" => self.test(path, operation.value.unwrap_or(&Value::Null)),
            _ => None,
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Option<()> {
        let (depth, _) = depth(&value);
        self.insert(path, value, depth)
    }

    /// Puts a value of known depth in its place, unless it would hang too deep.
    fn insert(&mut self, path: &str, value: Value, depth: usize) -> Option<()> {
        let (parent, key, level) = self.parent(path)?;
        (level + depth <= MAX_DEPTH).then_some(())?;
        match parent {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                // One more than there are items: the place after the last one.
                let at = index(&key, items.len() + 1)?;
                items.insert(at, value);
            }
            _ => return None,
        }
        Some(())
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        match self.parent(path)? {
            (Value::Object(map), key, _) => map.remove(&key),
            (Value::Array(items), key, _) => index(&key, items.len()).map(|at| items.remove(at)),
            _ => None,
        }
    }

    fn replace(&mut self, path: &str, value: Value) -> Option<()> {
        let (depth, _) = depth(&value);
        if path.is_empty() {
            (value.is_object() || value.is_array()).then_some(())?;
            self.document = value;
            return Some(());
        }
        let (parent, key, level) = self.parent(path)?;
        (level + depth <= MAX_DEPTH).then_some(())?;
        match parent {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) => {
                let at = index(&key, items.len())?;
                items[at] = value;
            }
            _ => return None,
        }
        Some(())
    }

    fn test(&mut self, path: &str, expected: &Value) -> Option<()> {
        let actual = if path.is_empty() { &self.document } else { self.get(path)? };
        (actual == expected).then_some(())
    }

    /// The value at `path`; null for a field that is missing from an existing object.
    fn get(&mut self, path: &str) -> Option<&Value> {
        match self.parent(path)? {
            (Value::Object(map), key, _) => Some(map.get(&key).unwrap_or(&Value::Null)),
            (Value::Array(items), key, _) => {
                let at = index(&key, items.len())?;
                items.get(at)
            }
            _ => None,
        }
    }

    /// What holds the last element of `path`, that element's name, and how many levels lie above it. As in the
    /// original, whatever stands before the first slash is ignored.
    fn parent(&mut self, path: &str) -> Option<(&mut Value, String, usize)> {
        let mut keys = path.split('/').skip(1).map(unescape);
        let mut key = keys.next()?;
        let mut parent = &mut self.document;
        let mut level = 1;
        for next in keys {
            parent = match parent {
                Value::Object(map) => map.get_mut(&key)?,
                Value::Array(items) => {
                    let at = index(&key, items.len())?;
                    &mut items[at]
                }
                _ => return None,
            };
            key = next;
            level += 1;
        }
        Some((parent, key, level))
    }
}

/// The index that `key` names in a list of that length; negative ones count from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let given: i64 = key.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let at = if given < 0 { given.checked_add(length)? } else { given };
    usize::try_from(at).ok().filter(|_| at < length)
}

/// One element of a JSON pointer. One pass, so that `~01` is `~1` and not `/`.
fn unescape(element: &str) -> String {
    if !element.contains('~') {
        return element.to_owned();
    }
    let mut text = String::with_capacity(element.len());
    let mut rest = element;
    while let Some(at) = rest.find('~') {
        text.push_str(&rest[..at]);
        let (decoded, length) = match rest.as_bytes().get(at + 1) {
            Some(b'0') => ('~', 2),
            Some(b'1') => ('/', 2),
            _ => ('~', 1),
        };
        text.push(decoded);
        rest = &rest[at + length..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
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
            (
                json!({"op": "replace", "path": "/b/e~0f", "value": []}),
                json!({"a": [1, 2], "b": {"c/d": 1, "e~f": []}}),
            ),
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
        let double =
            json!([{"op": "copy", "from": "/a", "path": "/a/-"}, {"op": "copy", "from": "/a", "path": "/b/-"}]);
        let operations: Vec<Value> = std::iter::repeat_n(double.as_array().unwrap().clone(), 500).flatten().collect();
        assert_eq!(refused(json!({"a": ["x".repeat(100)], "b": []}), operations.into()), not_applicable());
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
}
