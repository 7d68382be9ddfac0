//! Brokers reached over pipes inside one process, for tests under paused time.

use evenkeel_kafka::{Address, connect::Memory};

use super::{Listener, World};
use crate::ids::BrokerId;

/// The doors of simulated brokers, all in memory; hand [`Pipes::connector`] to a client.
#[derive(Debug, Clone)]
pub struct Pipes {
    world: World,
    listener: Listener,
    memory: Memory,
}

impl Pipes {
    /// A door for every broker that there is. Needs a tokio runtime.
    pub fn new(world: World) -> Self {
        let pipes = Self { listener: Listener::plain(world.clone()), memory: Memory::default(), world };
        for broker in pipes.world.look(|cluster| cluster.broker_ids()) {
            pipes.open(broker);
        }
        pipes
    }

    /// What dials them.
    pub fn connector(&self) -> Memory {
        self.memory.clone()
    }

    /// What announces them.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Where a broker is reached.
    pub fn address(&self, broker: BrokerId) -> Address {
        // Ids beyond the ports there are would need names of their own; nobody simulates that many.
        Address { host: "sim".to_owned(), port: (9_000 + broker.0) as u16 }
    }

    /// A door for a broker that has joined.
    pub fn open(&self, broker: BrokerId) {
        let address = self.address(broker);
        self.listener.announce(broker, &address.host, address.port);
        let mut arriving = self.memory.listen(address);
        let listener = self.listener.clone();
        tokio::spawn(async move {
            while let Some(stream) = arriving.accept().await {
                let listener = listener.clone();
                tokio::spawn(async move {
                    if listener.is_answered(broker).await {
                        listener.serve(broker, stream).await;
                    }
                });
            }
        });
    }
}
