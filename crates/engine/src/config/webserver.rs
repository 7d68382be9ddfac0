//! Where and how requests are taken: the original's `webserver.*` keys.

use std::path::PathBuf;

use super::keys::{Keys, Remark};

/// Where and how requests are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webserver {
    /// The address to listen on.
    pub address: String,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
    /// What paths begin with, without a slash at the end.
    pub prefix: String,
    /// The path that session cookies are for.
    pub session_path: String,
    /// What the head of a request may be long, in bytes.
    pub head_bytes: usize,
    /// Whether each request is logged.
    pub access_log: bool,
    /// Whether whoever wants something done must say why.
    pub wants_reason: bool,
    /// HTTPS, if wanted.
    pub tls: Option<Tls>,
    /// The file of users, if they have to say who they are.
    pub credentials: Option<PathBuf>,
    /// What pages of other origins may do, if they may.
    pub cors: Option<Cors>,
}

/// HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the key and the certificates.
    pub keystore: PathBuf,
    /// The value of `Strict-Transport-Security`, if wanted.
    pub strict_transport: Option<String>,
}

/// What pages of other origins may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Which origins.
    pub origin: String,
    /// Which methods.
    pub methods: String,
    /// Which headers they see, and may send.
    pub headers: String,
}

/// Keys that are understood and whose wish is not followed; where it matters the reason is said.
const UNHEEDED: [(&str, &str); 5] = [
    ("webserver.ssl.include.ciphers", "the ciphers of TLS 1.2 and 1.3 that are known to be safe are offered"),
    ("webserver.ssl.exclude.ciphers", "the ciphers of TLS 1.2 and 1.3 that are known to be safe are offered"),
    ("webserver.ssl.include.protocols", "TLS 1.2 and 1.3 are offered"),
    ("webserver.ssl.exclude.protocols", "TLS 1.2 and 1.3 are offered"),
    ("webserver.ui.diskpath", "no user interface is served"),
];

pub(super) fn read(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> Webserver {
    for (key, text) in UNHEEDED {
        if keys.text(key).is_some() {
            warnings.push(Remark { key: key.to_owned(), text: text.to_owned() });
        }
    }
    let text = |key, default: &'static str| keys.text_or(key, default).to_owned();
    Webserver {
        address: text("webserver.http.address", "127.0.0.1"),
        port: keys.number("webserver.http.port", 9090, 0..=u16::MAX),
        prefix: prefix(keys),
        session_path: text("webserver.session.path", "/"),
        head_bytes: keys.number("webserver.http.header.size", 8_192, 1_024..=1_048_576),
        access_log: keys.flag("webserver.accesslog.enabled", true),
        wants_reason: keys.flag("request.reason.required", false),
        tls: tls(keys),
        credentials: keys
            .flag("webserver.security.enable", false)
            .then(|| text("webserver.auth.credentials.file", "/etc/cruisecontrol-basic-auth.credentials").into()),
        cors: keys.flag("webserver.http.cors.enabled", false).then(|| Cors {
            origin: text("webserver.http.cors.origin", "*"),
            methods: text("webserver.http.cors.allowmethods", "OPTIONS, GET, POST"),
            headers: text("webserver.http.cors.exposeheaders", "User-Task-ID"),
        }),
    }
}

/// `/kafkacruisecontrol/*` means `/kafkacruisecontrol`.
fn prefix(keys: &Keys<'_>) -> String {
    let key = "webserver.api.urlprefix";
    let text = keys.text_or(key, "/kafkacruisecontrol/*");
    if !text.starts_with('/') {
        keys.wrong(key, format!("`{text}` does not begin with a slash"));
    }
    text.trim_end_matches('*').trim_end_matches('/').to_owned()
}

fn tls(keys: &Keys<'_>) -> Option<Tls> {
    if !keys.flag("webserver.ssl.enable", false) {
        return None;
    }
    let key = "webserver.ssl.keystore.location";
    let Some(keystore) = keys.text(key) else {
        keys.wrong(key, "is required with `webserver.ssl.enable`");
        return None;
    };
    let age: u64 = keys.number("webserver.ssl.sts.max.age", 31_536_000, 0..=u64::MAX);
    let subdomains = keys.flag("webserver.ssl.sts.include.subdomains", true);
    Some(Tls {
        keystore: keystore.into(),
        strict_transport: keys
            .flag("webserver.ssl.sts.enabled", false)
            .then(|| format!("max-age={age}{}", if subdomains { "; includeSubDomains" } else { "" })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::properties::Properties;

    fn read_from(text: &str) -> (Webserver, Vec<Remark>, Vec<Remark>) {
        let properties = Properties::read(text, |_| None).unwrap();
        let keys = Keys::new(&properties);
        let mut warnings = Vec::new();
        let settings = read(&keys, &mut warnings);
        (settings, warnings, keys.into_findings().1)
    }

    #[test]
    fn without_keys_it_listens_to_this_machine_alone() {
        let (settings, warnings, errors) = read_from("");
        assert_eq!((settings.address.as_str(), settings.port), ("127.0.0.1", 9090));
        assert_eq!(settings.prefix, "/kafkacruisecontrol");
        assert_eq!((settings.tls, settings.credentials, settings.cors), (None, None, None));
        assert_eq!((warnings, errors), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let (settings, warnings, errors) = read_from(
            "webserver.security.enable=true\nwebserver.auth.credentials.file=/users\nwebserver.ssl.enable=true\n\
             webserver.ssl.keystore.location=/keys.pem\nwebserver.ssl.key.password=hush\nwebserver.ssl.sts.enabled=true\n\
             webserver.ssl.sts.max.age=9\nwebserver.http.cors.enabled=true\nwebserver.http.cors.origin=https://ui\n\
             webserver.api.urlprefix=/cc/*\nwebserver.ui.diskpath=./ui\nwebserver.ssl.exclude.protocols=TLSv1.2",
        );
        let tls = settings.tls.unwrap();
        assert_eq!(tls.strict_transport.as_deref(), Some("max-age=9; includeSubDomains"));
        assert!(!format!("{tls:?}").contains("hush"));
        assert_eq!(settings.credentials, Some(PathBuf::from("/users")));
        assert_eq!(settings.cors.unwrap().origin, "https://ui");
        assert_eq!((settings.prefix.as_str(), warnings.len(), errors.len()), ("/cc", 2, 0));
    }

    #[test]
    fn https_without_a_key_is_wrong() {
        let (_, _, errors) = read_from("webserver.ssl.enable=true\nwebserver.api.urlprefix=cc");
        assert_eq!(errors.len(), 2, "{errors:?}");
    }
}
