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
    /// The Lease that only one operator holds at a time; none is needed if there is only one.
    pub lease: Option<LeaseName>,
}

/// Where the Lease is that only one operator holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A setting that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is `{value}`: {advice}")]
pub struct InvalidSetting {
    /// The variable.
    pub variable: &'static str,
    /// What it is.
    pub value: String,
    /// What to write.
    pub advice: &'static str,
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
            lease: None,
        }
    }
}

impl Settings {
    /// Reads Strimzi's variables; `variable` is how one is looked up. `here` is the namespace that the operator runs in.
    pub fn read(variable: impl Fn(&str) -> Option<String>, here: Option<&str>) -> Result<Self, InvalidSetting> {
        let text = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let millis = |name: &'static str, usual: Duration| match text(name) {
            None => Ok(usual),
            Some(value) => value
                .parse()
                .ok()
                .filter(|millis| *millis > 0)
                .map(Duration::from_millis)
                .ok_or(InvalidSetting { variable: name, value, advice: "write a whole number of milliseconds" }),
        };
        let usual = Self::default();
        let namespaces = text("STRIMZI_NAMESPACE").filter(|all| all != "*").unwrap_or_default();
        let mut clusters = usual.clusters;
        if let Some(image) = text("EVENKEEL_IMAGE") {
            clusters.engine_image.clone_from(&image);
            clusters.own_image = image;
        }
        if let Some(image) = text("STRIMZI_DEFAULT_CRUISE_CONTROL_IMAGE") {
            clusters.engine_image = image;
        }
        if let Some(all) = text("STRIMZI_KAFKA_IMAGES") {
            let advice = "write `version=image` pairs, one a line, such as `4.1.0=quay.io/me/kafka:1`";
            let images = crate::kafka::settings::Settings::read_images(&all);
            let invalid = InvalidSetting { variable: "STRIMZI_KAFKA_IMAGES", value: all, advice };
            clusters.kafka_images = images.ok_or(invalid)?;
        }
        let selector = text("STRIMZI_CUSTOM_RESOURCE_SELECTOR");
        if let Some(value) = selector.clone().filter(|selector| plain_selector(selector).is_none()) {
            let advice = "write `name=value` pairs with commas between them: a Kafka must have all of these labels";
            return Err(InvalidSetting { variable: "STRIMZI_CUSTOM_RESOURCE_SELECTOR", value, advice });
        }
        clusters.operator_namespace = here.map(str::to_owned);
        let identity = text("STRIMZI_LEADER_ELECTION_IDENTITY").or_else(|| text("HOSTNAME")).unwrap_or(usual.identity);
        let elects = match text("STRIMZI_LEADER_ELECTION_ENABLED").as_deref() {
            None | Some("true") => true,
            Some("false") => false,
            Some(value) => {
                let advice = "write `true` or `false`";
                let value = value.to_owned();
                return Err(InvalidSetting { variable: "STRIMZI_LEADER_ELECTION_ENABLED", value, advice });
            }
        };
        let lease_name =
            text("STRIMZI_LEADER_ELECTION_LEASE_NAME").unwrap_or_else(|| "strimzi-cluster-operator".into());
        let lease_namespace = text("STRIMZI_LEADER_ELECTION_LEASE_NAMESPACE").or_else(|| here.map(str::to_owned));
        Ok(Self {
            namespaces: namespaces.split(',').map(|name| name.trim().to_owned()).filter(|it| !it.is_empty()).collect(),
            reconciliation_interval: millis("STRIMZI_FULL_RECONCILIATION_INTERVAL_MS", usual.reconciliation_interval)?,
            operation_timeout: millis("STRIMZI_OPERATION_TIMEOUT_MS", usual.operation_timeout)?,
            selector,
            // Outside of a cluster nobody knows where a Lease would be, and nobody else runs.
            lease: lease_namespace.filter(|_| elects).map(|namespace| LeaseName { namespace, name: lease_name }),
            clusters,
            identity,
            random: usual.random,
        })
    }

    /// Whether this Kafka is one to look after.
    pub fn selects(&self, kafka: &Kafka) -> bool {
        let labels = kafka.metadata.labels.as_ref();
        pairs(self.selector.as_deref().unwrap_or_default()).all(|pair| {
            let found = pair.and_then(|(name, value)| Some((labels?.get(name)?, value)));
            found.is_some_and(|(found, value)| found == value)
        })
    }
}

/// A selector in its shortest form, without blanks. None if it is none that is understood.
pub(crate) fn plain_selector(selector: &str) -> Option<String> {
    let plain = pairs(selector).map(|pair| pair.map(|(name, value)| format!("{name}={value}")));
    plain.collect::<Option<Vec<String>>>().map(|all| all.join(","))
}

/// The labels of a selector, by name and value. None for what is no such pair: `!=`, sets and bare names are not understood.
fn pairs(selector: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    selector.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.strip_prefix('=').unwrap_or(value).trim());
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        (!name.is_empty() && is_plain(name) && is_plain(value)).then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_or_explained() {
        let read = |pairs: &[(&str, &str)], here| {
            let of = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Settings::read(of, here)
        };
        let found = read(&[], None).unwrap();
        assert_eq!((found.namespaces.len(), found.lease), (0, None));
        let found = read(
            &[
                ("STRIMZI_NAMESPACE", "a, b"),
                ("STRIMZI_FULL_RECONCILIATION_INTERVAL_MS", "5000"),
                ("STRIMZI_KAFKA_IMAGES", "4.1.0=k:1"),
                ("STRIMZI_LEADER_ELECTION_LEASE_NAME", "mine"),
            ],
            Some("ops"),
        )
        .unwrap();
        assert_eq!(
            (found.namespaces, found.reconciliation_interval),
            (vec!["a".to_owned(), "b".to_owned()], Duration::from_secs(5))
        );
        assert_eq!(found.lease, Some(LeaseName { namespace: "ops".into(), name: "mine".into() }));
        assert_eq!(found.clusters.kafka_image("4.1.0"), "k:1");
        let own = ("EVENKEEL_IMAGE", "registry.example/evenkeel:2");
        for (variables, engine) in [
            (&[own][..], "registry.example/evenkeel:2"),
            (&[own, ("STRIMZI_DEFAULT_CRUISE_CONTROL_IMAGE", "cruise:3")][..], "cruise:3"),
        ] {
            let images = read(variables, None).unwrap().clusters;
            assert_eq!((images.own_image.as_str(), images.engine_image.as_str()), (own.1, engine));
        }
        assert_eq!(read(&[("STRIMZI_LEADER_ELECTION_ENABLED", "false")], Some("ops")).unwrap().lease, None);
        let error = read(&[("STRIMZI_OPERATION_TIMEOUT_MS", "5s")], None).unwrap_err();
        assert_eq!(error.to_string(), "STRIMZI_OPERATION_TIMEOUT_MS is `5s`: write a whole number of milliseconds");
        assert!(read(&[("STRIMZI_LEADER_ELECTION_ENABLED", "yes")], None).is_err());
        for (variable, value) in [
            ("STRIMZI_KAFKA_IMAGES", "4.0.0=a\nnonsense"),
            ("STRIMZI_KAFKA_IMAGES", "4.0.0="),
            ("STRIMZI_CUSTOM_RESOURCE_SELECTOR", "team!=a"),
            ("STRIMZI_CUSTOM_RESOURCE_SELECTOR", "team"),
            ("STRIMZI_CUSTOM_RESOURCE_SELECTOR", "team in (a,b)"),
            ("STRIMZI_CUSTOM_RESOURCE_SELECTOR", "a=b,=c"),
        ] {
            let error = read(&[(variable, value)], None).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{variable} is `{value}`: write ")), "{error}");
        }
        assert!(read(&[("STRIMZI_CUSTOM_RESOURCE_SELECTOR", "team=a, example.com/tier==1")], None).is_ok());
    }

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
