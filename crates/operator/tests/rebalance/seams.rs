//! The operator's seams as tests have them: everything that it sends passes here, is counted, and may be its last.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use evenkeel_operator::seams::{BoxFuture, ClusterRef, EngineError, EngineService, Engines, Trust, Unreachable};
use evenkeel_testkit::story::Chance;
use futures::StreamExt;
use futures::future::pending;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, ServiceExt, service_fn};

use crate::rights::Call;

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
    /// When each of them was.
    when: Vec<Instant>,
    /// What was asked of the API server.
    rights: BTreeSet<Call>,
    death: Option<Death>,
    dead: bool,
    /// What the API server says to whoever would write a ConfigMap.
    no_config_maps: Option<(StatusCode, &'static str)>,
    /// In bad weather.
    chance: Option<Chance>,
}

/// Counts calls that may change something, and lets the operator die at one of them.
#[derive(Clone, Default)]
pub struct Fate {
    calls: Arc<Mutex<Calls>>,
    pub died: Arc<Notify>,
}

impl Fate {
    pub fn dying(death: Death) -> Self {
        let fate = Self::default();
        fate.lock().death = Some(death);
        fate
    }

    /// Calls are refused or not answered and watches break off, at moments that the seed chooses.
    pub fn in_bad_weather(seed: u64) -> Self {
        let fate = Self::default();
        fate.lock().chance = Some(Chance::new(seed));
        fate
    }

    /// From now on the weather is as this seed has it, or good.
    #[allow(dead_code, reason = "here it stays as it was")]
    pub fn change_weather(&self, seed: Option<u64>) {
        self.lock().chance = seed.map(Chance::new);
    }

    /// From now on every write of a ConfigMap is refused, with this status and these words; or none is.
    #[allow(dead_code, reason = "only where one story is about it")]
    pub fn refuse_config_maps(&self, refusal: Option<(StatusCode, &'static str)>) {
        self.lock().no_config_maps = refusal;
    }

    /// Another life in the same weather.
    #[allow(dead_code, reason = "here nobody is followed in bad weather")]
    pub fn reborn(&self) -> Self {
        let fate = Self::default();
        fate.lock().chance.clone_from(&self.lock().chance);
        fate
    }

    /// It is to die at one of the calls to come: this one, counted from the next as 0. None: it is spared.
    #[allow(dead_code, reason = "here deaths are known from birth")]
    pub fn doom(&self, number: Option<usize>, after: bool) {
        let mut calls = self.lock();
        let at = number.map(|number| calls.made.len() + number);
        calls.death = at.map(|at| if after { Death::After(at) } else { Death::Before(at) });
    }

    /// Whether something happens that happens once in so many times. In good weather it never does.
    fn once_in(&self, times: u64) -> bool {
        match &mut self.lock().chance {
            Some(chance) => chance.once_in(times),
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap()
    }

    /// What was sent so far, in order.
    pub fn made(&self) -> Vec<String> {
        self.lock().made.clone()
    }

    /// The same, and when each of them was.
    #[allow(dead_code, reason = "here their order is enough")]
    pub fn timed(&self) -> Vec<(Instant, String)> {
        let calls = self.lock();
        calls.when.iter().copied().zip(calls.made.iter().cloned()).collect()
    }

    /// What was asked of the API server so far.
    pub fn rights(&self) -> BTreeSet<Call> {
        self.lock().rights.clone()
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
            calls.when.push(Instant::now());
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
    pub fn kube(&self, server: Server) -> kube::Client {
        let fate = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (fate, server) = (fate.clone(), server.clone());
            async move {
                let uri = request.uri();
                let asks = Call::all(request.method().as_str(), uri.path(), uri.query().unwrap_or_default());
                fate.lock().rights.extend(asks);
                let writes = request.method() != Method::GET;
                let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let (request, call) = match writes {
                    true => named(request).await,
                    false => (request, None),
                };
                if writes && fate.once_in(6) {
                    return Ok(conflict());
                }
                let no_config_maps =
                    fate.lock().no_config_maps.filter(|_| request.uri().path().contains("/configmaps"));
                if writes && let Some((status, words)) = no_config_maps {
                    let reason = if status == StatusCode::FORBIDDEN { "Forbidden" } else { "Invalid" };
                    return Ok(refusal(status, reason, words));
                }
                let lost = fate.once_in(if writes { 12 } else { 40 });
                let answer = fate.let_happen(call, server.ask(request)).await?;
                match lost {
                    true => Err(BoxError::from("connection reset")),
                    false if watches => Ok(answer.map(|body| fate.breaking_off(body))),
                    false => Ok(answer),
                }
            }
        });
        kube::Client::new(service, "default")
    }
}

/// An API server: ours, without a socket, or any other.
#[derive(Clone)]
pub enum Server {
    Embedded(Router),
    #[allow(dead_code, reason = "only where there is such a server")]
    Elsewhere(kube::Client),
}

impl Server {
    async fn ask(self, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        match self {
            Self::Embedded(router) => match router.oneshot(request).await {
                Ok(answer) => Ok(answer),
                Err(never) => match never {},
            },
            Self::Elsewhere(client) => Ok(client.send(request).await?.map(Body::new)),
        }
    }
}

/// A write, and what to call it: by what is written where, and by what of it decides how the story goes on. Two that
/// are called the same, one after the same other, leave the same behind.
async fn named(request: Request<kube::client::Body>) -> (Request<kube::client::Body>, Option<String>) {
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().await.unwrap_or_default();
    let sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let metadata = &sent["metadata"];
    let what = match (&head.method, &sent["status"]) {
        (&Method::PUT, status) if status["autoRebalance"].is_object() => {
            format!("{} {}", status["conditions"][0]["type"], status["autoRebalance"]["state"])
        }
        (&Method::PUT, status) => status["conditions"][0]["type"].to_string(),
        (&Method::PATCH, _) if metadata["finalizers"].is_array() => format!("finalizers {}", metadata["finalizers"]),
        (&Method::PATCH, _) if metadata["annotations"].is_object() => "annotations".to_owned(),
        _ => String::new(),
    };
    let call = format!("{} {} {what}", head.method, head.uri.path()).trim_end().to_owned();
    (Request::from_parts(head, kube::client::Body::from(bytes.to_vec())), Some(call))
}

impl Fate {
    /// Lets the engine be asked, or not, or its answer be lost.
    pub async fn ask_engine<T, F: Future<Output = Result<T, EngineError>>>(
        &self,
        request: Request<Full<bytes::Bytes>>,
        answering: impl FnOnce(Request<Full<bytes::Bytes>>) -> F,
    ) -> Result<T, EngineError> {
        let executes = request.uri().query().is_some_and(|query| query.contains("dryrun=false"));
        let what = if executes { " executes" } else { "" };
        let call = Some(format!("engine {} {}{what}", request.method(), request.uri().path()));
        let lost = self.once_in(10);
        let answer = self.let_happen(call, answering(request)).await;
        if lost { Err(EngineError::from(BoxError::from("connection reset"))) } else { answer }
    }

    /// A watch that, in bad weather, ends after a while.
    fn breaking_off(&self, body: Body) -> Body {
        let Some(chance) = &mut self.lock().chance else { return body };
        let patience = Duration::from_millis(chance.below(20_000));
        Body::from_stream(body.into_data_stream().take_until(tokio::time::sleep(patience)))
    }
}

/// As the API server refuses.
fn refusal(code: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code.as_u16(),
        "reason": reason, "message": message});
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

/// What rests on an old version.
fn conflict() -> Response<Body> {
    refusal(StatusCode::CONFLICT, "Conflict", "the object has been modified")
}

/// An engine that was never asked for anything.
fn idle() -> Router {
    let tasks = || async { json!({"userTasks": [], "version": 1}).to_string() };
    let state = || async { json!({"ExecutorState": {"state": "NO_TASK_IN_PROGRESS"}, "version": 1}).to_string() };
    let base = "/kafkacruisecontrol";
    Router::new().route(&format!("{base}/user_tasks"), get(tasks)).route(&format!("{base}/state"), get(state))
}

/// One engine for all clusters, or for one, over its router. It may be away.
#[derive(Clone)]
pub struct Routed {
    router: Arc<Mutex<Option<Router>>>,
    fate: Fate,
    /// The only cluster that has one.
    only: Option<&'static str>,
}

impl fmt::Debug for Routed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Routed")
    }
}

impl Routed {
    pub fn new(router: &Arc<Mutex<Option<Router>>>, fate: &Fate) -> Self {
        Self { router: Arc::clone(router), fate: fate.clone(), only: None }
    }

    /// The engine of this cluster. Others have one that knows nothing.
    #[allow(dead_code, reason = "only where there are several clusters")]
    #[must_use]
    pub fn only_of(self, cluster: &'static str) -> Self {
        Self { only: Some(cluster), ..self }
    }

    async fn ask(self, request: Request<Full<bytes::Bytes>>) -> Result<Response<Body>, EngineError> {
        let router = self.router;
        let answering = async move |request: Request<Full<bytes::Bytes>>| {
            let Some(router) = router.lock().unwrap().clone() else {
                return Err(EngineError::from(BoxError::from("connection refused")));
            };
            match router.oneshot(request.map(Body::new)).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        };
        self.fate.ask_engine(request, answering).await
    }
}

impl Engines for Routed {
    fn service<'a>(&'a self, of: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        let mut routed = self.clone();
        if self.only.is_some_and(|only| only != of.name) {
            routed.router = Arc::new(Mutex::new(Some(idle())));
        }
        let service =
            service_fn(move |request| routed.clone().ask(request)).map_response(|response: Response<Body>| {
                response.map(|body| body.map_err(|error| EngineError::from(BoxError::from(error))).boxed_unsync())
            });
        Box::pin(async move { Ok(EngineService::new(service)) })
    }

    fn forget(&self, _: &ClusterRef) {}
}
