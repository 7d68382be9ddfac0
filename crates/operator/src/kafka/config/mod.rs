//! The configuration of a node: [`ServerConfig`], which becomes `server.config` in its ConfigMap.
//!
//! What Kafka can change while it runs (`dynamic`) is not part of the hash that rolls a pod, so such a change costs no
//! restart. One thing does: a setting that was *removed*. The process still has the value that it was started with, and
//! Kafka cannot be told to forget it. So removed settings are remembered in a comment of the file, and are part of the
//! hash.
//!
//! And Kafka forgets nothing: settings of a single broker outlive it, and hold for the next one with its id. A broker
//! that went was cordoned, so a new one is told once that it is not; that this is still to be done is a comment, too.

mod dynamic;
mod server;
mod user;

use std::collections::BTreeSet;

use super::{
    hash,
    model::{Model, Node},
    properties::{self, Properties},
    settings::at_least,
};

pub use dynamic::{Changes, DynamicChange, Scope, changes};
pub(super) use server::METRICS_TOPIC;
pub(super) use user::{Owner, UserConfig};

/// The key in a node's ConfigMap.
pub const SERVER_CONFIG: &str = "server.config";
/// Where a node's ConfigMap is in its container.
pub const CONFIG_PATH: &str = "/opt/kafka/custom-config";
/// Where a node's own key and certificate are in its container, as one PEM file.
pub const KEYSTORE: &str = "/opt/kafka/certs/node/keystore.pem";
/// Where the cluster authority's certificate is in a node's container.
pub const CLUSTER_TRUST: &str = "/opt/kafka/certs/cluster-ca/ca.crt";
/// Where the clients authority's certificate is in a node's container.
pub const CLIENTS_TRUST: &str = "/opt/kafka/certs/clients-ca/ca.crt";
/// Where a node finds its rack, if it has one: the folder and the file in it.
pub const RACK: (&str, &str) = ("/opt/kafka/init", "rack.id");
/// Who votes in the quorum of controllers.
pub const VOTERS: &str = "controller.quorum.voters";
/// Keeps new partitions away from a broker that is being emptied.
pub const CORDONED: &str = "cordoned.log.dirs";

const REMOVED: &str = "# removed while running: ";
const UNSETTLED: &str = "# not told yet: ";

/// The configuration of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// What stands in it.
    pub entries: Properties,
    /// Settings that Kafka can change while it runs, and that stood here once.
    pub removed: BTreeSet<String>,
    /// Whether Kafka may still remember a cordon of an earlier broker with this id.
    pub unsettled: bool,
}

impl ServerConfig {
    /// Reads what was written into a ConfigMap.
    pub fn read(text: &str) -> Self {
        let removed = text.lines().find_map(|line| line.strip_prefix(REMOVED)).unwrap_or_default();
        let removed = removed.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        let unsettled = text.lines().any(|line| line.starts_with(UNSETTLED));
        Self { entries: properties::read(text), removed, unsettled }
    }

    /// The text for the ConfigMap.
    pub fn text(&self) -> String {
        let mut text = String::from("# Written by the operator: changes are overwritten.\n");
        if !self.removed.is_empty() {
            let removed: Vec<&str> = self.removed.iter().map(String::as_str).collect();
            text.push_str(REMOVED);
            text.push_str(&removed.join(","));
            text.push('\n');
        }
        if self.unsettled {
            text.push_str(&format!("{UNSETTLED}{CORDONED}\n"));
        }
        text + &properties::text(&self.entries)
    }

    /// The same with the memory of what stood in `before`, which is what the node's ConfigMap says now. Without this a
    /// node would never be restarted for a setting that was removed.
    #[must_use]
    pub fn following(mut self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let needs_restart = |key: &&String| dynamic::is_dynamic(key) && dynamic::instead_of_removal(key).is_none();
        let gone = before.entries.keys().filter(needs_restart);
        let gone = gone.chain(&before.removed).filter(|key| !self.entries.contains_key(*key));
        self.removed = gone.cloned().collect();
        self
    }

    /// Changes exactly when a node has to be restarted for its configuration: `strimzi.io/configuration-hash`.
    pub fn hash(&self) -> String {
        let fixed = self.entries.iter().filter(|(key, _)| !dynamic::is_dynamic(key));
        let fixed = fixed.flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
        hash::of(fixed.chain(self.removed.iter().map(String::as_bytes)))
    }
}

/// Whether Kafka may hold a cordon against a node that is new, because an earlier one had its id.
pub(super) fn may_inherit_a_cordon(model: &Model, node: &Node) -> bool {
    node.roles.broker && knows_cordons(model)
}

/// Whether brokers of this version can be cordoned.
fn knows_cordons(model: &Model) -> bool {
    at_least(&model.version, 4, 3)
}

#[cfg(test)]
mod tests;
