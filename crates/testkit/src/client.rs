//! Clients from kubeconfigs: the way in that every program has, whatever server is behind it.

use std::path::Path;

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};

/// A client as any program makes it, over TLS.
///
/// # Errors
///
/// When the kubeconfig, or a certificate that it names, cannot be read.
pub async fn from_kubeconfig(kubeconfig: &Path) -> Result<Client> {
    Client::try_from(config(kubeconfig).await?).context("could not make a client")
}

/// The same, for whoever has this token instead of what the kubeconfig names.
pub(crate) async fn with_token(kubeconfig: &Path, token: String) -> Result<Client> {
    let mut config = config(kubeconfig).await?;
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    Client::try_from(config).context("could not make a client")
}

async fn config(kubeconfig: &Path) -> Result<Config> {
    // Only the first call in a process installs it; later ones find it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("could not read the kubeconfig")?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("could not understand the kubeconfig")
}
