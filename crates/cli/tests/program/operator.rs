//! `evenkeel operator`, as a program beside `evenkeel kube`: how it is asked how it fares, whose turn it is, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

/// A program in the background. Killed when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn start(command: &mut Command) -> Self {
        command.env_remove("RUST_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// The line that says where it is.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("text");
        assert!(!line.is_empty(), "it ended: {}", self.complaint());
        line.trim_end().to_owned()
    }

    fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits for the end, but not for ever.
    fn ended(&mut self) -> ExitStatus {
        let before = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(before.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
        text
    }
}

/// A Kubernetes API, and the way to it.
struct Kube {
    _program: Program,
    config: PathBuf,
    _folder: tempfile::TempDir,
}

impl Kube {
    fn start() -> Self {
        Self::with(&["--install-crds"])
    }

    fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.arg("kube").args(options).arg("--dir").arg(folder.path());
        command.env("HOME", folder.path()).env_remove("KUBECONFIG");
        let mut program = Program::start(&mut command);
        let line = program.first_line();
        let config = line.strip_prefix("export KUBECONFIG=").unwrap_or_else(|| panic!("{line}"));
        let config = PathBuf::from(config.trim_matches(['\'', '"']));
        Self { _program: program, config, _folder: folder }
    }

    fn operator(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.args(["operator", "--address", "127.0.0.1", "--port", "0"]).env("KUBECONFIG", &self.config);
        command.env("STRIMZI_LEADER_ELECTION_LEASE_NAMESPACE", "default");
        command
    }

    async fn leases(&self) -> Api<Lease> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Kubeconfig::read_from(&self.config).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("a way");
        Api::namespaced(kube::Client::try_from(config).expect("a client"), "default")
    }
}

const LEASE: &str = "strimzi-cluster-operator";

/// Looks until the Lease has a holder, or has none.
async fn holder(leases: &Api<Lease>, wanted: bool) -> Option<String> {
    let before = Instant::now();
    loop {
        let found = leases.get_opt(LEASE).await.expect("an answer").and_then(|lease| lease.spec?.holder_identity);
        if found.is_some() == wanted {
            return found;
        }
        assert!(before.elapsed() < PATIENCE, "the Lease is {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Status line of an answer, and what kind of text it is.
fn get(at: &str, path: &str) -> (String, Option<String>) {
    let address = at.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).expect("an address");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, _) = answer.split_once("\r\n\r\n").expect("a head");
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    (head.lines().next().unwrap_or_default().to_owned(), kind.map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_how_it_fares_takes_its_turn_and_gives_it_up_when_it_is_told_to_end() {
    let kube = Kube::start();
    let leases = kube.leases().await;
    let mut operator = Program::start(&mut kube.operator());
    let at = operator.first_line();
    assert_eq!(get(&at, "/healthy").0, "HTTP/1.1 200 OK");
    let before = Instant::now();
    while get(&at, "/ready").0 != "HTTP/1.1 200 OK" {
        assert!(before.elapsed() < PATIENCE, "it is never ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (status, kind) = get(&at, "/metrics");
    assert_eq!(
        (status.as_str(), kind.as_deref()),
        ("HTTP/1.1 200 OK", Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    assert_eq!(get(&at, "/elsewhere").0, "HTTP/1.1 404 Not Found");
    holder(&leases, true).await;

    operator.terminate();
    assert_eq!(operator.ended().code(), Some(0), "{}", operator.complaint());
    assert_eq!(holder(&leases, false).await, None, "the next one need not wait");
}

/// It may have the Lease, but there is nothing yet that it could look after.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_definitions_of_its_resources_it_is_healthy_and_not_ready() {
    let kube = Kube::with(&[]);
    let leases = kube.leases().await;
    let mut operator = Program::start(kube.operator().env("RUST_LOG", "off"));
    let at = operator.first_line();
    holder(&leases, true).await;
    assert_eq!(get(&at, "/healthy").0, "HTTP/1.1 200 OK");
    assert_eq!(get(&at, "/ready").0, "HTTP/1.1 503 Service Unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_lost_its_turn_ends_and_says_what_to_do() {
    let kube = Kube::start();
    let leases = kube.leases().await;
    let mut operator = Program::start(kube.operator().env("RUST_LOG", "off"));
    operator.first_line();
    holder(&leases, true).await;
    let other = json!({"spec": {"holderIdentity": "another"}});
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(other)).await.expect("it is taken");
    assert_eq!(operator.ended().code(), Some(1));
    let said = operator.complaint();
    let last = said.lines().last().unwrap_or_default();
    let expected = "evenkeel: Start it again: it then waits for its turn: the Lease default/strimzi-cluster-operator is held by \
                    another operator";
    assert_eq!(last, expected, "{said}");
    assert_eq!(holder(&leases, true).await.as_deref(), Some("another"), "it is left alone");
}

#[test]
fn what_it_cannot_use_is_said_in_one_line() {
    let kube = Kube::start();
    let mut operator = Program::start(kube.operator().env("STRIMZI_LEADER_ELECTION_ENABLED", "perhaps"));
    let code = operator.ended().code();
    let said = operator.complaint();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("STRIMZI_LEADER_ELECTION_ENABLED") && said.contains("write `true` or `false`"), "{said}");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(["operator", "--address", "127.0.0.1", "--port", &port]).env("KUBECONFIG", &kube.config);
    let mut operator = Program::start(&mut command);
    let code = operator.ended().code();
    let said = operator.complaint();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with(&format!("evenkeel: could not listen on 127.0.0.1:{port}: ")), "{said}");
}
