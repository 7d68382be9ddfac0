//! Stories that were told to a real kube-apiserver 1.35.4, and what it answered. Ours has to answer the same.
//!
//! Each step starts from the object that the real server left behind. Times are the numbers of the steps, as seconds.

use std::collections::BTreeMap;

use super::*;
use crate::refusal::Refusal;

const OBSERVED: &str = include_str!("observed.json");

#[test]
fn answers_are_those_of_the_real_server() {
    let observed: Value = serde_json::from_str(OBSERVED).expect("the recording is JSON");
    let kinds: BTreeMap<&String, (Schema, Option<&Value>)> = observed["kinds"]
        .as_object()
        .expect("kinds by name")
        .iter()
        .map(|(name, kind)| (name, (schema(&kind["schema"]), kind.get("blank"))))
        .collect();
    let mut differences = Vec::new();
    let mut steps = 0;
    for case in observed["cases"].as_array().expect("a list of cases") {
        let (schema, blank) = &kinds[&case["kind"].as_str().expect("a kind").to_owned()];
        let mut live: Option<&Value> = None;
        for step in case["steps"].as_array().expect("a list of steps") {
            let told = Told { case, step, schema, blank: *blank, live };
            if let Err(difference) = told.replay() {
                differences.push(format!("{}, step {}: {difference}", case["title"], step["n"]));
            }
            live = step.get("after").or(live);
            steps += 1;
        }
    }
    assert!(steps > 90, "the recording is shorter than it was: {steps} steps");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// One step of a story.
struct Told<'a> {
    case: &'a Value,
    step: &'a Value,
    schema: &'a Schema,
    blank: Option<&'a Value>,
    live: Option<&'a Value>,
}

impl Told<'_> {
    fn replay(&self) -> Result<(), String> {
        let Self { case, step, schema, live, .. } = *self;
        let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
        let reset = match text("subresource") {
            "" if self.blank.is_none() || case["kind"] == "Deployment" => reset_fields(Part::Main),
            "status" => reset_fields(Part::Status),
            _ => FieldSet::default(),
        };
        let write = Write {
            manager: text("manager"),
            api_version: case["apiVersion"].as_str().unwrap_or_default(),
            subresource: text("subresource"),
            now: at(step["n"].as_u64().unwrap_or_default() as usize),
            reset: &reset,
            blank: self.blank,
        };
        match text("op") {
            "given" => Ok(()),
            "apply" => {
                let force = step.get("force").is_some();
                match apply(live, &step["sent"], schema, &write, force) {
                    Ok(object) => self.same_object(object),
                    Err(error) => self.same_refusal(error.into()),
                }
            }
            _ => {
                let mut new = step["after"].clone();
                new.metadata_mut().remove("managedFields");
                if let Some(given) = step.get("managedFields") {
                    new.metadata_mut().insert("managedFields".into(), given.clone());
                }
                track_update(live, &mut new, schema, &write);
                same("managedFields", &new["metadata"]["managedFields"], &step["after"]["metadata"]["managedFields"])
            }
        }
    }

    fn same_object(&self, mut ours: Value) -> Result<(), String> {
        let theirs = self.step.get("after").ok_or_else(|| format!("should be refused, is {ours}"))?;
        same("managedFields", &ours["metadata"]["managedFields"], &theirs["metadata"]["managedFields"])?;
        if self.blank.is_none() {
            // The rest of a write, as far as the stories need it: defaults, and the server's own metadata.
            fill_defaults(&mut ours, self.schema);
            for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "namespace"] {
                ours.metadata_mut().insert(key.into(), theirs["metadata"][key].clone());
            }
            return same("object", &ours, theirs);
        }
        // Defaults of built-in kinds are not known here; nothing else may differ.
        let changes = compare(&ours, theirs, self.schema);
        let wrong = changes.modified.union(&changes.removed).difference(&NEVER_OWNED);
        same("fields that differ", &wrong.to_value(), &json!({}))
    }

    fn same_refusal(&self, ours: Refusal) -> Result<(), String> {
        let theirs = self.step.get("refused").ok_or_else(|| format!("should be done, is refused: {ours}"))?;
        let causes = ours.to_status()["details"]["causes"].clone();
        let causes = if causes.is_null() { json!([]) } else { causes };
        let ours = json!({"code": ours.code, "reason": ours.reason, "message": ours.message, "causes": causes});
        same("refusal", &ours, theirs)
    }
}

fn same(what: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}\n  ours   {ours}\n  theirs {theirs}")) }
}

fn fill_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    map.entry(name.clone()).or_insert_with(|| default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill_defaults(value, property);
                }
            }
        }
        Value::Array(list) => {
            for item in list {
                fill_defaults(item, schema.items.as_deref().unwrap_or(schema));
            }
        }
        _ => {}
    }
}
