//! TLS against a server on loopback: whom each side believes, and certificates that change.

use std::{fs, path::Path, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer, server::WebPkiClientVerifier};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::connection::Connection;

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn write(&self, path: &Path) -> PathBuf {
        fs::write(path, self.certificate.pem()).unwrap();
        path.to_owned()
    }
}

/// Echoes over TLS; wants a client certificate of `clients`, if given.
async fn server(authority: &Authority, clients: Option<&Authority>) -> Address {
    let (certificate, key) = authority.issue("127.0.0.1");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut trusted = RootCertStore::empty();
            trusted.add(clients.certificate.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = builder.with_single_cert(vec![certificate.der().clone()], key.into()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config.clone()));
            tokio::spawn(async move {
                if let Ok(mut session) = acceptor.accept(stream).await {
                    let mut byte = [0];
                    while session.read_exact(&mut byte).await.is_ok() {
                        let _ = session.write_all(&byte).await;
                    }
                }
            });
        }
    });
    address
}

async fn echo(tls: &Tls, address: &Address) -> Result<(), ConnectError> {
    let mut stream = tls.open(address).await?;
    let mut byte = *b"x";
    let io = |error| ConnectError::from(TlsError::Handshake(error));
    stream.write_all(&byte).await.map_err(io)?;
    stream.flush().await.map_err(io)?;
    stream.read_exact(&mut byte).await.map_err(io)?;
    Ok(())
}

#[tokio::test]
async fn a_server_of_our_authority_is_believed_and_another_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let authorities = Some(ours.write(&folder.path().join("ca.pem")));
    let tls = Tls::new(TlsFiles { authorities, identity: None }).unwrap();
    echo(&tls, &server(&ours, None).await).await.unwrap();
    let error = echo(&tls, &server(&theirs, None).await).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser, "{error:?}");
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_we_are_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let authorities = Some(authority.write(&folder.path().join("ca.pem")));
    let address = server(&authority, Some(&authority)).await;

    let nobody = Tls::new(TlsFiles { authorities: authorities.clone(), identity: None }).unwrap();
    let error = echo(&nobody, &address).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser, "{error:?}");

    let (certificate, key) = authority.issue("alice");
    let identity = Some((folder.path().join("alice.pem"), folder.path().join("alice.key")));
    let (certificate_path, key_path) = identity.clone().unwrap();
    fs::write(certificate_path, certificate.pem()).unwrap();
    fs::write(key_path, key.serialize_pem()).unwrap();
    let alice = Tls::new(TlsFiles { authorities, identity }).unwrap();
    assert!(!format!("{alice:?}").contains("PRIVATE"), "no key in what is printed");
    echo(&alice, &address).await.unwrap();
}

#[tokio::test]
async fn renewed_files_are_used_and_broken_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let path = folder.path().join("ca.pem");
    let tls = Tls::new(TlsFiles { authorities: Some(old.write(&path)), identity: None }).unwrap();
    let address = server(&new, None).await;
    assert!(echo(&tls, &address).await.is_err());
    new.write(&path);
    echo(&tls, &address).await.unwrap();
    fs::write(&path, "half written").unwrap();
    echo(&tls, &address).await.unwrap();
    fs::remove_file(&path).unwrap();
    echo(&tls, &address).await.unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let open = || Tls::new(TlsFiles { authorities: Some(path.clone()), identity: None }).unwrap_err();
    assert!(matches!(open(), TlsError::Read { .. }));
    fs::write(&path, "hello").unwrap();
    assert!(open().to_string().contains("ca.pem holds no usable certificate"), "{}", open());
}

#[tokio::test]
async fn plain_kafka_on_a_tls_port_is_told_apart() {
    let address = server(&Authority::new(), None).await;
    let stream = Tcp.open(&address).await.unwrap();
    let error = Connection::open(stream, "test", 1 << 20, Duration::from_secs(30)).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser, "{error:?}");
}

/// Goes to one place, whatever it is asked for.
#[derive(Debug)]
struct Always(Address);

impl Connector for Always {
    fn open<'a>(&'a self, _: &'a Address) -> Opening<'a> {
        Tcp.open(&self.0)
    }
}

#[tokio::test]
async fn the_name_asked_for_is_checked_wherever_the_stream_leads() {
    let authority = Authority::new();
    let dialled = server(&authority, Some(&authority)).await;
    let (certificate, key) = authority.issue("alice");
    let identity = Some((certificate.pem().into_bytes(), key.serialize_pem().into_bytes()));
    let pem = TlsPem { authorities: authority.certificate.pem().into_bytes(), identity };
    let tls = Tls::of_pem(pem).unwrap().over(Arc::new(Always(dialled)));
    assert!(!format!("{tls:?}").contains("PRIVATE"), "no key in what is printed");
    let at = |host: &str| Address { host: host.to_owned(), port: 1 };
    echo(&tls, &at("127.0.0.1")).await.unwrap();
    let error = echo(&tls, &at("127.0.0.2")).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::AskUser, "{error:?}");
}

#[test]
fn pem_without_a_certificate_is_refused() {
    let pem = TlsPem { authorities: b"nothing".to_vec(), identity: None };
    let error = Tls::of_pem(pem).unwrap_err();
    assert_eq!(error.to_string(), "the text of the authorities holds no usable certificate");
}
