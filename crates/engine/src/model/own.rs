//! Topics that this engine keeps for itself must not stand in the way of plans for everybody else's.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use evenkeel_balancer::{cluster::Cluster, goal::Goal, options::TopicPattern};
use evenkeel_kafka::TopicPartition;

use super::{PartitionView, View};

/// What `pattern` means, and where `goals` want every replica in a rack of its own, those of our `own` topics that have
/// more replicas than there are racks. What of them has to move still does.
pub fn left_alone(
    cluster: &Cluster,
    goals: &[Goal],
    own: &[String],
    pattern: Option<&TopicPattern>,
) -> Option<TopicPattern> {
    if !goals.contains(&Goal::RackAware) {
        return pattern.cloned();
    }
    let alive = cluster.brokers().iter().filter(|broker| broker.is_alive());
    let racks = alive.map(|broker| broker.spec(cluster).rack).collect::<BTreeSet<String>>().len();
    let crowded: BTreeSet<&str> = cluster
        .partitions()
        .filter(|partition| partition.replicas().len() > racks && own.iter().any(|name| name == partition.topic()))
        .map(|partition| partition.topic())
        .collect();
    if crowded.is_empty() { pattern.cloned() } else { Some(TopicPattern::with_names(pattern, crowded)) }
}

/// Partitions of our own as they are; in the view that comes with them they have no more replicas than there are brokers.
pub type Narrowed = BTreeMap<TopicPartition, PartitionView>;

/// The cluster, and of our `own` topics no more replicas than there are brokers left once those that are to be `removed`
/// have gone: a cluster that shrinks to two brokers is not kept from it by three replicas of ours. Replicas on brokers
/// that stay are never left out.
pub fn narrowed<'v>(view: &'v View, removed: &BTreeSet<i32>, own: &[String]) -> (Cow<'v, View>, Narrowed) {
    let stays = |id: &i32| view.brokers.get(id).is_some_and(|broker| broker.up) && !removed.contains(id);
    let room = view.brokers.keys().filter(|id| stays(id)).count();
    let too_many = |(partition, seen): &(&TopicPartition, &PartitionView)| {
        seen.replicas.len() > room.max(1) && own.iter().any(|name| name == partition.topic.as_str())
    };
    let narrowed: Narrowed =
        view.partitions.iter().filter(too_many).map(|(partition, seen)| (partition.clone(), seen.clone())).collect();
    let mut cow = Cow::Borrowed(view);
    for (partition, seen) in &narrowed {
        let Some(narrow) = cow.to_mut().partitions.get_mut(partition) else { continue };
        // Whoever leads is the last to be left out.
        let mut others: Vec<i32> = seen.replicas.iter().rev().copied().filter(|id| !stays(id)).collect();
        others.sort_by_key(|id| seen.leader == Some(*id));
        others.truncate(seen.replicas.len() - room.max(1));
        narrow.replicas.retain(|id| !others.contains(id));
        narrow.offline.retain(|id| !others.contains(id));
        narrow.leader = narrow.leader.filter(|id| !others.contains(id));
    }
    (cow, narrowed)
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::{BrokerId, BrokerSpec, BrokerState, ClusterBuilder, Load, ReplicaSpec};

    use super::*;

    fn cluster(racks: &[&str]) -> Cluster {
        let mut builder = ClusterBuilder::new();
        for (id, rack) in (0..).zip(racks) {
            builder
                .broker(BrokerSpec {
                    id: BrokerId(id),
                    rack: (*rack).to_owned(),
                    host: format!("h{id}"),
                    state: BrokerState::Alive,
                    capacity: [1.0; 4],
                    disks: Vec::new(),
                })
                .unwrap();
        }
        for topic in ["journal.", "orders"] {
            let replica = |id| ReplicaSpec { broker: BrokerId(id), disk: None, load: Load::default(), offline: false };
            builder.partition(topic, 0, 0, &[0, 1, 2].map(replica)).unwrap();
        }
        builder.build().unwrap()
    }

    fn view(up: &[i32], down: &[i32]) -> View {
        let broker = |up| move |id: &i32| (*id, crate::model::BrokerView { up, ..Default::default() });
        let seen = PartitionView { replicas: vec![0, 1, 2], leader: Some(2), ..PartitionView::default() };
        View {
            brokers: up.iter().map(broker(true)).chain(down.iter().map(broker(false))).collect(),
            partitions: ["journal.", "orders"].map(|topic| (TopicPartition::new(topic, 0), seen.clone())).into(),
        }
    }

    #[test]
    fn only_topics_of_our_own_with_more_replicas_than_brokers_are_narrowed() {
        let own = ["journal.".to_owned()];
        let replicas = |view: &View, removed: &[i32]| {
            let (narrow, as_they_are) = narrowed(view, &removed.iter().copied().collect(), &own);
            assert_eq!(narrow.partitions[&TopicPartition::new("orders", 0)].replicas, [0, 1, 2]);
            assert!(as_they_are.values().all(|seen| seen.replicas == [0, 1, 2]));
            (narrow.partitions[&TopicPartition::new("journal.", 0)].replicas.clone(), as_they_are.len())
        };
        assert_eq!(replicas(&view(&[0, 1, 2], &[]), &[]), (vec![0, 1, 2], 0));
        assert_eq!(replicas(&view(&[0, 1, 2, 3], &[]), &[1]), (vec![0, 1, 2], 0), "there is another broker for it");
        assert_eq!(replicas(&view(&[0, 1, 2], &[]), &[1]), (vec![0, 2], 1));
        assert_eq!(replicas(&view(&[0, 1, 2], &[]), &[2]), (vec![0, 1], 1));
        // Of two that go one is left out; the other moves to who stays.
        assert_eq!(replicas(&view(&[0, 1, 2, 3], &[]), &[1, 2]), (vec![0, 2], 1), "whoever leads is the last");
        assert_eq!(replicas(&view(&[0, 1], &[2]), &[]), (vec![0, 1], 1));
        assert_eq!(replicas(&view(&[0], &[]), &[0]), (vec![2], 1), "one is always left");
    }

    #[test]
    fn only_topics_of_our_own_with_too_many_replicas_are_left_alone() {
        let own = ["journal.".to_owned(), "samples".to_owned()];
        let left_alone = |cluster: &Cluster, own: &[String], pattern: Option<&TopicPattern>| {
            assert!(super::left_alone(cluster, &[Goal::ReplicaDistribution], own, None).is_none());
            super::left_alone(cluster, &[Goal::RackAware], own, pattern)
        };
        let users = TopicPattern::new("(?x)secret.* # ours").unwrap();
        assert!(left_alone(&cluster(&["a", "b", "c"]), &own, None).is_none());
        let wide = left_alone(&cluster(&["a", "b", "c"]), &own, Some(&users)).unwrap();
        assert!(wide.matches("secrets") && !wide.matches("journal."));
        for pattern in [None, Some(&users)] {
            let narrow = left_alone(&cluster(&["a", "b", "b"]), &own, pattern).unwrap();
            assert!(narrow.matches("journal.") && !narrow.matches("journals") && !narrow.matches("orders"));
            assert_eq!(narrow.matches("secrets"), pattern.is_some());
        }
    }
}
