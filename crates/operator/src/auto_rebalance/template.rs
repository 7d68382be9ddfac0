//! Templates: KafkaRebalances that only hold goals and options for others.
//!
//! A template that is missing, or that is a rebalance of its own, is as good as none: its mode does
//! nothing, and its author is told.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    Condition, KafkaRebalance, KafkaRebalanceSpec, Reason, annotations, kafka::AutoRebalanceMode, names::is_name,
};

use super::settings::{Configured, short_name};

/// How a template's goals must relate to those that are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoalsPolicy {
    /// Only goals that are watched may be rebalanced for.
    #[default]
    Subset,
    /// All goals that are watched must be rebalanced for.
    Superset,
}

/// What became of the template that a mode names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Template<'a> {
    /// None is named: Cruise Control's own defaults.
    Defaults,
    /// It is there.
    Found(&'a KafkaRebalanceSpec),
    /// There is none of that name.
    Missing(&'a str),
    /// There is one, but it is not marked as a template.
    Unmarked(&'a str),
}

impl<'a> Template<'a> {
    /// What became of this mode's template. `there` holds the KafkaRebalances of the namespace by name.
    pub(super) fn of(
        mode: AutoRebalanceMode,
        configured: &'a Configured,
        there: &'a BTreeMap<String, KafkaRebalance>,
    ) -> Self {
        let Some(name) = configured.modes.get(&mode).and_then(Option::as_deref) else { return Self::Defaults };
        match there.get(name) {
            None => Self::Missing(name),
            Some(found) if found.metadata.annotations.as_ref().is_some_and(annotations::is_template) => {
                Self::Found(&found.spec)
            }
            Some(_) => Self::Unmarked(name),
        }
    }

    pub(super) fn is_usable(self) -> bool {
        matches!(self, Self::Defaults | Self::Found(_))
    }

    /// What goes into a generated rebalance.
    pub(super) fn spec(self) -> Option<&'a KafkaRebalanceSpec> {
        match self {
            Self::Found(spec) => Some(spec),
            _ => None,
        }
    }

    /// What to tell about it.
    pub(super) fn warning(self, mode: AutoRebalanceMode) -> Option<Condition> {
        let wrong = match self {
            Self::Defaults | Self::Found(_) => return None,
            Self::Missing(name) if !is_name(name) => format!("`{name}` is no name of a KafkaRebalance"),
            Self::Missing(name) => format!("there is no KafkaRebalance {name} in this namespace"),
            Self::Unmarked(name) => format!(
                "KafkaRebalance {name} is no template: annotate it with {}: \"true\"",
                annotations::REBALANCE_TEMPLATE
            ),
        };
        let text = format!("mode {mode} of autoRebalance does nothing, because of its template: {wrong}");
        Some(Condition::warning(Reason::InvalidRebalanceTemplate, text))
    }
}

/// What is wrong with the goals that a rebalance on imbalance would have, if anything is.
pub(super) fn goals_trouble(template: Template<'_>, configured: &Configured) -> Option<Condition> {
    let named = template.spec()?.goals.as_deref().unwrap_or_default();
    let named: BTreeSet<&str> = named.iter().map(|goal| short_name(goal)).collect();
    if named.is_empty() {
        // Cruise Control's default goals: there is nothing to compare.
        return None;
    }
    let watched: BTreeSet<&str> = configured.detection_goals.iter().map(|goal| short_name(goal)).collect();
    let (odd, wrong) = match configured.goals_policy {
        GoalsPolicy::Subset => (&named - &watched, "are in the template, but not watched"),
        GoalsPolicy::Superset => (&watched - &named, "are watched, but not in the template"),
    };
    let is_in_vain = named.is_disjoint(&watched);
    if odd.is_empty() && !is_in_vain {
        return None;
    }
    let mut text = "no rebalance on imbalance".to_owned();
    if !odd.is_empty() {
        let odd: Vec<&str> = odd.into_iter().collect();
        text.push_str(&format!(", because these goals {wrong}: {}", odd.join(", ")));
    }
    if is_in_vain {
        text.push_str(". None of the template's goals can ever be found violated");
    }
    text.push_str(
        ". Set anomaly.detection.goals in spec.cruiseControl.config to the goals of the template, which must be default goals \
         that can be measured with the capacities stated",
    );
    Some(Condition::warning(Reason::InvalidRebalanceTemplateGoals, text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODE: AutoRebalanceMode = AutoRebalanceMode::AddBrokers;

    fn rebalance(annotation: Option<(&str, &str)>) -> KafkaRebalance {
        let mut rebalance = KafkaRebalance::new("t", KafkaRebalanceSpec::default());
        rebalance.metadata.annotations = annotation.map(|(name, value)| [(name.to_owned(), value.to_owned())].into());
        rebalance
    }

    #[test]
    fn only_a_marked_resource_is_a_template() {
        let named = Configured { modes: [(MODE, Some("t".to_owned()))].into(), ..Configured::default() };
        let unnamed = Configured { modes: [(MODE, None)].into(), ..Configured::default() };
        let there = |rebalance| BTreeMap::from([("t".to_owned(), rebalance)]);

        assert_eq!(Template::of(MODE, &unnamed, &BTreeMap::new()), Template::Defaults);
        assert_eq!(Template::of(MODE, &named, &BTreeMap::new()), Template::Missing("t"));
        let unset = Configured { modes: [(MODE, Some(String::new()))].into(), ..Configured::default() };
        let told = Template::of(MODE, &unset, &BTreeMap::new()).warning(MODE).unwrap().message.unwrap();
        assert!(told.ends_with("its template: `` is no name of a KafkaRebalance"), "{told}");
        for mark in [("strimzi.io/rebalance", "template"), ("strimzi.io/rebalance-template", "true")] {
            assert!(matches!(Template::of(MODE, &named, &there(rebalance(Some(mark)))), Template::Found(_)));
        }
        for live in [None, Some(("strimzi.io/rebalance", "approve"))] {
            let there = there(rebalance(live));
            let verdict = Template::of(MODE, &named, &there);
            assert_eq!(verdict, Template::Unmarked("t"));
            assert!(!verdict.is_usable() && verdict.spec().is_none());
            assert!(verdict.warning(MODE).unwrap().has_reason(Reason::InvalidRebalanceTemplate));
        }
    }

    #[test]
    fn goals_are_compared_by_both_policies() {
        let trouble = |goals: &[&str], watched: &[&str], goals_policy| {
            let spec: KafkaRebalanceSpec = serde_json::from_value(json!({"goals": goals})).unwrap();
            let detection_goals = watched.iter().map(|goal| (*goal).to_owned()).collect();
            let configured = Configured { detection_goals, goals_policy, ..Configured::default() };
            goals_trouble(Template::Found(&spec), &configured).map(|warning| warning.message.unwrap())
        };
        let (subset, superset) = (GoalsPolicy::Subset, GoalsPolicy::Superset);
        for (goals, watched, policy, expected) in [
            (&["a.A", "B"][..], &["x.B", "A"][..], subset, None),
            (&["A"], &["A", "B"], subset, None),
            (&["A", "C"], &["A", "B"], subset, Some("template, but not watched: C. Set")),
            (&["A", "B", "C"], &["A", "B"], superset, None),
            (&["A"], &["A", "B"], superset, Some("watched, but not in the template: B. Set")),
            (&["C"], &["A"], subset, Some("C. None of the template's goals can ever be found violated. Set")),
            (&[], &["A"], subset, None),
            (&[], &["A"], superset, None),
            (&["C"], &[], subset, Some("C. None of the template's goals can ever be found violated. Set")),
            (&["C"], &[], superset, Some("on imbalance. None of the template's goals can ever be found violated. Set")),
            (&[], &[], superset, None),
        ] {
            let found = trouble(goals, watched, policy);
            match expected {
                None => assert_eq!(found, None, "{goals:?} {watched:?}"),
                Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}"),
            }
        }
        assert_eq!(goals_trouble(Template::Defaults, &Configured::default()), None);
    }
}
