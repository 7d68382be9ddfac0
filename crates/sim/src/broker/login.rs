//! Logging in: SASL PLAIN and SCRAM, from the broker's side.
//!
//! A client that has not logged in may ask for versions and shake hands, and nothing else. The
//! salt and the broker's part of the nonce come from the user's name and the client's nonce, not
//! from chance: the simulated broker guards nothing, and the same story gives the same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_kafka::guard::Limits;
use evenkeel_kafka::login::scram::{Challenge, FEWEST_ITERATIONS, Hash, Knock};
use evenkeel_kafka::message::{MessageError, RawRequest, encode_response};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};

use super::cluster_calls::versions;
use super::convert::text;
use super::{Reply, decode, served};
use crate::code::Code;

/// Bytes of the broker's part of a nonce.
const NONCE: usize = 18;

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
    Scram(Hash),
}

impl Mechanism {
    const ALL: [Self; 3] = [Self::Plain, Self::Scram(Hash::Sha256), Self::Scram(Hash::Sha512)];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(hash) => hash.mechanism(),
        }
    }
}

/// How far a client is.
#[derive(Debug)]
enum Stage {
    New,
    Chosen(Mechanism),
    Challenged(Challenge),
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
                let frame = encode_response(&response, raw.version, raw.correlation);
                return frame.map(|frame| last_if(response.error_code != 0, frame));
            }
            Some(ApiKey::SaslAuthenticate) if spoken => {
                let response = self.authenticate(&decode(raw, Limits::STRANGER)?);
                let frame = encode_response(&response, raw.version, raw.correlation);
                return frame.map(|frame| last_if(response.error_code != 0, frame));
            }
            _ => return Ok(Reply::Close(None)),
        };
        frame.map(Reply::Answer)
    }

    fn shake_hands(&mut self, request: &SaslHandshakeRequest) -> SaslHandshakeResponse {
        let names = Mechanism::ALL.map(|mechanism| text(mechanism.name())).to_vec();
        let response = SaslHandshakeResponse::default().with_mechanisms(names);
        match Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == request.mechanism.as_str()) {
            Some(mechanism) => {
                self.stage = Stage::Chosen(mechanism);
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
        match std::mem::replace(&mut self.stage, Stage::New) {
            Stage::Chosen(Mechanism::Plain) => {
                let said = str::from_utf8(said).map_err(|_| FAILED)?;
                let parts: Vec<&str> = said.split('\0').collect();
                let [_, name, password] = parts[..] else { return Err(FAILED) };
                if self.users.0.get(name).is_none_or(|known| known != password) {
                    return Err(FAILED);
                }
                self.stage = Stage::Done;
                Ok(Bytes::new())
            }
            Stage::Chosen(Mechanism::Scram(hash)) => {
                let knock = Knock::read(said).map_err(|_| FAILED)?;
                let challenge = self.challenge(hash, &knock);
                let message = Bytes::from(challenge.message().to_owned());
                self.stage = Stage::Challenged(challenge);
                Ok(message)
            }
            Stage::Challenged(challenge) => {
                let proof = challenge.check(said).map_err(|_| FAILED)?;
                self.stage = Stage::Done;
                Ok(Bytes::from(proof))
            }
            Stage::New | Stage::Done => Err(Code::IllegalSaslState),
        }
    }

    fn challenge(&self, hash: Hash, knock: &Knock) -> Challenge {
        let nonce = &hash.digest(knock.nonce.as_bytes())[..NONCE];
        let salt = hash.digest(knock.username.as_bytes());
        let password = self.users.0.get(&knock.username).map(String::as_str);
        knock.challenge(hash, nonce, &salt, FEWEST_ITERATIONS, password)
    }
}

/// Who has failed hears it, and has to come again.
fn last_if(failed: bool, frame: Bytes) -> Reply {
    if failed { Reply::Farewell(frame) } else { Reply::Answer(frame) }
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

#[cfg(test)]
mod tests {
    use evenkeel_kafka::login::Secret;
    use evenkeel_kafka::login::scram::ClientFirst;

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
    fn scram_lets_in_who_knows_the_password() {
        for hash in [Hash::Sha256, Hash::Sha512] {
            for (password, known) in [("secret", true), ("wrong", false)] {
                let mut login = started(Mechanism::Scram(hash));
                let first = ClientFirst::new(hash, "admin", "abc");
                let challenge = login.step(first.message().as_bytes()).expect("a challenge");
                let last = first.answer(&challenge, &Secret::new(password)).expect("an answer");
                let proof = login.step(last.message().as_bytes());
                assert_eq!((login.is_done(), proof.is_ok()), (known, known));
                assert!(proof.is_err() || proof.is_ok_and(|proof| last.check(&proof).is_ok()));
            }
        }
    }

    #[test]
    fn a_stranger_is_challenged_and_then_refused() {
        let mut login = started(Mechanism::Scram(Hash::Sha512));
        assert!(login.step(b"n,,n=nobody,r=abc").is_ok());
        assert_eq!(login.step(b"c=biws,r=abc,p=AAAA"), Err(Code::SaslAuthenticationFailed));
        assert_eq!(login.step(b"again"), Err(Code::IllegalSaslState));
    }
}
