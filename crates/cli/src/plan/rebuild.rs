//! A cluster anew, with its partitions as they are and its brokers as somebody wants them.

use std::collections::BTreeSet;

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskState, Invalid, ReplicaSpec,
};
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
///
/// A broker that is removed is dead once nothing is on it or on its way to it. One that a budget, or the lack of a better
/// place, leaves with data still serves them: called dead, they would count as lost.
pub(super) fn in_the_states_asked_for(cluster: &Cluster, operation: &Operation) -> Result<Cluster, Invalid> {
    let mut brokers = brokers(cluster);
    let holders: BTreeSet<BrokerId> = match operation {
        Operation::RemoveBrokers(_) => holders(cluster),
        _ => BTreeSet::new(),
    };
    for broker in &mut brokers {
        match operation {
            Operation::AddBrokers(ids) if ids.contains(&broker.id) => broker.state = BrokerState::New,
            Operation::RemoveBrokers(ids) if ids.contains(&broker.id) && !holders.contains(&broker.id) => {
                broker.state = BrokerState::Dead;
            }
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

/// The brokers on which there are replicas, or will be.
fn holders(cluster: &Cluster) -> BTreeSet<BrokerId> {
    let placed = cluster.partitions().flat_map(|partition| partition.replicas().map(|replica| replica.broker));
    placed.chain(cluster.pending_moves().map(|pending| pending.to)).collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::PendingMove;

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
        assert_eq!(of_two(Operation::DemoteBrokers), [BrokerState::Alive, BrokerState::Demoted]);
    }

    #[test]
    fn a_removed_broker_is_dead_once_nothing_is_on_it_or_on_its_way_to_it() {
        let cluster = testing::cluster();
        let mut more = brokers(&cluster);
        for id in [5, 6] {
            more.push(BrokerSpec { id: BrokerId(id), host: format!("h{id}"), ..more[4].clone() });
        }
        let mut builder = ClusterBuilder::new();
        more.into_iter().for_each(|broker| builder.broker(broker).unwrap());
        for partition in cluster.partitions() {
            let replicas: Vec<ReplicaSpec> = partition.replicas().collect();
            builder.partition(partition.topic(), partition.number(), partition.leader(), &replicas).unwrap();
        }
        builder.pending(PendingMove { topic: "T0".to_owned(), partition: 0, to: BrokerId(6) });
        let removed = Operation::RemoveBrokers([4, 5, 6].map(BrokerId).into());
        let asked = in_the_states_asked_for(&builder.build().unwrap(), &removed).unwrap();
        // Broker 4 holds replicas, 5 nothing, and 6 will.
        let states = [4, 5, 6].map(|id| asked.broker(BrokerId(id)).unwrap().state);
        assert_eq!(states, [BrokerState::Alive, BrokerState::Dead, BrokerState::Alive]);
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
