//! How the engine of a cluster is spoken with. Its name, for TLS and HTTP, is always that of its service, whatever
//! address is dialled.

use std::{
    collections::BTreeMap,
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use evenkeel_kafka::Address;
use evenkeel_rest::client::{http_service_over, trusting};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};
use tower::{BoxError, Service, ServiceExt, util::BoxCloneSyncService};

use super::{BoxFuture, ClusterRef, ServiceConnector, Services, Trust, Unreachable};

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
    services: Arc<dyn Services>,
    /// Services keep their connections, so they are kept while the certificates stay the same.
    known: Mutex<BTreeMap<ClusterRef, (Trust, EngineService)>>,
}

impl HttpsEngines {
    /// Finds engines by these services.
    pub fn new(services: Arc<dyn Services>) -> Self {
        Self { services, known: Mutex::default() }
    }

    fn connect(&self, of: &ClusterRef, trust: &Trust) -> Result<EngineService, Unreachable> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, service)) = known.get(of).filter(|(known, _)| known == trust) {
            return Ok(service.clone());
        }
        let tls = trusting(&trust.authorities).map_err(|source| Unreachable::Authorities(source.into()))?;
        let dialler = Dialler { way: ServiceConnector::new(Arc::clone(&self.services)) };
        let service = http_service_over(tls, dialler)
            .map_response(|response: Response<_>| {
                response.map(|body| body.map_err(|error| EngineError(error.into())).boxed_unsync())
            })
            .map_err(|error| EngineError(error.into()));
        let service = EngineService::new(service);
        known.insert(of.clone(), (trust.clone(), service.clone()));
        Ok(service)
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
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(of);
    }
}

/// Streams for HTTP, found through [`Services`].
#[derive(Clone, Debug)]
struct Dialler {
    way: ServiceConnector,
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let way = self.way.clone();
        Box::pin(async move {
            let host = to.host().unwrap_or_default().to_owned();
            let port = to.port_u16().unwrap_or(443);
            let dialling = async {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for target in way.targets(&Address { host, port }).await? {
                    match TcpStream::connect((target.host.as_str(), target.port)).await {
                        Ok(stream) => return stream.set_nodelay(true).map(|()| TokioIo::new(stream)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            };
            timeout(CONNECT_WITHIN, dialling).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        })
    }
}
