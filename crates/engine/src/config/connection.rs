//! How Kafka is reached: the keys of Kafka's own clients, as they are in the original's file and in the
//! files that Kafka's tools take.
//!
//! Certificates are read from PEM files. Stores of the other kinds are refused with the way to convert
//! them: a connection that trusted somebody else, or nobody in particular, would be no substitute.

use std::{path::PathBuf, sync::Arc, time::Duration};

use evenkeel_kafka::{
    Address, Client, Settings,
    connect::{Connector, Tcp, Tls, TlsError, TlsFiles},
    login::{Credentials, Secret, scram::Hash},
};

use super::{
    keys::{Keys, Remark},
    properties::Properties,
};

/// How Kafka is reached.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Whom to ask first.
    pub bootstrap: Vec<Address>,
    /// What brokers call us.
    pub client_id: String,
    /// Certificates, if it is by TLS.
    pub tls: Option<TlsFiles>,
    /// How to log in, where that is wanted.
    pub credentials: Option<Credentials>,
    /// How long one request may take, where that is given.
    pub request_patience: Option<Duration>,
}

impl Connection {
    /// Reads the keys, with what is worth saying about them; all that is wrong, if anything is.
    pub fn read(properties: &Properties) -> Result<(Connection, Vec<Remark>), Vec<Remark>> {
        let keys = Keys::new(properties);
        let mut warnings = Vec::new();
        let connection = Connection::of(&keys, &mut warnings);
        match keys.into_findings().1 {
            errors if errors.is_empty() => Ok((connection, warnings)),
            errors => Err(errors),
        }
    }

    pub(super) fn of(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> Connection {
        let protocol_key = "security.protocol";
        let protocol = keys.text_or(protocol_key, "PLAINTEXT").to_ascii_uppercase();
        let (by_tls, by_sasl) = match protocol.as_str() {
            "PLAINTEXT" => (false, false),
            "SSL" => (true, false),
            "SASL_PLAINTEXT" => (false, true),
            "SASL_SSL" => (true, true),
            other => {
                keys.wrong(protocol_key, format!("`{other}` is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"));
                (false, false)
            }
        };
        let credentials = if by_sasl { credentials(keys) } else { None };
        if !by_tls && matches!(credentials, Some(Credentials::Plain { .. })) {
            let text = "SASL_PLAINTEXT with PLAIN sends the password so that everybody on the way can read it";
            warnings.push(Remark { key: protocol_key.to_owned(), text: text.to_owned() });
        }
        Connection {
            bootstrap: bootstrap(keys),
            client_id: keys.text_or("client.id", "evenkeel").to_owned(),
            tls: by_tls.then(|| tls(keys, warnings)),
            credentials,
            request_patience: keys.maybe("request.timeout.ms", 1_u64).map(Duration::from_millis),
        }
    }

    /// A client that reaches Kafka so. Nothing is asked yet; certificates are read once, so that a wrong
    /// path is told at the start.
    pub fn client(&self) -> Result<Client, TlsError> {
        self.client_over(Arc::new(Tcp))
    }

    /// The same over the streams of another connector, which may dial what it likes: the names in certificates are
    /// those of the brokers.
    pub fn client_over(&self, below: Arc<dyn Connector>) -> Result<Client, TlsError> {
        let connector: Arc<dyn Connector> = match &self.tls {
            Some(files) => Arc::new(Tls::new(files.clone())?.over(below)),
            None => below,
        };
        Ok(Client::new(connector, self.settings()))
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.bootstrap.clone());
        settings.client_id.clone_from(&self.client_id);
        settings.credentials.clone_from(&self.credentials);
        // Whoever sets SASL_PLAINTEXT and PLAIN wants that, and was warned.
        settings.allow_plaintext_password = self.tls.is_none();
        if let Some(patience) = self.request_patience {
            settings.request_patience = patience;
            settings.patience = settings.patience.max(patience.saturating_mul(3));
        }
        settings
    }
}

fn bootstrap(keys: &Keys<'_>) -> Vec<Address> {
    let key = "bootstrap.servers";
    let Some(text) = keys.text(key) else {
        keys.wrong(key, "is required");
        return Vec::new();
    };
    let mut addresses = text.split(',').map(str::trim).filter(|address| !address.is_empty()).peekable();
    if addresses.peek().is_none() {
        keys.wrong(key, "names no address: write host:port");
    }
    // Listeners may be named in front, as in a broker's own settings.
    let plain = addresses.map(|address| address.split_once("://").map_or(address, |(_, address)| address));
    let read = plain.filter_map(|address| address.parse().map_err(|error| keys.wrong(key, format!("{error}"))).ok());
    read.collect()
}

fn credentials(keys: &Keys<'_>) -> Option<Credentials> {
    let key = "sasl.mechanism";
    let mechanism = keys.text_or(key, "GSSAPI");
    let hash = match mechanism {
        "PLAIN" => None,
        "SCRAM-SHA-256" => Some(Hash::Sha256),
        "SCRAM-SHA-512" => Some(Hash::Sha512),
        other => {
            keys.wrong(key, format!("`{other}` is not built: only PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are"));
            return None;
        }
    };
    let key = "sasl.jaas.config";
    let Some(jaas) = keys.text(key) else {
        keys.wrong(key, format!("is required for {mechanism}"));
        return None;
    };
    let (Some(username), Some(password)) = (option(jaas, "username"), option(jaas, "password")) else {
        // The text itself is not repeated: it may hold the password.
        keys.wrong(key, "must look like `….ScramLoginModule required username=\"…\" password=\"…\";`");
        return None;
    };
    let password = Secret::new(password);
    Some(match hash {
        None => Credentials::Plain { username, password },
        Some(hash) => Credentials::Scram { hash, username, password },
    })
}

/// An option of a login module, quoted or not.
fn option(jaas: &str, name: &str) -> Option<String> {
    let mut rest = jaas;
    loop {
        let at = rest.find(name)?;
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        rest = after;
        let starts_a_word = before.chars().next_back().is_none_or(|last| last.is_whitespace());
        let Some(value) = after.trim_start().strip_prefix('=').filter(|_| starts_a_word) else { continue };
        let value = value.trim_start();
        return match value.chars().next()? {
            quote @ ('"' | '\'') => quoted(&value[1..], quote),
            _ => Some(value.split([' ', '\t', ';']).next().unwrap_or("").to_owned()),
        };
    }
}

/// Up to the closing quote, without the backslashes that protect what comes after them.
fn quoted(text: &str, quote: char) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '\\' => value.push(characters.next()?),
            character if character == quote => return Some(value),
            character => value.push(character),
        }
    }
}

fn tls(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> TlsFiles {
    for (given, instead) in [
        ("ssl.truststore.certificates", "ssl.truststore.location"),
        ("ssl.keystore.certificate.chain", "ssl.keystore.location"),
        ("ssl.keystore.key", "ssl.keystore.location"),
    ] {
        if keys.text(given).is_some() {
            let text = format!("certificates are read from files: put it in a PEM file and name that in `{instead}`");
            keys.wrong(given, text);
        }
    }
    if keys.text("ssl.key.password").is_some() && keys.text("ssl.keystore.location").is_some() {
        keys.wrong("ssl.key.password", "keys under a password cannot be read: `openssl pkey` takes it off");
    }
    let names = "ssl.endpoint.identification.algorithm";
    if keys.is_there(names) && keys.text(names).is_none_or(|algorithm| !algorithm.eq_ignore_ascii_case("https")) {
        let text = "the name of a broker is compared with its certificate all the same";
        warnings.push(Remark { key: names.to_owned(), text: text.to_owned() });
    }
    TlsFiles {
        authorities: pem_file(keys, "truststore"),
        // Key and chain are in one file, as Kafka wants it.
        identity: pem_file(keys, "keystore").map(|file| (file.clone(), file)),
    }
}

fn pem_file(keys: &Keys<'_>, store: &str) -> Option<PathBuf> {
    let (location, kind) = (format!("ssl.{store}.location"), format!("ssl.{store}.type"));
    let path = keys.text(&location)?;
    match keys.text_or(&kind, "JKS").to_ascii_uppercase().as_str() {
        "PEM" => return Some(PathBuf::from(path)),
        "PKCS12" => keys.wrong(
            &kind,
            format!("PKCS12 cannot be read: `openssl pkcs12 -in {path} -nodes -out {store}.pem` makes a PEM file"),
        ),
        "JKS" => keys.wrong(
            &kind,
            format!(
                "JKS, the default, cannot be read: `keytool -importkeystore -srckeystore {path} -destkeystore {store}.p12 \
                 -deststoretype PKCS12`, then `openssl pkcs12 -in {store}.p12 -nodes -out {store}.pem`, make a PEM file"
            ),
        ),
        other => keys.wrong(&kind, format!("`{other}` cannot be read: only PEM can")),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Connection, Vec<Remark>), Vec<String>> {
        let text = format!("bootstrap.servers=a:9092, SSL://b:9093\n{text}");
        let read = Connection::read(&Properties::read(&text, |_| None).unwrap());
        read.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn errors(text: &str) -> Vec<String> {
        read(text).unwrap_err()
    }

    #[test]
    fn plain_is_the_default() {
        let (connection, warnings) = read("").unwrap();
        let addresses: Vec<String> = connection.bootstrap.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["a:9092", "b:9093"]);
        assert!(connection.tls.is_none() && connection.credentials.is_none() && warnings.is_empty());
        assert_eq!(connection.client().unwrap().settings().client_id, "evenkeel");
    }

    #[test]
    fn tls_takes_pem_files_and_the_key_is_with_its_certificate() {
        let (connection, _) = read(
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n\
             ssl.keystore.type=PEM\nssl.keystore.location=/me.pem\nrequest.timeout.ms=20000",
        )
        .unwrap();
        let files = connection.tls.clone().unwrap();
        assert_eq!(files.authorities, Some(PathBuf::from("/ca.pem")));
        assert_eq!(files.identity, Some((PathBuf::from("/me.pem"), PathBuf::from("/me.pem"))));
        assert_eq!(connection.settings().request_patience, Duration::from_secs(20));
        assert_eq!(connection.settings().patience, Duration::from_secs(60));
        assert!(connection.client().is_err(), "there are no such files");
        // The system's authorities without any.
        assert_eq!(read("security.protocol=SSL").unwrap().0.tls, Some(TlsFiles::default()));
    }

    #[test]
    fn other_stores_are_refused_with_the_way_out() {
        let jks = errors("security.protocol=SSL\nssl.truststore.location=/t.jks");
        assert!(jks[0].starts_with("ssl.truststore.type: JKS, the default, cannot be read: `keytool"), "{jks:?}");
        let pkcs = errors("security.protocol=SSL\nssl.keystore.location=/k.p12\nssl.keystore.type=pkcs12");
        assert!(pkcs[0].contains("openssl pkcs12 -in /k.p12"), "{pkcs:?}");
        let inline = errors("security.protocol=SSL\nssl.truststore.certificates=-----BEGIN");
        assert!(inline[0].contains("PEM file"), "{inline:?}");
        // Keys of TLS are nobody's concern without TLS.
        assert!(read("ssl.truststore.location=/t.jks").is_ok());
    }

    #[test]
    fn scram_and_plain_take_name_and_password_from_the_login_module() {
        let module = "org.apache.kafka.common.security.scram.ScramLoginModule required";
        let (connection, warnings) = read(&format!(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n\
             sasl.jaas.config={module} username=\"me\" password=\"a;b=\\\\\"c\";"
        ))
        .unwrap();
        let expected =
            Credentials::Scram { hash: Hash::Sha512, username: "me".to_owned(), password: Secret::new("a;b=\"c") };
        assert_eq!((connection.credentials, warnings), (Some(expected), vec![]));

        let plain = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n\
                     sasl.jaas.config=PlainLoginModule required password=secret username=me ;";
        let (connection, warnings) = read(plain).unwrap();
        let expected = Credentials::Plain { username: "me".to_owned(), password: Secret::new("secret") };
        assert_eq!(connection.credentials, Some(expected));
        assert_eq!(warnings.len(), 1);
        assert!(connection.settings().allow_plaintext_password);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        assert!(errors("security.protocol=SASL_SSL")[0].contains("GSSAPI"));
        assert!(errors("security.protocol=TLS")[0].contains("`TLS` is none of"));
        let broken =
            errors("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=X required password=hush");
        assert_eq!(broken.len(), 1);
        assert!(!broken[0].contains("hush"));
        let nowhere = Connection::read(&Properties::read("bootstrap.servers=a,b:1", |_| None).unwrap()).unwrap_err();
        assert_eq!(nowhere[0].key, "bootstrap.servers");
        for nobody in [",", " , ,"] {
            let text = format!("bootstrap.servers={nobody}");
            let errors = Connection::read(&Properties::read(&text, |_| None).unwrap()).unwrap_err();
            assert_eq!(errors[0].to_string(), "bootstrap.servers: names no address: write host:port", "{nobody:?}");
        }
    }

    #[test]
    fn a_name_that_should_not_be_checked_is_checked_and_that_is_said() {
        let (_, warnings) = read("security.protocol=SSL\nssl.endpoint.identification.algorithm=").unwrap();
        assert_eq!(warnings[0].key, "ssl.endpoint.identification.algorithm");
        assert!(read("security.protocol=SSL\nssl.endpoint.identification.algorithm=https").unwrap().1.is_empty());
    }
}
