//! Tests of the decoder, and arbitrary JSON for the tests of others.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Values of a few levels, with small numbers of fields and keys that collide.
pub(crate) fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e12..1e12).prop_map(|float: f64| Value::from(float + 0.5)),
        "[a-c]{0,2}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn value(text: &str) -> Value {
    json(text.as_bytes()).unwrap().value
}

fn refused(text: impl AsRef<[u8]>) -> String {
    let refusal = json(text.as_ref()).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (400, "BadRequest"));
    refusal.message
}

#[test]
fn values_are_read_as_they_are_written() {
    assert_eq!(
        value(" {\"a\" : [ ] ,\n\"b\":{},\"c\":[1,[2],{\"d\":null}]} "),
        json!({"a": [], "b": {}, "c": [1, [2], {"d": null}]})
    );
    assert_eq!(value(r#""\"\\\/\b\f\n\r\té""#), json!("\"\\/\u{8}\u{c}\n\r\té"));
    assert_eq!(value("[true,false,null]"), json!([true, false, null]));
}

#[test]
fn whole_numbers_stay_whole_and_others_become_floats() {
    assert_eq!(value("[0,-0,9223372036854775807,-9223372036854775808]"), json!([0, 0, i64::MAX, i64::MIN]));
    assert_eq!(value("[1.0,1e2,1.5,-2.50E-1]"), json!([1, 100, 1.5, -0.25]));
    assert_eq!(value("9223372036854775808"), json!(9_223_372_036_854_775_808.0_f64));
    assert_eq!(refused("1e999"), "json: cannot unmarshal number 1e999 into Go value of type float64");
}

#[test]
fn broken_characters_are_replaced() {
    let broken = json(b"\"\xff\xc3\x28 \\ud800x \\ud83d\\ude00 \\udc00 \\ud800\\u0041\"").unwrap();
    assert_eq!(broken.value, json!("\u{fffd}\u{fffd}( \u{fffd}x 😀 \u{fffd} \u{fffd}A"));
}

#[test]
fn the_last_of_doubled_fields_counts_and_all_are_reported() {
    let body = json(br#"{"spec":{"a":1,"a":2,"a":3,"list":[0,{"x":1,"x":{"y":1,"y":2}}]},"spec":{"b":1}}"#).unwrap();
    assert_eq!(body.value, json!({"spec": {"b": 1}}));
    assert_eq!(body.duplicates, ["spec.a", "spec.list[1].x", "spec.list[1].x.y", "spec"]);
    let many = format!("{{{}\"k0\":1}}", (0..200).map(|n| format!("\"k{n}\":1,\"k{n}\":1,")).collect::<String>());
    assert_eq!(json(many.as_bytes()).unwrap().duplicates.len(), MAX_DUPLICATES);
}

#[test]
fn doubled_fields_below_a_long_name_are_told_as_far_as_there_is_room() {
    let name = "x".repeat(64 << 10);
    let doubled: String = (0..5_000).map(|n| format!("\"k{n}\":1,\"k{n}\":1,\"k\":1,")).collect();
    let text = format!("{{\"{name}\":{{{doubled}\"k\":1}}}}");
    let duplicates = json(text.as_bytes()).unwrap().duplicates;
    let told: usize = duplicates.iter().map(String::len).sum();
    assert!(!duplicates.is_empty() && told < 2 << 20, "{told} bytes");
}

#[test]
fn what_is_no_json_is_refused_in_the_originals_words() {
    for (text, message) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("[1", "unexpected end of JSON input"),
        ("\"a", "unexpected end of JSON input"),
        ("-", "unexpected end of JSON input"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("{\"a\":}", "invalid character '}' looking for beginning of value"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{\"kind\":\"ConfigMap\" x}", "invalid character 'x' after object key:value pair"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("\u{1}", "invalid character '\\x01' looking for beginning of value"),
    ] {
        assert_eq!(refused(text), message, "{text}");
    }
    assert_eq!(refused(b"\xff"), "invalid character 'ÿ' looking for beginning of value");
}

#[test]
fn nesting_is_bounded_in_both_languages() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(depth(&value(&nested(MAX_DEPTH))).0, MAX_DEPTH);
    for levels in [MAX_DEPTH + 1, 10_001, 1_500_000] {
        assert_eq!(refused(nested(levels)), "invalid character '[' exceeded max depth");
    }
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert_eq!(refused(objects(MAX_DEPTH + 1)), "invalid character '{' exceeded max depth");
    for deep in [nested(100_000), objects(100_000), "- ".repeat(100_000), "{".repeat(100_000)] {
        assert_eq!(yaml(deep.as_bytes()).unwrap_err().code, 400);
    }
    let block: String = (0..MAX_DEPTH + 1).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert_eq!(yaml(block.as_bytes()).unwrap_err().code, 400);
}

#[test]
fn yaml_is_read_as_the_original_reads_it() {
    let read = |text: &str| yaml(text.as_bytes()).unwrap();
    let body = read("apiVersion: v1\nmetadata:\n  name: \"y\"\n  on: yes\n  1: 2\n  f: 1.0\n  l: [~, 'x', 0x10]\n");
    assert_eq!(
        body.value,
        json!({"apiVersion": "v1", "metadata": {"name": "y", "true": true, "1": 2, "f": 1, "l": [null, "x", 16]}})
    );
    assert_eq!(
        read("[010, 0x10, 1_000, 2020-01-01, 12:30:45, ~, '', =, 1e3, +1, Off, y, -0, .5, 0x, 99999999999999999999]")
            .value,
        json!([8, 16, 1000, "2020-01-01", "12:30:45", null, "", "=", 1000, 1, false, true, 0, 0.5, "0x", 1e20])
    );
    assert_eq!(read("m: {<<: {a: 1}, b: 2}").value, json!({"m": {"a": 1, "b": 2}}));
    assert_eq!(read("a: 1\n---\nb: 2\n").value, json!({"a": 1}));
    assert_eq!(read("").value, Value::Null);
    assert_eq!(read("{\"a\":\"1\",\"a\":\"2\"}").duplicates, ["a"]);
    assert_eq!(read("{a: 1, b: 'x'}").value, json!({"a": 1, "b": "x"}));
    let body = read("data:\n  a: 1\n  a: 2\nl:\n- x: 1\n  x: 2\n");
    assert_eq!(body.value, json!({"data": {"a": 2}, "l": [{"x": 2}]}));
    assert_eq!(body.duplicates, ["data.a", "l[0].x"]);
    assert_eq!(read("a: &x {k: v}\nb: *x\n").value, json!({"a": {"k": "v"}, "b": {"k": "v"}}));
}

#[test]
fn yaml_bombs_do_not_go_off() {
    let refused = |text: &str| {
        let refusal = yaml(text.as_bytes()).unwrap_err();
        assert_eq!((refusal.code, refusal.reason), (400, "BadRequest"));
        refusal.message
    };
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for n in 1..9 {
        let list = vec![format!("*a{}", n - 1); 10].join(",");
        laughs += &format!("a{n}: &a{n} [{list}]\n");
    }
    assert_eq!(refused(&laughs), "yaml: document contains excessive aliasing");
    let heavy = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 90].join(","));
    assert_eq!(refused(&heavy), "yaml: document contains excessive aliasing");
    assert!(refused("a: [").starts_with("yaml: "));
    assert!(refused("a: &a [*a]").starts_with("yaml: "));
}

#[test]
fn a_refusal_says_what_was_wanted() {
    let message = |bytes: &[u8]| object(bytes, "ConfigMap").unwrap_err().message;
    let start = "the object provided is unrecognized (must be of type ConfigMap): ";
    assert_eq!(
        message(b""),
        format!("{start}couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)")
    );
    assert_eq!(
        message(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}} x"#),
        format!(
            "{start}couldn't get version/kind; json parse error: invalid character 'x' after top-level value \
             ({{\"kind\":\"ConfigMap\",\"apiVersio ...)"
        )
    );
    assert_eq!(
        message(b"[]"),
        format!(
            "{start}couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type \
             struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }} (5b5d)"
        )
    );
    assert_eq!(
        message(br#"{"kind":5}"#),
        format!(
            "{start}couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field \
             .kind of type string ({{\"kind\":5}})"
        )
    );
    assert_eq!(object(b"null", "ConfigMap").unwrap().value, json!({}));
    assert!(yaml_object(b"a: [", "ConfigMap").unwrap_err().message.starts_with(&format!("{start}yaml: ")));
    assert_eq!(patch(b"[").unwrap_err().message, "error decoding patch: unexpected end of JSON input");
    assert_eq!(apply(b"").unwrap().value, json!({}));
    assert_eq!(
        apply(b"x").unwrap_err().message,
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go \
         value of type map[string]interface {}"
    );
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(value in arbitrary_json()) {
        let body = json(value.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&body.value, &value);
        prop_assert!(body.duplicates.is_empty());
        let pretty = json(serde_json::to_string_pretty(&value).unwrap().as_bytes()).unwrap();
        prop_assert_eq!(pretty.value, value);
    }

    #[test]
    fn it_agrees_with_another_reader_about_what_is_json(text in "[\\[\\]{}:,\"\\\\ a0-9.eE+tn-]{0,16}") {
        let theirs = serde_json::from_str::<Value>(&text);
        let ours = json(text.as_bytes());
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"\\\\u&*ad8 \n0-9.e!|>?%@`'#~<-]{0,24}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let _ = json(bytes);
            let _ = yaml(bytes);
            let _ = object(bytes, "K");
            let _ = apply(bytes);
        }
    }
}
