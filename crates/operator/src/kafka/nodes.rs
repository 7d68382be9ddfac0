//! Which ids stay, come and go.
//!
//! An id that goes in this reconciliation is not given to a new node in the same one, and later not to one of another pool
//! while its pod still runs: two nodes of one id would be taken for each other. Its own pool may have it back at once: the
//! new pod has the name of the old one, and so waits for its end. A pool never adds and removes at once; different pools may.

use std::collections::{BTreeMap, BTreeSet};

use super::pools::{Pool, Pools, Roles};

/// Ids of nodes.
pub type Ids = BTreeSet<i32>;

/// The nodes of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolNodes {
    /// What they should do.
    pub roles: Roles,
    /// What they did. None: the pool is new.
    pub roles_before: Option<Roles>,
    /// Those that are there.
    pub current: Ids,
    /// Those that should be.
    pub desired: Ids,
    /// Those that come.
    pub added: Ids,
    /// Those that go.
    pub removed: Ids,
}

impl PoolNodes {
    /// Nodes that stay and were brokers, but should no longer be.
    pub fn used_to_be_brokers(&self) -> Ids {
        if self.was_broker() && !self.roles.broker { &self.current & &self.desired } else { Ids::new() }
    }

    fn was_broker(&self) -> bool {
        self.roles_before.is_some_and(|roles| roles.broker)
    }
}

/// The nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// By pool.
    pub pools: BTreeMap<String, PoolNodes>,
}

/// Chooses who stays, comes and goes.
pub fn assign(pools: &Pools) -> Assignment {
    let mut used: Ids = pools.all.values().flat_map(|pool| &pool.current).chain(&pools.taken).copied().collect();
    let assigned = pools.all.iter().map(|(name, pool)| {
        let elsewhere = pools.running.iter().filter(|(_, of)| *of != name).map(|(id, _)| *id).collect();
        (name.clone(), of_pool(pool, &mut used, &elsewhere))
    });
    Assignment { pools: assigned.collect() }
}

/// `elsewhere`: ids of pods that run in other pools.
fn of_pool(pool: &Pool, used: &mut Ids, elsewhere: &Ids) -> PoolNodes {
    let mut desired = pool.current.clone();
    while desired.len() > pool.replicas {
        let chosen = pool.remove_ids.first_used(&desired).or_else(|| desired.last().copied());
        let Some(id) = chosen else { break };
        desired.remove(&id);
    }
    while desired.len() < pool.replicas {
        let busy = &*used | elsewhere;
        let Some(id) = pool.next_ids.first_unused(&busy).or_else(|| lowest_unused(&busy)) else { break };
        used.insert(id);
        desired.insert(id);
    }
    PoolNodes {
        roles: pool.roles,
        roles_before: pool.roles_before,
        added: &desired - &pool.current,
        removed: &pool.current - &desired,
        current: pool.current.clone(),
        desired,
    }
}

fn lowest_unused(used: &Ids) -> Option<i32> {
    (0..i32::MAX).find(|id| !used.contains(id))
}

impl Assignment {
    /// All nodes that should be there.
    pub fn desired(&self) -> Ids {
        self.union(|_| true, |pool| pool.desired.clone())
    }

    /// All brokers that should be there.
    pub fn desired_brokers(&self) -> Ids {
        self.union(|pool| pool.roles.broker, |pool| pool.desired.clone())
    }

    /// Brokers that come. None when they would be all there are: a new cluster is no scale-up.
    pub fn added_brokers(&self) -> Ids {
        let added = self.union(|pool| pool.roles.broker, |pool| pool.added.clone());
        if added == self.desired_brokers() { Ids::new() } else { added }
    }

    /// Brokers that go: nodes whose pool had the broker role.
    pub fn removed_brokers(&self) -> Ids {
        self.union(PoolNodes::was_broker, |pool| pool.removed.clone())
    }

    /// Nodes that stay and lose the broker role.
    pub fn used_to_be_brokers(&self) -> Ids {
        self.union(|_| true, PoolNodes::used_to_be_brokers)
    }

    /// Whether nothing comes, goes or loses the broker role.
    pub fn is_quiet(&self) -> bool {
        let quiet =
            |pool: &PoolNodes| pool.added.is_empty() && pool.removed.is_empty() && pool.used_to_be_brokers().is_empty();
        self.pools.values().all(quiet)
    }

    fn union(&self, which: impl Fn(&PoolNodes) -> bool, ids: impl Fn(&PoolNodes) -> Ids) -> Ids {
        self.pools.values().filter(|pool| which(pool)).flat_map(ids).collect()
    }
}

#[cfg(test)]
mod tests;
