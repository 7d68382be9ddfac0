//! The page of figures of a whole engine, beside the sensors that dashboards for the original know.

use std::{collections::BTreeSet, time::Duration};

use evenkeel_rest::{body::state::Phase, parameter::AnomalyType};
use evenkeel_sim::{BrokerId, cluster::Fault};

use crate::lives::{Life, PATIENCE, removing, spread};
use crate::stage::Stage;

/// Figures of the moment.
const VALUES: &[(&str, &str)] = &[
    (
        "Executor",
        "replica-action-in-progress replica-action-pending replica-action-aborting replica-action-aborted replica-action-dead",
    ),
    ("Executor", "leadership-action-in-progress leadership-action-pending leadership-action-aborting"),
    ("Executor", "leadership-action-aborted leadership-action-dead"),
    ("Executor", "execution-started-kafka-assigner execution-started-non-kafka-assigner"),
    ("Executor", "execution-stopped execution-stopped-by-user"),
    ("LoadMonitor", "valid-windows total-monitored-windows monitored-partitions-percentage"),
    ("LoadMonitor", "num-partitions-with-extrapolations num-topics metadata-factor dead-brokers-with-replicas"),
    ("LoadMonitor", "brokers-with-replicas brokers-with-offline-replicas"),
    ("UserTaskManager", "num-active-sessions num-active-user-tasks"),
    ("AnomalyDetector", "balancedness-score under-provisioned over-provisioned right-sized"),
    ("AnomalyDetector", "GOAL_VIOLATION-has-unfixable-goals mean-time-to-start-fix-ms"),
    ("AnomalyDetector", "number-of-self-healing-started ongoing-anomaly-duration-ms"),
    ("GoalOptimizer", "has-unfixable-proposal-optimization"),
];
/// What is counted.
const COUNTS: &[(&str, &str)] = &[
    ("MetricFetcherManager", "partition-samples-fetcher-failure-rate"),
    ("KafkaCruiseControlServlet", "REBALANCE-request-rate STATE-request-rate"),
];
/// What is timed.
const TIMERS: &[(&str, &str)] = &[
    ("Executor", "proposal-execution-time"),
    ("LoadMonitor", "cluster-model-creation-timer"),
    ("AnomalyDetector", "goal-violation-detection-timer"),
    ("GoalOptimizer", "proposal-computation-timer"),
    ("MetricFetcherManager", "partition-samples-fetcher-timer"),
    ("KafkaCruiseControlServlet", "REBALANCE-successful-request-execution-timer"),
];

/// As the usual exporter names an attribute of a sensor.
fn exported(group: &str, sensor: &str, attribute: &str) -> String {
    format!("kafka_cruisecontrol_{group}_{sensor}_{attribute}").to_lowercase().replace('-', "_")
}

/// All names that there have to be.
fn known() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut all = |sensors: &[(&str, &str)], attributes: &[&str]| {
        for (group, sensors) in sensors {
            for sensor in sensors.split(' ') {
                names.extend(attributes.iter().map(|attribute| exported(group, sensor, attribute)));
            }
        }
    };
    all(VALUES, &["value"]);
    all(COUNTS, &["count"]);
    all(TIMERS, &["count", "mean", "max"]);
    for kind in AnomalyType::ALL {
        names.insert(exported("AnomalyDetector", &format!("{kind}-self-healing-enabled"), "value"));
        names.insert(exported("AnomalyDetector", &format!("{kind}-rate"), "count"));
        for attribute in ["count", "mean", "max"] {
            let timer = format!("{kind}-self-healing-fix-generation-timer");
            names.insert(exported("AnomalyDetector", &timer, attribute));
        }
    }
    names
}

async fn figure(life: &Life, name: &str) -> f64 {
    let page = life.got("/metrics").await.1;
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in\n{page}")).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_sensor_that_dashboards_know_is_on_the_page() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    life.phase().await;
    let page = life.got("/metrics").await.1;
    let there: BTreeSet<String> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once([' ', '{'])?.0.to_owned()))
        .collect();
    let missing: Vec<String> = known().difference(&there).cloned().collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_done_is_counted_and_timed() {
    let stage = Stage::new();
    let life = stage.engine_with(
        "self.healing.broker.failure.enabled=true\n\
         anomaly.notifier.class=com.linkedin.kafka.cruisecontrol.detector.notifier.SelfHealingNotifier\n\
         broker.failure.alert.threshold.ms=1000\n\
         broker.failure.self.healing.threshold.ms=2000\n\
         broker.failure.detection.interval.ms=10000\n",
    );
    life.proposed(&spread()).await;
    let count = async |group: &str, sensor: &str| figure(&life, &exported(group, sensor, "count")).await;
    assert!(count("MetricFetcherManager", "partition-samples-fetcher-timer").await >= 2.0);
    assert_eq!(count("GoalOptimizer", "proposal-computation-timer").await, 1.0);
    assert!(count("LoadMonitor", "cluster-model-creation-timer").await >= 1.0);
    assert_eq!(count("Executor", "proposal-execution-time").await, 0.0);
    // Two replicas of each of twelve partitions on two brokers, and the engine's own topics.
    assert!(figure(&life, &exported("LoadMonitor", "metadata-factor", "value")).await >= 48.0);

    life.client.ask_and_wait(&removing(0), PATIENCE, Duration::from_secs(1)).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(count("Executor", "proposal-execution-time").await, 1.0);
    // Far longer than a look at it.
    assert!(figure(&life, &exported("Executor", "proposal-execution-time", "max")).await > 1_000.0);

    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(BrokerId(1))));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(count("AnomalyDetector", "BROKER_FAILURE-rate").await >= 1.0);
    assert!(count("AnomalyDetector", "BROKER_FAILURE-self-healing-fix-generation-timer").await >= 1.0);

    stage.cut(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(count("MetricFetcherManager", "partition-samples-fetcher-failure-rate").await >= 1.0);
}
