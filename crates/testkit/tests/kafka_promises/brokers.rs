//! Whose brokers a promise is made by: simulated ones or those of Apache Kafka.

use std::{path::PathBuf, sync::Arc};

use evenkeel_kafka::{Address, connect::Connector};
use evenkeel_sim::{BrokerId as SimulatedId, cluster::Fault};
#[cfg(feature = "real-kafka")]
use evenkeel_testkit::real_kafka::{BrokerSpec, Cluster, Kit};
use evenkeel_testkit::{certificates::Certificates, real_kafka::Listener};

use crate::simulated::Simulated;

/// Brokers with ids from 0, in the racks a, b, c, a, …, with two log directories each.
pub(crate) enum Brokers {
    /// A cluster of the promise's own, in this process.
    Simulated(Simulated),
    /// For promises that leave brokers as they are. One cluster for all of them: its start takes seconds.
    #[cfg(feature = "real-kafka")]
    Shared(&'static Cluster),
    /// For promises that stop brokers or change their settings.
    #[cfg(feature = "real-kafka")]
    Own(Box<Cluster>),
}

#[cfg(feature = "real-kafka")]
impl Brokers {
    pub(crate) async fn shared() -> Self {
        Self::Shared(Cluster::shared().await.expect("real brokers"))
    }

    pub(crate) async fn own(count: u8) -> Self {
        let kit = Kit::from_env().expect("a kit");
        Self::Own(Box::new(Cluster::start(kit, &BrokerSpec::several(count)).await.expect("real brokers")))
    }
}

/// Does one thing in the simulation, and another with the real cluster.
macro_rules! on {
    ($brokers:expr, $simulated:ident => $here:expr, $real:ident => $there:expr) => {
        match $brokers {
            Brokers::Simulated($simulated) => $here,
            #[cfg(feature = "real-kafka")]
            Brokers::Shared($real) => $there,
            #[cfg(feature = "real-kafka")]
            Brokers::Own($real) => $there,
        }
    };
}

impl Brokers {
    pub(crate) fn are_real(&self) -> bool {
        on!(self, _simulated => false, _real => true)
    }

    /// What reaches them through the open door.
    pub(crate) fn connector(&self) -> Arc<dyn Connector> {
        on!(self, simulated => simulated.connector(), _real => Arc::new(evenkeel_kafka::connect::Tcp))
    }

    /// Where one of them listens for everybody.
    pub(crate) async fn address(&self, broker: i32) -> Address {
        on!(self,
            simulated => simulated.address(broker),
            real => real.address(broker, Listener::Plaintext).await.expect("a broker").parse().expect("an address"))
    }

    /// Where those listen that were there from the beginning.
    pub(crate) fn bootstrap(&self, listener: Listener) -> Vec<Address> {
        let text = on!(self, simulated => simulated.bootstrap(listener), real => real.bootstrap(listener));
        text.split(',').map(|address| address.parse().expect("an address")).collect()
    }

    /// Those that were there from the beginning.
    pub(crate) fn first_ids(&self) -> Vec<i32> {
        let count = self.bootstrap(Listener::Plaintext).len();
        (0..).take(count).collect()
    }

    /// Where a broker keeps its replicas.
    pub(crate) async fn log_dirs(&self, broker: i32) -> Vec<PathBuf> {
        on!(self, _simulated => Simulated::log_dirs(broker), real => real.log_dirs(broker).await.expect("a broker"))
    }

    pub(crate) async fn stop(&self, broker: i32) {
        on!(self, simulated => simulated.stop(broker), real => real.stop_broker(broker).await.expect("a stop"));
    }

    pub(crate) async fn kill(&self, broker: i32) {
        on!(self, simulated => simulated.kill(broker), real => real.kill_broker(broker).await.expect("a broker"));
    }

    pub(crate) async fn start(&self, broker: i32) {
        on!(self, simulated => simulated.start(broker), real => real.start_broker(broker).await.expect("a start"));
    }

    pub(crate) async fn add(&self, broker: i32, rack: &str) {
        on!(self,
            simulated => simulated.add(broker, rack),
            real => real.add_broker(&BrokerSpec::new(broker, rack)).await.expect("a start"));
    }

    /// One of a broker's directories fails, counted as they are told by [`Brokers::log_dirs`].
    pub(crate) async fn break_dir(&self, broker: i32, nth: usize) {
        on!(self,
            simulated => simulated.suffer(&Fault::FailedDir(SimulatedId(broker), nth)),
            real => real.break_log_dir(broker, nth).await.expect("a directory"));
    }

    /// It is well again, with all that was in it, and the broker has been started anew.
    pub(crate) async fn mend_dir(&self, broker: i32, nth: usize) {
        on!(self,
            simulated => simulated.suffer(&Fault::MendedDir(SimulatedId(broker), nth)),
            real => real.mend_log_dir(broker, nth).await.expect("a directory"));
    }

    pub(crate) fn certificates(&self) -> &Certificates {
        on!(self, simulated => simulated.certificates(), real => real.certificates())
    }

    /// The password of a user that they know.
    pub(crate) fn password(&self, user: &str) -> &str {
        on!(self, simulated => simulated.password(user), real => real.password(user).expect("a user"))
    }
}
