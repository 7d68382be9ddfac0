//! The Kubernetes API as a pod reaches it: with the token and the authority that are mounted into it.

use std::error::Error;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use crate::kubelet::materials::ACCOUNT_DIRECTORY;
use crate::kubelet::program::Launch;

/// A client with the account of a pod.
pub(super) async fn client(what: &Launch) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig(what)?, &KubeConfigOptions::default()).await?;
    // It is this machine, whatever stands between it and the rest.
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}

fn kubeconfig(what: &Launch) -> Result<Kubeconfig, Box<dyn Error + Send + Sync>> {
    let said = |name: &str| what.env.get(name).ok_or_else(|| format!("the pod is not told {name}"));
    let server = format!("https://{}:{}", said("KUBERNETES_SERVICE_HOST")?, said("KUBERNETES_SERVICE_PORT")?);
    let root = what.root.as_ref().ok_or("this node lays out no files")?;
    let mounted = |name: &str| {
        let path = format!("{ACCOUNT_DIRECTORY}/{name}");
        match what.files.file(&path) {
            Some(_) => Ok(root.join(path.trim_start_matches('/'))),
            None => Err(format!(
                "no token of a service account is mounted ({path} is missing): the pod has to set \
                 automountServiceAccountToken, or to mount one"
            )),
        }
    };
    let (token, authority) = (mounted("token")?, mounted("ca.crt")?);
    Ok(serde_json::from_value(json!({
        "clusters": [{"name": "own", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "own", "user": {"tokenFile": token}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "current-context": "own",
    }))?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use jiff::Timestamp;
    use tokio::sync::watch;

    use super::*;
    use crate::addresses::AddressTable;
    use crate::clock::Clock;
    use crate::kubelet::logs::Log;
    use crate::kubelet::tree::{File, Tree};

    fn launch(files: &[&str]) -> Launch {
        let file = |name: &&str| (format!("{ACCOUNT_DIRECTORY}/{name}"), File { bytes: b"x".to_vec(), mode: 0o600 });
        let env = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "6443")];
        Launch {
            pod: Arc::default(),
            container: "cruise-control".into(),
            image: String::new(),
            command: Vec::new(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            files: files.iter().map(file).collect(),
            updates: watch::channel(Tree::default()).1,
            root: Some("/run/pod".into()),
            volumes: BTreeMap::new(),
            node_labels: BTreeMap::new(),
            restarts: 0,
            log: Log::new(Clock::new(|| Timestamp::UNIX_EPOCH)),
            addresses: AddressTable::default(),
        }
    }

    #[test]
    fn the_api_is_reached_with_what_is_mounted() {
        let config = kubeconfig(&launch(&["token", "ca.crt"])).unwrap();
        let cluster = config.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        let user = config.auth_infos[0].auth_info.clone().unwrap();
        assert_eq!(user.token_file, Some(format!("/run/pod{ACCOUNT_DIRECTORY}/token")));
    }

    #[test]
    fn what_is_not_mounted_is_missed_by_name() {
        let why = kubeconfig(&launch(&["ca.crt"])).unwrap_err().to_string();
        assert!(why.contains("automountServiceAccountToken") && why.contains("/token is missing"), "{why}");
        let mut bare = launch(&[]);
        bare.env.clear();
        assert_eq!(kubeconfig(&bare).unwrap_err().to_string(), "the pod is not told KUBERNETES_SERVICE_HOST");
    }
}
