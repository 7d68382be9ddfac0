//! Waiting until a server can be used, for as long as it lives and not for ever.

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{client, server::Server};

/// Seconds on a quiet machine; a loaded one with two cores took a quarter of this.
const LIMIT: Duration = Duration::from_secs(90);
/// Of the real servers, which start in seconds.
const PAUSE: Duration = Duration::from_millis(50);
/// Of ours, whose start is measured and takes less than the other pause.
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// A client connects to a server that is not there yet; it must not sit out its own time limits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until something listens on a loopback port.
pub(crate) async fn port(server: &mut Server, port: u16) -> Result<()> {
    until(server, PAUSE, async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await
}

/// Waits until the API says that it is ready.
pub(crate) async fn api(server: &mut Server, kubeconfig: &Path) -> Result<()> {
    until(server, PAUSE, async || says_ok(kubeconfig).await.unwrap_or(false)).await
}

/// The same for a server that is ready in the twinkling of an eye.
pub(crate) async fn quick_api(server: &mut Server, kubeconfig: &Path) -> Result<()> {
    until(server, SHORT_PAUSE, async || says_ok(kubeconfig).await.unwrap_or(false)).await
}

/// Waits until the controllers have made the first thing that they owe every namespace.
pub(crate) async fn controllers(server: &mut Server, client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(server, PAUSE, async || accounts.get("default").await.is_ok()).await
}

/// Waits until the server's log says something.
pub(crate) async fn log_line(server: &mut Server, text: &str) -> Result<()> {
    until_seen(server, PAUSE, async |server: &Server| server.log().is_ok_and(|log| log.contains(text))).await
}

/// The certificate to trust is written by the server while it starts, so each try reads it anew.
async fn says_ok(kubeconfig: &Path) -> Result<bool> {
    let client = client::from_kubeconfig(kubeconfig).await?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    Ok(client.request_text(request).await? == "ok")
}

async fn until(server: &mut Server, pause: Duration, ready: impl AsyncFn() -> bool) -> Result<()> {
    until_seen(server, pause, async |_: &Server| ready().await).await
}

async fn until_seen(server: &mut Server, pause: Duration, ready: impl AsyncFn(&Server) -> bool) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !tokio::time::timeout(PATIENCE, ready(server)).await.unwrap_or(false) {
        server.must_be_alive()?;
        if Instant::now() > deadline {
            let (role, log) = (server.role(), server.log_tail());
            bail!("{role} was not ready after {LIMIT:?}; the end of its log:\n{log}");
        }
        sleep(pause).await;
    }
    Ok(())
}
