//! TLS over TCP, by rustls with ring: an own certificate authority or the system's, and client
//! certificates.
//!
//! Certificates are renewed under our feet (a mounted secret changes), so the files are read for
//! every new connection, and a session configuration is built when their content is new. While a
//! renewal is half written the last good one stays in use.

#[cfg(test)]
mod tests;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio_rustls::TlsConnector;

use super::{Address, ConnectError, Connector, Opening, Stream, Tcp};
use crate::error::Remedy;

/// Where certificates are, all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// The authorities to trust; the system's if none is given.
    pub authorities: Option<PathBuf>,
    /// Our certificate (with its chain) and its key, where the broker wants to know who we are.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why there is no TLS session.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file without what it should hold.
    #[error("{path} holds no usable {what}")]
    Content {
        /// Which.
        path: PathBuf,
        /// A certificate or a key.
        what: &'static str,
    },
    /// The system trusts nobody.
    #[error("the system has no certificate authorities; name a file with one")]
    NoAuthorities,
    /// Certificate and key do not go together, or are of no use.
    #[error("the certificates cannot be used")]
    Configuration(#[source] rustls::Error),
    /// The address cannot be in a certificate.
    #[error("`{0}` is no name that a certificate could carry")]
    Name(String),
    /// The handshake failed.
    #[error("the TLS handshake failed")]
    Handshake(#[source] io::Error),
}

impl TlsError {
    /// What the caller should do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Handshake(source) if fault(source).is_none() => Remedy::Retry,
            _ => Remedy::AskUser,
        }
    }
}

/// What TLS itself objects to, if a failed read or write was about TLS: a certificate that one side
/// does not accept, versions or ciphers without a common one, a peer that does not speak it.
pub(crate) fn fault(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Opens TLS sessions.
pub struct Tls {
    files: TlsFiles,
    last: Mutex<Option<(Contents, Arc<ClientConfig>)>>,
}

impl fmt::Debug for Tls {
    /// The files' names alone: one of them holds a private key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// What the files held.
#[derive(PartialEq, Eq)]
struct Contents {
    authorities: Option<Vec<u8>>,
    certificates: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files once, so that a wrong path is told at the start.
    pub fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let tls = Self { files, last: Mutex::default() };
        tls.config()?;
        Ok(tls)
    }

    /// The configuration for the files as they are now, or the last good one.
    fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = self.files.read().and_then(|contents| match &*last {
            Some((known, config)) if *known == contents => Ok((contents, Arc::clone(config))),
            _ => self.files.build(&contents).map(|config| (contents, Arc::new(config))),
        });
        match (fresh, &*last) {
            (Ok((contents, config)), _) => {
                *last = Some((contents, Arc::clone(&config)));
                Ok(config)
            }
            (Err(error), Some((_, config))) => {
                tracing::warn!(%error, "certificates have changed and cannot be used; going on with the old ones");
                Ok(Arc::clone(config))
            }
            (Err(error), None) => Err(error),
        }
    }

    async fn handshake(&self, address: &Address) -> Result<Stream, ConnectError> {
        let name = ServerName::try_from(address.host.clone()).map_err(|_| TlsError::Name(address.host.clone()))?;
        let config = self.config()?;
        let stream = Tcp::dial(address).await?;
        let session = TlsConnector::from(config).connect(name, stream).await.map_err(TlsError::Handshake)?;
        Ok(Box::new(session))
    }
}

impl Connector for Tls {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(self.handshake(address))
    }

    fn is_private(&self) -> bool {
        true
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &PathBuf| fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source });
        Ok(Contents {
            authorities: self.authorities.as_ref().map(read).transpose()?,
            certificates: self.identity.as_ref().map(|(certificates, _)| read(certificates)).transpose()?,
            key: self.identity.as_ref().map(|(_, key)| read(key)).transpose()?,
        })
    }

    fn build(&self, contents: &Contents) -> Result<ClientConfig, TlsError> {
        let mut trusted = RootCertStore::empty();
        match (&self.authorities, &contents.authorities) {
            (Some(path), Some(pem)) => {
                for certificate in certificates(path, pem)? {
                    trusted
                        .add(certificate)
                        .map_err(|_| TlsError::Content { path: path.clone(), what: "certificate" })?;
                }
            }
            _ => {
                trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if trusted.is_empty() {
                    return Err(TlsError::NoAuthorities);
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Configuration)?
            .with_root_certificates(trusted);
        match (&self.identity, &contents.certificates, &contents.key) {
            (Some((certificate_path, key_path)), Some(chain), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| TlsError::Content { path: key_path.clone(), what: "private key" })?;
                builder
                    .with_client_auth_cert(certificates(certificate_path, chain)?, key)
                    .map_err(TlsError::Configuration)
            }
            _ => Ok(builder.with_no_client_auth()),
        }
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let none = || TlsError::Content { path: path.to_owned(), what: "certificate" };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| none())?;
    if found.is_empty() { Err(none()) } else { Ok(found) }
}
