//! From an old replica set to a new one: pure.
//!
//! `Recreate` ends all old pods before it makes new ones. `RollingUpdate` never has more pods than wanted plus
//! `maxSurge`, and takes old ones away only while enough are available. Replicas that change in the middle of a rollout
//! are made up by the new set; old ones are not scaled in proportion.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStrategy, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::template::{REVISION, is_current, revision};

/// A replica set of the deployment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    pub(super) set: &'a ReplicaSet,
    /// How many of its pods have not ended, also those that are about to.
    pub(super) alive: usize,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// A new set of so many pods, which is the state of this number.
    Create {
        /// Pods.
        replicas: i32,
        /// The number of the state.
        revision: u64,
    },
    /// So many pods for the set of this name.
    Scale(String, i32),
    /// The number of the state that the set of this name is.
    Number(String, u64),
    /// How many seconds a pod of the set of this name must be ready before it counts as available.
    Patience(String, i32),
    /// The number of the state that the deployment is in.
    NumberDeployment(u64),
    /// An old set that is not worth keeping.
    Delete(String),
}

/// What to write now; nothing while there is something to wait for, and when all is done.
pub(super) fn decide(deployment: &Deployment, sets: &[Observed<'_>]) -> Vec<Act> {
    let Some(spec) = deployment.spec.as_ref().filter(|_| deployment.metadata.deletion_timestamp.is_none()) else {
        return Vec::new();
    };
    let wanted = spec.replicas.unwrap_or(1);
    // Of several with the same template, which only somebody else can have made, the oldest counts.
    let new = sets.iter().filter(|observed| is_current(deployment, observed.set));
    let new = new.min_by_key(|observed| (observed.set.creation_timestamp(), observed.set.name_any())).copied();
    let mut old: Vec<Observed<'_>> = sets.to_vec();
    old.retain(|observed| new.is_none_or(|new| !std::ptr::eq(new.set, observed.set)));
    old.sort_by_key(|observed| (observed.set.creation_timestamp(), observed.set.name_any()));
    if spec.paused.unwrap_or_default() {
        return while_paused(wanted, sets);
    }
    let latest = old.iter().map(|observed| revision(observed.set)).max().unwrap_or(0) + 1;
    let mut acts = match new {
        Some(new) => number(deployment, new.set, latest),
        None => Vec::new(),
    };
    // No part of the template: it is changed without a new state.
    let patience = spec.min_ready_seconds.unwrap_or(0);
    let differs = |set: &ReplicaSet| set.spec.as_ref().and_then(|it| it.min_ready_seconds).unwrap_or(0) != patience;
    acts.extend(new.filter(|new| differs(new.set)).map(|new| Act::Patience(new.set.name_any(), patience)));
    let rollout = Rollout { wanted, new, old: &old, revision: latest, limits: Limits::of(deployment) };
    acts.extend(match rollout.limits {
        None => rollout.recreate(),
        Some(limits) => rollout.roll(limits),
    });
    if acts.is_empty() && rollout.is_complete() {
        acts = superfluous(&old, spec.revision_history_limit.unwrap_or(10));
    }
    acts
}

/// Whether all pods are of the new set, and as many as wanted are available.
pub(super) fn is_complete(deployment: &Deployment, sets: &[Observed<'_>]) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let (new, old): (Vec<Observed<'_>>, Vec<_>) =
        sets.iter().partition(|observed| is_current(deployment, observed.set));
    let rollout = Rollout { wanted, new: new.first().copied(), old: &old, revision: 0, limits: None };
    rollout.is_complete()
}

struct Rollout<'a> {
    wanted: i32,
    new: Option<Observed<'a>>,
    /// The oldest first.
    old: &'a [Observed<'a>],
    /// The number of the new set's state.
    revision: u64,
    limits: Option<Limits>,
}

impl Rollout<'_> {
    fn recreate(&self) -> Vec<Act> {
        let stop = self.old.iter().filter(|observed| size(observed.set) > 0);
        let stop: Vec<Act> = stop.map(|observed| Act::Scale(observed.set.name_any(), 0)).collect();
        if !stop.is_empty() || self.old.iter().any(|observed| observed.alive > 0) {
            return stop;
        }
        self.resize_new(self.wanted)
    }

    fn roll(&self, limits: Limits) -> Vec<Act> {
        let all = self.all();
        let total: i32 = all.iter().map(|set| size(set)).sum();
        let has = self.new.map_or(0, |new| size(new.set));
        let room = (self.wanted + limits.surge - total).max(0);
        let target = if has > self.wanted { self.wanted } else { has + room.min(self.wanted - has) };
        let up = self.resize_new(target);
        // One thing at a time: what follows is decided from what is then.
        if up.is_empty() { self.shrink_old(&all, total, limits) } else { up }
    }

    fn all(&self) -> Vec<&ReplicaSet> {
        self.old.iter().copied().chain(self.new).map(|observed| observed.set).collect()
    }

    fn resize_new(&self, replicas: i32) -> Vec<Act> {
        match self.new {
            None => vec![Act::Create { replicas, revision: self.revision }],
            Some(new) if size(new.set) != replicas => vec![Act::Scale(new.set.name_any(), replicas)],
            Some(_) => Vec::new(),
        }
    }

    /// Takes old pods away: first those that are of no use, then as many as may be missing.
    fn shrink_old(&self, all: &[&ReplicaSet], total: i32, limits: Limits) -> Vec<Act> {
        let least = self.wanted - limits.unavailable;
        let unavailable = self.new.map_or(0, |new| size(new.set) - available(new.set));
        let mut may_go = total - least - unavailable;
        let mut spare = all.iter().map(|set| available(set)).sum::<i32>() - least;
        let mut acts = Vec::new();
        for set in self.old.iter().map(|observed| observed.set).filter(|set| size(set) > 0) {
            let useless = (size(set) - available(set)).min(may_go).max(0);
            let useful = available(set).min(spare).min(may_go - useless).max(0);
            may_go -= useless + useful;
            spare -= useful;
            if useless + useful > 0 {
                acts.push(Act::Scale(set.name_any(), size(set) - useless - useful));
            }
        }
        acts
    }

    fn is_complete(&self) -> bool {
        let done = |new: Observed<'_>| size(new.set) == self.wanted && available(new.set) == self.wanted;
        self.new.is_some_and(done) && self.old.iter().all(|observed| size(observed.set) == 0 && observed.alive == 0)
    }
}

/// While a deployment is paused nothing is rolled out, but its size is kept to.
fn while_paused(wanted: i32, sets: &[Observed<'_>]) -> Vec<Act> {
    let sizes = || sets.iter().filter(|observed| size(observed.set) > 0);
    let latest = sets.iter().max_by_key(|observed| revision(observed.set));
    let only = if sizes().count() <= 1 { sizes().next().or(latest) } else { None };
    let resize = only.filter(|only| size(only.set) != wanted);
    resize.map(|only| Act::Scale(only.set.name_any(), wanted)).into_iter().collect()
}

/// Numbers the state that is current, also one that was taken up again.
fn number(deployment: &Deployment, set: &ReplicaSet, latest: u64) -> Vec<Act> {
    let has = revision(set);
    if has < latest {
        return vec![Act::Number(set.name_any(), latest)];
    }
    let said = deployment.annotations().get(REVISION).and_then(|text| text.parse::<u64>().ok());
    if said == Some(has) { Vec::new() } else { vec![Act::NumberDeployment(has)] }
}

/// Old sets without pods, beyond those that are kept to go back to.
fn superfluous(old: &[Observed<'_>], keep: i32) -> Vec<Act> {
    let empty = |observed: &&Observed<'_>| size(observed.set) == 0 && observed.alive == 0;
    let mut empty: Vec<&ReplicaSet> = old.iter().filter(empty).map(|observed| observed.set).collect();
    empty.sort_by_key(|set| revision(set));
    let surplus = empty.len().saturating_sub(usize::try_from(keep).unwrap_or(0));
    let gone = empty.into_iter().filter(|set| set.metadata.deletion_timestamp.is_none()).take(surplus);
    gone.map(|set| Act::Delete(set.name_any())).collect()
}

/// How many pods a rolling update may have too many, and too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

impl Limits {
    /// Nothing for a deployment that is recreated.
    pub(super) fn of(deployment: &Deployment) -> Option<Self> {
        let spec = deployment.spec.as_ref()?;
        let strategy = spec.strategy.as_ref();
        if strategy.and_then(|strategy: &DeploymentStrategy| strategy.type_.as_deref()) == Some("Recreate") {
            return None;
        }
        let wanted = spec.replicas.unwrap_or(1);
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = part(rolling.and_then(|rolling| rolling.max_surge.as_ref()), wanted, true);
        let unavailable = part(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), wanted, false);
        // With both 0, which percentages of few pods come to, nothing would ever move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Some(Self { surge, unavailable: unavailable.min(wanted) })
    }
}

/// A number of pods, or a percentage of those wanted; 25 % if nothing is said.
fn part(of: Option<&IntOrString>, wanted: i32, up: bool) -> i32 {
    let percent = match of {
        Some(IntOrString::Int(number)) => return (*number).max(0),
        Some(IntOrString::String(text)) => {
            text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()).unwrap_or(25)
        }
        None => 25,
    };
    let share = percent.max(0) * i64::from(wanted);
    let rounded = if up { (share + 99) / 100 } else { share / 100 };
    i32::try_from(rounded).unwrap_or(i32::MAX)
}

/// How many pods a set is told to have.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// How many of them are available; never more than it is told to have, whatever was counted before it was told.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0).min(size(set))
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
