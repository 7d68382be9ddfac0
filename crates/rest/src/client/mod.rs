//! The client: asks over any tower service, and says what the answer means.
//!
//! It keeps nothing between requests, cookies least of all: with a cookie, the original answers a repeated request with
//! the old task. A task is followed by its id. Every request has a time limit and every body a size limit.

mod answer;
mod connect;
mod credentials;
mod error;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};
use http_body_util::Full;
use hyper::body::Body;
use tokio::time::{Instant, sleep, timeout_at};
use tower::{BoxError, Service, ServiceExt};
use uuid::Uuid;

pub use answer::{Answer, Asks, classify};
pub use connect::{HttpService, http_service, http_service_over, trusting};
pub use credentials::{Basic, Credentials};
pub use error::{Error, Remedy};
pub use room::Room;

use crate::endpoint::Endpoint;
use crate::headers::USER_TASK_ID;
use crate::request::Request;

/// What the client does not wait for, and what it does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a request and its answer. The original thinks for up to ten seconds before it answers that it still thinks,
    /// so less than that makes no sense.
    pub time: Duration,
    /// For a body, in bytes. A verbose plan for a large cluster has hundreds of thousands of proposals.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), body: 256 << 20 }
    }
}

/// An answer, and the task that it belongs to.
#[derive(Debug)]
pub struct Reply<T> {
    /// The task that the server works on, or worked on.
    pub task: Option<Uuid>,
    /// What it said.
    pub answer: Answer<T>,
}

/// A client of one server.
#[derive(Clone)]
pub struct Client<S> {
    service: S,
    base: Uri,
    credentials: Option<Arc<dyn Credentials>>,
    limits: Limits,
    room: Room,
}

impl<S> std::fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<S> Client<S> {
    /// A client of the server at `base`, such as `https://my-cluster-cruise-control.ns.svc:9090/kafkacruisecontrol`.
    pub fn new(service: S, base: Uri) -> Self {
        Self { service, base, credentials: None, limits: Limits::default(), room: Room::default() }
    }

    /// Says who asks. They are read anew for each request.
    #[must_use]
    pub fn with_credentials(self, credentials: impl Credentials + 'static) -> Self {
        Self { credentials: Some(Arc::new(credentials)), ..self }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// With room for large answers that it shares with others; otherwise each client has its own.
    #[must_use]
    pub fn with_room(self, room: Room) -> Self {
        Self { room, ..self }
    }
}

impl<S, B> Client<S>
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    /// Asks once.
    pub async fn ask<R: Asks>(&self, request: &R) -> Reply<R::Answer> {
        self.send(request, None).await
    }

    /// Asks how a task is that an earlier, equal request began.
    pub async fn follow<R: Asks>(&self, request: &R, task: Uuid) -> Reply<R::Answer> {
        self.send(request, Some(task)).await
    }

    /// Asks, and goes on asking until there is something else to say than that it is being computed, or until
    /// `patience` is over. It begins one task and follows that one.
    pub async fn ask_and_wait<R: Asks>(&self, request: &R, patience: Duration, pause: Duration) -> Reply<R::Answer> {
        let deadline = Instant::now() + patience;
        let mut reply = self.ask(request).await;
        while let (Answer::Computing(_), Some(task)) = (&reply.answer, reply.task) {
            if Instant::now() + pause > deadline {
                break;
            }
            sleep(pause).await;
            reply = Reply { task: Some(task), ..self.follow(request, task).await };
        }
        reply
    }

    async fn send<R: Asks>(&self, request: &R, follow: Option<Uuid>) -> Reply<R::Answer> {
        let request: Request = request.clone().into();
        let deadline = Instant::now() + self.limits.time;
        let call = async {
            let exchanged = timeout_at(deadline, self.exchange(&request, follow)).await;
            let response = exchanged.map_err(|_| Error::TimedOut { after: self.limits.time })??;
            let (head, body) = response.into_parts();
            Ok::<_, Error>((head, self.room.read(body, self.limits, deadline).await?))
        };
        match call.await {
            Err(error) => Reply { task: None, answer: Answer::from(error) },
            Ok((head, body)) => {
                let (status, content_type) = (head.status.as_u16(), content_type_of(&head.headers).to_owned());
                let answer = body.read(move |bytes| classify(status, &content_type, bytes)).await;
                Reply { task: task_of(&head.headers), answer }
            }
        }
    }

    async fn exchange(&self, request: &Request, follow: Option<Uuid>) -> Result<http::Response<B>, Error> {
        let endpoint = request.endpoint();
        let mut builder = http::Request::builder()
            .method(http::Method::from(endpoint.method()))
            .uri(self.uri(endpoint, request)?)
            .header(ACCEPT, "application/json");
        if let Some(task) = follow {
            builder = builder.header(USER_TASK_ID, task.to_string());
        }
        if let Some(basic) = self.credentials.as_ref().and_then(|provider| provider.current()) {
            builder = builder.header(AUTHORIZATION, basic.header());
        }
        let request = builder.body(Full::default()).map_err(|source| Error::BuildRequest { source })?;
        self.service.clone().oneshot(request).await.map_err(|source| Error::Connect { source: source.into() })
    }

    fn uri(&self, endpoint: Endpoint, request: &Request) -> Result<Uri, Error> {
        let mut query = request.query();
        query.push("json", "true");
        let prefix = self.base.path().trim_end_matches('/');
        let path = format!("{prefix}/{}?{}", endpoint.name(), query.encoded());
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query =
            Some(PathAndQuery::try_from(path).map_err(|source| Error::BuildRequest { source: source.into() })?);
        Uri::from_parts(parts).map_err(|source| Error::BuildRequest { source: source.into() })
    }
}

fn task_of(headers: &HeaderMap) -> Option<Uuid> {
    headers.get(USER_TASK_ID)?.to_str().ok().and_then(|id| Uuid::try_parse(id.trim()).ok())
}

fn content_type_of(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
}
