//! Settings that a KafkaRebalance takes from a template: its own win, and what the rebalance is about
//! (mode, brokers, volumes) never comes from there.

use evenkeel_api::{KafkaRebalance, KafkaRebalanceSpec, Reason, annotations, names::is_name};

use super::observe::Blocked;

/// The template that a spec names.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// It names none.
    None,
    /// There is none of this name.
    Missing(String),
    /// There is a KafkaRebalance of this name, but it is not marked as a template.
    NotMarked(String),
    /// Here it is.
    Found(Box<KafkaRebalanceSpec>),
}

impl Template {
    /// The template that `spec` names, given the KafkaRebalance of that name.
    pub fn of(spec: &KafkaRebalanceSpec, named: Option<&KafkaRebalance>) -> Self {
        let Some(name) = Self::name(spec) else { return Self::None };
        match named {
            None => Self::Missing(name.to_owned()),
            Some(found)
                if annotations::is_template(found.metadata.annotations.as_ref().unwrap_or(&Default::default())) =>
            {
                Self::Found(Box::new(found.spec.clone()))
            }
            Some(_) => Self::NotMarked(name.to_owned()),
        }
    }

    /// The name of the template that a spec names.
    fn name(spec: &KafkaRebalanceSpec) -> Option<&str> {
        spec.template.as_ref()?.name.as_deref()
    }

    /// The same, if there can be one of that name.
    pub(super) fn to_look_up(spec: &KafkaRebalanceSpec) -> Option<&str> {
        Self::name(spec).filter(|name| is_name(name))
    }

    pub(super) fn blocked(&self) -> Option<Blocked> {
        match self {
            Self::None | Self::Found(_) => None,
            Self::Missing(name) if !is_name(name) => Some(Blocked::new(
                Reason::NoSuchResourceException,
                format!(
                    "spec.template.name `{name}` is no name of a KafkaRebalance: correct it, or remove spec.template"
                ),
            )),
            Self::Missing(name) => Some(Blocked::new(
                Reason::NoSuchResourceException,
                format!(
                    "There is no KafkaRebalance {name} to take settings from: create it, or correct spec.template.name"
                ),
            )),
            Self::NotMarked(name) => Some(Blocked::new(
                Reason::InvalidResourceException,
                format!("KafkaRebalance {name} is no template: annotate it with strimzi.io/rebalance-template=true"),
            )),
        }
    }

    /// The spec with the template's settings where it has none of its own.
    pub(super) fn complete(&self, spec: &KafkaRebalanceSpec) -> KafkaRebalanceSpec {
        let mut whole = spec.clone();
        let Self::Found(template) = self else { return whole };
        let theirs = KafkaRebalanceSpec::clone(template);
        whole.goals = whole.goals.or(theirs.goals);
        whole.skip_hard_goal_check = whole.skip_hard_goal_check.or(theirs.skip_hard_goal_check);
        whole.rebalance_disk = whole.rebalance_disk.or(theirs.rebalance_disk);
        whole.excluded_topics = whole.excluded_topics.or(theirs.excluded_topics);
        whole.concurrent_partition_movements_per_broker =
            whole.concurrent_partition_movements_per_broker.or(theirs.concurrent_partition_movements_per_broker);
        whole.concurrent_intra_broker_partition_movements =
            whole.concurrent_intra_broker_partition_movements.or(theirs.concurrent_intra_broker_partition_movements);
        whole.concurrent_leader_movements = whole.concurrent_leader_movements.or(theirs.concurrent_leader_movements);
        whole.replication_throttle = whole.replication_throttle.or(theirs.replication_throttle);
        whole.replica_movement_strategies = whole.replica_movement_strategies.or(theirs.replica_movement_strategies);
        whole
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::kafka::TemplateRef;
    use evenkeel_api::rebalance::RebalanceMode;

    use super::*;

    fn naming(name: &str) -> KafkaRebalanceSpec {
        let template = TemplateRef { name: Some(name.to_owned()), ..Default::default() };
        KafkaRebalanceSpec { template: Some(template), ..Default::default() }
    }

    #[test]
    fn own_settings_win_and_mode_and_brokers_never_come_from_a_template() {
        let template = KafkaRebalanceSpec {
            mode: RebalanceMode::RemoveBrokers,
            brokers: Some(vec![1]),
            goals: Some(vec!["A".into()]),
            replication_throttle: Some(5),
            ..Default::default()
        };
        let own = KafkaRebalanceSpec { goals: Some(vec!["B".into()]), ..naming("t") };
        let whole = Template::Found(Box::new(template)).complete(&own);
        assert_eq!((whole.mode, &whole.brokers), (RebalanceMode::Full, &None));
        assert_eq!((whole.goals, whole.replication_throttle), (Some(vec!["B".into()]), Some(5)));
    }

    #[test]
    fn only_a_marked_resource_is_a_template() {
        let mut resource = KafkaRebalance::new("t", Default::default());
        assert_eq!(Template::of(&Default::default(), None), Template::None);
        assert_eq!(Template::of(&naming("t"), None), Template::Missing("t".into()));
        assert_eq!(Template::of(&naming("t"), Some(&resource)), Template::NotMarked("t".into()));
        for (name, value) in [("strimzi.io/rebalance-template", "true"), ("strimzi.io/rebalance", "template")] {
            resource.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
            assert!(matches!(Template::of(&naming("t"), Some(&resource)), Template::Found(_)), "{name}");
        }
        assert!(Template::NotMarked("t".into()).blocked().is_some());
    }

    /// A value that Helm left empty, for example: there is no request for it, so nobody may ask.
    #[test]
    fn what_is_no_name_is_missing_and_never_looked_up() {
        assert_eq!(Template::to_look_up(&naming("t")), Some("t"));
        for name in ["", "my template", "a/b"] {
            let spec = naming(name);
            assert_eq!(
                (Template::to_look_up(&spec), Template::of(&spec, None)),
                (None, Template::Missing(name.into()))
            );
            let told = Template::of(&spec, None).blocked().unwrap();
            assert!(told.message.starts_with(&format!("spec.template.name `{name}` is no name")), "{}", told.message);
        }
    }
}
