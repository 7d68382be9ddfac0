//! Clients from kubeconfigs: the way in that every program has, whatever server is behind it.

use std::path::Path;

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A client as any program makes it, over TLS.
///
/// # Errors
///
/// When the kubeconfig, or a certificate that it names, cannot be read.
pub async fn from_kubeconfig(kubeconfig: &Path) -> Result<Client> {
    // Only the first call in a process installs it; later ones find it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("could not read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("could not understand the kubeconfig")?;
    Client::try_from(config).context("could not make a client")
}
