//! A cluster anew, with its partitions as they are and its brokers as somebody wants them.

use evenkeel_balancer::cluster::{BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskState, Invalid, ReplicaSpec};
use evenkeel_balancer::options::Operation;

/// The brokers as a builder takes them.
pub(super) fn brokers(cluster: &Cluster) -> Vec<BrokerSpec> {
    cluster.brokers().iter().map(|broker| broker.spec(cluster)).collect()
}

/// The same partitions on other brokers. A copy that is on its way to where there is one by now has arrived.
pub(super) fn on(brokers: Vec<BrokerSpec>, cluster: &Cluster) -> Result<Cluster, Invalid> {
    let mut builder = ClusterBuilder::new();
    cluster.unknown().iter().for_each(|resource| builder.unknown(resource));
    for broker in brokers {
        builder.broker(broker)?;
    }
    let mut moves = cluster.pending_moves().peekable();
    let mut replicas: Vec<ReplicaSpec> = Vec::new();
    for partition in cluster.partitions() {
        replicas.clear();
        replicas.extend(partition.following());
        let (leader, leading) = (partition.leader(), partition.leading());
        builder.partition_in_parts(partition.topic(), partition.number(), leader, &replicas, leading)?;
        // Both are in the same order.
        let is_here = |topic: &str, number: i32| topic == partition.topic() && number == partition.number();
        while let Some(pending) = moves.next_if(|one| is_here(&one.topic, one.partition)) {
            if replicas.iter().all(|replica| replica.broker != pending.to) {
                builder.pending(pending);
            }
        }
    }
    builder.build()
}

/// The cluster with the states that the operation puts brokers and disks in, so that whoever asks on from there need not
/// say again what is to be removed, demoted or filled.
pub(super) fn in_the_states_asked_for(cluster: &Cluster, operation: &Operation) -> Result<Cluster, Invalid> {
    let mut brokers = brokers(cluster);
    for broker in &mut brokers {
        match operation {
            Operation::AddBrokers(ids) if ids.contains(&broker.id) => broker.state = BrokerState::New,
            Operation::RemoveBrokers(ids) if ids.contains(&broker.id) => broker.state = BrokerState::Dead,
            Operation::DemoteBrokers(ids) if ids.contains(&broker.id) => broker.state = BrokerState::Demoted,
            Operation::RemoveDisks(disks) => {
                let id = broker.id;
                let named = |name: &String| disks.iter().any(|(of, directory)| *of == id && directory == name);
                broker
                    .disks
                    .iter_mut()
                    .filter(|disk| named(&disk.name))
                    .for_each(|disk| disk.state = DiskState::Removed);
            }
            _ => {}
        }
    }
    on(brokers, cluster)
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::{BrokerId, PendingMove};

    use super::super::testing;
    use super::*;

    #[test]
    fn a_cluster_is_the_same_when_nothing_is_asked() {
        let cluster = testing::cluster();
        assert_eq!(on(brokers(&cluster), &cluster).unwrap(), cluster);
        assert_eq!(in_the_states_asked_for(&cluster, &Operation::Rebalance).unwrap(), cluster);
    }

    #[test]
    fn brokers_are_in_the_state_that_was_asked_for() {
        let cluster = testing::cluster();
        let of_two = |operation: fn(std::collections::BTreeSet<BrokerId>) -> Operation| {
            let cluster = in_the_states_asked_for(&cluster, &operation([BrokerId(2)].into())).unwrap();
            [BrokerId(1), BrokerId(2)].map(|id| cluster.broker(id).unwrap().state)
        };
        assert_eq!(of_two(Operation::AddBrokers), [BrokerState::Alive, BrokerState::New]);
        assert_eq!(of_two(Operation::RemoveBrokers), [BrokerState::Alive, BrokerState::Dead]);
        assert_eq!(of_two(Operation::DemoteBrokers), [BrokerState::Alive, BrokerState::Demoted]);
    }

    #[test]
    fn a_copy_that_has_arrived_is_not_on_its_way() {
        let cluster = testing::cluster();
        let mut builder = ClusterBuilder::new();
        brokers(&cluster).into_iter().for_each(|broker| builder.broker(broker).unwrap());
        for partition in cluster.partitions() {
            let replicas: Vec<ReplicaSpec> = partition.replicas().collect();
            builder.partition(partition.topic(), partition.number(), partition.leader(), &replicas).unwrap();
        }
        let pending = |topic: &str, to| PendingMove { topic: topic.to_owned(), partition: 0, to: BrokerId(to) };
        // T0 lies on 0 and 1.
        [pending("T0", 1), pending("T0", 4), pending("T8", 3)].into_iter().for_each(|one| builder.pending(one));
        let told = builder.build().unwrap();
        let left: Vec<PendingMove> = on(brokers(&told), &told).unwrap().pending_moves().collect();
        assert_eq!(left, [pending("T0", 4), pending("T8", 3)]);
    }
}
