//! Small cases that say one thing each.

use super::*;
use crate::refusal::Refusal;

fn demo() -> Schema {
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let atomic = json!({"type": "array", "items": {"type": "string"}});
    schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "image": {"type": "string"}, "tags": set, "args": atomic,
        "settings": {"type": "object", "additionalProperties": {"type": "string"}},
    }}}}))
}

fn write<'a>(manager: &'a str, step: usize, reset: &'a FieldSet) -> Write<'a> {
    Write { manager, api_version: "example.com/v1", subresource: "", now: at(step), reset, blank: None }
}

/// Tells a story, a line per step: `manager Apply {spec}`, `manager Force {spec}` or `manager Update {spec}`; ends with
/// the spec and a line for every entry of the record.
fn tell(story: &str) -> String {
    let (schema, reset) = (demo(), FieldSet::default());
    let mut live: Option<Value> = None;
    for (n, line) in story.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let mut words = line.splitn(3, ' ');
        let (manager, verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let spec: Value = serde_json::from_str(words.next().unwrap_or_default()).expect("a spec");
        let mut object =
            json!({"apiVersion": "example.com/v1", "kind": "Demo", "metadata": {"uid": "1"}, "spec": spec});
        let write = write(manager, n, &reset);
        if verb == "Update" {
            track_update(live.as_ref(), &mut object, &schema, &write);
        } else {
            object = match apply(live.as_ref(), &object, &schema, &write, verb == "Force") {
                Ok(object) => object,
                Err(error) => return error.to_string(),
            };
        }
        live = Some(object);
    }
    let object = live.expect("a story has a step");
    let mut end = vec![object["spec"].to_string()];
    for entry in Managers::parse(&object["metadata"]["managedFields"]).expect("a record").iter() {
        let step = entry.time.map_or("-".to_owned(), |time| (time.as_second() - at(0).as_second()).to_string());
        let paths: Vec<String> = entry.set.paths().iter().map(show).collect();
        end.push(format!("{} {:?} at {step}: {}", entry.manager.name, entry.manager.operation, paths.join(" ")));
    }
    end.join("\n")
}

#[track_caller]
fn check(story: &str, end: &[&str]) {
    assert_eq!(tell(story), end.join("\n"));
}

#[test]
fn what_is_no_longer_applied_goes_and_what_others_own_stays() {
    check(
        r#"a Apply {"replicas":1,"image":"x","tags":["p","q"]}
           b Apply {"tags":["q"]}
           a Apply {"image":"x"}"#,
        &[r#"{"image":"x","tags":["q"]}"#, r#"b Apply at -: .spec.tags[="q"]"#, "a Apply at 2: .spec.image"],
    );
}

#[test]
fn a_conflict_names_who_and_where() {
    check(
        r#"a Update {"replicas":1}
           b Apply {"replicas":2}"#,
        &[r#"Apply failed with 1 conflict: conflict with "a" using example.com/v1: .spec.replicas"#],
    );
}

#[test]
fn force_takes_fields_away() {
    check(
        r#"a Update {"replicas":1,"args":["x"]}
           b Force {"replicas":2,"args":["y"]}"#,
        &[r#"{"args":["y"],"replicas":2}"#, "b Apply at 1: .spec.args .spec.replicas", "a Update at 0: .spec"],
    );
}

#[test]
fn a_write_that_changes_nothing_leaves_no_trace() {
    check(
        r#"a Update {"replicas":1}
           b Update {"replicas":1}"#,
        &[r#"{"replicas":1}"#, "a Update at 0: .spec .spec.replicas"],
    );
}

#[test]
fn removed_fields_belong_to_nobody() {
    check(
        r#"a Apply {"settings":{"x":"1","y":"2"}}
           b Update {"settings":{"y":"2"}}"#,
        &[r#"{"settings":{"y":"2"}}"#, "a Apply at 0: .spec.settings.y"],
    );
}

#[test]
fn a_list_that_became_atomic_is_owned_as_a_whole() {
    let reset = FieldSet::default();
    let mut granular = json!({"metadata": {}, "spec": {"tags": ["x"]}});
    track_update(None, &mut granular, &demo(), &write("a", 0, &reset));
    let atomic = schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
    }}}}));
    let config = json!({"metadata": {}, "spec": {"tags": ["y"]}});
    let conflict = apply(Some(&granular), &config, &atomic, &write("b", 1, &reset), false).expect_err("a owns it");
    assert!(conflict.to_string().ends_with("conflict with \"a\" using example.com/v1: .spec.tags"), "{conflict}");
}

#[test]
fn a_conflict_is_refused_as_the_original_refuses_it() {
    let manager = Manager {
        name: "a".into(),
        operation: Operation::Update,
        api_version: "v1".into(),
        subresource: "status".into(),
    };
    let fields = FieldSet::of_fields(&[&["status", "phase"]]);
    let refusal = Refusal::from(ApplyError::Conflicts(vec![Conflict { manager, fields }]));
    assert_eq!((refusal.code, refusal.reason), (409, "Conflict"));
    let cause = &refusal.details.expect("details").causes[0];
    assert_eq!(cause.reason, "FieldManagerConflict");
    assert_eq!(cause.message, "conflict with \"a\" with subresource \"status\" using v1");
    assert_eq!(cause.field, ".status.phase");
}

#[test]
fn path_elements_are_written_as_the_original_writes_them() {
    for text in ["f:a.b/c", r#"k:{"name":"x","port":80}"#, r#"v:"a\u003cb""#, "v:1.5", "v:true", "i:3"] {
        assert_eq!(PathElement::parse(text).map(|element| element.to_text()), Ok(text.to_owned()));
    }
    assert_eq!(PathElement::parse("x:future"), Err(ElementError::UnknownKind));
    for text in ["", "f", "fa:b", "k:[]", "k:{", "v:", "i:x"] {
        assert!(matches!(PathElement::parse(text), Err(ElementError::Malformed(_))), "{text}");
    }
}

#[test]
fn numbers_are_ordered_as_numbers() {
    let mut numbers: Vec<Literal> =
        [json!(10), json!(9), json!(9.5), json!(-1), json!(u64::MAX), json!(1e300)].map(Literal).into();
    numbers.sort();
    let sorted: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    assert_eq!(sorted, ["-1", "9", "9.5", "10", "18446744073709551615", "1e+300"]);
    assert_eq!(Literal(json!(1)), Literal(json!(1.0)));
}

#[test]
fn deep_nesting_is_refused_or_taken_as_a_leaf() {
    let deep = |open: &str| (0..2 * fields::MAX_DEPTH).fold(json!({}), |inner, _| json!({open: inner}));
    assert!(FieldSet::parse(&deep("f:a")).is_err());
    let set = set_of(&deep("a"), &Schema::default());
    assert!(set.paths().iter().all(|path| path.len() <= fields::MAX_DEPTH + 2));
}
