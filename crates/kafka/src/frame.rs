//! Frames: four bytes of length, then as many bytes of message.
//!
//! The length is the first thing a stranger says, so it is not believed: it has a cap, memory grows
//! only with bytes that have arrived, and the usual strangers (a browser, a TLS handshake) are
//! called by their names instead of being reported as a frame of 1.2 GB.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// As much as a broker accepts by default (`socket.request.max.bytes`).
pub const DEFAULT_CAP: usize = 100 * 1024 * 1024;

/// How many bytes announce a frame's length.
const PREFIX: usize = 4;

/// The most that is set aside for bytes that were announced and have not arrived.
const AHEAD: usize = 64 * 1024;

/// Why a stream could not be cut into frames. Nothing after this can be read from it.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A longer frame than this side is willing to read or write.
    #[error("a frame of {length} bytes, the limit is {cap}")]
    TooLong {
        /// What was announced.
        length: u64,
        /// What would have been accepted.
        cap: usize,
    },
    /// A length below zero.
    #[error("a frame of {length} bytes")]
    Negative {
        /// What was announced.
        length: i32,
    },
    /// The other side speaks HTTP.
    #[error("an HTTP {0} instead of a Kafka frame: this is the address of another service, or of another client")]
    Http(HttpPart),
    /// The other side speaks TLS, and this one does not.
    #[error("a TLS record instead of a Kafka frame: one side uses TLS and the other does not")]
    Tls,
    /// The stream ended inside a frame.
    #[error("the stream ended {missing} bytes before the end of a frame")]
    Truncated {
        /// How many bytes were still to come, of the length or of the message.
        missing: usize,
    },
    /// The stream itself failed.
    #[error("the stream failed")]
    Stream(#[from] std::io::Error),
}

/// Which side of HTTP was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpPart {
    /// A client knocked at a broker's port.
    Request,
    /// A server answered a Kafka request.
    Response,
}

impl std::fmt::Display for HttpPart {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Request => "request",
            Self::Response => "response",
        })
    }
}

/// Reads frames off a stream. What has arrived of the next frame is kept between calls, so
/// [`FrameReader::next`] may be abandoned at any await and called again.
#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    arrived: BytesMut,
    cap: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// A reader of frames up to [`DEFAULT_CAP`].
    pub fn new(stream: R) -> Self {
        Self::with_cap(stream, DEFAULT_CAP)
    }

    /// A reader of frames up to `cap` bytes.
    pub fn with_cap(stream: R, cap: usize) -> Self {
        Self { stream, arrived: BytesMut::new(), cap }
    }

    /// Sets the cap for the frames to come, as a broker does once a client has logged in.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap;
    }

    /// How long the next message will be, as soon as that is announced; `None` if the stream ended between two frames.
    pub async fn length(&mut self) -> Result<Option<usize>, FrameError> {
        while self.arrived.len() < PREFIX {
            if self.more(PREFIX).await? == 0 {
                return match self.arrived.len() {
                    0 => Ok(None),
                    some => Err(FrameError::Truncated { missing: PREFIX - some }),
                };
            }
        }
        announced(self.arrived[..PREFIX].try_into().expect("four bytes have arrived"), self.cap).map(Some)
    }

    /// The next message, without its length; `None` if the stream ended between two frames.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(length) = self.length().await? else { return Ok(None) };
        let end = PREFIX + length;
        while self.arrived.len() < end {
            if self.more(end).await? == 0 {
                return Err(FrameError::Truncated { missing: end - self.arrived.len() });
            }
        }
        self.arrived.advance(PREFIX);
        let message = self.arrived.split_to(length).freeze();
        if length > AHEAD {
            // What was set aside for a long message would be used for all that come, and never be given back.
            self.arrived = BytesMut::from(&self.arrived[..]);
        }
        Ok(Some(message))
    }

    /// Takes what the stream has, towards a buffer of `wanted` bytes; 0 at its end. A TLS stream that ends without a
    /// farewell ends all the same: frames tell their lengths, so nothing can be cut off unseen.
    async fn more(&mut self, wanted: usize) -> Result<usize, FrameError> {
        let missing = wanted.saturating_sub(self.arrived.len());
        // At least a small block, so that many small frames come with one read; at most twice what
        // is there, so that an announcement alone costs nothing.
        let ahead = self.arrived.len().max(AHEAD);
        self.arrived.reserve(missing.clamp(4096, ahead));
        match self.stream.read_buf(&mut self.arrived).await {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
            read => Ok(read?),
        }
    }
}

/// What the four bytes before a frame say, or what they are instead.
fn announced(prefix: [u8; PREFIX], cap: usize) -> Result<usize, FrameError> {
    let length = i32::from_be_bytes(prefix);
    if let Ok(length) = usize::try_from(length)
        && length <= cap
    {
        return Ok(length);
    }
    // Read as lengths these are all above any sensible cap, so no frame is mistaken for them.
    match &prefix {
        b"HTTP" => return Err(FrameError::Http(HttpPart::Response)),
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"PATC" | b"CONN" | b"TRAC" | b"PRI " => {
            return Err(FrameError::Http(HttpPart::Request));
        }
        // Content type (alert, handshake), then the major version.
        [0x15 | 0x16, 0x03, _, _] => return Err(FrameError::Tls),
        _ => {}
    }
    match u64::try_from(length) {
        Ok(length) => Err(FrameError::TooLong { length, cap }),
        Err(_) => Err(FrameError::Negative { length }),
    }
}

/// A frame under construction: write the message behind what is there, then [`finish`] it.
pub fn begin() -> BytesMut {
    let mut frame = BytesMut::with_capacity(256);
    frame.put_u32(0);
    frame
}

/// Fills in the length of a frame that [`begin`] started. The result goes to the stream as it is.
pub fn finish(mut frame: BytesMut) -> Result<Bytes, FrameError> {
    let length = frame.len() - PREFIX;
    let Ok(announced) = i32::try_from(length) else {
        return Err(FrameError::TooLong { length: length as u64, cap: i32::MAX as usize });
    };
    frame[..PREFIX].copy_from_slice(&announced.to_be_bytes());
    Ok(frame.freeze())
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    async fn all(bytes: &[u8], cap: usize) -> Result<Vec<Bytes>, FrameError> {
        let mut reader = FrameReader::with_cap(bytes, cap);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await? {
            frames.push(frame);
        }
        Ok(frames)
    }

    fn framed(message: &[u8]) -> Bytes {
        let mut frame = begin();
        frame.extend_from_slice(message);
        finish(frame).unwrap()
    }

    #[tokio::test]
    async fn a_stream_that_ends_between_frames_ends_well() {
        let bytes = [framed(b"one"), framed(b""), framed(b"three")].concat();
        assert_eq!(all(&bytes, 16).await.unwrap(), ["one", "", "three"]);
    }

    #[tokio::test]
    async fn a_stream_that_ends_inside_a_frame_says_how_much_is_missing() {
        let bytes = framed(b"whole");
        assert!(matches!(all(&bytes[..7], 16).await, Err(FrameError::Truncated { missing: 2 })));
        assert!(matches!(all(&bytes[..3], 16).await, Err(FrameError::Truncated { missing: 1 })));
    }

    #[tokio::test]
    async fn strangers_are_called_by_their_names() {
        let seen = |bytes: &'static [u8]| async move { all(bytes, DEFAULT_CAP).await.unwrap_err() };
        assert!(matches!(seen(b"GET / HTTP/1.1\r\n").await, FrameError::Http(HttpPart::Request)));
        assert!(matches!(seen(b"HTTP/1.1 400 Bad Request").await, FrameError::Http(HttpPart::Response)));
        assert!(matches!(seen(&[0x16, 0x03, 0x01, 0x02, 0x00]).await, FrameError::Tls));
        assert!(matches!(seen(&[0x15, 0x03, 0x03, 0x00, 0x02]).await, FrameError::Tls));
        assert!(matches!(seen(&[0xff; 8]).await, FrameError::Negative { length: -1 }));
        let cap = DEFAULT_CAP;
        assert!(
            matches!(seen(&[0x7f, 0xff, 0xff, 0xff]).await, FrameError::TooLong { length: 2_147_483_647, cap: c } if c == cap)
        );
    }

    #[tokio::test]
    async fn an_announcement_alone_costs_little_memory() {
        let (mut theirs, ours) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(ours);
        tokio::io::AsyncWriteExt::write_all(&mut theirs, &(50_000_000_i32.to_be_bytes())).await.unwrap();
        // Abandoned while it waits for the body; what had arrived is kept.
        tokio::select! {
            biased;
            frame = reader.next() => panic!("no frame can be whole: {frame:?}"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(reader.arrived.len(), PREFIX);
        assert!(reader.arrived.capacity() <= 2 * AHEAD, "{}", reader.arrived.capacity());
        drop(theirs);
        assert!(matches!(reader.next().await, Err(FrameError::Truncated { missing: 50_000_000 })));
    }

    /// A TLS stream whose other side has gone without a farewell, after these bytes.
    struct CutOff<'a>(&'a [u8]);

    impl AsyncRead for CutOff<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            match self.0 {
                [] => Poll::Ready(Err(std::io::ErrorKind::UnexpectedEof.into())),
                _ => Pin::new(&mut self.0).poll_read(context, buffer),
            }
        }
    }

    #[tokio::test]
    async fn a_stream_cut_off_between_two_frames_has_ended() {
        let whole = framed(b"abc");
        let mut reader = FrameReader::new(CutOff(&whole));
        assert_eq!(reader.next().await.unwrap().as_deref(), Some(&b"abc"[..]));
        assert!(reader.next().await.unwrap().is_none());
        let mut reader = FrameReader::new(CutOff(&whole[..5]));
        assert!(matches!(reader.next().await, Err(FrameError::Truncated { missing: 2 })));
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting_of_the_stream(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
            piece in 1_usize..50,
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(async {
                let (mut theirs, ours) = tokio::io::duplex(piece);
                let write = async move { tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes).await.unwrap(); };
                let read = async {
                    let mut reader = FrameReader::new(ours);
                    let mut frames = Vec::new();
                    while let Some(frame) = reader.next().await.unwrap() {
                        frames.push(frame);
                    }
                    frames
                };
                tokio::join!(write, read).1
            });
            prop_assert_eq!(read, messages);
        }

        #[test]
        fn hostile_bytes_end_in_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), cap in 0_usize..300) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            if let Ok(frames) = runtime.block_on(all(&bytes, cap)) {
                prop_assert!(frames.iter().all(|frame| frame.len() <= cap));
                prop_assert_eq!(frames.iter().map(|frame| frame.len() + PREFIX).sum::<usize>(), bytes.len());
            }
        }
    }
}
