//! Clients that hold on to what they have, over real sockets.

use axum::body::Body;
use http::header::AUTHORIZATION;
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt;

use super::*;

const WATCH: &str = "/api/v1/configmaps?watch=true&timeoutSeconds=1";

/// How long anything may take: nothing waits this long unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A TLS connection without a client certificate.
pub(super) async fn connected(server: &Server, protocol: &str) -> TlsStream<TcpStream> {
    let authority = CertificateDer::from_pem_slice(server.certificates().authority.as_bytes()).expect("a certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority).expect("an authority");
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(server.address()).await.expect("a connection");
    let name = ServerName::from(server.address().ip());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
}

fn head(server: &Server, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", server.token())
}

/// Objects that are more than the system's buffers between two sockets take.
async fn fill(server: &Server) {
    let text = "x".repeat(1 << 20);
    for n in 0..24 {
        let object = json!({"metadata": {"name": format!("m{n}")}, "data": {"text": text}});
        let request = Request::post("/api/v1/namespaces/default/configmaps").body(Body::from(object.to_string()));
        let made = router(Arc::clone(server.shared())).oneshot(request.expect("a request")).await.expect("an answer");
        assert_eq!(made.status(), 201);
    }
}

/// Waits until that many watches are open.
async fn watched_by(server: &Server, count: usize) {
    let reached = async {
        while server.shared().watches() != count {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = timeout(PATIENCE, reached).await;
    assert!(in_time.is_ok(), "{} watches, not {count}", server.shared().watches());
}

fn impatient() -> Limits {
    Limits { write_patience: Duration::from_secs(2), ..Limits::default() }
}

#[tokio::test]
async fn watchers_that_do_not_read_are_forgotten() {
    let server = started_within(impatient()).await;
    fill(&server).await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(connected(&server, "http/1.1").await);
    }
    for stream in &mut silent {
        stream.write_all(head(&server, WATCH).as_bytes()).await.expect("sent");
    }
    watched_by(&server, 5).await;
    watched_by(&server, 0).await;
    drop(silent);
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_forgotten_and_its_connection_goes_on() {
    let server = started_within(impatient()).await;
    fill(&server).await;
    let stream = connected(&server, "h2").await;
    let mut client = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = client
        .initial_stream_window_size(64 * 1024)
        .handshake::<_, Body>(TokioIo::new(stream))
        .await
        .expect("a connection");
    let connection = tokio::spawn(connection);
    let ask = async |path: &str| {
        let authorization = format!("Bearer {}", server.token());
        let request = Request::get(format!("https://x{path}")).header(AUTHORIZATION, authorization);
        let request = request.body(Body::empty()).expect("a request");
        sender.clone().send_request(request).await.expect("an answer")
    };
    let mut unread = Vec::new();
    for _ in 0..5 {
        unread.push(ask(WATCH).await);
    }
    watched_by(&server, 5).await;
    watched_by(&server, 0).await;
    let version = ask("/version").await.into_body().collect().await.expect("a body").to_bytes();
    assert!(version.starts_with(b"{"), "the others on that connection are not harmed");
    drop(unread);
    connection.abort();
}

/// What strangers say, and then no more. One only asks for what everyone may see.
const STRANGERS: [(&str, &[u8]); 4] = [
    ("http/1.1", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    // The preface, empty settings, and silence.
    ("h2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
    ("h2", b""),
    ("http/1.1", b"GET "),
];

async fn strangers(server: &Server) -> Vec<TlsStream<TcpStream>> {
    let mut strangers = Vec::new();
    for (protocol, words) in STRANGERS {
        let mut stream = connected(server, protocol).await;
        stream.write_all(words).await.expect("sent");
        strangers.push(stream);
    }
    strangers
}

/// A friend asks how the server is, and keeps the connection.
async fn ask(server: &Server, friend: &mut TlsStream<TcpStream>) {
    friend.write_all(head(server, "/healthz").as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok") {
        assert_ne!(friend.read_buf(&mut answer).await.expect("an answer"), 0, "{}", String::from_utf8_lossy(&answer));
    }
}

/// Whoever was turned away hears of it, however the end is told.
async fn is_gone(mut stranger: impl AsyncRead + Unpin) {
    let mut told = Vec::new();
    let _ = timeout(PATIENCE, stranger.read_to_end(&mut told)).await.expect("the connection ends");
}

#[tokio::test]
async fn strangers_have_little_room() {
    let forever = Duration::from_secs(3600);
    let server = started_within(Limits { strangers: 4, stranger_patience: forever, ..Limits::default() }).await;
    let mut friend = connected(&server, "http/1.1").await;
    ask(&server, &mut friend).await;
    let oldest = TcpStream::connect(server.address()).await.expect("a connection");
    let others = strangers(&server).await;
    is_gone(oldest).await;
    assert_eq!(code(&client(&server, |_| {}).await, "/api").await, 200, "the administrator comes in all the same");
    ask(&server, &mut friend).await;
    drop(others);
}

#[tokio::test]
async fn strangers_have_little_time() {
    let server = started_within(Limits { stranger_patience: Duration::from_secs(1), ..Limits::default() }).await;
    let mut friend = connected(&server, "http/1.1").await;
    ask(&server, &mut friend).await;
    for stranger in strangers(&server).await {
        is_gone(stranger).await;
    }
    ask(&server, &mut friend).await;
}
