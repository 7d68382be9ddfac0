//! Topics that this engine keeps for itself must not stand in the way of plans for everybody else's.

use std::collections::BTreeSet;

use evenkeel_balancer::{cluster::Cluster, goal::Goal, options::TopicPattern};

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
