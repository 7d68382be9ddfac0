//! The language of rules: what it knows, what it refuses, what its values look like, and how it fails.

use serde_json::{Value, json};

use crate::widgets::{DEFINITIONS, definition, properties};
use crate::world::{MERGE, World, with_query};

promises!(
    rules_call_what_there_is_and_nothing_else,
    operators_and_functions_take_what_fits,
    of_many_complaints_about_a_rule_a_hundred_are_told,
    lists_are_turned_cut_and_sorted,
    values_are_written_as_text,
    what_is_written_out_is_of_one_type,
    what_is_compared_and_added_is_of_one_type,
    functions_mind_what_is_in_a_list,
    maps_have_keys_of_any_one_type,
    what_is_a_number_or_a_text_is_read_as_text,
    what_an_optional_holds_is_mapped,
    an_old_value_that_may_be_absent_is_an_optional,
    formats_of_text_are_found_by_their_names,
    a_rule_that_fails_says_why,
    what_does_not_fit_is_an_error_and_not_another_number,
    amounts_are_counted_exactly,
    texts_are_searched_cut_and_replaced,
    formats_write_each_value_in_their_way,
    a_format_is_for_the_values_beside_it,
);

fn with_rules(rules: Vec<Value>) -> Value {
    let mut schema = properties(json!({
        "n": {"type": "integer"}, "s": {"type": "string", "maxLength": 20}, "any": {"x-kubernetes-int-or-string": true},
        "list": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20}},
    }));
    schema["x-kubernetes-validations"] = Value::Array(rules);
    definition(schema)
}

/// All of these hold for a widget with that spec.
async fn hold(world: &World, spec: Value, rules: &[&str]) {
    let widgets = world.install(with_rules(rules.iter().map(|rule| json!({ "rule": rule })).collect())).await;
    world.post(&widgets.path(), widgets.widget("a", spec)).await.code(201);
}

/// A definition with this rule is refused, and these words are about it.
async fn refused(world: &World, rule: &str, why: &[&str]) {
    let body = with_rules(vec![json!({ "rule": rule })]);
    let answer = world.post(&with_query(DEFINITIONS, "dryRun=All"), body).await;
    assert_eq!(answer.code, 422, "{rule} should be: {why:?}; {}", answer.text);
    for why in why {
        assert!(answer.message().contains(why), "{rule}: {why:?} is not in {:?}", answer.message());
    }
}

async fn rules_call_what_there_is_and_nothing_else(world: World) {
    let undeclared = |name: &str| format!("undeclared reference to '{name}' (in container '')");
    for (rule, names) in [
        ("math.greatest(1, 2) == 2", ["math", "greatest"]),
        ("math.ceil(1.5) == 2.0", ["math", "ceil"]),
        ("base64.encode(b'a') == 'YQ=='", ["base64", "encode"]),
        ("jsonpatch.escapeKey('a') == 'a'", ["jsonpatch", "escapeKey"]),
        ("image('a/b').registry() == 'a'", ["image", "registry"]),
        ("isIPv4('10.0.0.1')", ["isIPv4", "isIPv4"]),
    ] {
        refused(&world, rule, &names.map(undeclared).each_ref().map(String::as_str)).await;
    }
    refused(&world, "cel.bind(x, 1, x == 1)", &[&undeclared("cel"), &undeclared("bind")]).await;
    // What a function is called on is known beforehand.
    let no_overload = |call: &str| format!("found no matching overload for {call}");
    refused(&world, "'abc'.reverse() == 'cba'", &[&no_overload("'reverse' applied to 'string.()'")]).await;
    refused(&world, "self.n.startsWith('a')", &[&no_overload("'startsWith' applied to 'int.(string)'")]).await;
    refused(&world, "self.n == null", &[&no_overload("'_==_' applied to '(int, null)'")]).await;
}

async fn lists_are_turned_cut_and_sorted(world: World) {
    let rules = [
        "self.list.reverse() == [2, 1, 3]",
        "[[1], [2, 3]].flatten() == [1, 2, 3]",
        "lists.range(3) == [0, 1, 2]",
        "self.list.sort() == [1, 2, 3]",
        "[1, 2, 2].distinct() == [1, 2]",
        "self.list.slice(1, 3) == [1, 2]",
        "self.list.first().value() == 3 && self.list.last().orValue(0) == 2",
        "self.list.sum() == 6 && self.list.max() == 3 && !self.list.isSorted()",
    ];
    hold(&world, json!({"list": [3, 1, 2]}), &rules).await;
}

async fn values_are_written_as_text(world: World) {
    let rules = [
        "string(duration('1h30m')) == '5400s' && string(duration('-1500ms')) == '-1.5s'",
        "string(timestamp('2026-01-01T00:00:00Z')) == '2026-01-01T00:00:00Z'",
        "string(timestamp('2026-01-01T00:00:00.250+02:00')) == '2026-01-01T00:00:00.25+02:00'",
        "string(1.0) == '1' && string(0.5) == '0.5' && string(123456.0) == '123456'",
        "string(1000000.0) == '1e+06' && string(1.5e30) == '1.5e+30' && string(0.00001) == '1e-05'",
        "string(true) == 'true' && string(b'ab') == 'ab' && string(3u) == '3' && string(self.n) == '7'",
        "'%s and %s in %s'.format([1.0, 'x', duration('90s')]) == '1 and x in 90s'",
        "'%s'.format([[1.5]]) == '[1.500000]' && '%s'.format([{'b': 'c'}]) == '{\"b\":\"c\"}'",
    ];
    hold(&world, json!({"n": 7}), &rules).await;
}

async fn what_is_written_out_is_of_one_type(world: World) {
    for (rule, why) in [
        ("self.n in [1, 'a']", "expected type 'int' but found 'string'"),
        ("size(['a', 1.5]) == 2", "expected type 'string' but found 'double'"),
        ("size({'a': 1, 'b': 'c'}) == 2", "expected type 'int' but found 'string'"),
        ("size([[1], ['a']]) == 2", "expected type 'list(int)' but found 'list(string)'"),
    ] {
        refused(&world, rule, &[why]).await;
    }
    let rules = ["self.n in [1, self.n]", "self.any in [dyn(1), dyn('a')]", "[[], [1]].size() == 2"];
    hold(&world, json!({"n": 7, "any": "a"}), &rules).await;
}

async fn what_is_compared_and_added_is_of_one_type(world: World) {
    for (rule, types) in [
        ("self.list == ['a']", "'_==_' applied to '(list(int), list(string))'"),
        ("self.list != ['a']", "'_!=_' applied to '(list(int), list(string))'"),
        ("[1, 2] + ['a'] == [1]", "'_+_' applied to '(list(int), list(string))'"),
        ("self.map == {'a': 1}", "'_==_' applied to '(map(string, string), map(string, int))'"),
        ("self.map == {1: 'a'}", "'_==_' applied to '(map(string, string), map(int, string))'"),
        ("self.map == 1", "'_==_' applied to '(map(string, string), int)'"),
        ("matches(self.n, 'a')", "'matches' applied to '(int, string)'"),
        ("matches('a', self.n)", "'matches' applied to '(string, int)'"),
    ] {
        refused(&world, rule, &[&format!("found no matching overload for {types}")]).await;
    }
    refused(&world, "self == {'s': 'b'}", &["found no matching overload for '_==_'"]).await;
    refused(&world, "duration(5) == duration('5s')", &["invalid duration argument"]).await;
    let rules = [
        "self.list == [1] && self.list != [] && self.list + [2] == [1, 2] && [] + self.list == [1]",
        "self.map == {'a': 'b'} && self.map != {}",
        "matches(self.s, 'x') && timestamp(5) < timestamp('2020-01-01T00:00:00Z')",
    ];
    hold(&world, json!({"s": "x", "list": [1], "map": {"a": "b"}}), &rules).await;
}

async fn functions_mind_what_is_in_a_list(world: World) {
    for rule in [
        "['a'].sum() == 'a'",
        "[true].sum() == true",
        "self.list.flatten() == [1]",
        "[self.list].max() == self.list",
        "[self.list].isSorted()",
        "self.list.join(',') == 'a'",
        "self.list.indexOf('a') == 1",
        "sets.contains(self.list, ['a'])",
    ] {
        refused(&world, rule, &["found no matching overload"]).await;
    }
    let rules = ["[1.5, 2.0].sum() > 3.0 && [duration('1s')].sum() == duration('1s')", "sets.contains(self.list, [1])"];
    hold(&world, json!({"list": [1]}), &rules).await;
}

async fn maps_have_keys_of_any_one_type(world: World) {
    let no_overload = "found no matching overload";
    for (rule, why) in [
        ("1 in {'a': 1}", no_overload),
        ("'a' in {1: 1}", no_overload),
        ("self.n in {1.0: true}", no_overload),
        ("{1: 'a'}['x'] == 'a'", no_overload),
        ("{1: 2}.all(k, k.startsWith('a'))", no_overload),
        ("{1: 'a', 'b': 'c'}[self.n] == 'a'", "expected type 'int' but found 'string'"),
        ("[{1: 'a'}, {'x': 'a'}].size() == 2", "expected type 'map(int, string)' but found 'map(string, string)'"),
    ] {
        refused(&world, rule, &[why]).await;
    }
    let rules = [
        "self.n in {1: true, 2: false} && !(self.n in {2: true}) && !(self.n in {})",
        "{1: 'a', 2: 'b'}[self.n] == 'a' && {true: 'a'}[self.n == 1] == 'a'",
        "{1: 2}.all(k, k > 0) && {1u: 2}.all(k, k > 0u) && {}.all(k, k > 0)",
        "{1: 'a'}[?self.n].orValue('x') == 'a' && {1: 'a'} != {1: 'b'}",
        "self.list.map(x, {x: 1}).all(y, 1 in y)",
    ];
    hold(&world, json!({"n": 1, "list": [1]}), &rules).await;
}

async fn what_is_a_number_or_a_text_is_read_as_text(world: World) {
    let rules = [
        "string(self.any).matches('^[0-9]+%?$') && string(self.any).size() < 5",
        "!isQuantity(string(self.any)) && string(self.any).split('%').size() == 2",
        "int(string(self.any).replace('%', '')) <= 100",
    ];
    hold(&world, json!({"any": "50%"}), &rules).await;
}

async fn what_an_optional_holds_is_mapped(world: World) {
    let rules = [
        "self.?s.optMap(s, s == 'x').orValue(false)",
        "self.?n.optMap(n, n + 1).orValue(0) == 0",
        "self.?map.optFlatMap(m, m[?'a']).orValue('none') == 'b'",
        "self.?map.optFlatMap(m, m[?'z']).orValue('none') == 'none'",
        "self.?map['a'].orValue('x') == 'b'",
        "self.?list[?0].orValue(1) == 1",
        "!self.?map[?self.s].orValue('').startsWith('a')",
        "optional.ofNonZeroValue(self.s).hasValue() && !optional.ofNonZeroValue('').hasValue()",
    ];
    hold(&world, json!({"s": "x", "map": {"a": "b"}}), &rules).await;
}

async fn an_old_value_that_may_be_absent_is_an_optional(world: World) {
    let rule = "oldSelf.optMap(old, !has(old.n) || !has(self.n) || self.n >= old.n).orValue(has(self.n))";
    let rule = json!({"rule": rule, "optionalOldSelf": true, "message": "n is there, and only grows"});
    let widgets = world.install(with_rules(vec![rule])).await;
    let refuses = |name: &str| {
        format!("Widget.{} {name:?} is invalid: spec: Invalid value: n is there, and only grows", widgets.group)
    };
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({}))).await;
    answer.refused(422, "Invalid").says(&refuses("a"));
    world.post(&widgets.path(), widgets.widget("a", json!({"n": 2}))).await.code(201);
    let one = widgets.one("a");
    let change = |n: i64| world.patch(MERGE, &one, json!({"spec": {"n": n}}));
    change(1).await.refused(422, "Invalid").says(&refuses("a"));
    change(3).await.code(200);
}

async fn formats_of_text_are_found_by_their_names(world: World) {
    let rules = [
        "format.named('dns1123Label').hasValue() && !format.named('nothing').hasValue()",
        "!format.named('dns1123Label').value().validate(self.s).hasValue()",
        "format.dns1123Label().validate('A').hasValue()",
        "format.uuid().validate('x').value().size() > 0",
    ];
    hold(&world, json!({"s": "a-b"}), &rules).await;
}

async fn a_rule_that_fails_says_why(world: World) {
    let rules = [
        ("self.list[5] == 1", "index out of bounds: 5"),
        ("self.map['z'] == 'a'", "no such key: z"),
        ("1 / (self.n - 7) == 1", "division by zero"),
        ("1 % (self.n - 7) == 1", "modulus by zero"),
        ("self.n + 9223372036854775807 > 0", "integer overflow"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
        ("double(self.s) == 1.0", "type conversion error from 'string' to 'double'"),
        (
            "timestamp(self.s) < timestamp('2026-01-01T00:00:00Z')",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("duration(self.s) < duration('1s')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("self.list.filter(x, x > 99).max() == 1", "max called on empty list"),
        ("self.s.substring(9) == ''", "index out of range: 9"),
        ("self.s.charAt(9) == ''", "index out of range: 9"),
        ("self.list.slice(5, 9) == [1]", "cannot slice(5, 9), list is length 1"),
        ("self.s.matches(self.s + '(')", "error parsing regexp: missing closing ): `x(`"),
        ("self.s.find(self.s + '[') == ''", "Illegal regex: error parsing regexp: missing closing ]: `[`"),
        ("uint(self.n - 8) == 1u", "unsigned integer overflow"),
        ("self.any == 1", "no such key: any"),
    ];
    fail(&world, json!({"n": 7, "s": "x", "list": [1], "map": {"a": "b"}}), &rules).await;
}

/// None of these can be decided for a widget with that spec, and it is said why.
async fn fail(world: &World, spec: Value, rules: &[(&str, &str)]) {
    let widgets = world.install(with_rules(rules.iter().map(|(rule, _)| json!({ "rule": rule })).collect())).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", spec)).await.refused(422, "Invalid");
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let said: Vec<&str> = causes.iter().filter_map(|cause| cause["message"].as_str()).collect();
    let expected: Vec<String> =
        rules.iter().map(|(rule, why)| format!("Invalid value: \"object\": {why} evaluating rule: {rule}")).collect();
    assert_eq!(said, expected);
}

async fn what_does_not_fit_is_an_error_and_not_another_number(world: World) {
    let rules = [
        ("-self.n == 0", "integer overflow"),
        ("[self.n, -1].sum() == 0", "integer overflow"),
        ("int(double(self.n)) == 0", "integer overflow"),
        ("uint(self.n) == 0u", "unsigned integer overflow"),
        ("duration(self.s) + duration('2562047h') == duration('1s')", "integer overflow"),
        ("duration('-1h') - duration(self.s) - duration('1h') == duration('1s')", "integer overflow"),
        ("timestamp('9999-12-31T23:00:00Z') + duration(self.s) == timestamp(0)", "timestamp overflow"),
        ("duration(self.s) + timestamp('9999-12-31T23:00:00Z') == timestamp(0)", "timestamp overflow"),
        ("timestamp(self.n) == timestamp(0)", "timestamp overflow"),
        ("duration(self.n) == duration('1s')", "type conversion error from 'int' to 'google.protobuf.Duration'"),
        (
            "duration(self.s + 'x') == duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
    ];
    fail(&world, json!({"n": i64::MIN, "s": "2562047h"}), &rules).await;
    let rules = [
        "-(self.n + 1) == 9223372036854775807 && [].sum() == 0 && [1.5, 2.0].sum() == 3.5",
        "duration(self.s) + duration('30m') == duration('90m') && duration(self.s) - duration('2h') < duration('0s')",
        "duration(self.s) + timestamp('2026-01-01T00:00:00Z') == timestamp('2026-01-01T01:00:00Z')",
        "int(duration(self.s)) == 3600000000000 && int(timestamp('1970-01-01T00:01:00Z')) == 60",
    ];
    hold(&world, json!({"n": i64::MIN, "s": "1h"}), &rules).await;
}

async fn amounts_are_counted_exactly(world: World) {
    let rules = [
        "quantity(self.s).compareTo(quantity('1536Mi')) == 0 && quantity('1000m') == quantity('1')",
        "quantity('100000000000000000000000000000000000000001').isGreaterThan(quantity('1e41'))",
        "quantity('1e40').sub(quantity('1')).compareTo(quantity('9999999999999999999999999999999999999999')) == 0",
        "quantity('9223372036854775807').add(1).isGreaterThan(quantity('9223372036854775807'))",
        "quantity('16Ei').compareTo(quantity('9223372036854775807')) == 0",
        "quantity('50k').isInteger() && quantity('50k').asInteger() == 50000",
        "!quantity('1000m').isInteger() && !quantity(self.s).isInteger() && !quantity('10E').isInteger()",
        "quantity('-2500m').asApproximateFloat() == -2.5 && quantity('0.1n').compareTo(quantity('1n')) == 0",
        "isQuantity('5.') && !isQuantity(' 5') && !isQuantity('5KiB') && !isQuantity('five')",
    ];
    hold(&world, json!({"s": "1.5Gi"}), &rules).await;
    let wrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let rules = [
        ("quantity(self.s) == quantity('1')", wrong),
        ("quantity(self.s + 'm').asInteger() == 1", wrong),
        ("quantity('10E').asInteger() == self.n", "cannot convert value to integer"),
    ];
    fail(&world, json!({"n": 1, "s": "x"}), &rules).await;
}

async fn texts_are_searched_cut_and_replaced(world: World) {
    let rules = [
        "self.s.indexOf('ello') == 1 && self.s.indexOf('ello', 2) == 7 && self.s.indexOf('l', 99) == -1",
        "self.s.indexOf('') == 0 && self.s.indexOf('', 99) == 99 && self.s.lastIndexOf('') == 12",
        "self.s.lastIndexOf('ello') == 7 && self.s.lastIndexOf('ello', 6) == 1 && self.s.lastIndexOf('ello', 12) == -1",
        "self.s.substring(6) == 'mellow' && self.s.substring(0, 5) == 'hello' && self.s.substring(12) == ''",
        "self.s.replace('ello', 'a', 1) == 'ha mellow' && self.s.replace('l', 'r', -1) == 'herro merrow'",
        "'ab'.replace('', '_') == '_a_b_' && 'äb'.split('') == ['ä', 'b'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'a,b'.split(',', 0) == [] && 'a,b'.split(',', -1) == ['a', 'b']",
    ];
    hold(&world, json!({"s": "hello mellow"}), &rules).await;
    let rules = [
        ("self.s.indexOf('l', -1) == 0", "index out of range: -1"),
        ("self.s.lastIndexOf('l', -1) == 0", "index out of range: -1"),
        ("self.s.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("self.s.substring(0, 99) == ''", "index out of range: 99"),
    ];
    fail(&world, json!({"s": "hello"}), &rules).await;
}

async fn formats_write_each_value_in_their_way(world: World) {
    let rules = [
        "'%d %b %o %x %X'.format([self.n, self.n, self.n, self.n, self.n]) == '-30 -11110 -36 -1e -1E'",
        "'%x %X %b'.format([self.s, b'z', true]) == '4869 7A 1' && '100%%'.format([]) == '100%'",
        "'%.2f %f %.0f'.format([1234567.891, 2.71828, 2.5]) == '1,234,567.89 2.718280 2'",
        "'%f %s'.format(['Infinity', null]) == '∞ null' && '%s'.format([{10: 'b', 1: 'a'}]) == '{1:\"a\", 10:\"b\"}'",
    ];
    hold(&world, json!({"n": -30, "s": "Hi"}), &rules).await;
}

async fn a_format_is_for_the_values_beside_it(world: World) {
    for (rule, why) in [
        (
            "'%d'.format([self.s]) == ''",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        (
            "'%f'.format([self.n]) == ''",
            "error during formatting: fixed-point clause can only be used on doubles, was given int",
        ),
        ("'%q'.format([self.n]) == ''", "could not parse formatting clause: unrecognized formatting clause \"q\""),
        ("'%d %d'.format([self.n]) == ''", "index 1 out of range"),
        ("'%d'.format([self.n, self.n]) == ''", "too many arguments supplied to string.format (expected 1, got 2)"),
    ] {
        refused(&world, rule, &[why]).await;
    }
    // What is known only when it runs is told then.
    let misfit = "error during formatting: decimal clause can only be used on integers, was given string";
    fail(&world, json!({"any": "a"}), &[("'%d'.format([self.any]) == ''", misfit)]).await;
}

async fn operators_and_functions_take_what_fits(world: World) {
    for (rule, applied) in [
        ("self == 1", "'_==_' applied to"),
        ("-true == true", "'-_' applied to '(bool)'"),
        ("self.n in self.s", "'@in' applied to '(int, string)'"),
        ("self.s in self.list", "'@in' applied to '(string, list(int))'"),
        ("self.s[0] == 'a'", "'_[_]' applied to '(string, int)'"),
        ("self.list['a'] == 1", "'_[_]' applied to '(list(int), string)'"),
        ("self.s.startsWith(5)", "'startsWith' applied to 'string.(int)'"),
        ("isQuantity(self.n)", "'isQuantity' applied to '(int)'"),
        ("duration(self.list) > duration('1h')", "'duration' applied to '(list(int))'"),
        ("int(self.list) > 0", "'int' applied to '(list(int))'"),
        ("size(self.n) > 0", "'size' applied to '(int)'"),
    ] {
        refused(&world, rule, &["found no matching overload for", applied]).await;
    }
    refused(&world, "self.list.existsOne(x, x == 1)", &["undeclared reference to 'existsOne'"]).await;
}

async fn of_many_complaints_about_a_rule_a_hundred_are_told(world: World) {
    let rule = vec!["nope"; 120].join(" || ");
    refused(&world, &rule, &["undeclared reference to 'nope'", "20 more errors were truncated"]).await;
}
