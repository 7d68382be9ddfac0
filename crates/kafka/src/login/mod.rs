//! Logging in: SASL PLAIN and SCRAM over a connection that is otherwise ready.
//!
//! Secrets live in [`Secret`], which no formatter prints; what a broker says about a failed login
//! is passed on with the secret struck out, in case it repeats it.

pub mod scram;

use std::{fmt, time::Duration};

use bytes::Bytes;
use kafka_protocol::{
    messages::{SaslAuthenticateRequest, SaslHandshakeRequest},
    protocol::StrBytes,
};

use crate::connection::{CallError, Connection};

/// A password. It is never printed; [`Secret::reveal`] is the only way to see it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The password itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

/// How to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// SASL PLAIN: the password goes over the wire as it is. Only over TLS, unless the client's settings allow more.
    Plain {
        /// The user.
        username: String,
        /// Its password.
        password: Secret,
    },
    /// SASL SCRAM: the password never leaves.
    Scram {
        /// Which of the two hashes.
        hash: scram::Hash,
        /// The user.
        username: String,
        /// Its password.
        password: Secret,
    },
}

impl Credentials {
    fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => "PLAIN",
            Self::Scram { hash, .. } => hash.mechanism(),
        }
    }

    fn strike_out(&self, text: &str) -> String {
        let (Self::Plain { password, .. } | Self::Scram { password, .. }) = self;
        match password.reveal() {
            "" => text.to_owned(),
            secret => text.replace(secret, "(secret)"),
        }
    }
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LogInError {
    /// The password would go over the wire for everybody to read.
    #[error(
        "SASL PLAIN would send the password without TLS: use TLS or SCRAM, or allow it (`allow_plaintext_password`)"
    )]
    PasswordInTheOpen,
    /// The broker wants another mechanism.
    #[error("the broker does not take {wanted}; it takes {offered:?}")]
    Mechanism {
        /// What we came with.
        wanted: &'static str,
        /// What it takes.
        offered: Vec<String>,
    },
    /// The broker does not believe us.
    #[error("the broker refused the login: {0}")]
    Refused(String),
    /// We do not believe the broker.
    #[error("the broker's side of the login is wrong")]
    Server(#[from] scram::ScramError),
    /// The login could not be carried to its end.
    #[error("the login was interrupted")]
    Call(#[from] CallError),
}

/// Logs in. Returns how long the broker will honour it, if it says.
pub(crate) async fn log_in(
    connection: &Connection,
    credentials: &Credentials,
    patience: Duration,
) -> Result<Option<Duration>, LogInError> {
    let mechanism = credentials.mechanism();
    let handshake = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(mechanism));
    let answer = connection.call(&handshake, patience).await?;
    if answer.error_code != 0 {
        let offered = answer.mechanisms.iter().map(|offered| offered.to_string()).collect();
        return Err(LogInError::Mechanism { wanted: mechanism, offered });
    }
    let mut exchange = Exchange { connection, credentials, patience, lifetime: None };
    match credentials {
        Credentials::Plain { username, password } => {
            exchange.send(format!("\0{username}\0{}", password.reveal())).await?;
        }
        Credentials::Scram { hash, username, password } => {
            let nonce = scram::nonce()?;
            let first = scram::ClientFirst::new(*hash, username, &nonce);
            let challenge = exchange.send(first.message()).await?;
            let last = first.answer(&challenge, password)?;
            let proof = exchange.send(last.message().to_owned()).await?;
            last.check(&proof)?;
        }
    }
    Ok(exchange.lifetime)
}

struct Exchange<'a> {
    connection: &'a Connection,
    credentials: &'a Credentials,
    patience: Duration,
    lifetime: Option<Duration>,
}

impl Exchange<'_> {
    async fn send(&mut self, message: String) -> Result<Bytes, LogInError> {
        let request = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from(message));
        let answer = self.connection.call(&request, self.patience).await?;
        if answer.error_code != 0 {
            let why = answer.error_message.map_or_else(|| "no reason given".to_owned(), |why| why.to_string());
            return Err(LogInError::Refused(self.credentials.strike_out(&why)));
        }
        self.lifetime =
            u64::try_from(answer.session_lifetime_ms).ok().filter(|lifetime| *lifetime > 0).map(Duration::from_millis);
        Ok(answer.auth_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_formatter_prints_a_secret() {
        let credentials = Credentials::Plain { username: "alice".into(), password: Secret::new("hunter2") };
        let printed = format!("{credentials:?} {credentials:#?}");
        assert!(!printed.contains("hunter2"), "{printed}");
        assert_eq!(credentials.strike_out("wrong password hunter2"), "wrong password (secret)");
    }
}
