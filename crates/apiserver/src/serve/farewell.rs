//! The last answer on a connection arrives. Closing a socket while something is unread makes the system take back what
//! was written to it; so whoever was answered in the middle of a long request is listened to until they hang up.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Whoever talks on for longer has had the time to read.
const PATIENCE: Duration = Duration::from_secs(5);

/// A stream that comes back from whoever it was given to, when they are done with it.
pub(super) struct Lent<S> {
    stream: Option<S>,
    back: Option<oneshot::Sender<S>>,
}

impl<S> Lent<S> {
    /// The stream to give away, and where it comes back.
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<S>) {
        let (back, returned) = oneshot::channel();
        (Self { stream: Some(stream), back: Some(back) }, returned)
    }
}

impl<S: Unpin> Lent<S> {
    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // Where nobody waits for it, it ends here.
            drop(back.send(stream));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

/// Says no more, and forgets what is still heard.
pub(super) async fn listen(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let rest = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // Who hangs up, in whatever way, has heard it or does not want to.
    let _ = timeout(PATIENCE, rest).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_comes_back_with_what_is_unread_and_is_listened_to_for_a_while() {
        let (ours, mut theirs) = duplex(64);
        let (mut lent, mut returned) = Lent::new(ours);
        lent.write_all(b"no").await.expect("written");
        assert!(returned.try_recv().is_err(), "somebody has it");
        drop(lent);
        let stream = returned.try_recv().expect("it came back");
        let talking = tokio::spawn(async move {
            let mut heard = String::new();
            // More than fits in between: without a listener this would never end.
            theirs.write_all(&[0; 1000]).await.expect("somebody listens");
            theirs.read_to_string(&mut heard).await.expect("an end");
            heard
        });
        listen(stream).await;
        assert_eq!(talking.await.expect("no panic"), "no");
        let (ours, _silent) = duplex(64);
        let before = Instant::now();
        listen(ours).await;
        assert_eq!(before.elapsed(), PATIENCE);
    }
}
