//! Who is where: brokers' addresses, the controller, coordinators. What is known may be old; a call
//! that fails casts doubt on its route, and the next attempt asks anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use kafka_protocol::messages::{FindCoordinatorRequest, MetadataRequest, MetadataResponse};
use tokio::time::{Instant, timeout};

use super::{Client, To};
use crate::{
    connect::{Address, ConnectError},
    connection::Connection,
    error::{Error, Refusal},
    types::{BrokerId, message, text},
};

/// How long one broker is waited for before the next is tried as well.
const HEAD_START: Duration = Duration::from_millis(500);

/// Kafka's number for coordinators of transactions.
const TRANSACTIONS: i8 = 1;

#[derive(Debug, Default)]
pub(super) struct Routes {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    brokers: BTreeMap<BrokerId, Address>,
    controller: Option<BrokerId>,
    coordinators: BTreeMap<String, Address>,
    /// The leader, or none, of every partition of some topics.
    pub(super) leaders: BTreeMap<String, BTreeMap<i32, Option<BrokerId>>>,
    /// What is known of brokers is to be asked for anew.
    doubtful: bool,
    /// Whom a question that anybody may answer went to last.
    asked: Option<Address>,
    /// Who has answered such a one badly, and is asked after all others.
    avoided: Option<Address>,
    /// How often somebody else was looked for: the next in turn is asked.
    turns: usize,
}

impl Routes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what a failed call relied on.
    pub(super) fn doubt(&self, to: To<'_>) {
        let mut known = self.lock();
        known.doubtful = true;
        known.ask_another();
        if let To::Coordinator(id) = to {
            known.coordinators.remove(id);
        }
    }
}

impl Known {
    /// Whoever was asked last may have an old picture: the next question goes to somebody else, if there is one.
    pub(super) fn ask_another(&mut self) {
        self.avoided.clone_from(&self.asked);
        self.turns = self.turns.wrapping_add(1);
    }

    fn learn(&mut self, answer: &MetadataResponse) {
        self.brokers = answer
            .brokers
            .iter()
            .filter_map(|broker| {
                let port = u16::try_from(broker.port).ok()?;
                Some((BrokerId(broker.node_id.0), Address { host: broker.host.to_string(), port }))
            })
            .collect();
        self.controller = BrokerId::of(answer.controller_id);
        self.doubtful = false;
    }
}

impl Client {
    /// A connection to whoever is to be asked.
    pub(super) async fn connect(&self, to: To<'_>, until: Instant) -> Result<(Address, Connection), Error> {
        let address = match to {
            To::Any => return self.connect_any(until).await,
            To::Broker(id) => self.address_of(id, until).await?,
            To::Controller => match self.controller(until).await? {
                Some(address) => address,
                None => return self.connect_any(until).await,
            },
            To::Coordinator(id) => self.coordinator(id, until).await?,
        };
        let connection = self.inner.pool.connection(&address, until).await?;
        Ok((address, connection))
    }

    /// Any broker that can be reached: those with a live connection first, then those the cluster
    /// named, then the bootstrap addresses. One that is silent does not hold up those after it; one that was asked
    /// before a call failed comes last.
    async fn connect_any(&self, until: Instant) -> Result<(Address, Connection), Error> {
        let (mut addresses, avoided): (Vec<Address>, _) = {
            let known = self.inner.routes.lock();
            let mut addresses: Vec<Address> = known.brokers.values().cloned().collect();
            let turns = known.turns.checked_rem(addresses.len()).unwrap_or(0);
            addresses.rotate_left(turns);
            (addresses, known.avoided.clone())
        };
        for address in &self.inner.settings.bootstrap {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        addresses.sort_by_key(|address| (avoided.as_ref() == Some(address), !self.inner.pool.is_live(address)));
        let mut last = Error::UnknownBroker { broker: -1 };
        let mut waiting = addresses.into_iter();
        let mut opening = FuturesUnordered::new();
        loop {
            match waiting.next() {
                Some(address) => opening.push(async move {
                    let opened = self.inner.pool.connection(&address, until).await;
                    opened.map(|connection| (address, connection))
                }),
                None if opening.is_empty() => return Err(last),
                None => {}
            }
            // Each ends by itself, so the last of them need no bound here.
            let first = match waiting.len() {
                0 => opening.next().await,
                _ => timeout(HEAD_START, opening.next()).await.unwrap_or(None),
            };
            match first {
                Some(Ok(opened)) => {
                    self.inner.routes.lock().asked = Some(opened.0.clone());
                    return Ok(opened);
                }
                // Brokers of one listener want a login all or none, so the others need not be asked.
                Some(Err(error @ Error::Connect { source: ConnectError::LoginWanted, .. })) => return Err(error),
                Some(Err(error)) => last = error,
                // All are silent so far: others may be faster.
                None => {}
            }
        }
    }

    async fn address_of(&self, id: BrokerId, until: Instant) -> Result<Address, Error> {
        let trusted = {
            let known = self.inner.routes.lock();
            known.brokers.get(&id).filter(|_| !known.doubtful).cloned()
        };
        if let Some(address) = trusted {
            return Ok(address);
        }
        self.refresh_brokers(until).await?;
        self.inner.routes.lock().brokers.get(&id).cloned().ok_or(Error::UnknownBroker { broker: id.0 })
    }

    async fn controller(&self, until: Instant) -> Result<Option<Address>, Error> {
        let known_one = |known: &Known| known.controller.and_then(|id| known.brokers.get(&id).cloned());
        let trusted = {
            let known = self.inner.routes.lock();
            known_one(&known).filter(|_| !known.doubtful)
        };
        if trusted.is_some() {
            return Ok(trusted);
        }
        self.refresh_brokers(until).await?;
        Ok(known_one(&self.inner.routes.lock()))
    }

    /// Asks for the live brokers and nothing else.
    async fn refresh_brokers(&self, until: Instant) -> Result<(), Error> {
        let operation = "read the cluster's brokers";
        let (address, connection) = self.connect_any(until).await?;
        let request = MetadataRequest::default().with_topics(Some(Vec::new())).with_allow_auto_topic_creation(false);
        let answer = connection.call(&request, self.request_patience(until)).await.map_err(|source| Error::Call {
            operation,
            address,
            source,
        })?;
        Refusal::check(answer.error_code, None).map_err(|refusal| Error::Refused { operation, refusal })?;
        self.learn_brokers(&answer);
        Ok(())
    }

    /// Takes over brokers and controller, and lets go of addresses that are nobody's any more.
    pub(super) fn learn_brokers(&self, answer: &MetadataResponse) {
        let mut known = self.inner.routes.lock();
        known.learn(answer);
        let others = self.inner.settings.bootstrap.iter().chain(known.coordinators.values());
        let somebodys: BTreeSet<&Address> = known.brokers.values().chain(others).collect();
        self.inner.pool.keep(|address| somebodys.contains(address));
    }

    async fn coordinator(&self, id: &str, until: Instant) -> Result<Address, Error> {
        if let Some(address) = self.inner.routes.lock().coordinators.get(id) {
            return Ok(address.clone());
        }
        let operation = "find a coordinator";
        let (address, connection) = self.connect_any(until).await?;
        let failed = |source| Error::Call { operation, address: address.clone(), source };
        let version = connection.version_of::<FindCoordinatorRequest>().map_err(failed)?;
        // Since version 4 several can be asked for at once.
        let batched = version >= 4;
        let request = FindCoordinatorRequest::default().with_key_type(TRANSACTIONS);
        let request = if batched { request.with_coordinator_keys(vec![text(id)]) } else { request.with_key(text(id)) };
        let mut answer = connection.call_in(&request, version, self.request_patience(until)).await.map_err(failed)?;
        let (code, why, host, port) = match answer.coordinators.pop() {
            Some(found) => (found.error_code, found.error_message, found.host, found.port),
            None => (answer.error_code, answer.error_message, answer.host, answer.port),
        };
        Refusal::check(code, message(why)).map_err(|refusal| Error::Refused { operation, refusal })?;
        // A coordinator at no port is none.
        let nobody = Refusal { code: crate::ErrorCode(15), message: None };
        let port = u16::try_from(port).map_err(|_| Error::Refused { operation, refusal: nobody })?;
        let address = Address { host: host.to_string(), port };
        self.inner.routes.lock().coordinators.insert(id.to_owned(), address.clone());
        Ok(address)
    }
}
