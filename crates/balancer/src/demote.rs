//! Demotion: brokers that are to lead nothing, now and at the next election.
//!
//! Their replicas go to the end of their partitions' lists, and the first replica in the list that may
//! lead does. No data moves. Offline replicas elsewhere are none of demotion's business.

use crate::cluster::{BrokerId, BrokerState, Part, Slot};
use crate::goal::Goal;
use crate::options::Demotion;
use crate::plan::{Change, Reason};
use crate::planner::{Status, Verdict};
use crate::rules::Rules;
use crate::state::{Action, State};

/// Demotes every broker that the rules say is demoted, and hands leadership over in `state`.
pub(crate) fn demote(state: &mut State<'_>, rules: &Rules, demotion: Demotion) -> (Vec<Change>, Vec<Verdict>) {
    let mut changes: Vec<Change> = Vec::new();
    let mut stuck = 0;
    for part in 0..state.cluster.partition_count() as Part {
        let Some(list) = reordered(state, rules, demotion, part) else { continue };
        let Some(heir) = list.iter().position(|slot| may_lead(state, rules, *slot)) else {
            stuck += usize::from(is_demoted(state, rules, state.leader(part)));
            continue;
        };
        if let Some(change) = change(state, rules, part, list, heir) {
            changes.push(change);
        }
    }
    let miss = ((changes.len() + stuck) as f64, stuck as f64);
    let status = match (miss.0 > 0.0, miss.1 > 0.0) {
        (_, true) => Status::Violated,
        (true, false) => Status::Fixed,
        (false, false) => Status::NoAction,
    };
    (changes, vec![Verdict { goal: Goal::PreferredLeaderElection, status, miss, refused_by: Vec::new() }])
}

fn is_demoted(state: &State<'_>, rules: &Rules, slot: Slot) -> bool {
    rules.states[usize::from(state.seat(slot))] == BrokerState::Demoted
}

/// Whether the replica may lead, or go on leading.
fn may_lead(state: &State<'_>, rules: &Rules, slot: Slot) -> bool {
    if state.leads(slot) {
        rules.takes_leaders(state.seat(slot)) && !rules.must_move(state, slot)
    } else {
        rules.may_lead(state, slot)
    }
}

/// The partition's list with demoted replicas last; `None` if demotion leaves the partition alone.
fn reordered(state: &State<'_>, rules: &Rules, demotion: Demotion, part: Part) -> Option<Vec<Slot>> {
    let cluster = state.cluster;
    let slots = cluster.slots(part);
    let leader = state.leader(part);
    let goes_last = |slot: &Slot| is_demoted(state, rules, *slot) && (!demotion.exclude_followers || *slot == leader);
    let is_moving = cluster.pending().binary_search_by_key(&part, |(moving, _)| *moving).is_ok();
    if is_moving
        || rules.is_excluded(cluster.topic_of(part))
        || !slots.clone().any(|slot| goes_last(&slot))
        || (demotion.skip_under_replicated && slots.clone().any(|slot| cluster.is_offline(slot)))
    {
        return None;
    }
    let (last, mut list): (Vec<Slot>, Vec<Slot>) = slots.partition(goes_last);
    list.extend(last);
    Some(list)
}

/// Makes the replica at `heir` lead the partition; `None` if all is as it should be already.
fn change(state: &mut State<'_>, rules: &Rules, part: Part, mut list: Vec<Slot>, heir: usize) -> Option<Change> {
    let cluster = state.cluster;
    let old_leader = state.leader(part);
    let slot = list[heir];
    list.swap(0, heir);
    if slot == old_leader && cluster.slots(part).eq(list.iter().copied()) {
        return None;
    }
    let id = |slot: Slot| cluster.brokers()[usize::from(cluster.seats()[slot as usize])].id;
    let relieved =
        if slot == old_leader { list.iter().copied().find(|slot| is_demoted(state, rules, *slot)) } else { None };
    let from: BrokerId = id(relieved.unwrap_or(old_leader));
    if slot != old_leader {
        state.apply(Action::Lead { part, slot });
    }
    Some(Change {
        topic: cluster.topics()[cluster.topic_of(part) as usize].clone(),
        partition: cluster.number_of(part),
        old_replicas: cluster.slots(part).map(id).collect(),
        new_replicas: list.into_iter().map(id).collect(),
        old_leader: id(old_leader),
        new_leader: id(slot),
        disks: Vec::new(),
        megabytes: 0.0,
        disk_megabytes: 0.0,
        reasons: vec![Reason { goal: Goal::PreferredLeaderElection, from, to: id(slot), gain: 1.0 }],
    })
}
