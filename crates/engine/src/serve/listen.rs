//! The door on a port: TCP or TLS, HTTP/1.1 as the original speaks it, and limits on what clients hold.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body};
use evenkeel_kafka::connect::MemoryListener;
use http::Request;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::{Peer, patient::Patient};
use crate::config::webserver::{Tls, Webserver};

/// Connections at once. Who comes later waits in the system's queue.
pub(super) const CONNECTIONS_MAX: usize = 1_024;
/// How long a TLS handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the head of a request may take; an idle connection is closed after that.
const HEAD_PATIENCE: Duration = Duration::from_secs(75);
/// How long a client may take nothing of what it is sent.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// The least room for the head of a request and for what waits to be written.
const BUFFER_MIN: usize = 64 * 1024;
/// How long running requests may take once the server stops.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a failed `accept`, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
pub enum NoListener {
    /// The address is taken, or not ours, or none.
    #[error("could not listen on {address}")]
    Bind {
        /// What was asked for.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The key cannot be read.
    #[error("could not read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The keystore is of a form that is not supported.
    #[error(
        "{} is no PEM file: convert it with `openssl pkcs12 -in <keystore> -nodes -out <file>.pem` (a JKS file with \
         `keytool -importkeystore -deststoretype PKCS12` first), and set `webserver.ssl.keystore.location` to that file \
         and `webserver.ssl.keystore.type` to PEM",
        path.display()
    )]
    NotPem {
        /// Which file.
        path: PathBuf,
    },
    /// The PEM file lacks something.
    #[error("{}: {what}", path.display())]
    Incomplete {
        /// Which file.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// Key and certificates are not taken.
    #[error("could not set up TLS with {}", path.display())]
    Tls {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
}

/// A running server. Dropping it ends it at once; [`Server::stop`] lets requests finish.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopping: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts listening. Returns when clients can connect.
    pub async fn start(settings: &Webserver, router: Router) -> Result<Server, NoListener> {
        let address = format!("{}:{}", settings.address, settings.port);
        let failed = |source| NoListener::Bind { address: address.clone(), source };
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Server::start_at(bound, listener, settings, router)
    }

    /// The same where streams arrive by other means, at what passes for an address. Needs a tokio runtime.
    pub fn start_at(
        address: SocketAddr,
        arriving: impl Arrivals,
        settings: &Webserver,
        router: Router,
    ) -> Result<Server, NoListener> {
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let (stopping, stopped) = watch::channel(false);
        let way_in = WayIn { router, tls, head_bytes: settings.head_bytes.max(BUFFER_MIN) };
        let accepting = tokio::spawn(accept(arriving, way_in, stopped));
        Ok(Server { address, stopping, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, and lets running requests finish.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        // It ends by itself; if it panicked there is nothing left to stop.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Where clients' streams arrive.
pub trait Arrivals: Send + 'static {
    /// What they are.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next one, and whose it is. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

impl Arrivals for TcpListener {
    type Stream = TcpStream;

    async fn next(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.accept().await?;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small answers may be late");
        }
        Ok((stream, peer))
    }
}

impl Arrivals for MemoryListener {
    type Stream = DuplexStream;

    async fn next(&mut self) -> io::Result<(DuplexStream, SocketAddr)> {
        match self.accept().await {
            Some(stream) => Ok((stream, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))),
            // Nobody can dial any more.
            None => std::future::pending().await,
        }
    }
}

/// What every connection goes through.
#[derive(Clone)]
struct WayIn {
    router: Router,
    tls: Option<TlsAcceptor>,
    head_bytes: usize,
}

async fn accept(mut arriving: impl Arrivals, way_in: WayIn, mut stopping: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
            (arriving.next().await, place)
        };
        let (accepted, place) = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (way_in, stopping) = (way_in.clone(), stopping.clone());
                connections.spawn(async move {
                    way_in.admit(stream, peer, stopping).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // Whoever is not done by then is cut off when the set is dropped.
    let _ = timeout(DRAIN_PATIENCE, async { while connections.join_next().await.is_some() {} }).await;
}

impl WayIn {
    async fn admit<S>(self, stream: S, peer: SocketAddr, stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = Patient::new(stream, WRITE_PATIENCE);
        match self.tls.clone() {
            None => self.serve(stream, peer, stopping).await,
            Some(tls) => match timeout(HANDSHAKE_PATIENCE, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.serve(stream, peer, stopping).await,
                Ok(Err(error)) => tracing::debug!(%error, %peer, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            },
        }
    }

    async fn serve<S>(self, stream: S, peer: SocketAddr, mut stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router;
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (router, mut request) = (router.clone(), request.map(Body::new));
            request.extensions_mut().insert(Peer(peer.ip().to_string()));
            router.oneshot(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(self.head_bytes);
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        let stopped = async {
            // Nobody who could stop it any more is no reason to stop.
            if stopping.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, %peer, "a connection ended");
        }
    }
}

/// TLS with the key and the certificates of a PEM file.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, NoListener> {
    let path = || tls.keystore.clone();
    let bytes = std::fs::read(&tls.keystore).map_err(|source| NoListener::Read { path: path(), source })?;
    // Whatever type was given: what it is shows in the file.
    if !bytes.windows(11).any(|window| window == b"-----BEGIN ") {
        return Err(NoListener::NotPem { path: path() });
    }
    let incomplete = |what| NoListener::Incomplete { path: path(), what };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| incomplete("a certificate in it cannot be read"))?;
    if chain.is_empty() {
        return Err(incomplete("it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_| incomplete("it holds no key that can be read; encrypted ones are not supported"))?;
    let failed = |source| NoListener::Tls { path: path(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
