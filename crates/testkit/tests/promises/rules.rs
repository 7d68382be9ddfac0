//! Validation rules in CEL, of custom objects and of the definitions that carry them.

use serde_json::{Value, json};

use crate::widgets::{DEFINITIONS, Widgets, definition, properties};
use crate::world::{MERGE, World};

promises!(
    a_broken_rule_is_invalid_with_its_message,
    a_rule_without_a_message_shows_itself,
    a_message_may_be_computed,
    a_rule_may_name_reason_and_field,
    a_rule_may_compare_with_the_old_value,
    a_transition_rule_does_not_run_on_create,
    a_rule_sees_the_name_of_its_object,
    a_rule_runs_on_every_item,
    rules_know_the_libraries,
    a_broken_rule_of_an_untouched_field_is_let_be,
    rules_run_after_the_schema_only,
    an_optional_old_value_lets_a_transition_rule_run_always,
    a_definition_with_a_malformed_rule_is_refused,
    a_definition_with_a_rule_that_reads_nonsense_is_refused,
    a_definition_with_a_rule_of_the_wrong_type_is_refused,
    a_definition_with_a_rule_that_costs_too_much_is_refused,
    lists_that_a_rule_makes_and_compares_count,
    a_rule_that_costs_too_much_on_an_object_refuses_it,
    one_long_item_does_not_make_a_rule_cost_too_much,
    status_has_rules_of_its_own,
);

fn rule(of: &str, with: Value) -> Value {
    let mut rule = json!({"rule": of});
    rule.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    rule
}

async fn install(world: &World, rules: Value) -> Widgets {
    let mut schema = properties(json!({
        "min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string", "maxLength": 20},
        "list": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}},
    }));
    schema["x-kubernetes-validations"] = rules;
    world.install(definition(schema)).await
}

/// Creates a widget and expects to be refused with these words about it.
async fn refused(world: &World, widgets: &Widgets, spec: Value, why: &str) {
    let answer = world.post(&widgets.path(), widgets.widget("a", spec)).await.refused(422, "Invalid");
    answer.says(&format!("Widget.{} \"a\" is invalid: {why}", widgets.group));
}

async fn a_broken_rule_is_invalid_with_its_message(world: World) {
    let rules = json!([rule(
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        json!({"message": "min must not be above max"})
    )]);
    let widgets = install(&world, rules).await;
    refused(&world, &widgets, json!({"min": 2, "max": 1}), "spec: Invalid value: min must not be above max").await;
    world.post(&widgets.path(), widgets.widget("a", json!({"min": 1, "max": 2}))).await.code(201);
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"min": 3}})).await.refused(422, "Invalid");
}

async fn a_rule_without_a_message_shows_itself(world: World) {
    let widgets = install(&world, json!([rule("!has(self.min) || self.min > 0", json!({}))])).await;
    refused(&world, &widgets, json!({"min": 0}), "spec: Invalid value: failed rule: !has(self.min) || self.min > 0")
        .await;
}

async fn a_message_may_be_computed(world: World) {
    let expression = "'the name ' + self.name + ' is taken'";
    let rules = json!([rule(
        "!has(self.name) || self.name != 'taken'",
        json!({"messageExpression": expression, "message": "not shown"})
    )]);
    let widgets = install(&world, rules).await;
    refused(&world, &widgets, json!({"name": "taken"}), "spec: Invalid value: the name taken is taken").await;
}

async fn a_rule_may_name_reason_and_field(world: World) {
    let rules = json!([
        rule("has(self.min)", json!({"message": "say how many", "reason": "FieldValueRequired", "fieldPath": ".min"})),
        rule(
            "!has(self.max)",
            json!({"message": "not allowed here", "reason": "FieldValueForbidden", "fieldPath": ".max"})
        ),
    ]);
    let widgets = install(&world, rules).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"max": 1}))).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueRequired", "spec.min"), ("FieldValueForbidden", "spec.max")]);
    let answer = answer.mentions("spec.min: Required value: say how many");
    answer.mentions("spec.max: Forbidden: not allowed here");
}

async fn a_rule_may_compare_with_the_old_value(world: World) {
    let schema = properties(json!({
        "size": {"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf", json!({"message": "size never shrinks"}))]},
    }));
    let widgets = world.install(definition(schema)).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"size": 5}))).await.code(201);
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"size": 6}})).await.code(200);
    let answer = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"size": 5}})).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "spec.size")]);
    answer.mentions("spec.size: Invalid value: 5: size never shrinks");
}

async fn a_transition_rule_does_not_run_on_create(world: World) {
    let widgets = install(&world, json!([rule("oldSelf == self", json!({"message": "immutable"}))])).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"min": 1}))).await.code(201);
    let answer = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"min": 2}})).await.refused(422, "Invalid");
    answer.mentions("spec: Invalid value: immutable");
    world.patch(MERGE, &widgets.one("a"), json!({"metadata": {"labels": {"l": "1"}}})).await.code(200);
}

async fn a_rule_sees_the_name_of_its_object(world: World) {
    let mut definition = definition(properties(json!({})));
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([rule("self.metadata.name.startsWith('w-')", json!({"message": "names start with w-"}))]);
    let widgets = world.install(definition).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({}))).await.refused(422, "Invalid");
    answer.says(&format!("Widget.{} \"a\" is invalid: <nil>: Invalid value: names start with w-", widgets.group));
    world.post(&widgets.path(), widgets.widget("w-a", json!({}))).await.code(201);
}

async fn a_rule_runs_on_every_item(world: World) {
    let item = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [rule("self != 'bad'", json!({"message": "no bad"}))]});
    let schema = properties(json!({"list": {"type": "array", "maxItems": 9, "items": item}}));
    let widgets = world.install(definition(schema)).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"list": ["good", "bad"]}))).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "spec.list[1]")]);
    answer.mentions("spec.list[1]: Invalid value: \"bad\": no bad");
}

async fn rules_know_the_libraries(world: World) {
    for (expression, good, bad) in [
        ("self.list.all(x, x.matches('^[a-z]+$'))", json!({"list": ["ab"]}), json!({"list": ["a1"]})),
        ("self.list.exists_one(x, x == 'a')", json!({"list": ["a", "b"]}), json!({"list": ["a", "a"]})),
        ("quantity(self.name).isLessThan(quantity('1Gi'))", json!({"name": "500Mi"}), json!({"name": "2Gi"})),
        ("duration(self.name) > duration('1m')", json!({"name": "90s"}), json!({"name": "30s"})),
        (
            "isURL(self.name) && url(self.name).getScheme() == 'https'",
            json!({"name": "https://x"}),
            json!({"name": "http://x"}),
        ),
        ("self.list.isSorted()", json!({"list": ["a", "b"]}), json!({"list": ["b", "a"]})),
        (
            "size(self.list) == 0 || self.name in self.list",
            json!({"name": "a", "list": ["a"]}),
            json!({"name": "b", "list": ["a"]}),
        ),
        ("self.name.lowerAscii() == self.name", json!({"name": "abc"}), json!({"name": "aBc"})),
        ("has(self.min) ? self.min > 0 : true", json!({}), json!({"min": 0})),
        ("ip.isCanonical(self.name)", json!({"name": "::1"}), json!({"name": "0:0::1"})),
        ("self.name.size() <= 3", json!({"name": "äöü"}), json!({"name": "abcd"})),
        ("size(self.name) == 1", json!({"name": "日"}), json!({"name": "日本"})),
        (r"self.name.matches('^\\d\\w$')", json!({"name": "1a"}), json!({"name": "٣a"})),
        (r"self.name.matches('^\\w$')", json!({"name": "_"}), json!({"name": "é"})),
        (
            "timestamp(self.name).getHours('-05:00') == 19",
            json!({"name": "2026-01-01T00:00:00Z"}),
            json!({"name": "2026-01-01T01:00:00Z"}),
        ),
        (
            "timestamp(self.name).getDate('America/New_York') == 31",
            json!({"name": "2026-01-01T00:00:00Z"}),
            json!({"name": "2026-01-01T06:00:00Z"}),
        ),
        ("quantity(self.name) == quantity('1Gi')", json!({"name": "1024Mi"}), json!({"name": "1Mi"})),
        ("ip(self.name) == ip('::1')", json!({"name": "0:0::1"}), json!({"name": "::2"})),
        ("bool(self.name)", json!({"name": "true"}), json!({"name": "maybe"})),
    ] {
        let widgets = install(&world, json!([rule(expression, json!({}))])).await;
        world.post(&widgets.path(), widgets.widget("good", good)).await.code(201);
        world.post(&widgets.path(), widgets.widget("bad", bad)).await.refused(422, "Invalid");
    }
}

async fn a_broken_rule_of_an_untouched_field_is_let_be(world: World) {
    let schema = properties(json!({"size": {"type": "integer"}, "other": {"type": "integer"}}));
    let widgets = world.install(definition(schema)).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"size": 50}))).await.ok();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/x-kubernetes-validations";
    let patch = json!([{"op": "add", "path": path, "value": [rule("self < 10", json!({}))]}]);
    world.patch(crate::world::JSON, &widgets.definition, patch).await.ok();
    let probe = widgets.widget("probe", json!({"size": 11}));
    let in_force = async {
        while world.post(&format!("{}?dryRun=All", widgets.path()), probe.clone()).await.code != 422 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, in_force).await.expect("the rule never came into force");
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"other": 1}})).await.code(200);
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"size": 51}})).await.refused(422, "Invalid");
}

async fn rules_run_after_the_schema_only(world: World) {
    let widgets = install(&world, json!([rule("self.min > 5", json!({"message": "more"}))])).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"min": "text"}))).await.refused(422, "Invalid");
    let first = answer.body["details"]["causes"][0].clone();
    assert_eq!((&first["reason"], &first["field"]), (&json!("FieldValueTypeInvalid"), &json!("spec.min")));
    let last = answer.body["details"]["causes"][1].clone();
    assert_eq!(
        last["message"],
        "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    );
}

async fn an_optional_old_value_lets_a_transition_rule_run_always(world: World) {
    let rules = json!([rule(
        "oldSelf.hasValue() || self.min == 1",
        json!({"optionalOldSelf": true, "message": "starts at one"})
    )]);
    let widgets = install(&world, rules).await;
    world
        .post(&widgets.path(), widgets.widget("a", json!({"min": 2})))
        .await
        .refused(422, "Invalid")
        .mentions("starts at one");
    world.post(&widgets.path(), widgets.widget("a", json!({"min": 1}))).await.code(201);
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"min": 2}})).await.code(200);
}

const RULE: &str = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";

async fn a_definition_with_a_malformed_rule_is_refused(world: World) {
    for expression in ["self.", "self.nope == 1", "undeclared > 1", "self.min.foo()"] {
        let mut schema = properties(json!({"min": {"type": "integer"}}));
        schema["x-kubernetes-validations"] = json!([rule(expression, json!({}))]);
        let answer = world.post(DEFINITIONS, definition(schema)).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", RULE)]).mentions("compilation failed");
    }
}

async fn a_definition_with_a_rule_that_reads_nonsense_is_refused(world: World) {
    for (expression, why) in [
        ("self.name.matches('(')", "invalid matches argument"),
        ("self.name.matches('a(?=b)')", "invalid matches argument"),
        ("duration('zork') > duration(self.name)", "invalid duration argument"),
        ("timestamp('2026') > timestamp(self.name)", "invalid timestamp argument"),
    ] {
        let mut schema = properties(json!({"name": {"type": "string", "maxLength": 20}}));
        schema["x-kubernetes-validations"] = json!([rule(expression, json!({}))]);
        let answer = world.post(DEFINITIONS, definition(schema)).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", RULE)]).mentions(why);
    }
}

async fn a_definition_with_a_rule_of_the_wrong_type_is_refused(world: World) {
    let mut schema = properties(json!({"min": {"type": "integer"}}));
    schema["x-kubernetes-validations"] = json!([rule("self.min + 1", json!({}))]);
    let answer = world.post(DEFINITIONS, definition(schema.clone())).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", RULE)]).mentions("must evaluate to a bool");
    schema["x-kubernetes-validations"] = json!([rule("", json!({}))]);
    let answer = world.post(DEFINITIONS, definition(schema)).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueRequired", RULE)]);
}

async fn a_definition_with_a_rule_that_costs_too_much_is_refused(world: World) {
    let mut schema = properties(json!({
        "list": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}},
    }));
    schema["x-kubernetes-validations"] =
        json!([rule("self.list.all(a, a.all(b, b.all(c, c.contains('x'))))", json!({}))]);
    let answer = world.post(DEFINITIONS, definition(schema)).await.refused(422, "Invalid");
    answer.mentions("estimated rule cost exceeds budget");
}

async fn lists_that_a_rule_makes_and_compares_count(world: World) {
    let numbers = |most: Value| {
        let mut list = json!({"type": "array", "items": {"type": "integer"}});
        if !most.is_null() {
            list["maxItems"] = most;
        }
        list
    };
    for (rule_of_all, admitted) in [
        ("lists.range(1000000000).size() > 0", false),
        ("lists.range(self.any.size()).size() > 0", false),
        ("lists.range(10).size() == 10", true),
        ("self.any.sort().size() >= 0", false),
        ("self.any.distinct().size() >= 0", false),
        ("self.few.sort() == self.few.distinct().reverse().slice(0, 1) || true", true),
        ("sets.contains(self.any, self.any)", false),
        ("sets.equivalent(self.few, self.few)", true),
    ] {
        let mut schema = properties(json!({"any": numbers(json!(null)), "few": numbers(json!(10))}));
        schema["x-kubernetes-validations"] = json!([rule(rule_of_all, json!({}))]);
        let answer = world.post(&format!("{DEFINITIONS}?dryRun=All"), definition(schema)).await;
        match admitted {
            true => drop(answer.code(201)),
            false => drop(answer.refused(422, "Invalid").mentions("estimated rule cost exceeds budget")),
        }
    }
}

async fn status_has_rules_of_its_own(world: World) {
    let mut definition = definition(properties(json!({})));
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    root["status"] = properties(
        json!({"phase": {"type": "string", "x-kubernetes-validations": [rule("self != 'Bad'", json!({}))]}}),
    );
    let widgets = world.install(definition).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.code(201);
    let path = format!("{}/status", widgets.one("a"));
    world.patch(MERGE, &path, json!({"status": {"phase": "Bad"}})).await.refused(422, "Invalid");
    world.patch(MERGE, &path, json!({"status": {"phase": "Good"}})).await.code(200);
}

async fn a_rule_that_costs_too_much_on_an_object_refuses_it(world: World) {
    let rule = "self.all(x, self.all(y, x != y + 5000))";
    let list = json!({"type": "array", "maxItems": 1000, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
    let widgets = world.install(definition(properties(json!({"list": list})))).await;
    let long = |length: i32| widgets.widget("a", json!({"list": (0..length).collect::<Vec<_>>()}));
    let answer = world.post(&widgets.path(), long(1000)).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "spec.list")]);
    answer
        .mentions(&format!("no further validation rules will be run due to call cost exceeds limit for rule: {rule}"));
    world.post(&widgets.path(), long(200)).await.code(201);
}

async fn one_long_item_does_not_make_a_rule_cost_too_much(world: World) {
    let rule = "self.all(x, x.matches('^[a-z]*[a-z0-9.]$'))";
    let list = json!({"type": "array", "maxItems": 900, "items": {"type": "string", "maxLength": 4000},
        "x-kubernetes-validations": [{"rule": rule}]});
    let widgets = world.install(definition(properties(json!({"list": list})))).await;
    let mut items = vec!["a".to_owned(); 899];
    items.push("b".repeat(4000));
    world.post(&widgets.path(), widgets.widget("a", json!({"list": items}))).await.code(201);
}
