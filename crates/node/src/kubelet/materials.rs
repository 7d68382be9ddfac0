//! What a container is started with: its command, environment, files and volumes, from what the API holds.
//!
//! Pure: `wanted` says which objects a pod needs, `resolve` makes the best of those that were found, or says what is
//! missing in the words of the original. Volumes that only hold files are resolved to files; claims and empty
//! directories to [`Volume`]s. Service environment variables (`enableServiceLinks`) are not made: nothing here needs
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, PersistentVolumeClaim, Pod, Secret, VolumeMount};
use kube::ResourceExt;

use super::environment;
use super::program::Volume;
use super::tree::{File, Tree};
use super::volumes::{self, Content};

/// What pods are given to reach the API with.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The bearer token.
    pub token: String,
    /// Who signed the server's certificate, as PEM.
    pub authority: String,
    /// Where the server is: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl std::fmt::Debug for Account {
    /// Without the token.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Account({}:{})", self.host, self.port)
    }
}

/// The objects that a pod needs, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) claims: BTreeSet<String>,
}

/// Those of them that are there, and what else the pod is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) config_maps: BTreeMap<String, Arc<ConfigMap>>,
    pub(crate) secrets: BTreeMap<String, Arc<Secret>>,
    pub(crate) claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub(crate) node_labels: BTreeMap<String, String>,
    pub(crate) account: Option<Account>,
}

impl Found {
    /// Whether it is the very same: a changed object is another one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        fn same<T>(these: &BTreeMap<String, Arc<T>>, those: &BTreeMap<String, Arc<T>>) -> bool {
            let pairs = || these.iter().zip(those);
            these.len() == those.len() && pairs().all(|(this, that)| this.0 == that.0 && Arc::ptr_eq(this.1, that.1))
        }
        same(&self.config_maps, &other.config_maps)
            && same(&self.secrets, &other.secrets)
            && same(&self.claims, &other.claims)
            && self.node_labels == other.node_labels
            && self.account == other.account
    }
}

/// Everything that one container is started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Material {
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) files: Tree,
    pub(crate) volumes: BTreeMap<String, Volume>,
}

/// Files that init containers have left in volumes: volume and path in it to the file.
pub(crate) type Left = BTreeMap<(String, String), File>;

/// Where a service account's token is mounted.
pub(crate) const ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Which objects a pod refers to.
pub(crate) fn wanted(pod: &Pod) -> Wanted {
    let mut wanted = Wanted::default();
    let Some(spec) = &pod.spec else { return wanted };
    volumes::wanted(spec.volumes.as_deref().unwrap_or_default(), &mut wanted);
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        environment::wanted(container, &mut wanted);
    }
    wanted
}

/// What each container, also each init container, is started with; or what is missing.
pub(crate) fn resolve(pod: &Pod, found: &Found, left: &Left) -> Result<BTreeMap<String, Material>, String> {
    let Some(spec) = &pod.spec else { return Ok(BTreeMap::new()) };
    let mut contents = volumes::contents(pod, found)?;
    for ((volume, path), file) in left {
        if let Some(Content { files, .. }) = contents.get_mut(volume) {
            files.insert(path.clone(), file.clone());
        }
    }
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers.map(|container| Ok((container.name.clone(), material(pod, container, found, &contents)?))).collect()
}

fn material(
    pod: &Pod,
    container: &Container,
    found: &Found,
    contents: &BTreeMap<String, Content>,
) -> Result<Material, String> {
    let env = environment::resolve(pod, container, found)?;
    let command = container.command.iter().flatten().chain(container.args.iter().flatten());
    let command = command.map(|word| environment::expanded(word, &env)).collect();
    let mut material = Material { command, env, ..Material::default() };
    for mount in container.volume_mounts.iter().flatten() {
        let content = contents.get(&mount.name);
        let content = content.ok_or_else(|| format!("volume \"{}\" is not defined", mount.name))?;
        mount_at(mount, content, &mut material);
    }
    if let Some(account) = found.account.as_ref().filter(|_| wants_account(pod, container)) {
        let namespace = pod.namespace().unwrap_or_default();
        for (name, text) in [("token", &account.token), ("ca.crt", &account.authority), ("namespace", &namespace)] {
            let file = File { bytes: text.clone().into_bytes(), mode: 0o600 };
            material.files.insert(format!("{ACCOUNT_DIRECTORY}/{name}"), file);
        }
    }
    Ok(material)
}

/// A token is put where the pod asks for it in so many words and the server has not made a volume of it.
fn wants_account(pod: &Pod, container: &Container) -> bool {
    let asks = pod.spec.as_ref().and_then(|spec| spec.automount_service_account_token).unwrap_or_default();
    let mounted = container.volume_mounts.iter().flatten().any(|mount| mount.mount_path == ACCOUNT_DIRECTORY);
    asks && !mounted
}

fn mount_at(mount: &VolumeMount, content: &Content, material: &mut Material) {
    let expanded = mount.sub_path_expr.as_ref().map(|path| environment::expanded(path, &material.env));
    let sub_path = mount.sub_path.clone().or(expanded).unwrap_or_default();
    let sub_path = sub_path.trim_matches('/');
    let at = mount.mount_path.trim_end_matches('/');
    for (path, file) in &content.files {
        if sub_path.is_empty() {
            material.files.insert(format!("{at}/{path}"), file.clone());
        } else if path == sub_path {
            material.files.insert(at, file.clone());
        } else if let Some(rest) = path.strip_prefix(sub_path).and_then(|rest| rest.strip_prefix('/')) {
            material.files.insert(format!("{at}/{rest}"), file.clone());
        }
    }
    if let Some(data) = &content.data {
        let mut data = data.clone();
        if !sub_path.is_empty() {
            data.id = format!("{}/{sub_path}", data.id);
        }
        material.volumes.insert(at.to_owned(), data);
    }
}

#[cfg(test)]
#[path = "materials_tests.rs"]
mod tests;
