//! SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): each side is a value that is advanced by the
//! other's messages, and what both must compute alike is here. Kafka does no SASLprep and no channel
//! binding.

mod client;
mod server;

use std::num::NonZeroU32;

use base64::{Engine, engine::general_purpose::STANDARD};
pub use client::{ClientFinal, ClientFirst};
use ring::{
    digest, hmac, pbkdf2,
    rand::{SecureRandom, SystemRandom},
};
pub use server::{Challenge, Knock};

/// Kafka accepts no fewer iterations for a user; fewer would make guessing cheap.
pub const FEWEST_ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");
/// Kafka accepts no more than 16384; a server that asks for millions wants our processor, not us.
const MOST_ITERATIONS: u32 = 100_000;

/// The hash behind a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

impl Hash {
    /// The mechanism's name.
    pub fn mechanism(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// The salted password, from which both sides derive all else.
    pub fn salted(self, password: &str, salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
        let (algorithm, length) = match self {
            Self::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, digest::SHA256_OUTPUT_LEN),
            Self::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, digest::SHA512_OUTPUT_LEN),
        };
        let mut salted = vec![0; length];
        pbkdf2::derive(algorithm, iterations, salt, password.as_bytes(), &mut salted);
        salted
    }

    /// The mechanism's HMAC.
    pub fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), message).as_ref().to_vec()
    }

    /// The mechanism's plain hash.
    pub fn digest(self, message: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, message).as_ref().to_vec()
    }

    /// What shows each side that the other knows the password, over all that was said before.
    fn proofs(self, salted: &[u8], said: &str) -> Proofs {
        let client_key = self.hmac(salted, b"Client Key");
        let signature = self.hmac(&self.digest(&client_key), said.as_bytes());
        Proofs {
            client: client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect(),
            server: self.hmac(&self.hmac(salted, b"Server Key"), said.as_bytes()),
        }
    }
}

struct Proofs {
    client: Vec<u8>,
    server: Vec<u8>,
}

/// What is wrong with the other side's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// It is not SCRAM.
    #[error("its message cannot be read")]
    Malformed,
    /// It refuses in SCRAM's own words.
    #[error("it says {0}")]
    Says(String),
    /// It answers somebody else's challenge.
    #[error("its nonce does not continue ours")]
    Nonce,
    /// It asks for too little or too much work.
    #[error("it asks for {0} iterations")]
    Iterations(u32),
    /// It does not know the password: it is not who it says.
    #[error("its signature is wrong: it does not know the password")]
    Signature,
    /// The operating system gives no randomness.
    #[error("no randomness to be had")]
    NoRandomness,
}

/// A nonce that nobody can guess.
pub fn nonce() -> Result<String, ScramError> {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ScramError::NoRandomness)?;
    Ok(STANDARD.encode(bytes))
}

fn attribute<'a>(message: &'a str, name: &str) -> Result<&'a str, ScramError> {
    message.split(',').find_map(|part| part.strip_prefix(name)).ok_or(ScramError::Malformed)
}
