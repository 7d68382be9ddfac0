//! Who may act: the holder of a Lease.
//!
//! Whether a Lease has run out is told by how long its record has stayed the same in our own eyes, never by the times
//! in it: clocks of two machines differ.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{Instant, sleep};

use crate::{error::told, seams::Context, settings::LeaseName};

const LASTS: Duration = Duration::from_secs(15);
/// Who could not renew for so long acts no more. It is shorter than a Lease lasts, so two never act at once.
const GIVES_UP_AFTER: Duration = Duration::from_secs(10);
const TRIES_EVERY: Duration = Duration::from_secs(2);

/// What a Lease means for one who wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is ours.
    Ours,
    /// Nobody's, or whoever had it is gone.
    Free,
    /// Another's.
    Taken,
}

/// What a Lease means for `identity`, when its record has been as it is for so long.
pub fn judge(lease: &Lease, identity: &str, unchanged_for: Duration) -> Verdict {
    let spec = lease.spec.clone().unwrap_or_default();
    let lasts = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    match spec.holder_identity.as_deref() {
        None | Some("") => Verdict::Free,
        Some(holder) if holder == identity => Verdict::Ours,
        Some(_) if unchanged_for > lasts.unwrap_or(LASTS) => Verdict::Free,
        Some(_) => Verdict::Taken,
    }
}

/// A Lease that is ours.
#[derive(Debug)]
pub struct Held {
    context: Context,
    name: LeaseName,
}

impl Held {
    /// Waits until the Lease is ours.
    pub(super) async fn take(context: &Context, name: &LeaseName) -> Self {
        let mut watched = Watched { seen: None };
        loop {
            match watched.attempt(context, name).await {
                Ok(true) => return Self { context: context.clone(), name: name.clone() },
                Ok(false) => {}
                Err(error) => tracing::warn!(error = told(&error), lease = name.name, "the Lease could not be had"),
            }
            sleep(TRIES_EVERY).await;
        }
    }

    /// Renews it; returns when it is no longer ours.
    pub(super) async fn keep(&mut self) {
        let mut watched = Watched { seen: None };
        let mut renewed = Instant::now();
        while renewed.elapsed() < GIVES_UP_AFTER {
            sleep(TRIES_EVERY).await;
            match watched.attempt(&self.context, &self.name).await {
                Ok(true) => renewed = Instant::now(),
                Ok(false) => return,
                Err(error) => tracing::warn!(error = told(&error), "the Lease could not be renewed"),
            }
        }
    }
}

/// Lets others begin at once instead of waiting for the Lease to run out.
pub(super) async fn give_up(context: &Context, name: &LeaseName) {
    let api = Api::<Lease>::namespaced(context.client.clone(), &name.namespace);
    let Ok(Some(mut lease)) = api.get_opt(&name.name).await else { return };
    if judge(&lease, &context.settings.identity, Duration::ZERO) == Verdict::Ours {
        lease.spec.get_or_insert_default().holder_identity = None;
        if let Err(error) = api.replace(&name.name, &PostParams::default(), &lease).await {
            tracing::debug!(error = told(&error), "the Lease was not given up; it runs out by itself");
        }
    }
}

/// A Lease in our own eyes.
struct Watched {
    seen: Option<(Option<String>, Instant)>,
}

impl Watched {
    /// Tries once to have it or to renew it.
    async fn attempt(&mut self, context: &Context, name: &LeaseName) -> Result<bool, kube::Error> {
        let api = Api::<Lease>::namespaced(context.client.clone(), &name.namespace);
        let identity = &context.settings.identity;
        let now = MicroTime(context.clock.now());
        let Some(mut lease) = api.get_opt(&name.name).await? else {
            let spec = held(LeaseSpec::default(), identity, now, true);
            let metadata = ObjectMeta { name: Some(name.name.clone()), ..ObjectMeta::default() };
            return taken(api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await);
        };
        let version = lease.metadata.resource_version.clone();
        let since = match &self.seen {
            Some((known, since)) if *known == version => *since,
            _ => Instant::now(),
        };
        self.seen = Some((version, since));
        let verdict = judge(&lease, identity, since.elapsed());
        if verdict == Verdict::Taken {
            return Ok(false);
        }
        lease.spec = Some(held(lease.spec.unwrap_or_default(), identity, now, verdict == Verdict::Free));
        taken(api.replace(&name.name, &PostParams::default(), &lease).await)
    }
}

fn held(mut spec: LeaseSpec, identity: &str, now: MicroTime, is_new: bool) -> LeaseSpec {
    if is_new {
        spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count + 1));
        spec.acquire_time = Some(now.clone());
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = i32::try_from(LASTS.as_secs()).ok();
    spec.renew_time = Some(now);
    spec
}

/// Somebody may have been faster.
fn taken(written: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: Option<&str>) -> Lease {
        let spec = LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_lease_is_free_when_nobody_has_it_or_its_holder_fell_silent() {
        let second = Duration::from_secs(1);
        assert_eq!(judge(&lease(None), "a", second), Verdict::Free);
        assert_eq!(judge(&lease(Some("")), "a", second), Verdict::Free);
        assert_eq!(judge(&lease(Some("a")), "a", second * 60), Verdict::Ours);
        assert_eq!(judge(&lease(Some("b")), "a", second * 15), Verdict::Taken);
        assert_eq!(judge(&lease(Some("b")), "a", second * 16), Verdict::Free);
    }
}
