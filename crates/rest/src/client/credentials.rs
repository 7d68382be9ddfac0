//! Who asks.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// Knows the credentials of the moment. Asked before each request, so that a changed secret takes effect with the next
/// one; whoever reads them from afar should keep them at hand.
pub trait Credentials: Send + Sync {
    /// What to send now; nothing if the server wants none.
    fn current(&self) -> Option<Basic>;
}

impl<F: Fn() -> Option<Basic> + Send + Sync> Credentials for F {
    fn current(&self) -> Option<Basic> {
        self()
    }
}

/// A user and a password. The password is in no output.
#[derive(Clone, PartialEq, Eq)]
pub struct Basic {
    user: String,
    password: String,
}

impl Basic {
    /// This user with this password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    pub(super) fn header(&self) -> HeaderValue {
        let mut value =
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password))))
                .expect("base64 is printable");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basic").field("user", &self.user).finish_non_exhaustive()
    }
}
