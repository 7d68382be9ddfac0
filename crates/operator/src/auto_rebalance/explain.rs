//! Why a cluster was, or was not, rebalanced by itself: the parts that decide, asked one by one, for a person. What is
//! said here about guards and templates is what the machine goes by.

use std::collections::BTreeMap;

use evenkeel_api::{
    Kafka, KafkaRebalance, Reason,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
};
use jiff::Timestamp;

use super::{
    decide::idle::HELD_BY_LEAVING,
    generated::Generated,
    guards::{self, Closed},
    imbalance::Violations,
    observe::{Brake, Manual, sort_rebalances},
    settings::Configured,
    state::{Brokers, Recorded, listed},
    template::{self, Template},
    tracker::Tracker,
};

/// Everything that there is to say.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What is being done.
    pub state: AutoRebalanceState,
    /// Since when. None: nothing was ever done.
    pub since: Option<Timestamp>,
    /// Brokers to empty, running or queued.
    pub removals: Brokers,
    /// Brokers to fill, running or queued.
    pub additions: Brokers,
    /// Generated rebalances that are there.
    pub generated: Vec<Generated>,
    /// The modes that are switched on. None at all: the feature is off.
    pub modes: Vec<Mode>,
    /// Violated goals.
    pub violations: Violations,
    /// What a rebalance has to pass before it begins.
    pub guards: Vec<Guard>,
    /// The last failure of each mode since its last success.
    pub failures: BTreeMap<AutoRebalanceMode, String>,
    /// When a rebalance of any kind last came to its end.
    pub last_end: Option<Timestamp>,
}

/// A mode that is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Which.
    pub mode: AutoRebalanceMode,
    /// The template that it names.
    pub template: Option<String>,
    /// What is wrong with that, if anything is.
    pub trouble: Option<String>,
}

/// Something that may keep a rebalance from beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its name.
    pub name: &'static str,
    /// What it is set to.
    pub set_to: String,
    /// Why it is closed, if it is.
    pub closed: Option<Closed>,
}

/// Explains a cluster. `violations` and `tracker` are the data of its two ConfigMaps, where they are there.
pub fn explain(
    kafka: &Kafka,
    rebalances: &[KafkaRebalance],
    violations: Option<&BTreeMap<String, String>>,
    tracker: Option<&BTreeMap<String, String>>,
    now: Timestamp,
) -> Explained {
    let cluster = kafka.metadata.name.as_deref().unwrap_or_default();
    let configured = Configured::of(&kafka.spec);
    let named = |it: &KafkaRebalance| Some((it.metadata.name.clone()?, it.clone()));
    let there: BTreeMap<String, KafkaRebalance> = rebalances.iter().filter_map(named).collect();
    let (tracker, _) = Tracker::read(tracker, now);
    let violations = violations.map(Violations::read).unwrap_or_default();
    let status = kafka.status.as_ref().and_then(|status| status.auto_rebalance.as_ref());
    let recorded = Recorded::read(status);
    Explained {
        state: recorded.state,
        since: status.and_then(|status| status.last_transition_time.as_ref()?.parse().ok()),
        removals: recorded.removals,
        additions: recorded.additions,
        generated: sort_rebalances(rebalances, cluster).0,
        modes: configured.modes.keys().map(|mode| verdict(*mode, kafka, &configured, &there)).collect(),
        guards: guards(kafka, &configured, &tracker, &violations, rebalances, now),
        failures: tracker.failures.iter().map(|(mode, failure)| (*mode, failure.message.clone())).collect(),
        last_end: tracker.last_completion,
        violations,
    }
}

fn verdict(
    mode: AutoRebalanceMode,
    kafka: &Kafka,
    configured: &Configured,
    there: &BTreeMap<String, KafkaRebalance>,
) -> Mode {
    let template = Template::of(mode, configured, there);
    // What the engine really watches only the operator knows, and it has said what is wrong with that.
    let looked = kafka.status.as_ref().filter(|status| {
        status.observed_generation.is_some() && status.observed_generation == kafka.metadata.generation
    });
    let goals = || match looked {
        _ if mode != AutoRebalanceMode::Imbalance => None,
        None => template::goals_trouble(template, configured),
        Some(status) => {
            let mut said = status.conditions.iter();
            said.find(|it| it.has_reason(Reason::InvalidRebalanceTemplateGoals)).cloned()
        }
    };
    Mode {
        mode,
        template: configured.modes.get(&mode).cloned().flatten(),
        trouble: template.warning(mode).or_else(goals).and_then(|warning| warning.message),
    }
}

fn guards(
    kafka: &Kafka,
    configured: &Configured,
    tracker: &Tracker,
    violations: &Violations,
    rebalances: &[KafkaRebalance],
    now: Timestamp,
) -> Vec<Guard> {
    let none = BTreeMap::new();
    let brake = match Brake::read(kafka.metadata.annotations.as_ref().unwrap_or(&none)) {
        Brake::Released => None,
        Brake::Pulled => Some("the annotation evenkeel.io/auto-rebalance holds everything".to_owned()),
        Brake::Unreadable(invalid) => Some(invalid.to_string()),
    };
    let mut all = vec![Guard {
        name: "brake",
        set_to: "all modes".to_owned(),
        closed: brake.map(|why| Closed { why, opens: None }),
    }];
    let attempts = [
        (AutoRebalanceMode::RemoveBrokers, "emptying", &tracker.removal),
        (AutoRebalanceMode::AddBrokers, "filling", &tracker.addition),
    ];
    for (mode, name, attempts) in attempts.into_iter().filter(|(mode, ..)| configured.has(*mode)) {
        let pause = attempts.not_before.filter(|time| *time > now);
        let why = || format!("{} attempts of mode {mode} have failed in a row", attempts.failed);
        let closed = pause.map(|opens| Closed { why: why(), opens: Some(opens) });
        all.push(Guard { name, set_to: "30 s after a failure, growing".to_owned(), closed });
    }
    if !configured.has(AutoRebalanceMode::Imbalance) {
        return all;
    }
    let history = &tracker.imbalance;
    let limit = |name, set_to: String, closed| Guard { name, set_to, closed };
    let windows = match configured.windows.len() {
        0 => "at any time".to_owned(),
        1 => "one window".to_owned(),
        many => format!("{many} windows"),
    };
    let cap = configured.most_data_mb.map_or_else(|| "no limit".to_owned(), |most| format!("at most {most} MB"));
    all.extend([
        limit("rate", format!("{} an hour", guards::STARTS_PER_HOUR), guards::rate(history, now)),
        limit("pause", "10 min, growing".to_owned(), guards::pause(history, &violations.fixable_goals(), now)),
        limit("window", windows, guards::window(&configured.windows, now)),
        limit("data", cap, None),
        limit("brokers", "after those that come or go".to_owned(), scaling(kafka)),
        limit("users", "after rebalances of theirs".to_owned(), manual(kafka, rebalances)),
    ]);
    all
}

/// Whether brokers come or go first. Who is to go and whether anybody empties them only the operator knows, and it has said so.
fn scaling(kafka: &Kafka) -> Option<Closed> {
    let status = kafka.status.as_ref()?;
    let recorded = Recorded::read(status.auto_rebalance.as_ref());
    let queued: Brokers = &recorded.removals | &recorded.additions;
    let mut said = status.conditions.iter().filter_map(|it| it.message.as_deref());
    let why = match said.find(|text| text.starts_with(HELD_BY_LEAVING)) {
        Some(said) => said.to_owned(),
        None if queued.is_empty() => return None,
        None => format!("brokers {} are to be filled or emptied first", listed(&queued)),
    };
    Some(Closed { why, opens: None })
}

/// Whether a user's rebalance comes first.
fn manual(kafka: &Kafka, rebalances: &[KafkaRebalance]) -> Option<Closed> {
    let (_, manual) = sort_rebalances(rebalances, kafka.metadata.name.as_deref().unwrap_or_default());
    let first = manual.into_iter().find(Manual::is_asked_for)?;
    Some(Closed { why: format!("KafkaRebalance {} is {}", first.name, first.state), opens: None })
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{KafkaRebalanceSpec, annotations};
    use serde_json::{Value, json};

    use super::*;
    use crate::auto_rebalance::tracker::{History, LastFailure};

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn kafka(spec: Value, annotations: Value) -> Kafka {
        serde_json::from_value(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka",
            "metadata": {"name": "c", "annotations": annotations}, "spec": spec,
            "status": {"autoRebalance": {
                "state": "RebalanceOnScaleDown", "lastTransitionTime": "2026-01-01T11:00:00Z",
                "modes": [{"mode": "remove-brokers", "brokers": [3, 4]}, {"mode": "add-brokers", "brokers": [5]}],
            }},
        }))
        .unwrap()
    }

    #[test]
    fn it_says_what_the_machine_goes_by() {
        let spec = json!({"maintenanceTimeWindows": ["0 0 3 * * ?"], "cruiseControl": {
            "config": {"evenkeel.auto.rebalance.max.data.mb": 500},
            "autoRebalance": [{"mode": "remove-brokers"}, {"mode": "imbalance", "template": {"name": "t"}}],
        }});
        let kafka = kafka(spec, json!({"evenkeel.io/auto-rebalance": "off"}));
        let mut tracker =
            Tracker { imbalance: History { ended: Some(now()), ..History::default() }, ..Tracker::default() };
        tracker.removal.count_failure("u1", now(), None);
        let failure = LastFailure { message: "it failed".into(), ..LastFailure::default() };
        tracker.failures.insert(AutoRebalanceMode::Imbalance, failure);
        let map = BTreeMap::from([("fixableAnomalies".to_owned(), "- a1: [RackAwareGoal]".to_owned())]);
        let mut own = KafkaRebalance::new("c-auto-rebalancing-remove-brokers", KafkaRebalanceSpec::default());
        own.metadata.finalizers = Some(vec![annotations::AUTO_REBALANCING_FINALIZER.to_owned()]);
        let found = explain(&kafka, &[own], Some(&map), Some(&tracker.written()), now());
        assert_eq!((found.state, found.removals.len()), (AutoRebalanceState::RebalanceOnScaleDown, 2));
        assert_eq!((found.additions.len(), found.generated.len()), (1, 1));
        let troubles: Vec<bool> = found.modes.iter().map(|mode| mode.trouble.is_some()).collect();
        assert_eq!(troubles, [false, true], "{:?}", found.modes);
        let closed: Vec<(&str, bool)> = found.guards.iter().map(|it| (it.name, it.closed.is_some())).collect();
        let of_imbalance = [("rate", false), ("pause", true), ("window", true), ("data", false)];
        let others = [("brokers", true), ("users", false)];
        assert_eq!(closed, [&[("brake", true), ("emptying", true)][..], &of_imbalance, &others].concat());
        let opens = found.guards[4].closed.as_ref().unwrap().opens;
        assert_eq!(opens.map(|time| time.to_string()).as_deref(), Some("2026-01-02T03:00:00Z"));
        assert_eq!(found.failures[&AutoRebalanceMode::Imbalance], "it failed");
        assert_eq!(found.violations.fixable.len(), 1);
    }

    #[test]
    fn whoever_else_comes_first_is_named() {
        let why = |conditions: Value, rebalances: &[KafkaRebalance]| -> Vec<String> {
            let mut kafka = kafka(json!({"cruiseControl": {"autoRebalance": [{"mode": "imbalance"}]}}), json!({}));
            kafka.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
            let found = explain(&kafka, rebalances, None, None, now()).guards;
            found.into_iter().filter_map(|guard| Some(guard.closed?.why)).collect()
        };
        assert_eq!(why(json!([]), &[]), [""; 0]);
        let said = "no rebalance on imbalance while brokers [4] are to go";
        let warning = json!([{"type": "Warning", "status": "True", "reason": "AutoRebalanceWaiting", "message": said}]);
        assert_eq!(why(warning, &[]), [said]);
        let mut mine = KafkaRebalance::new("mine", KafkaRebalanceSpec::default());
        mine.metadata.labels = Some([("strimzi.io/cluster".to_owned(), "c".to_owned())].into());
        assert_eq!(why(json!([]), &[mine]), ["KafkaRebalance mine is New"]);
    }

    #[test]
    fn where_it_is_off_there_is_nothing_to_say() {
        let found = explain(&kafka(json!({"cruiseControl": {}}), json!({})), &[], None, None, now());
        assert!(found.modes.is_empty() && found.failures.is_empty());
        assert_eq!(found.guards.len(), 1, "only the brake is for all");
    }
}
