//! Waiting until a server can be used, for as long as it lives and not for ever.

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::{kubeconfig, server::Server};

/// Seconds on a quiet machine; a loaded one with two cores took a quarter of this.
const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);
/// A client connects to a server that is not there yet; it must not sit out its own time limits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until something listens on a loopback port.
pub(super) async fn port(server: &mut Server, port: u16) -> Result<()> {
    until(server, async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await
}

/// Waits until the API says that it is ready.
pub(super) async fn api(server: &mut Server, kubeconfig: &Path) -> Result<()> {
    until(server, async || says_ok(kubeconfig).await.unwrap_or(false)).await
}

/// Waits until the controllers have made the first thing that they owe every namespace.
pub(super) async fn controllers(server: &mut Server, client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(server, async || accounts.get("default").await.is_ok()).await
}

/// The certificate to trust is written by the server while it starts, so each try reads it anew.
async fn says_ok(kubeconfig: &Path) -> Result<bool> {
    let client = kubeconfig::client(kubeconfig).await?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    Ok(client.request_text(request).await? == "ok")
}

async fn until(server: &mut Server, ready: impl AsyncFn() -> bool) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !tokio::time::timeout(PATIENCE, ready()).await.unwrap_or(false) {
        server.must_be_alive()?;
        if Instant::now() > deadline {
            let (role, log) = (server.role(), server.log_tail());
            bail!("{role} was not ready after {LIMIT:?}; the end of its log:\n{log}");
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
