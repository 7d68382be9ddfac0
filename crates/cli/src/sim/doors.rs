//! How clients get in, and the files that tell them: an authority's certificate, and the settings that
//! Kafka's own tools take. The password is in the settings, for their owner only, and nowhere else.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use evenkeel_apiserver::serve::certificates::Certificates;
use evenkeel_sim::broker::login::Users;
use evenkeel_sim::serve::Listener;
use evenkeel_sim::serve::tls::{self, ClientAuth};
use ring::rand::{SecureRandom, SystemRandom};
use tokio_rustls::TlsAcceptor;

use crate::directory::Directory;
use crate::misuse::Misuse;
use crate::printable;

/// The way in.
pub(super) struct Doors {
    tls: Option<TlsAcceptor>,
    user: Option<User>,
    /// Where the files are; nothing if clients need none.
    dir: Option<Directory>,
}

struct User {
    name: String,
    password: String,
}

impl Doors {
    pub(super) fn make(
        tls: bool,
        user: Option<&str>,
        password_file: Option<&Path>,
        dir: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let user = user.map(|name| User::make(name, password_file)).transpose()?;
        if !tls && user.is_none() {
            if let Some(dir) = dir {
                let what = format!("--dir {} would stay empty; add --tls or --user, or leave it out", dir.display());
                return Err(Misuse::Simulation { what }.into());
            }
            return Ok(Self { tls: None, user: None, dir: None });
        }
        let dir = Directory::make(dir, "evenkeel-sim-")?;
        let tls = if tls { Some(acceptor(dir.path())?) } else { None };
        Ok(Self { tls, user, dir: Some(dir) })
    }

    pub(super) fn install(&self, mut listener: Listener) -> Listener {
        if let Some(tls) = &self.tls {
            listener = listener.with_tls(tls.clone());
        }
        if let Some(user) = &self.user {
            listener = listener.with_users(Users::default().with(&user.name, &user.password));
        }
        listener
    }

    fn protocol(&self) -> &'static str {
        match (&self.tls, &self.user) {
            (None, None) => "PLAINTEXT",
            (Some(_), None) => "SSL",
            (None, Some(_)) => "SASL_PLAINTEXT",
            (Some(_), Some(_)) => "SASL_SSL",
        }
    }

    fn settings_file(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.path().join("client.properties"))
    }

    fn authority_file(&self) -> Option<PathBuf> {
        self.dir.as_ref().filter(|_| self.tls.is_some()).map(|dir| dir.path().join(AUTHORITY))
    }

    /// Writes what Kafka's own tools take as `--command-config`.
    pub(super) fn write_settings(&self, bootstrap: &str) -> anyhow::Result<()> {
        let Some(path) = self.settings_file() else { return Ok(()) };
        let mut text = format!("bootstrap.servers={bootstrap}\nsecurity.protocol={}\n", self.protocol());
        if let Some(authority) = self.authority_file() {
            text += &format!("ssl.truststore.type=PEM\nssl.truststore.location={}\n", authority.display());
        }
        if let Some(User { name, password }) = &self.user {
            text += &format!(
                "sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \
                 required username=\"{name}\" password=\"{password}\";\n"
            );
        }
        write_private(&path, &text)
    }

    /// The first line can be pasted; the rest says how to connect.
    pub(super) fn greeting(&self, bootstrap: &str) -> String {
        let shown = |path: PathBuf| printable::line(&path.display().to_string()).into_owned();
        let mut text = format!("bootstrap.servers={bootstrap}\n");
        if let Some(settings) = self.settings_file() {
            let (protocol, settings) = (self.protocol(), shown(settings));
            text += &format!("security.protocol={protocol}; settings for clients are in {settings}\n");
        }
        if let Some(authority) = self.authority_file() {
            text += &format!("the certificate of the authority is in {}\n", shown(authority));
        }
        text + "A simulated cluster is there until ctrl-c or quit; help lists what can be done to it.\n"
    }

    /// The same for programs.
    pub(super) fn as_json(&self, bootstrap: &str) -> serde_json::Value {
        serde_json::json!({
            "bootstrapServers": bootstrap,
            "securityProtocol": self.protocol(),
            "clientProperties": self.settings_file(),
            "authority": self.authority_file(),
            "user": self.user.as_ref().map(|user| &user.name),
        })
    }
}

impl User {
    fn make(name: &str, password_file: Option<&Path>) -> anyhow::Result<Self> {
        let bad = |what: String| anyhow::Error::from(Misuse::Simulation { what });
        let plain =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"\\,=".contains(c));
        if !plain(name) {
            return Err(bad(format!("--user {name}: a name of visible ASCII characters without \" \\ , = is wanted")));
        }
        let password = match password_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| bad(format!("--password-file {}: {error}", path.display())))?;
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
            None => new_password()?,
        };
        if !plain(&password) {
            let path = password_file.unwrap_or(Path::new("-")).display();
            return Err(bad(format!("--password-file {path}: one line of visible ASCII without \" \\ , = is wanted")));
        }
        Ok(Self { name: name.to_owned(), password })
    }
}

fn new_password() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gave no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

const AUTHORITY: &str = "authority.crt";

/// Certificates for loopback; the authority's goes to a file.
fn acceptor(dir: &Path) -> anyhow::Result<TlsAcceptor> {
    let certificates = Certificates::make(&[], jiff::Timestamp::now()).context("could not make certificates")?;
    write_private(&dir.join(AUTHORITY), &certificates.authority)?;
    let key_store = format!("{}{}", certificates.server_key, certificates.server);
    Ok(tls::acceptor(key_store.as_bytes(), ClientAuth::None)?)
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = std::fs::File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("could not write {}", path.display()))?;
    // One that was there already may have been open to others.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes()).with_context(|| format!("could not write {}", path.display()))
}
