//! One connection to one broker: many requests in flight, each with its own deadline.
//!
//! A task writes what callers queue, another reads answers and hands each to whoever waits for its
//! correlation. When the stream dies, everything in flight fails with the same reason. A request
//! that gets no answer within the connection's whole patience ends it: brokers answer in order, so whatever comes
//! after it is stuck as well (Kafka's own client does the same). A caller who had less time to begin with gives up
//! alone. A broker that throttles us says so with an answer and then reads nothing for that long: the next
//! request waits, and its patience begins after that.

#[cfg(test)]
mod tests;
mod throttle;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use kafka_protocol::{
    messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse},
    protocol::{Request, StrBytes},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    error::{ErrorCode, Remedy},
    frame::{FrameError, FrameReader},
    guard::Limits,
    message::{self, MessageError},
    versions::{self, Versions},
};

/// Any stream of bytes a connection can run over.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// Requests that may wait for the writer; more make their callers wait.
const OUTBOX: usize = 64;

/// Why a connection ended. Everybody who waited on it is told the same.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Ended {
    /// The broker closed it.
    #[error("the broker closed the connection")]
    Closed,
    /// The broker closed it at the first request after the greeting.
    #[error("the broker closed the connection at the first request: it may want a login, or is going away")]
    ClosedAtFirst,
    /// What came was no frame, or the stream broke.
    #[error("the connection broke")]
    Broken(#[source] Arc<FrameError>),
    /// An answer that nobody asked for.
    #[error("the broker answered a request that was never made")]
    Unasked,
    /// A request that was not answered in time.
    #[error("the broker did not answer in time")]
    Silent,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The broker does not speak any version that we do.
    #[error("the broker speaks no version of {api} that this client does (theirs {theirs:?}, ours {ours:?})")]
    Unsupported {
        /// Kafka's name of the call.
        api: String,
        /// What the broker offers.
        theirs: Option<Versions>,
        /// What we speak.
        ours: Option<Versions>,
    },
    /// The request could not be put into bytes.
    #[error("the request could not be encoded")]
    Encode(#[source] MessageError),
    /// The connection had ended before the request was on its way.
    #[error("the request was not sent")]
    NotSent(#[source] Ended),
    /// The connection ended while the answer was awaited: the deed may be done or not.
    #[error("the answer was lost")]
    Lost(#[source] Ended),
    /// No answer within the deadline: the deed may be done or not.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The answer could not be read.
    #[error("the answer could not be read")]
    Answer(#[source] MessageError),
}

impl CallError {
    /// What the caller should do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NotSent(ended) | Self::Lost(ended) if ended.is_for_the_user() => Remedy::AskUser,
            Self::NotSent(_) | Self::Lost(_) | Self::TimedOut(_) => Remedy::Retry,
            Self::Unsupported { .. } | Self::Encode(_) | Self::Answer(_) => Remedy::AskUser,
        }
    }
}

impl Ended {
    /// Trouble that no further attempt mends: another protocol, or a certificate refused (TLS 1.3
    /// tells a client so only after the handshake, at the first read).
    fn is_for_the_user(&self) -> bool {
        match self {
            Self::Broken(frame) => match &**frame {
                FrameError::Http(_) | FrameError::Tls => true,
                FrameError::Stream(source) => crate::connect::tls_fault(source).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the broker wants no more of this: it closed the connection, perhaps with requests that it had not read,
    /// which resets it.
    fn is_a_hangup(&self) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match self {
            Self::Closed => true,
            Self::Broken(frame) => match &**frame {
                FrameError::Stream(source) => {
                    matches!(source.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// A handle to a live connection; clones share it. Dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    outbox: mpsc::Sender<Bytes>,
    waiting: Arc<Waiting>,
    client_id: String,
    offered: OnceLock<BTreeMap<i16, Versions>>,
    tasks: [AbortHandle; 2],
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Connection {
    /// Starts talking over `stream`, and asks the broker what it speaks. A broker that leaves a request unanswered for
    /// longer than `patience` is taken to be gone.
    pub async fn open<S: ByteStream + 'static>(
        stream: S,
        client_id: &str,
        frame_cap: usize,
        patience: Duration,
    ) -> Result<Self, CallError> {
        let (reading, writing) = tokio::io::split(stream);
        let (outbox, queued) = mpsc::channel(OUTBOX);
        let waiting = Arc::new(Waiting::new(patience));
        let reader = tokio::spawn(read_answers(FrameReader::with_cap(reading, frame_cap), Arc::clone(&waiting)));
        let writer = tokio::spawn(write_requests(writing, queued, Arc::clone(&waiting)));
        let connection = Self {
            inner: Arc::new(Inner {
                outbox,
                waiting,
                client_id: client_id.to_owned(),
                offered: OnceLock::new(),
                tasks: [reader.abort_handle(), writer.abort_handle()],
            }),
        };
        let offered = connection.ask_versions(patience).await?;
        let _ = connection.inner.offered.set(offered);
        Ok(connection)
    }

    /// Why it ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        self.inner.waiting.end_if_silent();
        self.inner.waiting.lock().ended.clone()
    }

    /// Whether the broker has answered more than the greeting: it wants no login, or has had one.
    pub(crate) fn is_let_in(&self) -> bool {
        self.inner.waiting.lock().answered > 1
    }

    /// The version in which this connection makes the call `Q`.
    pub fn version_of<Q: Request>(&self) -> Result<i16, CallError> {
        let ours = ApiKey::try_from(Q::KEY).ok().and_then(versions::of_client);
        let theirs = self.inner.offered.get().and_then(|offered| offered.get(&Q::KEY)).cloned();
        let common = ours.as_ref().zip(theirs.as_ref()).and_then(|(ours, theirs)| versions::common(ours, theirs));
        common.ok_or_else(|| CallError::Unsupported { api: name_of(Q::KEY), theirs, ours })
    }

    /// Makes a call in the newest common version.
    pub async fn call<Q: Request>(&self, request: &Q, patience: Duration) -> Result<Q::Response, CallError> {
        let version = self.version_of::<Q>()?;
        self.call_in(request, version, patience).await
    }

    /// Makes a call in a version of the caller's choice (see [`Connection::version_of`]).
    pub async fn call_in<Q: Request>(
        &self,
        request: &Q,
        version: i16,
        patience: Duration,
    ) -> Result<Q::Response, CallError> {
        let body = self.call_for_body(request, version, patience).await?;
        message::decode(body, version).map_err(CallError::Answer)
    }

    /// Makes a call and returns the answer's body, walked by the guard, for versions that the codec
    /// does not know.
    pub(crate) async fn call_for_body<Q: Request>(
        &self,
        request: &Q,
        version: i16,
        patience: Duration,
    ) -> Result<Bytes, CallError> {
        let frame = self.exchange(request, version, patience).await?;
        let body = message::response_body::<Q>(frame, version, Limits::KNOWN_PEER).map_err(CallError::Answer)?;
        self.inner.waiting.heed_throttle(throttle::of::<Q>(version, &body));
        Ok(body)
    }

    async fn exchange<Q: Request>(&self, request: &Q, version: i16, patience: Duration) -> Result<Bytes, CallError> {
        // The broker reads nothing before, and that is no silence.
        while let Some(throttled) = self.inner.waiting.throttled() {
            sleep_until(throttled).await;
        }
        let mut deadline = Instant::now() + patience;
        // First a place, then a caller: who gives up before there is one has sent nothing, and nobody waits for an answer
        // to it. A closed outbox means that the writer has ended, and it has told `waiting` why.
        let place = timeout_at(deadline, self.inner.outbox.reserve()).await;
        let Ok(place) = place else {
            self.inner.waiting.end_if_silent();
            return Err(CallError::TimedOut(patience));
        };
        let (correlation, mut answer) = self.inner.waiting.expect_answer().map_err(CallError::NotSent)?;
        let frame = message::encode_request(request, version, correlation, &self.inner.client_id).map_err(|error| {
            self.inner.waiting.forget(correlation);
            CallError::Encode(error)
        })?;
        if let Ok(place) = place {
            place.send(frame);
        }
        loop {
            match timeout_at(deadline, &mut answer).await {
                Ok(Ok(Ok(frame))) => return Ok(frame),
                Ok(Ok(Err(ended))) => return Err(CallError::Lost(ended)),
                Ok(Err(_)) => return Err(CallError::Lost(Ended::Closed)),
                Err(_) => match self.inner.waiting.since(correlation) {
                    // The broker has said meanwhile that it would not listen for a while.
                    Some(since) if since + patience > deadline => deadline = since + patience,
                    _ => {
                        // The answer stays expected: when it comes after all, nobody is confused.
                        self.inner.waiting.end_if_silent();
                        return Err(CallError::TimedOut(patience));
                    }
                },
            }
        }
    }

    /// What the broker speaks. A broker that does not know our newest ApiVersions says so in the
    /// oldest, with the versions of ApiVersions itself; then it is asked again in one it knows.
    async fn ask_versions(&self, patience: Duration) -> Result<BTreeMap<i16, Versions>, CallError> {
        let mut version = *versions::of_client(ApiKey::ApiVersions).expect("the client asks for versions").end();
        loop {
            let frame = self.exchange(&versions_request(version), version, patience).await?;
            let unsupported = frame.get(4..6) == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
            let in_version = if unsupported { 0 } else { version };
            let answer: ApiVersionsResponse =
                message::decode_response::<ApiVersionsRequest>(frame, in_version, Limits::KNOWN_PEER)
                    .map_err(CallError::Answer)?;
            let offered: BTreeMap<i16, Versions> =
                answer.api_keys.iter().map(|api| (api.api_key, api.min_version..=api.max_version)).collect();
            if !unsupported {
                return Ok(offered);
            }
            let theirs = offered.get(&ApiVersionsRequest::KEY).map_or(0, |versions| *versions.end());
            // It never asks for the refused one again, so this ends.
            version = if version == 0 {
                return Err(CallError::Unsupported {
                    api: name_of(ApiVersionsRequest::KEY),
                    theirs: offered.get(&ApiVersionsRequest::KEY).cloned(),
                    ours: versions::of_client(ApiKey::ApiVersions),
                });
            } else {
                theirs.clamp(0, version - 1)
            };
        }
    }
}

/// The question what a broker speaks. Since version 3 it says who asks.
pub(crate) fn versions_request(version: i16) -> ApiVersionsRequest {
    if version < 3 {
        return ApiVersionsRequest::default();
    }
    ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("evenkeel"))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")))
}

fn name_of(key: i16) -> String {
    ApiKey::try_from(key).map_or_else(|_| key.to_string(), |key| format!("{key:?}"))
}

/// Who waits for which answer.
#[derive(Debug)]
struct Waiting {
    state: Mutex<WaitingState>,
    /// A request that waits for so long ends the connection.
    patience: Duration,
    /// Told when the connection ends, so that both tasks stop.
    over: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct WaitingState {
    next: i32,
    /// How many answers came.
    answered: usize,
    callers: BTreeMap<i32, Caller>,
    ended: Option<Ended>,
    /// Until when the broker will read nothing from us.
    throttled: Option<Instant>,
}

#[derive(Debug)]
struct Caller {
    since: Instant,
    answer: oneshot::Sender<Result<Bytes, Ended>>,
}

impl Waiting {
    fn new(patience: Duration) -> Self {
        Self { state: Mutex::default(), patience, over: tokio::sync::Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect_answer(&self) -> Result<(i32, oneshot::Receiver<Result<Bytes, Ended>>), Ended> {
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let correlation = state.next;
        state.next = state.next.wrapping_add(1);
        let (answer, receiver) = oneshot::channel();
        state.callers.insert(correlation, Caller { since: Instant::now(), answer });
        Ok((correlation, receiver))
    }

    /// When a request began to wait.
    fn since(&self, correlation: i32) -> Option<Instant> {
        self.lock().callers.get(&correlation).map(|caller| caller.since)
    }

    /// Until when a request is to wait, if it is.
    fn throttled(&self) -> Option<Instant> {
        let state = self.lock();
        state.throttled.filter(|until| state.ended.is_none() && Instant::now() < *until)
    }

    /// The broker will read nothing for so long; requests that are on their way wait there.
    fn heed_throttle(&self, pause: Duration) {
        if pause.is_zero() {
            return;
        }
        let mut state = self.lock();
        let until = Instant::now() + pause;
        if state.throttled.is_none() {
            tracing::warn!(?pause, "a broker throttles this client: a quota is used up");
        }
        state.throttled = state.throttled.max(Some(until));
        for caller in state.callers.values_mut() {
            caller.since = caller.since.max(until);
        }
    }

    /// Ends the connection if a request has waited for as long as any may.
    fn end_if_silent(&self) {
        let silent = |caller: &Caller| caller.since.elapsed() >= self.patience;
        if self.lock().callers.values().any(silent) {
            self.end(Ended::Silent);
        }
    }

    fn forget(&self, correlation: i32) {
        self.lock().callers.remove(&correlation);
    }

    fn answer(&self, frame: Bytes) -> Result<(), Ended> {
        let correlation = message::correlation_of(&frame).map_err(|_| Ended::Unasked)?;
        let caller = {
            let mut state = self.lock();
            state.answered += 1;
            state.callers.remove(&correlation).ok_or(Ended::Unasked)?
        };
        // The caller may have given up; then nobody wants it.
        let _ = caller.answer.send(Ok(frame));
        Ok(())
    }

    /// Ends the connection; the first reason stays.
    fn end(&self, reason: Ended) {
        let mut state = self.lock();
        let only_greeted = state.answered == 1 && !state.callers.is_empty();
        let reason = if only_greeted && reason.is_a_hangup() { Ended::ClosedAtFirst } else { reason };
        let reason = state.ended.get_or_insert(reason).clone();
        for (_, caller) in std::mem::take(&mut state.callers) {
            let _ = caller.answer.send(Err(reason.clone()));
        }
        drop(state);
        self.over.notify_waiters();
    }

    /// Runs `work` until it is done or the connection has ended.
    async fn until_over(&self, work: impl Future<Output = Ended>) {
        let over = self.over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if self.lock().ended.is_some() {
            return;
        }
        tokio::select! {
            reason = work => self.end(reason),
            () = over => {}
        }
    }
}

async fn read_answers<S: ByteStream>(mut frames: FrameReader<ReadHalf<S>>, waiting: Arc<Waiting>) {
    let reading = async {
        loop {
            match frames.next().await {
                Ok(Some(frame)) => {
                    if let Err(reason) = waiting.answer(frame) {
                        return reason;
                    }
                }
                Ok(None) => return Ended::Closed,
                Err(error) => return Ended::Broken(Arc::new(error)),
            }
        }
    };
    waiting.until_over(reading).await;
}

async fn write_requests<S: ByteStream>(
    mut stream: WriteHalf<S>,
    mut queued: mpsc::Receiver<Bytes>,
    waiting: Arc<Waiting>,
) {
    let writing = async {
        while let Some(frame) = queued.recv().await {
            let mut frame = Some(frame);
            let written = async {
                // Whatever has queued up meanwhile goes out with one flush.
                while let Some(next) = frame {
                    stream.write_all(&next).await?;
                    frame = queued.try_recv().ok();
                }
                stream.flush().await
            };
            if let Err(error) = written.await {
                return Ended::Broken(Arc::new(FrameError::Stream(error)));
            }
        }
        Ended::Closed
    };
    waiting.until_over(writing).await;
    let _ = stream.shutdown().await;
}
