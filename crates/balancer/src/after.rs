//! The cluster as it is once a plan is carried out, to ask the next question about it.

use crate::cluster::{BrokerId, BrokerSpec, Cluster, ClusterBuilder, Invalid, NO_DISK, Part, ReplicaSpec, Slot};
use crate::plan::{Change, Plan};

/// What `plan` makes of `cluster`. A replica takes its load along, and leadership takes its share.
///
/// A plan says which brokers hold a partition, not which old replica became which new one: a broker that stays keeps
/// its replica, a leader that moves is followed, and the rest are paired in list order. New brokers are old after it.
pub fn after(cluster: &Cluster, plan: &Plan) -> Result<Cluster, Invalid> {
    let mut changes: Vec<Option<&Change>> = vec![None; cluster.partition_count()];
    for change in &plan.changes {
        let part = cluster.find(&change.topic, change.partition).ok_or_else(|| Invalid::Partition {
            topic: change.topic.clone(),
            partition: change.partition,
            problem: "is in the plan, but not in the cluster".into(),
        })?;
        changes[part as usize] = Some(change);
    }
    let mut builder = ClusterBuilder::new();
    cluster.unknown().iter().for_each(|resource| builder.unknown(resource));
    for broker in cluster.brokers() {
        builder.broker(BrokerSpec {
            id: broker.id,
            rack: cluster.racks()[broker.rack].clone(),
            host: cluster.hosts()[broker.host].clone(),
            state: broker.state,
            capacity: broker.capacity,
            disks: broker.disks.clone(),
        })?;
    }
    let mut replicas: Vec<ReplicaSpec> = Vec::new();
    for (part, change) in changes.into_iter().enumerate() {
        let partition = cluster.partition(part);
        replicas.clear();
        let leader = match change {
            None => {
                replicas.extend(partition.replicas());
                partition.leader()
            }
            Some(change) => {
                replicas.extend(changed(cluster, part as Part, change));
                change.new_replicas.iter().position(|broker| *broker == change.new_leader).unwrap_or_default()
            }
        };
        builder.partition(partition.topic(), partition.number(), leader, &replicas)?;
    }
    cluster.pending_moves().for_each(|pending| builder.pending(pending));
    builder.build()
}

/// The replicas of a partition in their new order.
fn changed<'a>(cluster: &'a Cluster, part: Part, change: &'a Change) -> impl Iterator<Item = ReplicaSpec> + 'a {
    let lead = cluster.lead_load(part);
    let slots = paired(cluster, part, change);
    change.new_replicas.iter().zip(slots).map(move |(broker, slot)| {
        let old = cluster.brokers()[usize::from(cluster.seats()[slot as usize])].id;
        let named = change.disks.iter().find(|disk| disk.broker == *broker);
        let disk = match named {
            Some(named) => {
                cluster.broker(*broker).and_then(|broker| broker.disks.iter().position(|disk| disk.name == named.to))
            }
            None if old == *broker => {
                Some(cluster.disks()[slot as usize]).filter(|disk| *disk != NO_DISK).map(usize::from)
            }
            None => None,
        };
        ReplicaSpec {
            broker: *broker,
            disk,
            load: cluster.slot_load(slot).whole(lead, *broker == change.new_leader),
            offline: old == *broker && named.is_none() && cluster.is_offline(slot),
        }
    })
}

/// For each place in the new list the slot it came from.
fn paired(cluster: &Cluster, part: Part, change: &Change) -> Vec<Slot> {
    let slots: Vec<Slot> = cluster.slots(part).collect();
    let slot_of =
        |broker: BrokerId| change.old_replicas.iter().position(|old| *old == broker).map(|place| slots[place]);
    let stays = |slot: &Slot| {
        let broker = change.old_replicas[(*slot - slots[0]) as usize];
        change.new_replicas.contains(&broker)
    };
    let mut moved: Vec<Slot> = slots.iter().copied().filter(|slot| !stays(slot)).collect();
    let old_leader = slot_of(change.old_leader);
    if slot_of(change.new_leader).is_none()
        && let Some(place) = moved.iter().position(|slot| Some(*slot) == old_leader)
    {
        // The new leader comes first in the new list, so the one it follows comes first among those that moved.
        moved[..=place].rotate_right(1);
    }
    let mut moved = moved.into_iter();
    let from = |broker: &BrokerId| slot_of(*broker).or_else(|| moved.next());
    change.new_replicas.iter().map_while(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerState, Load, Resource};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::planner;
    use crate::settings::Settings;

    /// Six brokers in three racks; everything starts on the first two, so all must move.
    fn crowded() -> Cluster {
        let mut builder = ClusterBuilder::new();
        for id in 0..6 {
            let (rack, host) = (format!("r{}", id % 3), format!("h{id}"));
            let capacity = [100.0, 1_000.0, 1_000.0, 1_000.0];
            let disks = Vec::new();
            builder
                .broker(BrokerSpec { id: BrokerId(id), rack, host, state: BrokerState::Alive, capacity, disks })
                .unwrap();
        }
        for number in 0..24 {
            let size = 1.0 + number as f32;
            let replica = |position: i32| ReplicaSpec {
                broker: BrokerId(position * 3),
                disk: None,
                load: Load { cpu: 0.5, nw_in: size, nw_out: if position == 0 { size } else { 0.0 }, disk: size },
                offline: false,
            };
            builder.partition("T", number, 0, &[replica(0), replica(1)]).unwrap();
        }
        builder.build().unwrap()
    }

    #[test]
    fn brokers_then_carry_what_the_plan_promised() {
        let cluster = crowded();
        let outcome = planner::plan(&cluster, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        assert!(!outcome.plan.changes.is_empty());
        let after = after(&cluster, &outcome.plan).unwrap();
        let again = planner::plan(&after, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        for (promised, found) in outcome.after.iter().zip(&again.before) {
            assert_eq!((promised.replicas, promised.leaders), (found.replicas, found.leaders));
            let disk = Resource::Disk as usize;
            assert!((promised.resources[disk] - found.resources[disk]).abs() < 1e-3, "{promised:?} {found:?}");
        }
    }

    #[test]
    fn a_plan_for_another_cluster_is_refused() {
        let cluster = crowded();
        let mut outcome = planner::plan(&cluster, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        outcome.plan.changes[0].topic = "other".to_owned();
        assert!(matches!(after(&cluster, &outcome.plan), Err(Invalid::Partition { .. })));
    }
}
