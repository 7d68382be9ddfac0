//! How the engine of a Kafka is reached, and as whom: read from the Kafka and from two Secrets.

use std::collections::BTreeMap;

use evenkeel_api::kafka::CruiseControlSpec;
use evenkeel_rest::client::Basic;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::rebalance::Engine;

const USER: &str = "rebalance-operator";
const PASSWORD_KEY: &str = "rebalance-operator.password";
const CERTIFICATE: &str = ".crt";

/// The Secret with the passwords of the engine's users.
pub(super) fn api_secret(cluster: &str) -> String {
    format!("{cluster}-cruise-control-api")
}

/// The Secret with the certificates of the cluster's authority.
pub(super) fn ca_secret(cluster: &str) -> String {
    format!("{cluster}-cluster-ca-cert")
}

/// How the engine is reached, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Whether over TLS.
    pub encrypted: bool,
    /// Certificates of the authorities to trust, in PEM: several while one is being renewed.
    pub authorities: Vec<u8>,
    /// Who asks. None: the engine wants to know nobody's name.
    pub credentials: Option<Basic>,
}

/// What is known of an engine, and how to reach it unless something is missing for that.
pub(super) fn read(
    cluster: &str,
    spec: &CruiseControlSpec,
    api: Option<&Secret>,
    ca: Option<&Secret>,
) -> (Engine, Option<Access>) {
    let engine = |missing_secret| Engine { is_ours: is_ours(spec), missing_secret };
    let encrypted = !is_off(spec, "webserver.ssl.enable");
    let authorities = ca.map(certificates).unwrap_or_default();
    if encrypted && authorities.is_empty() {
        return (engine(Some(ca_secret(cluster))), None);
    }
    let credentials =
        if is_off(spec, "webserver.security.enable") { Some(None) } else { api.and_then(login).map(Some) };
    match credentials {
        None => (engine(Some(api_secret(cluster))), None),
        Some(credentials) => (engine(None), Some(Access { encrypted, authorities, credentials })),
    }
}

/// Whether the image is ours: the default one, or one that says so.
fn is_ours(spec: &CruiseControlSpec) -> bool {
    spec.image.is_none() || setting(spec, "evenkeel.engine").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Whether a setting that is on by default is switched off.
fn is_off(spec: &CruiseControlSpec, key: &str) -> bool {
    setting(spec, key).is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

fn setting(spec: &CruiseControlSpec, key: &str) -> Option<String> {
    match spec.config.as_ref()?.get(key)? {
        Value::Bool(value) => Some(value.to_string()),
        Value::String(value) => Some(value.trim().to_owned()),
        _ => None,
    }
}

fn data(secret: &Secret) -> impl Iterator<Item = (&String, &ByteString)> {
    secret.data.iter().flat_map(BTreeMap::iter)
}

fn certificates(secret: &Secret) -> Vec<u8> {
    let mut all = Vec::new();
    for (_, pem) in data(secret).filter(|(key, _)| key.ends_with(CERTIFICATE)) {
        all.extend_from_slice(&pem.0);
        // Not every file ends its last line, and two certificates on one line are none.
        all.push(b'\n');
    }
    all
}

fn login(secret: &Secret) -> Option<Basic> {
    let (_, password) = data(secret).find(|(key, _)| *key == PASSWORD_KEY)?;
    let password = std::str::from_utf8(&password.0).ok()?.trim_end();
    (!password.is_empty()).then(|| Basic::new(USER, password))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(entries: &[(&str, &str)]) -> Secret {
        let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
        Secret { data: Some(entries.iter().map(entry).collect()), ..Secret::default() }
    }

    fn spec(value: Value) -> CruiseControlSpec {
        serde_json::from_value(value).unwrap()
    }

    fn missing(spec: &CruiseControlSpec, api: Option<&Secret>, ca: Option<&Secret>) -> Option<String> {
        let (engine, access) = read("c", spec, api, ca);
        assert_eq!(engine.missing_secret.is_some(), access.is_none());
        engine.missing_secret
    }

    #[test]
    fn both_secrets_are_needed_with_what_should_be_in_them() {
        let api = secret(&[(PASSWORD_KEY, "secret\n"), ("healthcheck.password", "x")]);
        let ca = secret(&[("ca.crt", "NEW"), ("ca-2026.crt", "OLD"), ("ca.p12", "no")]);
        let plain = CruiseControlSpec::default();
        let (engine, access) = read("c", &plain, Some(&api), Some(&ca));
        assert_eq!(engine, Engine { is_ours: true, missing_secret: None });
        let access = access.unwrap();
        assert_eq!(access.credentials, Some(Basic::new(USER, "secret")));
        assert_eq!(String::from_utf8(access.authorities).unwrap(), "OLD\nNEW\n");
        assert!(access.encrypted);

        let ca_name = Some("c-cluster-ca-cert".to_owned());
        let api_name = Some("c-cruise-control-api".to_owned());
        assert_eq!(missing(&plain, Some(&api), None), ca_name);
        assert_eq!(missing(&plain, Some(&api), Some(&secret(&[("ca.p12", "no")]))), ca_name);
        assert_eq!(missing(&plain, None, Some(&ca)), api_name);
        assert_eq!(missing(&plain, Some(&secret(&[])), Some(&ca)), api_name);
        assert_eq!(missing(&plain, Some(&secret(&[(PASSWORD_KEY, "")])), Some(&ca)), api_name);
    }

    #[test]
    fn what_is_switched_off_is_not_asked_for() {
        let open = spec(json!({"config": {"webserver.security.enable": false}}));
        let ca = secret(&[("ca.crt", "x")]);
        assert_eq!(read("c", &open, None, Some(&ca)).1.unwrap().credentials, None);
        let bare = spec(json!({"config": {"webserver.security.enable": "False", "webserver.ssl.enable": "false"}}));
        let access = read("c", &bare, None, None).1.unwrap();
        assert_eq!((access.encrypted, access.credentials), (false, None));
    }

    #[test]
    fn the_default_image_is_ours_and_another_one_if_it_says_so() {
        assert!(is_ours(&CruiseControlSpec::default()));
        assert!(!is_ours(&spec(json!({"image": "linkedin"}))));
        assert!(is_ours(&spec(json!({"image": "mirror/evenkeel", "config": {"evenkeel.engine": true}}))));
        assert!(is_ours(&spec(json!({"image": "mirror/evenkeel", "config": {"evenkeel.engine": "true"}}))));
    }
}
