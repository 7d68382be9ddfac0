//! The plan as the file that Kafka's own `kafka-reassign-partitions` takes, and the way back.

use evenkeel_balancer::cluster::{BrokerId, Cluster, DiskState};
use evenkeel_balancer::plan::{Change, Plan};
use serde::Serialize;

/// What the tool says when any log directory will do.
const ANY: &str = "any";

#[derive(Serialize)]
pub(super) struct Reassignment<'a> {
    version: u32,
    partitions: Vec<Partition<'a>>,
}

#[derive(Serialize)]
struct Partition<'a> {
    topic: &'a str,
    partition: i32,
    replicas: Vec<i32>,
    /// As many as there are replicas, or none at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    log_dirs: Vec<&'a str>,
}

/// The plan, or what leads from its end back to the placement as found.
pub(super) fn of<'a>(cluster: &'a Cluster, plan: &'a Plan, rollback: bool) -> Reassignment<'a> {
    let partition = |change| if rollback { back(cluster, change) } else { there(change) };
    // What was changed last is changed back first.
    let partitions = if rollback {
        plan.changes.iter().rev().map(partition).collect()
    } else {
        plan.changes.iter().map(partition).collect()
    };
    Reassignment { version: 1, partitions }
}

fn there(change: &Change) -> Partition<'_> {
    partition(change, &change.new_replicas, |broker| {
        change.disks.iter().find(|disk| disk.broker == broker).map(|disk| disk.to.as_str())
    })
}

fn back<'a>(cluster: &'a Cluster, change: &'a Change) -> Partition<'a> {
    partition(change, &change.old_replicas, |broker| {
        let moved = change.disks.iter().find(|disk| disk.broker == broker).map(|disk| disk.from.as_str());
        // What left the broker comes back to where it lay, if that is known and still serves.
        moved.or_else(|| if change.new_replicas.contains(&broker) { None } else { found_in(cluster, change, broker) })
    })
}

/// The log directory in which the partition's replica on the broker was found.
fn found_in<'a>(cluster: &'a Cluster, change: &Change, broker: BrokerId) -> Option<&'a str> {
    let found = cluster.find_partition(&change.topic, change.partition)?;
    let replica = found.replicas().find(|replica| replica.broker == broker)?;
    let disk = cluster.broker(broker)?.disks.get(replica.disk?)?;
    (disk.state == DiskState::Alive).then_some(disk.name.as_str())
}

/// As many directories as there are replicas, or none if any will do for all of them.
fn partition<'a>(
    change: &'a Change,
    replicas: &[BrokerId],
    directory: impl Fn(BrokerId) -> Option<&'a str>,
) -> Partition<'a> {
    let named = |broker: &BrokerId| directory(*broker).filter(|name| !name.is_empty());
    let directories: Vec<Option<&str>> = replicas.iter().map(named).collect();
    let any_will_do = directories.iter().all(Option::is_none);
    Partition {
        topic: &change.topic,
        partition: change.partition,
        replicas: replicas.iter().map(|broker| broker.0).collect(),
        log_dirs: if any_will_do {
            Vec::new()
        } else {
            directories.into_iter().map(|name| name.unwrap_or(ANY)).collect()
        },
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::{BrokerSpec, BrokerState, ClusterBuilder, DiskSpec, Load, ReplicaSpec};
    use evenkeel_balancer::plan::{DiskChange, Undone};
    use expect_test::expect;

    use super::*;

    fn change(topic: &str, old: &[i32], new: &[i32], disks: Vec<DiskChange>) -> Change {
        let ids = |list: &[i32]| list.iter().copied().map(BrokerId).collect::<Vec<_>>();
        Change {
            topic: topic.to_owned(),
            partition: 0,
            old_replicas: ids(old),
            new_replicas: ids(new),
            moves: Vec::new(),
            old_leader: BrokerId(old[0]),
            new_leader: BrokerId(new[0]),
            disks,
            megabytes: 1.0,
            disk_megabytes: 0.0,
            reasons: Vec::new(),
        }
    }

    /// Three brokers with the directories /a and /b; all replicas lie in /a.
    fn cluster() -> Cluster {
        let mut builder = ClusterBuilder::new();
        for id in 0..3 {
            let disk = |name: &str| DiskSpec { name: name.to_owned(), capacity: 1.0, state: DiskState::Alive };
            let disks = vec![disk("/a"), disk("/b")];
            let (rack, host) = (String::new(), format!("h{id}"));
            let (state, capacity) = (BrokerState::Alive, [1.0; 4]);
            builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks }).unwrap();
        }
        let replica = |id| ReplicaSpec { broker: BrokerId(id), disk: Some(0), load: Load::default(), offline: false };
        builder.partition("T1", 0, 0, &[replica(0), replica(1)]).unwrap();
        builder.partition("T2", 0, 0, &[replica(1), replica(2)]).unwrap();
        builder.build().unwrap()
    }

    #[test]
    fn the_way_there_and_the_way_back() {
        let disk = DiskChange { broker: BrokerId(2), from: "/a".to_owned(), to: "/b".to_owned() };
        let changes = vec![change("T1", &[0, 1], &[2, 1], vec![]), change("T2", &[1, 2], &[1, 2], vec![disk])];
        let plan = Plan { changes, undone: Undone::default() };
        let cluster = cluster();
        let json = |rollback| serde_json::to_string(&of(&cluster, &plan, rollback)).unwrap();
        expect![[r#"{"version":1,"partitions":[{"topic":"T1","partition":0,"replicas":[2,1]},{"topic":"T2","partition":0,"replicas":[1,2],"log_dirs":["any","/b"]}]}"#]].assert_eq(&json(false));
        expect![[r#"{"version":1,"partitions":[{"topic":"T2","partition":0,"replicas":[1,2],"log_dirs":["any","/a"]},{"topic":"T1","partition":0,"replicas":[0,1],"log_dirs":["/a","any"]}]}"#]].assert_eq(&json(true));
    }
}
