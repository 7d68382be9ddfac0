//! A watch as a promise sees it: one event after the other, each within a deadline.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::world::PATIENCE;

/// A running watch. Dropping it ends it.
pub(crate) struct Watch {
    chunks: BoxStream<'static, Vec<u8>>,
    unread: Vec<u8>,
}

impl Watch {
    pub(crate) fn new(body: Body) -> Self {
        let chunks = body.into_data_stream().take_while(|chunk| std::future::ready(chunk.is_ok()));
        let chunks = chunks.map(|chunk| chunk.map(|bytes| bytes.to_vec()).unwrap_or_default());
        Self { chunks: chunks.boxed(), unread: Vec::new() }
    }

    /// The next event, bookmarks included.
    pub(crate) async fn any(&mut self) -> Value {
        self.read(PATIENCE).await.expect("the watch ended")
    }

    /// The next event that is no bookmark.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let event = self.any().await;
            if event["type"] != "BOOKMARK" {
                return event;
            }
        }
    }

    /// The next event that is no bookmark, as type and name.
    pub(crate) async fn step(&mut self) -> (String, String) {
        let event = self.next().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    /// The next bookmark; any other event before it is a failure.
    pub(crate) async fn bookmark(&mut self) -> Value {
        let event = self.any().await;
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        event
    }

    /// Reads until the server ends the watch; what came until then.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut seen = Vec::new();
        while let Some(event) = self.read(PATIENCE).await {
            seen.push(event);
        }
        seen
    }

    /// `None` = the server ended the watch.
    async fn read(&mut self, limit: Duration) -> Option<Value> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event is JSON"));
            }
            let chunk = tokio::time::timeout(limit, self.chunks.next()).await.expect("the watch stayed silent");
            self.unread.extend(chunk?);
        }
    }
}
