//! What a `Kafka` says about automatic rebalancing: its modes, and the settings of ours that stand
//! among Cruise Control's.
//!
//! A setting that cannot be read keeps its default, and its author is told.

use std::collections::{BTreeMap, btree_map::Entry};

use evenkeel_api::{Condition, FreeForm, KafkaSpec, Reason, kafka::AutoRebalanceMode};
use jiff::SignedDuration;
use serde_json::Value;

use crate::access;

use super::{guards, template::GoalsPolicy};

/// Stop a rebalance on imbalance when brokers come or go, instead of waiting for its end.
pub const PREEMPT: &str = "evenkeel.auto.rebalance.preempt";
/// How a template's goals must relate to those that are watched: `subset` or `superset`.
pub const TEMPLATE_GOALS: &str = "evenkeel.auto.rebalance.template.goals";
/// How many megabytes a rebalance on imbalance may move at most.
pub const MAX_DATA_MB: &str = "evenkeel.auto.rebalance.max.data.mb";
/// How often a scale-up's rebalance that has failed for good is tried again.
pub const SCALE_UP_RETRIES: &str = "evenkeel.auto.rebalance.scale.up.retries";

/// The goals that are watched.
pub(crate) const DETECTION_GOALS: &str = "anomaly.detection.goals";
/// How often the engine looks for violated goals, in ms; the first is the more exact one.
const GOAL_INTERVAL: &str = "goal.violation.detection.interval.ms";
const INTERVAL: &str = "anomaly.detection.interval.ms";
const USUAL_INTERVAL: SignedDuration = SignedDuration::from_mins(5);
/// Who is told of what is found.
pub(crate) const NOTIFIER: &str = "anomaly.notifier.class";
/// The notifier that the operator configures: it writes violated goals into a ConfigMap.
pub(crate) const OUR_NOTIFIER: &str = "io.strimzi.kafka.cruisecontrol.StrimziCruiseControlNotifier";

/// What is watched if the user names nothing. There is no distribution goal among them: drifting
/// load is noticed only by who asks for it.
pub const DEFAULT_DETECTION_GOALS: [&str; 4] =
    ["RackAwareGoal", "MinTopicLeadersPerBrokerGoal", "ReplicaCapacityGoal", "DiskCapacityGoal"];

/// What a `Kafka` says about automatic rebalancing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configured {
    /// The modes that are switched on, each with the name of its template. None at all: the feature
    /// is off.
    pub modes: BTreeMap<AutoRebalanceMode, Option<String>>,
    /// Whether scaling stops a rebalance on imbalance.
    pub preempt: bool,
    /// How a template's goals must relate to those that are watched.
    pub goals_policy: GoalsPolicy,
    /// How many megabytes a rebalance on imbalance may move at most.
    pub most_data_mb: Option<u64>,
    /// How often a failed scale-up is tried again.
    pub scale_up_retries: u32,
    /// The goals that are watched, as far as the spec alone tells; whoever knows the engine's settings knows better.
    pub detection_goals: Vec<String>,
    /// How often they are looked at, if the engine cannot write down itself which of them are violated. None: it can, or
    /// nobody wants to know.
    pub polled_every: Option<SignedDuration>,
    /// When a rebalance on imbalance may begin. None at all: at any time.
    pub windows: Vec<String>,
    /// Bytes per second for rebalances without a throttle of their own.
    pub throttle: Option<i64>,
    /// What is wrong with all this.
    pub remarks: Vec<Condition>,
}

impl Configured {
    /// What this spec says.
    pub fn of(spec: &KafkaSpec) -> Self {
        let Some(engine) = &spec.cruise_control else { return Self::default() };
        let mut remarks = Vec::new();
        let mut modes = BTreeMap::new();
        for entry in spec.auto_rebalances() {
            match modes.entry(entry.mode) {
                Entry::Vacant(free) => {
                    free.insert(entry.template_name().map(str::to_owned));
                }
                Entry::Occupied(_) => {
                    let text = format!("autoRebalance lists mode {} twice: the first entry counts", entry.mode);
                    remarks.push(Condition::warning(Reason::InvalidResourceException, text));
                }
            }
        }
        for (path, successor) in spec.deprecated_fields() {
            let text = format!("{path} is deprecated: write {successor} instead");
            remarks.push(Condition::warning(Reason::DeprecatedFields, text));
        }
        let empty = FreeForm::new();
        let config = engine.config.as_ref().unwrap_or(&empty);
        // Another Cruise Control keeps the notifier that the user gave it: the operator asks it instead.
        if modes.contains_key(&AutoRebalanceMode::Imbalance)
            && access::is_ours(engine)
            && text_of(config, NOTIFIER).is_some_and(|class| short_name(&class) != short_name(OUR_NOTIFIER))
        {
            let text =
                "Notifier cannot be overridden since `imbalance` mode is enabled in the `auto-rebalance` configuration";
            remarks.push(Condition::warning(Reason::UnsupportedOperationException, text));
        }
        let mut settings = Settings { config, remarks: &mut remarks };
        let goals_policy = |text: &str| match text {
            "subset" => Some(GoalsPolicy::Subset),
            "superset" => Some(GoalsPolicy::Superset),
            _ => None,
        };
        let preempt = settings.read(PREEMPT, "`true` or `false`", |text| text.parse().ok());
        let goals_policy = settings.read(TEMPLATE_GOALS, "`subset` or `superset`", goals_policy);
        let most_data_mb = settings.read(MAX_DATA_MB, "a whole number of megabytes", |text| text.parse().ok());
        let retries = settings.read(SCALE_UP_RETRIES, "a whole number", |text| text.parse().ok());
        let interval = [GOAL_INTERVAL, INTERVAL].into_iter().find_map(|key| text_of(config, key)?.trim().parse().ok());
        let interval = interval.filter(|millis: &i64| *millis > 0).map_or(USUAL_INTERVAL, SignedDuration::from_millis);
        let polled = modes.contains_key(&AutoRebalanceMode::Imbalance) && !access::is_ours(engine);
        let polled_every = polled.then_some(interval);
        Self {
            modes,
            preempt: preempt.unwrap_or_default(),
            goals_policy: goals_policy.unwrap_or_default(),
            most_data_mb,
            scale_up_retries: retries.unwrap_or_default(),
            detection_goals: detection_goals(config),
            polled_every,
            windows: spec.maintenance_time_windows.clone().unwrap_or_default(),
            throttle: engine.broker_capacity.as_ref().and_then(guards::default_throttle),
            remarks,
        }
    }

    /// Whether this mode is switched on.
    pub fn has(&self, mode: AutoRebalanceMode) -> bool {
        self.modes.contains_key(&mode)
    }
}

struct Settings<'a> {
    config: &'a FreeForm,
    remarks: &'a mut Vec<Condition>,
}

impl Settings<'_> {
    fn read<T>(&mut self, key: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = text_of(self.config, key)?;
        let value = parse(text.trim());
        if value.is_none() {
            let text = format!("{key} is `{text}`: write {expected}. Until then its default counts");
            self.remarks.push(Condition::warning(Reason::InvalidResourceException, text));
        }
        value
    }
}

/// A setting as text: YAML makes `true` and `3` of what Cruise Control reads as text.
fn text_of(config: &FreeForm, key: &str) -> Option<String> {
    match config.get(key)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The goals that are watched, as the user names them or by default.
fn detection_goals(config: &FreeForm) -> Vec<String> {
    let named = text_of(config, DETECTION_GOALS).unwrap_or_default();
    let named: Vec<String> =
        named.split(',').map(|goal| short_name(goal).to_owned()).filter(|goal| !goal.is_empty()).collect();
    if named.is_empty() { DEFAULT_DETECTION_GOALS.map(str::to_owned).to_vec() } else { named }
}

/// The name of a goal or a notifier without its package.
pub(crate) fn short_name(class: &str) -> &str {
    class.trim().rsplit('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::access::OURS;

    fn configured(spec: Value) -> Configured {
        Configured::of(&serde_json::from_value(spec).unwrap())
    }

    fn reasons(configured: &Configured) -> Vec<&str> {
        configured.remarks.iter().filter_map(|remark| remark.reason.as_deref()).collect()
    }

    #[test]
    fn without_modes_the_feature_is_off() {
        for spec in [json!({}), json!({"cruiseControl": {}}), json!({"cruiseControl": {"autoRebalance": []}})] {
            assert!(configured(spec).modes.is_empty());
        }
    }

    #[test]
    fn both_ways_to_name_a_template_are_read_and_doubles_are_pointed_out() {
        let found = configured(json!({"cruiseControl": {"autoRebalance": [
            {"mode": "add-brokers", "template": {"name": "a"}},
            {"mode": "remove-brokers", "config": "b"},
            {"mode": "add-brokers", "template": {"name": "c"}},
            {"mode": "imbalance"},
        ]}}));
        assert_eq!(
            found.modes,
            BTreeMap::from([
                (AutoRebalanceMode::AddBrokers, Some("a".into())),
                (AutoRebalanceMode::RemoveBrokers, Some("b".into())),
                (AutoRebalanceMode::Imbalance, None),
            ])
        );
        assert_eq!(reasons(&found), ["InvalidResourceException", "DeprecatedFields"]);
    }

    #[test]
    fn settings_are_read_as_text_or_as_yaml_values() {
        let found = configured(json!({"maintenanceTimeWindows": ["* * 1 ? * * *"], "cruiseControl": {
            "autoRebalance": [{"mode": "imbalance"}],
            "brokerCapacity": {"inboundNetwork": "10KB/s"},
            "config": {
                PREEMPT: true, TEMPLATE_GOALS: "superset", MAX_DATA_MB: "500", SCALE_UP_RETRIES: 3,
                "anomaly.detection.goals": "com.linkedin.a.RackAwareGoal, DiskUsageDistributionGoal,",
            },
        }}));
        assert_eq!(
            found,
            Configured {
                modes: BTreeMap::from([(AutoRebalanceMode::Imbalance, None)]),
                preempt: true,
                goals_policy: GoalsPolicy::Superset,
                most_data_mb: Some(500),
                scale_up_retries: 3,
                detection_goals: vec!["RackAwareGoal".into(), "DiskUsageDistributionGoal".into()],
                windows: vec!["* * 1 ? * * *".into()],
                throttle: Some(5_000),
                polled_every: None,
                remarks: vec![],
            }
        );
    }

    #[test]
    fn only_an_engine_that_cannot_tell_by_itself_is_asked_for_violated_goals() {
        let polled = |mode: &str, engine: Value| {
            let mut engine = engine;
            engine["autoRebalance"] = json!([{"mode": mode}]);
            configured(json!({"cruiseControl": engine})).polled_every.map(|every| every.as_secs())
        };
        assert_eq!(polled("imbalance", json!({})), None);
        assert_eq!(polled("add-brokers", json!({"image": "linkedin"})), None);
        assert_eq!(polled("imbalance", json!({"image": "linkedin"})), Some(300));
        assert_eq!(polled("imbalance", json!({"image": "x", "config": {OURS: "true"}})), None);
        for (config, seconds) in [
            (json!({INTERVAL: 60_000}), 60),
            (json!({INTERVAL: 60_000, GOAL_INTERVAL: "20000"}), 20),
            (json!({INTERVAL: -1}), 300),
            (json!({INTERVAL: "soon"}), 300),
        ] {
            assert_eq!(polled("imbalance", json!({"image": "linkedin", "config": config})), Some(seconds), "{config}");
        }
    }

    #[test]
    fn what_cannot_be_read_keeps_its_default_and_is_named() {
        let found = configured(json!({"cruiseControl": {
            "autoRebalance": [{"mode": "imbalance"}],
            "config": {PREEMPT: "yes", TEMPLATE_GOALS: "both", MAX_DATA_MB: -1, SCALE_UP_RETRIES: 1.5},
        }}));
        assert_eq!(reasons(&found), ["InvalidResourceException"; 4]);
        assert!(!found.preempt && found.most_data_mb.is_none() && found.scale_up_retries == 0);
        assert_eq!(found.goals_policy, GoalsPolicy::Subset);
        assert_eq!(found.detection_goals, DEFAULT_DETECTION_GOALS);
    }

    #[test]
    fn another_notifier_is_pointed_out_while_imbalance_is_watched() {
        let with = |mode: &str, class: &str| {
            configured(json!({"cruiseControl": {
                "autoRebalance": [{"mode": mode}], "config": {"anomaly.notifier.class": class},
            }}))
        };
        let found = with("imbalance", "com.x.SlackSelfHealingNotifier");
        assert_eq!(reasons(&found), ["UnsupportedOperationException"]);
        assert_eq!(
            found.remarks[0].message.as_deref(),
            Some(
                "Notifier cannot be overridden since `imbalance` mode is enabled in the `auto-rebalance` configuration"
            )
        );
        assert!(with("imbalance", "io.strimzi.StrimziCruiseControlNotifier").remarks.is_empty());
        assert!(with("add-brokers", "com.x.SlackSelfHealingNotifier").remarks.is_empty());
        let theirs =
            configured(json!({"cruiseControl": {"image": "linkedin", "autoRebalance": [{"mode": "imbalance"}],
            "config": {"anomaly.notifier.class": "com.x.SlackSelfHealingNotifier"}}}));
        assert!(theirs.remarks.is_empty(), "there it is not overridden");
    }
}
