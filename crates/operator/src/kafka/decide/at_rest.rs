//! Whether a cluster is at rest: nothing is to be done, nothing is waited for, no moment is known at which that would change,
//! and whatever could change it is heard of, or told by Kafka itself.

use evenkeel_api::{conditions, labels};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{
    super::{
        model::Model,
        pools::finds_racks,
        seen::{FurtherUsers, Metadata, Seen},
    },
    Decision,
};
use crate::{
    auto_rebalance::{Configured, Generated},
    pod_set::decide::is_ready,
};

/// Whether a cluster is at rest once `decision` is carried out, which is all but whether it is. Who is in doubt is not.
pub(super) fn is_at_rest(seen: &Seen, model: &Model, decision: &Decision, rebalancing: &Rebalancing<'_>) -> bool {
    let is_ready = decision.status.conditions.first().is_some_and(|state| state.type_ == conditions::READY);
    let nothing_to_do = decision.found_quiet.is_some() && decision.first.is_none() && !decision.look_closer;
    let nothing_awaited = decision.look_again.is_none()
        && decision.found_empty.is_empty()
        && decision.found_missing.is_empty()
        && decision.struck_off.is_empty()
        // Kafka is asked again for these after a while.
        && seen.refused.is_empty();
    let answers = matches!(seen.metadata, Metadata::Known(_));
    let whole = all_are_up(seen, model);
    is_ready && nothing_to_do && nothing_awaited && answers && whole && rebalancing.rests() && all_is_heard_of(seen)
}

/// Whether every node is there, and stays. A Kafka is also ready without one that is new, or only just away, or ending: how long
/// that takes is said by the clock alone.
fn all_are_up(seen: &Seen, model: &Model) -> bool {
    let stays = |pod: &Pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
    model.nodes.values().all(|node| seen.pod(&node.pod).is_some_and(stays))
}

/// What automatic rebalancing is at.
pub(super) struct Rebalancing<'a> {
    pub(super) configured: &'a Configured,
    pub(super) generated: &'a [Generated],
    /// What it warns of: that something is held, or waits, or has failed.
    pub(super) warns: bool,
}

impl Rebalancing<'_> {
    /// An engine that cannot write down what it finds is asked for it, time and again.
    fn rests(&self) -> bool {
        self.generated.is_empty() && !self.warns && self.configured.polled_every.is_none()
    }
}

/// Whether there is a watch for everything that was read.
fn all_is_heard_of(seen: &Seen) -> bool {
    let labelled = |of: Option<&String>| of.is_some_and(|of| of == seen.cluster());
    let pools = seen.node_pools.iter().all(|pool| labelled(pool.labels().get(labels::CLUSTER)));
    // Of those without a label all Kafkas hear; those with another one are not all heard of.
    let own = |of: Option<&String>| of.is_none() || labelled(of);
    let rebalances = seen.rebalances.iter().all(|it| own(it.labels().get(labels::CLUSTER)));
    // A Secret of the user carries no label, and the binding for racks is in no namespace.
    let users = seen.further_users == FurtherUsers::Unasked;
    let has_racks = seen.kafka.spec.kafka.as_ref().is_some_and(|spec| spec.rack.is_some());
    pools && rebalances && users && !has_racks && !seen.pod_sets.iter().any(finds_racks)
}
