//! Authorities and certificates of a cluster. Each is made once and kept; what lacks is made, and so is what another
//! authority has signed: nobody would trust it any more. Nothing is renewed yet, but what runs out is said in time.
//!
//! | Secret | keys | signed by |
//! |---|---|---|
//! | `<c>-cluster-ca-cert`, `<c>-cluster-ca` | `ca.crt`; `ca.key` | itself |
//! | `<c>-clients-ca-cert`, `<c>-clients-ca` | `ca.crt`; `ca.key` | itself |
//! | `<pod>` | `<pod>.crt`, `<pod>.key`, `keystore.pem` | the cluster's authority |
//! | `<c>-cruise-control-certs` | `cruise-control.crt`, `.key`, `keystore.pem` | the cluster's authority |
//! | `<c>-cluster-operator-certs` | `cluster-operator.crt`, `.key`, `keystore.pem` | the cluster's authority |
//!
//! `keystore.pem` is key and chain in one file, which is how Kafka reads PEM. Keys are made in `new_key` and nowhere
//! else; the present moment is handed in.

use std::{collections::BTreeMap, fmt};

use evenkeel_api::{annotations, kafka::CertificateAuthority};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned, civil::Date, tz::TimeZone};
use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::{
    hash,
    model::{Model, Node},
    names::CLUSTER_DOMAIN,
    objects::{Component, marked},
};

const CA_CERT: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const KEYSTORE: &str = "keystore.pem";
const ORGANIZATION: &str = "io.strimzi";
const DEFAULT_DAYS: i32 = 365;
/// How long before its end a certificate is spoken of.
const WARNS_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("a certificate for {whom} could not be made")]
    Make {
        /// For whom.
        whom: String,
        /// Why.
        #[source]
        cause: rcgen::Error,
    },
    /// The authority's Secret cannot be used.
    #[error("Secret {secret} holds no usable {key}")]
    Authority {
        /// Which Secret.
        secret: String,
        /// Which key of it.
        key: &'static str,
    },
}

impl CertificateError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Make { .. } => {
                "Look at the names of the cluster and its namespace; this should not happen".to_owned()
            }
            Self::Authority { secret, key } => {
                format!(
                    "Put {key} (PEM, the key as PKCS#8) into Secret {secret}, or delete both Secrets of the authority"
                )
            }
        }
    }
}

/// Which authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Signs nodes, engine and operator.
    Cluster,
    /// Signs Kafka's clients.
    Clients,
}

/// An authority.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its key, PEM. Empty where somebody else keeps it.
    key: String,
    /// How often the certificate was renewed.
    pub cert_generation: String,
    /// How often the key was replaced.
    pub key_generation: String,
}

impl fmt::Debug for Authority {
    /// Keys stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("cert_generation", &self.cert_generation).finish_non_exhaustive()
    }
}

/// The authority that these Secrets hold, and the Secrets to create for it, in this order: the key first, so that a
/// crash in between leaves a key from which the certificate can still be made.
pub fn authority(
    model: &Model,
    which: Which,
    key_secret: Option<&Secret>,
    cert_secret: Option<&Secret>,
    now: Timestamp,
) -> Result<(Authority, Vec<Secret>), CertificateError> {
    let (spec, key_name, cert_name, common_name) = match which {
        Which::Cluster => {
            (&model.cluster_ca, model.names.cluster_ca_key(), model.names.cluster_ca_cert(), "cluster-ca")
        }
        Which::Clients => {
            (&model.clients_ca, model.names.clients_ca_key(), model.names.clients_ca_cert(), "clients-ca")
        }
    };
    let lacks = |secret: &str, key| CertificateError::Authority { secret: secret.to_owned(), key };
    let (key, certificate) = (text(key_secret, CA_KEY), text(cert_secret, CA_CERT));
    let generated = spec.generate_certificate_authority.unwrap_or(true);
    let generation = |secret: Option<&Secret>, annotation: &str| {
        secret.and_then(|secret| secret.annotations().get(annotation)).cloned().unwrap_or_else(|| "0".to_owned())
    };
    let mut missing = Vec::new();
    let (key, certificate) = match (key, certificate) {
        (Some(key), Some(certificate)) => (key, certificate),
        // Clients' certificates may be signed elsewhere; nodes' may not.
        (None, Some(certificate)) if !generated && which == Which::Clients => (String::new(), certificate),
        (None, Some(_)) => return Err(lacks(&key_name, CA_KEY)),
        (_, None) if !generated => return Err(lacks(&cert_name, CA_CERT)),
        (key, None) => {
            let made = |cause| CertificateError::Make { whom: common_name.to_owned(), cause };
            let pair = match &key {
                Some(key) => KeyPair::from_pem(key).map_err(|_| lacks(&key_name, CA_KEY))?,
                None => new_key().map_err(made)?,
            };
            if key.is_none() {
                let data = [(CA_KEY.to_owned(), pair.serialize_pem())];
                missing.push(ca_secret(model, &key_name, spec, annotations::CA_KEY_GENERATION, data));
            }
            let certificate = self_signed(common_name, &pair, days(spec), now).map_err(made)?;
            let data = [(CA_CERT.to_owned(), certificate.clone())];
            missing.push(ca_secret(model, &cert_name, spec, annotations::CA_CERT_GENERATION, data));
            (pair.serialize_pem(), certificate)
        }
    };
    let authority = Authority {
        certificate,
        key,
        cert_generation: generation(cert_secret, annotations::CA_CERT_GENERATION),
        key_generation: generation(key_secret, annotations::CA_KEY_GENERATION),
    };
    Ok((authority, missing))
}

/// A node's Secret, if it is missing or incomplete.
pub fn of_node(
    model: &Model,
    node: &Node,
    authority: &Authority,
    existing: Option<&Secret>,
    now: Timestamp,
) -> Result<Option<Secret>, CertificateError> {
    let names = &model.names;
    let services = [names.bootstrap_service(), names.brokers_service()];
    let mut hosts: Vec<String> = services.iter().flat_map(|service| service_names(service, &names.namespace)).collect();
    let own = format!("{}.{}", node.pod, names.brokers_service());
    hosts.extend(service_names(&own, &names.namespace));
    hosts.extend(model.settings.extra_names.clone());
    let leaf = Leaf { common_name: names.kafka(), hosts, days: days(&model.cluster_ca) };
    let owner = &model.pools[&node.pool].owner;
    leaf.secret(model, Component::Kafka, &node.pod, &node.pod, owner, authority, existing, now)
}

/// The engine's Secret, if it is missing or incomplete.
pub fn of_engine(
    model: &Model,
    authority: &Authority,
    existing: Option<&Secret>,
    now: Timestamp,
) -> Result<Option<Secret>, CertificateError> {
    let names = &model.names;
    let mut hosts = service_names(&names.engine(), &names.namespace);
    hosts.push("localhost".to_owned());
    hosts.extend(model.settings.extra_names.iter().filter(|name| *name != "localhost").cloned());
    let leaf = Leaf { common_name: names.engine(), hosts, days: days(&model.cluster_ca) };
    let secret = names.engine_certs();
    leaf.secret(model, Component::Engine, &secret, "cruise-control", &model.owner, authority, existing, now)
}

/// The operator's own Secret for this cluster, if it is missing or incomplete.
pub fn of_operator(
    model: &Model,
    authority: &Authority,
    existing: Option<&Secret>,
    now: Timestamp,
) -> Result<Option<Secret>, CertificateError> {
    let leaf = Leaf { common_name: "cluster-operator".to_owned(), hosts: Vec::new(), days: days(&model.cluster_ca) };
    let secret = model.names.operator_certs();
    leaf.secret(model, Component::Kafka, &secret, "cluster-operator", &model.owner, authority, existing, now)
}

/// Changes with the certificate in a Secret of [`of_node`] or [`of_engine`]: `strimzi.io/server-cert-hash`.
pub fn certificate_hash(secret: &Secret) -> String {
    text(Some(secret), KEYSTORE).map(|text| hash::of_text(&text)).unwrap_or_default()
}

/// What is to be said about a certificate that runs out soon, or has run out: Secret `secret`, key `key`. None while there
/// is time, or if nothing can be read there.
pub fn expiry(secret: &Secret, key: &str, now: Timestamp) -> Option<String> {
    let pem = text(Some(secret), key)?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let ends = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?;
    let left = ends.duration_since(now);
    let name = secret.name_any();
    let day = Zoned::new(ends, TimeZone::UTC).date();
    let advice =
        "it is not renewed by itself: delete the Secrets of the authority (all pods restart), or put in a new one";
    if left.is_negative() {
        Some(format!("{key} in Secret {name} ran out on {day}, {advice}"))
    } else {
        (left < WARNS_BEFORE).then(|| format!("{key} in Secret {name} runs out on {day}, {advice}"))
    }
}

/// The key of a leaf's certificate in its Secret.
pub fn leaf_key(secret: &Secret) -> Option<&str> {
    let keys = secret.data.iter().flatten().map(|(key, _)| key.as_str());
    keys.into_iter().find(|key| key.ends_with(".crt"))
}

/// What a certificate is for.
struct Leaf {
    common_name: String,
    hosts: Vec<String>,
    days: i32,
}

impl Leaf {
    #[expect(clippy::too_many_arguments, reason = "each of them is another thing, and all callers are above")]
    fn secret(
        self,
        model: &Model,
        component: Component,
        name: &str,
        prefix: &str,
        owner: &OwnerReference,
        authority: &Authority,
        existing: Option<&Secret>,
        now: Timestamp,
    ) -> Result<Option<Secret>, CertificateError> {
        let (crt, key) = (format!("{prefix}.crt"), format!("{prefix}.key"));
        // The chain ends with whoever signed it.
        let chain = text(existing, KEYSTORE);
        let is_foreign =
            chain.as_ref().is_some_and(|chain| !chain.trim_end().ends_with(authority.certificate.trim_end()));
        let (certificate, private) = match (text(existing, &crt), text(existing, &key)) {
            (Some(_), Some(_)) if chain.is_some() && !is_foreign => return Ok(None),
            (Some(certificate), Some(private)) if !is_foreign => (certificate, private),
            _ => {
                let made = |cause| CertificateError::Make { whom: name.to_owned(), cause };
                let unusable = |key| CertificateError::Authority { secret: model.names.cluster_ca_key(), key };
                let issuer = KeyPair::from_pem(&authority.key).map_err(|_| unusable(CA_KEY))?;
                let issuer = Issuer::from_ca_cert_pem(&authority.certificate, issuer).map_err(|_| unusable(CA_CERT))?;
                let pair = new_key().map_err(made)?;
                let signed = self.params(now).and_then(|params| params.signed_by(&pair, &issuer)).map_err(made)?;
                (signed.pem(), pair.serialize_pem())
            }
        };
        let keystore = format!("{private}{certificate}{}", authority.certificate);
        let mut metadata = marked(model, name, component, owner.clone());
        metadata.annotations = Some(BTreeMap::from([
            (annotations::CLUSTER_CA_CERT_GENERATION.to_owned(), authority.cert_generation.clone()),
            (annotations::CLUSTER_CA_KEY_GENERATION.to_owned(), authority.key_generation.clone()),
        ]));
        let data = [(crt, certificate), (key, private), (KEYSTORE.to_owned(), keystore)];
        Ok(Some(opaque(metadata, data)))
    }

    fn params(self, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
        let mut params = dated(self.hosts, self.days, now)?;
        params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
        params.distinguished_name.push(DnType::CommonName, self.common_name);
        // Brokers are each other's clients.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params)
    }
}

/// The one place with dice: a P-256 key.
fn new_key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate()
}

fn self_signed(name: &str, key: &KeyPair, days: i32, now: Timestamp) -> Result<String, rcgen::Error> {
    let mut params = dated(Vec::new(), days, now)?;
    params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
    params.distinguished_name.push(DnType::CommonName, format!("{name} v0"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params.self_signed(key)?.pem())
}

/// Parameters that hold from yesterday (clocks differ) for so many days.
fn dated(names: Vec<String>, days: i32, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let today = Zoned::new(now, TimeZone::UTC).date();
    let midnight = |date: Date| {
        let number = |n: i8| u8::try_from(n).unwrap_or(1);
        rcgen::date_time_ymd(i32::from(date.year()), number(date.month()), number(date.day()))
    };
    let mut params = CertificateParams::new(names)?;
    params.use_authority_key_identifier_extension = true;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.not_before = midnight(today.saturating_sub(1.day()));
    params.not_after = midnight(today.saturating_add(i64::from(days).days()));
    Ok(params)
}

fn days(spec: &CertificateAuthority) -> i32 {
    // Beyond a century jiff and X.509 would quarrel about the year.
    spec.validity_days.unwrap_or(DEFAULT_DAYS).clamp(1, 36_500)
}

/// The names under which Kubernetes answers for a service.
fn service_names(service: &str, namespace: &str) -> Vec<String> {
    vec![
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.{CLUSTER_DOMAIN}"),
    ]
}

fn text(secret: Option<&Secret>, key: &str) -> Option<String> {
    let bytes = secret?.data.as_ref()?.get(key)?;
    std::str::from_utf8(&bytes.0).ok().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn ca_secret(
    model: &Model,
    name: &str,
    spec: &CertificateAuthority,
    generation: &str,
    data: [(String, String); 1],
) -> Secret {
    let mut metadata = marked(model, name, Component::Kafka, model.owner.clone());
    if spec.generate_secret_owner_reference == Some(false) {
        metadata.owner_references = None;
    }
    metadata.annotations = Some(BTreeMap::from([(generation.to_owned(), "0".to_owned())]));
    opaque(metadata, data)
}

fn opaque(metadata: ObjectMeta, data: impl IntoIterator<Item = (String, String)>) -> Secret {
    let data = data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes())));
    Secret { metadata, data: Some(data.collect()), type_: Some("Opaque".to_owned()), ..Secret::default() }
}

#[cfg(test)]
mod tests;
