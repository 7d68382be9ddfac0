use std::sync::Arc;

use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use serde_json::json;

use super::*;
use crate::kafka::testing::{authority as of_harbour, harbour, now};

fn is_good_for(secret: &Secret, prefix: &str, authority: &Authority, host: &str, after_days: u64) -> bool {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(der(&authority.certificate)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let leaf = text(Some(secret), &format!("{prefix}.crt")).unwrap();
    let seconds = u64::try_from(now().as_second()).unwrap() + after_days * 86_400;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let host = ServerName::try_from(host.to_owned()).unwrap();
    verifier.verify_server_cert(&der(&leaf), &[], &host, &[], time).is_ok()
}

#[test]
fn an_authority_is_made_once_and_kept() {
    let model = harbour().model();
    let (made, secrets) = authority(&model, Which::Cluster, None, None, now()).unwrap();
    let names: Vec<String> = secrets.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["harbour-cluster-ca", "harbour-cluster-ca-cert"]);
    assert_eq!(secrets[1].annotations()[annotations::CA_CERT_GENERATION], "0");
    let again = authority(&model, Which::Cluster, Some(&secrets[0]), Some(&secrets[1]), now()).unwrap();
    assert_eq!(again, (made.clone(), Vec::new()));
    // The operator died between the two: the key that is there is used.
    let (mended, rest) = authority(&model, Which::Cluster, Some(&secrets[0]), None, now()).unwrap();
    assert_eq!((rest.len(), &mended.key), (1, &made.key));
    // A certificate without its key cannot be mended.
    let error = authority(&model, Which::Cluster, None, Some(&secrets[1]), now()).unwrap_err();
    assert_eq!(error.to_string(), "Secret harbour-cluster-ca holds no usable ca.key");
    assert!(error.remedy().contains("ca.key"));
}

#[test]
fn an_authority_of_the_user_s_is_not_made() {
    let model = harbour().with("/spec/clientsCa", json!({"generateCertificateAuthority": false})).model();
    assert!(authority(&model, Which::Clients, None, None, now()).is_err());
    let (_, secrets) = authority(&harbour().model(), Which::Clients, None, None, now()).unwrap();
    assert!(authority(&model, Which::Clients, None, Some(&secrets[1]), now()).unwrap().1.is_empty());
}

#[test]
fn secrets_of_an_authority_may_outlive_the_cluster() {
    let model = harbour().with("/spec/clusterCa", json!({"generateSecretOwnerReference": false})).model();
    let (_, secrets) = authority(&model, Which::Cluster, None, None, now()).unwrap();
    assert!(secrets.iter().all(|secret| secret.owner_references().is_empty()));
}

#[test]
fn nodes_are_known_by_all_their_names() {
    let mut written = harbour();
    written.settings.extra_names = vec!["127.0.0.1".to_owned()];
    let model = written.model();
    let authority = of_harbour(&model);
    let secret = of_node(&model, &model.nodes[&1], &authority, None, now()).unwrap().unwrap();
    for host in [
        "harbour-brokers-1.harbour-kafka-brokers.sea.svc",
        "harbour-brokers-1.harbour-kafka-brokers.sea.svc.cluster.local",
        "harbour-kafka-bootstrap.sea.svc",
        "harbour-kafka-brokers",
        "127.0.0.1",
    ] {
        assert!(is_good_for(&secret, "harbour-brokers-1", &authority, host, 0), "{host}");
    }
    assert!(!is_good_for(
        &secret,
        "harbour-brokers-1",
        &authority,
        "harbour-brokers-2.harbour-kafka-brokers.sea.svc",
        0
    ));
    assert!(is_good_for(&secret, "harbour-brokers-1", &authority, "127.0.0.1", 364));
    assert!(!is_good_for(&secret, "harbour-brokers-1", &authority, "127.0.0.1", 366));
    assert!(!is_good_for(&secret, "harbour-brokers-1", &of_harbour(&model), "127.0.0.1", 0), "another authority");

    let keystore = text(Some(&secret), KEYSTORE).unwrap();
    assert!(keystore.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert_eq!(keystore.matches("BEGIN CERTIFICATE").count(), 2);
    // What is complete stays; what is not is completed without a new key.
    assert_eq!(of_node(&model, &model.nodes[&1], &authority, Some(&secret), now()).unwrap(), None);
    let mut partly = secret.clone();
    partly.data.as_mut().unwrap().remove(KEYSTORE);
    let mended = of_node(&model, &model.nodes[&1], &authority, Some(&partly), now()).unwrap().unwrap();
    assert_eq!(mended.data, secret.data);
    assert_eq!(certificate_hash(&mended), certificate_hash(&secret));
}

#[test]
fn what_another_authority_has_signed_is_made_anew() {
    let model = harbour().model();
    let (old, new) = (of_harbour(&model), of_harbour(&model));
    let secret = of_node(&model, &model.nodes[&1], &old, None, now()).unwrap().unwrap();
    let renewed = of_node(&model, &model.nodes[&1], &new, Some(&secret), now()).unwrap().unwrap();
    assert!(is_good_for(&renewed, "harbour-brokers-1", &new, "harbour-kafka-bootstrap.sea.svc", 0));
    assert_ne!(certificate_hash(&renewed), certificate_hash(&secret), "so the pod is restarted");
    assert_eq!(of_node(&model, &model.nodes[&1], &new, Some(&renewed), now()).unwrap(), None);
}

#[test]
fn what_runs_out_is_said_a_month_before() {
    let model = harbour().model();
    let secret = of_operator(&model, &of_harbour(&model), None, now()).unwrap().unwrap();
    let key = leaf_key(&secret).unwrap();
    let after = |days: i64| expiry(&secret, key, now() + SignedDuration::from_hours(24 * days));
    assert_eq!(key, "cluster-operator.crt");
    assert_eq!((after(0), after(333)), (None, None));
    let said = after(340).unwrap();
    assert!(said.starts_with("cluster-operator.crt in Secret harbour-cluster-operator-certs runs out on "), "{said}");
    assert!(after(366).unwrap().contains(" ran out on "));
    assert_eq!(expiry(&secret, "nothing", now()), None);
}

#[test]
fn the_engine_and_the_operator_have_their_own() {
    let model = harbour().model();
    let authority = of_harbour(&model);
    let engine = of_engine(&model, &authority, None, now()).unwrap().unwrap();
    for host in ["harbour-cruise-control.sea.svc", "localhost", "harbour-cruise-control"] {
        assert!(is_good_for(&engine, "cruise-control", &authority, host, 0), "{host}");
    }
    let operator = of_operator(&model, &authority, None, now()).unwrap().unwrap();
    let keys: Vec<&str> = operator.data.iter().flatten().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["cluster-operator.crt", "cluster-operator.key", "keystore.pem"]);
    assert_ne!(certificate_hash(&engine), certificate_hash(&operator));
}
