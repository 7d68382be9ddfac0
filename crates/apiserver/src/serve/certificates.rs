//! The server's own certificate authority, and the two certificates that it signs.
//!
//! Everything is made anew at each start and the authority's key is forgotten at once: who holds the kubeconfig of
//! one run can neither forge certificates nor get into the next.

use std::net::IpAddr;

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

/// Whether clients can reach a server by this: an address, or a name such as `laptop.local` or `*.example.com`.
pub(super) fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    let labels = name.strip_prefix("*.").unwrap_or(name);
    // What ends in a number is taken for an address by everybody, and is a wrong one.
    let is_number = labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    name.parse::<IpAddr>().is_ok() || (name.len() <= 253 && !is_number && labels.split('.').all(is_label))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_or_an_address() {
        for host in ["laptop", "laptop.local", "My-Laptop.example.com", "*.example.com", "192.0.2.7", "2001:db8::7"] {
            assert!(is_host(host), "{host}");
        }
        let long = format!("{}.example.com", "a".repeat(64));
        let longer = vec!["abcdefgh"; 30].join(".");
        for nothing in
            ["", ".", "a..b", "a.", "*", "a.*.b", "a_b", "a b", "a/b", "a:1", "-a", "a-", "1.2.3", &long, &longer]
        {
            assert!(!is_host(nothing), "{nothing}");
        }
    }
}
