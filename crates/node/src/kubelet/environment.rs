//! The environment of a container.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};
use kube::ResourceExt;

use super::materials::{Found, Wanted};

/// Where pods are, as they see it.
pub(super) const LOCALHOST: &str = "127.0.0.1";

/// Which objects a container's environment refers to.
pub(super) fn wanted(container: &Container, wanted: &mut Wanted) {
    for all in container.env_from.iter().flatten() {
        wanted.config_maps.extend(all.config_map_ref.iter().map(|source| source.name.clone()));
        wanted.secrets.extend(all.secret_ref.iter().map(|source| source.name.clone()));
    }
    for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        wanted.config_maps.extend(source.config_map_key_ref.iter().map(|source| source.name.clone()));
        wanted.secrets.extend(source.secret_key_ref.iter().map(|source| source.name.clone()));
    }
}

/// The environment; or what is missing for it.
pub(super) fn resolve(pod: &Pod, container: &Container, found: &Found) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    if let Some(account) = &found.account {
        env.insert("KUBERNETES_SERVICE_HOST".to_owned(), account.host.clone());
        env.insert("KUBERNETES_SERVICE_PORT".to_owned(), account.port.to_string());
    }
    let hostname = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    env.insert("HOSTNAME".to_owned(), hostname.unwrap_or_else(|| pod.name_any()));
    for all in container.env_from.iter().flatten() {
        let prefix = all.prefix.as_deref().unwrap_or_default();
        if let Some(source) = &all.config_map_ref {
            match found.config_maps.get(&source.name) {
                Some(map) => {
                    let data = map.data.iter().flatten();
                    env.extend(data.map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
                }
                None if source.optional.unwrap_or_default() => (),
                None => return Err(format!("configmap \"{}\" not found", source.name)),
            }
        }
        if let Some(source) = &all.secret_ref {
            match found.secrets.get(&source.name) {
                Some(secret) => {
                    let data = secret.data.iter().flatten();
                    env.extend(data.map(|(key, value)| (format!("{prefix}{key}"), text(value))));
                }
                None if source.optional.unwrap_or_default() => (),
                None => return Err(format!("secret \"{}\" not found", source.name)),
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            Some(source) => from(pod, source, found)?,
            None => Some(expanded(variable.value.as_deref().unwrap_or_default(), &env)),
        };
        env.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(env)
}

/// A variable's value from elsewhere; none if it is not there and need not be.
fn from(pod: &Pod, source: &EnvVarSource, found: &Found) -> Result<Option<String>, String> {
    let namespace = pod.namespace().unwrap_or_default();
    if let Some(key) = &source.config_map_key_ref {
        let map = found.config_maps.get(&key.name);
        let value = map.and_then(|map| map.data.as_ref()?.get(&key.key)).cloned();
        return match (value, map) {
            (None, _) if key.optional.unwrap_or_default() => Ok(None),
            (None, None) => Err(format!("configmap \"{}\" not found", key.name)),
            (None, _) => Err(format!("couldn't find key {} in ConfigMap {namespace}/{}", key.key, key.name)),
            (value, _) => Ok(value),
        };
    }
    if let Some(key) = &source.secret_key_ref {
        let secret = found.secrets.get(&key.name);
        let value = secret.and_then(|secret| secret.data.as_ref()?.get(&key.key)).map(text);
        return match (value, secret) {
            (None, _) if key.optional.unwrap_or_default() => Ok(None),
            (None, None) => Err(format!("secret \"{}\" not found", key.name)),
            (None, _) => Err(format!("couldn't find key {} in Secret {namespace}/{}", key.key, key.name)),
            (value, _) => Ok(value),
        };
    }
    match &source.field_ref {
        Some(wanted) => field(pod, &wanted.field_path).map(Some),
        None => Err("the local node does not tell containers what resources they have".to_owned()),
    }
}

fn text(bytes: &ByteString) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}

/// What the downward API says about a pod.
pub(super) fn field(pod: &Pod, path: &str) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    let plain = match path {
        "metadata.name" => Some(pod.name_any()),
        "metadata.namespace" => pod.namespace(),
        "metadata.uid" => pod.uid(),
        "metadata.labels" => Some(listed(pod.labels())),
        "metadata.annotations" => Some(listed(pod.annotations())),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.hostIP" | "status.podIP" | "status.hostIPs" | "status.podIPs" => Some(LOCALHOST.to_owned()),
        _ => None,
    };
    let keyed = |of: &str, values: &BTreeMap<String, String>| {
        let key = path.strip_prefix(of)?.strip_prefix("['")?.strip_suffix("']")?;
        Some(values.get(key).cloned().unwrap_or_default())
    };
    plain
        .or_else(|| keyed("metadata.labels", pod.labels()))
        .or_else(|| keyed("metadata.annotations", pod.annotations()))
        .ok_or_else(|| format!("unsupported fieldPath: {path}"))
}

/// One line for each, as the original writes them.
fn listed(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}

/// A text with `$(NAME)` replaced by the variable's value. `$$` is one dollar, and an unknown name stays as it is.
pub(super) fn expanded(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match env.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out + rest
}
