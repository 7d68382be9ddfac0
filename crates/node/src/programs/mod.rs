//! What the containers of a pod really run on a laptop.
//!
//! | container | what it is here |
//! |---|---|
//! | `kafka` | a broker of a simulated cluster ([`kafka`]), one cluster for each Kafka resource; or real Apache Kafka ([`jvm`]) |
//! | `cruise-control` with the command `evenkeel engine` | the engine itself, in a runtime of its own ([`engine`]) |
//!
//! Everything is taken from the very ConfigMaps and Secrets that a cluster's kubelet would mount. Programs find each
//! other by the names in those files, through a table ([`wires`]): names stay what they are, for TLS and HTTP. The only
//! thing that is rewritten is what brokers tell clients that do not know the table: see [`kafka`].

pub mod engine;
pub mod jvm;
pub mod kafka;
pub mod server_config;
pub mod wires;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;

use self::engine::Engines;
use self::jvm::RealBrokers;
use self::kafka::Brokers;
use crate::kubelet::program::{Launch, LaunchError, Process, Programs};

/// Runs brokers and engines.
#[derive(Debug, Clone)]
pub struct LocalPrograms {
    /// What brokers are.
    pub brokers: AnyBrokers,
    /// The engines.
    pub engines: Engines,
}

/// What brokers are here.
#[derive(Debug, Clone)]
pub enum AnyBrokers {
    /// Simulated.
    Simulated(Brokers),
    /// Apache Kafka.
    Real(RealBrokers),
}

impl AnyBrokers {
    fn programs(&self) -> &dyn Programs {
        match self {
            Self::Simulated(brokers) => brokers,
            Self::Real(brokers) => brokers,
        }
    }
}

impl Programs for LocalPrograms {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        match what.container.as_str() {
            "kafka" => self.brokers.programs().launch(what),
            "cruise-control" => self.engines.launch(what),
            other => {
                let said = format!(
                    "a local node runs containers named `kafka` (as brokers) and `cruise-control` (if its \
                     command is `evenkeel engine`), and nothing like `{other}` of the image `{}`",
                    what.image
                );
                Box::pin(std::future::ready(Err(LaunchError::NotHere(said))))
            }
        }
    }

    fn forget(&self, pod: &Pod) {
        self.brokers.programs().forget(pod);
    }

    fn discard(&self, volume: &str) {
        self.brokers.programs().discard(volume);
    }
}
