//! The client's side.

use std::num::NonZeroU32;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{FEWEST_ITERATIONS, Hash, MOST_ITERATIONS, ScramError, attribute};
use crate::login::Secret;

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
        let in_range = (FEWEST_ITERATIONS.get()..=MOST_ITERATIONS).contains(&iterations);
        let rounds = NonZeroU32::new(iterations).filter(|_| in_range).ok_or(ScramError::Iterations(iterations))?;

        let salted = self.hash.salted(password.reveal(), &salt, rounds);
        let without_proof = format!("c=biws,r={nonce}");
        let proofs = self.hash.proofs(&salted, &format!("{},{challenge},{without_proof}", self.bare));
        Ok(ClientFinal {
            message: format!("{without_proof},p={}", STANDARD.encode(proofs.client)),
            server_signature: proofs.server,
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
