//! Who may come in. There is one identity, the administrator, known by a client certificate or a bearer token.

use std::hint::black_box;

use http::{HeaderMap, header::AUTHORIZATION};

use crate::refusal::Refusal;

/// Paths that tell nothing about the content and answer everyone, as on a real server.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Who was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visitor {
    /// The one identity there is.
    Administrator,
    /// Anyone, who asked for what everyone may see.
    Anyone,
}

/// Lets a request in, or says why not. `certified`: the connection presented a certificate that our authority signed.
pub(super) fn check(path: &str, headers: &HeaderMap, certified: bool, token: &str) -> Result<Visitor, Refusal> {
    let unauthorized = || Refusal::new(401, "Unauthorized", "Unauthorized");
    if certified {
        return Ok(Visitor::Administrator);
    }
    match headers.get(AUTHORIZATION) {
        // Someone who tries to be somebody and fails is not taken for nobody: also public paths refuse.
        Some(given) if is_token(given.as_bytes(), token) => Ok(Visitor::Administrator),
        Some(_) => Err(unauthorized()),
        None if is_public(path) => Ok(Visitor::Anyone),
        None => Err(unauthorized()),
    }
}

fn is_public(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    PUBLIC.contains(&path)
}

fn is_token(header: &[u8], token: &str) -> bool {
    let Some((scheme, given)) = header.split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && same(given.trim_ascii(), token.as_bytes())
}

/// Compares without telling by its duration how much of a guess was right. The length is no secret.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let differing = given.iter().zip(expected).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
    given.len() == expected.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn code(path: &str, authorization: Option<&str>, certified: bool) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some(text) = authorization {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(text).expect("a header"));
        }
        check(path, &headers, certified, "secret").map_or_else(|refusal| refusal.code, |_| 200)
    }

    #[test]
    fn the_administrator_comes_in_by_certificate_or_token() {
        assert_eq!(code("/api/v1/pods", None, true), 200);
        assert_eq!(code("/api/v1/pods", Some("Bearer secret"), false), 200);
        assert_eq!(code("/api/v1/pods", Some("bearer secret"), false), 200);
        for wrong in ["Bearer secre", "Bearer secrets", "Bearer Secret", "Bearer ", "Basic secret", "secret", ""] {
            assert_eq!(code("/api/v1/pods", Some(wrong), false), 401, "{wrong:?}");
        }
    }

    #[test]
    fn nobody_sees_health_and_version_only() {
        assert_eq!(code("/healthz", None, false), 200);
        assert_eq!(code("/version/", None, false), 200);
        assert_eq!(code("/api", None, false), 401);
        assert_eq!(code("/healthz/ping", None, false), 401);
        assert_eq!(code("/healthz", Some("Bearer wrong"), false), 401);
        let visitor = check("/healthz", &HeaderMap::new(), false, "secret").expect("public");
        assert_eq!(visitor, Visitor::Anyone, "who asks how we are has not said who they are");
    }
}
