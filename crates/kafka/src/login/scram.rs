//! SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the client's side, as a value that is
//! advanced by the server's messages. Kafka does no SASLprep and no channel binding.

use std::num::NonZeroU32;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{
    digest, hmac, pbkdf2,
    rand::{SecureRandom, SystemRandom},
};

use super::Secret;

/// Kafka accepts no fewer iterations for a user; fewer would make guessing cheap.
const FEWEST_ITERATIONS: u32 = 4096;
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
}

/// What is wrong with a server's message.
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
    /// It does not know the password either: it is not the server.
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

/// The client's first message, waiting for the challenge.
#[derive(Debug)]
pub struct ClientFirst {
    hash: Hash,
    nonce: String,
    bare: String,
}

impl ClientFirst {
    /// Starts a login.
    pub fn new(hash: Hash, username: &str, nonce: &str) -> Self {
        let username = username.replace('=', "=3D").replace(',', "=2C");
        Self { hash, nonce: nonce.to_owned(), bare: format!("n={username},r={nonce}") }
    }

    /// What to send.
    pub fn message(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Answers the server's challenge.
    pub fn answer(&self, challenge: &[u8], password: &Secret) -> Result<ClientFinal, ScramError> {
        let challenge = str::from_utf8(challenge).map_err(|_| ScramError::Malformed)?;
        let nonce = attribute(challenge, "r=")?;
        let salt = STANDARD.decode(attribute(challenge, "s=")?).map_err(|_| ScramError::Malformed)?;
        let iterations: u32 = attribute(challenge, "i=")?.parse().map_err(|_| ScramError::Malformed)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramError::Nonce);
        }
        let in_range = (FEWEST_ITERATIONS..=MOST_ITERATIONS).contains(&iterations);
        let rounds = NonZeroU32::new(iterations).filter(|_| in_range).ok_or(ScramError::Iterations(iterations))?;

        let salted = self.hash.salted(password.reveal(), &salt, rounds);
        let client_key = self.hash.hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without_proof}", self.bare);
        let signature = self.hash.hmac(&self.hash.digest(&client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        let server_key = self.hash.hmac(&salted, b"Server Key");
        Ok(ClientFinal {
            message: format!("{without_proof},p={}", STANDARD.encode(proof)),
            server_signature: self.hash.hmac(&server_key, signed.as_bytes()),
        })
    }
}

/// The client's last message, waiting for the server's proof.
pub struct ClientFinal {
    message: String,
    server_signature: Vec<u8>,
}

impl ClientFinal {
    /// What to send.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the server knows the password too.
    pub fn check(&self, proof: &[u8]) -> Result<(), ScramError> {
        let proof = str::from_utf8(proof).map_err(|_| ScramError::Malformed)?;
        if let Some(error) = proof.strip_prefix("e=") {
            return Err(ScramError::Says(error.to_owned()));
        }
        let signature = STANDARD.decode(attribute(proof, "v=")?).map_err(|_| ScramError::Malformed)?;
        if signature == self.server_signature { Ok(()) } else { Err(ScramError::Signature) }
    }
}

fn attribute<'a>(message: &'a str, name: &str) -> Result<&'a str, ScramError> {
    message.split(',').find_map(|part| part.strip_prefix(name)).ok_or(ScramError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const ANSWER: &str =
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const PROOF: &[u8] = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn first() -> ClientFirst {
        ClientFirst::new(Hash::Sha256, "user", "rOprNGfwEbeRWgbNEkqO")
    }

    #[test]
    fn the_exchange_of_rfc_7677_comes_out() {
        let first = first();
        assert_eq!(first.message(), FIRST);
        let last = first.answer(CHALLENGE, &Secret::new("pencil")).unwrap();
        assert_eq!(last.message(), ANSWER);
        assert_eq!(last.check(PROOF), Ok(()));
        assert_eq!(last.check(b"v=AAAA"), Err(ScramError::Signature));
        assert_eq!(last.check(b"e=other-error"), Err(ScramError::Says("other-error".into())));
    }

    /// No RFC has a vector for SHA-512; the server's side is recomputed from the definitions.
    #[test]
    fn both_sides_agree_with_sha_512_as_well() {
        let hash = Hash::Sha512;
        let first = ClientFirst::new(hash, "a=b,c", "abc");
        assert_eq!(first.message(), "n,,n=a=3Db=2Cc,r=abc");
        let challenge = "r=abcdef,s=c2FsdA==,i=8192";
        let last = first.answer(challenge.as_bytes(), &Secret::new("pw")).unwrap();
        let (without_proof, proof) = last.message().split_once(",p=").unwrap();
        let salted = hash.salted("pw", b"salt", NonZeroU32::new(8192).unwrap());
        let stored_key = hash.digest(&hash.hmac(&salted, b"Client Key"));
        let signed = format!("n=a=3Db=2Cc,r=abc,{challenge},{without_proof}");
        let signature = hash.hmac(&stored_key, signed.as_bytes());
        let key: Vec<u8> = STANDARD.decode(proof).unwrap().iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(hash.digest(&key), stored_key, "the server would let the client in");
        let server = hash.hmac(&hash.hmac(&salted, b"Server Key"), signed.as_bytes());
        assert_eq!(last.check(format!("v={}", STANDARD.encode(server)).as_bytes()), Ok(()));
    }

    #[test]
    fn a_server_that_cheats_is_found_out() {
        let answer = |challenge: &str| first().answer(challenge.as_bytes(), &Secret::new("pencil")).err().unwrap();
        let ours = "rOprNGfwEbeRWgbNEkqO";
        assert_eq!(answer("r=somebody,s=W22Z,i=4096"), ScramError::Nonce);
        assert_eq!(answer(&format!("r={ours},s=W22Z,i=4096")), ScramError::Nonce);
        assert_eq!(answer(&format!("r={ours}x,s=W22Z,i=1")), ScramError::Iterations(1));
        assert_eq!(answer(&format!("r={ours}x,s=W22Z,i=4000000000")), ScramError::Iterations(4_000_000_000));
        assert_eq!(answer(&format!("r={ours}x,s=?,i=4096")), ScramError::Malformed);
        assert_eq!(answer("hello"), ScramError::Malformed);
    }
}
