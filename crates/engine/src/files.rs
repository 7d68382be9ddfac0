//! The files that an engine is started with: properties, capacities, and what the properties name.
//!
//! Paths in them are those of the container. Whoever runs the engine elsewhere gives a `root`, under which absolute
//! paths are then looked up; for the program itself that is `/`. Everything that is wrong with a file is said at once.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    config::{
        Remark,
        capacity::Capacities,
        detectors::Detectors,
        properties::Properties,
        settings::{Read, Settings},
    },
    notify::{self, Courier, Outlets, configmap::ViolationMap, post::Post},
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
        let properties = Properties::read(&text, variable).map_err(|why| wrong(in_words(&why)))?;
        let Read { mut settings, warnings } = Settings::read(&properties).map_err(|remarks| {
            let all: Vec<String> = remarks.iter().map(|remark| format!("{} {}", remark.key, remark.text)).collect();
            wrong(all.join("; "))
        })?;
        let Some(file) = settings.capacity_file.clone() else {
            let what = "capacity.config.file is required: it names the file that says what brokers can carry";
            return Err(wrong(what.to_owned()));
        };
        let capacities =
            Capacities::read(&read(root, &file)?).map_err(|why| Unusable { path: file, what: in_words(&why) })?;
        settings.look_under(root);
        Ok(Files { settings, capacities, warnings })
    }
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
    read.map_err(|why| Unusable { path: path.to_owned(), what: in_words(&why) })
}

/// An absolute path, looked up under a root; others stay as they are.
fn under(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix("/").map_or_else(|_| path.to_owned(), |inside| root.join(inside))
}

fn in_words(why: &dyn std::error::Error) -> String {
    let cause = why.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{why}{cause}")
}
