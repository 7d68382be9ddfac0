//! The service for production: HTTP/1.1 over TCP or TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};

/// Connections that nobody uses are kept for so long, and so many of them: each has its buffers, and whoever asks a hundred
/// servers now and then has better things to keep.
const IDLE: Duration = Duration::from_secs(30);
const MOST_IDLE: usize = 1;
/// TLS sessions that may be taken up again: those of one server. By default there is room for those of 32, and it is made
/// beforehand.
const SESSIONS: usize = 8;

/// What [`http_service`] makes.
pub type HttpService = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A service that connects by what the address says, `http` or `https`. Cheap to clone; clones share connections.
pub fn http_service(tls: ClientConfig, connect_within: Duration) -> HttpService {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(connect_within));
    http_service_over(tls, tcp)
}

/// The same over another connector, which may dial where it likes: a certificate is always checked against the name in
/// the address that was asked for.
pub fn http_service_over<C>(tls: ClientConfig, below: C) -> Client<HttpsConnector<C>, Full<Bytes>>
where
    HttpsConnector<C>: Connect + Clone,
{
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(below);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MOST_IDLE)
        .build(connector)
}

/// TLS that trusts these authorities and nobody else. Several may be in the text, as while one is being renewed; those
/// that no TLS could use are passed over.
pub fn trusting(authorities_pem: &[u8]) -> Result<ClientConfig, pem::Error> {
    let mut roots = RootCertStore::empty();
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(authorities_pem).collect::<Result<_, _>>()?;
    roots.add_parsable_certificates(certificates);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the cipher suites of TLS 1.2 and 1.3");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(config)
}
