//! Those who do not read are not waited for.
//!
//! What a server has to say waits in buffers until the client takes it. These are small, but there are many, and a
//! client that never reads would hold its own, and the watch behind it, for ever: nothing asks such a watch for more,
//! so it never notices that its time is over. Two things can be in the way, and each has its clock here: the socket
//! takes nothing ([`Patient`]), or over HTTP/2 one stream takes nothing while the others go on ([`Streams`]).

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// A connection that fails when nothing can be written to it for too long.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs while the other side takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn patiently<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(outcome) = write(Pin::new(&mut self.stream), context) {
            self.waiting = None;
            return Poll::Ready(outcome);
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.patiently(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patiently(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patiently(context, |stream, context| stream.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.patiently(context, |stream, context| stream.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

tokio::task_local! {
    /// Since when the piece of the answer that was handed out last has been on its way. Nothing: it has arrived, or
    /// there was none. Each stream of an HTTP/2 connection is a task of its own.
    static UNDERWAY: Cell<Option<Instant>>;
}

/// What is handed out at once. Otherwise a large answer would be out of our hands with its first piece, and nobody could
/// tell whether it is read.
const PIECE: usize = 64 * 1024;

/// A body that is handed out in pieces, and notes when they are taken.
pub(super) struct Noted {
    body: Body,
    rest: Bytes,
}

impl From<Body> for Noted {
    fn from(body: Body) -> Self {
        Self { body, rest: Bytes::new() }
    }
}

impl Noted {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)?) else { return Poll::Ready(None) };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl HttpBody for Noted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = self.poll_piece(context);
        let underway = matches!(polled, Poll::Ready(Some(Ok(_)))).then(Instant::now);
        // Outside of `Streams`, that is over HTTP/1.1, nobody wants to know.
        let _ = UNDERWAY.try_with(|since| since.set(underway));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Runs the streams of HTTP/2 connections, and resets each whose client has not taken a piece for too long. Ending the
/// connection instead would punish all that a program does for the slowest of it.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) patience: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        tokio::spawn(UNDERWAY.scope(Cell::new(None), unless_stalled(stream, self.patience)));
    }
}

async fn unless_stalled(stream: impl Future, patience: Duration) {
    let mut stream = pin!(stream);
    let (mut timer, mut runs_since) = (pin!(sleep_until(Instant::now())), None);
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = UNDERWAY.with(Cell::get) else { return Poll::Pending };
        if runs_since.replace(since) != Some(since) {
            timer.as_mut().reset(since + patience);
        }
        timer.as_mut().poll(context)
    })
    .await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_a_slow_reader_but_not_for_one_that_stopped() {
        let (ours, mut theirs) = duplex(10);
        let mut ours = Patient::new(ours, PATIENCE);
        let reading = tokio::spawn(async move {
            for _ in 0..10 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 10]).await.expect("something to read");
            }
            theirs
        });
        ours.write_all(&[0; 100]).await.expect("each piece was taken in time");
        let _still_open = reading.await.expect("read");
        let before = Instant::now();
        let failed = ours.write_all(&[0; 100]).await.expect_err("nobody reads");
        assert_eq!((failed.kind(), before.elapsed()), (io::ErrorKind::TimedOut, PATIENCE));
    }

    /// Takes a piece of a body, waits, and takes the next one, as a stream with a client that is as slow would.
    async fn taken_each(pause: Duration) -> Option<Duration> {
        let pieces = (0..3).map(|_| Ok::<_, io::Error>(Bytes::from_static(b"piece")));
        let mut body = Noted::from(Body::from_stream(futures::stream::iter(pieces)));
        let (done, finished) = tokio::sync::oneshot::channel();
        let before = Instant::now();
        Streams { patience: PATIENCE }.execute(async move {
            while poll_fn(|context| HttpBody::poll_frame(Pin::new(&mut body), context)).await.is_some() {
                tokio::time::sleep(pause).await;
            }
            // A stream that is quiet is not one that is not read.
            tokio::time::sleep(10 * PATIENCE).await;
            let _ = done.send(before.elapsed());
        });
        finished.await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_slow_or_quiet_but_not_stuck() {
        let pause = PATIENCE - Duration::from_secs(1);
        assert_eq!(taken_each(pause).await, Some(3 * pause + 10 * PATIENCE));
        assert_eq!(taken_each(PATIENCE + Duration::from_secs(1)).await, None, "cut off");
    }

    #[tokio::test]
    async fn a_large_body_is_handed_out_in_pieces() {
        use http_body_util::BodyExt;
        let whole: Vec<u8> = (0..3 * PIECE + 7).map(|n| n as u8).collect();
        let mut body = Noted::from(Body::from(whole.clone()));
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64), "its length is told");
        let mut taken = Vec::new();
        while !body.is_end_stream() {
            assert_eq!(body.size_hint().exact(), Some((whole.len() - taken.len()) as u64));
            let piece = body.frame().await.expect("more").expect("a frame").into_data().expect("data");
            assert!(piece.len() <= PIECE);
            taken.extend_from_slice(&piece);
        }
        assert!(taken == whole && body.frame().await.is_none());
    }
}
