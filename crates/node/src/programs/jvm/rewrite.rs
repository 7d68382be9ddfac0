//! A broker's file for a JVM on this machine. Pure: the table is handed in.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use evenkeel_engine::config::properties::{Properties, Unreadable};

/// Real ports by host (nothing is this pod itself) and port, if that is a pod.
pub type Ports<'a> = Box<dyn Fn(Option<&str>, u16) -> Option<u16> + Send + 'a>;
/// Real paths by paths in the container.
pub type Paths<'a> = Box<dyn Fn(&str) -> PathBuf + Send + 'a>;

/// Where things really are.
pub struct Places<'a> {
    /// Ports.
    pub port: Ports<'a>,
    /// Paths.
    pub path: Paths<'a>,
}

impl std::fmt::Debug for Places<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Places")
    }
}

/// A file that was rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The file.
    pub text: String,
    /// Ports in the container to real ones.
    pub ports: BTreeMap<u16, u16>,
}

/// Why it could not be: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no properties file.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// An address that is none, or of no pod.
    #[error("`{key}`: there is no port on this machine for `{entry}`")]
    Address {
        /// Which key.
        key: String,
        /// Which part of its value.
        entry: String,
    },
}

/// Rewrites a file.
pub fn rewritten(text: &str, places: &Places<'_>) -> Result<Rewritten, Unusable> {
    // Questions for files stay questions, which Kafka asks; only the path in them is another.
    let properties = Properties::read_asking(text, |_, provider, asked| {
        let asked = match (provider, asked.rsplit_once(':')) {
            ("dir" | "file", Some((path, name))) => format!("{}:{name}", (places.path)(path).display()),
            _ => asked.to_owned(),
        };
        Ok(format!("${{{provider}:{asked}}}"))
    })?;
    let mut rewritten = Rewritten { text: String::new(), ports: BTreeMap::new() };
    for key in properties.keys() {
        let Some(value) = properties.get(key) else { continue };
        let value = match key {
            "listeners" => each(key, value, |entry| {
                let (name, address) = entry.split_once("://")?;
                let port: u16 = address.rsplit_once(':')?.1.parse().ok()?;
                let real = (places.port)(None, port)?;
                rewritten.ports.insert(port, real);
                Some(format!("{name}://127.0.0.1:{real}"))
            })?,
            "advertised.listeners" => each(key, value, |entry| {
                let (name, address) = entry.split_once("://")?;
                Some(format!("{name}://{}", real(places, address)?))
            })?,
            "controller.quorum.voters" => each(key, value, |entry| {
                let (id, address) = entry.split_once('@')?;
                Some(format!("{id}@{}", real(places, address)?))
            })?,
            "controller.quorum.bootstrap.servers" => each(key, value, |entry| real(places, entry))?,
            "log.dirs" | "log.dir" | "metadata.log.dir" | "cordoned.log.dirs" => each(key, value, |entry| {
                Some(if entry == "*" { entry.to_owned() } else { (places.path)(entry).display().to_string() })
            })?,
            _ if key.ends_with(".location") || key.ends_with(".param.allowed.paths") => {
                each(key, value, |entry| Some((places.path)(entry).display().to_string()))?
            }
            _ => value.to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(rewritten.text, "{key}={}", value.replace('\\', "\\\\").replace('\n', "\\n"));
    }
    Ok(rewritten)
}

fn real(places: &Places<'_>, address: &str) -> Option<String> {
    let (host, port) = address.rsplit_once(':')?;
    (places.port)(Some(host), port.parse().ok()?).map(|real| format!("127.0.0.1:{real}"))
}

fn each(key: &str, value: &str, mut change: impl FnMut(&str) -> Option<String>) -> Result<String, Unusable> {
    let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let changed = entries
        .map(|entry| change(entry).ok_or_else(|| Unusable::Address { key: key.to_owned(), entry: entry.to_owned() }));
    Ok(changed.collect::<Result<Vec<_>, _>>()?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pod 1 has ports from 10000 on, and so forth; files are under /run/pod.
    fn places() -> Places<'static> {
        Places {
            port: Box::new(|host, port| {
                let pod = host.map_or(Some("harbour-brokers-1"), |host| host.split_once('.').map(|(pod, _)| pod))?;
                let number: u16 = pod.rsplit_once('-')?.1.parse().ok()?;
                Some(10_000 + number * 10 + port - 9_090)
            }),
            path: Box::new(|path| PathBuf::from(format!("/run/pod{path}"))),
        }
    }

    #[test]
    fn addresses_and_paths_of_the_operator_s_file_change_and_nothing_else() {
        let golden = include_str!("../../../../operator/tests/golden/broker-server.config");
        let rewritten = rewritten(golden, &places()).unwrap();
        assert_eq!(rewritten.ports, [(9091, 10_011), (9092, 10_012), (9093, 10_013)].into());
        let line = |key: &str| {
            let prefix = format!("{key}=");
            rewritten.text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap().to_owned()
        };
        assert_eq!(
            line("listeners"),
            "REPLICATION-9091://127.0.0.1:10011,PLAIN-9092://127.0.0.1:10012,TLS-9093://127.0.0.1:10013"
        );
        assert_eq!(line("advertised.listeners"), line("listeners"));
        assert_eq!(line("controller.quorum.voters"), "100@127.0.0.1:11000,101@127.0.0.1:11010,102@127.0.0.1:11020");
        assert_eq!(
            line("log.dirs"),
            "/run/pod/var/lib/kafka/data-0/kafka-log1,/run/pod/var/lib/kafka/data-1/kafka-log1"
        );
        assert_eq!(line("broker.rack"), "${dir:/run/pod/opt/kafka/init:rack.id}");
        assert_eq!(line("config.providers.dir.param.allowed.paths"), "/run/pod/opt/kafka/init");
        let store = "listener.name.replication-9091.ssl.keystore.location";
        assert_eq!(line(store), "/run/pod/opt/kafka/certs/node/keystore.pem");
        assert_eq!(line("min.insync.replicas"), "2");
        let keys = |text: &str| text.lines().filter(|line| line.contains('=')).count();
        assert_eq!(keys(&rewritten.text), keys(golden));
    }

    #[test]
    fn an_address_of_no_pod_is_named() {
        let why = rewritten("controller.quorum.voters=1@elsewhere:9090", &places()).unwrap_err();
        let said = "`controller.quorum.voters`: there is no port on this machine for `1@elsewhere:9090`";
        assert_eq!(why.to_string(), said);
    }
}
