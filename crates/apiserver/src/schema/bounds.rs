//! A definition and an object may each be as large as is allowed: what the two make together is bounded.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::validate::validate;
use super::{Rule, Schema, rules};

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget";
const TOO_MANY_STEPS: &str = "checking it against its schema takes too many steps";

/// A pattern that is large once it is compiled.
const LARGE: &str = "[ab]{0,1000}[ab]{0,1000}[ab]{0,1000}[ab]{0,1000}c";

fn parsed(property: Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"l": property}}), "s").expect("a schema")
}

/// A list of integers of which each has the rule.
fn with_rule_of_items(rule: &str) -> Schema {
    let item = json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]});
    parsed(json!({"type": "array", "maxItems": 100_000, "items": item}))
}

#[track_caller]
fn is_refused(schema: &Schema, list: Value, why: &str) {
    let errors = validate(schema, &json!({"l": list}), None);
    assert!(errors.iter().any(|error| error.detail.starts_with(why)), "{:?}", errors.first());
}

#[track_caller]
fn is_valid(schema: &Schema, list: Value) {
    assert_eq!(validate(schema, &json!({"l": list}), None), vec![]);
}

#[test]
fn what_a_rule_writes_out_is_paid_for_on_every_item() {
    let rules = [
        vec!["true"; 16_000].join("&&"),
        format!("[{}] != []", vec!["0"; 49_000].join(",")),
        format!("{:?} != ''", "x".repeat(90_000)),
    ];
    for rule in rules {
        // Of the original it costs nothing, or next to nothing.
        let schema = with_rule_of_items(&rule);
        is_valid(&schema, json!([1, 2, 3]));
        is_refused(&schema, json!(vec![1; 100_000]), OUT_OF_BUDGET);
    }
}

#[test]
fn a_pattern_is_paid_for_as_often_as_it_is_compiled_and_by_what_it_becomes() {
    let rules = json!([{"rule": format!("self.matches('{LARGE}')")}]);
    for (length, items, text, many) in [(5, 100_000, "c".to_owned(), 100_000), (300_000, 2, "a".repeat(300_000), 1)] {
        let item = json!({"type": "string", "maxLength": length, "x-kubernetes-validations": rules});
        let schema = parsed(json!({"type": "array", "maxItems": items, "items": item}));
        is_refused(&schema, json!(vec![text; many]), OUT_OF_BUDGET);
        is_valid(&schema, json!(["abc", "c"]));
    }
}

#[test]
fn comparing_is_paid_for_by_what_is_compared() {
    let rules = json!([{"rule": vec!["self == self"; 2_000].join("&&")}]);
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": {"list": list}, "x-kubernetes-validations": rules});
    let schema = parsed(schema);
    is_refused(&schema, json!({"list": vec![1; 100_000]}), OUT_OF_BUDGET);
    is_valid(&schema, json!({"list": [1, 2, 3]}));
}

#[test]
fn values_that_many_rules_read_are_paid_for_each_time() {
    let mut schema = json!({"type": "array", "items": {"type": "integer"}});
    for _ in 0..30 {
        let rules = json!([{"rule": "true"}]);
        schema = json!({"type": "object", "properties": {"o": schema}, "x-kubernetes-validations": rules});
    }
    let mut value = json!(vec![1; 500_000]);
    for _ in 0..30 {
        value = json!({"o": value});
    }
    is_refused(&parsed(schema), value, OUT_OF_BUDGET);
}

#[test]
fn fields_that_are_declared_cost_nothing_where_they_are_not() {
    let fields: Map<String, Value> = (0..5_000).map(|n| (format!("f{n}"), json!({"type": "string"}))).collect();
    let list = json!({"type": "array", "items": {"type": "object", "properties": fields}});
    let rules = json!([{"rule": "!has(self.list) || self.list.all(x, !has(x.f1) || x.f1 == 'a')"}]);
    let schema = json!({"type": "object", "properties": {"list": list}, "x-kubernetes-validations": rules});
    is_valid(&parsed(schema), json!({"list": vec![json!({}); 20_000]}));
}

#[test]
fn lists_that_a_rule_makes_are_bounded_when_it_is_admitted() {
    for rule in ["lists.range(1000000000).size() > self", "lists.range(self).size() > 0"] {
        let rules = json!([{"rule": rule}]);
        let schema = json!({"type": "integer", "x-kubernetes-validations": rules});
        let errors = Schema::parse(&json!({"type": "object", "properties": {"n": schema}}), "s").expect_err(rule);
        assert!(errors[0].detail.starts_with("estimated rule cost exceeds budget"), "{rule}: {errors:?}");
    }
    is_valid(&with_rule_of_items("lists.range(3).size() == 3"), json!([1]));
}

/// All of these are a few steps for the original, and more text than any machine has room for.
#[test]
fn what_a_text_grows_to_is_paid_before_there_is_room_for_it() {
    let text = json!({"type": "string", "maxLength": 1_000_000});
    let ruled = |rule: &str| {
        let rules = json!([{ "rule": rule }]);
        let pair = json!({"type": "object", "properties": {"a": text, "b": text}, "x-kubernetes-validations": rules});
        let whole = json!({"type": "object", "properties": {"l": pair}});
        Schema::parse(&whole, "s").unwrap_or_else(|errors| panic!("{rule}: {errors:?}"))
    };
    let (long, short) = (json!({"a": "a".repeat(900_000), "b": "b".repeat(900_000)}), json!({"a": "aa", "b": "b"}));
    for rule in [
        "self.a.replace('', self.b).size() > 0",
        "self.a.replace('a', self.b).size() > 0",
        "self.a.replace('a', self.b, 800000).size() > 0",
    ] {
        let schema = ruled(rule);
        is_refused(&schema, long.clone(), OUT_OF_BUDGET);
        is_valid(&schema, short.clone());
    }
    // What does not grow is not paid for twice, and what is written into another text is paid for once.
    for rule in ["self.a.replace('a', 'b').size() > 0", "'%s%s'.format([self.a, self.b]).size() > 0"] {
        let schema = ruled(rule);
        is_valid(&schema, long.clone());
        is_valid(&schema, short.clone());
    }
}

#[test]
fn a_rule_that_the_interpreter_gives_up_refuses_the_object() {
    let mut schema = parsed(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}));
    // Past those who judge rules: it stands for one that was admitted by mistake.
    let hostile = Rule { rule: "Widget{} == self".to_owned(), ..Rule::default() };
    let ruled = schema.properties.get_mut("l").expect("a field");
    Arc::make_mut(ruled).rules.insert(0, hostile);
    rules::compile(&mut schema, true);
    let errors = validate(&schema, &json!({"l": 1}), None);
    let told: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
    let given_up = "internal error: the interpreter gave up evaluating rule: Widget{} == self";
    assert_eq!(told, [given_up, "failed rule: self > 1"]);
}

#[test]
fn what_schemas_say_about_items_is_counted() {
    let numbers = |check: Value| parsed(json!({"type": "array", "items": check}));
    let all_of = |count: usize| numbers(json!({"type": "integer", "allOf": vec![json!({"minimum": 0}); count]}));
    is_refused(&all_of(3_000), json!(vec![1; 10_000]), TOO_MANY_STEPS);
    is_valid(&all_of(3_000), json!(vec![1; 1_000]));

    let one_of = numbers(json!({"type": "integer", "enum": (0..3_000).collect::<Vec<_>>()}));
    is_refused(&one_of, json!(vec![2_999; 10_000]), TOO_MANY_STEPS);
    is_valid(&one_of, json!(vec![2_999; 1_000]));

    let fields: Map<String, Value> = (0..3_000).map(|n| (format!("f{n}"), json!({"type": "string"}))).collect();
    let required: Vec<String> = fields.keys().cloned().collect();
    let objects = numbers(json!({"type": "object", "properties": fields, "required": required}));
    is_refused(&objects, json!(vec![json!({}); 10_000]), TOO_MANY_STEPS);

    let pattern = numbers(json!({"type": "string", "pattern": LARGE}));
    is_refused(&pattern, json!(["a".repeat(1 << 20)]), TOO_MANY_STEPS);
    is_valid(&pattern, json!(["c"]));
}

/// A second look at something that has not changed is no reason to let it pass.
#[test]
fn what_was_not_checked_is_not_forgiven() {
    let check = json!({"type": "integer", "allOf": vec![json!({"minimum": 5}); 3_000]});
    let schema = parsed(json!({"type": "array", "items": check}));
    let object = json!({"l": vec![1; 10_000]});
    let errors = validate(&schema, &object, Some(&object));
    assert!(errors.iter().any(|error| error.detail.starts_with(TOO_MANY_STEPS)), "{:?}", errors.first());
}
