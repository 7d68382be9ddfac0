//! Work that takes a moment, off the threads that answer.

/// Does it on a thread of its own, of which paused time knows.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(fault) => match fault.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down: nobody will ask again.
            Err(_) => std::future::pending().await,
        },
    }
}
