//! The same schemas and objects, here and on kube-apiserver 1.35.4, whose answers are recorded in `recorded/`.

use serde_json::{Value, json};

use super::{Schema, defaults, prune::prune, validate::validate};
use crate::refusal::FieldError;

/// (reason, field, message) of each cause, in an order of their own: the original walks hash maps.
fn causes(errors: &[FieldError]) -> Vec<[String; 3]> {
    let field = |error: &FieldError| if error.field.is_empty() { "<nil>".into() } else { error.field.clone() };
    let mut causes: Vec<_> = errors.iter().map(|e| [e.fault.reason().into(), field(e), e.body()]).collect();
    causes.sort();
    causes
}

fn recorded(value: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = value.as_array().expect("a list of causes");
    let mut causes: Vec<_> = list.iter().map(|c| [text(&c[0]), text(&c[1]), text(&c[2])]).collect();
    causes.sort();
    causes
}

fn load(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("a recording")
}

#[test]
fn objects_are_judged_as_by_the_original() {
    let mut differences = Vec::new();
    for group in load(include_str!("recorded/objects.json")) {
        let schema = Schema::parse(&group["schema"], "s").expect("a schema that the original admits");
        for object in group["objects"].as_array().into_iter().flatten() {
            let mut old: Option<Value> = None;
            let steps = object["steps"].as_array().expect("steps");
            for (step, expected) in steps.iter().zip(object["causes"].as_array().expect("causes")) {
                let mut new = step.clone();
                new["apiVersion"] = json!("t.example.com/v1");
                new["kind"] = group["kind"].clone();
                new["metadata"] = json!({"name": object["name"]});
                prune(&schema, &mut new);
                defaults::apply(&schema, &mut new);
                let errors = validate(&schema, &new, old.as_ref());
                let (ours, theirs) = (causes(&errors), recorded(expected));
                if ours != theirs {
                    differences.push(format!("{step}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
                }
                if errors.is_empty() {
                    old = Some(new);
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A definition is refused where the original refuses it, at the same fields for the same reasons. The words are
/// compared up to where the original quotes its own parser or its Go types.
#[test]
fn definitions_are_judged_as_by_the_original() {
    let mut differences = Vec::new();
    for case in load(include_str!("recorded/definitions.json")) {
        let found = Schema::parse(&case["schema"], "spec.validation.openAPIV3Schema").err().unwrap_or_default();
        let worded = |cause: [String; 3]| {
            let message = cause[2].split(": Syntax error").next().unwrap_or_default().to_owned();
            [cause[0].clone(), cause[1].clone(), message]
        };
        let ours: Vec<_> = causes(&found).into_iter().map(worded).collect();
        let theirs: Vec<_> = recorded(&case["causes"]).into_iter().map(worded).collect();
        if ours != theirs {
            differences.push(format!("{}\n  ours:   {ours:?}\n  theirs: {theirs:?}", case["schema"]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The old objects were stored before the schema became what it is.
#[test]
fn unchanged_values_are_forgiven_as_by_the_original() {
    let recording: Value = serde_json::from_str(include_str!("recorded/updates.json")).expect("a recording");
    let schema = Schema::parse(&recording["schema"], "s").expect("a schema that the original admits");
    for update in recording["updates"].as_array().expect("updates") {
        let errors = validate(&schema, &update["new"], Some(&update["old"]));
        assert_eq!(causes(&errors), recorded(&update["causes"]), "{} -> {}", update["old"], update["new"]);
    }
}
