//! What can go wrong with telling. No variant shows an address or a key.

use std::time::Duration;

use http::StatusCode;
use tower::BoxError;

/// Why somebody was not told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request could not be made.
    #[error("cannot make the request")]
    Request {
        /// Why.
        source: http::Error,
    },
    /// Nobody answered.
    #[error("cannot reach the receiver")]
    Reach {
        /// Why.
        source: BoxError,
    },
    /// It took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The receiver does not want it.
    #[error("the receiver answered {0}")]
    Refused(StatusCode),
    /// The ConfigMap could not be read or written.
    #[error("cannot {what} the ConfigMap")]
    Map {
        /// Read, create or replace.
        what: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// Somebody else wrote the ConfigMap each time.
    #[error("somebody else changed the ConfigMap {0} times in a row")]
    Contended(u32),
    /// No authority is known that could vouch for a receiver.
    #[error("the machine knows no certificate authorities")]
    NoAuthorities,
}

impl Error {
    /// Whether another try may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Request { .. } | Error::NoAuthorities => false,
            Error::Reach { .. } | Error::TimedOut(_) | Error::Contended(_) => true,
            Error::Refused(status) => status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS,
            Error::Map { source, .. } => match &**source {
                kube::Error::Api(status) => status.code >= 500 || status.code == 429,
                _ => true,
            },
        }
    }

    /// What people can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::Request { .. } => "check the address and the key in the configuration",
            Error::Reach { .. } | Error::TimedOut(_) => "check that the receiver is up and can be reached from here",
            Error::Refused(status) if status.is_client_error() => "check the address and the key in the configuration",
            Error::Refused(_) => "look into the receiver's own logs",
            Error::Map { .. } => "check that the service account may get, create and update this ConfigMap",
            Error::Contended(_) => "find out who writes it so often",
            Error::NoAuthorities => "install the certificate authorities (ca-certificates)",
        }
    }

    /// The causes, the nearest first.
    pub fn cause(&self) -> String {
        let mut causes = Vec::new();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        causes.join(": ")
    }
}
