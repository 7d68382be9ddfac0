//! Streams inside one process, for tests under paused time: no sockets, so tokio's clock may jump.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{io::DuplexStream, sync::mpsc};

use super::{Address, ConnectError, Connector, Opening, Stream};

/// Bytes in flight each way before a writer waits.
const PIPE: usize = 256 * 1024;

/// Addresses that exist in this process only; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    listeners: Arc<Mutex<BTreeMap<Address, mpsc::UnboundedSender<DuplexStream>>>>,
}

impl Memory {
    /// Listens at `address`, in place of whoever did before.
    pub fn listen(&self, address: Address) -> MemoryListener {
        let (dialled, arriving) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(address, dialled);
        MemoryListener { arriving }
    }
}

/// The listening side. Dropping it frees the address.
#[derive(Debug)]
pub struct MemoryListener {
    arriving: mpsc::UnboundedReceiver<DuplexStream>,
}

impl MemoryListener {
    /// The next stream that a client opened; `None` once nobody can open one any more.
    pub async fn accept(&mut self) -> Option<DuplexStream> {
        self.arriving.recv().await
    }
}

impl Connector for Memory {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let refused = || ConnectError::Unreachable(io::ErrorKind::ConnectionRefused.into());
        let opened = match listeners.get(address) {
            Some(listener) => listener.send(theirs).map(|()| Box::new(ours) as Stream).map_err(|_| refused()),
            None => Err(refused()),
        };
        Box::pin(std::future::ready(opened))
    }

    fn is_private(&self) -> bool {
        true
    }
}
