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
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

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
    /// When the renewal that was last answered had been sent: others count from no earlier moment.
    renewed: Instant,
}

impl Held {
    /// Waits until the Lease is ours.
    pub(super) async fn take(context: &Context, name: &LeaseName) -> Self {
        let mut watched = Watched { seen: None };
        loop {
            let renewed = Instant::now();
            match timeout(GIVES_UP_AFTER, watched.attempt(context, name)).await {
                Ok(Ok(Attempt::Ours)) => return Self { context: context.clone(), name: name.clone(), renewed },
                Ok(Ok(Attempt::Taken | Attempt::Overtaken)) => {}
                Ok(Err(error)) => tracing::warn!(error = told(&error), lease = name.name, "the Lease could not be had"),
                Err(_) => tracing::warn!(lease = name.name, "nobody answered about the Lease"),
            }
            sleep(TRIES_EVERY).await;
        }
    }

    /// Renews it; returns when it is no longer ours, or may soon not be. An attempt that nobody answers ends in time, too.
    pub(super) async fn keep(&mut self) {
        let mut watched = Watched { seen: None };
        loop {
            let ends = self.renewed + GIVES_UP_AFTER;
            let sent = Instant::now() + TRIES_EVERY;
            let attempt = async {
                sleep_until(sent).await;
                watched.attempt(&self.context, &self.name).await
            };
            match timeout_at(ends, attempt).await {
                Ok(Ok(Attempt::Ours)) => self.renewed = sent,
                Ok(Ok(Attempt::Taken)) | Err(_) => return,
                // Somebody wrote something else into it: look again.
                Ok(Ok(Attempt::Overtaken)) => {}
                Ok(Err(error)) => tracing::warn!(error = told(&error), "the Lease could not be renewed"),
            }
        }
    }
}

/// What came of an attempt to have a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// It is ours, from the moment when this was sent.
    Ours,
    /// Another has it.
    Taken,
    /// Somebody wrote it meanwhile, whoever has it.
    Overtaken,
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
    async fn attempt(&mut self, context: &Context, name: &LeaseName) -> Result<Attempt, kube::Error> {
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
            return Ok(Attempt::Taken);
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
fn taken(written: Result<Lease, kube::Error>) -> Result<Attempt, kube::Error> {
    match written {
        Ok(_) => Ok(Attempt::Ours),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(Attempt::Overtaken),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

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

    /// An API server with one Lease, as its answers; `silent` from so many requests on.
    async fn kept_until(conflicts: usize, silent: usize) -> Duration {
        let asked = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let number = asked.fetch_add(1, Ordering::SeqCst);
                if number >= silent {
                    std::future::pending::<()>().await;
                }
                let is_write = request.method() != http::Method::GET;
                let (code, body) = if is_write && number < conflicts {
                    let status =
                        serde_json::json!({"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409});
                    (409, status)
                } else {
                    let spec = serde_json::json!({"holderIdentity": "a", "leaseDurationSeconds": 15});
                    (
                        200,
                        serde_json::json!({"metadata": {"name": "l", "resourceVersion": number.to_string()}, "spec": spec}),
                    )
                };
                let body = kube::client::Body::from(body.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        let settings = crate::settings::Settings { identity: "a".into(), ..Default::default() };
        let context = Context::new(kube::Client::new(service, "ns"), settings);
        let name = LeaseName { namespace: "ns".into(), name: "l".into() };
        let begun = Instant::now();
        let mut held = Held { context, name, renewed: begun };
        match timeout(Duration::from_secs(60), held.keep()).await {
            Ok(()) => begun.elapsed(),
            Err(_) => Duration::MAX,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_answer_acts_no_more_in_time() {
        assert_eq!(kept_until(0, usize::MAX).await, Duration::MAX, "it is renewed");
        assert_eq!(kept_until(0, 0).await, GIVES_UP_AFTER);
        // Renewed once, after two seconds; the next look is not answered.
        assert_eq!(kept_until(0, 2).await, TRIES_EVERY + GIVES_UP_AFTER);
        assert_eq!(kept_until(4, usize::MAX).await, Duration::MAX, "others may write into it");
        assert_eq!(kept_until(usize::MAX, usize::MAX).await, GIVES_UP_AFTER, "but not for ever");
    }
}
