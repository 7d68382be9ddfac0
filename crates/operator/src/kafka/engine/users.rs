//! The Secret with the users of the engine's API. Passwords that are there stay; what lacks is made.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};

use crate::kafka::{hash, problem::Problem};

/// The key of the file that the engine reads: `user: password, ROLE` lines.
pub(super) const AUTH_FILE: &str = "cruise-control.authFile";
/// The operator itself.
pub(crate) const OPERATOR: &str = "rebalance-operator";
const HEALTH_CHECK: &str = "healthcheck";
const TOPIC_OPERATOR: &str = "topic-operator";
/// Users that nobody else may be.
const RESERVED: [&str; 3] = [OPERATOR, HEALTH_CHECK, TOPIC_OPERATOR];
const API_USERS: &str = "spec.cruiseControl.apiUsers";

/// What the Secret holds.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiSecret {
    /// Keys and values.
    pub data: BTreeMap<String, ByteString>,
    /// Changes with the users and their passwords: `strimzi.io/auth-hash`.
    pub hash: String,
}

impl std::fmt::Debug for ApiSecret {
    /// Passwords stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiSecret").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// A password from 16 random bytes.
pub fn password(random: [u8; 16]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    random.iter().flat_map(|byte| [byte >> 5, byte & 31]).map(|five| char::from(LETTERS[usize::from(five)])).collect()
}

/// What the Secret ought to hold, given what it holds now and the list of further users, if one is named. `random` is
/// asked for each password that lacks.
pub fn api_secret(
    existing: Option<&Secret>,
    further: Option<&str>,
    mut random: impl FnMut() -> [u8; 16],
) -> Result<ApiSecret, Vec<Problem>> {
    let there = |user: &str| {
        let bytes = existing?.data.as_ref()?.get(&format!("{user}.password"))?;
        let text = std::str::from_utf8(&bytes.0).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let mut of = |user: &str| there(user).unwrap_or_else(|| password(random()));
    let (operator, health) = (of(OPERATOR), of(HEALTH_CHECK));
    let mut lines = vec![format!("{OPERATOR}: {operator}, ADMIN"), format!("{HEALTH_CHECK}: {health}, USER")];
    lines.extend(further_users(further.unwrap_or_default())?);
    let file = lines.join("\n") + "\n";
    let hash = hash::of_text(&file);
    let data = [
        (AUTH_FILE.to_owned(), file),
        (format!("{OPERATOR}.password"), operator),
        (format!("{HEALTH_CHECK}.password"), health),
    ];
    let data = data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect();
    Ok(ApiSecret { data, hash })
}

/// Lines `user: password, ROLE` that a user wrote. Nobody becomes an administrator this way.
fn further_users(text: &str) -> Result<Vec<String>, Vec<Problem>> {
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is not repeated: it holds a password.
        let mut wrong = |text: &str| problems.push(Problem::of_kafka(API_USERS, format!("line {}: {text}", n + 1)));
        let parts = line.split_once(':').and_then(|(user, rest)| Some((user.trim(), rest.rsplit_once(',')?)));
        match parts {
            None => wrong("must look like `user: password, ROLE`"),
            Some((user, _)) if RESERVED.contains(&user) => wrong("this user is the operator's own"),
            Some((_, (_, role))) if !["VIEWER", "USER"].contains(&role.trim()) => wrong("the role is VIEWER or USER"),
            Some((user, (password, role))) => lines.push(format!("{user}: {}, {}", password.trim(), role.trim())),
        }
    }
    if problems.is_empty() { Ok(lines) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(secret: &ApiSecret, key: &str) -> String {
        String::from_utf8(secret.data[key].0.clone()).unwrap()
    }

    #[test]
    fn passwords_are_made_once_and_kept() {
        let mut next = 0;
        let mut random = || {
            next += 1;
            [next; 16]
        };
        let first = api_secret(None, None, &mut random).unwrap();
        assert_ne!(text(&first, "rebalance-operator.password"), text(&first, "healthcheck.password"));
        let stored = Secret { data: Some(first.data.clone()), ..Secret::default() };
        let again = api_secret(Some(&stored), None, || panic!("no dice")).unwrap();
        assert_eq!(first, again);
        // One that was lost is made anew, the other stays.
        let mut partly = stored.clone();
        partly.data.as_mut().unwrap().remove("healthcheck.password");
        let mended = api_secret(Some(&partly), None, random).unwrap();
        assert_eq!(text(&mended, "rebalance-operator.password"), text(&first, "rebalance-operator.password"));
        assert_ne!(mended.hash, first.hash);
    }

    #[test]
    fn further_users_are_added_and_never_administrators() {
        let secret = api_secret(None, Some("# ours\nalice: se,cret, VIEWER\n\nbob: x, USER"), || [7; 16]).unwrap();
        let file = text(&secret, AUTH_FILE);
        assert!(file.ends_with("alice: se,cret, VIEWER\nbob: x, USER\n"), "{file}");
        let problems =
            api_secret(None, Some("eve: hush, ADMIN\nhealthcheck: hush, USER\nhush"), || [7; 16]).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 3);
        assert!(!said.concat().contains("hush"), "{said:?}");
    }

    #[test]
    fn passwords_use_letters_that_nobody_confuses() {
        let made = password([0, 31, 32, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(made.len(), 32);
        assert!(made.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    }
}
