//! The client: finds the right broker for a call, makes it, and tries again where that is safe.
//!
//! What was surely not done is repeated until the client's patience ends; a change whose answer was
//! lost is not: the caller hears of it and looks at the cluster. The calls themselves are in
//! [`crate::calls`], a file for each family.

mod backoff;
mod leaders;
mod pool;
mod routes;
#[cfg(test)]
mod tests;

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use kafka_protocol::protocol::Request;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    connect::{Address, Connector},
    connection::{CallError, Connection},
    error::{Error, ErrorCode, Refusal, Remedy},
    frame,
    login::Credentials,
    types::BrokerId,
};

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to ask for the cluster first.
    pub bootstrap: Vec<Address>,
    /// What brokers call us in their logs and quotas.
    pub client_id: String,
    /// How to log in, where that is wanted.
    pub credentials: Option<Credentials>,
    /// Whether a password may be sent (SASL PLAIN) over a stream that everybody on the way can read.
    pub allow_plaintext_password: bool,
    /// How long one request may take, and opening a connection.
    pub request_patience: Duration,
    /// How long a call may take with all its repetitions.
    pub patience: Duration,
    /// How many partitions one request asks about or changes. More at once would make a controller busy for seconds,
    /// and answers long.
    pub partitions_at_once: usize,
    /// The longest answer to accept.
    pub frame_cap: usize,
    /// Where the randomness of pauses comes from: of the system by default, so that no two clients pause alike.
    pub seed: u64,
}

impl Settings {
    /// The usual settings, with these brokers to ask first.
    pub fn new(bootstrap: Vec<Address>) -> Self {
        Self {
            bootstrap,
            client_id: "evenkeel".to_owned(),
            credentials: None,
            allow_plaintext_password: false,
            request_patience: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            partitions_at_once: 1000,
            frame_cap: frame::DEFAULT_CAP,
            seed: RandomState::new().hash_one(()),
        }
    }
}

/// A client of one cluster; clones share its connections and what it knows.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
    patience: Duration,
}

#[derive(Debug)]
struct Inner {
    settings: Arc<Settings>,
    pool: pool::Pool,
    routes: routes::Routes,
}

/// Whom to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To<'a> {
    /// Whoever answers.
    Any,
    /// The broker that passes changes on to the controller.
    Controller,
    /// This one and no other.
    Broker(BrokerId),
    /// The coordinator of this transactional id.
    Coordinator(&'a str),
}

/// Whether a request may be sent again when its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Twice is as good as once.
    Repeatable,
    /// The second time would be another deed.
    Once,
}

/// A call, as far as sending it matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Completes the sentence "could not …".
    pub(crate) operation: &'static str,
    pub(crate) to: To<'a>,
    pub(crate) effect: Effect,
}

impl Client {
    /// A client that reaches brokers through `connector`. It connects when it is first asked something.
    pub fn new(connector: Arc<dyn Connector>, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let pool = pool::Pool::new(connector, Arc::clone(&settings));
        let patience = settings.patience;
        Self { inner: Arc::new(Inner { settings, pool, routes: routes::Routes::default() }), patience }
    }

    /// The same client for calls that may take another time with all their repetitions; connections are shared.
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { inner: Arc::clone(&self.inner), patience }
    }

    /// Another client of the same cluster, with connections and patience of its own: for questions that are not to wait
    /// as long as the others do.
    pub fn apart(&self, request: Duration, whole: Duration) -> Self {
        let settings = Settings { request_patience: request, patience: whole, ..self.settings().clone() };
        Self::new(self.inner.pool.connector(), settings)
    }

    /// How the client behaves.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// What brokers are given to finish a change before they answer that they need longer.
    pub(crate) fn broker_patience_ms(&self) -> i32 {
        let millis = self.inner.settings.request_patience.mul_f64(0.75).as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// How long one request may take now that the call must be over by `until`.
    fn request_patience(&self, until: Instant) -> Duration {
        self.inner.settings.request_patience.min(until.saturating_duration_since(Instant::now()))
    }

    /// A pause after so many failures in a row.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        self.inner.pool.pause(failures)
    }

    /// Makes a call: `request` builds it for a version, `verdict` tells whether the answer as a whole
    /// is a refusal.
    pub(crate) async fn ask<Q: Request>(
        &self,
        call: Call<'_>,
        request: impl Fn(i16) -> Q,
        verdict: impl Fn(&Q::Response) -> Result<(), Refusal>,
    ) -> Result<Q::Response, Error> {
        let request = &request;
        self.ask_with(
            call,
            |connection: Connection, patience| async move {
                let version = connection.version_of::<Q>()?;
                connection.call_in(&request(version), version, patience).await
            },
            verdict,
        )
        .await
    }

    /// [`Client::ask`] for calls that talk to the connection themselves. Plain closures that give futures, here and
    /// elsewhere in this crate: of async closures rustc cannot see that what they give may go to another thread.
    pub(crate) async fn ask_with<T, Making>(
        &self,
        call: Call<'_>,
        make: impl Fn(Connection, Duration) -> Making,
        verdict: impl Fn(&T) -> Result<(), Refusal>,
    ) -> Result<T, Error>
    where
        Making: Future<Output = Result<T, CallError>>,
    {
        let until = self.deadline();
        let mut failures = 0;
        loop {
            let error = match self.attempt(call, until, &make, &verdict).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let again = Instant::now() + self.pause(failures);
            if !may_repeat(&error, call.effect, failures) || again >= until {
                return Err(error);
            }
            tracing::debug!(operation = call.operation, failures, error = %error, "trying again");
            self.inner.routes.doubt(call.to);
            sleep_until(again).await;
        }
    }

    async fn attempt<T, Making>(
        &self,
        call: Call<'_>,
        until: Instant,
        make: &impl Fn(Connection, Duration) -> Making,
        verdict: &impl Fn(&T) -> Result<(), Refusal>,
    ) -> Result<T, Error>
    where
        Making: Future<Output = Result<T, CallError>>,
    {
        let (address, connection) = self.connect(call.to, until).await?;
        let patience = self.request_patience(until);
        // A connection that is throttled waits for longer than a request may take; the caller does not.
        let made = timeout_at(until, make(connection, patience)).await.unwrap_or(Err(CallError::TimedOut(patience)));
        let answer = made.map_err(|source| Error::Call { operation: call.operation, address, source })?;
        verdict(&answer).map_err(|refusal| Error::Refused { operation: call.operation, refusal })?;
        Ok(answer)
    }
}

/// Attempts before a topic or a broker that nobody knows is taken to be none. A new one takes some tenths of a second
/// to be known everywhere.
const ATTEMPTS_FOR_UNKNOWN: u32 = 5;

/// Whether the same call may be made again, given what came of it and how often it failed.
fn may_repeat(error: &Error, effect: Effect, failures: u32) -> bool {
    match error {
        Error::UnknownBroker { .. } => failures < ATTEMPTS_FOR_UNKNOWN,
        Error::Connect { source, .. } => source.remedy() != Remedy::AskUser,
        Error::Call { source: CallError::NotSent(_), .. } => error.remedy() != Remedy::AskUser,
        Error::Call { .. } => effect == Effect::Repeatable && error.remedy() != Remedy::AskUser,
        Error::Refused { refusal, .. } => {
            is_refused_undone(refusal.code) || effect == Effect::Repeatable && refusal.code.remedy() != Remedy::AskUser
        }
        _ => false,
    }
}

/// Refusals of somebody who was the wrong one to ask, or was not ready: nothing was done.
fn is_refused_undone(code: ErrorCode) -> bool {
    // Coordinator loading or not there, not the coordinator, not the controller, an earlier
    // transaction of the same id ending, the quota of changes used up.
    matches!(code.0, 14 | 15 | 16 | 41 | 51 | 89)
}
