//! Which nodes there should be, once it is known who must stay.

use std::collections::BTreeMap;

use evenkeel_api::annotations;
use jiff::Timestamp;

use super::super::{
    model::Model,
    names::Names,
    nodes::{Assignment, Ids, assign},
    pools::{Pools, Voters, ids_of_pod_set},
    problem::{Problem, Remark},
    scale_down::{self, Look, Verdict},
    seen::Seen,
    settings::Settings,
};
use crate::auto_rebalance::{Check, sort_rebalances};

/// What is to be made of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) model: Model,
    pub(super) assignment: Assignment,
    /// Brokers that come.
    pub(super) added: Ids,
    /// W: brokers that the spec wants removed.
    pub(super) leaving: Ids,
    /// Whether they hold data.
    pub(super) check: Check,
    /// What they hold, if they do and it can go elsewhere.
    pub(super) left: Option<String>,
    /// Why they stay, by pool.
    pub(super) kept: Vec<Remark>,
    /// Those that somebody wants gone and that hold nothing, and since when that is known.
    pub(super) found_empty: BTreeMap<i32, Timestamp>,
}

/// What the spec asks for, as far as it may be done now.
pub(super) fn plan(seen: &Seen, settings: &Settings) -> Result<Plan, Vec<Problem>> {
    let asked = pools(seen)?.beside(&seen.pods);
    let assignment = assign(&asked);
    // What could never be is refused before anything is emptied for it.
    let model = Model::build(&seen.kafka, &seen.node_pools, &asked, &assignment, settings)?;
    let (leaving, losing) = (assignment.removed_brokers(), assignment.used_to_be_brokers());
    let (generated, _) = sort_rebalances(&seen.rebalances, seen.cluster());
    let unchecked = seen.kafka.metadata.annotations.as_ref().is_some_and(annotations::skips_scale_down_check);
    let look = Look { metadata: &seen.metadata, empty_since: &seen.empty_since, now: seen.now };
    let staying = assignment.desired_brokers().len() + asked.unlabelled.len();
    let there = not_gone(seen, &leaving);
    let judged = |ids: &Ids| scale_down::judge(ids, staying, look, &generated, unchecked);
    let (going, role) = (judged(&there), judged(&losing));
    let mut kept = Vec::new();
    let mut pools = asked;
    if let Verdict { kept_because: Some(why), .. } = &going {
        // Whoever went stays away, though others have to stay.
        let (changed, remarks) = pools.without(&(&leaving - &there)).without_scale_down(why);
        (pools, kept) = (changed, remarks);
    }
    if let Verdict { kept_because: Some(why), .. } = &role {
        let (changed, remarks) = pools.without_role_loss(why);
        pools = changed;
        kept.extend(remarks);
    }
    let (model, assignment) = if kept.is_empty() {
        (model, assignment)
    } else {
        let assignment = assign(&pools);
        (Model::build(&seen.kafka, &seen.node_pools, &pools, &assignment, settings)?, assignment)
    };
    // While a cluster is being made nobody joins it: there is no data that could be moved. One that never was complete, because
    // a node finds no place, serves clients all the same.
    let was_ready = seen.kafka.status.as_ref().is_some_and(|status| status.operator_last_successful_version.is_some());
    let serves = seen.metadata.known().is_some_and(|known| !known.registered.is_empty());
    let added = if was_ready || serves { assignment.added_brokers() } else { Ids::new() };
    let found_empty = [(&leaving, going.empty_since), (&losing, role.empty_since)].into_iter();
    let found_empty = found_empty.filter_map(|(ids, since)| Some((ids, since?)));
    let found_empty = found_empty.flat_map(|(ids, since)| ids.iter().map(move |id| (*id, since))).collect();
    let left = going.kept_because.filter(|_| going.check == Check::HasData);
    Ok(Plan { model, assignment, added, leaving, check: going.check, left, kept, found_empty })
}

/// Those who are not gone yet. Who is listed no longer, and holds nothing, was sent away when it was empty, and only the
/// record of that was lost: it does not come back to be looked at once more.
fn not_gone(seen: &Seen, leaving: &Ids) -> Ids {
    let Some(partitions) = seen.metadata.partitions() else { return leaving.clone() };
    let listed: Ids = seen.pod_sets.iter().flat_map(ids_of_pod_set).collect();
    let holds = |id: &i32| partitions.iter().any(|partition| partition.replicas.contains(id));
    let is_there = |id: &i32| listed.contains(id) || holds(id);
    leaving.iter().copied().filter(is_there).collect()
}

fn pools(seen: &Seen) -> Result<Pools, Vec<Problem>> {
    let told = Voters::told(&seen.live, &Names::of(&seen.kafka));
    Pools::read(&seen.kafka, &seen.node_pools, &seen.pod_sets, &told)
}

/// Nodes about whose data Kafka has to be asked.
pub(super) fn questioned(seen: &Seen) -> Ids {
    let Ok(pools) = pools(seen) else { return Ids::new() };
    let assignment = assign(&pools);
    &assignment.removed_brokers() | &assignment.used_to_be_brokers()
}
