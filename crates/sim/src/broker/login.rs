//! Logging in: SASL PLAIN and SCRAM, from the broker's side.
//!
//! A client that has not logged in may ask for versions and shake hands, and nothing else. As in Kafka, passwords for
//! PLAIN belong to the listener, and what SCRAM goes by is the cluster's, where it may change. The broker's part of the
//! nonce comes from the client's, not from chance: the simulated broker guards nothing, and the same story gives the
//! same bytes.

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

use super::convert::text;
use super::feature_calls::versions;
use super::{Reply, decode, served};
use crate::cluster::Cluster;
use crate::code::Code;

/// Bytes of the broker's part of a nonce.
const NONCE: usize = 18;

/// Names and passwords.
#[derive(Clone, Default)]
pub struct Users(BTreeMap<String, String>);

impl Users {
    /// Names and passwords.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, password)| (name.as_str(), password.as_str()))
    }

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
    pub fn handle(&mut self, cluster: &Cluster, frame: Bytes) -> Reply {
        let reply = RawRequest::parse(frame).and_then(|raw| self.dispatch(cluster, &raw));
        reply.unwrap_or_else(|error| Reply::Close(Some(error)))
    }

    fn dispatch(&mut self, cluster: &Cluster, raw: &RawRequest) -> Result<Reply, MessageError> {
        let key = ApiKey::try_from(raw.key).ok();
        let spoken =
            served().any(|(served, oldest, newest)| Some(served) == key && (oldest..=newest).contains(&raw.version));
        let frame = match key {
            Some(ApiKey::ApiVersions) if !spoken => {
                encode_response(&versions(cluster, Code::UnsupportedVersion.number()), 0, raw.correlation)
            }
            Some(ApiKey::ApiVersions) => {
                decode::<ApiVersionsRequest>(raw, Limits::STRANGER)?;
                encode_response(&versions(cluster, 0), raw.version, raw.correlation)
            }
            Some(ApiKey::SaslHandshake) if spoken => {
                let response = self.shake_hands(&decode(raw, Limits::STRANGER)?);
                let frame = encode_response(&response, raw.version, raw.correlation);
                return frame.map(|frame| last_if(response.error_code != 0, frame));
            }
            Some(ApiKey::SaslAuthenticate) if spoken => {
                let response = self.authenticate(cluster, &decode(raw, Limits::STRANGER)?);
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

    fn authenticate(&mut self, cluster: &Cluster, request: &SaslAuthenticateRequest) -> SaslAuthenticateResponse {
        let response = SaslAuthenticateResponse::default();
        let (code, message) = match self.step(cluster, &request.auth_bytes) {
            Ok(answer) => return response.with_auth_bytes(answer),
            Err(code) => (code, "Authentication failed: Invalid username or password"),
        };
        self.stage = Stage::New;
        response.with_error_code(code.number()).with_error_message(Some(text(message)))
    }

    fn step(&mut self, cluster: &Cluster, said: &[u8]) -> Result<Bytes, Code> {
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
                let challenge = challenge(cluster, hash, &knock);
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
}

fn challenge(cluster: &Cluster, hash: Hash, knock: &Knock) -> Challenge {
    let nonce = &hash.digest(knock.nonce.as_bytes())[..NONCE];
    match cluster.scram_credential(&knock.username, hash) {
        Some(known) => {
            knock.challenge(hash, nonce, &known.salt, known.iterations, Some(known.salted_password.to_vec()))
        }
        None => knock.challenge(hash, nonce, &hash.digest(knock.username.as_bytes()), FEWEST_ITERATIONS, None),
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
    use crate::cluster::{Options, ScramUpsertion};

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Options::default(), []);
        cluster.add_scram_user("admin", "secret");
        cluster
    }

    fn started(mechanism: Mechanism) -> Login {
        let mut login = Login::new(Arc::new(Users::default().with("admin", "secret")));
        login.stage = Stage::Chosen(mechanism);
        login
    }

    #[test]
    fn plain_lets_in_who_knows_the_password() {
        let mut login = started(Mechanism::Plain);
        assert_eq!(login.step(&cluster(), b"\0admin\0secret"), Ok(Bytes::new()));
        assert!(login.is_done());
        for bad in [&b"\0admin\0wrong"[..], b"\0nobody\0secret", b"admin", b"\xff", b""] {
            let mut login = started(Mechanism::Plain);
            assert_eq!(login.step(&cluster(), bad), Err(Code::SaslAuthenticationFailed));
            assert!(!login.is_done());
        }
    }

    #[test]
    fn scram_lets_in_who_knows_the_password() {
        for hash in [Hash::Sha256, Hash::Sha512] {
            for (password, known) in [("secret", true), ("wrong", false)] {
                let mut login = started(Mechanism::Scram(hash));
                let first = ClientFirst::new(hash, "admin", "abc");
                let challenge = login.step(&cluster(), first.message().as_bytes()).expect("a challenge");
                let last = first.answer(&challenge, &Secret::new(password)).expect("an answer");
                let proof = login.step(&cluster(), last.message().as_bytes());
                assert_eq!((login.is_done(), proof.is_ok()), (known, known));
                assert!(proof.is_err() || proof.is_ok_and(|proof| last.check(&proof).is_ok()));
            }
        }
    }

    #[test]
    fn a_stranger_is_challenged_and_then_refused() {
        let mut login = started(Mechanism::Scram(Hash::Sha512));
        assert!(login.step(&cluster(), b"n,,n=nobody,r=abc").is_ok());
        assert_eq!(login.step(&cluster(), b"c=biws,r=abc,p=AAAA"), Err(Code::SaslAuthenticationFailed));
        assert_eq!(login.step(&cluster(), b"again"), Err(Code::IllegalSaslState));
    }

    /// Whether this password opens the door.
    fn opens(cluster: &Cluster, hash: Hash, password: &str) -> bool {
        let mut login = started(Mechanism::Scram(hash));
        let first = ClientFirst::new(hash, "admin", "abc");
        let challenge = login.step(cluster, first.message().as_bytes()).expect("a challenge");
        let last = first.answer(&challenge, &Secret::new(password)).expect("an answer");
        login.step(cluster, last.message().as_bytes()).is_ok_and(|proof| last.check(&proof).is_ok())
    }

    #[test]
    fn a_password_that_was_changed_is_the_one_that_counts() {
        let mut cluster = cluster();
        let many = FEWEST_ITERATIONS.saturating_add(1);
        let salted = Hash::Sha256.salted("new", b"salt", many);
        let upsertion = ScramUpsertion {
            user: "admin".to_owned(),
            mechanism: 1,
            salt: Bytes::from_static(b"salt"),
            iterations: many.get() as i32,
            salted_password: salted.into(),
        };
        let outcomes = cluster.alter_scram(&[], &[upsertion]);
        assert_eq!(outcomes["admin"], Ok(()));
        assert!(opens(&cluster, Hash::Sha256, "new") && !opens(&cluster, Hash::Sha256, "secret"));
        assert!(opens(&cluster, Hash::Sha512, "secret"), "the other mechanism has its own");
        let outcomes = cluster.alter_scram(&[("admin".to_owned(), 1)], &[]);
        assert_eq!(outcomes["admin"], Ok(()));
        assert!(!opens(&cluster, Hash::Sha256, "new"));
        assert_eq!(cluster.describe_scram("admin"), Ok(vec![(2, 4096)]));
    }
}
