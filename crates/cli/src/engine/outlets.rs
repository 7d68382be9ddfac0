//! Who hears of anomalies: addresses on the net, and a ConfigMap in Kubernetes.

use anyhow::Context;
use evenkeel_engine::config::detectors::Detectors;
use evenkeel_engine::notify::configmap::ViolationMap;
use evenkeel_engine::notify::post::Post;
use evenkeel_engine::notify::{Courier, Outlets};

/// Takes word to all of them. Kubernetes is only asked for where a ConfigMap is wanted.
pub(super) async fn courier(settings: &Detectors) -> anyhow::Result<Courier> {
    let map = match &settings.map_of {
        Some(cluster) => {
            let client = kube::Client::try_default()
                .await
                .context("StrimziCruiseControlNotifier writes a ConfigMap, and no Kubernetes API is to be found")?;
            Some(ViolationMap::new(client, cluster.namespace.as_deref(), &cluster.name))
        }
        None => None,
    };
    if settings.channels.is_empty() && map.is_none() {
        return Ok(Courier::silent());
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    Ok(Courier::start(Outlets { channels: settings.channels.clone(), map, host }, Post::over_the_net()?))
}
