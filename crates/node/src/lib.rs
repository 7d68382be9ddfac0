//! What a node and the controllers around it do for a cluster that has none: ordinary controllers over any API server.
//!
//! Residents: the garbage collector ([`gc`]) and the namespace life cycle ([`namespaces`]). Both learn of kinds as
//! they come and go ([`kinds`]), react to watches, and never ask the wall clock.

pub mod addresses;
pub mod clock;
pub mod gc;
pub mod kinds;
pub mod kubelet;
pub mod namespaces;
pub mod nodes;
mod patience;
pub mod pods;
pub mod programs;
mod quantity;
pub mod scheduler;
mod watched;

use kube::Client;

/// Runs all residents until `shutdown` is done. Errors of the server are waited out, so there is nothing to return.
pub async fn run(client: Client, shutdown: impl Future<Output = ()>) {
    let (kinds, known) = kinds::follow(client.clone());
    tokio::select! {
        () = shutdown => (),
        () = kinds => (),
        () = gc::run(client.clone(), known.clone()) => (),
        () = namespaces::run(client, known) => (),
    }
}
