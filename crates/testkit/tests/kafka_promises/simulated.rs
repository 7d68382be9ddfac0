//! Simulated brokers in this process: over pipes, under paused time; and, for promises about certificates and
//! passwords, over sockets in real time.

use std::{path::PathBuf, sync::Arc};

use evenkeel_kafka::{
    Address,
    connect::{Connector, Tcp},
};
use evenkeel_sim::{
    BrokerId, Cluster, Options,
    broker::login::Users,
    cluster::{BrokerSpec, Fault},
    serve::{Listener, Pipes, World},
};
use evenkeel_testkit::{certificates::Certificates, real_kafka};
use tempfile::TempDir;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};

const USERS: [(&str, &str); 2] = [("admin", "admin-of-the-simulation"), ("guest", "guest-of-the-simulation")];
/// As the real ones are told.
const SESSION_MS: i64 = 2_000;
/// Long enough for all to be registered.
const WARM_UP_MS: i64 = 1_000;

pub(crate) struct Simulated {
    world: World,
    pipes: Pipes,
    doors: Option<Doors>,
}

/// Listeners on sockets.
struct Doors {
    plaintext: Listener,
    sasl: Listener,
    mtls: Listener,
    certificates: Certificates,
    _folder: TempDir,
}

impl Simulated {
    /// Reached over pipes.
    pub(crate) fn over_pipes(count: u8) -> Self {
        let options = Options { session_timeout: SESSION_MS, ..Options::default() };
        let specs = (0..i32::from(count)).zip(["a", "b", "c"].into_iter().cycle());
        let mut cluster = Cluster::new(options, specs.map(|(id, rack)| spec(id, rack)));
        cluster.tick(WARM_UP_MS);
        let world = World::new(cluster);
        Self { pipes: Pipes::new(world.clone()), world, doors: None }
    }

    /// Reached over sockets as well, with and without certificates and passwords.
    pub(crate) async fn with_doors(count: u8) -> Self {
        let mut simulated = Self::over_pipes(count);
        let folder = tempfile::tempdir().expect("a folder");
        let certificates = Certificates::make(folder.path()).expect("certificates");
        let plain = || Listener::plain(simulated.world.clone());
        let users = USERS.iter().fold(Users::default(), |users, (name, password)| users.with(name, password));
        let doors = Doors {
            plaintext: plain(),
            sasl: plain().with_tls(acceptor(&certificates, WebPkiClientVerifier::no_client_auth())).with_users(users),
            mtls: plain().with_tls(acceptor(&certificates, asks_for_certificates(&certificates))),
            certificates,
            _folder: folder,
        };
        for listener in [&doors.plaintext, &doors.sasl, &doors.mtls] {
            for id in 0..i32::from(count) {
                listener.open_tcp(BrokerId(id), 0).await.expect("a free port");
            }
        }
        simulated.doors = Some(doors);
        simulated
    }

    pub(crate) fn connector(&self) -> Arc<dyn Connector> {
        if self.doors.is_some() { Arc::new(Tcp) } else { Arc::new(self.pipes.connector()) }
    }

    pub(crate) fn address(&self, broker: i32) -> Address {
        if self.doors.is_some() {
            let all = self.bootstrap(real_kafka::Listener::Plaintext);
            let nth = usize::try_from(broker).expect("an id of the first");
            return all.split(',').nth(nth).expect("a broker").parse().expect("an address");
        }
        self.pipes.address(BrokerId(broker))
    }

    pub(crate) fn bootstrap(&self, listener: real_kafka::Listener) -> String {
        use real_kafka::Listener::{Mtls, Plaintext, SaslSsl};
        match (&self.doors, listener) {
            (None, Plaintext) => self.pipes.listener().bootstrap(),
            (Some(doors), Plaintext) => doors.plaintext.bootstrap(),
            (Some(doors), SaslSsl) => doors.sasl.bootstrap(),
            (Some(doors), Mtls) => doors.mtls.bootstrap(),
            (None, _) => panic!("this cluster has one door"),
        }
    }

    pub(crate) fn log_dirs(broker: i32) -> Vec<PathBuf> {
        dirs(broker).map(PathBuf::from).to_vec()
    }

    pub(crate) fn stop(&self, broker: i32) {
        self.world.with(|cluster| cluster.stop_broker(BrokerId(broker)));
    }

    pub(crate) fn kill(&self, broker: i32) {
        self.world.with(|cluster| cluster.crash_broker(BrokerId(broker)));
    }

    pub(crate) fn start(&self, broker: i32) {
        self.world.with(|cluster| cluster.start_broker(BrokerId(broker)));
    }

    pub(crate) fn suffer(&self, fault: &Fault) {
        self.world.with(|cluster| cluster.suffer(fault));
    }

    pub(crate) fn add(&self, broker: i32, rack: &str) {
        self.pipes.open(BrokerId(broker));
        self.world.with(|cluster| cluster.add_broker(spec(broker, rack)));
    }

    pub(crate) fn certificates(&self) -> &Certificates {
        &self.doors.as_ref().expect("a cluster with doors").certificates
    }

    pub(crate) fn password(&self, user: &str) -> &'static str {
        USERS.iter().find(|(name, _)| *name == user).expect("a user").1
    }
}

fn spec(id: i32, rack: &str) -> BrokerSpec {
    let dirs = dirs(id);
    BrokerSpec::new(id).in_rack(rack).with_dirs(dirs.iter().map(String::as_str))
}

fn dirs(broker: i32) -> [String; 2] {
    ["d0", "d1"].map(|dir| format!("/simulated/{broker}/{dir}"))
}

fn acceptor(certificates: &Certificates, clients: Arc<dyn ClientCertVerifier>) -> TlsAcceptor {
    TlsAcceptor::from(Arc::new(certificates.server(clients).expect("a certificate with its key")))
}

fn asks_for_certificates(certificates: &Certificates) -> Arc<dyn ClientCertVerifier> {
    let mut authorities = RootCertStore::empty();
    authorities
        .add(CertificateDer::from_pem_file(certificates.authority()).expect("an authority"))
        .expect("a good one");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider).build().expect("a verifier")
}
