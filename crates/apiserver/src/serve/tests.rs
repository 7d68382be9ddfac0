use std::time::Duration;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

mod large;
mod limits;

async fn started() -> Server {
    started_within(Limits::default()).await
}

async fn started_within(limits: Limits) -> Server {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Server::start_within(Settings::default(), limits).await.expect("a free port on the loopback")
}

/// A client made from the kubeconfig, after `change` had a look at the administrator's credentials.
async fn client(server: &Server, change: impl FnOnce(&mut kube::config::AuthInfo)) -> kube::Client {
    let mut kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("a readable kubeconfig");
    change(kubeconfig.auth_infos[0].auth_info.as_mut().expect("credentials"));
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a usable kubeconfig");
    kube::Client::try_from(config).expect("a client")
}

fn forget_certificate(credentials: &mut kube::config::AuthInfo) {
    credentials.client_certificate_data = None;
    credentials.client_key_data = None;
}

/// The HTTP code that a GET gets.
async fn code(client: &kube::Client, path: &str) -> u16 {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    match client.request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn certificate_and_token_each_open_the_door_and_nothing_else_does() {
    let server = started().await;
    let certificate_only = client(&server, |c| c.token = None).await;
    let token_only = client(&server, forget_certificate).await;
    let nobody = client(&server, |c| {
        forget_certificate(c);
        c.token = None;
    })
    .await;
    let wrong = client(&server, |c| {
        forget_certificate(c);
        c.token = Some("wrong".to_owned().into());
    })
    .await;
    assert_eq!(code(&certificate_only, "/api/v1/namespaces").await, 200);
    assert_eq!(code(&token_only, "/api/v1/namespaces").await, 200);
    assert_eq!(code(&nobody, "/api/v1/namespaces").await, 401);
    assert_eq!(code(&nobody, "/version").await, 200);
    assert_eq!(code(&wrong, "/version").await, 401);
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_turned_away_and_the_server_goes_on() {
    let (server, other) = (started().await, started().await);
    let stranger = client(&server, |c| {
        let theirs = Kubeconfig::from_yaml(&other.kubeconfig()).expect("a readable kubeconfig");
        *c = theirs.auth_infos[0].auth_info.clone().expect("credentials");
        c.token = None;
    })
    .await;
    let request = Request::get("/version").body(Vec::new()).expect("a request");
    assert!(stranger.request_text(request).await.is_err());
    assert_eq!(code(&client(&server, |_| {}).await, "/version").await, 200);
}

#[tokio::test]
async fn noise_on_the_port_disturbs_nobody() {
    let server = started().await;
    let mut silent = Vec::new();
    for n in 0..20 {
        let mut stream = TcpStream::connect(server.address()).await.expect("a connection");
        if n % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
        }
        silent.push(stream);
    }
    assert_eq!(code(&client(&server, |_| {}).await, "/api").await, 200);
    tokio::time::timeout(Duration::from_secs(3), server.stop()).await.expect("nobody waits for the silent");
}

#[tokio::test]
async fn plain_http_is_told_that_this_is_https() {
    let server = started().await;
    // Larger than what the system takes in one piece: the answer comes all the same.
    for body in [String::new(), "x".repeat(60_000)] {
        let mut stream = TcpStream::connect(server.address()).await.expect("a connection");
        let request = format!("POST /api HTTP/1.1\r\nHost: here\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await;
        read.expect("the answer has an end").expect("an answer, not a reset");
        assert_eq!(answer, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
    }
}

#[tokio::test]
async fn stopping_ends_watches_and_frees_the_port() {
    let server = started().await;
    let address = server.address();
    let client = client(&server, |_| {}).await;
    let watch = Request::get("/api/v1/namespaces?watch=true").body(Vec::new()).expect("a request");
    let lines = client.request_stream(watch).await.expect("a stream");
    let reading = tokio::spawn(async move {
        use futures::AsyncBufReadExt;
        let mut lines = std::pin::pin!(lines);
        let mut text = String::new();
        while lines.read_line(&mut text).await.is_ok_and(|n| n > 0) {}
        text
    });
    // The stream is open; the server must not wait for its lifetime to end.
    tokio::time::timeout(Duration::from_secs(3), server.stop()).await.expect("it stops at once");
    let seen = tokio::time::timeout(Duration::from_secs(3), reading).await.expect("the stream ends").expect("read");
    assert!(seen.contains("\"ADDED\""), "the namespaces were there: {seen}");
    TcpListener::bind(address).await.expect("the port is free again");
}

#[tokio::test]
async fn addresses_that_are_taken_or_open_to_others_are_refused() {
    let server = started().await;
    let taken = Settings { listen: server.address(), ..Settings::default() };
    assert!(matches!(Server::start(taken).await, Err(Error::Listen { .. })));
    let open = Settings { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..Settings::default() };
    assert!(matches!(Server::start(open).await, Err(Error::NotLoopback { .. })));
    let asked_for = Settings { listen: SocketAddr::from(([0, 0, 0, 0], 0)), allow_remote: true, ..Settings::default() };
    let server = Server::start(asked_for).await.expect("asked for");
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
}
