//! The server's own certificate authority, and the two certificates that it signs.
//!
//! Everything is made anew at each start and the authority's key is forgotten at once: who holds the kubeconfig of
//! one run can neither forge certificates nor get into the next.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Names and addresses that the server certificate is always good for.
const OWN_NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"];
/// How long certificates are good. A server in memory does not live longer.
const YEARS: i16 = 1;

/// Certificates and keys, as PEM. Keys are PKCS#8.
#[derive(Clone)]
pub struct Certificates {
    /// The authority that clients trust.
    pub authority: String,
    /// The server's certificate.
    pub server: String,
    /// The server's key.
    pub server_key: String,
    /// The administrator's certificate.
    pub client: String,
    /// The administrator's key.
    pub client_key: String,
}

impl std::fmt::Debug for Certificates {
    /// Keys stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Makes an authority and signs a server certificate for the usual local names and `names`, and a client
    /// certificate for the administrator.
    pub fn make(names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let mut params = dated(Vec::new(), now)?;
        params.distinguished_name.push(DnType::CommonName, "evenkeel-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = params.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(params, authority_key);

        let all_names = OWN_NAMES.iter().map(ToString::to_string).chain(names.iter().cloned()).collect();
        let server_key = KeyPair::generate()?;
        let mut server = dated(all_names, now)?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

        let client_key = KeyPair::generate()?;
        let mut client = dated(Vec::new(), now)?;
        client.distinguished_name.push(DnType::CommonName, "kubernetes-admin");
        client.distinguished_name.push(DnType::OrganizationName, "system:masters");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

        Ok(Self {
            authority,
            server: server.signed_by(&server_key, &issuer)?.pem(),
            server_key: server_key.serialize_pem(),
            client: client.signed_by(&client_key, &issuer)?.pem(),
            client_key: client_key.serialize_pem(),
        })
    }
}

/// Parameters that hold from yesterday (clocks differ) for a year.
fn dated(names: Vec<String>, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let today = Zoned::new(now, TimeZone::UTC).date();
    let mut params = CertificateParams::new(names)?;
    params.use_authority_key_identifier_extension = true;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    (params.not_before, params.not_after) = {
        let midnight = |date: Date| {
            let number = |n: i8| u8::try_from(n).unwrap_or(1);
            rcgen::date_time_ymd(i32::from(date.year()), number(date.month()), number(date.day()))
        };
        (midnight(today.saturating_sub(1.day())), midnight(today.saturating_add(YEARS.years())))
    };
    Ok(params)
}
