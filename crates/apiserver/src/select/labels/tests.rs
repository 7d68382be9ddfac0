use proptest::prelude::*;
use serde_json::json;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    LabelSelector::parse(selector).unwrap().matches(&labels(pairs))
}

#[test]
fn every_form_selects_what_it_says() {
    for (selector, pairs, expected) in [
        ("a=b", [("a", "b")], true),
        ("a==b", [("a", "c")], false),
        ("a!=b", [("x", "y")], true),
        ("a!=b", [("a", "b")], false),
        ("a in (x, y)", [("a", "y")], true),
        ("a in (x,y)", [("b", "y")], false),
        ("a notin (x,y)", [("b", "y")], true),
        ("a notin (x,y)", [("a", "y")], false),
        ("a", [("a", "")], true),
        ("!a", [("a", "")], false),
        ("! a", [("b", "")], true),
        ("a>5", [("a", "6")], true),
        ("a>5", [("a", "x")], false),
        ("a<5", [("a", "-6")], true),
        ("a=", [("a", "")], true),
        ("a in ()", [("a", "")], true),
        ("a in (b,)", [("a", "")], true),
        ("in in (in,notin)", [("in", "notin")], true),
        (" a = b ,c!=d", [("a", "b")], true),
        ("", [("a", "b")], true),
    ] {
        assert_eq!(selects(selector, &pairs), expected, "{selector} {pairs:?}");
    }
    assert!(LabelSelector::parse("  ").unwrap().is_everything());
}

#[test]
fn what_cannot_be_read_is_refused_in_the_originals_words() {
    for (selector, message) in [
        ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("x in", "unable to parse requirement: found '' expected: '('"),
        ("!x=y", "found '=', expected: ',' or 'end of string'"),
        (
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("x=a b", "found 'b', expected: ',' or 'end of string'"),
        ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
        ("x,", "found '', expected: identifier after ','"),
        (",x", "found ',', expected: !, identifier, or 'end of string'"),
        ("x!", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("x=!y", "unable to parse requirement: found '!', expected: identifier"),
        ("x===y", "unable to parse requirement: found '=', expected: identifier"),
        ("x notin (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("x in (y z)", "unable to parse requirement: found 'z', expected: ',' or ')'"),
        ("((", "found '(', expected: !, identifier, or 'end of string'"),
        ("x=<y", "unable to parse requirement: found '<', expected: identifier"),
        ("/x", "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be non-empty"),
    ] {
        let refusal = LabelSelector::parse(selector).unwrap_err();
        assert_eq!((refusal.code, refusal.reason), (400, "BadRequest"));
        assert_eq!(refusal.message, message, "{selector}");
    }
    let two = LabelSelector::parse("x in (é,-)").unwrap_err().message;
    assert!(
        two.starts_with("unable to parse requirement: [values[0][x]: Invalid value: \"-\": a valid label"),
        "{two}"
    );
    assert!(two.contains("), values[1][x]: Invalid value: \"é\": a valid label"), "{two}");
}

#[test]
fn an_object_says_the_same_as_its_text() {
    let object = json!({
        "matchLabels": {"b": "c"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "z", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_object(&object).unwrap();
    assert_eq!(selector.to_string(), "a in (x,y),b=c,!z");
    assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
    assert!(LabelSelector::from_object(&json!({})).unwrap().is_everything());
    for wrong in [
        json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
        json!({"matchLabels": {"a b": "c"}}),
    ] {
        assert!(LabelSelector::from_object(&wrong).is_err(), "{wrong}");
    }
}

fn requirement() -> impl Strategy<Value = LabelRequirement> {
    let operators = prop::sample::select(vec![
        LabelOperator::In,
        LabelOperator::NotIn,
        LabelOperator::Equals,
        LabelOperator::DoubleEquals,
        LabelOperator::NotEquals,
        LabelOperator::GreaterThan,
        LabelOperator::LessThan,
        LabelOperator::Exists,
        LabelOperator::DoesNotExist,
    ]);
    let values = prop::collection::btree_set("([a-c]([a-c.]{0,2}[a-c])?)?", 1..4);
    ("[ab]([.][a-c]/in)?|in|notin", operators, values, any::<i64>()).prop_map(|(key, operator, set, number)| {
        let values = match operator {
            LabelOperator::In | LabelOperator::NotIn => set.into_iter().collect(),
            // A minus sign is no label value, so only natural numbers can be compared with.
            LabelOperator::GreaterThan | LabelOperator::LessThan => vec![(number & i64::MAX).to_string()],
            LabelOperator::Exists | LabelOperator::DoesNotExist => Vec::new(),
            _ => set.into_iter().take(1).collect(),
        };
        LabelRequirement { key, operator, values }
    })
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(requirements in prop::collection::vec(requirement(), 0..5)) {
        let mut requirements = requirements;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let selector = LabelSelector { requirements };
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn opposites_never_agree(key in "[ab]", value in "[a-c]", labels in prop::collection::btree_map("[ab]", "[a-c]", 0..3)) {
        let selects = |text: String| LabelSelector::parse(&text).unwrap().matches(&labels);
        prop_assert_ne!(selects(format!("{key}={value}")), selects(format!("{key}!={value}")));
        prop_assert_ne!(selects(format!("{key} in ({value},b)")), selects(format!("{key} notin ({value},b)")));
        prop_assert_ne!(selects(key.clone()), selects(format!("!{key}")));
    }

    #[test]
    fn a_comma_means_and(
        a in requirement(),
        b in requirement(),
        labels in prop::collection::btree_map("[ab]|in", "[a-c0-9]{0,2}", 0..4),
    ) {
        let selects = |text: String| LabelSelector::parse(&text).unwrap().matches(&labels);
        prop_assert_eq!(selects(format!("{a},{b}")), selects(a.to_string()) && selects(b.to_string()));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>(), almost in "[ab=!<>(), é\0]{0,12}|(a|in|notin|[(),=! ]){0,9}") {
        let _ = LabelSelector::parse(&text);
        if let Ok(selector) = LabelSelector::parse(&almost) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }
}
