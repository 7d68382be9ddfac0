//! The engine in a folder that looks like the container in which Strimzi runs Cruise Control, over real brokers that
//! want a certificate.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use evenkeel_rest::client::{Answer, Basic, Client, http_service, trusting};
use evenkeel_rest::request::{KafkaClusterState, RemoveBroker};
use evenkeel_testkit::real_kafka::{BrokerSpec, Cluster, Kit, Listener};

/// More than anything takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A folder that stands for the container, and what is mounted there.
struct Container {
    root: tempfile::TempDir,
    bootstrap: String,
    port: u16,
}

/// A server that is killed with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // There is nobody to tell if it ended by itself.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Container {
    /// As Strimzi mounts it: with settings that say nothing of Kafka's whereabouts or of certificates.
    fn laid_out(certificates: &evenkeel_testkit::certificates::Certificates, bootstrap: String) -> Container {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let identity = certificates.admin();
        put("etc/cruise-control/cc-certs/cruise-control.crt", &fs::read(identity.certificate).unwrap());
        put("etc/cruise-control/cc-certs/cruise-control.key", &fs::read(identity.key).unwrap());
        put("etc/cruise-control/cluster-ca-certs/ca.crt", &fs::read(certificates.authority()).unwrap());
        // One that is being renewed.
        let former = fs::read(certificates.other_authority()).unwrap();
        put("etc/cruise-control/cluster-ca-certs/ca-2026-01-01T00-00-00Z.crt", &former);
        put("etc/cruise-control/cluster-ca-certs/ca.password", b"hush");
        let users = "rebalance-operator: steer, ADMIN\nhealthcheck: look, USER\n";
        put("opt/cruise-control/api-auth-config/cruise-control.authFile", users.as_bytes());
        put("opt/cruise-control/api-auth-config/healthcheck.password", b"look");
        put("opt/cruise-control/custom-config/cruisecontrol.properties", SETTINGS.as_bytes());
        put("opt/cruise-control/custom-config/capacity.json", CAPACITIES.as_bytes());
        // What a container before this one has left.
        put("tmp/cruise-control.pem", b"something else, and longer than what takes its place".repeat(500).as_slice());
        for script in ["cruise_control_run.sh", "cruise_control_healthcheck.sh"] {
            let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/strimzi").join(script);
            let shipped = fs::read_to_string(shipped).unwrap();
            assert!(shipped.starts_with("#!/usr/local/bin/evenkeel "), "the image has its program there");
            let path = format!("opt/cruise-control/{script}");
            put(&path, shipped.replace("/usr/local/bin/evenkeel", env!("CARGO_BIN_EXE_evenkeel")).as_bytes());
            fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Nobody else listens there right now; the engine says so if somebody does by then.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Container { root, bootstrap, port }
    }

    /// With the environment that Strimzi gives it, and no other.
    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("opt/cruise-control").join(name));
        command.env_clear().envs([
            ("CRUISE_CONTROL_JMX_EXPORTER_ENABLED", "false"),
            ("STRIMZI_KAFKA_BOOTSTRAP_SERVERS", self.bootstrap.as_str()),
            ("STRIMZI_KAFKA_GC_LOG_ENABLED", "false"),
            ("STRIMZI_CC_TLS_ENABLED", "true"),
            ("STRIMZI_CC_MTLS_ENABLED", "true"),
            ("STRIMZI_CC_API_AUTH_ENABLED", "true"),
            ("API_HEALTHCHECK_USERNAME", "healthcheck"),
            ("API_PORT", self.port.to_string().as_str()),
            ("API_HEALTHCHECK_PATH", "/kafkacruisecontrol/state"),
        ]);
        command
    }

    fn health(&self) -> Output {
        self.script("cruise_control_healthcheck.sh").output().expect("the script can be run")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }
}

/// The defaults that Strimzi generates, and then what a user has set: short windows.
const SETTINGS: &str = "num.partition.metrics.windows=1\n\
    goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareDistributionGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.MinTopicLeadersPerBrokerGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.NetworkInboundCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.NetworkOutboundCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.CpuCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaDistributionGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.LeaderReplicaDistributionGoal\n\
    default.goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaDistributionGoal\n\
    hard.goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal\n\
    anomaly.detection.goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaCapacityGoal,\
    com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal\n\
    webserver.security.enable=true\n\
    webserver.auth.credentials.file=/opt/cruise-control/api-auth-config/cruise-control.authFile\n\
    partition.metric.sample.store.topic=strimzi.cruisecontrol.partitionmetricsamples\n\
    broker.metric.sample.store.topic=strimzi.cruisecontrol.modeltrainingsamples\n\
    metric.reporter.topic=strimzi.cruisecontrol.metrics\n\
    partition.metrics.window.ms=4000\n\
    metric.sampling.interval.ms=2000\n\
    min.samples.per.partition.metrics.window=1\n\
    partition.sample.store.topic.partition.count=2\n\
    broker.sample.store.topic.partition.count=2\n";

const CAPACITIES: &str = r#"{"brokerCapacities": [{"brokerId": "-1",
    "capacity": {"DISK": "100000", "CPU": {"num.cores": "1.0"}, "NW_IN": "10000", "NW_OUT": "10000"}}]}"#;

/// Strimzi's Deployment has its script as the one argument of the container, and no command: whatever an image has for an
/// entry point would get it as an argument.
#[test]
fn the_image_starts_what_strimzi_names() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Containerfile");
    let text = fs::read_to_string(file).unwrap();
    let image = text.rsplit_once("\nFROM scratch\n").expect("an image with nothing else").1;
    let instructions: Vec<&str> = image.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!instructions.iter().any(|line| line.starts_with("ENTRYPOINT")), "{image}");
    let scripts = "COPY --chmod=755 deploy/strimzi/ /opt/cruise-control/";
    assert!(instructions.contains(&scripts) && instructions.contains(&"ENV PATH=/usr/local/bin"), "{image}");
}

/// What needs Apache Kafka: run by `cargo xtask real kafka`, which says where that is.
mod real_arm {
    use super::*;

    #[test]
    fn strimzis_scripts_start_the_engine_and_find_it_well() {
        if std::env::var_os("EVENKEEL_KAFKA_KIT").is_none() {
            // Nobody reads it if it cannot be written.
            let _ = writeln!(std::io::stderr(), "skipped: cargo xtask real kafka runs this");
            return;
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cluster = runtime.block_on(Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(4))).unwrap();
        let container = Container::laid_out(cluster.certificates(), cluster.bootstrap(Listener::Mtls));

        let early = container.health();
        assert_eq!(early.status.code(), Some(1), "{early:?}");
        let said = String::from_utf8(early.stderr).unwrap();
        assert!(said.starts_with("evenkeel: the server does not answer"), "{said}");

        let log = fs::File::create(container.path("log")).unwrap();
        let started = container.script("cruise_control_run.sh").stdout(Stdio::null()).stderr(log).spawn();
        let running = Running(started.expect("the script can be run"));
        let log = || fs::read_to_string(container.path("log")).unwrap();
        let begun = Instant::now();
        while !container.health().status.success() {
            assert!(begun.elapsed() < PATIENCE, "{}", log());
            std::thread::sleep(Duration::from_millis(200));
        }

        // As Strimzi's operator asks, and what only a server that is in touch with the brokers knows.
        let authority = fs::read(cluster.certificates().authority()).unwrap();
        let base = format!("https://localhost:{}/kafkacruisecontrol", container.port).parse().unwrap();
        let client = Client::new(http_service(trusting(&authority).unwrap(), PATIENCE), base)
            .with_credentials(|| Some(Basic::new("rebalance-operator", "steer")));
        let replicas = async || loop {
            match client.ask(&KafkaClusterState::default()).await.answer {
                Answer::Ready(state) => return state.brokers,
                other => assert!(begun.elapsed() < PATIENCE, "{other:?}\n{}", log()),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        runtime.block_on(async {
            assert_eq!(replicas().await.online_log_dirs_by_broker_id.len(), 4, "{}", log());
            // What it measures, plans and moves over the same wires: a broker is emptied of the engine's own topics.
            let mut removal = RemoveBroker { brokerid: [3].into(), ..RemoveBroker::default() };
            removal.execution.run.dryrun = false;
            loop {
                match client.ask_and_wait(&removal, PATIENCE, LOOK_AGAIN).await.answer {
                    Answer::Ready(_) => break,
                    other => assert!(begun.elapsed() < PATIENCE, "{other:?}\n{}", log()),
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            while replicas().await.replica_count_by_broker_id.get(&3).is_some_and(|count| *count > 0) {
                assert!(begun.elapsed() < PATIENCE, "broker 3 is not emptied\n{}", log());
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(!log().contains("steer"), "passwords are in no log");
        drop(running);
        assert_eq!(container.health().status.code(), Some(1), "one that is gone is not well");
    }
}
