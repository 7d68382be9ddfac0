//! `/healthy`, `/ready` and `/metrics`.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    routing::get,
};
use tokio::net::TcpListener;

use crate::figures::Figures;

/// Whether the operator is ready.
#[derive(Clone, Debug, Default)]
pub(super) struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers until dropped.
pub(super) async fn serve(listener: TcpListener, figures: Arc<Figures>, ready: Readiness) -> io::Result<()> {
    axum::serve(listener, router(figures, ready)).await
}

fn router(figures: Arc<Figures>, ready: Readiness) -> Router {
    let is_ready = move || {
        let ready = ready.0.load(Ordering::Relaxed);
        async move { if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE } }
    };
    let metrics = move || {
        let page = figures.render();
        async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page) }
    };
    Router::new()
        // Whoever can answer is alive: the controllers are worked on by the very task that listens here, none of them ends
        // alone, and none of their rounds may last for ever.
        .route("/healthy", get(|| async { StatusCode::OK }))
        .route("/ready", get(is_ready))
        .route("/metrics", get(metrics))
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn the_door_says_how_the_operator_fares() {
        let ready = Readiness::default();
        let router = router(Arc::new(Figures::new(None)), ready.clone());
        let ask = async |path: &str| {
            router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap().status()
        };
        assert_eq!((ask("/healthy").await, ask("/ready").await), (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE));
        ready.set();
        assert_eq!((ask("/ready").await, ask("/metrics").await), (StatusCode::OK, StatusCode::OK));
    }
}
