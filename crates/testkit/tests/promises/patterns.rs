//! Patterns of a schema: which are patterns at all, and what they match.

use serde_json::{Value, json};

use crate::widgets::{DEFINITIONS, definition, properties};
use crate::world::{World, with_query};

promises!(a_pattern_that_is_none_is_refused_with_a_reason, patterns_match_what_they_should);

fn with_pattern(pattern: &str) -> Value {
    definition(properties(json!({"s": {"type": "string", "pattern": pattern}})))
}

async fn a_pattern_that_is_none_is_refused_with_a_reason(world: World) {
    for (pattern, why) in [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a(?!b)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(a)\\1", "invalid escape sequence: `\\1`"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ] {
        let answer = world.post(&with_query(DEFINITIONS, "dryRun=All"), with_pattern(pattern)).await;
        assert_eq!(answer.code, 422, "{pattern} should be: {why}; {}", answer.text);
        let why = format!("must be a valid regular expression, but isn't: error parsing regexp: {why}");
        assert!(answer.message().contains(&why), "{pattern}: {why:?} is not in {:?}", answer.message());
    }
}

async fn patterns_match_what_they_should(world: World) {
    let rows = [
        ("^{$", "{", "a"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("^\\Qa.b\\E+$", "a.bb", "axb"),
        ("^\\<a\\>$", "<a>", "a"),
        ("^\\101$", "A", "101"),
        ("^\\d\\w\\s$", "1a ", "١a "),
        ("^[[:alpha:]&&-]+$", "a&-", "1"),
        ("^(?i:ab)c$", "ABc", "abC"),
        ("^(?P<n>a)$", "a", "b"),
        ("^\\p{Greek}\\pL\\x{41}$", "αaA", "aaA"),
        ("^a{2,3}$", "aaa", "a"),
        ("^.{1,1000}$", "x", ""),
    ];
    let field = |index: usize| format!("s{index}");
    let fields = rows
        .iter()
        .enumerate()
        .map(|(index, (pattern, ..))| (field(index), json!({"type": "string", "pattern": pattern})));
    let widgets = world.install(definition(properties(Value::Object(fields.collect())))).await;
    let all = rows.iter().enumerate().map(|(index, (_, fits, _))| (field(index), json!(fits)));
    world.post(&widgets.path(), widgets.widget("a", Value::Object(all.collect()))).await.code(201);
    let none = rows.iter().enumerate().map(|(index, (.., unfit))| (field(index), json!(unfit)));
    let answer = world.post(&widgets.path(), widgets.widget("b", Value::Object(none.collect()))).await;
    let fields: Vec<String> = (0..rows.len()).map(|index| format!("spec.{}", field(index))).collect();
    let causes: Vec<_> = fields.iter().map(|field| ("FieldValueInvalid", field.as_str())).collect();
    answer.refused(422, "Invalid").causes(&causes);
}
