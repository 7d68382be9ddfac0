//! TLS as a broker offers it: its key and certificates from PEM, and whose certificates it wants to see.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// Whether clients show a certificate (`ssl.client.auth`), and whose they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth<'a> {
    /// They are not asked.
    None,
    /// They may; one that is shown must be of these authorities (PEM).
    Requested(&'a [u8]),
    /// They must.
    Required(&'a [u8]),
}

/// Why a broker cannot offer TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate, or one that is none.
    #[error("{0} holds no certificate that can be read")]
    Certificate(&'static str),
    /// No key.
    #[error("the key store holds no private key that can be read; encrypted ones are not supported")]
    Key,
    /// The authorities are of no use.
    #[error("the trust store cannot be used")]
    Authorities(#[source] VerifierBuilderError),
    /// Key and certificate do not go together.
    #[error("key and certificates cannot be used")]
    Pair(#[source] rustls::Error),
}

/// TLS with the key and the chain in `key_store` (PEM).
pub fn acceptor(key_store: &[u8], clients: ClientAuth<'_>) -> Result<TlsAcceptor, TlsError> {
    let chain = certificates("the key store", key_store)?;
    let key = PrivateKeyDer::from_pem_slice(key_store).map_err(|_| TlsError::Key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?;
    let builder = match clients {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Requested(pem) | ClientAuth::Required(pem) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("the trust store", pem)? {
                roots.add(authority).map_err(|_| TlsError::Certificate("the trust store"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
            let optional = matches!(clients, ClientAuth::Requested(_));
            let verifier = if optional { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Authorities)?)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(of: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(TlsError::Certificate(of))
}
