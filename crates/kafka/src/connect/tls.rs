//! TLS by rustls with ring: an own certificate authority or the system's, and client certificates.
//!
//! Certificates are renewed under our feet (a mounted secret changes), so the files are read for
//! every new connection, and a session configuration is built when their content is new. While a
//! renewal is half written the last good one stays in use.
//!
//! The bytes below go over TCP, or over whatever [`Tls::over`] names. That one may dial where it
//! likes: a certificate is always checked against the name that was asked for.

#[cfg(test)]
mod tests;

use std::{
    fmt, fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio_rustls::TlsConnector;

use super::{Address, ConnectError, Connector, Opening, Stream, Tcp};
use crate::error::Remedy;

/// TLS sessions that may be taken up again where the certificates are at hand: those of four brokers, eight of each. By
/// default there is room for those of 32, made beforehand; and whoever has them at hand has them of many clusters.
const SESSIONS: usize = 32;

/// Where certificates are, all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// The authorities to trust; the system's if none is given.
    pub authorities: Option<PathBuf>,
    /// Our certificate (with its chain) and its key, where the broker wants to know who we are.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Certificates at hand, all PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsPem {
    /// The authorities to trust, and nobody else.
    pub authorities: Vec<u8>,
    /// Our certificate (with its chain) and its key, where the broker wants to know who we are.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for TlsPem {
    /// Not the content: a private key is in it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsPem").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
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
    /// A file, or what was given in place of one, without what it should hold.
    #[error("{of} holds no usable {what}")]
    Content {
        /// Which.
        of: String,
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
#[derive(Debug)]
pub struct Tls {
    certificates: Source,
    below: Arc<dyn Connector>,
}

/// Where the certificates come from.
enum Source {
    Files { files: TlsFiles, last: Mutex<Option<(Contents, Arc<ClientConfig>)>> },
    Given(Arc<ClientConfig>),
}

impl fmt::Debug for Source {
    /// The files' names alone: one of them holds a private key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { files, .. } => files.fmt(out),
            Self::Given(_) => out.write_str("given"),
        }
    }
}

/// What the files held.
#[derive(PartialEq, Eq)]
struct Contents {
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tls {
    /// Reads the files once, so that a wrong path is told at the start.
    pub fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let tls = Self { certificates: Source::Files { files, last: Mutex::default() }, below: Arc::new(Tcp) };
        tls.config()?;
        Ok(tls)
    }

    /// With certificates that are at hand. They stay as they are: whoever has new ones makes a new connector.
    pub fn of_pem(pem: TlsPem) -> Result<Self, TlsError> {
        let contents = Contents { authorities: Some(pem.authorities), identity: pem.identity };
        let mut config = contents.build(
            ["the text of the authorities", "the text of the certificate", "the text of the key"].map(str::to_owned),
        )?;
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Ok(Self { certificates: Source::Given(Arc::new(config)), below: Arc::new(Tcp) })
    }

    /// Over the streams of another connector instead of plain TCP. The name in a certificate must be that of the address
    /// asked for, wherever the other one goes for it.
    #[must_use]
    pub fn over(self, below: Arc<dyn Connector>) -> Self {
        Self { below, ..self }
    }

    /// The configuration for the files as they are now, or the last good one.
    fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let (files, last) = match &self.certificates {
            Source::Files { files, last } => (files, last),
            Source::Given(config) => return Ok(Arc::clone(config)),
        };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = files.read().and_then(|contents| match &*last {
            Some((known, config)) if *known == contents => Ok((contents, Arc::clone(config))),
            _ => contents.build(files.names()).map(|config| (contents, Arc::new(config))),
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
        let stream = self.below.open(address).await?;
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
        let pair = |(chain, key): &(PathBuf, PathBuf)| Ok((read(chain)?, read(key)?));
        Ok(Contents {
            authorities: self.authorities.as_ref().map(read).transpose()?,
            identity: self.identity.as_ref().map(pair).transpose()?,
        })
    }

    /// What authorities, certificate and key are called when something is wrong with them.
    fn names(&self) -> [String; 3] {
        let name = |path: Option<&PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
        let identity = self.identity.as_ref();
        [self.authorities.as_ref(), identity.map(|(chain, _)| chain), identity.map(|(_, key)| key)].map(name)
    }
}

impl Contents {
    fn build(&self, [authorities, chain, key]: [String; 3]) -> Result<ClientConfig, TlsError> {
        let mut trusted = RootCertStore::empty();
        match &self.authorities {
            Some(pem) => {
                for certificate in certificates(&authorities, pem)? {
                    trusted
                        .add(certificate)
                        .map_err(|_| TlsError::Content { of: authorities.clone(), what: "certificate" })?;
                }
            }
            None => {
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
        let Some((chain_pem, key_pem)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let key =
            PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| TlsError::Content { of: key, what: "private key" })?;
        builder.with_client_auth_cert(certificates(&chain, chain_pem)?, key).map_err(TlsError::Configuration)
    }
}

fn certificates(of: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let none = || TlsError::Content { of: of.to_owned(), what: "certificate" };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| none())?;
    if found.is_empty() { Err(none()) } else { Ok(found) }
}
