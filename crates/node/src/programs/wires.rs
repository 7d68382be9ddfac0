//! How the programs of a node reach each other: over loopback, or inside this process, which works under paused time.
//! Either way a program is reached at 127.0.0.1 and a port of its own; names of pods and Services lead there through
//! the node's table.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use evenkeel_kafka::Address;
use evenkeel_kafka::connect::{ConnectError, Connector, Memory, Opening, Tcp};

use crate::addresses::AddressTable;

/// Where programs listen, and how they are dialled. Clones are the same wires.
#[derive(Debug, Clone)]
pub enum Wires {
    /// Sockets on 127.0.0.1.
    Loopback,
    /// Pipes in memory.
    Pipes(Pipes),
}

/// Pipes in memory. Ports are numbers that nobody else has.
#[derive(Debug, Clone)]
pub struct Pipes {
    memory: Memory,
    next: Arc<AtomicU16>,
}

impl Wires {
    /// Pipes in memory.
    pub fn pipes() -> Self {
        Self::Pipes(Pipes { memory: Memory::default(), next: Arc::new(AtomicU16::new(20_000)) })
    }

    /// Dials names as `table` resolves them.
    pub fn connector(&self, table: AddressTable) -> Arc<dyn Connector> {
        let below: Arc<dyn Connector> = match self {
            Self::Loopback => Arc::new(Tcp),
            Self::Pipes(pipes) => Arc::new(pipes.memory.clone()),
        };
        Arc::new(ByTable { table, below })
    }

    /// What dials a program at its real address, past every table, if that is over pipes.
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Loopback => None,
            Self::Pipes(pipes) => Some(&pipes.memory),
        }
    }
}

impl Pipes {
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A port that nobody has.
    pub(super) fn free_port(&self) -> u16 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Where a port of this machine is dialled.
pub(super) fn loopback(port: u16) -> Address {
    Address { host: "127.0.0.1".to_owned(), port }
}

/// Looks names up, and dials what it finds.
#[derive(Debug)]
struct ByTable {
    table: AddressTable,
    below: Arc<dyn Connector>,
}

impl Connector for ByTable {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        let found = self.table.find(&address.host, address.port);
        Box::pin(async move {
            let nobody = || io::Error::new(io::ErrorKind::NotFound, format!("nothing that runs here serves {address}"));
            let mut last = ConnectError::Unreachable(nobody());
            // Behind a Service there may be several, and one of them may have just gone.
            for real in found {
                match self.below.open(&dialled(real)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })
    }

    fn is_private(&self) -> bool {
        self.below.is_private()
    }
}

fn dialled(real: SocketAddr) -> Address {
    Address { host: real.ip().to_string(), port: real.port() }
}
