//! What holds for every schema and every object, however odd; and how hostile ones end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::prune::prune;
use super::validate::validate;
use super::{Schema, defaults};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|f: f64| json!(f)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Schemas over the same few names as the objects, so that the two meet.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 2, "pattern": "^a"})),
        Just(json!({"type": "string", "default": "b", "enum": ["a", "b"]})),
        Just(json!({"type": "integer", "minimum": 0, "default": 1})),
        Just(json!({"type": "integer", "nullable": true, "multipleOf": 2})),
        Just(json!({"type": "number", "exclusiveMaximum": true, "maximum": 5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}, {"rule": "self == oldSelf"}]})
        ),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (prop::collection::btree_map("[a-c]", inner.clone(), 0..3), any::<bool>()).prop_map(
                |(properties, keep)| {
                    let mut schema = json!({"type": "object", "properties": properties, "default": {}});
                    if keep {
                        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                    }
                    schema
                }
            ),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values, "maxProperties": 3})),
        ]
    })
}

fn whole_schema() -> impl Strategy<Value = Option<Schema>> {
    any_schema().prop_map(|spec| Schema::parse(&json!({"type": "object", "properties": {"a": spec}}), "s").ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn anything_can_be_parsed(raw in any_json()) {
        _ = Schema::parse(&raw, "s");
    }

    #[test]
    fn pruning_and_defaulting_are_done_once(schema in whole_schema(), mut object in any_json()) {
        prop_assume!(schema.is_some());
        let schema = schema.unwrap_or_default();
        prune(&schema, &mut object);
        let pruned = object.clone();
        prop_assert_eq!(prune(&schema, &mut object), Vec::<String>::new());
        prop_assert_eq!(&object, &pruned);
        defaults::apply(&schema, &mut object);
        let defaulted = object.clone();
        defaults::apply(&schema, &mut object);
        prop_assert_eq!(&object, &defaulted);
        // Admitted defaults are pruned and complete: they bring nothing that would be dropped.
        prop_assert_eq!(prune(&schema, &mut object), Vec::<String>::new());
    }

    #[test]
    fn any_object_is_judged_and_what_is_unchanged_is_forgiven(schema in whole_schema(), object in any_json()) {
        prop_assume!(schema.is_some());
        let schema = schema.unwrap_or_default();
        _ = validate(&schema, &object, None);
        let object = json!({"a": object});
        if let Some(a) = schema.properties.get("a") && super::correlate::unchanged(a, &object["a"], &object["a"]) {
            // Of types and bounds: a rule that cannot be decided on a forgiven value is an error all the same.
            prop_assert_eq!(super::validate::structure(&schema, &object, Some(&object), "").len(), 0);
        }
    }

    #[test]
    fn any_rule_is_judged(rule in "[a-z.()\\[\\]{}'\"!&|?:<>=+*/%0-9 ,\\\\-]{0,40}") {
        _ = with_rule(&rule);
    }
}

fn with_rule(rule: &str) -> Result<Schema, Vec<crate::refusal::FieldError>> {
    Schema::parse(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": rule}]}}}),
        "s",
    )
}

#[test]
fn deep_rules_are_refused_and_the_deepest_admitted_ones_run() {
    let hostile = [
        "(".repeat(5000),
        "!".repeat(5000),
        "-".repeat(5000),
        "[".repeat(5000),
        "self.".repeat(5000),
        format!("{}true", "true ? true : ".repeat(5000)),
        format!("1{}", "+1".repeat(5000)),
        "self.all(x, ".repeat(500),
        "a".repeat(200_000),
    ];
    for rule in hostile {
        assert!(with_rule(&rule).is_err());
    }
    // As deep as is admitted must still fit the stack of an ordinary thread, when parsed and when run.
    let deep = format!("{}self.size() > 0{}", "(".repeat(90), ")".repeat(90));
    let schema = with_rule(&deep).expect("deep, but not too deep");
    assert_eq!(validate(&schema, &json!({"l": [1]}), None), vec![]);
    assert_eq!(validate(&schema, &json!({"l": []}), None).len(), 1);
}

#[test]
fn rules_that_our_interpreter_makes_quadratic_run_out_of_budget_instead_of_time() {
    // Linear for the original, so it admits the rule; our interpreter copies the list for every item.
    let schema = Schema::parse(
        &json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 500_000,
            "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self.filter(x, x > 1).size() >= 0"}]}}}),
        "s",
    )
    .expect("an affordable rule");
    for (items, why) in [
        (60_000, "validation failed due to running out of cost budget"),
        (500_000, "'operation cancelled: actual cost limit exceeded'"),
    ] {
        let errors = validate(&schema, &json!({"l": vec![1; items]}), None);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].detail.starts_with(why), "{}", errors[0].detail);
    }
    // And what is small is not bothered.
    assert_eq!(validate(&schema, &json!({"l": vec![1; 200]}), None), vec![]);
}

#[test]
fn one_long_item_among_many_does_not_make_a_rule_too_costly() {
    let schema = Schema::parse(
        &json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 900,
            "items": {"type": "string", "maxLength": 4000},
            "x-kubernetes-validations": [{"rule": "self.all(x, x.matches('^[a-z]*[a-z0-9.]$'))"}]}}}),
        "s",
    )
    .expect("an affordable rule");
    let mut items = vec!["a".to_owned(); 899];
    items.push("b".repeat(4000));
    assert_eq!(validate(&schema, &json!({"l": items}), None), vec![]);
    items.push("B".to_owned());
    assert_eq!(validate(&schema, &json!({"l": items[1..]}), None).len(), 1);
}

/// A long name near the root stands in every path below it: here all of them together are hundreds of megabytes.
#[test]
fn an_object_with_very_much_wrong_is_refused_in_few_words() {
    const LONG: usize = 64 << 10;
    const BELOW: usize = 5_000;
    const LONGEST_ANSWER: usize = 4 << 20;
    let strict = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
                          "x-kubernetes-preserve-unknown-fields": true});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    let ruled = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]});
    let map_of = |value: &Value| json!({"type": "object", "additionalProperties": value});
    let cases = [
        (json!({"type": "integer"}), json!("x"), true),
        (strict, json!({"n": "x"}), true),
        (embedded, json!({}), false),
        (set, json!([1, 1]), true),
        (ruled, json!(1), true),
    ];
    for (schema, wrong, is_forgiven) in cases {
        let openapi = json!({"type": "object", "properties": {"spec": map_of(&map_of(&schema))}});
        let schema = Schema::parse(&openapi, "s").expect("valid");
        let below: Value = (0..BELOW).map(|n| (format!("a{n}"), wrong.clone())).collect();
        let object = json!({"spec": {"x".repeat(LONG): below}});
        let errors = validate(&schema, &object, None);
        let told: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(!errors.is_empty() && told < LONGEST_ANSWER, "{} faults in {told} bytes: {openapi}", errors.len());
        // However much it is, what was so before is forgiven.
        assert_eq!(validate(&schema, &object, Some(&object)).is_empty(), is_forgiven, "{openapi}");
        let refusal = crate::refusal::Refusal::invalid("g", "K", "n", &errors);
        assert!(refusal.to_status().to_string().len() < 2 * LONGEST_ANSWER);
    }
    let openapi = json!({"type": "object", "properties": {"spec": map_of(&json!({"type": "object"}))}});
    let schema = Schema::parse(&openapi, "s").expect("valid");
    let below: Value = (0..BELOW).map(|n| (format!("a{n}"), json!(1))).collect();
    let mut object = json!({"spec": {"x".repeat(LONG): below}});
    let told: usize = prune(&schema, &mut object).iter().map(String::len).sum();
    assert!(told > 0 && told < LONGEST_ANSWER, "{told} bytes");
    assert_eq!(object["spec"]["x".repeat(LONG)], json!({}), "all of it is dropped, told or not");
}

#[test]
fn a_schema_with_very_much_wrong_is_refused_in_few_words() {
    for (long, nested) in [(64 << 10, json!({})), (3 << 10, json!({})), (3 << 10, json!({"type": "nope"}))] {
        let below: Value = (0..5_000).map(|n| (format!("a{n}"), nested.clone())).collect();
        let inner = json!({"type": "object", "properties": below});
        let openapi = json!({"type": "object", "properties": {"x".repeat(long): inner}});
        let errors = Schema::parse(&openapi, "s").expect_err("nothing below says what it is");
        let told: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(told < 4 << 20, "{} faults in {told} bytes", errors.len());
    }
}

/// Each complaint about a rule shows the line that it is about.
#[test]
fn rules_with_very_much_wrong_are_refused_in_few_words() {
    for wrong in ["nope", "1", "self.nope", "self.matches(5)", "@"] {
        let rule = vec![wrong; 15_000 / (wrong.len() + 2)].join("||");
        let rules = vec![json!({"rule": rule, "messageExpression": rule}); 40];
        let openapi =
            json!({"type": "object", "properties": {"s": {"type": "string", "x-kubernetes-validations": rules}}});
        let errors = Schema::parse(&openapi, "s").expect_err("no rule of that kind is sound");
        let told: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!(told < 8 << 20, "{wrong}: {} faults in {told} bytes", errors.len());
    }
}

/// Who looked at the whole list for each of its items would take minutes.
#[test]
fn a_long_list_that_breaks_a_newer_rule_is_forgiven_at_once() {
    let ruled = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]});
    let list = json!({"type": "array", "maxItems": 200_000, "items": ruled});
    let schema = Schema::parse(&json!({"type": "object", "properties": {"l": list}}), "s").expect("an affordable rule");
    let object = json!({"l": vec![1; 200_000]});
    assert_eq!(validate(&schema, &object, Some(&object)), vec![]);
    assert!(!validate(&schema, &object, Some(&json!({"l": [1]}))).is_empty());
}
