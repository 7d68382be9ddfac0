//! How answers are read: never more than a limit says, and of those that are large one at a time.
//!
//! Whoever has the room holds up all others, so nobody has it for long; and who waits for it loses none of the time that
//! its own server was given.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

use super::Limits;
use super::error::Error;

/// What is not larger needs no room: the state of an executor, a summary, the loads of some thousand brokers.
const SMALL: usize = 1 << 20;
/// For so long the room is one answer's: as long as a server has for an answer that nobody waits for.
pub(super) const LARGE_WITHIN: Duration = Duration::from_secs(30);

/// Room for one large answer, which clients may share: whoever asks many servers then needs memory for one plan, and not
/// for as many as there are servers. Clones are the same room.
#[derive(Clone, Debug)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// A body as a whole, with the place that it takes until it is dropped.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl Whole {
    /// What `read` makes of it. A large one takes its time, so nobody else's work waits for it meanwhile.
    pub(super) async fn read<T: Send + 'static>(self, read: impl FnOnce(&[u8]) -> T + Send + 'static) -> T {
        if self.bytes.len() <= SMALL {
            return read(&self.bytes);
        }
        let work = move || {
            // With its place, also if nobody waits any more.
            let whole = self;
            read(&whole.bytes)
        };
        match spawn_blocking(work).await {
            Ok(made) => made,
            Err(fault) => match fault.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down: nobody waits for it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Room {
    /// Reads a body to its end, or up to the limits: until `deadline`, and what is large within a time of its own, from the
    /// moment on when there is room for it.
    pub(super) async fn read<B>(&self, body: B, limits: Limits, mut deadline: Instant) -> Result<Whole, Error>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let limit = limits.body;
        // Whoever says how much it is need not be listened to if it is too much.
        if body.size_hint().lower() > limit as u64 {
            return Err(Error::TooLarge { limit });
        }
        let mut body = pin!(Limited::new(body, limit));
        let mut bytes = BytesMut::new();
        let (mut place, mut within) = (None, limits.time);
        while let Some(frame) =
            timeout_at(deadline, body.frame()).await.map_err(|_| Error::TimedOut { after: within })?
        {
            let frame = frame.map_err(|source| match source.is::<LengthLimitError>() {
                true => Error::TooLarge { limit },
                false => Error::ReadBody { source },
            })?;
            let Ok(data) = frame.into_data() else { continue };
            bytes.put(data);
            if place.is_none() && bytes.len() > SMALL {
                let free = Arc::clone(&self.0).acquire_owned().await;
                place = Some(free.expect("nobody closes it"));
                within = LARGE_WITHIN;
                deadline = Instant::now() + within;
            }
        }
        Ok(Whole { bytes: bytes.freeze(), _place: place })
    }
}
