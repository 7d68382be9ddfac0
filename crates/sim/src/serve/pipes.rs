//! Brokers reached over pipes inside one process, for tests under paused time.

use std::sync::{Arc, Mutex};

use evenkeel_kafka::{Address, connect::Memory};

use super::{Listener, Port, World, lock};
use crate::ids::BrokerId;

/// The doors of simulated brokers, all in memory; hand [`Pipes::connector`] to a client.
#[derive(Debug, Clone)]
pub struct Pipes {
    world: World,
    listener: Listener,
    memory: Memory,
    ports: Arc<Mutex<Vec<Port>>>,
}

impl Pipes {
    /// A door for every broker that there is. Needs a tokio runtime.
    pub fn new(world: World) -> Self {
        let listener = Listener::plain(world.clone());
        let pipes = Self { listener, memory: Memory::default(), ports: Arc::default(), world };
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
        let port = self.listener.bind_pipe(broker, &self.memory, address);
        lock(&self.ports).push(port);
    }
}
