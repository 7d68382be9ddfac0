//! Brokers to talk to, and names for topics that belong to one promise.

use std::time::Duration;

use evenkeel_kafka::connect::{Connector, Stream, Tcp};
use evenkeel_testkit::real_kafka::{Cluster, Listener};

/// How long something may take that the other side does on its own time. Generous, because the real arm shares a
/// small machine with compilers; nothing waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Four brokers, 0 to 3, in the racks a, b, c and a, with two log directories each; and a name of the promise's own.
pub(crate) struct World {
    cluster: &'static Cluster,
    name: String,
}

/// Real brokers, shared by all promises of one run.
pub(crate) async fn real(promise: &str) -> World {
    World { cluster: Cluster::shared().await.expect("real brokers"), name: promise.replace('_', "-") }
}

impl World {
    /// A name for a topic or another thing that no other promise uses.
    pub(crate) fn name(&self, thing: &str) -> String {
        format!("{}-{thing}", self.name)
    }

    /// A stream to a broker, for what no client would do.
    pub(crate) async fn open(&self, broker: i32) -> Stream {
        let address = self.cluster.address(broker, Listener::Plaintext).await.expect("a broker of this cluster");
        Tcp.open(&address.parse().expect("an address")).await.expect("a broker that listens")
    }
}
