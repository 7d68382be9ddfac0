//! How the operator was started: Strimzi's environment variables.

use std::time::Duration;

/// Settings of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespaces that are looked after; empty: all.
    pub namespaces: Vec<String>,
    /// How often everything is looked at even if nothing seems to have happened.
    pub reconciliation_interval: Duration,
    /// How long an existing broker may be away before the Kafka counts as not ready.
    pub operation_timeout: Duration,
    /// Labels that a Kafka must have to be looked after, as a selector.
    pub selector: Option<String>,
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
            identity: "evenkeel-operator".to_owned(),
        }
    }
}
