//! What a deployment says about itself: pure.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::rollout::{Limits, Observed, is_complete};
use super::template::is_current;

/// No deadline: what the API calls so.
const NEVER: i32 = i32::MAX;

/// The status that the deployment should have, and how long until it changes by itself.
pub(super) fn status(
    deployment: &Deployment,
    sets: &[Observed<'_>],
    now: &Time,
) -> (DeploymentStatus, Option<Duration>) {
    let before = deployment.status.clone().unwrap_or_default();
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let sum = |of: fn(&ReplicaSetStatus) -> Option<i32>| {
        let counts = sets.iter().filter_map(|observed| observed.set.status.as_ref().and_then(of));
        counts.sum::<i32>()
    };
    let new = sets.iter().map(|observed| observed.set).find(|set| is_current(deployment, set));
    let available = sum(|status| status.available_replicas);
    let replicas = sum(|status| Some(status.replicas));
    let some = |count: i32| (count > 0).then_some(count);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(replicas),
        updated_replicas: some(new.and_then(|set| set.status.as_ref()).map_or(0, |status| status.replicas)),
        ready_replicas: some(sum(|status| status.ready_replicas)),
        available_replicas: some(available),
        unavailable_replicas: some((replicas.max(wanted) - available).max(0)),
        terminating_replicas: some(sum(|status| status.terminating_replicas)),
        collision_count: before.collision_count,
        conditions: before.conditions.clone(),
    };
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let least = wanted - Limits::of(deployment).map_or(0, |limits| limits.unavailable);
    let (holds, reason, message) = match available >= least {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    put(&mut conditions, "Available", (holds, reason, message.to_owned()), false, now);
    let progress =
        Progress { deployment, before: &before, after: &status, new, complete: is_complete(deployment, sets) };
    let look_again = progress.put(&mut conditions, now);
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    status.conditions = Some(conditions);
    (status, look_again)
}

struct Progress<'a> {
    deployment: &'a Deployment,
    before: &'a DeploymentStatus,
    after: &'a DeploymentStatus,
    new: Option<&'a ReplicaSet>,
    complete: bool,
}

impl Progress<'_> {
    /// Sets the condition `Progressing`; returns when its deadline is.
    fn put(&self, conditions: &mut Vec<DeploymentCondition>, now: &Time) -> Option<Duration> {
        let old = conditions.iter().find(|condition| condition.type_ == "Progressing");
        let said = old.and_then(|old| old.reason.as_deref()).unwrap_or_default();
        let set = self.new.map(|set| format!("ReplicaSet \"{}\"", set.name_any()));
        let subject = set.unwrap_or_else(|| format!("Deployment \"{}\"", self.deployment.name_any()));
        let spec = self.deployment.spec.as_ref();
        if spec.and_then(|spec| spec.paused).unwrap_or_default() {
            put(conditions, "Progressing", ("Unknown", "DeploymentPaused", "Deployment is paused".into()), false, now);
            return None;
        }
        if self.complete {
            let message = format!("{subject} has successfully progressed.");
            put(conditions, "Progressing", ("True", "NewReplicaSetAvailable", message), false, now);
            return None;
        }
        let begins = matches!(said, "" | "NewReplicaSetAvailable" | "DeploymentPaused");
        if begins || self.made_progress() {
            let (reason, verb) = match begins {
                true if self.new.is_none_or(|set| set.status.as_ref().is_none_or(|status| status.replicas == 0)) => {
                    ("NewReplicaSetCreated", "Created new replica set")
                }
                _ => ("ReplicaSetUpdated", "is progressing."),
            };
            let message = match reason {
                "NewReplicaSetCreated" => {
                    format!("{verb} \"{}\"", self.new.map(ResourceExt::name_any).unwrap_or_default())
                }
                _ => format!("{subject} {verb}"),
            };
            put(conditions, "Progressing", ("True", reason, message), true, now);
        }
        let deadline = spec.and_then(|spec| spec.progress_deadline_seconds).unwrap_or(600);
        let old = conditions.iter().find(|condition| condition.type_ == "Progressing")?;
        if deadline == NEVER || old.reason.as_deref() == Some("ProgressDeadlineExceeded") {
            return None;
        }
        let since = old.last_update_time.as_ref().map_or(now.0, |time| time.0);
        let left = SignedDuration::from_secs(deadline.into()) - now.0.duration_since(since);
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => Some(left),
            _ => {
                let message = format!("{subject} has timed out progressing.");
                put(conditions, "Progressing", ("False", "ProgressDeadlineExceeded", message), true, now);
                None
            }
        }
    }

    /// More of the new, less of the old, or more of any that serve.
    fn made_progress(&self) -> bool {
        let count = |count: Option<i32>| count.unwrap_or(0);
        let old = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
        count(self.after.updated_replicas) > count(self.before.updated_replicas)
            || old(self.after) < old(self.before)
            || count(self.after.ready_replicas) > count(self.before.ready_replicas)
            || count(self.after.available_replicas) > count(self.before.available_replicas)
    }
}

/// Sets one condition if it says something else, or has reason to say it anew.
fn put(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    (status, reason, message): (&str, &str, String),
    anew: bool,
    now: &Time,
) {
    let at = conditions.iter().position(|old| old.type_ == kind);
    let old = at.map(|at| &conditions[at]);
    let same = |old: &DeploymentCondition| {
        old.status == status && old.reason.as_deref() == Some(reason) && old.message.as_ref() == Some(&message)
    };
    if !anew && old.is_some_and(same) {
        return;
    }
    let turned = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
    let new = DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: turned.or_else(|| Some(now.clone())),
        last_update_time: Some(now.clone()),
    };
    match at {
        Some(at) => conditions[at] = new,
        None => conditions.push(new),
    }
}
