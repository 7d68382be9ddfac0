//! Where production, local runs and tests differ, and nowhere else: how services are found, how Kafka and the engine
//! are spoken with, and what time it is.
//!
//! | seam | production | local run | tests under paused time |
//! |---|---|---|---|
//! | [`Services`] | [`Dns`] | [`EndpointSlices`] | either |
//! | [`Kafkas`] | [`TlsKafkas`] | the same | pipes to simulated brokers |
//! | [`Engines`] | [`HttpsEngines`] | the same | a router in this process |
//! | [`Clock`] | the machine's | the same | derived from tokio's |

mod clock;
mod context;
mod engines;
mod kafkas;
mod lately;
mod services;
mod sparing;
mod trust;

use std::{fmt, future::Future, pin::Pin};

pub use clock::Clock;
pub use context::{Context, Happening, NAME};
pub use engines::{EngineError, EngineService, Engines, HttpsEngines, engine_host};
pub use kafkas::{Kafkas, REPLICATION_PORT, TlsKafkas, Unreachable, settings as kafka_settings};
pub use services::{Dns, EndpointSlices, ServiceConnector, Services};
pub use trust::Trust;

/// What an asynchronous method of a seam gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One Kafka cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterRef {
    /// Its namespace.
    pub namespace: String,
    /// The name of its Kafka resource.
    pub name: String,
}

impl ClusterRef {
    /// The cluster of this name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ClusterRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}
