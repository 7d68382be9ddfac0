//! What the start adds to the settings that Strimzi mounts. Pure.

use std::fmt::Write as _;

/// Where the completed files are in the container.
pub(super) const SETTINGS: &str = "/tmp/cruisecontrol.properties";
pub(super) const KEYSTORE: &str = "/tmp/cruise-control.pem";
pub(super) const TRUSTSTORE: &str = "/tmp/cluster-ca.pem";

/// Which variable is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// It is not set.
    #[error("the environment variable {0} is not set: Strimzi's deployment of Cruise Control sets it")]
    Missing(&'static str),
    /// It cannot be read.
    #[error("the environment variable {name} is `{value}`: {wanted}")]
    Wrong {
        /// Which.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// Brokers want a token of the pod's service account.
    #[error("STRIMZI_CC_SA_AUTH_ENABLED is true, and this engine logs in with certificates: choose mutual TLS")]
    ServiceAccount,
    /// Certificates can be shown by TLS alone.
    #[error(
        "STRIMZI_CC_MTLS_ENABLED is true although STRIMZI_CC_TLS_ENABLED is false: no certificate is shown in the clear"
    )]
    CertificateInTheClear,
}

/// What the container's environment says, as far as it matters here. What is about a JVM does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Environment {
    /// Whom to ask first.
    pub(super) bootstrap: String,
    /// Whether brokers are reached by TLS.
    pub(super) tls: bool,
    /// Whether they are shown a certificate.
    pub(super) certificate: bool,
    /// Where requests are taken.
    pub(super) port: u16,
    /// Whether by HTTPS.
    pub(super) https: bool,
    /// Whether callers say who they are.
    pub(super) users: bool,
    /// Who asks whether the server serves.
    pub(super) health_user: String,
}

impl Environment {
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Environment, Incomplete> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let flag = |name: &str| set(name).map(|value| value == "true");
        if flag("STRIMZI_CC_SA_AUTH_ENABLED") == Some(true) {
            return Err(Incomplete::ServiceAccount);
        }
        // Both are about the way to the brokers, and the first about requests, too. Versions that know neither always
        // use TLS and a certificate; from those that know them, what is not said is not wanted.
        let (tls, mutual) = (flag("STRIMZI_CC_TLS_ENABLED"), flag("STRIMZI_CC_MTLS_ENABLED"));
        let is_old = tls.is_none() && mutual.is_none();
        let (tls_to_brokers, certificate) = (tls.unwrap_or(is_old), mutual.unwrap_or(is_old));
        if certificate && !tls_to_brokers {
            return Err(Incomplete::CertificateInTheClear);
        }
        let port = match set("API_PORT") {
            None => 9090,
            Some(value) => {
                value.parse().map_err(|_| Incomplete::Wrong { name: "API_PORT", value, wanted: "a port" })?
            }
        };
        let bootstrap = set("STRIMZI_KAFKA_BOOTSTRAP_SERVERS");
        Ok(Environment {
            bootstrap: bootstrap.ok_or(Incomplete::Missing("STRIMZI_KAFKA_BOOTSTRAP_SERVERS"))?,
            tls: tls_to_brokers,
            certificate,
            port,
            // Older versions have another name for it.
            https: tls.or(flag("STRIMZI_CC_API_SSL_ENABLED")).unwrap_or(is_old),
            users: flag("STRIMZI_CC_API_AUTH_ENABLED").unwrap_or(true),
            health_user: set("API_HEALTHCHECK_USERNAME").unwrap_or_else(|| "healthcheck".to_owned()),
        })
    }

    /// Whether the container's own key and certificate are needed.
    pub(super) fn needs_identity(&self) -> bool {
        self.certificate || self.https
    }

    /// The settings with what only the container knows. It comes last, and the last of a key counts.
    pub(super) fn complete(&self, settings: &str) -> String {
        // A last line that says that it goes on must not swallow ours.
        let mut text = settings.trim_end().trim_end_matches('\\').to_owned();
        let port = self.port.to_string();
        let mut add = |key: &str, value: &str| {
            let _ = write!(text, "\n{key}={value}");
        };
        add("bootstrap.servers", &self.bootstrap);
        add("security.protocol", if self.tls { "SSL" } else { "PLAINTEXT" });
        if self.certificate {
            add("ssl.keystore.type", "PEM");
            add("ssl.keystore.location", KEYSTORE);
        }
        if self.tls {
            add("ssl.truststore.type", "PEM");
            add("ssl.truststore.location", TRUSTSTORE);
        }
        add("webserver.http.address", "0.0.0.0");
        add("webserver.http.port", &port);
        add("webserver.ssl.enable", if self.https { "true" } else { "false" });
        if self.https {
            add("webserver.ssl.keystore.type", "PEM");
            add("webserver.ssl.keystore.location", KEYSTORE);
        }
        add("kafka.broker.failure.detection.enable", "true");
        add("capacity.config.file", "/opt/cruise-control/custom-config/capacity.json");
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::properties::Properties;

    fn environment(variables: &[(&str, &str)]) -> Result<Environment, Incomplete> {
        let known =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment::read(known)
    }

    const BOOTSTRAP: (&str, &str) = ("STRIMZI_KAFKA_BOOTSTRAP_SERVERS", "harbour-kafka-bootstrap:9091");

    #[test]
    fn the_settings_say_where_kafka_is_and_what_was_there_stays() {
        let mounted = "default.goals=A\\\n  ,B\nwebserver.security.enable=true\nbootstrap.servers=nowhere:1";
        let completed = environment(&[BOOTSTRAP]).unwrap().complete(mounted);
        let read = Properties::read(&completed, |_| None).unwrap();
        for (key, value) in [
            ("default.goals", "A,B"),
            ("webserver.security.enable", "true"),
            ("bootstrap.servers", "harbour-kafka-bootstrap:9091"),
            ("security.protocol", "SSL"),
            ("ssl.truststore.location", "/tmp/cluster-ca.pem"),
            ("webserver.ssl.enable", "true"),
            ("webserver.http.port", "9090"),
            ("capacity.config.file", "/opt/cruise-control/custom-config/capacity.json"),
        ] {
            assert_eq!(read.get(key), Some(value), "{key}");
        }
    }

    /// What an environment with these variables makes of no settings at all.
    fn completed(variables: &[(&str, &str)]) -> Properties {
        let all: Vec<_> = [BOOTSTRAP].iter().chain(variables).copied().collect();
        Properties::read(&environment(&all).unwrap().complete(""), |_| None).unwrap()
    }

    const TLS: &str = "STRIMZI_CC_TLS_ENABLED";
    const MUTUAL: &str = "STRIMZI_CC_MTLS_ENABLED";

    #[test]
    fn brokers_are_reached_as_strimzi_says() {
        let (ours, theirs) = (Some("/tmp/cruise-control.pem"), Some("/tmp/cluster-ca.pem"));
        for (variables, protocol, shown, trusted) in [
            // As today's versions have it unless somebody turns it off, and as those had it that know neither name.
            (&[(TLS, "true"), (MUTUAL, "true")][..], "SSL", ours, theirs),
            (&[][..], "SSL", ours, theirs),
            (&[("STRIMZI_CC_API_SSL_ENABLED", "false")][..], "SSL", ours, theirs),
            (&[(TLS, "true"), (MUTUAL, "false")][..], "SSL", None, theirs),
            (&[(TLS, "true")][..], "SSL", None, theirs),
            (&[(TLS, "false"), (MUTUAL, "false")][..], "PLAINTEXT", None, None),
        ] {
            let read = completed(variables);
            assert_eq!(read.get("security.protocol"), Some(protocol), "{variables:?}");
            assert_eq!(read.get("ssl.keystore.location"), shown, "{variables:?}");
            assert_eq!(read.get("ssl.truststore.location"), trusted, "{variables:?}");
        }
    }

    #[test]
    fn https_can_be_off_by_its_old_and_its_new_name() {
        for name in [TLS, "STRIMZI_CC_API_SSL_ENABLED"] {
            let read = completed(&[(name, "false"), ("API_PORT", "9191")]);
            assert_eq!(read.get("webserver.ssl.enable"), Some("false"));
            assert_eq!(
                (read.get("webserver.http.port"), read.get("webserver.ssl.keystore.location")),
                (Some("9191"), None)
            );
        }
        assert_eq!(completed(&[(TLS, "true"), (MUTUAL, "true")]).get("webserver.ssl.enable"), Some("true"));
    }

    #[test]
    fn a_last_line_that_goes_on_swallows_nothing() {
        let completed = environment(&[BOOTSTRAP]).unwrap().complete("default.goals=A,\\\n");
        let read = Properties::read(&completed, |_| None).unwrap();
        assert_eq!(read.get("bootstrap.servers"), Some("harbour-kafka-bootstrap:9091"));
    }

    #[test]
    fn what_is_missing_wrong_or_unsafe_to_ignore_is_refused() {
        assert_eq!(environment(&[]), Err(Incomplete::Missing("STRIMZI_KAFKA_BOOTSTRAP_SERVERS")));
        let port = environment(&[BOOTSTRAP, ("API_PORT", "many")]).unwrap_err().to_string();
        assert_eq!(port, "the environment variable API_PORT is `many`: a port");
        let token = environment(&[BOOTSTRAP, ("STRIMZI_CC_SA_AUTH_ENABLED", "true")]);
        assert_eq!(token, Err(Incomplete::ServiceAccount));
        let clear = environment(&[BOOTSTRAP, (TLS, "false"), (MUTUAL, "true")]);
        assert_eq!(clear, Err(Incomplete::CertificateInTheClear));
        assert!(environment(&[BOOTSTRAP, ("STRIMZI_CC_SA_AUTH_ENABLED", "false")]).is_ok());
    }
}
