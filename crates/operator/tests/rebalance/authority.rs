//! An engine behind TLS whose certificate is not of the cluster's authority, or behind none: on sockets, so in real time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason};
use evenkeel_kafka::Address;
use evenkeel_operator::seams::{BoxFuture, HttpsEngines, Services};
use evenkeel_testkit::certificates::Certificates;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, ServerConnection};
use serde_json::json;

use crate::seams::Fate;
use crate::stage::{CLUSTER, Stage, warning};

const NAME: &str = "my-rebalance";

/// Every service is at this port.
#[derive(Debug)]
struct At(u16);

impl Services for At {
    fn find<'a>(&'a self, _: &'a str, _: &'a str, _: u16) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        Box::pin(async move { Ok(vec![Address { host: "127.0.0.1".to_owned(), port: self.0 }]) })
    }

    fn find_pod<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        _: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        self.find(namespace, service, port)
    }
}

/// Shakes hands with whoever comes. It lives as long as the tests.
fn serve(config: ServerConfig) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), Ok(mut connection)) = (stream, ServerConnection::new(Arc::clone(&config))) else {
                return;
            };
            // Whoever does not trust it hangs up.
            while connection.complete_io(&mut stream).is_ok() {}
        }
    });
    port
}

/// What is said of an engine at this port by an operator that trusts an authority which has signed nothing there.
async fn warned_of(stage: &Stage, certificates: &Certificates, port: u16) -> (KafkaRebalance, String) {
    let other = std::fs::read_to_string(certificates.other_authority()).unwrap();
    let patch = Patch::Merge(json!({"stringData": {"ca.crt": other}}));
    let name = format!("{CLUSTER}-cluster-ca-cert");
    stage.api::<Secret>().patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let _operator = stage.operator_over(Fate::default(), Arc::new(HttpsEngines::new(Arc::new(At(port)))));
    stage.create(NAME, |_| {}).await;
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    let why = warning(&warned, Reason::CruiseControlRestException).unwrap();
    (warned, why)
}

pub async fn a_certificate_of_another_authority_is_explained(stage: Stage) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path()).unwrap();
    let port = serve(certificates.server(WebPkiClientVerifier::no_client_auth()).unwrap());
    // What the cluster trusts has not signed what the engine shows.
    let (warned, why) = warned_of(&stage, &certificates, port).await;
    assert!(why.contains("<cluster>-cluster-ca-cert") && why.contains("UnknownIssuer"), "{why}");
    assert_eq!(warned.state(), RebalanceState::PendingProposal, "it goes on once the two fit");
}

/// It must not be told the operator's password.
pub async fn an_engine_without_tls_is_told_nothing_and_explained(stage: Stage) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap_or_default();
            request.truncate(read);
            let _ = told.send(request);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path()).unwrap();
    let (warned, why) = warned_of(&stage, &certificates, port).await;
    assert!(why.contains("speaks no TLS"), "{why}");
    assert_eq!(warned.state(), RebalanceState::PendingProposal, "it goes on once it does");
    let heard = heard.recv().unwrap();
    assert!(!String::from_utf8_lossy(&heard).contains("Authorization"), "a hello, and nothing else");
}
