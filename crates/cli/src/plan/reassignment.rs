//! The plan as the file that Kafka's own `kafka-reassign-partitions` takes, and the way back.

use evenkeel_balancer::cluster::BrokerId;
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
pub(super) fn of(plan: &Plan, rollback: bool) -> Reassignment<'_> {
    let partition = |change| partition(change, rollback);
    // What was changed last is changed back first.
    let partitions = if rollback {
        plan.changes.iter().rev().map(partition).collect()
    } else {
        plan.changes.iter().map(partition).collect()
    };
    Reassignment { version: 1, partitions }
}

fn partition(change: &Change, rollback: bool) -> Partition<'_> {
    let replicas = if rollback { &change.old_replicas } else { &change.new_replicas };
    let directory = |broker: &BrokerId| {
        let disk = change.disks.iter().find(|disk| disk.broker == *broker);
        let name = disk.map(|disk| if rollback { disk.from.as_str() } else { disk.to.as_str() });
        name.filter(|name| !name.is_empty()).unwrap_or(ANY)
    };
    let log_dirs: Vec<&str> =
        if change.disks.is_empty() { Vec::new() } else { replicas.iter().map(directory).collect() };
    Partition {
        topic: &change.topic,
        partition: change.partition,
        replicas: replicas.iter().map(|broker| broker.0).collect(),
        log_dirs,
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_way_there_and_the_way_back() {
        let disk = DiskChange { broker: BrokerId(2), from: "/a".to_owned(), to: "/b".to_owned() };
        let changes = vec![change("T1", &[0, 1], &[2, 1], vec![]), change("T2", &[1, 2], &[1, 2], vec![disk])];
        let plan = Plan { changes, undone: Undone::default() };
        let json = |rollback| serde_json::to_string(&of(&plan, rollback)).unwrap();
        expect![[r#"{"version":1,"partitions":[{"topic":"T1","partition":0,"replicas":[2,1]},{"topic":"T2","partition":0,"replicas":[1,2],"log_dirs":["any","/b"]}]}"#]].assert_eq(&json(false));
        expect![[r#"{"version":1,"partitions":[{"topic":"T2","partition":0,"replicas":[1,2],"log_dirs":["any","/a"]},{"topic":"T1","partition":0,"replicas":[0,1]}]}"#]].assert_eq(&json(true));
    }
}
