//! Certificates of one Kafka cluster: an authority, the brokers', two clients', and one of an authority nobody trusts.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::danger::ClientCertVerifier,
};

/// The common name of the client that may do everything; the user of this name may as well.
pub(crate) const ADMIN: &str = "admin";
const GUEST: &str = "guest";
const STRANGER: &str = "stranger";

/// Files in PEM; they live as long as their folder.
#[derive(Debug, Clone)]
pub struct Certificates {
    folder: PathBuf,
}

/// A client's certificate and its key.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key, in PKCS#8.
    pub key: PathBuf,
}

impl Certificates {
    /// The authority to trust.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.crt")
    }

    /// An authority that has signed nothing here.
    pub fn other_authority(&self) -> PathBuf {
        self.folder.join("other-authority.crt")
    }

    /// Who may do everything.
    pub fn admin(&self) -> Identity {
        self.identity(ADMIN)
    }

    /// Who may enter, and do nothing.
    pub fn guest(&self) -> Identity {
        self.identity(GUEST)
    }

    /// Who calls itself admin, by the word of the other authority.
    pub fn stranger(&self) -> Identity {
        self.identity(STRANGER)
    }

    /// A broker's key and certificate in one file, as Kafka wants them.
    pub fn keystore(&self) -> PathBuf {
        self.folder.join("broker.pem")
    }

    /// How a broker of ours speaks TLS, with these demands on its clients.
    ///
    /// # Errors
    ///
    /// When the broker's certificate or key cannot be read.
    pub fn server(&self, clients: Arc<dyn ClientCertVerifier>) -> Result<ServerConfig> {
        let keystore = self.keystore();
        let chain = CertificateDer::pem_file_iter(&keystore)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&keystore)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(config.with_client_cert_verifier(clients).with_single_cert(chain, key)?)
    }

    /// Makes all of them in a folder.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context("could not make a folder for certificates")?;
        let files = Self { folder: folder.to_owned() };
        let (authority, ours) = new_authority("evenkeel-test")?;
        let (other_authority, theirs) = new_authority("somebody-else")?;
        let broker = sign(&ours, "broker", &["127.0.0.1", "localhost"])?;
        write(&files.authority(), &authority)?;
        write(&files.other_authority(), &other_authority)?;
        write(&files.keystore(), &(broker.key + &broker.certificate))?;
        for (file, name, issuer) in [(ADMIN, ADMIN, &ours), (GUEST, GUEST, &ours), (STRANGER, ADMIN, &theirs)] {
            // A server of theirs on this machine may show it, too.
            let signed = sign(issuer, name, &["localhost"])?;
            let identity = files.identity(file);
            write(&identity.certificate, &signed.certificate)?;
            write(&identity.key, &signed.key)?;
        }
        Ok(files)
    }

    fn identity(&self, file: &str) -> Identity {
        Identity { certificate: self.folder.join(format!("{file}.crt")), key: self.folder.join(format!("{file}.key")) }
    }
}

struct Signed {
    certificate: String,
    key: String,
}

fn new_authority(name: &str) -> Result<(String, Issuer<'static, KeyPair>)> {
    let key = KeyPair::generate()?;
    let mut params = named(name, &[])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let certificate = params.self_signed(&key)?.pem();
    Ok((certificate, Issuer::new(params, key)))
}

fn sign(issuer: &Issuer<'_, KeyPair>, name: &str, addresses: &[&str]) -> Result<Signed> {
    let key = KeyPair::generate()?;
    let mut params = named(name, addresses)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(Signed { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

/// With nothing in the name but what is given: brokers know a client by the whole of it.
fn named(name: &str, addresses: &[&str]) -> Result<CertificateParams> {
    let addresses: Vec<_> = addresses.iter().map(|address| (*address).to_owned()).collect();
    let mut params = CertificateParams::new(addresses)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn write(file: &Path, pem: &str) -> Result<()> {
    fs::write(file, pem).with_context(|| format!("could not write {}", file.display()))
}
