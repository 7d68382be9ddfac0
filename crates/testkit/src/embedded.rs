//! The embedded server with the controllers that every cluster has: no socket, no TLS, a fresh one for each caller.

use std::future::pending;
use std::sync::Arc;

use evenkeel_apiserver::http::{Options, Shared, router};

/// A client of a fresh embedded server. Server and controllers live as long as the runtime that made them.
pub async fn embedded() -> kube::Client {
    let shared = Shared::new(Options::default());
    let client = kube::Client::new(router(Arc::clone(&shared)), "default");
    tokio::spawn(evenkeel_node::run(client.clone(), pending()));
    client
}
