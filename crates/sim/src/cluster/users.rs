//! Who may log in by SCRAM. As in Kafka, that is part of the cluster and may be changed while it runs; passwords for
//! PLAIN are part of a listener, and only a new listener has others.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use bytes::Bytes;
use evenkeel_kafka::login::scram::{FEWEST_ITERATIONS, Hash};

use super::Cluster;
use crate::code::{Code, Refusal};

/// Kafka takes no more.
const MOST_ITERATIONS: u32 = 16_384;

/// How one user's password was salted for one mechanism, and what came of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredential {
    /// With what.
    pub salt: Bytes,
    /// How often.
    pub iterations: NonZeroU32,
    /// As good as the password itself.
    pub salted_password: Bytes,
}

// Passwords are nobody's business, not even a log's.
impl std::fmt::Debug for ScramCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScramCredential").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// By user and by Kafka's number for the mechanism.
pub(crate) type ScramCredentials = BTreeMap<String, BTreeMap<i8, ScramCredential>>;

/// A credential to be set, as a client sends it.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramUpsertion {
    /// Whose.
    pub user: String,
    /// Kafka's number for the mechanism.
    pub mechanism: i8,
    /// With what the password was salted.
    pub salt: Bytes,
    /// How often.
    pub iterations: i32,
    /// What came of it.
    pub salted_password: Bytes,
}

/// Kafka's number for a mechanism.
pub(crate) fn number(hash: Hash) -> i8 {
    match hash {
        Hash::Sha256 => 1,
        Hash::Sha512 => 2,
    }
}

fn check_mechanism(number: i8) -> Result<(), Refusal> {
    if (1..=2).contains(&number) {
        return Ok(());
    }
    Err(Code::UnsupportedSaslMechanism.because("Unknown SCRAM mechanism"))
}

impl Cluster {
    /// Lets a user in by every SCRAM mechanism. The salt comes from the name and not from chance: a simulated broker guards
    /// nothing, and the same story gives the same bytes.
    pub fn add_scram_user(&mut self, user: &str, password: &str) {
        for hash in [Hash::Sha256, Hash::Sha512] {
            let salt = hash.digest(user.as_bytes());
            let salted_password = hash.salted(password, &salt, FEWEST_ITERATIONS).into();
            let credential = ScramCredential { salt: salt.into(), iterations: FEWEST_ITERATIONS, salted_password };
            self.scram.entry(user.to_owned()).or_default().insert(number(hash), credential);
        }
    }

    pub(crate) fn scram_credential(&self, user: &str, hash: Hash) -> Option<&ScramCredential> {
        self.scram.get(user)?.get(&number(hash))
    }

    /// Mechanisms and iterations of one user.
    pub fn describe_scram(&self, user: &str) -> Result<Vec<(i8, u32)>, Refusal> {
        let Some(credentials) = self.scram.get(user) else {
            let text = format!("Attempt to describe a user credential that does not exist: {user}");
            return Err(Code::ResourceNotFound.because(text));
        };
        Ok(credentials.iter().map(|(mechanism, it)| (*mechanism, it.iterations.get())).collect())
    }

    /// Everybody who may log in by SCRAM.
    pub fn scram_users(&self) -> Vec<String> {
        self.scram.keys().cloned().collect()
    }

    /// Changes who may log in; each user at most once at a time.
    pub fn alter_scram(
        &mut self,
        deletions: &[(String, i8)],
        upsertions: &[ScramUpsertion],
    ) -> BTreeMap<String, Result<(), Refusal>> {
        let mut outcomes: BTreeMap<String, Result<(), Refusal>> = BTreeMap::new();
        let checked = deletions
            .iter()
            .map(|(user, mechanism)| (user, self.check_deletion(user, *mechanism)))
            .chain(upsertions.iter().map(|it| (&it.user, check_upsertion(it))));
        let mut named = BTreeSet::new();
        for (user, outcome) in checked {
            let again = !named.insert(user);
            let twice = "A user credential cannot be altered twice in the same request";
            // What was wrong first is told.
            let outcome = if again { Err(Code::DuplicateResource.because(twice)) } else { outcome };
            if outcomes.get(user).is_none_or(Result::is_ok) {
                outcomes.insert(user.clone(), outcome);
            }
        }
        let accepted = |user: &String| outcomes.get(user).is_some_and(Result::is_ok);
        for (user, mechanism) in deletions.iter().filter(|(user, _)| accepted(user)) {
            if let Some(credentials) = self.scram.get_mut(user) {
                credentials.remove(mechanism);
            }
            self.scram.retain(|_, credentials| !credentials.is_empty());
        }
        for it in upsertions.iter().filter(|it| accepted(&it.user)) {
            let Some(iterations) = u32::try_from(it.iterations).ok().and_then(NonZeroU32::new) else { continue };
            let (salt, salted_password) = (it.salt.clone(), it.salted_password.clone());
            let credential = ScramCredential { salt, iterations, salted_password };
            self.scram.entry(it.user.clone()).or_default().insert(it.mechanism, credential);
        }
        outcomes
    }

    fn check_deletion(&self, user: &str, mechanism: i8) -> Result<(), Refusal> {
        check_name(user)?;
        check_mechanism(mechanism)?;
        if self.scram.get(user).is_none_or(|known| !known.contains_key(&mechanism)) {
            let text = "Attempt to delete a user credential that does not exist";
            return Err(Code::ResourceNotFound.because(text));
        }
        Ok(())
    }
}

fn check_upsertion(it: &ScramUpsertion) -> Result<(), Refusal> {
    check_name(&it.user)?;
    check_mechanism(it.mechanism)?;
    if it.iterations < FEWEST_ITERATIONS.get() as i32 {
        return Err(Code::UnacceptableCredential.because("Too few iterations"));
    }
    if it.iterations > MOST_ITERATIONS as i32 {
        return Err(Code::UnacceptableCredential.because("Too many iterations"));
    }
    if it.salted_password.is_empty() {
        // Where Kafka's controller fails on it.
        return Err(Code::UnknownServerError.plain());
    }
    Ok(())
}

fn check_name(user: &str) -> Result<(), Refusal> {
    if user.is_empty() {
        return Err(Code::UnacceptableCredential.because("Username must not be empty"));
    }
    Ok(())
}
