//! Records as large as a body can bring them. Whatever is done to them is done while nobody else writes, so it may take
//! time in proportion to their size and not to its square: that would be minutes in each of these tests.

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

/// About as many one-letter fields as three megabytes hold.
const MANY: usize = 200_000;

fn numbers(range: std::ops::Range<usize>) -> FieldSet {
    let elements = range.map(|n| (PathElement::Value(Literal(json!(n))), fields::Node::leaf()));
    FieldSet::of_nodes(elements.collect())
}

fn record(entries: impl Iterator<Item = (String, Value)>) -> Value {
    let entry = |(manager, fields): (String, Value)| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
               "fieldsV1": fields})
    };
    entries.map(entry).collect()
}

fn written(reset: &FieldSet) -> Write<'_> {
    Write { manager: "writer", api_version: "example.com/v1", subresource: "", now: at(1), reset, blank: None }
}

#[test]
fn numbers_in_the_order_of_their_text_are_read_in_the_order_of_their_size() {
    // As text these ascend, as numbers they descend.
    let texts = (0..MANY).map(|n| (format!("v:-{}", 100_000 + n), json!({})));
    let set = FieldSet::parse(&Value::Object(texts.collect())).expect("a set");
    let first = format!("v:-{}", 100_000 + MANY - 1);
    let read: Vec<String> = set.nodes().map(|(element, _)| element.to_text()).collect();
    assert_eq!((read.len(), read[0].as_str(), read[MANY - 1].as_str()), (MANY, first.as_str(), "v:-100000"));
}

#[test]
fn of_one_element_written_twice_the_last_counts() {
    let set = FieldSet::parse(&json!({"v:1": {"f:a": {}}, "v:1.0": {"f:b": {}}})).expect("a set");
    assert_eq!(set.to_value(), json!({"v:1": {"f:b": {}}}));
}

#[test]
fn a_record_of_very_many_managers_is_folded_into_few() {
    const MANAGERS: usize = 30_000;
    let entries = record((0..MANAGERS).map(|n| (format!("m{n}"), json!({format!("f:a{n}"): {}}))));
    let old = json!({"metadata": {"uid": "1"}, "spec": 0});
    let mut new = json!({"metadata": {"uid": "1", "managedFields": entries}, "spec": 1});
    track_update(Some(&old), &mut new, &Schema::default(), &written(&FieldSet::default()));
    let managers = recorded(&new);
    // Nothing of them has a time, so they are folded by name and the writer, who has one, is the last to go.
    assert_eq!(managers.iter().count(), 10);
    let owned: usize = managers.iter().map(|entry| entry.set.paths().len()).sum();
    assert_eq!(owned, MANAGERS + 1, "what they own stays owned");
}

#[test]
fn very_many_managers_named_twice_are_each_there_once() {
    const MANAGERS: usize = 20_000;
    let twice = (0..2 * MANAGERS).map(|n| (format!("m{}", n % MANAGERS), json!({format!("f:{}", n / MANAGERS): {}})));
    let managers = Managers::parse(&record(twice)).expect("a record");
    assert_eq!(managers.iter().count(), MANAGERS);
    assert!(managers.iter().all(|entry| entry.set == FieldSet::of_fields(&[&["1"]])), "the last entry counts");
}

#[test]
fn very_many_managers_and_a_large_change_are_held_against_each_other() {
    let entries = record((0..10_000).map(|n| (format!("m{n}"), json!({"f:z": {}}))));
    let old = json!({"metadata": {"uid": "1", "managedFields": entries}});
    let fields = (0..MANY / 2).map(|n| (format!("a{n}"), json!(1)));
    let mut new = Value::Object(fields.collect());
    new["metadata"] = old["metadata"].clone();
    track_update(Some(&old), &mut new, &Schema::default(), &written(&FieldSet::default()));
    let writer =
        recorded(&new).iter().find(|entry| entry.manager.name == "writer").map(|entry| entry.set.paths().len());
    assert_eq!(writer, Some(MANY / 2));
}

#[test]
fn what_comes_before_everything_that_was_there_is_compared_like_what_comes_after() {
    let old = Value::Object((0..MANY / 2).map(|n| (format!("b{n}"), json!({}))).collect());
    let grown = (0..MANY / 2).map(|n| (format!("b{n}"), json!({"x": 1})));
    let new = Value::Object(grown.chain((0..MANY / 2).map(|n| (format!("a{n}"), json!(1)))).collect());
    let added = compare(&old, &new, &Schema::default()).added;
    assert_eq!(added.paths().len(), MANY);
}

#[test]
fn an_applier_among_very_many_gives_up_what_nobody_else_owns() {
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let schema = schema(&json!({"type": "object", "properties": {"tags": set}}));
    let reset = FieldSet::default();
    let mut live = json!({"metadata": {}, "tags": (0..10_000).map(|n| format!("t{n}")).collect::<Vec<_>>()});
    let entry = |n: usize| {
        json!({"manager": format!("m{n}"), "operation": "Apply", "apiVersion": "example.com/v1",
               "fieldsType": "FieldsV1", "fieldsV1": {"f:tags": {format!("v:\"t{n}\""): {}}}})
    };
    live["metadata"]["managedFields"] = (0..10_000).map(entry).collect();
    let write = Write { manager: "m7", ..written(&reset) };
    let object = apply(Some(&live), &json!({"metadata": {}}), &schema, &write, false).expect("no conflict");
    let tags = object["tags"].as_array().expect("tags");
    assert_eq!((tags.len(), tags.contains(&json!("t7"))), (9_999, false));
}

/// A name that stands in the path of everything below it, so often that all paths together are a hundred times what any
/// answer may be.
const LONG: usize = 64 << 10;
const BELOW_LONG: usize = 5_000;
const LONGEST_ANSWER: usize = 4 << 20;

#[test]
fn a_configuration_with_very_much_wrong_is_refused_in_few_words() {
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": item});
    let schema = schema(&json!({"type": "object", "properties": {"list": list}}));
    let unknown = (0..BELOW_LONG).map(|n| (format!("a{n}"), json!(1)));
    let item = unknown.chain([("name".to_owned(), json!("x".repeat(LONG)))]);
    let config = json!({"metadata": {"name": "n"}, "list": [Value::Object(item.collect())]});
    let refused = apply(None, &config, &schema, &written(&FieldSet::default()), false).expect_err("undeclared fields");
    let text = refused.to_string();
    assert!(text.len() < LONGEST_ANSWER, "{} bytes", text.len());
    assert!(text.contains(".a0: field not declared in schema") && text.ends_with("and more"), "{}", &text[..200]);
}

#[test]
fn very_many_conflicts_are_counted_and_few_are_told() {
    let key = "x".repeat(LONG);
    let object = |number: i32| {
        let fields: Value = (0..BELOW_LONG).map(|n| (format!("a{n}"), json!(number))).collect();
        json!({"metadata": {"name": "n"}, "spec": {&*key: fields}})
    };
    let (reset, mut live) = (FieldSet::default(), object(1));
    track_update(None, &mut live, &Schema::default(), &written(&reset));
    let other = Write { manager: "other", ..written(&reset) };
    let refused = apply(Some(&live), &object(2), &Schema::default(), &other, false).expect_err("conflicts");
    let refusal = crate::refusal::Refusal::from(refused);
    assert!(refusal.message.starts_with("Apply failed with 5000 conflicts: conflicts with \"writer\""));
    assert!(refusal.message.ends_with("and more"));
    let text = refusal.to_status().to_string();
    assert!(text.len() < LONGEST_ANSWER, "{} bytes", text.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The laws of sets are tried on small ones; here one set is passed over in strides.
    #[test]
    fn few_among_many_are_found(few in subsequence((0_usize..300).collect::<Vec<_>>(), 0..40), from in 0_usize..300) {
        let many = numbers(from..300);
        let small = FieldSet::union_of(few.iter().map(|n| numbers(*n..n + 1)).collect());
        let (found, left): (Vec<usize>, Vec<usize>) = few.iter().copied().partition(|n| *n >= from);
        let set = |of: Vec<usize>| FieldSet::union_of(of.into_iter().map(|n| numbers(n..n + 1)).collect());
        prop_assert_eq!(small.intersection(&many), set(found.clone()));
        prop_assert_eq!(many.intersection(&small), set(found));
        prop_assert_eq!(small.difference(&many), set(left.clone()));
        prop_assert_eq!(small.recursive_difference(&many), set(left));
    }
}
