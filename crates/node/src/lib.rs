//! What a node and the controllers around it do for a cluster that has none: ordinary controllers over any API server.
//!
//! Residents of every cluster: the garbage collector ([`gc`]) and the namespace life cycle ([`namespaces`]), which learn
//! of kinds as they come and go ([`kinds`]), and the [`protection`] of claims and volumes that are used. For local runs besides: [`nodes`], a [`scheduler`], [`claims`],
//! [`deployments`] and [`replica_sets`], [`endpoints`], and a [`kubelet`] that has programs run what is in pods. All of
//! them react to watches, decide in pure functions, and never ask the wall clock but the [`clock`] they are given.

pub mod addresses;
pub mod claims;
pub mod clock;
pub mod deployments;
pub mod endpoints;
pub mod gc;
pub mod kinds;
pub mod kubelet;
pub mod namespaces;
pub mod nodes;
mod patience;
pub mod pods;
pub mod programs;
pub mod protection;
mod quantity;
pub mod replica_sets;
pub mod scheduler;
mod watched;

use std::io;
use std::time::Duration;

use kube::Client;

/// How long the server may take to forget our nodes when we stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs the residents of every cluster until `shutdown` is done. Errors of the server are waited out, so there is
/// nothing to return.
pub async fn run(client: Client, shutdown: impl Future<Output = ()>) {
    let (kinds, known) = kinds::follow(client.clone());
    tokio::select! {
        () = shutdown => (),
        () = kinds => (),
        () = gc::run(client.clone(), known.clone()) => (),
        () = namespaces::run(client.clone(), known) => (),
        () = protection::run(client) => (),
    }
}

/// Runs pods, with everything around them, until `shutdown` is done; then ends every pod within its grace and removes
/// the nodes, so that nothing is left behind. The residents of [`run`] are part of it.
///
/// The only error is a directory that cannot be used.
pub async fn run_pods(
    client: Client,
    settings: kubelet::Settings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (nodes, clock) = (settings.nodes.clone(), settings.clock.clone());
    let table = settings.addresses.clone();
    let kubelet = kubelet::run(client.clone(), settings, shutdown);
    // The kubelet is the last to stop: what the others do is still wanted while pods end.
    let ended = tokio::select! {
        ended = kubelet => ended,
        () = run(client.clone(), std::future::pending()) => Ok(()),
        () = nodes::run(client.clone(), nodes.clone(), clock.clone()) => Ok(()),
        () = scheduler::run(client.clone(), nodes.clone(), clock.clone()) => Ok(()),
        () = claims::run(client.clone()) => Ok(()),
        () = replica_sets::run(client.clone(), clock.clone()) => Ok(()),
        () = deployments::run(client.clone(), clock) => Ok(()),
        () = endpoints::run(client.clone(), table) => Ok(()),
    };
    match tokio::time::timeout(FAREWELL, nodes::remove(client, &nodes)).await {
        Ok(Ok(())) => (),
        Ok(Err(error)) => tracing::debug!(%error, "could not remove the nodes"),
        Err(_) => tracing::debug!("the server did not remove the nodes in time"),
    }
    ended
}
