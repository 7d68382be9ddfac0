//! Kafka's `server.config`, as far as a simulated broker heeds it. Pure: from the text to what it means, or to one line
//! that says what is wrong with it.
//!
//! Everything else in the file is kept as it is, so that whoever describes the broker's settings sees its file.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_engine::config::properties::{Properties, Unreadable};
use evenkeel_sim::cluster::Reporter;

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// `node.id`.
    pub node_id: i32,
    /// Whether it is a broker: one that is not only takes part in the quorum.
    pub is_broker: bool,
    /// Its listeners, those of controllers included.
    pub listeners: Vec<ListenerConfig>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// `log.dirs`.
    pub log_dirs: Vec<String>,
    /// The metrics reporter, if it has the plug-in.
    pub reporter: Option<Reporter>,
    /// All keys and values.
    pub all: BTreeMap<String, String>,
}

/// One listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Its name, as it is written.
    pub name: String,
    /// The port in the container.
    pub port: u16,
    /// Who speaks there.
    pub audience: Audience,
    /// What the file tells clients to dial.
    pub advertised: Option<(String, u16)>,
    /// TLS, if it is not plain.
    pub tls: Option<TlsConfig>,
}

/// Who speaks at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The quorum.
    Controllers,
    /// Other brokers, and whoever belongs to the cluster: the operator and the engine.
    Brokers,
    /// Everybody else.
    Clients,
}

/// TLS of a listener. Paths are those in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// A PEM file with key and chain.
    pub key_store: String,
    /// A PEM file with the authorities of clients.
    pub trust_store: Option<String>,
    /// `ssl.client.auth`.
    pub client_auth: ClientAuth,
}

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// They may.
    Requested,
    /// They must.
    Required,
}

/// Why a file cannot be used: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no properties file, or refers to something that is not there.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A key that has to be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A value that means nothing, or nothing that is simulated.
    #[error("`{key}`: {what}")]
    Wrong {
        /// Which key.
        key: String,
        /// What is wrong.
        what: String,
    },
}

const REPORTER_CLASS: &str = "CruiseControlMetricsReporter";

impl ServerConfig {
    /// Reads it. `file` knows what is in the container's files, `variable` its environment.
    pub fn read(
        text: &str,
        file: impl Fn(&str) -> Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ServerConfig, Unusable> {
        let properties = Properties::read_asking(text, |key, provider, asked| {
            let found = match provider {
                // A directory and the name of a file in it.
                "dir" => asked.rsplit_once(':').and_then(|(dir, name)| file(&format!("{dir}/{name}"))),
                "env" => variable(asked),
                _ => None,
            };
            let missing = || Unreadable::Reference { key: key.to_owned(), asked: format!("{provider}:{asked}") };
            found.map(|value| value.trim().to_owned()).ok_or_else(missing)
        })?;
        let roles: BTreeSet<&str> = list(properties.get("process.roles").ok_or(Unusable::Missing("process.roles"))?);
        if let Some(role) = roles.iter().find(|role| !["broker", "controller"].contains(role)) {
            return Err(wrong("process.roles", format!("there is no role `{role}`, only broker and controller")));
        }
        let id = properties.get("node.id").ok_or(Unusable::Missing("node.id"))?;
        let node_id = id.parse().ok().filter(|id| *id >= 0);
        let dirs = properties.get("log.dirs").or_else(|| properties.get("log.dir"));
        let config = ServerConfig {
            node_id: node_id.ok_or_else(|| wrong("node.id", format!("`{id}` is no id of a node")))?,
            is_broker: roles.contains("broker"),
            listeners: listeners(&properties)?,
            rack: properties.get("broker.rack").map(str::to_owned),
            log_dirs: dirs.map(list::<Vec<_>>).unwrap_or_default().into_iter().map(str::to_owned).collect(),
            reporter: reporter(&properties)?,
            all: properties.keys().filter_map(|key| Some((key.to_owned(), properties.get(key)?.to_owned()))).collect(),
        };
        if config.is_broker && config.log_dirs.is_empty() {
            return Err(Unusable::Missing("log.dirs"));
        }
        if config.is_broker && config.listeners.iter().all(|it| it.audience == Audience::Controllers) {
            return Err(wrong("listeners", "a broker needs one that is not of the controllers".to_owned()));
        }
        Ok(config)
    }
}

fn wrong(key: &str, what: String) -> Unusable {
    Unusable::Wrong { key: key.to_owned(), what }
}

fn list<'a, T: FromIterator<&'a str>>(text: &'a str) -> T {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn listeners(properties: &Properties) -> Result<Vec<ListenerConfig>, Unusable> {
    const KEY: &str = "listeners";
    let text = properties.get(KEY).ok_or(Unusable::Missing(KEY))?;
    let protocols = protocols(properties)?;
    let of_controllers: BTreeSet<&str> = properties.get("controller.listener.names").map(list).unwrap_or_default();
    let of_brokers = properties.get("inter.broker.listener.name");
    let mut advertised = BTreeMap::new();
    for entry in properties.get("advertised.listeners").map(list::<Vec<_>>).unwrap_or_default() {
        let (name, host, port) = end_point("advertised.listeners", entry)?;
        advertised.insert(name, (host.to_owned(), port));
    }
    let mut found: Vec<ListenerConfig> = Vec::new();
    for entry in list::<Vec<_>>(text) {
        let (name, _, port) = end_point(KEY, entry)?;
        if found.iter().any(|other| other.name == name || (other.port == port && port != 0)) {
            return Err(wrong(KEY, format!("`{entry}` has the name or the port of another one")));
        }
        let audience = if of_controllers.contains(name) {
            Audience::Controllers
        } else if of_brokers == Some(name) {
            Audience::Brokers
        } else {
            Audience::Clients
        };
        let protocol = protocols.get(name).copied().unwrap_or(name);
        let tls = match protocol.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => None,
            "SSL" => Some(tls(properties, name)?),
            other => {
                let what = format!("{name} is {other}, and a simulated broker speaks PLAINTEXT and SSL only");
                return Err(wrong("listener.security.protocol.map", what));
            }
        };
        let advertised = advertised.get(name).cloned();
        found.push(ListenerConfig { name: name.to_owned(), port, audience, advertised, tls });
    }
    Ok(found)
}

fn protocols(properties: &Properties) -> Result<BTreeMap<&str, &str>, Unusable> {
    const KEY: &str = "listener.security.protocol.map";
    let entries: Vec<&str> = properties.get(KEY).map(list).unwrap_or_default();
    let pair = |entry: &'_ str| wrong(KEY, format!("`{entry}` is not of the form NAME:PROTOCOL"));
    entries.into_iter().map(|entry| entry.split_once(':').ok_or_else(|| pair(entry))).collect()
}

/// `NAME://host:port`
fn end_point<'a>(key: &str, entry: &'a str) -> Result<(&'a str, &'a str, u16), Unusable> {
    let parts = || {
        let (name, address) = entry.split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        Some((name, host, port.parse().ok()?)).filter(|_| !name.is_empty())
    };
    parts().ok_or_else(|| wrong(key, format!("`{entry}` is not of the form NAME://host:port")))
}

/// The listener's own keys, else those of all listeners.
fn tls(properties: &Properties, listener: &str) -> Result<TlsConfig, Unusable> {
    let own = |key: &str| format!("listener.name.{}.{key}", listener.to_ascii_lowercase());
    let get = |key: &str| properties.get(&own(key)).or_else(|| properties.get(key));
    let pem = |store: &str| {
        let Some(location) = get(&format!("ssl.{store}.location")) else { return Ok(None) };
        let kind = get(&format!("ssl.{store}.type")).unwrap_or("JKS");
        if !kind.eq_ignore_ascii_case("PEM") {
            let what = format!("a simulated broker reads PEM and not {kind}");
            return Err(wrong(&own(&format!("ssl.{store}.type")), what));
        }
        Ok(Some(location.to_owned()))
    };
    let key_store = pem("keystore")?;
    let client_auth = match get("ssl.client.auth").unwrap_or("none") {
        "none" => ClientAuth::None,
        "requested" => ClientAuth::Requested,
        "required" => ClientAuth::Required,
        other => {
            let what = format!("`{other}` is none of none, requested, required");
            return Err(wrong(&own("ssl.client.auth"), what));
        }
    };
    let trust_store = pem("truststore")?;
    if trust_store.is_none() && client_auth != ClientAuth::None {
        return Err(wrong(
            &own("ssl.truststore.location"),
            "is missing: whose certificates are to be seen?".to_owned(),
        ));
    }
    let missing = || wrong(&own("ssl.keystore.location"), "is missing".to_owned());
    Ok(TlsConfig { key_store: key_store.ok_or_else(missing)?, trust_store, client_auth })
}

/// The plug-in's keys, as the plug-in reads them.
fn reporter(properties: &Properties) -> Result<Option<Reporter>, Unusable> {
    let classes: Vec<&str> = properties.get("metric.reporters").map(list).unwrap_or_default();
    if !classes.iter().any(|class| class.rsplit('.').next() == Some(REPORTER_CLASS)) {
        return Ok(None);
    }
    let usual = Reporter::default();
    Ok(Some(Reporter {
        topic: properties.get("cruise.control.metrics.topic").map_or(usual.topic, str::to_owned),
        interval: number(properties, "cruise.control.metrics.reporter.metrics.reporting.interval.ms", usual.interval)?,
        partitions: number(properties, "cruise.control.metrics.topic.num.partitions", usual.partitions)?,
        factor: number(properties, "cruise.control.metrics.topic.replication.factor", usual.factor)?,
        retention: number(properties, "cruise.control.metrics.topic.retention.ms", usual.retention)?,
    }))
}

fn number<T: std::str::FromStr>(properties: &Properties, key: &str, usual: T) -> Result<T, Unusable> {
    let Some(text) = properties.get(key) else { return Ok(usual) };
    text.parse().map_err(|_| wrong(key, format!("`{text}` is no number that it could have")))
}
