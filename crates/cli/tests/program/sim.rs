//! `evenkeel sim`, as a program: driven through its standard input, watched by our own Kafka client.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_kafka::calls::offsets::{Isolation, Place};
use evenkeel_kafka::calls::topics::{Layout, NewTopic, Which};
use evenkeel_kafka::client::{Client, Settings};
use evenkeel_kafka::connect::{Connector, Tcp, Tls, TlsFiles};
use evenkeel_kafka::login::scram::Hash;
use evenkeel_kafka::login::{Credentials, Secret};
use evenkeel_kafka::topic::{Start, TopicReader, Until};
use evenkeel_kafka::types::TopicPartition;

const PATIENCE: Duration = Duration::from_secs(120);
/// A line that no command answers with but this word's complaint: the end of any answer before it.
const MARK: &str = "xyzzy";

struct Sim {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    greeting: serde_json::Value,
}

impl Sim {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["sim", "--output", "json"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let greeting = serde_json::from_str(&stdout.next().unwrap().unwrap()).unwrap();
        Self { child, stdin, stdout, greeting }
    }

    /// What is answered to a line.
    fn say(&mut self, line: &str) -> Vec<String> {
        writeln!(self.stdin, "{line}\n{MARK}").unwrap();
        let lines = self.stdout.by_ref().map(Result::unwrap);
        lines.take_while(|line| !line.starts_with(&format!("there is no command {MARK}"))).collect()
    }

    fn obeys(&mut self, line: &str) {
        assert_eq!(self.say(line), ["done"], "{line}");
    }

    fn client(&self, connector: Arc<dyn Connector>, credentials: Option<Credentials>) -> Client {
        let bootstrap = self.greeting["bootstrapServers"].as_str().unwrap();
        let bootstrap = bootstrap.split(',').map(|address| address.parse().unwrap()).collect();
        Client::new(connector, Settings { credentials, ..Settings::new(bootstrap) })
    }

    fn quit(mut self) {
        writeln!(self.stdin, "quit").unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Asks until it holds.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut again = tokio::time::interval(Duration::from_millis(20));
    while !holds().await {
        assert!(Instant::now() < deadline, "in vain: {what}");
        again.tick().await;
    }
}

/// Ids of the brokers, fenced ones negative less one.
async fn brokers(client: &Client) -> Vec<i32> {
    let Ok(cluster) = client.describe_cluster().await else { return Vec::new() };
    cluster.brokers.iter().map(|it| if it.fenced { -1 - it.id.0 } else { it.id.0 }).collect()
}

async fn partition_of(client: &Client, topic: &str) -> Option<Vec<i32>> {
    let mut found = client.topics(Which::Named(&[topic.to_owned()])).await.ok()?;
    let topic = found.remove(topic)?.ok()?;
    topic.partitions.first().map(|it| it.replicas.iter().map(|id| id.0).collect())
}

async fn end_of(client: &Client, topic: &str) -> i64 {
    let tp = TopicPartition::new(topic, 0);
    let places = BTreeMap::from([(tp.clone(), Place::Latest)]);
    let Ok(mut found) = client.list_offsets(&places, Isolation::Uncommitted).await else { return -1 };
    found.remove(&tp).and_then(Result::ok).flatten().unwrap_or(-1)
}

async fn read_all(client: &Client, topic: &str) -> Vec<Vec<u8>> {
    let mut reader =
        TopicReader::open(client.clone(), topic, &Start::Earliest, Until::End, Isolation::Committed).await.unwrap();
    let mut values = Vec::new();
    while let Some(records) = reader.next().await.unwrap() {
        values.extend(records.into_iter().filter_map(|it| it.stored.record.value).map(|value| value.to_vec()));
    }
    values
}

#[tokio::test]
async fn a_cluster_is_driven_by_hand_and_a_client_sees_it() {
    let mut sim = Sim::start(&[
        "--brokers",
        "4",
        "--racks",
        "2",
        "--dirs",
        "2",
        "--topics",
        "1",
        "--load",
        "1MB/s",
        "--speed",
        "20",
        "--metrics-interval",
        "5",
    ]);
    let client = sim.client(Arc::new(Tcp), None);
    let cluster = client.describe_cluster().await.unwrap();
    let racks: Vec<_> = cluster.brokers.iter().filter_map(|broker| broker.rack.as_deref()).collect();
    assert_eq!(racks, ["a", "b", "a", "b"]);

    // The load has offsets, and a reader gets through them.
    let first = end_of(&client, "topic-0").await;
    eventually("offsets move on", async || end_of(&client, "topic-0").await > first.max(0)).await;
    assert_eq!(read_all(&client, "topic-0").await, [] as [Vec<u8>; 0]);

    // Each broker reports its metrics.
    eventually("the metrics topic", async || end_of(&client, "__CruiseControlMetrics").await > 0).await;
    let metrics = read_all(&client, "__CruiseControlMetrics").await;
    assert!(!metrics.is_empty() && metrics.iter().all(|value| value[0] <= 2 && value[1] == 0));

    // Brokers come and go.
    sim.obeys("kill 3");
    eventually("3 is fenced", async || brokers(&client).await == [0, 1, 2, -4]).await;
    sim.obeys("start 3");
    eventually("3 is back", async || brokers(&client).await == [0, 1, 2, 3]).await;
    let added = sim.say("add");
    assert!(added.len() == 1 && added[0].starts_with("broker 4 listens on 127.0.0.1:"), "{added:?}");
    eventually("4 is there", async || brokers(&client).await == [0, 1, 2, 3, 4]).await;
    sim.obeys("stop 4");
    eventually("4 is fenced", async || brokers(&client).await == [0, 1, 2, 3, -5]).await;
    sim.obeys("remove 4");
    eventually("4 is forgotten", async || brokers(&client).await == [0, 1, 2, 3]).await;

    // Topics come, move and go.
    sim.obeys("create made 1 2 1MB/s");
    eventually("the topic", async || partition_of(&client, "made").await.is_some()).await;
    let from = partition_of(&client, "made").await.unwrap();
    let to: Vec<i32> = (0..4).filter(|id| !from.contains(id)).collect();
    sim.obeys(&format!("move made 0 {},{}", to[0], to[1]));
    eventually("the move", async || partition_of(&client, "made").await == Some(to.clone())).await;
    sim.obeys("delete made");
    eventually("no topic", async || partition_of(&client, "made").await.is_none()).await;

    // What cannot be is said in one line, and nothing is disturbed.
    for bad in [
        "reboot",
        "kill",
        "kill 99",
        "slow-disk 0 7 50",
        "fail-dir 0 /nope",
        "\u{1b}[2J",
        "move nope 0 1",
        "create topic-0 1 1",
        "start 0",
    ] {
        let answer = sim.say(bad);
        assert!(answer.len() == 1 && answer[0] != "done", "{bad}: {answer:?}");
        assert!(!answer[0].contains(char::is_control), "{bad}: {answer:?}");
    }
    assert_eq!(brokers(&client).await, [0, 1, 2, 3]);

    // Every other fault, and what is to be seen of it.
    let seen = |sim: &mut Sim, broker: usize, what: &str| {
        let status = sim.say("status");
        assert!(status[0].starts_with("broker  rack  state") && status.len() > 4, "{status:#?}");
        status[1 + broker].contains(what)
    };
    for (fault, broker, what, mended) in [
        ("slow-disk 0 1 10", 0, "disk at 10 %", "slow-disk 0 1 100"),
        ("slow-link 1 10", 1, "link at 10 %", "slow-link 1 100"),
        ("cut 2", 2, "cut off", "mend 2"),
        ("fail-dir 1 0", 1, "failed", "mend-dir 1 /data/d0"),
        ("full-disk 1 1", 1, "failed", "mend-dir 1 1"),
    ] {
        assert!(!seen(&mut sim, broker, what), "{what} before {fault}");
        sim.obeys(fault);
        assert!(seen(&mut sim, broker, what), "no {what} after {fault}");
        sim.obeys(mended);
        assert!(!seen(&mut sim, broker, what), "{what} after {mended}");
    }
    sim.obeys("stale 0 3600");
    assert!(seen(&mut sim, 0, "metadata stand still"));
    sim.obeys("stale 0 1");
    eventually("its second is over", async || !sim.say("status")[1].contains("metadata stand still")).await;
    eventually("all are back", async || brokers(&client).await == [0, 1, 2, 3]).await;
    // Whoever is asked: the answer is lost, and the deed is done.
    (0..4).for_each(|broker| sim.obeys(&format!("lose-answer {broker} CreateTopics")));
    let layout = Layout::Automatic { partitions: Some(1), replication_factor: Some(1) };
    let topic = NewTopic { name: "unanswered".to_owned(), layout, configs: BTreeMap::new() };
    assert!(client.create_topics(&[topic], false).await.whole().is_err());
    assert!(sim.say("topics").iter().any(|line| line.starts_with("unanswered")));
    for fault in [
        "slow-disk 0 1 10",
        "load topic-0 2MB",
        "swing topic-0 50%",
        "hot topic-0 3 10x",
        "lose-rack b",
        "# a remark",
        "",
    ] {
        let answer = sim.say(fault);
        assert!(answer.is_empty() || answer == ["done"], "{fault}: {answer:?}");
    }
    assert!(sim.say("change-controller")[0].contains("passes for the controller"));
    let status = sim.say("status");
    assert!(status[0].starts_with("broker  rack  state") && status.len() > 5, "{status:#?}");
    assert!(status[2].contains("down") && status[1].contains("disk at 10 %"), "{status:#?}");
    assert!(sim.say("topics").iter().any(|line| line.starts_with("topic-0")));
    assert_eq!(sim.say("moves"), ["no reassignment is under way"]);
    assert_eq!(sim.say("help").len(), 28);
    sim.quit();
}

#[tokio::test]
async fn nobody_gets_in_without_the_password_and_the_authority() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::start(&["--tls", "--user", "alice", "--dir", dir.path().to_str().unwrap(), "--no-metrics"]);
    assert_eq!(sim.greeting["securityProtocol"], "SASL_SSL");
    let path = sim.greeting["clientProperties"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let settings = std::fs::read_to_string(path).unwrap();
    let password = settings.split("password=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(!sim.greeting.to_string().contains(password));
    let authorities = Some(sim.greeting["authority"].as_str().unwrap().into());
    let tls = || Arc::new(Tls::new(TlsFiles { authorities: authorities.clone(), identity: None }).unwrap());
    let scram = |password: &str| {
        Some(Credentials::Scram { hash: Hash::Sha512, username: "alice".to_owned(), password: Secret::new(password) })
    };
    assert_eq!(brokers(&sim.client(tls(), scram(password))).await, [0, 1, 2]);
    assert!(sim.client(tls(), scram("guessed")).describe_cluster().await.is_err());
    sim.quit();
}

#[test]
fn an_interrupt_ends_it_cleanly_and_the_end_of_the_input_does_not() {
    let sim = Sim::start(&["--brokers", "1", "--topics", "0"]);
    let Sim { mut child, stdin, .. } = sim;
    drop(stdin);
    assert!(child.try_wait().unwrap().is_none());
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert!(child.wait().unwrap().success());
}

/// Who asks for tables and never looks at them must not keep anybody else waiting.
#[tokio::test]
async fn output_that_nobody_reads_holds_up_neither_clients_nor_signals() {
    let mut sim = Sim::start(&["--topics", "50", "--no-metrics"]);
    // More than a pipe holds.
    sim.stdin.write_all("topics\n".repeat(100).as_bytes()).unwrap();
    let client = sim.client(Arc::new(Tcp), None);
    for _ in 0..20 {
        client.describe_cluster().await.unwrap();
    }
    assert!(Command::new("kill").arg(sim.child.id().to_string()).status().unwrap().success());
    assert!(sim.child.wait().unwrap().success());
    drop(sim.stdout);
}

#[test]
fn options_that_make_no_cluster_are_refused_with_exit_code_2() {
    for (arguments, says) in [
        (&["--brokers", "2", "--replication-factor", "3"][..], "--replication-factor 3 needs as many brokers"),
        (&["--brokers", "4", "--port", "65534"], "--port 65534 leaves no port for broker 3"),
        (&["--user", "a b"], "--user a b"),
        (&["--user", "a", "--password-file", "/nowhere"], "--password-file /nowhere"),
        (&["--dir", "/tmp"], "--dir /tmp would stay empty"),
        (&["--brokers", "0"], "--brokers"),
        (&["--load", "much"], "not a rate with its unit, such as 50MB/s"),
        (&["--load", "5"], "not a rate with its unit, such as 50MB/s"),
        (&["--swing", "50"], "--swing needs a --load, such as 5MB/s"),
        (&["--load", "5MB/s", "--swing", "150"], "not a percentage from 0 to 100"),
        (&["--load", "5MB/s", "--hot-topic", "0"], "not a number from 1 to 1000"),
        (&["--speed", "0"], "--speed"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("sim")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
        assert_eq!(output.stdout, b"");
    }
}

/// A simulated cluster with a password, in a place for temporary files of its own.
fn with_password(temporary: &Path, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["sim", "--brokers", "1", "--topics", "0", "--no-metrics", "--user", "alice"])
        .args(arguments)
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// Whether these tests were started with `nohup` or the like, which every program started here inherits.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| mask.trim_end().ends_with(|digit| "13579bdf".contains(digit)))
}

#[test]
fn a_hangup_leaves_no_password_behind() {
    if hangups_are_ignored() {
        let _ = writeln!(std::io::stderr(), "skipped: hangups are ignored here, as under nohup");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let (mut child, mut lines) = with_password(temporary.path(), &[]);
    assert!(lines.any(|line| line.unwrap().starts_with("A simulated cluster")));
    assert!(!is_empty(temporary.path()));
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_without_a_word() {
    let temporary = tempfile::tempdir().unwrap();
    let (child, mut lines) = with_password(temporary.path(), &[]);
    assert!(lines.next().unwrap().unwrap().starts_with("bootstrap.servers=127.0.0.1:"));
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_directory_is_one_clusters_at_a_time() {
    let (temporary, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let named = ["--dir", dir.path().to_str().unwrap()];
    let (mut first, mut lines) = with_password(temporary.path(), &named);
    assert!(lines.any(|line| line.unwrap().starts_with("A simulated cluster")));
    let settings = || std::fs::read_to_string(dir.path().join("client.properties")).unwrap();
    let before = settings();
    let (second, _) = with_password(temporary.path(), &named);
    let refused = second.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    let holder = format!("is in use by another evenkeel, process {}; stop it or name another --dir\n", first.id());
    assert!(said.ends_with(&holder), "{said}");
    assert_eq!(settings(), before);
    assert!(Command::new("kill").arg(first.id().to_string()).status().unwrap().success());
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_load_may_be_uneven_over_the_day_the_topics_and_their_partitions() {
    let mut sim = Sim::start(&[
        "--topics",
        "2",
        "--load",
        "1MB",
        "--swing",
        "50",
        "--hot-topic",
        "10",
        "--hot-partition",
        "5x",
        "--no-metrics",
    ]);
    let topics = sim.say("topics");
    let rate = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| word.ends_with("/s")).unwrap();
        (words[at - 1].parse::<f64>().unwrap(), words[at].to_owned())
    };
    let (hot, usual) = (rate(&topics[1]), rate(&topics[2]));
    assert!(hot.1 == "MB/s" && usual.1 == "MB/s" && (hot.0 / usual.0 - 10.0).abs() < 0.2, "{topics:#?}");
    sim.quit();
}
