//! Logging in: SASL PLAIN and SCRAM, from the broker's side.
//!
//! A client that has not logged in may ask for versions and shake hands, and nothing else. The
//! salt and the broker's part of the nonce come from the user's name and the client's nonce, not
//! from chance: the simulated broker guards nothing, and the same story gives the same bytes.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use evenkeel_kafka::guard::Limits;
use evenkeel_kafka::message::{MessageError, RawRequest, encode_response};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use ring::{digest, hmac, pbkdf2};

use super::cluster_calls::versions;
use super::convert::text;
use super::{Reply, decode, served};
use crate::code::Code;

/// Kafka's least number of iterations.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4_096).expect("not zero");

/// Names and passwords.
#[derive(Clone, Default)]
pub struct Users(BTreeMap<String, String>);

impl Users {
    /// Lets one more in.
    pub fn with(mut self, name: &str, password: &str) -> Self {
        self.0.insert(name.to_owned(), password.to_owned());
        self
    }
}

// Passwords are nobody's business, not even a log's.
impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    Plain,
    Sha256,
    Sha512,
}

impl Mechanism {
    const ALL: [(&'static str, Self); 3] =
        [("PLAIN", Self::Plain), ("SCRAM-SHA-256", Self::Sha256), ("SCRAM-SHA-512", Self::Sha512)];

    fn hash(self) -> (pbkdf2::Algorithm, hmac::Algorithm, &'static digest::Algorithm) {
        match self {
            Self::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, hmac::HMAC_SHA512, &digest::SHA512),
            _ => (pbkdf2::PBKDF2_HMAC_SHA256, hmac::HMAC_SHA256, &digest::SHA256),
        }
    }
}

/// How far a client is.
#[derive(Debug)]
enum Stage {
    New,
    Chosen(Mechanism),
    Challenged { mechanism: Mechanism, nonce: String, transcript: String, salted: Option<Vec<u8>> },
    Done,
}

/// One client's way in.
#[derive(Debug)]
pub struct Login {
    users: Arc<Users>,
    stage: Stage,
}

impl Login {
    /// A client that nobody knows yet.
    pub fn new(users: Arc<Users>) -> Self {
        Self { users, stage: Stage::New }
    }

    /// Whether the client is in.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Answers one request of a client that is not in yet.
    pub fn handle(&mut self, frame: Bytes) -> Reply {
        let reply = RawRequest::parse(frame).and_then(|raw| self.dispatch(&raw));
        reply.unwrap_or_else(|error| Reply::Close(Some(error)))
    }

    fn dispatch(&mut self, raw: &RawRequest) -> Result<Reply, MessageError> {
        let key = ApiKey::try_from(raw.key).ok();
        let spoken =
            served().any(|(served, oldest, newest)| Some(served) == key && (oldest..=newest).contains(&raw.version));
        let frame = match key {
            Some(ApiKey::ApiVersions) if !spoken => {
                encode_response(&versions(Code::UnsupportedVersion.number()), 0, raw.correlation)
            }
            Some(ApiKey::ApiVersions) => {
                decode::<ApiVersionsRequest>(raw, Limits::STRANGER)?;
                encode_response(&versions(0), raw.version, raw.correlation)
            }
            Some(ApiKey::SaslHandshake) if spoken => {
                let response = self.shake_hands(&decode(raw, Limits::STRANGER)?);
                encode_response(&response, raw.version, raw.correlation)
            }
            Some(ApiKey::SaslAuthenticate) if spoken => {
                let response = self.authenticate(&decode(raw, Limits::STRANGER)?);
                encode_response(&response, raw.version, raw.correlation)
            }
            _ => return Ok(Reply::Close(None)),
        };
        frame.map(Reply::Answer)
    }

    fn shake_hands(&mut self, request: &SaslHandshakeRequest) -> SaslHandshakeResponse {
        let names = Mechanism::ALL.map(|(name, _)| text(name)).to_vec();
        let response = SaslHandshakeResponse::default().with_mechanisms(names);
        match Mechanism::ALL.iter().find(|(name, _)| *name == request.mechanism.as_str()) {
            Some((_, mechanism)) => {
                self.stage = Stage::Chosen(*mechanism);
                response
            }
            None => response.with_error_code(Code::UnsupportedSaslMechanism.number()),
        }
    }

    fn authenticate(&mut self, request: &SaslAuthenticateRequest) -> SaslAuthenticateResponse {
        let response = SaslAuthenticateResponse::default();
        let (code, message) = match self.step(&request.auth_bytes) {
            Ok(answer) => return response.with_auth_bytes(answer),
            Err(code) => (code, "Authentication failed: Invalid username or password"),
        };
        self.stage = Stage::New;
        response.with_error_code(code.number()).with_error_message(Some(text(message)))
    }

    fn step(&mut self, said: &[u8]) -> Result<Bytes, Code> {
        const FAILED: Code = Code::SaslAuthenticationFailed;
        let said = str::from_utf8(said).map_err(|_| FAILED)?;
        match std::mem::replace(&mut self.stage, Stage::New) {
            Stage::Chosen(Mechanism::Plain) => {
                let parts: Vec<&str> = said.split('\0').collect();
                let [_, name, password] = parts[..] else { return Err(FAILED) };
                if self.users.0.get(name).is_none_or(|known| known != password) {
                    return Err(FAILED);
                }
                self.stage = Stage::Done;
                Ok(Bytes::new())
            }
            Stage::Chosen(mechanism) => self.challenge(mechanism, said).ok_or(FAILED),
            Stage::Challenged { mechanism, nonce, transcript, salted } => {
                let salted = salted.ok_or(FAILED)?;
                let proof = check_proof(mechanism, &nonce, &transcript, &salted, said).ok_or(FAILED)?;
                self.stage = Stage::Done;
                Ok(proof)
            }
            Stage::New | Stage::Done => Err(Code::IllegalSaslState),
        }
    }

    /// `n,,n=NAME,r=NONCE` is answered with our nonce, the salt and the iterations.
    fn challenge(&mut self, mechanism: Mechanism, said: &str) -> Option<Bytes> {
        let (_, bare) = said.split_once(",,").filter(|(flag, _)| matches!(*flag, "n" | "y"))?;
        let field = |letter: &str| bare.split(',').find_map(|field| field.strip_prefix(letter));
        let name = field("n=")?.replace("=2C", ",").replace("=3D", "=");
        let client_nonce = field("r=")?;
        let (derive, _, hash) = mechanism.hash();
        let ours = digest::digest(hash, client_nonce.as_bytes());
        let nonce = format!("{client_nonce}{}", BASE64_STANDARD.encode(&ours.as_ref()[..18]));
        let salt = digest::digest(hash, name.as_bytes());
        // A stranger is challenged like anybody, so that names cannot be probed.
        let salted = self.users.0.get(&name).map(|password| {
            let mut salted = vec![0; hash.output_len()];
            pbkdf2::derive(derive, ITERATIONS, salt.as_ref(), password.as_bytes(), &mut salted);
            salted
        });
        let answer = format!("r={nonce},s={},i={ITERATIONS}", BASE64_STANDARD.encode(salt.as_ref()));
        let transcript = format!("{bare},{answer}");
        self.stage = Stage::Challenged { mechanism, nonce, transcript, salted };
        Some(Bytes::from(answer))
    }
}

/// What a handshake gets where there is nothing to log in to, or not any more.
pub(super) fn no_handshake() -> SaslHandshakeResponse {
    SaslHandshakeResponse::default().with_error_code(Code::IllegalSaslState.number())
}

/// What a login gets there.
pub(super) fn no_login() -> SaslAuthenticateResponse {
    SaslAuthenticateResponse::default()
        .with_error_code(Code::IllegalSaslState.number())
        .with_error_message(Some(text("SaslAuthenticate request received after successful authentication")))
}

/// `c=BINDING,r=NONCE,p=PROOF`: the broker's own proof if the client's is good.
fn check_proof(mechanism: Mechanism, nonce: &str, transcript: &str, salted: &[u8], said: &str) -> Option<Bytes> {
    let (without_proof, proof) = said.rsplit_once(",p=")?;
    if without_proof.split(',').find_map(|field| field.strip_prefix("r="))? != nonce {
        return None;
    }
    let (_, mac, hash) = mechanism.hash();
    let sign = |key: &[u8], message: &[u8]| hmac::sign(&hmac::Key::new(mac, key), message);
    let transcript = format!("{transcript},{without_proof}");
    let stored = digest::digest(hash, sign(salted, b"Client Key").as_ref());
    let signature = sign(stored.as_ref(), transcript.as_bytes());
    let proof = BASE64_STANDARD.decode(proof).ok()?;
    let client_key: Vec<u8> = proof.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
    if proof.len() != hash.output_len() || digest::digest(hash, &client_key).as_ref() != stored.as_ref() {
        return None;
    }
    let server_key = sign(salted, b"Server Key");
    let ours = sign(server_key.as_ref(), transcript.as_bytes());
    Some(Bytes::from(format!("v={}", BASE64_STANDARD.encode(ours.as_ref()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(mechanism: Mechanism) -> Login {
        let mut login = Login::new(Arc::new(Users::default().with("admin", "secret")));
        login.stage = Stage::Chosen(mechanism);
        login
    }

    #[test]
    fn plain_lets_in_who_knows_the_password() {
        let mut login = started(Mechanism::Plain);
        assert_eq!(login.step(b"\0admin\0secret"), Ok(Bytes::new()));
        assert!(login.is_done());
        for bad in [&b"\0admin\0wrong"[..], b"\0nobody\0secret", b"admin", b"\xff", b""] {
            let mut login = started(Mechanism::Plain);
            assert_eq!(login.step(bad), Err(Code::SaslAuthenticationFailed));
            assert!(!login.is_done());
        }
    }

    #[test]
    fn the_proof_of_rfc_7677_is_accepted_and_answered() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, b"pencil", &mut salted);
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let transcript = format!("n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let said = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let answer = check_proof(Mechanism::Sha256, nonce, &transcript, &salted, &said);
        assert_eq!(answer.as_deref(), Some(&b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="[..]));
        let other = said.replace("p=d", "p=e");
        assert_eq!(check_proof(Mechanism::Sha256, nonce, &transcript, &salted, &other), None);
    }

    #[test]
    fn a_stranger_is_challenged_and_then_refused() {
        let mut login = started(Mechanism::Sha512);
        assert!(login.step(b"n,,n=nobody,r=abc").is_ok());
        assert_eq!(login.step(b"c=biws,r=abc,p=AAAA"), Err(Code::SaslAuthenticationFailed));
        assert_eq!(login.step(b"again"), Err(Code::IllegalSaslState));
    }
}
