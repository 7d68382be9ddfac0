//! A client that asks and never reads, over a pipe, under paused time: its connection is given up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use evenkeel_engine::serve::listen::Server;
use evenkeel_kafka::connect::{Address, Connector, Memory};
use futures::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::local;

const PIECE: usize = 64 * 1024;
/// Far more than any pipe holds.
const PIECES: usize = 1_000;

/// Counts the answers that somebody still holds.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_is_not_kept() {
    let held = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&held);
    let long = move || async move {
        counter.fetch_add(1, Ordering::SeqCst);
        let answer = stream::unfold((0, Held(Arc::clone(&counter))), |(number, held)| async move {
            let piece = Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; PIECE]));
            (number < PIECES).then_some((piece, (number + 1, held)))
        });
        Body::from_stream(answer)
    };
    let memory = Memory::default();
    let address: Address = "engine:9090".parse().unwrap();
    let listener = memory.listen(address.clone());
    let router = Router::new().route("/long", get(long));
    let _server = Server::start_at(([127, 0, 0, 1], 9090).into(), listener, &local(), router).unwrap();
    let ask = b"GET /long HTTP/1.1\r\nhost: engine\r\nconnection: close\r\n\r\n";

    let mut rude = memory.open(&address).await.unwrap();
    rude.write_all(ask).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(held.load(Ordering::SeqCst), 1, "somebody may take a while");

    // One that reads slowly is served to the end, however long it takes.
    let mut slow = memory.open(&address).await.unwrap();
    slow.write_all(ask).await.unwrap();
    let mut heard = 0;
    let mut some = vec![0; 4 * PIECE];
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match slow.read(&mut some).await.unwrap() {
            0 => break,
            bytes => heard += bytes,
        }
    }
    assert!(heard > PIECES * PIECE, "{heard}");
    assert_eq!(held.load(Ordering::SeqCst), 0, "the one that never reads was given up");
}
