//! LinkedIn's command line client, every command of it that maps to something that is built, against an engine over
//! simulated brokers.

use std::time::Duration;

use evenkeel_sim::{
    BrokerId, Cluster, Options,
    cluster::{BrokerSpec, NewTopic},
    serve::{Listener, World},
    traffic::Load,
};
use evenkeel_testkit::kafka_client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::life::{Life, PATIENCE};

struct Stand {
    life: Life,
    world: World,
    _listener: Listener,
}

pub(crate) async fn every_command_works() {
    let stand = Stand::built().await;
    what_is_told(&stand).await;
    what_is_set(&stand).await;
    plans(&stand).await;
    an_execution(&stand).await;
}

async fn what_is_told(stand: &Stand) {
    let state = stand.body(&["state"]).await;
    // It asks for the executor's part alone, unless told otherwise.
    assert_eq!(state["ExecutorState"]["state"], "NO_TASK_IN_PROGRESS");
    let all = stand.body(&["state", "--substates", "analyzer", "monitor", "executor", "anomaly_detector"]).await;
    for part in ["AnalyzerState", "MonitorState", "ExecutorState", "AnomalyDetectorState"] {
        assert!(all[part].is_object(), "{part}: {all}");
    }
    let text = stand.must_say(&["state"]).await;
    assert!(text.contains("ExecutorState"), "{text}");
    let load = stand.body(&["load"]).await;
    assert_eq!(load["brokers"].as_array().map(Vec::len), Some(4));
    let partitions = stand.body(&["partition_load", "--number-of-entries-to-show", "3"]).await;
    assert_eq!(partitions["records"].as_array().map(Vec::len), Some(3));
    let cluster = stand.body(&["kafka_cluster_state"]).await;
    assert!(cluster["KafkaBrokerState"]["ReplicaCountByBrokerId"]["0"].as_u64() >= Some(12), "{cluster}");
}

async fn what_is_set(stand: &Stand) {
    let monitor = async || stand.body(&["state", "--substates", "monitor"]).await["MonitorState"]["state"].clone();
    stand.must_say(&["pause_sampling", "--reason", "a test"]).await;
    assert_eq!(monitor().await, "PAUSED");
    stand.must_say(&["resume_sampling", "--reason", "a test"]).await;
    assert_ne!(monitor().await, "PAUSED");
    stand.must_say(&["admin", "--concurrency", "7"]).await;
    stand.must_say(&["admin", "--disable-self-healing-for", "broker_failure"]).await;
}

/// Of every kind, and none of them is carried out.
async fn plans(stand: &Stand) {
    for command in [
        &["proposals"][..],
        &["rebalance", "-n"],
        &["rebalance", "--destination-broker", "2", "-n"],
        &["add_broker", "2,3", "-n"],
        &["remove_broker", "1", "-n"],
        &["demote_broker", "0", "-n"],
    ] {
        let body = stand.body(command).await;
        assert!(body["summary"]["numReplicaMovements"].is_u64(), "{command:?}: {body}");
    }
    let refused = stand.says(&["fix_offline_replicas", "-n"]).await.unwrap_err().to_string();
    assert!(refused.contains("no offline replica"), "{refused}");
    assert!(stand.world.look(|cluster| cluster.list_reassignments(None).is_empty()));
}

async fn an_execution(stand: &Stand) {
    let spread = ["rebalance", "--goals", "ReplicaDistributionGoal", "--skip-hard-goal-check", "True"];
    let moved = stand.body(&spread).await;
    assert!(moved["summary"]["numReplicaMovements"].as_u64() > Some(0), "{moved}");
    let deadline = Instant::now() + PATIENCE;
    while stand.body(&["state"]).await["ExecutorState"]["state"] != "NO_TASK_IN_PROGRESS" {
        assert!(Instant::now() < deadline, "it never ended");
    }
    let empty = stand.world.look(|cluster| (0..4).find(|id| cluster.replicas_on(BrokerId(*id)).is_empty()));
    assert_eq!(empty, None, "every broker holds something");
    let tasks = stand.body(&["user_tasks"]).await;
    let tasks = tasks["userTasks"].as_array().cloned().unwrap_or_default();
    let is_spread = |task: &&Value| task["RequestURL"].as_str().is_some_and(|url| url.contains("rebalance"));
    assert!(tasks.iter().filter(is_spread).any(|task| task["Status"] == "Completed"), "{tasks:?}");
    stand.must_say(&["stop_proposal_execution"]).await;
}

impl Stand {
    /// Four brokers of which the last two hold nothing, and an engine that knows their load.
    async fn built() -> Self {
        let racks = |id: i32| BrokerSpec::new(id).in_rack(["a", "b"][id as usize % 2]);
        let mut cluster = Cluster::new(Options::default(), (0..4).map(racks));
        for name in ["orders", "parcels"] {
            let replicas: [&[i32]; 6] = [&[0, 1], &[1, 0], &[0, 1], &[1, 0], &[0, 1], &[1, 0]];
            let topic = NewTopic::manual(name, &replicas).loaded(Load::steady(100_000.0), 20_000);
            cluster.create_topic(&topic, false).expect("a topic");
        }
        let world = World::new(cluster);
        let listener = Listener::plain(world.clone());
        for id in 0..4 {
            listener.open_tcp(BrokerId(id), 0).await.expect("a free port");
        }
        let life = Life::begin(&listener.bootstrap(), &[0, 1, 2, 3], "").await;
        let stand = Self { life, world, _listener: listener };
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = stand.says(&["load"]).await {
            assert!(Instant::now() < deadline, "the engine never knew its cluster: {error:#}");
            sleep(Duration::from_millis(500)).await;
        }
        stand
    }

    /// What cccli prints, or how it failed.
    async fn says(&self, command: &[&str]) -> anyhow::Result<String> {
        let address = self.life.address();
        let arguments: Vec<&str> = ["-a", &address].iter().chain(command).copied().collect();
        let said = kafka_client::run("cccli.py", &arguments).await?;
        // It ends well even when the server refused; then it tells so.
        anyhow::ensure!(!said.contains("errorMessage") && !said.contains("Error processing"), "{said}");
        Ok(said)
    }

    async fn must_say(&self, command: &[&str]) -> String {
        self.says(command).await.unwrap_or_else(|error| panic!("{command:?}: {error:#}"))
    }

    /// The JSON that it prints if it is told to.
    async fn body(&self, command: &[&str]) -> Value {
        let said = self.must_say(&[command, &["--json", "true"]].concat()).await;
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{command:?}: {error}: {said}"))
    }
}
