//! An engine that is replaced by a newer one in the midst of a run leaves its records to it. So every form in which they
//! were ever written is kept here, and read: a line is a key, a tab, and a value.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    owner::Owner,
    tests::{run, sight},
    *,
};
use crate::{
    executor::Listing,
    tasks::{Answer, Class, Question, Status},
};

/// Oldest first. None of them is ever changed: a form that changes gets a file of its own.
const FORMS: [&str; 2] = [include_str!("forms/1.tsv"), include_str!("forms/2.tsv")];

/// Everything that can be on record, in the midst of a run.
fn today() -> Vec<Entry> {
    let run = run(3);
    let mut execution = Execution::new(run.order.clone());
    let mut entries = run.begun();
    let first = execution.step(&sight(&run, 0));
    entries.extend(run.stepped(&execution, &first.changed));
    execution.rates_were_found(&(0..4).map(BrokerId).collect(), &[BrokerId(1)].into());
    execution.throttle_is_set();
    let second = execution.step(&sight(&run, 1));
    entries.extend(run.stepped(&execution, &second.changed));
    let asked = UserTask {
        question: Question {
            method: "POST".into(),
            endpoint: "rebalance".into(),
            parameters: [("dryrun".to_owned(), "false".to_owned())].into(),
        },
        written: "POST /kafkacruisecontrol/rebalance?dryrun=false".to_owned(),
        client: "127.0.0.1".to_owned(),
        class: Class::KafkaAdmin,
        started: 5,
        status: Status::InExecution(Answer { code: 200, body: "{}".to_owned() }),
        ended: None,
    };
    entries.extend(task(Uuid::from_u128(8), &asked));
    let history = History {
        removed: [(BrokerId(3), 17)].into(),
        demoted: [(BrokerId(4), 18)].into(),
        missing: [(BrokerId(5), 19)].into(),
    };
    let listing = Listing([(0, BrokerId(1))].into());
    let left = Throttle { rate: 9, brokers: [BrokerId(1)].into(), topics: [("a".to_owned(), listing)].into() };
    entries.extend([history.entry(), Owner { engine: Uuid::from_u128(9) }.entry()]);
    entries.extend(leftover(&Throttle::default(), &left));
    // As compaction leaves it.
    let mut fold = Fold::default();
    entries.into_iter().for_each(|entry| fold.take(entry));
    fold.last.into_iter().map(|(key, value)| Entry { key, value: Some(value) }).collect()
}

fn text(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let value = String::from_utf8(entry.value.clone().unwrap_or_default()).unwrap();
        format!("{}\t{value}\n", entry.key)
    };
    entries.iter().map(line).collect()
}

fn entries(text: &str) -> Vec<Entry> {
    let entry = |line: &str| {
        let (key, value) = line.split_once('\t').unwrap();
        Entry { key: key.to_owned(), value: Some(value.as_bytes().to_vec()) }
    };
    text.lines().map(entry).collect()
}

/// Fails unless everything that [`today`] tells of was found.
fn check(form: usize, recovered: &Recovered) {
    let (found, execution) = recovered.run.as_ref().unwrap_or_else(|| panic!("form {form}: the run is lost"));
    assert_eq!((found.id, found.task), (Uuid::from_u128(7), Some(Uuid::from_u128(8))), "form {form}");
    assert_eq!((found.proposal.as_str(), found.order.moves.len()), ("abc", 3), "form {form}");
    assert_eq!((execution.throttling(), execution.is_stopping()), (Throttling::On, false), "form {form}");
    assert_eq!(execution.rates().of_others, [BrokerId(1)].into(), "form {form}");
    let fresh = Execution::new(found.order.clone());
    assert_ne!(execution.tasks(), fresh.tasks(), "form {form}: it stands where it stood, and not at the beginning");
    let task = &recovered.tasks[&Uuid::from_u128(8)];
    assert!(matches!(task.status, Status::InExecution(_)), "form {form}");
    let History { removed, demoted, missing } = &recovered.history;
    assert_eq!((removed.len(), demoted.len(), missing.len()), (1, 1, 1), "form {form}");
    assert!(recovered.leftover.brokers.contains(&BrokerId(1)), "form {form}");
}

#[test]
fn what_is_written_today_is_the_last_form() {
    let written = text(&today());
    if written == FORMS[FORMS.len() - 1] {
        return;
    }
    let next = format!("forms/{}.tsv", FORMS.len() + 1);
    if std::env::var_os("EVENKEEL_BLESS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/journal");
        fs::write(folder.join(&next), &written).unwrap();
    }
    panic!("records have another form: EVENKEEL_BLESS=1 writes it to {next}; list it, and keep those before it");
}

#[test]
fn every_form_is_taken_up() {
    for (number, form) in FORMS.iter().enumerate() {
        let recovered = recover(entries(form));
        check(number + 1, &recovered);
        assert_eq!(recovered.strange, BTreeSet::new());
    }
}

#[test]
fn what_a_newer_engine_has_added_is_passed_over() {
    for (number, form) in FORMS.iter().enumerate() {
        let mut newer = entries(form);
        for entry in &mut newer {
            let mut value: Value = serde_json::from_slice(entry.value.as_deref().unwrap()).unwrap();
            let added = json!({"anything": [1]});
            match &mut value {
                Value::Object(fields) => drop(fields.insert("addedLater".to_owned(), added)),
                Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(|fields| {
                    // A thing with one name for its kind is what it is; a record of many may have one more.
                    if fields.len() > 1 {
                        fields.insert("addedLater".to_owned(), added.clone());
                    }
                }),
                _ => {}
            }
            entry.value = Some(serde_json::to_vec(&value).unwrap());
        }
        newer.push(Entry { key: "policy/x".to_owned(), value: Some(b"{}".to_vec()) });
        let recovered = recover(newer);
        check(number + 1, &recovered);
        assert_eq!(recovered.strange, BTreeSet::from(["policy/x".to_owned()]));
    }
}
