//! Plain HTTP on the port of HTTPS: a person forgot the `s`, and is told so instead of being hung up on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What servers written in Go say, to the letter.
const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// How much of what they send is taken, so that the answer arrives.
const HEARD: u64 = 64 * 1024;

/// Whether the client begins with a word, as HTTP does. A TLS handshake begins with the byte 0x16.
pub(super) async fn is_spoken(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0].is_ascii_uppercase()
}

/// Answers, and listens until they hang up: closing while something is unread would take the answer back.
pub(super) async fn turn_away(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(HEARD), &mut tokio::io::sink()).await?;
    Ok(())
}
