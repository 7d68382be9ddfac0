//! Where automatic placement puts new replicas: striped over racks and brokers, the leader never
//! on a fenced broker, nothing on a broker whose directories are all cordoned.

use super::Cluster;
use super::broker::Broker;
use crate::code::{Code, Refusal};
use crate::ids::BrokerId;

struct Rack {
    live: Vec<BrokerId>,
    fenced: Vec<BrokerId>,
    next: usize,
}

impl Cluster {
    /// Replica lists for `partitions` new partitions.
    pub(super) fn place(&mut self, partitions: usize, factor: i16) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        let registered: Vec<&Broker> = self.brokers.values().filter(|broker| broker.registered).collect();
        let cordoned = |broker: &Broker| broker.dirs.iter().all(|dir| dir.cordoned || dir.retired);
        let usable: Vec<&Broker> = registered.iter().copied().filter(|broker| !cordoned(broker)).collect();
        let refuse = |why: String| {
            let text = format!("Unable to replicate the partition {factor} time(s): {why}");
            Err(Code::InvalidReplicationFactor.because(text))
        };
        if !usable.iter().any(|broker| !broker.fenced) {
            return refuse("All brokers are currently fenced or have all their log directories cordoned.".to_owned());
        }
        if usable.len() < factor as usize {
            let some_cordoned = usable.len() < registered.len();
            let tail = if some_cordoned { " and not cordoned" } else { "" };
            return refuse(format!(
                "The target replication factor of {factor} cannot be reached because only {} broker(s) are registered{tail}.",
                usable.len()
            ));
        }
        let mut names: Vec<Option<&str>> = usable.iter().map(|broker| broker.spec.rack.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        let mut racks: Vec<Rack> = names
            .iter()
            .map(|name| {
                let of = |fenced: bool| {
                    let here = usable.iter().filter(|it| it.spec.rack.as_deref() == *name && it.fenced == fenced);
                    here.map(|broker| broker.spec.id).collect()
                };
                Rack { live: of(false), fenced: of(true), next: 0 }
            })
            .collect();
        for rack in &mut racks {
            rack.next = self.dice.below(rack.live.len().max(1));
        }
        let first = self.dice.below(racks.len());
        Ok((0..partitions).map(|n| stripe(&mut racks, first + n, factor as usize)).collect())
    }
}

/// One partition's replicas: rack after rack, live brokers first.
fn stripe(racks: &mut [Rack], first: usize, factor: usize) -> Vec<BrokerId> {
    let mut chosen: Vec<BrokerId> = Vec::with_capacity(factor);
    for fenced in [false, true] {
        let mut idle_rounds = 0;
        let mut turn = first;
        while chosen.len() < factor && idle_rounds < racks.len() {
            let count = racks.len();
            let rack = &mut racks[turn % count];
            let from = if fenced { &rack.fenced } else { &rack.live };
            let pick = (0..from.len()).map(|n| from[(rack.next + n) % from.len()]).find(|it| !chosen.contains(it));
            match pick {
                Some(broker) => {
                    chosen.push(broker);
                    rack.next += 1;
                    idle_rounds = 0;
                }
                None => idle_rounds += 1,
            }
            turn += 1;
        }
    }
    chosen
}
