//! How the operator was started: Strimzi's environment variables.

use std::time::Duration;

use evenkeel_api::Kafka;

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespaces that are looked after; empty: all.
    pub namespaces: Vec<String>,
    /// How often everything is looked at even if nothing seems to have happened.
    pub reconciliation_interval: Duration,
    /// How long an existing broker may be away before the Kafka counts as not ready.
    pub operation_timeout: Duration,
    /// Labels that a Kafka must have to be looked after: pairs of name and value, all of which it must have.
    pub selector: Option<String>,
    /// Images and the like, as far as objects of clusters depend on them.
    pub clusters: crate::kafka::settings::Settings,
    /// Where random bytes come from, for passwords and ids of clusters.
    pub random: fn() -> [u8; 16],
    /// What this process calls itself, in Events and in the Lease.
    pub identity: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            reconciliation_interval: Duration::from_secs(120),
            operation_timeout: Duration::from_secs(300),
            selector: None,
            clusters: crate::kafka::settings::Settings::default(),
            random: || uuid::Uuid::new_v4().into_bytes(),
            identity: "evenkeel-operator".to_owned(),
        }
    }
}

impl Settings {
    /// Whether this Kafka is one to look after.
    pub fn selects(&self, kafka: &Kafka) -> bool {
        let selector = self.selector.as_deref().unwrap_or_default();
        let labels = kafka.metadata.labels.as_ref();
        selector.split(',').map(str::trim).filter(|pair| !pair.is_empty()).all(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.trim_start_matches('=').trim();
            labels.and_then(|labels| labels.get(name.trim())).is_some_and(|found| found == value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_wants_all_of_its_labels() {
        let mut kafka = Kafka::new("c", Default::default());
        let selects = |selector: Option<&str>, kafka: &Kafka| {
            Settings { selector: selector.map(str::to_owned), ..Settings::default() }.selects(kafka)
        };
        assert!(selects(None, &kafka) && !selects(Some("team=a"), &kafka));
        let labels = [("team", "a"), ("tier", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        kafka.metadata.labels = Some(labels.into());
        for (selector, selected) in [
            (None, true),
            (Some(""), true),
            (Some("team=a"), true),
            (Some("team==a, tier=1"), true),
            (Some("team=b"), false),
            (Some("team=a,missing=x"), false),
        ] {
            assert_eq!(selects(selector, &kafka), selected, "{selector:?}");
        }
    }
}
