//! Whether a plan can still be carried out as it was approved.
//!
//! It can if every partition that it moves has the replicas it had, in whatever order, and is not on its way to others;
//! if everything that it moves to is alive; if nothing has come to brokers that it is to empty; and if
//! copies that were on their way have come, or still do: it leaves to them what it does not do itself,
//! up to doing nothing at all.
//! What else has changed makes it a little worse, not wrong.

use std::{collections::BTreeSet, fmt};

use evenkeel_balancer::{cluster::BrokerId, options::Operation, plan::Change};
use evenkeel_kafka::TopicPartition;

use super::Proposal;
use crate::model::View;

/// How many things that have changed are told one by one.
const TOLD: usize = 3;

/// What has changed, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Changed(pub BTreeSet<String>);

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, what) in self.0.iter().take(TOLD).enumerate() {
            write!(f, "{}{what}", if index > 0 { "; " } else { "" })?;
        }
        match self.0.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Whether the plan fits the cluster as it looks now.
pub fn fits(proposal: &Proposal, now: &View) -> Result<(), Changed> {
    let mut changed = BTreeSet::new();
    for change in &proposal.outcome.plan.changes {
        replicas(change, now, &mut changed);
        targets(change, now, &mut changed);
    }
    newcomers(proposal, now, &mut changed);
    called_off(proposal, now, &mut changed);
    if changed.is_empty() { Ok(()) } else { Err(Changed(changed)) }
}

fn replicas(change: &Change, now: &View, changed: &mut BTreeSet<String>) {
    let partition = TopicPartition::new(&change.topic, change.partition);
    let Some(seen) = now.partitions.get(&partition) else {
        changed.insert(format!("partition {partition} is gone"));
        return;
    };
    let old: BTreeSet<i32> = change.old_replicas.iter().map(|id| id.0).collect();
    let new: BTreeSet<i32> = seen.replicas.iter().copied().collect();
    if old != new {
        changed.insert(format!("partition {partition} lay on brokers {old:?} and now lies on {new:?}"));
    }
    if let Some(id) = seen.adding.first() {
        changed.insert(format!("partition {partition} is being copied to broker {id}"));
    }
}

/// What lies on brokers that are to be emptied, or is on its way there, and was not when the plan was made.
fn newcomers(proposal: &Proposal, now: &View, changed: &mut BTreeSet<String>) {
    let Operation::RemoveBrokers(emptied) = &proposal.ask.request.operation else { return };
    let changes = &proposal.outcome.plan.changes;
    let moved: BTreeSet<(&str, i32)> = changes.iter().map(|change| (change.topic.as_str(), change.partition)).collect();
    for (partition, seen) in &now.partitions {
        let mut there = seen.replicas.iter().chain(&seen.adding).filter(|id| emptied.contains(&BrokerId(**id)));
        let Some(id) = there.next() else { continue };
        if !moved.contains(&(partition.topic.as_str(), partition.partition)) && !proposal.left.contains(partition) {
            changed.insert(format!("partition {partition} has come to broker {id}"));
        }
    }
}

/// Copies that the plan counts on, and that will not come. Of a partition that is gone nothing is missing.
fn called_off(proposal: &Proposal, now: &View, changed: &mut BTreeSet<String>) {
    for (partition, brokers) in &proposal.awaited {
        let Some(seen) = now.partitions.get(partition) else { continue };
        for id in brokers.iter().filter(|id| !seen.replicas.contains(id) && !seen.adding.contains(id)) {
            changed.insert(format!("partition {partition} was being copied to broker {id} and no longer is"));
        }
    }
}

fn targets(change: &Change, now: &View, changed: &mut BTreeSet<String>) {
    let leads = Some(change.new_leader).filter(|leader| *leader != change.old_leader);
    let dirs = change.disks.iter().map(|disk| disk.broker);
    let targets: BTreeSet<BrokerId> = change.added().chain(leads).chain(dirs).collect();
    for BrokerId(id) in targets {
        match now.brokers.get(&id) {
            None => changed.insert(format!("broker {id} is gone")),
            Some(broker) if !broker.up => changed.insert(format!("broker {id} is down")),
            Some(broker) => {
                let mut failed = change.disks.iter().filter(|disk| disk.broker.0 == id);
                match failed.find(|disk| broker.failed_dirs.contains(&disk.to)) {
                    Some(disk) => changed.insert(format!("log directory {} of broker {id} has failed", disk.to)),
                    None => false,
                }
            }
        };
    }
}
