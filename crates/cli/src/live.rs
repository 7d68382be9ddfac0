//! A running cluster, recorded from outside: nothing is written to it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::config::capacity::{Capacities, Capacity, Disk};
use evenkeel_engine::config::connection::Connection;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::model::{self, Purpose};
use evenkeel_engine::monitor::record::{NoRecording, record};
use evenkeel_engine::watch::Sighting;
use evenkeel_kafka::connect::{Connector as _, Tcp};
use evenkeel_kafka::{Address, Error};
use evenkeel_snapshot::Snapshot;

use crate::misuse::Misuse;
use crate::plan::progress;
use crate::printable;

/// Where brokers with the reporter plug-in write what they measure.
const REPORTER_TOPIC: &str = "__CruiseControlMetrics";
/// A link of 1 Gbit/s, in KB/s: what a broker without a known capacity is taken to have.
const USUAL_LINK: f64 = 125_000_000.0 / 1024.0;
const MB: f64 = 1024.0 * 1024.0;
/// Who takes longer to refuse a connection may be on the way to accept it.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How a running cluster is reached and recorded.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How it is reached, as Kafka's own tools take it: security.protocol, sasl.*, ssl.* with PEM files.
    #[arg(long, value_name = "FILE", requires = "bootstrap")]
    command_config: Option<PathBuf>,
    /// What brokers can carry: Cruise Control's capacity.json. Without it: the size of their log directories, and
    /// links of 1 Gbit/s.
    #[arg(long, value_name = "FILE", requires = "bootstrap")]
    capacity: Option<PathBuf>,
    /// Seconds between the two looks that rates are taken from.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600), requires = "bootstrap")]
    seconds: u64,
}

impl Options {
    /// The files that are read, by the options that name them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let named = [("--command-config", &self.command_config), ("--capacity", &self.capacity)];
        named.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }
}

/// Records the cluster that is reached at `bootstrap`.
pub(crate) fn snapshot(bootstrap: &str, options: &Options) -> anyhow::Result<Snapshot> {
    let connection = options.connection(bootstrap)?;
    let given = options.capacities()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    let bar = progress::recording(bootstrap);
    let recorded = runtime.block_on(recorded(&connection, given, Duration::from_secs(options.seconds)));
    bar.finish_and_clear();
    recorded
}

async fn recorded(connection: &Connection, given: Option<Capacities>, apart: Duration) -> anyhow::Result<Snapshot> {
    let client = connection.client().map_err(|error| unusable(error.into(), "TLS cannot be used".to_owned()))?;
    if let Some(refusal) = refusal_of_all(&connection.bootstrap).await {
        return Err(NoRecording::from(refusal).into());
    }
    let known = Arc::new(given.clone().unwrap_or_default());
    let (sighting, loads) = record(client, WallClock::system(), known, REPORTER_TOPIC, apart).await?;
    let capacities = given.unwrap_or_else(|| guessed(&sighting));
    let tells_dirs_apart = capacities.listed.values().chain(&capacities.default).any(is_by_dir);
    let purpose = Purpose { tells_dirs_apart, may_estimate: true, ..Purpose::default() };
    let cluster = model::build(&sighting.view, &loads, &capacities, CpuWeights::default(), &purpose)?;
    Ok(Snapshot { notes: BTreeMap::from([("name".to_owned(), sighting.cluster)]), cluster })
}

/// What the last address says if none of them accepts a connection. A client tries again and again, because what it serves
/// outlives restarts of brokers; whoever waits for one answer is told at once.
async fn refusal_of_all(addresses: &[Address]) -> Option<Error> {
    let mut last = None;
    for address in addresses {
        match tokio::time::timeout(AT_ONCE, Tcp.open(address)).await {
            Ok(Err(source)) => last = Some(Error::Connect { address: address.clone(), source }),
            _ => return None,
        }
    }
    last
}

impl Options {
    fn connection(&self, bootstrap: &str) -> Result<Connection, Misuse> {
        let mut text = match &self.command_config {
            Some(path) => read(path)?,
            None => String::new(),
        };
        // The last counts. The empty line ends one that a backslash would carry on.
        text.push_str(&format!("\n\nbootstrap.servers={bootstrap}\n"));
        let in_file = |what: String| {
            let file = self.command_config.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
            format!("{file}{what}")
        };
        let wrong = |what: String| Misuse::Recording { what };
        let properties =
            Properties::read(&text, |name| std::env::var(name).ok()).map_err(|it| wrong(in_file(it.to_string())))?;
        let (connection, remarks) = Connection::read(&properties).map_err(|errors| {
            // The addresses are the command line's, whatever a file says beside them.
            let told = errors.iter().map(|error| match error.key.as_str() {
                "bootstrap.servers" => format!("--bootstrap: {}", error.text),
                _ => in_file(error.to_string()),
            });
            wrong(told.collect::<Vec<_>>().join("; "))
        })?;
        for remark in remarks {
            // Worth knowing; nobody is kept from recording if it cannot even be said.
            let _ = writeln!(std::io::stderr(), "evenkeel: {remark}");
        }
        Ok(connection)
    }

    fn capacities(&self) -> Result<Option<Capacities>, Misuse> {
        let Some(path) = &self.capacity else { return Ok(None) };
        let capacities = Capacities::read(&read(path)?);
        capacities.map(Some).map_err(|error| unusable(error.into(), path.display().to_string()))
    }
}

fn read(path: &Path) -> Result<String, Misuse> {
    std::fs::read_to_string(path).map_err(|error| unusable(error.into(), format!("{}: cannot be read", path.display())))
}

/// What is wrong with a file, in one line.
fn unusable(error: anyhow::Error, with: String) -> Misuse {
    Misuse::Recording { what: printable::causes(&error.context(with)) }
}

fn is_by_dir(capacity: &Capacity) -> bool {
    matches!(capacity.disk, Disk::Dirs(_))
}

/// What brokers can carry, by what they tell of their directories. Of processors nothing is known, so that their use
/// is told in percent of the whole.
fn guessed(sighting: &Sighting) -> Capacities {
    let whole =
        |disk: f64| Capacity { disk: Disk::Whole(disk), cores: 1.0, network_in: USUAL_LINK, network_out: USUAL_LINK };
    let told = sighting.dirs.iter().filter_map(|(id, rooms)| {
        let bytes: u64 = rooms.values().map(|room| room.total).sum::<Option<u64>>()?;
        (bytes > 0).then(|| (*id, whole(bytes as f64 / MB)))
    });
    let listed: BTreeMap<i32, Capacity> = told.collect();
    // One that does not tell is taken to be as large as the largest.
    let size = |capacity: &Capacity| capacity.disk.total();
    let largest = listed.values().map(size).fold(0.0, f64::max);
    let default = (largest > 0.0).then(|| whole(largest));
    Capacities { listed, default }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::watch::Room;

    use super::*;

    #[test]
    fn a_file_that_ends_in_a_backslash_does_not_swallow_the_address() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["client.id=me\\", "client.id=me\\\n", "client.id=me\\\r\n", "client.id=me", ""] {
            std::fs::write(file.path(), text).unwrap();
            let options = Options { command_config: Some(file.path().to_owned()), capacity: None, seconds: 1 };
            let connection = options.connection("kafka:9092").unwrap();
            assert_eq!(connection.bootstrap, ["kafka:9092".parse().unwrap()], "{text:?}");
            assert!(text.is_empty() || connection.client_id == "me", "{text:?}: {}", connection.client_id);
        }
    }

    #[test]
    fn a_wrong_address_is_looked_for_on_the_command_line_and_a_wrong_setting_in_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "bootstrap.servers=kafka:9092\nsecurity.protocol=NONE").unwrap();
        let options = Options { command_config: Some(file.path().to_owned()), capacity: None, seconds: 1 };
        let told = options.connection("kafka").unwrap_err().to_string();
        let mut parts: Vec<&str> = told.split("; ").collect();
        parts.sort_unstable();
        assert_eq!(parts.len(), 2, "{told}");
        assert_eq!(parts[0], "--bootstrap: `kafka` is no address: write host:port");
        assert!(parts[1].starts_with(&format!("{}: security.protocol: ", file.path().display())), "{told}");
    }

    #[test]
    fn brokers_are_as_large_as_their_directories_and_silent_ones_as_the_largest() {
        let room = |mb: u64| Room { total: Some(mb * 1024 * 1024), usable: None };
        let rooms = |of: &[u64]| (0..).zip(of).map(|(n, mb): (u32, _)| (format!("/d{n}"), room(*mb))).collect();
        let silent = BTreeMap::from([("/d".to_owned(), Room::default())]);
        let dirs = BTreeMap::from([(0, rooms(&[10, 20])), (1, rooms(&[50])), (2, rooms(&[])), (3, silent)]);
        let sighting = Sighting { dirs, ..Sighting::default() };
        let capacities = guessed(&sighting);
        let total = |id| capacities.of(id).map(|(capacity, guess)| (capacity.disk.total(), guess));
        assert_eq!(
            [0, 1, 2, 3].map(total),
            [Some((30.0, false)), Some((50.0, false)), Some((50.0, true)), Some((50.0, true))]
        );
    }
}
