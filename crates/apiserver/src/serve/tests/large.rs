//! Requests that are larger than anybody reads: who sends one gets to know why it is refused.

use axum::body::Body;
use http::header::AUTHORIZATION;
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::limits::connected;
use super::*;

/// Many times what is read of a body, and what the system keeps between two sockets.
const MEBIBYTES: usize = 24;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WHY: &str = "Request entity too large: limit is 3145728";

#[tokio::test]
async fn who_sends_far_too_much_over_http_1_can_read_the_answer_when_all_is_sent() {
    let server = started().await;
    for (token, code, why) in
        [(server.token(), "413 Payload Too Large", WHY), ("wrong", "401 Unauthorized", "Unauthorized")]
    {
        let mut stream = connected(&server, "http/1.1").await;
        let length = MEBIBYTES << 20;
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let piece = vec![b' '; 1 << 20];
        for _ in 0..MEBIBYTES {
            stream.write_all(&piece).await.expect("nobody hangs up on who is still sending");
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer, not a reset");
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}\r\n")) && answer.contains(why), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn who_sends_far_too_much_over_http_2_gets_the_answer_and_the_connection_goes_on() {
    let server = started().await;
    let stream = connected(&server, "h2").await;
    let client = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = client.handshake::<_, Body>(TokioIo::new(stream)).await.expect("a connection");
    let connection = tokio::spawn(connection);
    let request = || {
        let request = Request::post(format!("https://x{CONFIG_MAPS}"));
        request.header(AUTHORIZATION, format!("Bearer {}", server.token()))
    };
    for (body, code) in [(vec![b' '; MEBIBYTES << 20], 413), (b"{}".to_vec(), 422), (vec![b' '; MEBIBYTES << 20], 413)]
    {
        let request = request().body(Body::from(body)).expect("a request");
        let answer = sender.clone().send_request(request).await.expect("an answer, not a reset");
        assert_eq!(answer.status(), code);
        let text = answer.into_body().collect().await.expect("all of it").to_bytes();
        assert_eq!(String::from_utf8_lossy(&text).contains(WHY), code == 413);
    }
    drop(sender);
    connection.abort();
    server.stop().await;
}
