//! The files that an engine is started with: properties, capacities, and what the properties name.
//!
//! Paths in them are those of the container. Whoever runs the engine elsewhere gives a `root`, under which absolute
//! paths are then looked up; for the program itself that is `/`. Everything that is wrong with a file is said at once.

use std::{
    fs,
    path::{Path, PathBuf},
};

use evenkeel_kafka::connect::TlsError;

use crate::{
    config::{
        Remark,
        capacity::Capacities,
        detectors::Detectors,
        properties::Properties,
        settings::{Read, Settings},
    },
    notify::{self, Courier, Outlets, configmap::ViolationMap, post::Post},
    said::chain,
    serve::{Guard, NoGuard, listen},
};

/// What the files say. Paths in the settings are real ones.
#[derive(Debug)]
pub struct Files {
    /// How the engine shall be.
    pub settings: Settings,
    /// What brokers can carry.
    pub capacities: Capacities,
    /// What is worth saying.
    pub warnings: Vec<Remark>,
}

/// Why no engine can be started with them: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Unusable {
    /// Which file, by the path that the user knows.
    pub path: PathBuf,
    /// What is wrong.
    pub what: String,
}

impl Files {
    /// Reads the properties, and the capacities that they name. `variable` knows the environment.
    pub fn read(root: &Path, config: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Files, Unusable> {
        let text = read(root, config)?;
        let wrong = |what: String| Unusable { path: config.to_owned(), what };
        let properties = Properties::read(&text, variable).map_err(|why| wrong(chain(&why)))?;
        let Read { mut settings, warnings } = Settings::read(&properties).map_err(|remarks| {
            let all: Vec<String> = remarks.iter().map(|remark| format!("{} {}", remark.key, remark.text)).collect();
            wrong(all.join("; "))
        })?;
        let Some(file) = settings.capacity_file.clone() else {
            let what = "capacity.config.file is required: it names the file that says what brokers can carry";
            return Err(wrong(what.to_owned()));
        };
        let capacities =
            Capacities::read(&read(root, &file)?).map_err(|why| Unusable { path: file, what: chain(&why) })?;
        settings.look_under(root);
        Ok(Files { settings, capacities, warnings })
    }

    /// Opens what otherwise only a start would: certificates and keys on both sides, and the file of users.
    pub fn open_all(&self) -> Result<(), CannotOpen> {
        self.settings.connection.client()?;
        let web = &self.settings.webserver;
        if let Some(tls) = &web.tls {
            listen::acceptor(tls)?;
        }
        if let Some(users) = &web.credentials {
            Guard::load(users)?;
        }
        Ok(())
    }
}

/// Which of the files that others name cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CannotOpen {
    /// Those for the connection to Kafka.
    #[error("could not prepare the connection to Kafka")]
    Kafka(#[from] TlsError),
    /// Those of the API's own TLS.
    #[error("could not prepare the API's TLS")]
    Tls(#[from] listen::NoListener),
    /// The users'.
    #[error("could not prepare the API's users")]
    Users(#[from] NoGuard),
}

impl Settings {
    /// Looks for all files under `root`.
    fn look_under(&mut self, root: &Path) {
        let tls = self.connection.tls.iter_mut();
        let of_kafka = tls.flat_map(|tls| {
            let identity = tls.identity.iter_mut().flat_map(|(chain, key)| [chain, key]);
            tls.authorities.iter_mut().chain(identity)
        });
        let web = &mut self.webserver;
        let of_web = web.tls.iter_mut().map(|tls| &mut tls.keystore).chain(web.credentials.iter_mut());
        for path in of_kafka.chain(of_web).chain(self.capacity_file.iter_mut()) {
            *path = under(root, path);
        }
    }
}

/// Who hears of anomalies: addresses on the net, and a ConfigMap in Kubernetes, which is asked for only where it is
/// wanted.
pub async fn courier<F>(settings: &Detectors, kubernetes: impl FnOnce() -> F) -> Result<Courier, NoCourier>
where
    F: Future<Output = Result<kube::Client, Box<dyn std::error::Error + Send + Sync>>>,
{
    let map = match &settings.map_of {
        Some(cluster) => {
            let client = kubernetes().await.map_err(NoCourier::Kubernetes)?;
            Some(ViolationMap::new(client, cluster.namespace.as_deref(), &cluster.name))
        }
        None => None,
    };
    if settings.channels.is_empty() && map.is_none() {
        return Ok(Courier::silent());
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    Ok(Courier::start(Outlets { channels: settings.channels.clone(), map, host }, Post::over_the_net()?))
}

/// Why nobody would hear of anomalies.
#[derive(Debug, thiserror::Error)]
pub enum NoCourier {
    /// There is no API to write the ConfigMap to.
    #[error("StrimziCruiseControlNotifier writes a ConfigMap, and no Kubernetes API is to be found")]
    Kubernetes(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nothing can be posted.
    #[error("nothing could be posted")]
    Post(#[from] notify::Error),
}

fn read(root: &Path, path: &Path) -> Result<String, Unusable> {
    let read = fs::read_to_string(under(root, path));
    read.map_err(|why| Unusable { path: path.to_owned(), what: chain(&why) })
}

/// An absolute path, looked up under a root; others stay as they are.
fn under(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix("/").map_or_else(|_| path.to_owned(), |inside| root.join(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads properties that say this besides what has to be there.
    fn read_with(more: &str) -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let capacity = r#"{"DISK": "1", "CPU": "100", "NW_IN": "1", "NW_OUT": "1"}"#;
        let capacities = format!(r#"{{"brokerCapacities": [{{"brokerId": "-1", "capacity": {capacity}}}]}}"#);
        let properties = format!("bootstrap.servers=a:9092\ncapacity.config.file=/capacity.json\n{more}");
        fs::write(folder.path().join("capacity.json"), capacities).unwrap();
        fs::write(folder.path().join("a.properties"), properties).unwrap();
        let files = Files::read(folder.path(), Path::new("/a.properties"), |_| None).unwrap();
        (folder, files)
    }

    #[test]
    fn what_a_start_would_refuse_is_refused_by_a_look_at_it() {
        assert!(read_with("").1.open_all().is_ok());
        let users = "webserver.security.enable=true\nwebserver.auth.credentials.file=/users\n";
        let (folder, files) = read_with(users);
        let missing = chain(&files.open_all().unwrap_err());
        assert!(missing.contains("could not read the file of users"), "{missing}");
        fs::write(folder.path().join("users"), "ann: MD5:0cc175b9c0f1b6a831c399e269772661,ADMIN\n").unwrap();
        let hashed = chain(&files.open_all().unwrap_err());
        assert!(hashed.contains("`ann`") && hashed.contains("MD5"), "{hashed}");
        fs::write(folder.path().join("users"), "ann: secret,ADMIN\n").unwrap();
        assert!(files.open_all().is_ok());
        let tls = "webserver.ssl.enable=true\nwebserver.ssl.keystore.location=/store\n";
        let (folder, files) = read_with(tls);
        fs::write(folder.path().join("store"), [0x30, 0x82, 1, 2]).unwrap();
        let binary = chain(&files.open_all().unwrap_err());
        assert!(binary.contains("is no PEM file"), "{binary}");
        let kafka = "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/none.pem\n";
        let missing = chain(&read_with(kafka).1.open_all().unwrap_err());
        assert!(missing.contains("none.pem"), "{missing}");
    }
}
