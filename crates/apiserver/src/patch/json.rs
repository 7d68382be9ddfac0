//! `application/json-patch+json` (RFC 6902), with the liberties that the original takes and clients have come to
//! rely on: a missing field reads as null, `replace` adds, and list indices may count from the end.

use serde_json::Value;

use super::not_applicable;
use crate::decode::{MAX_DEPTH, depth, json_type};
use crate::refusal::Refusal;

/// How many operations one patch may have.
const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON the `copy` operations of one patch may add: a few of them can double an object many times.
const MAX_COPIED_BYTES: usize = 3 << 20;
/// How many values `move` operations may carry around. Each must be measured before it may sink deeper, which the
/// number of operations alone does not bound well enough.
const MAX_MOVED_VALUES: usize = 20_000_000;
/// How many items of lists may make room or close up. At the head of a long list that is all of them, each time.
const MAX_SHIFTED_ITEMS: usize = 100_000_000;

/// `target` after all `operations`, or a refusal if one of them does not apply.
pub fn json_patch(target: &Value, operations: &Value) -> Result<Value, Refusal> {
    let operations = read(operations)?;
    if operations.len() > MAX_OPERATIONS {
        let given = operations.len();
        return Err(Refusal::too_large(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {given}"
        )));
    }
    let mut run = Run { document: target.clone(), copied: 0, moved: 0, shifted: 0 };
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
    shifted: usize,
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
        let shifted = match parent {
            Value::Object(map) => {
                map.insert(key, value);
                0
            }
            Value::Array(items) if key == "-" => {
                items.push(value);
                0
            }
            Value::Array(items) => {
                // One more than there are items: the place after the last one.
                let at = index(&key, items.len() + 1)?;
                items.insert(at, value);
                items.len() - at
            }
            _ => return None,
        };
        self.count_shifted(shifted)
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        let (removed, shifted) = match self.parent(path)? {
            (Value::Object(map), key, _) => (map.remove(&key)?, 0),
            (Value::Array(items), key, _) => {
                let at = index(&key, items.len())?;
                (items.remove(at), items.len() - at)
            }
            _ => return None,
        };
        self.count_shifted(shifted)?;
        Some(removed)
    }

    fn count_shifted(&mut self, items: usize) -> Option<()> {
        self.shifted += items;
        (self.shifted <= MAX_SHIFTED_ITEMS).then_some(())
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
mod tests;
