//! How the engine of a cluster is spoken with. Its name, for TLS and HTTP, is always that of its service, whatever
//! address is dialled.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use evenkeel_kafka::{
    Address,
    connect::{Connector, Stream},
};
use evenkeel_rest::client::{http_service_over, trusting};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tower::{BoxError, Service, ServiceExt, util::BoxCloneSyncService};

use super::{BoxFuture, ClusterRef, ServiceConnector, Services, Trust, Unreachable, lately::Lately};

/// Requests to one engine; what `rest::Client` speaks over.
pub type EngineService =
    BoxCloneSyncService<Request<Full<Bytes>>, Response<UnsyncBoxBody<Bytes, EngineError>>, EngineError>;

/// No answer came, or not to its end. A type of its own: with a bare `BoxError` the compiler cannot see that what waits
/// for an engine may be sent between threads.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EngineError(#[from] BoxError);

/// How long a connection to an engine may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// From a cluster to its engine.
pub trait Engines: Send + Sync + fmt::Debug {
    /// A service that reaches the engine of this cluster. It connects when it is first asked something.
    fn service<'a>(&'a self, of: &'a ClusterRef, trust: &'a Trust)
    -> BoxFuture<'a, Result<EngineService, Unreachable>>;

    /// Nobody will ask for this cluster again soon: connections to its engine may go.
    fn forget(&self, of: &ClusterRef);
}

/// The name under which an engine is asked: that of its service.
pub fn engine_host(of: &ClusterRef) -> String {
    format!("{}-cruise-control.{}.svc", of.name, of.namespace)
}

/// HTTPS, trusting the cluster's authority.
#[derive(Debug)]
pub struct HttpsEngines {
    way: Arc<dyn Connector>,
    /// Services keep their connections.
    known: Lately<EngineService>,
}

impl HttpsEngines {
    /// Finds engines by these services.
    pub fn new(services: Arc<dyn Services>) -> Self {
        Self::over(Arc::new(ServiceConnector::new(services)))
    }

    /// Dials the names of services like this.
    pub fn over(way: Arc<dyn Connector>) -> Self {
        Self { way, known: Lately::default() }
    }

    fn connect(&self, of: &ClusterRef, trust: &Trust) -> Result<EngineService, Unreachable> {
        self.known.find(of, trust, || {
            let tls = trusting(&trust.authorities).map_err(|source| Unreachable::Authorities(source.into()))?;
            let dialler = Dialler { way: Arc::clone(&self.way) };
            let service = http_service_over(tls, dialler)
                .map_response(|response: Response<_>| {
                    response.map(|body| body.map_err(|error| EngineError(error.into())).boxed_unsync())
                })
                .map_err(|error| EngineError(error.into()));
            Ok(EngineService::new(service))
        })
    }
}

impl Engines for HttpsEngines {
    fn service<'a>(
        &'a self,
        of: &'a ClusterRef,
        trust: &'a Trust,
    ) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        Box::pin(async move { self.connect(of, trust) })
    }

    fn forget(&self, of: &ClusterRef) {
        self.known.forget(of);
    }
}

/// Streams for HTTP.
#[derive(Clone, Debug)]
struct Dialler {
    way: Arc<dyn Connector>,
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let way = Arc::clone(&self.way);
        Box::pin(async move {
            let address =
                Address { host: to.host().unwrap_or_default().to_owned(), port: to.port_u16().unwrap_or(443) };
            match timeout(CONNECT_WITHIN, way.open(&address)).await {
                Ok(opened) => opened.map(|stream| TokioIo::new(Line(stream))).map_err(io::Error::other),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
    }
}

/// A stream to an engine, of which HTTP has nothing to know.
struct Line(Stream);

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
