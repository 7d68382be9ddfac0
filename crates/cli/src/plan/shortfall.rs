//! What a plan cannot do, or does not, and nobody who carries it out may overlook.

use evenkeel_balancer::cluster::{BrokerId, Cluster, Resource};
use evenkeel_balancer::options::Operation;
use evenkeel_balancer::planner::Outcome;
use serde::Serialize;

use super::units::{counted, megabytes};

/// Brokers named in one line of a table.
const MOST_NAMED: usize = 8;

/// Partitions of which no replica is on a broker and a disk that live.
#[derive(Serialize)]
pub(super) struct Lost {
    pub(super) partitions: u64,
    /// Each partition once, however many replicas it had; none where nobody measured that.
    #[serde(rename = "dataMB")]
    pub(super) data: Option<f64>,
}

/// A broker that should be empty after the plan, and is not.
#[derive(Serialize)]
pub(super) struct NotEmptied {
    pub(super) broker: i32,
    pub(super) replicas: u64,
    #[serde(rename = "dataMB")]
    pub(super) data: Option<f64>,
    /// Replicas of these that are still being copied to it, so that no list of replicas has them.
    #[serde(skip)]
    copies: u64,
}

impl Lost {
    pub(super) fn of(cluster: &Cluster, operation: &Operation) -> Lost {
        let (mut partitions, mut data) = (0, 0.0);
        for partition in cluster.partitions().filter(|partition| operation.finds_lost(*partition)) {
            partitions += 1;
            data += partition.replicas().map(|replica| f64::from(replica.load.disk)).fold(0.0, f64::max);
        }
        Lost { partitions, data: (!cluster.unknown().contains(Resource::Disk)).then_some(data) }
    }

    /// Nothing where nothing is lost.
    pub(super) fn in_words(&self) -> Option<String> {
        let data = self.data.map(|data| format!(", {}", megabytes(data))).unwrap_or_default();
        let partitions = counted(self.partitions, "partition", "partitions");
        let words = "no replica is left on a broker that lives, so nobody can copy them; unless one comes back they begin \
                     empty";
        (self.partitions > 0).then(|| format!("{partitions}{data}: {words}"))
    }
}

impl NotEmptied {
    /// Those to be removed and, where the plan saves what is offline, those that are dead.
    pub(super) fn all(cluster: &Cluster, operation: &Operation, outcome: &Outcome) -> Vec<NotEmptied> {
        let is_removed = |id: BrokerId| matches!(operation, Operation::RemoveBrokers(ids) if ids.contains(&id));
        let sized = !cluster.unknown().contains(Resource::Disk);
        let brokers = cluster.brokers().iter().zip(&outcome.after);
        let is_left = |broker: &evenkeel_balancer::cluster::Broker| {
            is_removed(broker.id) || (outcome.heals && !broker.is_alive())
        };
        brokers
            .filter(|(broker, after)| after.replicas > 0 && is_left(broker))
            .map(|(broker, after)| NotEmptied {
                broker: broker.id.0,
                replicas: after.replicas,
                data: sized.then(|| after.resources[Resource::Disk as usize]),
                copies: cluster.pending_moves().filter(|copy| copy.to == broker.id).count() as u64,
            })
            .collect()
    }

    /// Nothing where all of them are.
    pub(super) fn in_words(all: &[NotEmptied]) -> Option<String> {
        let one = |it: &NotEmptied| {
            let data = it.data.map(|data| format!(", {}", megabytes(data))).unwrap_or_default();
            let copies =
                if it.copies > 0 { format!(", {} of them on the way to it", it.copies) } else { String::new() };
            format!("broker {} still holds {}{data}{copies}", it.broker, counted(it.replicas, "replica", "replicas"))
        };
        let mut words: Vec<String> = all.iter().take(MOST_NAMED).map(one).collect();
        let more = all.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            words.push(format!("and {} more", counted(more as u64, "broker", "brokers")));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}
