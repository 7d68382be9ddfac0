//! The volumes of a pod as files, or as places for data.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, PersistentVolumeClaim, Pod, ProjectedVolumeSource, Secret, Volume,
    VolumeProjection,
};
use kube::ResourceExt;

use super::environment::field;
use super::materials::{Found, Wanted};
use super::program;
use super::tree::File;
use crate::quantity;

/// What is in a volume.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Files by their path in the volume.
    pub(super) files: BTreeMap<String, File>,
    /// The place for data, if it is one.
    pub(super) data: Option<program::Volume>,
}

/// The ConfigMap that holds the API server's authority in every namespace of a real cluster.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Which objects volumes refer to.
pub(super) fn wanted(volumes: &[Volume], wanted: &mut Wanted) {
    for volume in volumes {
        wanted.config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        wanted.secrets.extend(volume.secret.iter().filter_map(|source| source.secret_name.clone()));
        wanted.claims.extend(volume.persistent_volume_claim.iter().map(|source| source.claim_name.clone()));
        for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
            wanted.config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            wanted.secrets.extend(source.secret.iter().map(|source| source.name.clone()));
        }
    }
}

/// All volumes of a pod; or what is missing for one of them.
pub(super) fn contents(pod: &Pod, found: &Found) -> Result<BTreeMap<String, Content>, String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.map(|volume| Ok((volume.name.clone(), content(pod, volume, found)?))).collect()
}

fn content(pod: &Pod, volume: &Volume, found: &Found) -> Result<Content, String> {
    let files = |files| Content { files, data: None };
    if let Some(source) = &volume.config_map {
        let map = found.config_maps.get(&source.name).map(AsRef::as_ref);
        let picked = pick(&source.items, source.default_mode);
        return from_config_map(&source.name, map, source.optional, picked).map(files);
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let secret = found.secrets.get(name).map(AsRef::as_ref);
        return from_secret(name, secret, source.optional, pick(&source.items, source.default_mode)).map(files);
    }
    if let Some(source) = &volume.projected {
        return projected(pod, source, found).map(files);
    }
    if let Some(source) = &volume.downward_api {
        return downward(pod, source.items.as_deref().unwrap_or_default(), source.default_mode).map(files);
    }
    if let Some(source) = &volume.empty_dir {
        let id = format!("{}-{}", pod.uid().unwrap_or_default(), volume.name);
        let capacity = source.size_limit.as_ref().and_then(|limit| quantity::bytes(&limit.0));
        let data = program::Volume { id, capacity, persistent: false, directory: None };
        return Ok(Content { files: BTreeMap::new(), data: Some(data) });
    }
    if let Some(source) = &volume.persistent_volume_claim {
        let claim = found.claims.get(&source.claim_name);
        let claim = claim.ok_or_else(|| format!("persistentvolumeclaim \"{}\" not found", source.claim_name))?;
        return Ok(Content { files: BTreeMap::new(), data: Some(of_claim(claim)?) });
    }
    Err(format!("volume \"{}\" is of a kind that the local node does not have", volume.name))
}

fn of_claim(claim: &PersistentVolumeClaim) -> Result<program::Volume, String> {
    let status = claim.status.as_ref();
    if status.and_then(|status| status.phase.as_deref()) != Some("Bound") {
        return Err(format!("persistentvolumeclaim \"{}\" is not bound", claim.name_any()));
    }
    let capacity = status.and_then(|status| status.capacity.as_ref()?.get("storage"));
    let capacity = capacity.and_then(|capacity| quantity::bytes(&capacity.0));
    let id = claim.uid().unwrap_or_default();
    Ok(program::Volume { id, capacity, persistent: true, directory: None })
}

/// Which keys go where, and with which permissions.
struct Picked<'a> {
    items: Option<&'a [KeyToPath]>,
    mode: u32,
}

fn pick(items: &Option<Vec<KeyToPath>>, mode: Option<i32>) -> Picked<'_> {
    Picked { items: items.as_deref(), mode: bits(mode).unwrap_or(0o644) }
}

fn bits(mode: Option<i32>) -> Option<u32> {
    mode.and_then(|mode| u32::try_from(mode).ok())
}

impl Picked<'_> {
    /// The files for the keys of an object that is there. `limit`: permissions that are never given.
    fn files(
        &self,
        of: &str,
        data: &BTreeMap<String, &[u8]>,
        optional: Option<bool>,
        limit: u32,
    ) -> Result<BTreeMap<String, File>, String> {
        let file = |bytes: &[u8], mode: u32| File { bytes: bytes.to_vec(), mode: mode & limit };
        let Some(items) = self.items else {
            return Ok(data.iter().map(|(key, bytes)| (key.clone(), file(bytes, self.mode))).collect());
        };
        let mut files = BTreeMap::new();
        for item in items {
            match data.get(&item.key) {
                Some(bytes) => {
                    drop(files.insert(item.path.clone(), file(bytes, bits(item.mode).unwrap_or(self.mode))));
                }
                None if optional.unwrap_or_default() => (),
                None => return Err(format!("{of} references non-existent key: {}", item.key)),
            }
        }
        Ok(files)
    }
}

fn from_config_map(
    name: &str,
    map: Option<&ConfigMap>,
    optional: Option<bool>,
    picked: Picked<'_>,
) -> Result<BTreeMap<String, File>, String> {
    match map {
        Some(map) => {
            let text = map.data.iter().flatten().map(|(key, text)| (key.clone(), text.as_bytes()));
            let binary = map.binary_data.iter().flatten().map(|(key, ByteString(bytes))| (key.clone(), &bytes[..]));
            picked.files(&format!("configmap \"{name}\""), &text.chain(binary).collect(), optional, 0o777)
        }
        None if optional.unwrap_or_default() => Ok(BTreeMap::new()),
        None => Err(format!("configmap \"{name}\" not found")),
    }
}

/// Whatever a Secret's volume allows: on a laptop nobody but the user reads it.
fn from_secret(
    name: &str,
    secret: Option<&Secret>,
    optional: Option<bool>,
    picked: Picked<'_>,
) -> Result<BTreeMap<String, File>, String> {
    match secret {
        Some(secret) => {
            let data = secret.data.iter().flatten().map(|(key, ByteString(bytes))| (key.clone(), &bytes[..]));
            picked.files(&format!("secret \"{name}\""), &data.collect(), optional, 0o600)
        }
        None if optional.unwrap_or_default() => Ok(BTreeMap::new()),
        None => Err(format!("secret \"{name}\" not found")),
    }
}

fn projected(pod: &Pod, source: &ProjectedVolumeSource, found: &Found) -> Result<BTreeMap<String, File>, String> {
    let mut files = BTreeMap::new();
    for part in source.sources.iter().flatten() {
        files.extend(projection(pod, part, source.default_mode, found)?);
    }
    Ok(files)
}

fn projection(
    pod: &Pod,
    part: &VolumeProjection,
    mode: Option<i32>,
    found: &Found,
) -> Result<BTreeMap<String, File>, String> {
    if let Some(source) = &part.config_map {
        let map = found.config_maps.get(&source.name).map(AsRef::as_ref);
        if let (None, ROOT_CA, Some(account)) = (map, source.name.as_str(), &found.account) {
            let file = File { bytes: account.authority.clone().into_bytes(), mode: 0o644 };
            return Ok([("ca.crt".to_owned(), file)].into());
        }
        return from_config_map(&source.name, map, source.optional, pick(&source.items, mode));
    }
    if let Some(source) = &part.secret {
        let secret = found.secrets.get(&source.name).map(AsRef::as_ref);
        return from_secret(&source.name, secret, source.optional, pick(&source.items, mode));
    }
    if let Some(source) = &part.downward_api {
        return downward(pod, source.items.as_deref().unwrap_or_default(), mode);
    }
    if let Some(source) = &part.service_account_token {
        let account = found.account.as_ref();
        let account = account.ok_or("no service account tokens are given out by this node")?;
        let file = File { bytes: account.token.clone().into_bytes(), mode: 0o600 };
        return Ok([(source.path.clone(), file)].into());
    }
    Err("a projected volume has a source that the local node does not have".to_owned())
}

fn downward(pod: &Pod, items: &[DownwardAPIVolumeFile], mode: Option<i32>) -> Result<BTreeMap<String, File>, String> {
    let files = items.iter().map(|item| {
        let wanted = item.field_ref.as_ref();
        let wanted = wanted.ok_or("the local node does not tell containers what resources they have")?;
        let text = field(pod, &wanted.field_path)?;
        let mode = bits(item.mode).or(bits(mode)).unwrap_or(0o644);
        Ok((item.path.clone(), File { bytes: text.into_bytes(), mode }))
    });
    files.collect()
}
