//! Demotion: brokers that are to lead nothing, now and at the next election.
//!
//! Their replicas go to the end of their partitions' lists, and the first replica in the list that may
//! lead does. No data moves. Offline replicas elsewhere are none of demotion's business.

use std::collections::BTreeMap;

use crate::cluster::{BrokerId, BrokerState, Part, Slot};
use crate::goal::Goal;
use crate::held::Rule;
use crate::options::Demotion;
use crate::plan::{Cause, Change, Reason, Undone, unmoved};
use crate::planner::{Status, Verdict};
use crate::rules::Rules;
use crate::state::{Action, State};

/// Demotes every broker that the rules say is demoted, and hands leadership over in `state`.
pub(crate) fn demote(state: &mut State<'_>, rules: &Rules, demotion: Demotion) -> (Vec<Change>, Vec<Verdict>) {
    let mut changes: Vec<Change> = Vec::new();
    let mut stuck: BTreeMap<Rule, u64> = BTreeMap::new();
    for part in 0..state.cluster.partition_count() as Part {
        let Some(list) = reordered(state, rules, demotion, part) else { continue };
        let Some(heir) = list.iter().position(|slot| may_lead(state, rules, *slot)) else {
            if is_demoted(state, rules, state.leader(part)) {
                *stuck.entry(bar(state, rules, part)).or_default() += 1;
            }
            continue;
        };
        if let Some(change) = change(state, rules, part, list, heir) {
            changes.push(change);
        }
    }
    let left = stuck.values().sum::<u64>() as f64;
    let miss = (changes.len() as f64 + left, left);
    let mut held_back_by: Vec<(Rule, u64)> = stuck.into_iter().collect();
    held_back_by.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let (goal, status) = (Goal::PreferredLeaderElection, Status::of(miss));
    (changes, vec![Verdict { goal, status, miss, refused_by: Vec::new(), held_back_by }])
}

/// What keeps the partition's other replicas from leading: the rule that bars one that serves, or that none does. A
/// partition may also have no other.
fn bar(state: &State<'_>, rules: &Rules, part: Part) -> Rule {
    let leader = state.leader(part);
    let others = || state.cluster.slots(part).filter(|slot| *slot != leader);
    let none_serves = if others().next().is_some() { Rule::Offline } else { Rule::NothingHelps };
    others().find_map(|slot| rules.bar_to_lead(state, slot)).unwrap_or(none_serves)
}

/// Counts what a budget left undone as what it is: not done.
pub(crate) fn leave_undone(verdict: &mut Verdict, undone: Undone) {
    if undone.changes > 0 {
        verdict.miss.1 += undone.changes as f64;
        verdict.status = Status::of(verdict.miss);
        verdict.held_back_by.insert(0, (Rule::Budget, undone.changes as u64));
    }
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
        new_replicas: list.into_iter().map(id).collect(),
        new_leader: id(slot),
        reasons: vec![Reason { cause: Cause::Demoted, from, to: id(slot), exchange: None, levels: None }],
        ..unmoved(cluster, part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerSpec, Cluster, ClusterBuilder, Load, PendingMove, ReplicaSpec};
    use crate::fixture::planned;
    use crate::options::{Budget, Operation, Request};
    use crate::planner::Outcome;
    use crate::settings::Settings;

    /// Partition `t-0` with the replica list and leader given, on four brokers of which some are dead.
    fn cluster(list: &[i32], leader: i32, dead: &[i32], moving: bool) -> Cluster {
        let mut builder = ClusterBuilder::new();
        for id in 0..4 {
            let state = if dead.contains(&id) { BrokerState::Dead } else { BrokerState::Alive };
            let (rack, host) = (format!("r{id}"), format!("h{id}"));
            builder
                .broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity: [100.0; 4], disks: Vec::new() })
                .unwrap();
        }
        let replica = |id: &i32| {
            let nw_out = if *id == leader { 1.0 } else { 0.0 };
            let load = Load { cpu: 1.0, nw_in: 1.0, nw_out, disk: 1.0 };
            ReplicaSpec { broker: BrokerId(*id), disk: None, load, offline: false }
        };
        let replicas: Vec<ReplicaSpec> = list.iter().map(replica).collect();
        let leads = list.iter().position(|id| *id == leader).unwrap();
        builder.partition("t", 0, leads, &replicas).unwrap();
        if moving {
            builder.pending(PendingMove { topic: "t".into(), partition: 0, to: BrokerId(3) });
        }
        builder.build().unwrap()
    }

    fn demoted(cluster: &Cluster, ids: &[i32], demotion: Demotion) -> Outcome {
        let ids = ids.iter().copied().map(BrokerId).collect();
        let request = Request { operation: Operation::DemoteBrokers(ids), demotion, ..Request::default() };
        planned(cluster, &request, &Settings::default()).unwrap()
    }

    /// The new list and leader, or nothing if the partition is left alone.
    fn result(cluster: &Cluster, ids: &[i32], demotion: Demotion) -> Option<(Vec<i32>, i32)> {
        let outcome = demoted(cluster, ids, demotion);
        let change = outcome.plan.changes.first()?;
        assert_eq!(change.megabytes, 0.0);
        Some((change.new_replicas.iter().map(|id| id.0).collect(), change.new_leader.0))
    }

    const PLAIN: Demotion = Demotion { skip_under_replicated: false, exclude_followers: false };

    #[test]
    fn a_demoted_leader_goes_last_and_the_first_eligible_replica_leads() {
        assert_eq!(result(&cluster(&[0, 1, 2], 0, &[], false), &[0], PLAIN), Some((vec![1, 2, 0], 1)));
        assert_eq!(result(&cluster(&[0, 1, 2], 0, &[], false), &[0, 1], PLAIN), Some((vec![2, 0, 1], 2)));
    }

    #[test]
    fn a_demoted_follower_goes_last_unless_followers_are_excluded() {
        let cluster = cluster(&[1, 0, 2], 1, &[], false);
        assert_eq!(result(&cluster, &[0], PLAIN), Some((vec![1, 2, 0], 1)));
        assert_eq!(result(&cluster, &[0], Demotion { exclude_followers: true, ..PLAIN }), None);
        assert_eq!(result(&cluster, &[2], PLAIN), None, "it is last already");
    }

    #[test]
    fn a_demoted_follower_that_stays_never_leads() {
        let cluster = cluster(&[0, 1, 2], 0, &[], false);
        let demotion = Demotion { exclude_followers: true, ..PLAIN };
        // 0 goes last, 1 stays where it is, 2 leads and so comes first.
        assert_eq!(result(&cluster, &[0, 1], demotion), Some((vec![2, 1, 0], 2)));
    }

    #[test]
    fn under_replicated_partitions_are_skipped_if_asked() {
        let cluster = cluster(&[0, 1, 2], 0, &[1], false);
        assert_eq!(result(&cluster, &[0], PLAIN), Some((vec![2, 1, 0], 2)), "1 is dead, 2 leads");
        assert_eq!(result(&cluster, &[0], Demotion { skip_under_replicated: true, ..PLAIN }), None);
    }

    #[test]
    fn nothing_changes_where_nobody_else_can_lead_or_the_partition_is_moving() {
        let all = cluster(&[0, 1], 0, &[], false);
        let outcome = demoted(&all, &[0, 1], PLAIN);
        assert!(outcome.plan.changes.is_empty());
        assert_eq!((outcome.verdicts[0].status, outcome.verdicts[0].miss), (Status::Violated, (1.0, 1.0)));
        assert_eq!(outcome.verdicts[0].held_back_by, [(Rule::ExcludedForLeadership, 1)]);
        assert_eq!(result(&cluster(&[0, 1], 0, &[], true), &[0], PLAIN), None);
    }

    #[test]
    fn what_keeps_a_broker_leading_is_told_as_it_is() {
        let held = |outcome: Outcome| outcome.verdicts[0].held_back_by.clone();
        assert_eq!(held(demoted(&cluster(&[0, 1], 0, &[1], false), &[0], PLAIN)), [(Rule::Offline, 1)]);
        assert_eq!(held(demoted(&cluster(&[0], 0, &[], false), &[0], PLAIN)), [(Rule::NothingHelps, 1)]);
    }

    /// New brokers have precedence where something is moved, and demotion moves nothing.
    #[test]
    fn new_brokers_keep_nobody_from_being_demoted() {
        let mut small = crate::fixture::Small::in_racks("abc");
        small.broker(3, 'c', "host3", BrokerState::New, [1_000.0; 4]);
        small.partition("t", 0, &[0, 1], 1.0);
        let outcome = demoted(&small.cluster(), &[0], PLAIN);
        assert_eq!((outcome.verdicts[0].status, outcome.plan.changes[0].new_leader), (Status::Fixed, BrokerId(1)));
    }

    #[test]
    fn what_a_budget_leaves_undone_is_not_told_as_done() {
        let cluster = cluster(&[0, 1, 2], 0, &[], false);
        let operation = Operation::DemoteBrokers([BrokerId(0)].into());
        let verdict = |moves: usize| {
            let budget = Budget { moves: Some(moves), megabytes: None };
            let request = Request { operation: operation.clone(), budget, ..Request::default() };
            let outcome = planned(&cluster, &request, &Settings::default()).unwrap();
            let verdict = outcome.verdicts[0].clone();
            (verdict.status, verdict.miss, verdict.held_back_by, outcome.score)
        };
        assert_eq!(verdict(0), (Status::Violated, (1.0, 1.0), vec![(Rule::Budget, 1)], (0.0, 0.0)));
        assert_eq!(verdict(1), (Status::Fixed, (1.0, 0.0), Vec::new(), (0.0, 100.0)));
    }

    #[test]
    fn load_follows_leadership_and_offline_replicas_elsewhere_stay() {
        let outcome = demoted(&cluster(&[0, 1, 2], 0, &[2], false), &[0], PLAIN);
        let leaders = |loads: &[crate::planner::BrokerLoad]| loads.iter().map(|load| load.leaders).collect::<Vec<_>>();
        assert_eq!((leaders(&outcome.before), leaders(&outcome.after)), (vec![1, 0, 0, 0], vec![0, 1, 0, 0]));
        assert_eq!(outcome.verdicts[0].status, Status::Fixed);
        assert_eq!(outcome.plan.changes[0].added().count(), 0);
        assert!(!outcome.heals, "nothing moves off the dead broker");
    }
}
