//! What containers print, handed from the node to the API server, which know nothing of each other.

use std::sync::Arc;

use evenkeel_apiserver::http::logs::{LogLine, LogOf, LogSource};
use evenkeel_node::kubelet::logs::{Line, Logs, Reader};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

/// The node's logs as the server asks for them.
#[derive(Debug)]
pub(super) struct NodeLogs(pub(super) Logs);

impl LogSource for NodeLogs {
    fn open(&self, of: &LogOf<'_>) -> Option<BoxStream<'static, Vec<LogLine>>> {
        let mut reader = self.0.find(of.namespace, of.pod, of.container, of.previous)?.reader();
        let begun = stream::once(std::future::ready(lines(reader.read())));
        if !of.follow {
            return Some(begun.boxed());
        }
        let rest = stream::unfold(reader, async |mut reader: Reader| Some((lines(reader.more().await?), reader)));
        Some(begun.chain(rest).boxed())
    }
}

fn lines(read: Vec<Line>) -> Vec<LogLine> {
    read.into_iter().map(|line| LogLine { at: line.at, text: Arc::from(line.text) }).collect()
}
