//! Who may come in: HTTP Basic with the original's file of users.
//!
//! The file is that of Jetty's `HashLoginService`: `user: password,ROLE`. Passwords are plain or
//! obfuscated (`OBF:`); hashed ones (`MD5:`, `CRYPT:`) are refused, for they are hashed too weakly to
//! be worth it. What is kept is a keyed hash of each password under a key of this process, compared
//! in constant time.

use std::{collections::BTreeMap, fmt, fs, io, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use evenkeel_rest::Role;
use http::{HeaderMap, header::AUTHORIZATION};
use ring::{hmac, rand::SystemRandom};

use crate::config::properties::{Properties, Unreadable};

/// Users and their roles.
pub struct Guard {
    key: hmac::Key,
    users: BTreeMap<String, User>,
    /// Compared with when nobody has the name, so that names cannot be guessed by the time it takes.
    nobody: hmac::Tag,
}

struct User {
    password: hmac::Tag,
    role: Option<Role>,
}

/// Why nobody can be let in.
#[derive(Debug, thiserror::Error)]
pub enum NoGuard {
    /// The file cannot be read.
    #[error("could not read the file of users {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not of the form that it should have.
    #[error("the file of users cannot be understood")]
    Form(#[from] Unreadable),
    /// A user's line cannot be used.
    #[error("the user `{user}` in the file of users: {what}")]
    User {
        /// Whose.
        user: String,
        /// What is wrong; without the password.
        what: &'static str,
    },
    /// There are no random numbers to be had.
    #[error("the system gives no random numbers")]
    Random,
}

/// Who somebody turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visitor {
    /// Nobody we know.
    Stranger,
    /// A user, with the highest of his roles.
    Known(Option<Role>),
}

impl fmt::Debug for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Guard").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

impl Guard {
    /// Knows the users of a file.
    pub fn load(path: &std::path::Path) -> Result<Guard, NoGuard> {
        let text = fs::read_to_string(path).map_err(|source| NoGuard::Read { path: path.to_owned(), source })?;
        Guard::read(&text)
    }

    /// Knows the users of a file's text.
    pub fn read(text: &str) -> Result<Guard, NoGuard> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| NoGuard::Random)?;
        let lines = Properties::read_literally(text)?;
        let mut users = BTreeMap::new();
        for user in lines.keys() {
            let refused = |what| NoGuard::User { user: user.to_owned(), what };
            let line = lines.get(user).ok_or_else(|| refused("has no password"))?;
            let (password, roles) = line.split_once(',').unwrap_or((line, ""));
            let password = plain(password.trim()).map_err(refused)?;
            let role = roles.split(',').filter_map(|name| role(name.trim())).max();
            users.insert(user.to_owned(), User { password: hmac::sign(&key, password.as_bytes()), role });
        }
        let nobody = hmac::sign(&key, b"");
        Ok(Guard { key, users, nobody })
    }

    /// Who sends these headers.
    pub(super) fn look(&self, headers: &HeaderMap) -> Visitor {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(basic);
        let Some((user, password)) = given else { return Visitor::Stranger };
        let known = self.users.get(&user);
        let wanted = known.map_or(&self.nobody, |user| &user.password);
        let right = hmac::verify(&self.key, password.as_bytes(), wanted.as_ref()).is_ok();
        match known {
            Some(user) if right => Visitor::Known(user.role),
            _ => Visitor::Stranger,
        }
    }
}

fn role(name: &str) -> Option<Role> {
    [Role::Viewer, Role::User, Role::Admin].into_iter().find(|role| role.name() == name)
}

/// User and password of `Basic …`.
fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn plain(password: &str) -> Result<String, &'static str> {
    if let Some(obfuscated) = password.strip_prefix("OBF:") {
        return deobfuscated(obfuscated).ok_or("its `OBF:` password is none");
    }
    if ["MD5:", "CRYPT:"].iter().any(|form| password.starts_with(form)) {
        return Err("passwords hashed as `MD5:` or `CRYPT:` are not supported: write them plain or as `OBF:`");
    }
    if password.is_empty() { Err("has no password") } else { Ok(password.to_owned()) }
}

/// Jetty's obfuscation, which only keeps passwords from being read over a shoulder: four digits of base 36 for each
/// byte, made from it and from its mirror image; or `U` and four digits for bytes beyond ASCII.
fn deobfuscated(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, after, beyond) = match rest.strip_prefix('U') {
            Some(more) => (more.get(..4)?, more.get(4..)?, true),
            None => (rest.get(..4)?, rest.get(4..)?, false),
        };
        let number = i32::from_str_radix(digits, 36).ok()?;
        let byte = if beyond { number >> 8 } else { (number / 256 + number % 256 - 254) / 2 };
        bytes.push(u8::try_from(byte).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(guard: &Guard, user: &str, password: &str) -> Visitor {
        let mut headers = HeaderMap::new();
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        guard.look(&headers)
    }

    #[test]
    fn users_are_known_by_their_passwords_and_nobody_else_is() {
        let guard = Guard::read(
            "# people\nrebalance-operator: s3:cret,ADMIN\nhealthcheck: hc,USER\nviewer=v,VIEWER,USER\nguest: g\n\
             odd: ${env:X},VIEWER\nodder: ${x:y},VIEWER\n",
        )
        .unwrap();
        assert_eq!(look(&guard, "rebalance-operator", "s3:cret"), Visitor::Known(Some(Role::Admin)));
        assert_eq!(look(&guard, "viewer", "v"), Visitor::Known(Some(Role::User)));
        assert_eq!(look(&guard, "guest", "g"), Visitor::Known(None));
        assert_eq!(look(&guard, "odd", "${env:X}"), Visitor::Known(Some(Role::Viewer)));
        assert_eq!(look(&guard, "odder", "${x:y}"), Visitor::Known(Some(Role::Viewer)));
        for (user, password) in [("healthcheck", "no"), ("healthcheck", ""), ("nobody", ""), ("", "")] {
            assert_eq!(look(&guard, user, password), Visitor::Stranger, "{user}");
        }
        assert_eq!(guard.look(&HeaderMap::new()), Visitor::Stranger);
        assert!(!format!("{guard:?}").contains("cret"));
    }

    #[test]
    fn headers_that_are_none_belong_to_strangers() {
        let guard = Guard::read("a: b,ADMIN").unwrap();
        for value in ["Basic", "Basic !!", "Bearer YTpi", "Basic YQ==", "YTpi"] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(guard.look(&headers), Visitor::Stranger, "{value}");
        }
        let any_case = HeaderMap::from_iter([(AUTHORIZATION, "bAsIc YTpi".parse().unwrap())]);
        assert_eq!(guard.look(&any_case), Visitor::Known(Some(Role::Admin)));
    }

    #[test]
    fn jetty_s_obfuscation_is_undone() {
        // Jetty's own documented examples.
        assert_eq!(deobfuscated("1vny1zlo1x8e1vnw1vn61x8g1zlu1vn4").as_deref(), Some("storepwd"));
        assert_eq!(deobfuscated("1u2u1wml1z7s1z7a1wnl1u2g").as_deref(), Some("keypwd"));
        assert_eq!(deobfuscated("xyz"), None);
        let guard = Guard::read("a: OBF:1u2u1wml1z7s1z7a1wnl1u2g,USER").unwrap();
        assert_eq!(look(&guard, "a", "keypwd"), Visitor::Known(Some(Role::User)));
    }

    #[test]
    fn what_cannot_be_used_is_said_without_the_password() {
        for (text, word) in [("a: MD5:abc,ADMIN", "MD5"), ("a: ,ADMIN", "no password"), ("a:", "no password")] {
            let error = Guard::read(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("abc"), "{error}");
        }
        assert!(matches!(Guard::load("/no/such/file".as_ref()), Err(NoGuard::Read { .. })));
    }
}
