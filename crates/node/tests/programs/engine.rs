//! An engine launched from what its Deployment mounts.

use base64::Engine as _;
use evenkeel_kafka::Address;
use evenkeel_kafka::connect::Connector;
use evenkeel_node::kubelet::program::{Exit, Launch, Process, Stop};
use evenkeel_node::programs::wires::Wires;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::yard::{NAMESPACE, Yard, claim, pod, ready};

/// What the operator writes, as its own tests have it.
const CAPACITIES: &str = include_str!("../../../operator/tests/golden/capacity.json");

/// The same for the cluster of these tests.
fn properties() -> String {
    let written = include_str!("../../../operator/tests/golden/cruisecontrol.properties");
    written.replace("harbour-kafka-bootstrap.sea.svc", "c-kafka-bootstrap.ns.svc")
}

fn engine(yard: &Yard, properties: &str) -> Launch {
    let (chain, key) = yard.authority.issue(&[&format!("c-cruise-control.{NAMESPACE}.svc")]);
    let files = [
        ("/opt/cruise-control/custom-config/cruisecontrol.properties", properties.to_owned()),
        ("/opt/cruise-control/custom-config/capacity.json", CAPACITIES.to_owned()),
        ("/etc/cruise-control/cc-certs/keystore.pem", format!("{key}{chain}")),
        ("/etc/cruise-control/cluster-ca-certs/ca.crt", yard.authority.pem.clone()),
        (
            "/opt/cruise-control/api-auth-config/cruise-control.authFile",
            "rebalance-operator: hush,ADMIN\nhealthcheck: hc,USER\n".to_owned(),
        ),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let mut launch = yard.launch(pod("c-cruise-control-7d9-x"), "cruise-control", &files);
    let command = ["evenkeel", "engine", "/opt/cruise-control/custom-config/cruisecontrol.properties"];
    launch.command = command.map(str::to_owned).to_vec();
    launch
}

/// What the engine answers, over HTTPS, at the name of its Service.
async fn get(yard: &Yard, path: &str, login: Option<&str>) -> String {
    let address = Address { host: format!("c-cruise-control.{NAMESPACE}.svc"), port: 9090 };
    let mut stream = yard.tls(None).open(&address).await.unwrap();
    let login = login
        .map(|login| format!("authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(login)));
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{}\r\n",
        address.host,
        login.unwrap_or_default()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Some ends of TLS are not announced.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn begun(yard: &Yard, engine: Launch) -> (Vec<Process>, Process) {
    let mut brokers = Vec::new();
    for id in 0..3 {
        let mut broker = yard.run(yard.broker(id, claim(&format!("claim-{id}")))).await.unwrap();
        ready(&mut broker).await;
        brokers.push(broker);
    }
    yard.serves("c-kafka-bootstrap", 9091, &brokers.iter().collect::<Vec<_>>());
    let mut engine = yard.run(engine).await.unwrap();
    yard.serves("c-cruise-control", 9090, &[&engine]);
    ready(&mut engine).await;
    (brokers, engine)
}

async fn answers_to_its_users(yard: &Yard) {
    let state = "/kafkacruisecontrol/state?json=true";
    let answer = get(yard, state, Some("rebalance-operator:hush")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("MonitorState") && answer.contains("ExecutorState"), "{answer}");
    assert!(get(yard, state, None).await.starts_with("HTTP/1.1 401"));
    assert!(get(yard, state, Some("rebalance-operator:guess")).await.starts_with("HTTP/1.1 401"));
    assert!(get(yard, "/readyz", None).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn an_engine_answers_its_users_over_pipes() {
    let yard = Yard::new(Wires::pipes());
    let (_brokers, mut engine) = begun(&yard, engine(&yard, &properties())).await;
    answers_to_its_users(&yard).await;
    (engine.stop)(Stop::Politely);
    assert_eq!(engine.ended.await, Exit::success());
}

#[tokio::test]
async fn an_engine_answers_its_users_over_sockets_and_logs_for_itself() {
    let yard = Yard::new(Wires::Loopback);
    let launch = engine(&yard, &properties());
    let log = launch.log.clone();
    let (_brokers, mut engine) = begun(&yard, launch).await;
    answers_to_its_users(&yard).await;
    (engine.stop)(Stop::Now);
    assert_eq!(engine.ended.await, Exit::killed());
    let address = ("127.0.0.1", engine.ports[&9090]);
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let lines: Vec<String> = log.reader().read().into_iter().map(|line| line.text).collect();
    assert!(lines.iter().any(|line| line.contains("INFO")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_used_are_named_as_the_container_knows_them() {
    let yard = Yard::new(Wires::pipes());
    let said = async |launch| yard.run(launch).await.unwrap_err().to_string();
    let line = said(engine(&yard, "webserver.http.port=many")).await;
    assert!(line.contains("/opt/cruise-control/custom-config/cruisecontrol.properties: "), "{line}");
    assert!(line.contains("bootstrap.servers is required") && line.contains("webserver.http.port"), "{line}");
    let elsewhere = properties().replace("capacity.json", "nope.json");
    let line = said(engine(&yard, &elsewhere)).await;
    assert!(line.contains("/opt/cruise-control/custom-config/nope.json: "), "{line}");
    let mut original = engine(&yard, &properties());
    original.command = vec!["/opt/cruise-control/cruise_control_run.sh".to_owned()];
    let line = said(original).await;
    assert!(line.contains("cruise_control_run.sh") && line.contains("evenkeel engine"), "{line}");
}
