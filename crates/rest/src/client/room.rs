//! How answers are read: never more than a limit says, and of those that are large one at a time.

use std::pin::pin;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::BoxError;

use super::error::Error;

/// What is not larger needs no room: the state of an executor, a summary, the loads of some thousand brokers.
const SMALL: usize = 1 << 20;

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

impl Room {
    /// Reads a body to its end, or up to the limit. A large one waits until there is room for it.
    pub(super) async fn read<B>(&self, body: B, limit: usize) -> Result<Whole, Error>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        // Whoever says how much it is need not be listened to if it is too much.
        if body.size_hint().lower() > limit as u64 {
            return Err(Error::TooLarge { limit });
        }
        let mut body = pin!(Limited::new(body, limit));
        let mut bytes = BytesMut::new();
        let mut place = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| match source.is::<LengthLimitError>() {
                true => Error::TooLarge { limit },
                false => Error::ReadBody { source },
            })?;
            let Ok(data) = frame.into_data() else { continue };
            bytes.put(data);
            if place.is_none() && bytes.len() > SMALL {
                let free = Arc::clone(&self.0).acquire_owned().await;
                place = Some(free.expect("nobody closes it"));
            }
        }
        Ok(Whole { bytes: bytes.freeze(), _place: place })
    }
}
