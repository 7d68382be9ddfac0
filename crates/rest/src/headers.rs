//! Headers of answers.

/// Which task an answer belongs to, and in a request which task is asked after.
pub const USER_TASK_ID: &str = "User-Task-ID";
/// Which server answers. Clients want a dotted number of at least 2.0.61 and compare nothing else.
pub const VERSION: &str = "Cruise-Control-Version";
/// Which commit the server was built from.
pub const COMMIT_ID: &str = "Cruise-Control-Commit_Id";
/// The shape of the body, if asked for.
pub const JSON_SCHEMA: &str = "Cruise-Control-JSON-Schema";
/// The version of Cruise Control that this engine stands in for.
pub const VERSION_VALUE: &str = "2.5.146";
/// The cookie that ties a session's requests to its tasks.
pub const SESSION_COOKIE: &str = "JSESSIONID";
/// What comes with a session's first answer, so that nobody caches it.
pub const EXPIRES_VALUE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";
/// The challenge of a 401.
pub const CHALLENGE: &str = "basic realm=\"DefaultLoginService\"";

/// The content type of an answer.
pub fn content_type(json: bool) -> &'static str {
    if json { "application/json;charset=utf-8" } else { "text/plain;charset=utf-8" }
}

/// The value of `Set-Cookie` that begins a session.
pub fn set_cookie(session: &str) -> String {
    format!("{SESSION_COOKIE}={session}; Path=/")
}

/// The session that a `Cookie` header names.
pub fn session_of(cookie: &str) -> Option<&str> {
    cookie
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == SESSION_COOKIE)
        .map(|(_, value)| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_among_other_cookies() {
        assert_eq!(session_of("a=b; JSESSIONID=node01.node0 ; c"), Some("node01.node0"));
        assert_eq!(session_of("JSESSIONID=\"x\""), Some("x"));
        assert_eq!(session_of("jsession=1"), None);
        assert_eq!(session_of(set_cookie("n1").as_str()), Some("n1"));
    }

    #[test]
    fn the_version_is_one_that_clients_accept() {
        let parts: Vec<u32> = VERSION_VALUE.split('.').map(|part| part.parse().expect("a number")).collect();
        assert!(parts >= vec![2, 0, 61]);
    }
}
