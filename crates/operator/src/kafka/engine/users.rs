//! The Secret with the users of the engine's API. Passwords that are there stay; what lacks is made.

use std::collections::BTreeMap;

use evenkeel_api::{kafka::CruiseControlSpec, names::is_name};
use k8s_openapi::{ByteString, api::core::v1::Secret};

use crate::kafka::{hash, problem::Problem, seen::FurtherUsers};

/// The key of the file that the engine reads: `user: password, ROLE` lines.
pub(super) const AUTH_FILE: &str = "cruise-control.authFile";
/// The operator itself.
pub(crate) const OPERATOR: &str = "rebalance-operator";
const HEALTH_CHECK: &str = "healthcheck";
const TOPIC_OPERATOR: &str = "topic-operator";
/// Users that nobody else may be.
const RESERVED: [&str; 3] = [OPERATOR, HEALTH_CHECK, TOPIC_OPERATOR];
/// Where they are named.
pub(in crate::kafka) const API_USERS: &str = "spec.cruiseControl.apiUsers";
/// The only form of the list.
const LIST: &str = "hashLoginService";

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

/// The Secret and the key in it that a list of users is read from, if they are named.
pub fn named_users(spec: &CruiseControlSpec) -> Option<(String, String)> {
    let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let reference = spec.api_users.as_ref()?.value_from.as_ref()?.secret_key_ref.as_ref()?;
    Some((named(&reference.name).filter(|name| is_name(name))?, named(&reference.key)?))
}

/// What is wrong with how users are named.
pub(super) fn wrong_users(spec: &CruiseControlSpec) -> Vec<Problem> {
    let Some(users) = &spec.api_users else { return Vec::new() };
    let mut problems = Vec::new();
    if users.type_.as_deref() != Some(LIST) {
        let text = format!("`{}` is not known: write `{LIST}`", users.type_.as_deref().unwrap_or_default());
        problems.push(Problem::of_kafka(format!("{API_USERS}.type"), text));
    }
    if named_users(spec).is_none() {
        let text = "is missing: name a Secret and the key in it that holds the list of users";
        problems.push(Problem::of_kafka(format!("{API_USERS}.valueFrom.secretKeyRef"), text));
    }
    problems
}

/// A password from 16 random bytes.
pub fn password(random: [u8; 16]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    random.iter().flat_map(|byte| [byte >> 5, byte & 31]).map(|five| char::from(LETTERS[usize::from(five)])).collect()
}

/// What the Secret ought to hold, given what it holds now and the list of further users, if one is named: while that is missing,
/// whoever was a user stays one. `random` is asked for each password that lacks.
pub fn api_secret(
    existing: Option<&Secret>,
    further: &FurtherUsers,
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
    match further {
        FurtherUsers::Unasked => {}
        FurtherUsers::Missing { .. } => lines.extend(present_users(existing)),
        FurtherUsers::Listed(text) => lines.extend(further_users(text)?),
    }
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

/// The lines of those who are users now, but for the operator's own.
fn present_users(existing: Option<&Secret>) -> Vec<String> {
    let file = existing.and_then(|secret| secret.data.as_ref()?.get(AUTH_FILE));
    let text = file.and_then(|bytes| str::from_utf8(&bytes.0).ok()).unwrap_or_default();
    let is_theirs = |line: &&str| line.split_once(':').is_some_and(|(user, _)| !RESERVED.contains(&user.trim()));
    text.lines().filter(is_theirs).map(str::to_owned).collect()
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
        let none = FurtherUsers::Unasked;
        let first = api_secret(None, &none, &mut random).unwrap();
        assert_ne!(text(&first, "rebalance-operator.password"), text(&first, "healthcheck.password"));
        let stored = Secret { data: Some(first.data.clone()), ..Secret::default() };
        let again = api_secret(Some(&stored), &none, || panic!("no dice")).unwrap();
        assert_eq!(first, again);
        // One that was lost is made anew, the other stays.
        let mut partly = stored.clone();
        partly.data.as_mut().unwrap().remove("healthcheck.password");
        let mended = api_secret(Some(&partly), &none, random).unwrap();
        assert_eq!(text(&mended, "rebalance-operator.password"), text(&first, "rebalance-operator.password"));
        assert_ne!(mended.hash, first.hash);
    }

    #[test]
    fn further_users_are_added_and_never_administrators() {
        let listed = |text: &str| FurtherUsers::Listed(text.to_owned());
        let further = listed("# ours\nalice: se,cret, VIEWER\n\nbob: x, USER");
        let secret = api_secret(None, &further, || [7; 16]).unwrap();
        let file = text(&secret, AUTH_FILE);
        assert!(file.ends_with("alice: se,cret, VIEWER\nbob: x, USER\n"), "{file}");
        let problems =
            api_secret(None, &listed("eve: hush, ADMIN\nhealthcheck: hush, USER\nhush"), || [7; 16]).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 3);
        assert!(!said.concat().contains("hush"), "{said:?}");

        // While their Secret is away, perhaps because it is being replaced, all stay who they are.
        let stored = Secret { data: Some(secret.data.clone()), ..Secret::default() };
        let missing = FurtherUsers::Missing { secret: "s".to_owned(), key: "k".to_owned() };
        assert_eq!(api_secret(Some(&stored), &missing, || panic!("no dice")).unwrap(), secret);
        let without = api_secret(Some(&stored), &FurtherUsers::Unasked, || panic!("no dice")).unwrap();
        assert!(!text(&without, AUTH_FILE).contains("alice"), "nobody asks for them any more");
        assert!(!format!("{further:?}{missing:?}").contains("cret"), "passwords stay out of logs");
    }

    #[test]
    fn users_are_named_whole_or_that_is_said() {
        let wrong = |users: serde_json::Value| -> Vec<String> {
            let spec = serde_json::from_value(serde_json::json!({"apiUsers": users})).unwrap();
            wrong_users(&spec).into_iter().map(|problem| problem.field).collect()
        };
        let source = serde_json::json!({"secretKeyRef": {"name": "s", "key": "k"}});
        assert_eq!(wrong(serde_json::json!({"type": "hashLoginService", "valueFrom": source})), [""; 0]);
        assert_eq!(
            wrong(serde_json::json!({"type": "other", "valueFrom": source})),
            ["spec.cruiseControl.apiUsers.type"]
        );
        let nowhere = serde_json::json!({"secretKeyRef": {"name": "", "key": "k"}});
        let both = ["spec.cruiseControl.apiUsers.type", "spec.cruiseControl.apiUsers.valueFrom.secretKeyRef"];
        assert_eq!(wrong(serde_json::json!({"valueFrom": nowhere})), both);
        assert_eq!(wrong(serde_json::Value::Null), [""; 0]);
    }

    #[test]
    fn passwords_use_letters_that_nobody_confuses() {
        let made = password([0, 31, 32, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(made.len(), 32);
        assert!(made.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    }
}
