//! The embedded server, over its router: no socket, no TLS, a fresh one for each caller.

use std::sync::Arc;

use evenkeel_apiserver::http::{Options, Shared, router};

/// A client of a fresh embedded server. The server lives as long as the client and its clones.
pub async fn embedded() -> kube::Client {
    let shared = Shared::new(Options::default());
    kube::Client::new(router(Arc::clone(&shared)), "default")
}
