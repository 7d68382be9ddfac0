//! Who gets in, by which door, and what everybody else is told.

use std::{fs, sync::Arc, time::Duration};

use evenkeel_kafka::{
    Client, Error, Remedy, Settings,
    connect::{ConnectError, Connector, Tcp, Tls, TlsFiles},
    login::{Credentials, LogInError, Secret, scram::Hash},
};
use evenkeel_testkit::{certificates::Identity, real_kafka::Listener};

use crate::world::{PATIENCE, World};

promises_at_doors!(
    a_user_enters_with_a_password,
    a_user_with_a_wrong_password_is_turned_away,
    a_client_enters_with_a_certificate,
    a_client_without_a_good_certificate_is_turned_away,
    brokers_of_another_authority_are_not_trusted,
    renewed_certificates_are_used_by_the_next_connection,
    the_wrong_door_is_told_from_a_broken_one,
);

const BRIEFLY: Duration = Duration::from_secs(2);

async fn a_user_enters_with_a_password(world: &World) {
    for credentials in every_way(world, "admin", None) {
        let client = knock(world, Listener::SaslSsl, tls(world, None), Some(credentials));
        assert_eq!(client.describe_cluster().await.expect("an answer").brokers.len(), 4);
    }
}

async fn a_user_with_a_wrong_password_is_turned_away(world: &World) {
    for (user, password) in [("admin", "wrong-and-secret"), ("nobody", "wrong-and-secret")] {
        for credentials in every_way(world, user, Some(password)) {
            let client = knock(world, Listener::SaslSsl, tls(world, None), Some(credentials));
            let failure = client.describe_cluster().await.unwrap_err();
            assert!(
                matches!(&failure, Error::Connect { source: ConnectError::LogIn(LogInError::Refused(_)), .. }),
                "{failure:?}"
            );
            assert_eq!(failure.remedy(), Remedy::AskUser);
            assert!(!format!("{failure:?}").contains(password));
        }
    }
}

async fn a_client_enters_with_a_certificate(world: &World) {
    let admin = world.brokers.certificates().admin();
    let client = knock(world, Listener::Mtls, tls(world, Some(admin)), None);
    assert_eq!(client.describe_cluster().await.expect("an answer").brokers.len(), 4);
}

async fn a_client_without_a_good_certificate_is_turned_away(world: &World) {
    for identity in [None, Some(world.brokers.certificates().stranger())] {
        let client = knock(world, Listener::Mtls, tls(world, identity), None);
        let failure = client.describe_cluster().await.unwrap_err();
        assert!(matches!(failure, Error::Connect { .. }), "{failure:?}");
        assert_eq!(failure.remedy(), Remedy::AskUser, "{failure:?}");
    }
}

async fn brokers_of_another_authority_are_not_trusted(world: &World) {
    let files = TlsFiles { authorities: Some(world.brokers.certificates().other_authority()), identity: None };
    let connector = Arc::new(Tls::new(files).expect("an authority"));
    let admin = every_way(world, "admin", None).remove(0);
    let failure = knock(world, Listener::SaslSsl, connector, Some(admin)).describe_cluster().await.unwrap_err();
    assert!(matches!(failure, Error::Connect { source: ConnectError::Tls(_), .. }), "{failure:?}");
    assert_eq!(failure.remedy(), Remedy::AskUser);
}

async fn renewed_certificates_are_used_by_the_next_connection(world: &World) {
    let certificates = world.brokers.certificates();
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["authority", "certificate", "key"].map(|name| folder.path().join(name));
    let [authority, certificate, key] = &files;
    let renew = |Identity { certificate: from, key: its_key }: Identity| {
        fs::copy(from, certificate).expect("a certificate");
        fs::copy(its_key, key).expect("a key");
    };
    fs::copy(certificates.authority(), authority).expect("an authority");
    renew(certificates.admin());
    let identity = Some((certificate.clone(), key.clone()));
    let connector = Arc::new(Tls::new(TlsFiles { authorities: Some(authority.clone()), identity }).expect("good ones"));
    let enter = || knock(world, Listener::Mtls, Arc::clone(&connector) as Arc<dyn Connector>, None);

    let early = enter();
    early.describe_cluster().await.expect("an answer");
    renew(certificates.stranger());
    early.describe_cluster().await.expect("who is in stays in");
    let late = enter();
    assert_eq!(late.describe_cluster().await.unwrap_err().remedy(), Remedy::AskUser);
    renew(certificates.admin());
    late.describe_cluster().await.expect("the same client, with what is there now");
    // The same for whom we trust.
    fs::copy(certificates.other_authority(), authority).expect("an authority");
    assert_eq!(enter().describe_cluster().await.unwrap_err().remedy(), Remedy::AskUser);
    fs::copy(certificates.authority(), authority).expect("an authority");
    enter().describe_cluster().await.expect("an answer");
}

async fn the_wrong_door_is_told_from_a_broken_one(world: &World) {
    let fails = async |listener, connector: Arc<dyn Connector>| {
        knock(world, listener, connector, None).describe_cluster().await.unwrap_err()
    };
    // No TLS where TLS is wanted: brokers answer with an alert.
    let failure = fails(Listener::SaslSsl, Arc::new(Tcp)).await;
    let Error::Connect { source: ConnectError::Greeting(call), .. } = &failure else { panic!("{failure:?}") };
    assert!(format!("{call:?}").contains("Tls"), "{call:?}");
    assert_eq!(failure.remedy(), Remedy::AskUser);
    // No login where one is wanted: they greet, and hang up at whatever is asked next.
    let failure = fails(Listener::SaslSsl, tls(world, None)).await;
    assert!(matches!(failure, Error::Connect { source: ConnectError::LoginWanted, .. }), "{failure:?}");
    assert_eq!(failure.remedy(), Remedy::AskUser);
    // TLS where none is: they hang up, as one that is about to end does too; so it is tried again for a while.
    let settings = Settings { patience: BRIEFLY, ..Settings::new(world.brokers.bootstrap(Listener::Plaintext)) };
    let failure = Client::new(tls(world, None), settings).describe_cluster().await.unwrap_err();
    assert!(matches!(failure, Error::Connect { source: ConnectError::Tls(_), .. }), "{failure:?}");
}

/// A client at one of the doors.
pub(crate) fn knock(
    world: &World,
    listener: Listener,
    connector: Arc<dyn Connector>,
    who: Option<Credentials>,
) -> Client {
    Client::new(
        connector,
        Settings { credentials: who, patience: PATIENCE, ..Settings::new(world.brokers.bootstrap(listener)) },
    )
}

pub(crate) fn tls(world: &World, identity: Option<Identity>) -> Arc<Tls> {
    let authorities = Some(world.brokers.certificates().authority());
    let identity = identity.map(|Identity { certificate, key }| (certificate, key));
    Arc::new(Tls::new(TlsFiles { authorities, identity }).expect("good certificates"))
}

pub(crate) fn every_way(world: &World, user: &str, password: Option<&str>) -> Vec<Credentials> {
    let password = Secret::new(password.unwrap_or_else(|| world.brokers.password(user)));
    let scram = |hash| Credentials::Scram { hash, username: user.to_owned(), password: password.clone() };
    vec![
        scram(Hash::Sha512),
        scram(Hash::Sha256),
        Credentials::Plain { username: user.to_owned(), password: password.clone() },
    ]
}
