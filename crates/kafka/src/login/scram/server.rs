//! The server's side, for brokers of ours.

use std::{fmt, num::NonZeroU32};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Hash, ScramError, attribute};

/// The client's first message, as the server reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knock {
    /// Who wants in.
    pub username: String,
    /// The client's part of the nonce.
    pub nonce: String,
    bare: String,
}

impl Knock {
    /// Reads `n,,n=NAME,r=NONCE`.
    pub fn read(said: &[u8]) -> Result<Self, ScramError> {
        let said = str::from_utf8(said).map_err(|_| ScramError::Malformed)?;
        let (flag, bare) = said.split_once(",,").ok_or(ScramError::Malformed)?;
        // With or without channel binding on the client's side; never with one on ours.
        if !matches!(flag, "n" | "y") {
            return Err(ScramError::Malformed);
        }
        Ok(Self {
            username: attribute(bare, "n=")?.replace("=2C", ",").replace("=3D", "="),
            nonce: attribute(bare, "r=")?.to_owned(),
            bare: bare.to_owned(),
        })
    }

    /// Answers with our part of the nonce and how the password is salted. Without a salted password nobody
    /// will pass, and is not told before the end: names cannot be probed.
    pub fn challenge(
        &self,
        hash: Hash,
        own_nonce: &[u8],
        salt: &[u8],
        iterations: NonZeroU32,
        salted: Option<Vec<u8>>,
    ) -> Challenge {
        let nonce = format!("{}{}", self.nonce, STANDARD.encode(own_nonce));
        let message = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        Challenge { hash, nonce, said: format!("{},{message}", self.bare), message, salted }
    }
}

/// A challenge that waits for the client's proof.
pub struct Challenge {
    hash: Hash,
    nonce: String,
    message: String,
    said: String,
    salted: Option<Vec<u8>>,
}

impl fmt::Debug for Challenge {
    /// Without the salted password, which is as good as the password itself.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Challenge").field("hash", &self.hash).field("message", &self.message).finish_non_exhaustive()
    }
}

impl Challenge {
    /// What to send.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Our own proof, if the client's (`c=BINDING,r=NONCE,p=PROOF`) is good.
    pub fn check(&self, said: &[u8]) -> Result<String, ScramError> {
        let said = str::from_utf8(said).map_err(|_| ScramError::Malformed)?;
        let (without_proof, proof) = said.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        if attribute(without_proof, "r=")? != self.nonce {
            return Err(ScramError::Nonce);
        }
        let proof = STANDARD.decode(proof).map_err(|_| ScramError::Malformed)?;
        let salted = self.salted.as_ref().ok_or(ScramError::Signature)?;
        let proofs = self.hash.proofs(salted, &format!("{},{without_proof}", self.said));
        if proof != proofs.client {
            return Err(ScramError::Signature);
        }
        Ok(format!("v={}", STANDARD.encode(proofs.server)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::{
        Secret,
        scram::{ClientFirst, FEWEST_ITERATIONS},
    };

    /// The exchange of RFC 7677, whose server does not write its nonce in base64.
    fn challenge() -> Challenge {
        let knock = Knock::read(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let salted = Hash::Sha256.salted("pencil", &salt, FEWEST_ITERATIONS);
        let made = knock.challenge(Hash::Sha256, b"", &salt, FEWEST_ITERATIONS, Some(salted));
        let message = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        Challenge { nonce: nonce.to_owned(), said: format!("n=user,r=rOprNGfwEbeRWgbNEkqO,{message}"), message, ..made }
    }

    #[test]
    fn the_proof_of_rfc_7677_is_accepted_and_answered() {
        let said = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(challenge().check(said.as_bytes()).as_deref(), Ok(answer));
        assert_eq!(challenge().check(said.replace("p=d", "p=e").as_bytes()), Err(ScramError::Signature));
        assert_eq!(challenge().check(said.replace("r=r", "r=R").as_bytes()), Err(ScramError::Nonce));
        assert_eq!(challenge().check(b"c=biws,p=?"), Err(ScramError::Malformed));
    }

    #[test]
    fn both_sides_come_to_terms_and_a_stranger_does_not() {
        for hash in [Hash::Sha256, Hash::Sha512] {
            let first = ClientFirst::new(hash, "a=b,c", "abc");
            let knock = Knock::read(first.message().as_bytes()).unwrap();
            assert_eq!(knock.username, "a=b,c");
            let meet = |password: Option<&str>| {
                let salted = password.map(|password| hash.salted(password, b"salt", FEWEST_ITERATIONS));
                knock.challenge(hash, b"own", b"salt", FEWEST_ITERATIONS, salted)
            };
            let last = first.answer(meet(None).message().as_bytes(), &Secret::new("pw")).unwrap();
            let proof = meet(Some("pw")).check(last.message().as_bytes()).unwrap();
            assert_eq!(last.check(proof.as_bytes()), Ok(()));
            for wrong in [Some("pW"), None] {
                assert_eq!(meet(wrong).check(last.message().as_bytes()), Err(ScramError::Signature));
            }
        }
    }

    #[test]
    fn what_is_no_first_message_is_refused() {
        for said in [&b""[..], b"n,,", b"n,,n=user", b"p=tls-unique,,n=user,r=x", b"n,,r=x", b"\xff,,n=u,r=x"] {
            assert_eq!(Knock::read(said), Err(ScramError::Malformed), "{said:?}");
        }
    }

    #[test]
    fn a_challenge_is_printed_without_its_secret() {
        let shown = format!("{:?}", challenge());
        assert!(!shown.contains("salted") && shown.contains("i=4096"), "{shown}");
    }
}
