//! Listening, and one conversation after the other has been accepted.
//!
//! A broker may have several listeners. Each [`Listener`] has an address book of its own: whoever asks for the cluster is
//! told the addresses of the listener that was asked, as in Kafka.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_kafka::connect::{Address, Memory};
use evenkeel_kafka::frame::{FrameError, FrameReader};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{LOOK_AGAIN, World, lock, millis};
use crate::broker::login::{Login, Users};
use crate::broker::{Addresses, Pending, Reply, handle};
use crate::ids::BrokerId;

/// What a client may send before it has logged in.
const STRANGERS_CAP: usize = 64 * 1024;
/// A request that is longer waits for room before it is read: anybody may announce 100 MB. An answer that is longer
/// needs room until it is read.
const SHORT: usize = 64 * 1024;
/// How long such a request may take to arrive, once there is room for it.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client may leave an answer unread: as long as Kafka keeps an idle connection.
const READING_PATIENCE: Duration = Duration::from_secs(600);
/// How long a client may say nothing before it has logged in, at each step: as long as Kafka keeps an idle connection.
const STRANGERS_PATIENCE: Duration = Duration::from_secs(600);
/// How long a TLS handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// Why a broker could not listen.
#[derive(Debug, thiserror::Error)]
#[error("broker {broker} could not listen on {address}")]
pub struct ListenError {
    /// Which broker.
    pub broker: BrokerId,
    /// Where.
    pub address: SocketAddr,
    /// Why.
    pub source: io::Error,
}

/// One way into all brokers: plain, or with TLS, or with a login, or both.
#[derive(Clone)]
pub struct Listener {
    world: World,
    addresses: Arc<Mutex<Addresses>>,
    tls: Option<TlsAcceptor>,
    users: Option<Arc<Users>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Listener {
    /// A way in for anybody.
    pub fn plain(world: World) -> Self {
        Self { world, addresses: Arc::default(), tls: None, users: None }
    }

    /// The same through TLS. The address book stays the same one: brokers differ in their certificates.
    pub fn with_tls(mut self, acceptor: TlsAcceptor) -> Self {
        self.tls = Some(acceptor);
        self
    }

    /// The same for users with a password only. By SCRAM they are users of the cluster from now on, as in Kafka: any
    /// listener that asks for a password lets them in, and an administrator may change or remove them.
    pub fn with_users(mut self, users: Users) -> Self {
        self.world.with(|cluster| users.iter().for_each(|(name, password)| cluster.add_scram_user(name, password)));
        self.users = Some(Arc::new(users));
        self
    }

    /// Tells clients of this listener where a broker is found.
    pub fn announce(&self, broker: BrokerId, host: &str, port: u16) {
        lock(&self.addresses).insert(broker, (host.to_owned(), port));
    }

    /// Where the brokers are found, as `host:port,…`.
    pub fn bootstrap(&self) -> String {
        let addresses = lock(&self.addresses);
        addresses.values().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(",")
    }

    /// Opens a loopback port for a broker, any free one if `port` is 0, announces it, and serves it for as long as the
    /// runtime lives. A broker that is down drops whoever connects.
    pub async fn open_tcp(&self, broker: BrokerId, port: u16) -> Result<u16, ListenError> {
        self.open_on(broker, SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
    }

    /// The same at an address of its own: whoever plans for the cluster takes brokers at one address for brokers on one
    /// machine.
    pub async fn open_on(&self, broker: BrokerId, address: SocketAddr) -> Result<u16, ListenError> {
        let port = self.bind_on(broker, address).await?.stay_open();
        self.announce(broker, &address.ip().to_string(), port);
        Ok(port)
    }

    /// Opens a loopback port for a broker, any free one if `port` is 0, and serves it until the port is dropped. What
    /// clients are told is another matter: see [`Listener::announce`].
    pub async fn bind(&self, broker: BrokerId, port: u16) -> Result<Port, ListenError> {
        self.bind_on(broker, SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
    }

    async fn bind_on(&self, broker: BrokerId, address: SocketAddr) -> Result<Port, ListenError> {
        let failed = |source| ListenError { broker, address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let this = self.clone();
        let socket = Arc::new(Mutex::new(Some(listener)));
        let listening = Arc::clone(&socket);
        let accepting = tokio::spawn(async move {
            while let Some(accepted) = poll_fn(|context| poll_accept(&listening, context)).await {
                match accepted {
                    Ok(stream) => drop(tokio::spawn(this.clone().accepted(broker, stream))),
                    // Out of file handles, most likely: others may close theirs meanwhile.
                    Err(_) => sleep(millis(LOOK_AGAIN)).await,
                }
            }
        });
        Ok(Port { number: port, accepting: Some(accepting.abort_handle()), socket })
    }

    /// The same inside this process, at any address.
    pub fn bind_pipe(&self, broker: BrokerId, memory: &Memory, address: Address) -> Port {
        let number = address.port;
        let mut arriving = memory.listen(address);
        let this = self.clone();
        let accepting = tokio::spawn(async move {
            while let Some(stream) = arriving.accept().await {
                tokio::spawn(this.clone().admitted(broker, stream));
            }
        });
        Port { number, accepting: Some(accepting.abort_handle()), socket: Arc::default() }
    }

    async fn accepted(self, broker: BrokerId, stream: TcpStream) {
        let Ok(_place) = Arc::clone(&self.world.0.connections).try_acquire_owned() else {
            tracing::debug!(%broker, "a client came when there were too many");
            return;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it began");
            return;
        }
        self.admitted(broker, stream).await;
    }

    async fn admitted<S: AsyncRead + AsyncWrite + Unpin>(self, broker: BrokerId, stream: S) {
        if !self.is_answered(broker).await {
            return;
        }
        let Some(acceptor) = &self.tls else { return self.serve(broker, stream).await };
        match timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(broker, stream).await,
            Ok(Err(error)) => tracing::debug!(%broker, %error, "a client failed the TLS handshake"),
            Err(_) => tracing::debug!(%broker, "a client took too long for the TLS handshake"),
        }
    }

    /// Whether somebody answers at a broker's port. Behind a cut link there is silence, so the caller holds the line
    /// until that is mended, or the process has ended.
    async fn is_answered(&self, broker: BrokerId) -> bool {
        let incarnation = self.world.look(|cluster| cluster.broker_epoch(broker));
        tokio::select! {
            biased;
            () = self.gone(broker, incarnation) => false,
            () = self.reachable(broker) => true,
        }
    }

    /// Serves one connection to a broker, over any stream, until either side ends it.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, broker: BrokerId, stream: S) {
        let incarnation = self.world.look(|cluster| cluster.broker_epoch(broker));
        let conversation = self.converse(broker, stream);
        tokio::select! {
            () = conversation => {}
            () = self.gone(broker, incarnation) => {}
        }
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(&self, broker: BrokerId, stream: S) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut login = self.users.as_ref().map(|users| Login::new(users.clone()));
        let cap = if login.is_some() { STRANGERS_CAP } else { evenkeel_kafka::frame::DEFAULT_CAP };
        let mut frames = FrameReader::with_cap(reader, cap);
        loop {
            // Who is in may be silent for as long as it likes; who is not takes somebody's place.
            let patience = if login.is_some() { STRANGERS_PATIENCE } else { Duration::MAX };
            let Ok(arrived) = timeout(patience, self.arriving(&mut frames)).await else { return };
            let (frame, _room) = match arrived {
                Ok(Some(arrived)) => arrived,
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%broker, error = &error as &dyn std::error::Error, "a client sent no frame");
                    return;
                }
            };
            self.reachable(broker).await;
            let key = frame.first_chunk().map_or(-1, |bytes| i16::from_be_bytes(*bytes));
            let reply = match &mut login {
                Some(unfinished) => {
                    let reply = self.world.look(|cluster| unfinished.handle(cluster, frame));
                    if unfinished.is_done() {
                        login = None;
                        frames.set_cap(evenkeel_kafka::frame::DEFAULT_CAP);
                    }
                    reply
                }
                None => self.handle(broker, frame),
            };
            let reply = match reply {
                Reply::Later(pending) => {
                    tokio::select! {
                        biased;
                        reply = self.later(*pending) => reply,
                        // Who asks for something that takes weeks and leaves is not waited with.
                        () = left(&mut frames) => return,
                    }
                }
                reply => reply,
            };
            self.reachable(broker).await;
            let lost = self.world.is_lost(broker, key);
            let is_last = matches!(reply, Reply::Farewell(_) | Reply::Close(_));
            match reply {
                Reply::Answer(bytes) | Reply::Farewell(bytes) if !lost => {
                    let Some(_room) = self.room_for(&bytes) else {
                        tracing::debug!(%broker, key, "an answer found no room beside those that nobody reads");
                        return;
                    };
                    let written = async {
                        writer.write_all(&bytes).await?;
                        writer.flush().await
                    };
                    if !matches!(timeout(READING_PATIENCE, written).await, Ok(Ok(()))) {
                        return;
                    }
                }
                Reply::Silence => {}
                Reply::Close(Some(error)) => {
                    tracing::debug!(%broker, key, error = &error as &dyn std::error::Error, "a request cannot be answered");
                }
                Reply::Close(None) => {}
                _ => return,
            }
            if is_last {
                // TLS wants to be told that it ends; a client that has gone already does not care.
                let _gone = writer.shutdown().await;
                return;
            }
        }
    }

    /// The next request, and the room that it takes until it is handled; `None` at the end of the stream.
    async fn arriving<R: AsyncRead + Unpin>(
        &self,
        frames: &mut FrameReader<R>,
    ) -> Result<Option<(Bytes, Option<OwnedSemaphorePermit>)>, FrameError> {
        let Some(length) = frames.length().await? else { return Ok(None) };
        if length <= SHORT {
            return Ok(frames.next().await?.map(|frame| (frame, None)));
        }
        // Fails only if the semaphore is closed, which nobody does.
        let room = Arc::clone(&self.world.0.room).acquire_many_owned(kilobytes(length)).await.ok();
        let arrived = timeout(ARRIVAL_PATIENCE, frames.next()).await.map_err(io::Error::from)?;
        Ok(arrived?.map(|frame| (frame, room)))
    }

    /// The room that an answer takes until it is read. None is left where many are not: then it is lost, as on a broken
    /// line, rather than kept as well.
    fn room_for(&self, answer: &Bytes) -> Option<SemaphorePermit<'_>> {
        self.world
            .0
            .room_for_answers
            .try_acquire_many(if answer.len() <= SHORT { 0 } else { kilobytes(answer.len()) })
            .ok()
    }

    fn handle(&self, broker: BrokerId, frame: Bytes) -> Reply {
        let addresses = lock(&self.addresses).clone();
        self.world.with(|cluster| handle(cluster, broker, &addresses, frame))
    }

    /// Waits until the answer can be given, or its time is up.
    async fn later(&self, mut pending: Pending) -> Reply {
        let deadline = Instant::now() + millis(pending.patience);
        let mut changes = self.world.changes();
        loop {
            let time_is_up = Instant::now() >= deadline;
            if let Some(reply) = self.world.look(|cluster| pending.try_answer(cluster, time_is_up)) {
                return reply;
            }
            let patience = millis(LOOK_AGAIN).min(deadline.saturating_duration_since(Instant::now()));
            // Either way it is looked at again.
            let _either = timeout(patience, changes.changed()).await;
        }
    }

    /// Returns when the process that was spoken to is no more.
    async fn gone(&self, broker: BrokerId, incarnation: Option<i64>) {
        self.world.until_ended(broker, incarnation).await;
    }

    /// Returns when the broker can be reached; at once if nobody has cut its link.
    async fn reachable(&self, broker: BrokerId) {
        wait_until(self.world.changes(), || self.world.look(|cluster| cluster.is_reachable(broker))).await;
    }
}

/// Returns when the client has gone. One that has said more has not, and what it says is for later.
async fn left<R: AsyncRead + Unpin>(frames: &mut FrameReader<R>) {
    if let Ok(Some(_)) = frames.length().await {
        std::future::pending::<()>().await;
    }
}

fn kilobytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// A port that is open. Dropping it closes it; conversations go on for as long as the broker does.
#[derive(Debug)]
pub struct Port {
    number: u16,
    accepting: Option<AbortHandle>,
    /// What it accepts from, if it is of the system. Taken out when the port closes, so that it is closed then, and not
    /// when the runtime comes round to it: whoever opens the same one next finds it free.
    socket: Arc<Mutex<Option<TcpListener>>>,
}

impl Port {
    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Open for as long as the runtime lives.
    fn stay_open(mut self) -> u16 {
        self.accepting = None;
        self.number
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            drop(lock(&self.socket).take());
            accepting.abort();
        }
    }
}

/// The next connection; nothing when the port was closed.
fn poll_accept(socket: &Mutex<Option<TcpListener>>, context: &mut Context<'_>) -> Poll<Option<io::Result<TcpStream>>> {
    match lock(socket).as_ref() {
        Some(listener) => listener.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream))),
        None => Poll::Ready(None),
    }
}

pub(super) async fn wait_until(mut changes: watch::Receiver<u64>, holds: impl Fn() -> bool) {
    while !holds() {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::message::encode_request;
    use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
    use kafka_protocol::protocol::Request;
    use tokio::io::AsyncReadExt;

    use super::super::{CONNECTIONS, ROOM};
    use super::*;
    use crate::Options;
    use crate::cluster::{BrokerSpec, Cluster, NewTopic};

    /// Asks something, and hears whether it is answered at all.
    async fn is_answered<Q: Request>(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &Q) -> bool {
        let frame = encode_request(request, 0, 1, "test").expect("written");
        // Whoever is not let in may be gone already.
        let _gone = stream.write_all(&frame).await;
        matches!(stream.read(&mut [0; 4]).await, Ok(1..))
    }

    #[tokio::test]
    async fn who_comes_when_there_are_too_many_is_sent_away_until_somebody_goes() {
        let world = World::new(Cluster::new(Options::default(), [BrokerSpec::new(0)]));
        world.0.connections.forget_permits(CONNECTIONS - 2);
        let port = Listener::plain(world).bind(BrokerId(0), 0).await.expect("any port");
        let come = async || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).await.expect("it is open");
            is_answered(&mut stream, &ApiVersionsRequest::default()).await.then_some(stream)
        };
        let (first, second) = (come().await.expect("let in"), come().await.expect("let in"));
        assert!(come().await.is_none());
        drop(first);
        // Until the broker has noticed.
        while come().await.is_none() {}
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_reads_are_bounded() {
        let mut cluster = Cluster::new(Options::default(), [BrokerSpec::new(0)]);
        cluster.create_topic(&NewTopic::new("t", 5_000, 1), false).expect("made");
        // Until the broker has heard of it.
        cluster.tick(1_000);
        let world = World::new(cluster);
        // Room for one such answer, and a little.
        world.0.room_for_answers.forget_permits(ROOM - 200);
        let listener = Listener::plain(world);
        listener.announce(BrokerId(0), "sim", 9_092);
        let enter = || {
            let (ours, theirs) = tokio::io::duplex(1 << 10);
            let listener = listener.clone();
            tokio::spawn(async move { listener.serve(BrokerId(0), theirs).await });
            ours
        };
        let mut unread = enter();
        assert!(is_answered(&mut unread, &MetadataRequest::default()).await);
        assert!(!is_answered(&mut enter(), &MetadataRequest::default()).await, "no room beside what is not read");
        assert!(is_answered(&mut enter(), &ApiVersionsRequest::default()).await, "short answers need none");
        // Whoever never reads is sent away in the end, and makes room.
        let mut rest = Vec::new();
        tokio::time::sleep(READING_PATIENCE).await;
        unread.read_to_end(&mut rest).await.expect("an end");
        assert!(is_answered(&mut enter(), &MetadataRequest::default()).await);
    }

    #[tokio::test]
    async fn a_port_that_was_closed_is_free_at_once() {
        let world = World::new(Cluster::new(Options::default(), [BrokerSpec::new(0)]));
        let listener = Listener::plain(world);
        let broker = BrokerId(0);
        let mut port = listener.bind(broker, 0).await.expect("any port");
        for _ in 0..300 {
            let number = port.number();
            // Somebody who stays connected does not keep it from being opened again.
            let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, number)).await.expect("it is open");
            drop(port);
            port = listener.bind(broker, number).await.expect("the same port");
        }
    }
}
