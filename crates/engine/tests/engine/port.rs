//! The door on a real port: TLS, many clients at once, and clients that do not behave. No paused time here.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use evenkeel_engine::{
    config::webserver::{Tls, Webserver},
    serve::listen::{NoListener, Server},
};
use evenkeel_rest::{
    Answer, Client,
    client::{http_service, trusting},
    request,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uuid::Uuid;

use crate::stage::{Stage, local};

fn written(name: &str, content: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("evenkeel-{name}-{}", Uuid::new_v4()));
    std::fs::write(&path, content).unwrap();
    path
}

async fn state_over(address: SocketAddr, scheme: &str, trusted: &str) -> Answer<evenkeel_rest::body::State> {
    let service = http_service(trusting(trusted.as_bytes()).unwrap(), Duration::from_secs(10));
    let host = if scheme == "https" { "localhost".to_owned() } else { address.ip().to_string() };
    let base = format!("{scheme}://{host}:{}/kafkacruisecontrol", address.port()).parse().unwrap();
    Client::new(service, base).ask(&request::State::default()).await.answer
}

#[tokio::test]
async fn five_hundred_at_once_are_all_answered() {
    let stage = Stage::new();
    let life = stage.engine();
    let server = Server::start(&local(), life.router.clone()).await.unwrap();
    let address = server.address();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..500 {
        asking.spawn(state_over(address, "http", ""));
    }
    while let Some(answer) = asking.join_next().await {
        let answer = answer.unwrap();
        assert!(matches!(answer, Answer::Ready(_)), "{answer:?}");
    }
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn clients_that_do_not_behave_are_in_nobody_s_way() {
    let stage = Stage::new();
    let life = stage.engine();
    let server = Server::start(&local(), life.router.clone()).await.unwrap();
    let mut rude = Vec::new();
    for number in 0..50 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        // Some say nothing, some ask and never read, some send a head without an end.
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /kafkacruisecontrol/state?json=true HTTP/1.1\r\nhost: x\r\n\r\n",
            _ => b"GET /kafkacruisecontrol/state HTTP/1.1\r\nx: ",
        };
        stream.write_all(said).await.unwrap();
        rude.push(stream);
    }
    let mut endless = TcpStream::connect(server.address()).await.unwrap();
    let _ = endless.write_all(&[b"GET /".as_slice(), &[b'x'; 200_000]].concat()).await;
    let mut heard = Vec::new();
    let _ = endless.read_to_end(&mut heard).await;
    assert!(!String::from_utf8_lossy(&heard).starts_with("HTTP/1.1 200"), "a head has an end");
    assert!(matches!(state_over(server.address(), "http", "").await, Answer::Ready(_)));
}

#[tokio::test]
async fn https_with_a_pem_file_and_nothing_else() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let of = |path: &PathBuf| {
        let tls = Tls { keystore: path.clone(), strict_transport: None };
        Webserver { tls: Some(tls), ..local() }
    };
    let good = written("good", &format!("{}{}", certificate.pem(), key.serialize_pem()));
    let stage = Stage::new();
    let life = stage.engine();
    let server = Server::start(&of(&good), life.router.clone()).await.unwrap();
    assert!(matches!(state_over(server.address(), "https", &certificate.pem()).await, Answer::Ready(_)));
    assert!(matches!(state_over(server.address(), "http", "").await, Answer::Unreachable(_)));
    let (keyless, jks) = (written("keyless", &certificate.pem()), written("jks", "\u{feed}\u{feed}"));
    let refused = Server::start(&of(&keyless), life.router.clone()).await.unwrap_err();
    assert!(matches!(refused, NoListener::Incomplete { .. }), "{refused}");
    let refused = Server::start(&of(&jks), life.router.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("openssl pkcs12"), "{refused}");
    for path in [good, keyless, jks] {
        std::fs::remove_file(path).unwrap();
    }
}
