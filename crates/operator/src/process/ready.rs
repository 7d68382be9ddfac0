//! When an operator is ready: once the API server shows it what it is to look after. One without rights, without definitions
//! or without a server is not, so a rolling update does not put it in the place of one that works.

use std::time::Duration;

use evenkeel_api::Kafka;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::ListParams};
use tokio::time::{sleep, timeout};

use crate::{
    error::{Error, told},
    seams::Context,
};

/// What takes longer is not answered at all.
const LONGEST: Duration = Duration::from_secs(10);

/// Waits until this operator could act, were it its turn: it may look at the Lease, and at Kafkas in all of its namespaces.
pub(super) async fn until_it_could_act(context: &Context) {
    let mut failures = 0;
    while let Err(error) = timeout(LONGEST, look(context)).await.unwrap_or(Err(Error::Late(LONGEST))) {
        tracing::warn!(error = told(&error), "this operator is not ready");
        sleep(error.pause(failures).min(LONGEST)).await;
        failures += 1;
    }
}

async fn look(context: &Context) -> Result<(), Error> {
    if let Some(lease) = &context.settings.lease {
        let leases = Api::<Lease>::namespaced(context.client.clone(), &lease.namespace);
        leases.get_opt(&lease.name).await.map_err(Error::reading(format!("the Lease {}", lease.name)))?;
    }
    for scope in context.scopes() {
        let kafkas = context.api::<Kafka>(scope.as_deref());
        kafkas.list_metadata(&ListParams::default().limit(1)).await.map_err(Error::reading("kafkas"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;
    use crate::settings::{LeaseName, Settings};

    /// How long it takes where the API server refuses a path that ends so for the first few times, or does not answer it.
    async fn takes(path: &'static str, code: Option<u16>, times: usize) -> Duration {
        let left = Arc::new(Mutex::new(times));
        let service = tower::service_fn(move |request: Request<Body>| {
            let left = Arc::clone(&left);
            async move {
                let is_meant = request.uri().path().ends_with(path) && {
                    let mut left = left.lock().unwrap();
                    let is_meant = *left > 0;
                    *left = left.saturating_sub(1);
                    is_meant
                };
                let (code, body): (u16, Value) = match (is_meant, code) {
                    (true, None) => std::future::pending().await,
                    (true, Some(code)) => {
                        let reason = if code == 404 { "NotFound" } else { "" };
                        (code, json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code}))
                    }
                    (false, _) if request.uri().path().ends_with("/l") => (200, json!({"metadata": {"name": "l"}})),
                    (false, _) => (200, json!({"metadata": {}, "items": []})),
                };
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        let settings = Settings {
            lease: Some(LeaseName { namespace: "own".into(), name: "l".into() }),
            namespaces: vec!["a".into(), "b".into()],
            ..Settings::default()
        };
        let context = Context::new(kube::Client::new(service, "ns"), settings);
        let begun = Instant::now();
        until_it_could_act(&context).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_is_ready_once_it_may_look_at_all_that_it_looks_after() {
        assert_eq!(takes("nowhere", None, 0).await, Duration::ZERO);
        for path in ["/leases/l", "/namespaces/a/kafkas", "/namespaces/b/kafkas"] {
            assert!(takes(path, Some(403), 3).await > Duration::ZERO, "{path} is forbidden");
            assert!(takes(path, Some(500), 3).await > Duration::ZERO, "{path} is out of order");
            assert!(takes(path, None, 1).await > LONGEST, "nobody answers {path}");
        }
        assert!(takes("/namespaces/a/kafkas", Some(404), 3).await > Duration::ZERO, "there is no definition");
        assert_eq!(takes("/leases/l", Some(404), 1).await, Duration::ZERO, "there is no Lease yet");
    }
}
