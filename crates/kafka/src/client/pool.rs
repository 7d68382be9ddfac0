//! One connection for each address, opened when it is needed and again when it has ended.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Settings, backoff::Backoff};
use crate::{
    connect::{Address, ConnectError, Connector},
    connection::{Connection, Ended},
    error::Error,
    login::{self, Credentials, LogInError},
};

#[derive(Debug)]
pub(super) struct Pool {
    connector: Arc<dyn Connector>,
    settings: Arc<Settings>,
    slots: Mutex<BTreeMap<Address, Arc<tokio::sync::Mutex<Slot>>>>,
    backoff: Mutex<Backoff>,
    /// Connections in a row, to whichever brokers, that were closed at the first request.
    shut_out: AtomicU32,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Live>,
    failures: u32,
    not_before: Option<Instant>,
}

/// So often may brokers close a connection at the first request because they are going away. Those that want a login
/// from a client without credentials do nothing else, all of them.
const SHUT_OUT_AFTER: u32 = 3;

#[derive(Debug)]
struct Live {
    connection: Connection,
    /// When the broker will want a new login.
    until: Option<Instant>,
}

impl Slot {
    fn live(&self) -> Option<&Connection> {
        let live = self.connection.as_ref()?;
        let fresh = live.connection.ended().is_none() && live.until.is_none_or(|until| Instant::now() < until);
        fresh.then_some(&live.connection)
    }
}

impl Pool {
    pub(super) fn new(connector: Arc<dyn Connector>, settings: Arc<Settings>) -> Self {
        let backoff = Mutex::new(Backoff::new(settings.seed));
        Self { connector, settings, slots: Mutex::default(), backoff, shut_out: AtomicU32::new(0) }
    }

    /// What opens its connections.
    pub(super) fn connector(&self) -> Arc<dyn Connector> {
        Arc::clone(&self.connector)
    }

    /// A pause after so many failures in a row.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        self.backoff.lock().unwrap_or_else(PoisonError::into_inner).pause(failures)
    }

    /// Whether there is a connection that could be used at once.
    pub(super) fn is_live(&self, address: &Address) -> bool {
        // A slot that is locked is being opened: not yet.
        self.slot(address).try_lock().is_ok_and(|slot| slot.live().is_some())
    }

    /// The connection to `address`, opened if need be, not before its pause is over.
    pub(super) async fn connection(&self, address: &Address, until: Instant) -> Result<Connection, Error> {
        let slot = self.slot(address);
        let late = || Error::Connect {
            address: address.clone(),
            source: ConnectError::TimedOut(self.settings.request_patience),
        };
        let mut slot = timeout_at(until, slot.lock()).await.map_err(|_| late())?;
        if let Some(connection) = slot.live() {
            if connection.is_let_in() {
                self.shut_out.store(0, Ordering::Relaxed);
            }
            return Ok(connection.clone());
        }
        if let Some(last) = slot.connection.take()
            && self.is_shut_out_after(&last.connection)
        {
            return Err(Error::Connect { address: address.clone(), source: ConnectError::LoginWanted });
        }
        if let Some(not_before) = slot.not_before {
            timeout_at(until, sleep_until(not_before)).await.map_err(|_| late())?;
        }
        let whole = self.settings.request_patience <= until.saturating_duration_since(Instant::now());
        match self.open(address, until).await {
            Ok(live) => {
                let connection = live.connection.clone();
                *slot = Slot { connection: Some(live), ..Slot::default() };
                Ok(connection)
            }
            // Who had little time left has not found out anything about the broker.
            Err(source @ ConnectError::TimedOut(_)) if !whole => {
                Err(Error::Connect { address: address.clone(), source })
            }
            Err(source) => {
                slot.failures = slot.failures.saturating_add(1);
                slot.not_before = Some(Instant::now() + self.pause(slot.failures));
                Err(Error::Connect { address: address.clone(), source })
            }
        }
    }

    /// Whether brokers have hung up at the first request so often that they must be waiting for a login, now that this
    /// connection has ended as well. Whoever comes later finds out anew.
    fn is_shut_out_after(&self, last: &Connection) -> bool {
        if !matches!(last.ended(), Some(Ended::ClosedAtFirst)) {
            self.shut_out.store(0, Ordering::Relaxed);
            return false;
        }
        let so_often = self.shut_out.fetch_add(1, Ordering::Relaxed) + 1;
        let shut_out = self.settings.credentials.is_none() && so_often >= SHUT_OUT_AFTER;
        if shut_out {
            self.shut_out.store(0, Ordering::Relaxed);
        }
        shut_out
    }

    async fn open(&self, address: &Address, until: Instant) -> Result<Live, ConnectError> {
        let patience = self.settings.request_patience.min(until.saturating_duration_since(Instant::now()));
        if let Some(Credentials::Plain { .. }) = &self.settings.credentials
            && !self.settings.allow_plaintext_password
            && !self.connector.is_private()
        {
            return Err(LogInError::PasswordInTheOpen.into());
        }
        let opening = async {
            let (id, cap, whole) = (&self.settings.client_id, self.settings.frame_cap, self.settings.request_patience);
            let stream = self.connector.open(address).await?;
            let connection = Connection::open(stream, id, cap, whole).await.map_err(ConnectError::Greeting)?;
            let lifetime = match &self.settings.credentials {
                Some(credentials) => login::log_in(&connection, credentials, whole).await?,
                None => None,
            };
            // Renewed well before the broker would close it.
            let until = lifetime.map(|lifetime| Instant::now() + lifetime.mul_f64(0.8));
            Ok(Live { connection, until })
        };
        tokio::time::timeout(patience, opening).await.unwrap_or(Err(ConnectError::TimedOut(patience)))
    }

    /// Drops the connections to addresses that are nobody's any more; whoever still waits for an answer gets it.
    pub(super) fn keep(&self, is_somebodys: impl Fn(&Address) -> bool) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|address, _| is_somebodys(address));
    }

    fn slot(&self, address: &Address) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(address.clone()).or_default())
    }
}
