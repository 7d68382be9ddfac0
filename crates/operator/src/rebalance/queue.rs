//! One run at a time in a cluster: whose turn is it?
//!
//! An approved rebalance waits while another one runs, and after those that have waited longer. How long is
//! the age of its `WaitingForOtherRebalance` Warning, so a place in the queue survives restarts.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason, annotations};
use jiff::Timestamp;

use super::finalizer;
use super::messages;
use super::observe::{Observation, label};
use super::state::Standing;

/// What matters about another KafkaRebalance of the same cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Whether its moves are being made, or may be.
    pub runs: bool,
    /// Since when it waits for its turn, if it does.
    pub waits_since: Option<Timestamp>,
}

impl Other {
    /// What matters about each of `all` that `resource` has to share its cluster with.
    pub fn all<'a>(resource: &KafkaRebalance, all: impl IntoIterator<Item = &'a KafkaRebalance>) -> Vec<Self> {
        let mine = label(resource);
        all.into_iter()
            .filter(|other| other.metadata.namespace == resource.metadata.namespace)
            .filter(|other| other.metadata.name != resource.metadata.name)
            .filter(|other| mine.is_some() && label(other) == mine)
            .filter(|other| {
                let marked = other.metadata.annotations.as_ref().is_some_and(annotations::is_template);
                !marked || finalizer::is_generated(other)
            })
            .map(Self::of)
            .collect()
    }

    fn of(resource: &KafkaRebalance) -> Self {
        let standing = Standing::of(resource);
        let none = Default::default();
        let notes = resource.metadata.annotations.as_ref().unwrap_or(&none);
        let proposal_ready = standing.state == RebalanceState::ProposalReady;
        // Nobody looks at a paused one, so its run may be over long ago; what really runs is met at the engine.
        let paused = annotations::is_paused(notes) && resource.metadata.deletion_timestamp.is_none();
        // Whoever cannot move on must not hold up those behind.
        let moves_on = resource.metadata.deletion_timestamp.is_none()
            && !paused
            && (annotations::is_auto_approved(notes) || annotations::ask(notes) == Some(annotations::Ask::Approve));
        let warning = standing.warning(Reason::WaitingForOtherRebalance).filter(|_| proposal_ready && moves_on);
        Self {
            name: resource.metadata.name.clone().unwrap_or_default(),
            runs: !paused
                && (standing.state == RebalanceState::Rebalancing || (proposal_ready && finalizer::is_on(resource))),
            // A time that cannot be read is taken for an old one.
            waits_since: warning.map(|warning| warning.since().unwrap_or(Timestamp::UNIX_EPOCH)),
        }
    }
}

/// Why it is not the turn of this rebalance.
pub(super) fn wait(seen: &Observation, standing: &Standing) -> Option<String> {
    if let Some(running) = seen.others.iter().find(|other| other.runs) {
        return Some(messages::waiting_for(&running.name));
    }
    let since = standing.warning(Reason::WaitingForOtherRebalance).and_then(|warning| warning.since());
    let mine = (since.unwrap_or(Timestamp::MAX), seen.name());
    let ahead = seen.others.iter().filter_map(|other| Some((other.waits_since?, other.name.as_str())));
    ahead.filter(|place| *place < mine).min().map(|(_, name)| messages::waiting_for(name))
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{Condition, KafkaRebalanceStatus, labels};

    use super::*;

    fn resource(
        name: &str,
        cluster: &str,
        state: &str,
        waits_since: Option<&str>,
        notes: &[(&str, &str)],
    ) -> KafkaRebalance {
        let mut resource = KafkaRebalance::new(name, Default::default());
        resource.metadata.labels = Some([(labels::CLUSTER.to_owned(), cluster.to_owned())].into());
        resource.metadata.annotations = Some(notes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        let mut conditions = vec![Condition::state(state)];
        conditions.extend(waits_since.map(|since| Condition {
            last_transition_time: Some(since.to_owned()),
            ..Condition::warning(Reason::WaitingForOtherRebalance, "x")
        }));
        resource.status = Some(KafkaRebalanceStatus { conditions, ..Default::default() });
        resource
    }

    #[test]
    fn only_those_of_the_same_cluster_count_and_no_templates() {
        let me = resource("me", "a", "ProposalReady", None, &[]);
        let all = [
            me.clone(),
            resource("near", "a", "Rebalancing", None, &[]),
            resource("far", "b", "Rebalancing", None, &[]),
            resource("template", "a", "New", None, &[("strimzi.io/rebalance-template", "true")]),
        ];
        let names: Vec<String> = Other::all(&me, &all).into_iter().map(|other| other.name).collect();
        assert_eq!(names, ["near"]);
    }

    #[test]
    fn who_runs_and_who_waits() {
        let since = Some("2026-01-01T00:00:00Z");
        let approve = [("strimzi.io/rebalance", "approve")];
        let waits = |it: KafkaRebalance| Other::of(&it).waits_since.is_some();
        assert!(Other::of(&resource("a", "c", "Rebalancing", None, &[])).runs);
        assert!(waits(resource("a", "c", "ProposalReady", since, &approve)));
        assert!(waits(resource("a", "c", "ProposalReady", since, &[("strimzi.io/rebalance-auto-approval", "true")])));
        assert!(!waits(resource("a", "c", "ProposalReady", since, &[])), "the approval was taken back");
        assert!(!waits(resource("a", "c", "ProposalReady", None, &approve)));
        let paused = [approve[0], ("strimzi.io/pause-reconciliation", "true")];
        assert!(!waits(resource("a", "c", "ProposalReady", since, &paused)), "a paused one holds nobody up");
        assert!(!Other::of(&resource("a", "c", "Rebalancing", None, &paused)).runs, "nor does what it began");
        let mut submitting = resource("a", "c", "ProposalReady", None, &approve);
        submitting.metadata.finalizers = Some(vec![annotations::REBALANCE_FINALIZER.to_owned()]);
        assert!(Other::of(&submitting).runs, "perhaps submitted counts as running");
    }
}
