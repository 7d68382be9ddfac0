//! An operator that is replaced by a newer one in the midst of a run leaves its records to it: the status of a Kafka, of
//! the rebalance that was made for it, and what automatic rebalancing remembers. Every form in which they were ever
//! written is kept here, and read.

use evenkeel_api::{
    Kafka, KafkaRebalance,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
    rebalance::RebalanceState,
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::auto_rebalance::tracker::Tracker;

/// Oldest first, all in the midst of emptying broker 3. None of them is ever changed: a form that changes gets a file of
/// its own, which is what an operator has written then.
const FORMS: [&str; 3] = [include_str!("forms/1.json"), include_str!("forms/2.json"), include_str!("forms/3.json")];

struct Records {
    kafka: Kafka,
    rebalance: KafkaRebalance,
    tracker: Tracker,
}

impl Records {
    fn read(form: &Value) -> Self {
        fn part<T: DeserializeOwned>(form: &Value, name: &str) -> T {
            serde_json::from_value(form[name].clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
        }
        let map: ConfigMap = part(form, "tracker");
        let (tracker, is_readable) = Tracker::read(map.data.as_ref(), "2026-01-01T00:01:00Z".parse().unwrap());
        assert!(is_readable, "{map:?}");
        Self { kafka: part(form, "kafka"), rebalance: part(form, "rebalance"), tracker }
    }

    /// Fails unless everything is known that the next step depends on.
    fn check(self) {
        let auto = self.kafka.status.and_then(|status| status.auto_rebalance).expect("what is being done");
        assert_eq!(auto.state, AutoRebalanceState::RebalanceOnScaleDown);
        let queued: Vec<_> = auto.modes.iter().map(|mode| (mode.mode, mode.brokers.clone())).collect();
        assert_eq!(queued, [(AutoRebalanceMode::RemoveBrokers, vec![3])]);
        assert_eq!(self.rebalance.state(), RebalanceState::Rebalancing);
        let status = self.rebalance.status.expect("how far it is");
        assert_eq!(status.session_id.as_deref(), Some("0e8b8156-3b9f-433c-b6b1-b07acfe155a3"));
        assert!(status.progress.is_some() && status.observed_generation == Some(1));
        let result = serde_json::to_value(status.optimization_result).unwrap();
        assert_eq!(result["proposalId"], "9f3483032a02e8eddf2c69c8b2a35d8b");
        let Tracker { last_completion, in_sight, removal, addition, imbalance, failures } = self.tracker;
        assert_eq!(in_sight.map(|sight| sight.name), self.rebalance.metadata.name);
        assert_eq!((removal.failed, removal.unknown, addition.failed), (1, 1, 0));
        assert!(removal.not_before.is_some() && removal.counted.is_some() && last_completion.is_some());
        assert_eq!((imbalance.repeats, imbalance.starts.len(), imbalance.goals.len()), (2, 1, 1));
        assert!(imbalance.ended.is_some() && failures[&AutoRebalanceMode::AddBrokers].stopped);
    }
}

#[test]
fn every_form_is_taken_up() {
    for form in FORMS {
        Records::read(&serde_json::from_str(form).unwrap()).check();
    }
}

#[test]
fn nothing_of_the_last_form_is_lost_when_it_is_written_again() {
    let form: Value = serde_json::from_str(FORMS[FORMS.len() - 1]).unwrap();
    let Records { kafka, rebalance, tracker } = Records::read(&form);
    assert_eq!(serde_json::to_value(kafka.status).unwrap(), form["kafka"]["status"]);
    assert_eq!(serde_json::to_value(rebalance.status).unwrap(), form["rebalance"]["status"]);
    assert_eq!(serde_json::to_value(tracker.written()).unwrap(), form["tracker"]["data"]);
}

#[test]
fn what_a_newer_operator_has_added_is_passed_over() {
    for form in FORMS {
        let mut form: Value = serde_json::from_str(form).unwrap();
        let memory = form["tracker"]["data"]["memory.json"].as_str().unwrap();
        let mut memory: Value = serde_json::from_str(memory).unwrap();
        add(&mut memory);
        add(&mut form["kafka"]["status"]);
        add(&mut form["rebalance"]["status"]);
        form["tracker"]["data"]["memory.json"] = json!(memory.to_string());
        form["tracker"]["data"]["addedLater"] = json!("anything");
        Records::read(&form).check();
    }
}

/// Adds a field to everything that has fields. Failures are listed by mode, so there one more would be another mode.
fn add(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().filter(|(name, _)| *name != "failures").for_each(|(_, inner)| add(inner));
            fields.insert("addedLater".to_owned(), json!({"anything": [1]}));
        }
        Value::Array(items) => items.iter_mut().for_each(add),
        _ => {}
    }
}
