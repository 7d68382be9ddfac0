//! How Kafka is spoken with.

use std::{fmt, sync::Arc, time::Duration};

use evenkeel_kafka::{
    self as kafka, Address,
    connect::{Connector, Tls, TlsError},
};

use super::{BoxFuture, ClusterRef, ServiceConnector, Services, Trust, lately::Lately};

/// The port that brokers use among themselves, and the operator with them.
pub const REPLICATION_PORT: u16 = 9091;

/// From a cluster to a client of it.
pub trait Kafkas: Send + Sync + fmt::Debug {
    /// A client of this cluster. It connects when it is first asked something.
    fn client<'a>(&'a self, of: &'a ClusterRef, trust: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>>;

    /// Nobody will ask for this cluster again soon: connections to it may go.
    fn forget(&self, of: &ClusterRef);
}

/// Why there is no way to a cluster or its engine.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// Its certificates are of no use.
    #[error("the certificates of the cluster cannot be used")]
    Certificates(#[source] TlsError),
    /// Its authorities are of no use.
    #[error("the authorities of the cluster cannot be read")]
    Authorities(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nobody knows the way, for example because a test has not laid it.
    #[error("there is no way to {0}")]
    NoWay(ClusterRef),
}

/// TLS with the operator's certificate, to the bootstrap service.
#[derive(Debug)]
pub struct TlsKafkas {
    way: Arc<dyn Connector>,
    /// Clients keep their connections.
    known: Lately<kafka::Client>,
}

impl TlsKafkas {
    /// Finds brokers by these services.
    pub fn new(services: Arc<dyn Services>) -> Self {
        Self::over(Arc::new(ServiceConnector::new(services)))
    }

    /// Dials the names of services and pods like this.
    pub fn over(way: Arc<dyn Connector>) -> Self {
        Self { way, known: Lately::default() }
    }

    fn connect(&self, of: &ClusterRef, trust: &Trust) -> Result<kafka::Client, Unreachable> {
        self.known.find(of, trust, || {
            let tls = Tls::of_pem(trust.into()).map_err(Unreachable::Certificates)?.over(Arc::clone(&self.way));
            Ok(kafka::Client::new(Arc::new(tls), settings(of)))
        })
    }
}

/// How the operator asks: not for long, because a reconciliation comes again and must not hang.
pub fn settings(of: &ClusterRef) -> kafka::Settings {
    let host = format!("{}-kafka-bootstrap.{}.svc", of.name, of.namespace);
    let mut settings = kafka::Settings::new(vec![Address { host, port: REPLICATION_PORT }]);
    settings.client_id = super::NAME.to_owned();
    settings.request_patience = Duration::from_secs(5);
    settings.patience = Duration::from_secs(10);
    settings
}

impl Kafkas for TlsKafkas {
    fn client<'a>(&'a self, of: &'a ClusterRef, trust: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        Box::pin(async move { self.connect(of, trust) })
    }

    fn forget(&self, of: &ClusterRef) {
        self.known.forget(of);
    }
}
