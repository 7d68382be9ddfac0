//! How the engine of a Kafka is reached, and as whom: read from the Kafka and from two Secrets. It is spoken with over
//! TLS only: whoever could switch that off could read the operator's password.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_api::kafka::CruiseControlSpec;
use evenkeel_rest::client::{Basic, Client, Limits};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::kafka::engine::{OPERATOR, PORT, REPORTER, SAMPLER, ZERO_TOUCH};
use crate::kafka::names::Names;
use crate::seams::{ClusterRef, Context, EngineService, Trust, engine_host};

const PATH: &str = "kafkacruisecontrol";
const CERTIFICATE: &str = ".crt";
/// Says that an image is ours, though it has another name.
pub(crate) const OURS: &str = "evenkeel.engine";
const WINDOW: &str = "partition.metrics.window.ms";
/// What Strimzi configures where nobody else does.
const DEFAULT_WINDOW: Duration = Duration::from_secs(300);
/// No answer of an engine that is read is larger. Ours are told to stay far below; a plan of another Cruise Control has
/// some 200 bytes for each partition that changes.
const LARGEST_ANSWER: usize = 64 << 20;
const SECURED: &str = "webserver.security.enable";

/// How an engine is reached, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Certificates of the authorities to trust, in PEM: several while one is being renewed.
    pub authorities: Vec<u8>,
    /// Who asks. None: the engine wants to know nobody's name.
    pub credentials: Option<Basic>,
}

/// How to reach the engine of a cluster, or the name of the Secret that is missing for that.
pub(crate) fn read(
    names: &Names,
    spec: &CruiseControlSpec,
    api: Option<&Secret>,
    ca: Option<&Secret>,
) -> Result<Access, String> {
    let authorities = ca.map(certificates).unwrap_or_default();
    if authorities.is_empty() {
        return Err(names.cluster_ca_cert());
    }
    let credentials =
        if is_secured(spec) { Some(api.and_then(login).ok_or_else(|| names.engine_api())?) } else { None };
    Ok(Access { authorities, credentials })
}

/// A client of the engine of a cluster. It connects when it is first asked something.
pub(crate) async fn connect(
    context: &Context,
    cluster: &ClusterRef,
    access: &Access,
) -> Result<Client<EngineService>, String> {
    // The engine knows the operator by its password, not by its certificate.
    let trust = Trust { authorities: access.authorities.clone(), identity: None };
    let service = context.engines.service(cluster, &trust).await.map_err(|error| crate::error::told(&error))?;
    let base = format!("https://{}:{PORT}/{PATH}", engine_host(cluster));
    let base = base.parse().map_err(|error: http::uri::InvalidUri| format!("{base} is no address: {error}"))?;
    let limits = Limits { body: LARGEST_ANSWER, ..Limits::default() };
    let client = Client::new(service, base).with_limits(limits).with_room(context.room.clone());
    Ok(match access.credentials.clone() {
        Some(basic) => client.with_credentials(move || Some(basic.clone())),
        None => client,
    })
}

/// Whether the image is ours: what is said of it, or else whether it is the default one.
pub(crate) fn is_ours(spec: &CruiseControlSpec) -> bool {
    match setting(spec, OURS).as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => spec.image.is_none(),
    }
}

/// Whether users have to say who they are. What is neither yes nor no is yes.
pub(crate) fn is_secured(spec: &CruiseControlSpec) -> bool {
    setting(spec, SECURED).is_none_or(|value| !value.eq_ignore_ascii_case("false"))
}

/// How long the engine measures before it first plans. None: it measures from outside, and a few seconds are enough.
pub(crate) fn first_window(spec: &CruiseControlSpec) -> Option<Duration> {
    let from_outside = match setting(spec, SAMPLER) {
        Some(sampler) => sampler.ends_with(ZERO_TOUCH),
        None => setting(spec, REPORTER).as_deref() != Some("true"),
    };
    if is_ours(spec) && from_outside {
        return None;
    }
    let set = setting(spec, WINDOW).and_then(|text| text.parse().ok());
    Some(set.map_or(DEFAULT_WINDOW, Duration::from_millis))
}

fn setting(spec: &CruiseControlSpec, key: &str) -> Option<String> {
    match spec.config.as_ref()?.get(key)? {
        Value::Null => None,
        Value::String(value) => Some(value.trim().to_owned()),
        other => Some(other.to_string()),
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
    let key = format!("{OPERATOR}.password");
    let (_, password) = data(secret).find(|(of, _)| **of == key)?;
    let password = std::str::from_utf8(&password.0).ok()?.trim_end();
    (!password.is_empty()).then(|| Basic::new(OPERATOR, password))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PASSWORD_KEY: &str = "rebalance-operator.password";

    fn secret(entries: &[(&str, &str)]) -> Secret {
        let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
        Secret { data: Some(entries.iter().map(entry).collect()), ..Secret::default() }
    }

    fn spec(value: Value) -> CruiseControlSpec {
        serde_json::from_value(value).unwrap()
    }

    fn access(spec: &CruiseControlSpec, api: Option<&Secret>, ca: Option<&Secret>) -> Result<Access, String> {
        read(&Names { cluster: "c".into(), namespace: "ns".into() }, spec, api, ca)
    }

    #[test]
    fn windows_have_to_fill_only_where_brokers_report() {
        let window = |config: Value| first_window(&spec(json!({"config": config})));
        assert_eq!(window(json!({})), None, "there is no reporter unless somebody says so");
        assert_eq!(window(json!({REPORTER: true})), Some(DEFAULT_WINDOW));
        assert_eq!(window(json!({REPORTER: true, WINDOW: 2000})), Some(Duration::from_secs(2)));
        assert_eq!(window(json!({REPORTER: true, SAMPLER: "x.ZeroTouchSampler"})), None);
        assert_eq!(window(json!({SAMPLER: "x.CruiseControlMetricsReporterSampler"})), Some(DEFAULT_WINDOW));
        let theirs = spec(json!({"image": "linkedin", "config": {}}));
        assert_eq!(first_window(&theirs), Some(DEFAULT_WINDOW), "another engine measures in no other way");
    }

    #[test]
    fn both_secrets_are_needed_with_what_should_be_in_them() {
        let api = secret(&[(PASSWORD_KEY, "secret\n"), ("healthcheck.password", "x")]);
        let ca = secret(&[("ca.crt", "NEW"), ("ca-2026.crt", "OLD"), ("ca.p12", "no")]);
        let plain = CruiseControlSpec::default();
        let found = access(&plain, Some(&api), Some(&ca)).unwrap();
        assert_eq!(found.credentials, Some(Basic::new("rebalance-operator", "secret")));
        assert_eq!(String::from_utf8(found.authorities).unwrap(), "OLD\nNEW\n");

        let ca_name = "c-cluster-ca-cert".to_owned();
        let api_name = "c-cruise-control-api".to_owned();
        assert_eq!(access(&plain, Some(&api), None), Err(ca_name.clone()));
        assert_eq!(access(&plain, Some(&api), Some(&secret(&[("ca.p12", "no")]))), Err(ca_name));
        assert_eq!(access(&plain, None, Some(&ca)), Err(api_name.clone()));
        assert_eq!(access(&plain, Some(&secret(&[])), Some(&ca)), Err(api_name.clone()));
        assert_eq!(access(&plain, Some(&secret(&[(PASSWORD_KEY, "")])), Some(&ca)), Err(api_name));
    }

    #[test]
    fn a_password_is_needed_unless_that_is_switched_off() {
        let ca = secret(&[("ca.crt", "x")]);
        for off in [json!(false), json!("False"), json!(" false ")] {
            let open = spec(json!({"config": {"webserver.security.enable": off}}));
            assert_eq!(access(&open, None, Some(&ca)).unwrap().credentials, None);
        }
        for on in [json!(true), json!("yes"), json!(null), json!(1)] {
            assert!(is_secured(&spec(json!({"config": {"webserver.security.enable": on}}))));
        }
    }

    #[test]
    fn the_default_image_is_ours_and_another_one_if_it_says_so() {
        assert!(is_ours(&CruiseControlSpec::default()));
        assert!(!is_ours(&spec(json!({"config": {"evenkeel.engine": false}}))), "the operator was told of another");
        assert!(!is_ours(&spec(json!({"image": "linkedin"}))));
        assert!(!is_ours(&spec(json!({"image": "linkedin", "config": {"evenkeel.engine": "TRUE"}}))));
        assert!(is_ours(&spec(json!({"image": "mirror/evenkeel", "config": {"evenkeel.engine": true}}))));
        assert!(is_ours(&spec(json!({"image": "mirror/evenkeel", "config": {"evenkeel.engine": "true"}}))));
    }
}
