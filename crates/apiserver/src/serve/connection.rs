//! Accepting connections: TLS, limits, and HTTP/1.1 or HTTP/2 as the client prefers.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot::Receiver;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::auth::{self, Visitor};
use super::certificates::Certificates;
use super::farewell::{self, Lent};
use super::patience::{Noted, Patient, Streams};
use super::plain;
use super::strangers::Strangers;
use crate::http::body::drain;

/// Connections at once. Who comes later waits in the system's queue.
const CONNECTIONS_MAX: usize = 4096;
/// Requests at once on one HTTP/2 connection: a process of many controllers holds many watches on one.
const STREAMS_MAX: u32 = 1000;
/// What may wait in memory for one client to read it, apart from the piece that it is at. A request's head has to fit
/// too.
const BUFFER_MAX: usize = 128 * 1024;
/// How long the head of a request may take. It also ends idle connections, so it is longer than, and no multiple of,
/// the periods at which clients usually poll: a request must not meet a connection that is just closing.
const HEAD_PATIENCE: Duration = Duration::from_secs(95);
/// A silent HTTP/2 peer is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long running requests may take once the server stops.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a failed `accept`, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What clients may hold, and for how long. Tests have less patience.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once that have not yet shown who they are.
    pub(super) strangers: usize,
    /// How long each of them has for handshake and first request.
    pub(super) stranger_patience: Duration,
    /// How long a client may take nothing of what it is sent.
    pub(super) write_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { strangers: 256, stranger_patience: Duration::from_secs(10), write_patience: Duration::from_secs(30) }
    }
}

/// TLS with our certificate, taking clients with a certificate of our authority and clients without any.
pub(super) fn tls(certificates: &Certificates) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&certificates.authority)?)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(|e| rustls::Error::General(e.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(certificates.server_key.as_bytes())
        .map_err(|e| rustls::Error::General(e.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate(&certificates.server)?], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificate(pem: &str) -> Result<CertificateDer<'static>, rustls::Error> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| rustls::Error::General(e.to_string()))
}

/// A connection after its handshake.
type Encrypted = TlsStream<Patient<Lent<TcpStream>>>;

/// What every connection goes through.
#[derive(Clone)]
pub(super) struct Door {
    router: Router,
    tls: TlsAcceptor,
    token: Arc<str>,
    http: Builder<Streams>,
    strangers: Arc<Strangers>,
    write_patience: Duration,
}

impl Door {
    pub(super) fn new(router: Router, tls: Arc<ServerConfig>, token: String, limits: Limits) -> Self {
        let Limits { strangers, stranger_patience, write_patience } = limits;
        let mut http = Builder::new(Streams { patience: write_patience });
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(BUFFER_MAX);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_send_buf_size(BUFFER_MAX)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY);
        let strangers = Strangers::new(strangers, stranger_patience);
        Self { router, tls: TlsAcceptor::from(tls), token: token.into(), http, strangers, write_patience }
    }

    /// Nothing for a client that does not even try. The stream comes back once nobody speaks TLS on it any more.
    async fn handshake(&self, stream: TcpStream) -> io::Result<Option<(Encrypted, Receiver<TcpStream>)>> {
        if plain::is_spoken(&stream).await {
            return plain::turn_away(stream).await.map(|()| None);
        }
        let (stream, returned) = Lent::new(stream);
        let stream = self.tls.accept(Patient::new(stream, self.write_patience)).await?;
        Ok(Some((stream, returned)))
    }

    /// Serves one connection until it ends, or drains it when the server stops.
    async fn serve(self, stream: TcpStream, mut stopping: watch::Receiver<bool>) {
        // Watch events are small and must not wait for more.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not switch off Nagle's algorithm");
        }
        let stranger = Arc::new(self.strangers.welcome());
        let mut outstayed = pin!(stranger.outstayed());
        let handshake = tokio::select! {
            () = stopped(&mut stopping) => return,
            () = outstayed.as_mut() => return tracing::debug!("TLS handshake took too long"),
            handshake = self.handshake(stream) => handshake,
        };
        let (stream, mut returned) = match handshake {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return tracing::debug!("plain HTTP was turned away"),
            Err(error) => return tracing::debug!(%error, "TLS handshake failed"),
        };
        let certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
        if certified {
            stranger.recognise();
        }
        let (router, token, client) = (self.router, self.token, Arc::clone(&stranger));
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (router, token, client) = (router.clone(), Arc::clone(&token), Arc::clone(&client));
            async move {
                let request = request.map(Body::new);
                let response = match auth::check(request.uri().path(), request.headers(), certified, &token) {
                    Ok(visitor) => {
                        if visitor == Visitor::Administrator {
                            client.recognise();
                        }
                        router.oneshot(request).await?
                    }
                    Err(refusal) => {
                        drain(&mut request.into_body()).await;
                        unauthorized(&refusal.to_status().to_string())
                    }
                };
                Ok::<_, Infallible>(response.map(Noted::from))
            }
        });
        let service = TowerToHyperService::new(service);
        let ended = {
            let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = outstayed.as_mut() => return tracing::debug!("a connection did not say who it is"),
                () = stopped(&mut stopping) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = %error, "connection ended");
        }
        // A server that stops waits for nobody.
        let stopping = *stopping.borrow();
        if let Some(stream) = returned.try_recv().ok().filter(|_| !stopping) {
            farewell::listen(stream).await;
        }
    }
}

fn unauthorized(status: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(status.to_owned()));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Takes connections until the server stops, then waits for them to drain.
pub(super) async fn accept(listener: TcpListener, door: Door, mut stopping: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stopping) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = next(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                let (door, stopping) = (door.clone(), stopping.clone());
                connections.spawn(async move {
                    door.serve(stream, stopping).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // No new ones; those that are there get some time.
    drop(listener);
    let drained = timeout(DRAIN_PATIENCE, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        connections.shutdown().await;
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a way of stopping.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// The next connection, once there is room for it.
async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}
