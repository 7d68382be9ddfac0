//! Connections of a process that dies: at a request that was chosen before, just before it is sent or just after.
//!
//! Dying means that nothing more is sent and nothing more is heard; what brokers were asked before they do all the same.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use evenkeel_kafka::{
    Address,
    connect::{Connector, Memory, Opening, Stream},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
    time::Instant,
};

/// At which request a process dies; they are counted from 1, over all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It lives.
    Never,
    /// No broker gets the request.
    Before(usize),
    /// A broker does what it asks, and nobody hears the answer.
    After(usize),
}

/// What becomes of a process.
#[derive(Debug)]
pub struct Fate {
    death: Mutex<Death>,
    /// The calls that were made, by the protocol's numbers, and when.
    made: Mutex<Vec<(Instant, i16)>>,
    dead: watch::Sender<bool>,
}

impl Fate {
    /// One that is known from birth.
    pub fn of(death: Death) -> Arc<Fate> {
        Arc::new(Fate { death: Mutex::new(death), made: Mutex::default(), dead: watch::Sender::new(false) })
    }

    /// It lives, and is to die at one of the calls to come: this one, counted from the next as 1.
    pub fn doom(&self, number: usize, after: bool) {
        let at = lock(&self.made).len() + number;
        *lock(&self.death) = if after { Death::After(at) } else { Death::Before(at) };
    }

    /// What was to kill it does not.
    pub fn spare(&self) {
        *lock(&self.death) = Death::Never;
    }

    fn is_due(&self, death: Death) -> bool {
        *lock(&self.death) == death
    }

    /// Which calls were made so far.
    pub fn made(&self) -> Vec<i16> {
        self.timed().into_iter().map(|(_, key)| key).collect()
    }

    /// The same, and when each of them was.
    pub fn timed(&self) -> Vec<(Instant, i16)> {
        lock(&self.made).clone()
    }

    /// Returns when it dies.
    pub async fn died(&self) {
        // The sender is here.
        let _ = self.dead.subscribe().wait_for(|dead| *dead).await;
    }

    fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    fn die(&self) {
        self.dead.send_replace(true);
    }

    fn begin(&self) -> usize {
        let mut made = lock(&self.made);
        made.push((Instant::now(), -1));
        made.len()
    }

    fn name(&self, number: usize, key: i16) {
        lock(&self.made)[number - 1].1 = key;
    }
}

/// What is behind a lock is whole between two holders, even if one of them panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens such connections.
#[derive(Debug)]
pub struct Mortal {
    /// Where they lead.
    pub memory: Memory,
    /// Whose they are.
    pub fate: Arc<Fate>,
}

impl Connector for Mortal {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(async move {
            if self.fate.is_dead() {
                std::future::pending::<()>().await;
            }
            let stream = self.memory.open(address).await?;
            Ok(Box::new(Wire { stream, fate: Arc::clone(&self.fate), number: 0, head: Vec::new(), left: 0 }) as Stream)
        })
    }
}

/// One connection; it knows where a request begins and ends.
struct Wire {
    stream: Stream,
    fate: Arc<Fate>,
    /// Which request is being sent.
    number: usize,
    /// Its length and its key, as far as they were sent.
    head: Vec<u8>,
    /// What of it is still to be sent after that.
    left: usize,
}

/// Four bytes of length, two of key.
const HEAD: usize = 6;

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        if self.fate.is_dead() {
            return Poll::Pending;
        }
        if self.number == 0 {
            self.number = self.fate.begin();
            if self.fate.is_due(Death::Before(self.number)) {
                self.fate.die();
                return Poll::Pending;
            }
        }
        let rest = if self.head.len() < HEAD { HEAD - self.head.len() } else { self.left };
        let some = &bytes[..bytes.len().min(rest)];
        let sent = match Pin::new(&mut self.stream).poll_write(context, some) {
            Poll::Ready(Ok(sent)) => sent,
            other => return other,
        };
        if self.head.len() < HEAD {
            self.head.extend(&some[..sent]);
            if let [a, b, c, d, e, f] = self.head[..] {
                self.left = u32::from_be_bytes([a, b, c, d]) as usize - 2;
                self.fate.name(self.number, i16::from_be_bytes([e, f]));
            }
        } else {
            self.left -= sent;
            if self.left == 0 {
                if self.fate.is_due(Death::After(self.number)) {
                    self.fate.die();
                }
                (self.number, self.head) = (0, Vec::new());
            }
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.fate.is_dead() {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}
