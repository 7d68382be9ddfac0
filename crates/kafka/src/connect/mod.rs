//! Opening streams to brokers: over TCP, over TLS, or in memory to a simulated one.

mod memory;
mod tls;

use std::{fmt, future::Future, io, pin::Pin, str::FromStr, time::Duration};

pub use memory::{Memory, MemoryListener};
pub(crate) use tls::fault as tls_fault;
pub use tls::{Tls, TlsError, TlsFiles, TlsPem};
use tokio::net::TcpStream;

use crate::{
    connection::{ByteStream, CallError},
    error::Remedy,
    login::LogInError,
};

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

/// Not of the form `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: write host:port")]
pub struct NotAnAddress(String);

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.to_owned());
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bracketed {
            Some(host) => host,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| wrong())? })
    }
}

/// What a connector gives.
pub type Stream = Box<dyn ByteStream>;

/// What opening one ends in.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send + 'a>>;

/// Opens streams to brokers.
pub trait Connector: fmt::Debug + Send + Sync {
    /// Opens a stream to one of them.
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a>;

    /// Whether nobody on the way can read what goes over its streams. Whoever does not know says no.
    fn is_private(&self) -> bool {
        false
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there, or the way is blocked.
    #[error("the address cannot be reached")]
    Unreachable(#[source] io::Error),
    /// It took too long.
    #[error("no connection within {0:?}")]
    TimedOut(Duration),
    /// No TLS session.
    #[error("no TLS session could be agreed on")]
    Tls(#[from] TlsError),
    /// The broker did not say what it speaks.
    #[error("the broker does not answer as a Kafka broker does")]
    Greeting(#[source] CallError),
    /// The broker hangs up on whoever asks it something, again and again.
    #[error("the broker closes every connection at the first request: it wants a login, and there are no credentials")]
    LoginWanted,
    /// The broker did not let us in.
    #[error("the login failed")]
    LogIn(#[from] LogInError),
}

impl ConnectError {
    /// What the caller should do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => Remedy::Retry,
            Self::Greeting(source) | Self::LogIn(LogInError::Call(source)) => source.remedy(),
            Self::LogIn(_) | Self::LoginWanted => Remedy::AskUser,
            Self::Tls(source) => source.remedy(),
        }
    }
}

/// Plain TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

impl Tcp {
    async fn dial(address: &Address) -> Result<TcpStream, ConnectError> {
        let stream =
            TcpStream::connect((address.host.as_str(), address.port)).await.map_err(ConnectError::Unreachable)?;
        // Requests are small and each is flushed when it is whole.
        stream.set_nodelay(true).map_err(ConnectError::Unreachable)?;
        Ok(stream)
    }
}

impl Connector for Tcp {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(async move { Ok(Box::new(Self::dial(address).await?) as Stream) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_printed() {
        for text in ["broker-1:9092", "127.0.0.1:1", "[::1]:9092"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "broker", ":9092", "broker:port", "broker:70000", "::1:9092"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
