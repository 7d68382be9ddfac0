//! What a Kafka asks of its engine.

use evenkeel_api::{
    FreeForm, Kafka, Reason,
    kafka::{AutoRebalanceMode, CruiseControlSpec},
};
use serde_json::Value;

use super::{misspelt, users::wrong_users};
use crate::access::{OURS, is_ours, is_secured};
use crate::kafka::{
    config::{Owner, UserConfig},
    problem::{Problem, Remark},
    properties::Properties,
    settings::Settings,
    template::{self, EngineTemplate},
};

/// Says that the image of Kafka holds the metrics reporter.
pub(crate) const REPORTER: &str = "evenkeel.metrics.reporter";
/// Settings of the operator: never the engine's.
const OPERATORS: &str = "evenkeel.";
/// Those that automatic rebalancing reads.
const AUTO_REBALANCE: &str = "evenkeel.auto.rebalance.";

/// What a Kafka asks of its engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The image.
    pub image: String,
    /// Whether it is ours.
    pub ours: bool,
    /// Whether brokers have the metrics reporter.
    pub reporter: bool,
    /// Whether imbalance is to be noticed.
    pub imbalance: bool,
    /// The user's settings, without those that are the operator's.
    pub config: Properties,
    /// The user's template.
    pub template: EngineTemplate,
    /// All else.
    pub spec: CruiseControlSpec,
}

impl Wanted {
    pub(in crate::kafka) fn read(
        kafka: &Kafka,
        settings: &Settings,
        problems: &mut Vec<Problem>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Self> {
        let spec = kafka.spec.cruise_control.clone()?;
        let empty = FreeForm::new();
        let written = spec.config.as_ref().unwrap_or(&empty);
        let mut own = |key: &str| flag(written, key, remarks);
        // Read for the sake of what is said about it.
        let _ = own(OURS);
        let reporter = own(REPORTER);
        let unread = written.keys().filter(|key| {
            key.starts_with(OPERATORS) && ![OURS, REPORTER].contains(&key.as_str()) && !key.starts_with(AUTO_REBALANCE)
        });
        let unread: Vec<Remark> = unread
            .map(|key| {
                let text = format!("spec.cruiseControl.config: {key} is no setting of the operator: it is left out");
                Remark::of_kafka(Reason::FieldNotHonoured, text)
            })
            .collect();
        remarks.extend(unread);
        let of_engine: FreeForm = written
            .iter()
            .filter(|(key, _)| !key.starts_with(OPERATORS))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let mut config = UserConfig::read(Some(&of_engine), Owner::Engine);
        remarks.append(&mut config.remarks);
        let template = template::read(spec.template.as_ref()).map(|(template, _)| template);
        let template = template.map_err(|text| problems.push(Problem::of_kafka("spec.cruiseControl.template", text)));
        let ours = is_ours(&spec);
        remarks.extend(misspelt::remarks(&config.entries, ours));
        if ours && spec.jvm_options.is_some() {
            let text = "spec.cruiseControl.jvmOptions is not honoured: this engine has no virtual machine";
            remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
        }
        problems.extend(wrong_users(&spec));
        let template: EngineTemplate = template.unwrap_or_default();
        if ours && template.deployment.deployment_strategy.as_ref().is_some_and(|strategy| strategy != "Recreate") {
            let text = "spec.cruiseControl.template.deployment.deploymentStrategy is not honoured: only one engine acts at a \
                        time, so it is `Recreate`";
            remarks.push(Remark::of_kafka(Reason::FieldNotHonoured, text));
        }
        Some(Self {
            ours,
            reporter,
            imbalance: kafka.spec.auto_rebalance(AutoRebalanceMode::Imbalance).is_some(),
            image: spec.image.clone().unwrap_or_else(|| settings.engine_image.clone()),
            config: config.entries,
            template,
            spec,
        })
    }

    /// Whether users have to say who they are.
    pub fn is_secured(&self) -> bool {
        is_secured(&self.spec)
    }
}

fn flag(config: &FreeForm, key: &str, remarks: &mut Vec<Remark>) -> bool {
    let text = match config.get(key) {
        None | Some(Value::Null) => return false,
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match text.trim() {
        "true" => true,
        "false" => false,
        _ => {
            let text =
                format!("spec.cruiseControl.config: {key} is `{text}`: write `true` or `false`. Until then it is off");
            remarks.push(Remark::of_kafka(Reason::InvalidResourceException, text));
            false
        }
    }
}
