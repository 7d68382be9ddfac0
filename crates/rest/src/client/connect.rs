//! The service for production: HTTP/1.1 over TCP or TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};

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
    Client::builder(TokioExecutor::new()).build(connector)
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
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
