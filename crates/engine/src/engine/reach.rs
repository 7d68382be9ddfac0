//! Whether Kafka answers: asked every other second by a client of its own, apart from all that asks much and waits long.

use std::time::Duration;

use evenkeel_kafka::Client;
use tokio::sync::watch;

use crate::{said::chain, serve::Readiness};

/// The part of readiness that is about Kafka.
const KAFKA: &str = "kafka";
/// How often it is asked.
const EVERY: Duration = Duration::from_secs(2);
/// How long one broker may take, and how long it is tried with one after the other.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(6)];

/// What is known of it.
pub(super) struct Reach {
    /// Why it cannot be reached, if so.
    lost: watch::Sender<Option<String>>,
}

impl Reach {
    pub(super) fn new() -> Reach {
        Reach { lost: watch::Sender::new(None) }
    }

    /// Says so until the first answer.
    pub(super) fn begin(readiness: &Readiness) {
        readiness.set(KAFKA, Some("Kafka has not been reached yet.".to_owned()));
    }

    /// Returns as soon as Kafka cannot be reached, and says why.
    pub(super) async fn lost(&self) -> String {
        let mut lost = self.lost.subscribe();
        let why = lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        // The sender is here.
        why.unwrap_or_default()
    }

    /// Why Kafka cannot be reached, if so.
    pub(super) fn why(&self) -> Option<String> {
        self.lost.borrow().clone()
    }

    /// Asks again and again, and tells when the answer changes.
    pub(super) async fn watch(&self, client: &Client, readiness: &Readiness) {
        let [request, whole] = PATIENCE;
        let client = client.apart(request, whole);
        let mut before: Option<bool> = None;
        loop {
            let why = client.describe_cluster().await.err().map(|error| chain(&error));
            match (&why, before) {
                (Some(why), None | Some(true)) => tracing::warn!(error = why, "Kafka cannot be reached"),
                (None, Some(false)) => tracing::info!("Kafka is reached again"),
                _ => {}
            }
            before = Some(why.is_none());
            readiness.set(KAFKA, why.as_ref().map(|why| format!("Kafka cannot be reached: {why}")));
            self.lost.send_replace(why);
            tokio::time::sleep(EVERY).await;
        }
    }
}
