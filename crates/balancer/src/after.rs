//! The cluster as it is once a plan is carried out, to ask the next question about it.

use crate::cluster::{
    Broker, BrokerId, Cluster, ClusterBuilder, DiskState, Invalid, LeadLoad, NO_DISK, Part, ReplicaSpec, Slot,
};
use crate::plan::{Change, Plan};

/// What `plan` makes of `cluster`. A replica takes its load along, and leadership takes its share. Where the plan leaves the
/// disk of a replica that is new on its broker to Kafka, nobody knows it.
///
/// Brokers are in the state they were in: who was new still is.
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
        builder.broker(broker.spec(cluster))?;
    }
    let mut replicas: Vec<ReplicaSpec> = Vec::new();
    for (part, change) in changes.into_iter().enumerate() {
        let partition = cluster.partition(part);
        replicas.clear();
        let leader = match change {
            None => {
                replicas.extend(partition.following());
                partition.leader()
            }
            Some(change) => {
                replicas.extend(changed(cluster, part as Part, change));
                change.new_replicas.iter().position(|broker| *broker == change.new_leader).unwrap_or_default()
            }
        };
        // What goes with leadership is known already; reckoning it anew from the new leader's traffic would make
        // another cluster than the one that was planned for.
        builder.partition_in_parts(partition.topic(), partition.number(), leader, &replicas, partition.leading())?;
    }
    cluster.pending_moves().for_each(|pending| builder.pending(pending));
    builder.build()
}

/// The disk that any new replica must go to, because no other of the broker serves.
fn only_disk(broker: &Broker) -> Option<usize> {
    let mut serving = (0..broker.disks.len()).filter(|disk| broker.disks[*disk].state != DiskState::Dead);
    serving.next().filter(|_| serving.next().is_none())
}

/// The replicas of a partition in their new order, with what they carry as followers.
fn changed<'a>(cluster: &'a Cluster, part: Part, change: &'a Change) -> impl Iterator<Item = ReplicaSpec> + 'a {
    let slots = cluster.slots(part);
    let was_at = move |broker: BrokerId| slots.clone().zip(&change.old_replicas).find(|(_, old)| **old == broker);
    change.new_replicas.iter().filter_map(move |broker| {
        let stayed = was_at(*broker).map(|(slot, _)| slot);
        let came_from = || change.moves.iter().find(|(_, to)| to == broker).and_then(|(from, _)| was_at(*from));
        let origin: Slot = stayed.or_else(|| came_from().map(|(slot, _)| slot))?;
        let named = change.disks.iter().find(|disk| disk.broker == *broker);
        let disk = match (named, stayed) {
            (Some(named), _) => {
                cluster.broker(*broker).and_then(|broker| broker.disks.iter().position(|disk| disk.name == named.to))
            }
            (None, Some(slot)) => Some(cluster.disks()[slot as usize]).filter(|disk| *disk != NO_DISK).map(usize::from),
            (None, None) => cluster.broker(*broker).and_then(only_disk),
        };
        Some(ReplicaSpec {
            broker: *broker,
            disk,
            load: cluster.slot_load(origin).whole(LeadLoad::default(), false),
            offline: named.is_none() && stayed.is_some_and(|slot| cluster.is_offline(slot)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerSpec, BrokerState, Load, Resource};
    use crate::fixture::planned;
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::settings::Settings;

    /// Six brokers in three racks.
    fn six_brokers() -> ClusterBuilder {
        let mut builder = ClusterBuilder::new();
        for id in 0..6 {
            let (rack, host) = (format!("r{}", id % 3), format!("h{id}"));
            let (capacity, disks) = ([100.0, 1_000.0, 1_000.0, 1_000.0], Vec::new());
            builder
                .broker(BrokerSpec { id: BrokerId(id), rack, host, state: BrokerState::Alive, capacity, disks })
                .unwrap();
        }
        builder
    }

    /// Everything starts on two of the six, so all must move.
    fn crowded() -> Cluster {
        let mut builder = six_brokers();
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
        let outcome = planned(&cluster, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        assert!(!outcome.plan.changes.is_empty());
        let after = after(&cluster, &outcome.plan).unwrap();
        let again = planned(&after, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        for (promised, found) in outcome.after.iter().zip(&again.before) {
            assert_eq!((promised.replicas, promised.leaders), (found.replicas, found.leaders));
            let disk = Resource::Disk as usize;
            assert!((promised.resources[disk] - found.resources[disk]).abs() < 1e-3, "{promised:?} {found:?}");
        }
    }

    /// Six brokers, every second of which leads most traffic; replicas of a partition weigh differently.
    fn uneven() -> Cluster {
        let mut builder = six_brokers();
        for number in 0..60 {
            let drawn = |salt: i32, most: i32| ((number * 7 + salt * 13) * (number + salt) % most) as f32 + 0.1;
            let replica = |position: i32| ReplicaSpec {
                broker: BrokerId((number + position) % 6),
                disk: None,
                load: Load {
                    cpu: drawn(position, 5),
                    nw_in: (10.0 + drawn(position + 3, 5)) * (1 + 2 * (number % 2)) as f32,
                    nw_out: if position == 0 { (10.0 + drawn(9, 5)) * (1 + 2 * (number % 2)) as f32 } else { 0.0 },
                    disk: drawn(position + 6, 20),
                },
                offline: false,
            };
            builder.partition("T", number, 0, &[replica(0), replica(1)]).unwrap();
        }
        builder.build().unwrap()
    }

    #[test]
    fn what_was_promised_comes_true_though_replicas_of_a_partition_differ() {
        let cluster = uneven();
        for goals in [&Goal::DEFAULT[..], &[Goal::LeaderBytesInDistribution]] {
            let request = Request::rebalance(goals);
            let outcome = planned(&cluster, &request, &Settings::default()).unwrap();
            assert!(outcome.plan.changes.iter().any(|change| change.new_leader != change.old_leader));
            let after = after(&cluster, &outcome.plan).unwrap();
            let again = planned(&after, &request, &Settings::default()).unwrap();
            for (promised, found) in outcome.after.iter().zip(&again.before) {
                for (promised, found) in promised.resources.iter().zip(&found.resources) {
                    assert!((promised - found).abs() < 1e-3, "{promised} {found}");
                }
            }
            assert_eq!(again.plan.changes, []);
        }
    }

    #[test]
    fn a_plan_for_another_cluster_is_refused() {
        let cluster = crowded();
        let mut outcome = planned(&cluster, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
        outcome.plan.changes[0].topic = "other".to_owned();
        assert!(matches!(after(&cluster, &outcome.plan), Err(Invalid::Partition { .. })));
    }
}
