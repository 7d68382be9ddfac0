//! The operator's seams as tests have them: everything that it sends passes here, is counted, and may be its last.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use evenkeel_operator::seams::{BoxFuture, ClusterRef, EngineError, EngineService, Engines, Trust, Unreachable};
use futures::future::pending;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::sync::Notify;
use tower::{ServiceExt, service_fn};

/// When the operator dies: at a call, counted from 0, before it is made or before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    Before(usize),
    After(usize),
}

/// What one life of an operator sends.
#[derive(Default)]
struct Calls {
    made: Vec<String>,
    death: Option<Death>,
    dead: bool,
}

/// Counts calls that may change something, and lets the operator die at one of them.
#[derive(Clone, Default)]
pub struct Fate {
    calls: Arc<Mutex<Calls>>,
    pub died: Arc<Notify>,
}

impl Fate {
    pub fn dying(death: Option<Death>) -> Self {
        let fate = Self::default();
        fate.lock().death = death;
        fate
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap()
    }

    /// What was sent so far, in order.
    pub fn made(&self) -> Vec<String> {
        self.lock().made.clone()
    }

    /// Lets a call happen, or not, or the answer be lost.
    async fn let_happen<T>(&self, call: Option<String>, happen: impl Future<Output = T>) -> T {
        if self.lock().dead {
            return pending().await;
        }
        let Some(call) = call else { return happen.await };
        let (number, death) = {
            let mut calls = self.lock();
            calls.made.push(call);
            (calls.made.len() - 1, calls.death)
        };
        if death == Some(Death::Before(number)) {
            return self.die().await;
        }
        let answer = happen.await;
        if death == Some(Death::After(number)) {
            return self.die().await;
        }
        answer
    }

    async fn die<T>(&self) -> T {
        self.lock().dead = true;
        self.died.notify_one();
        pending().await
    }

    /// A client of the API server whose every write passes here. Looking changes nothing, so to die before it is to die
    /// after whatever came before it.
    pub fn kube(&self, server: Router) -> kube::Client {
        let fate = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (fate, server) = (fate.clone(), server.clone());
            async move {
                let writes = request.method() != Method::GET;
                let call = writes.then(|| format!("{} {}", request.method(), request.uri().path()));
                fate.let_happen(call, server.oneshot(request)).await
            }
        });
        kube::Client::new(service, "default")
    }
}

/// One engine for all clusters, over its router. It may be away.
#[derive(Clone)]
pub struct Routed {
    router: Arc<Mutex<Option<Router>>>,
    fate: Fate,
}

impl fmt::Debug for Routed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Routed")
    }
}

impl Routed {
    pub fn new(router: &Arc<Mutex<Option<Router>>>, fate: &Fate) -> Self {
        Self { router: Arc::clone(router), fate: fate.clone() }
    }

    async fn ask(self, request: Request<Full<bytes::Bytes>>) -> Result<Response<Body>, EngineError> {
        let call = Some(format!("engine {} {}", request.method(), request.uri().path()));
        let answering = async {
            let Some(router) = self.router.lock().unwrap().clone() else {
                return Err(EngineError::from(tower::BoxError::from("connection refused")));
            };
            match router.oneshot(request.map(Body::new)).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        };
        self.fate.let_happen(call, answering).await
    }
}

impl Engines for Routed {
    fn service<'a>(&'a self, _: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        let routed = self.clone();
        let service =
            service_fn(move |request| routed.clone().ask(request)).map_response(|response: Response<Body>| {
                response
                    .map(|body| body.map_err(|error| EngineError::from(tower::BoxError::from(error))).boxed_unsync())
            });
        Box::pin(async move { Ok(EngineService::new(service)) })
    }

    fn forget(&self, _: &ClusterRef) {}
}
